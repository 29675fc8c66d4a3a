"""What clients keep: the same rows from the state and from files, states that never change, files as long as needed."""

import pathlib
import re
import shutil

import numpy as np
import pytest
from small_runs import assert_same

from launch.runs.checkpoints import flatten_state, pack_state
from tff_algos.protocol import ClientStateError
from tff_algos.rounds.client_store import MOST_BYTES, ClientStore, GroupedStore

INITIAL = (np.zeros((2, 3), np.float32), np.float64(7), np.array([1, 2, 3], np.int8))  # 24 + 8 + 3 bytes
NUM_CLIENTS = 10
IN_STATE, IN_FILES = NUM_CLIENTS * 35, NUM_CLIENTS * 35 - 1  # the bounds at which the rows fit just, or not


def make_row(number):
    return (np.full((2, 3), number, np.float32), np.array(number / 4), np.array([number] * 3, np.int8))


def write(store, state, clients, round_num):
    """Each client writes a row of (client + 10 x round)."""
    return store.write(state, clients, [make_row(client + 10 * round_num) for client in clients], round_num)


def make_store(most_bytes=IN_FILES, initial=INITIAL, folder=None):
    store = ClientStore(initial, NUM_CLIENTS, most_bytes)
    if folder:
        store.keep_in(folder)
    return store


def list_files(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def assert_rows(rows, numbers):
    """The rows are those of these numbers, to the bit, None for the first row."""
    for row, number in zip(rows, numbers, strict=True):
        assert_same_row(row, INITIAL if number is None else make_row(number))


def assert_same_row(row, expected):
    assert list(map(describe, row)) == list(map(describe, expected))


def describe(array):
    return np.asarray(array).dtype, np.shape(array), np.asarray(array).tobytes()


@pytest.fixture(params=[IN_STATE, IN_FILES], ids=["in the state", "in files"])
def store(request):
    return make_store(request.param)


def test_rows_come_in_the_order_asked_for_and_newcomers_have_the_first_row(store):
    state = store.initialize()
    assert [len(leaf) for leaf in flatten_state(state)] == [0] * 5
    assert_rows(store.read(state, [3, 0, 12]), [None] * 3)
    state = write(store, state, [7, 2], 1)
    state = write(store, state, np.array([9, 0, 2]), 2)
    assert state.clients.tolist() == [0, 2, 7, 9] and state.clients.dtype == np.int64
    assert state.versions.tolist() == [2, 2, 1, 2] and state.versions.dtype == np.int32
    assert_rows(store.read(state, [2, 9, 7, 0, 2, 1]), [22, 29, 17, 20, 22, None])
    assert_rows(store.iterate(state, range(3)), [20, None, 22])
    same = store.write(state, np.zeros(0), [], 3)
    assert same.clients.tolist() == [0, 2, 7, 9] and same.versions.tolist() == [2, 2, 1, 2]


def test_a_state_is_never_changed(store):
    first = write(store, store.initialize(), [1, 3], 1)
    before = [leaf.copy() for leaf in flatten_state(first)]
    second = write(store, first, [1, 2], 2)
    assert_same(flatten_state(first), before)
    assert_rows(store.read(first, [1, 2, 3]), [11, None, 13])
    assert_rows(store.read(second, [1, 2, 3]), [21, 22, 13])
    for row in (*store.read(second, [1]), *store.read(second, [5])):
        with pytest.raises(ValueError, match="read-only"):
            row[0][0, 0] = 1


def test_what_was_written_is_a_copy(store):
    row = make_row(5)
    state = store.write(store.initialize(), [5], [row], 1)
    row[0][:] = 0
    assert_rows(store.read(state, [5]), [5])


def test_a_round_that_is_computed_again_gives_the_same_bytes(tmp_path):
    """In another process as well, from a state that went through a checkpoint."""
    store, again = make_store(folder=tmp_path), make_store(folder=tmp_path)
    first = write(store, store.initialize(), [1, 3], 1)
    write(store, first, [1, 2], 2)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.bin")}
    restored = pack_state(again.initialize(), [leaf.copy() for leaf in flatten_state(first)])
    second = write(again, restored, [1, 2], 2)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.bin")} == before and len(before) == 4
    assert_rows(again.read(second, [1, 2, 3]), [21, 22, 13])


def test_the_bound_is_on_the_rows_of_all_clients():
    assert not make_store(IN_STATE).begins_in_files and make_store(IN_FILES).begins_in_files
    large = ClientStore([np.zeros(2**20, np.float32)], 17)  # of 4 MiB each
    assert 16 * large.row_bytes == MOST_BYTES and large.begins_in_files


@pytest.mark.parametrize("bounds", [(IN_STATE, IN_FILES), (IN_FILES, IN_STATE)])
def test_a_run_goes_on_as_it_began_if_the_bound_changes(tmp_path, bounds):
    begun, later = (make_store(bound, folder=tmp_path) for bound in bounds)
    state = write(later, write(begun, begun.initialize(), [1, 2], 1), [2, 3], 2)
    assert (later.find_files(state) is None) == (bounds[0] == IN_STATE)
    assert_rows(later.read(state, [1, 2, 3]), [11, 22, 23])


def test_a_client_that_keeps_nothing_costs_nothing():
    store = ClientStore((), NUM_CLIENTS, most_bytes=0)
    state = store.write(store.initialize(), [4], [()], 1)
    assert store.read(state, [4, 5]) == [(), ()] and store.find_files(state) is None


def test_arrays_of_odd_sizes_lie_as_tensorflow_wants_them():
    initial = (np.zeros(3, np.int8), np.zeros(2, np.float64))
    store = make_store(0, initial)
    state = store.write(store.initialize(), [0], [(np.ones(3, np.int8), np.array([0.5, 2.5]))], 1)
    [(small, large)] = store.read(state, [0])
    assert large.flags.aligned and small.tolist() == [1] * 3 and large.tolist() == [0.5, 2.5]


@pytest.mark.parametrize(
    ("clients", "rows", "round_num", "message"),
    [
        ([1, 1], [make_row(1)] * 2, 2, "each once"),
        ([10], [make_row(1)], 2, "from 0 to 9"),
        ([-1], [make_row(1)], 2, "from 0 to 9"),
        ([3], [make_row(1)], 1, "has written in round 1 or later"),
        ([2], [make_row(1)[:2]], 2, "client 2 keeps"),
        ([2], [(make_row(1)[0].astype(np.float64), *make_row(1)[1:])], 2, "client 2 keeps"),
        ([2], [(make_row(1)[0].T, *make_row(1)[1:])], 2, "client 2 keeps"),
        ([2, 4], [make_row(1)], 2, "zip"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_is(store, tmp_path, clients, rows, round_num, message):
    store.keep_in(tmp_path)
    state = write(store, store.initialize(), [3], 1)
    before = list_files(tmp_path)
    with pytest.raises(ValueError, match=message):
        store.write(state, clients, rows, round_num)
    assert list_files(tmp_path) == before


def test_files_go_with_a_store_that_was_given_no_folder():
    store = make_store()
    state = write(store, store.initialize(), [1], 1)
    folder = store._folder
    assert list_files(folder) == ["1_1.bin"]
    # Nothing else holds the store, whose end removes the folder.
    del store, state
    assert not folder.exists()


def test_rows_in_the_state_make_no_folder(tmp_path):
    store = make_store(IN_STATE, folder=tmp_path / "rows")
    store.read(write(store, store.initialize(), [1], 1), [1, 2])
    assert not (tmp_path / "rows").exists()


class TestForgetting:
    """Rounds 1 to 4, in which these clients write."""

    COHORTS = ([1, 2], [2, 3], [3, 4], [4, 1])

    @pytest.fixture
    def written(self, tmp_path):
        """(a store, its states before and after each round, their folder)."""
        store = make_store(folder=tmp_path)
        states = [store.initialize()]
        for round_num, cohort in enumerate(self.COHORTS, 1):
            states.append(write(store, states[-1], cohort, round_num))
        (tmp_path / "0" / "notes.bin").write_text("mine")  # a file of somebody else stays
        return store, states, lambda: [name[:-4].replace("_", ".") for name in list_files(tmp_path) if name[0] != "n"]

    def test_files_go_that_no_state_needs(self, written):
        store, states, list_written = written
        assert len(list_written()) == 8
        store.forget([states[3], states[4]])
        assert list_written() == ["1.1", "1.4", "2.2", "3.3", "4.3", "4.4"]
        assert_rows(store.read(states[3], range(1, 5)), [11, 22, 33, 34])
        assert_rows(store.read(states[4], range(1, 5)), [41, 22, 33, 44])
        # Only what was written anew since is looked at.
        assert store._doubtful == {(1, 1), (4, 3)}
        store.forget([])
        store.forget([states[4]])
        assert store._doubtful == set() and len(list_written()) == 4

    def test_what_an_old_best_round_needs_stays_and_what_lies_between_goes(self, written):
        store, states, list_written = written
        store.forget([states[1], states[4]])
        assert list_written() == ["1.1", "1.4", "2.1", "2.2", "3.3", "4.4"]
        store.forget([states[4]])  # a better round came
        assert list_written() == ["1.4", "2.2", "3.3", "4.4"]

    def test_what_an_earlier_process_left_is_found(self, written, tmp_path):
        """It was killed in round 4, before its checkpoint; the run goes on from round 3 and comes another way."""
        _, states, list_written = written
        resumed = make_store(folder=tmp_path)
        last = write(resumed, states[3], [5], 4)
        resumed.forget([states[3], last])
        assert list_written() == ["1.1", "2.2", "3.3", "4.3", "5.4"]
        newest = write(resumed, last, [2], 5)
        resumed.forget([last, newest])
        resumed.forget([newest])
        assert list_written() == ["1.1", "2.5", "3.3", "4.3", "5.4"]
        assert (tmp_path / "0" / "notes.bin").exists()


def damage_a_byte(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def cut_off(path):
    path.write_bytes(path.read_bytes()[:-1])


def put_a_folder(path):
    path.unlink()
    path.mkdir()


def take_that_of_another(path):
    shutil.copy(path.with_name("2_1.bin"), path)


@pytest.mark.parametrize("damage", [damage_a_byte, cut_off, pathlib.Path.unlink, put_a_folder, take_that_of_another])
def test_a_damaged_file_is_one_line_that_names_it(tmp_path, damage):
    store = make_store(folder=tmp_path)
    state = write(store, store.initialize(), [1, 2], 3)
    state = write(store, state, [5], 4)
    # A whole file of another client, for the damage that puts it in this one's stead.
    (tmp_path / "0" / "2_1.bin").write_bytes((tmp_path / "0" / "2_3.bin").read_bytes())
    path = tmp_path / "0" / "1_3.bin"
    damage(path)
    with pytest.raises(ClientStateError, match=f"{re.escape(str(path))}: gone or damaged.*client 1.*round 3") as caught:
        store.read(state, [2, 1])
    assert "\n" not in str(caught.value)
    assert_rows(store.read(state, [2, 5]), [32, 45])


def test_a_write_that_fails_names_the_file_and_leaves_no_half_of_it(tmp_path, monkeypatch):
    store = make_store(folder=tmp_path)

    def fail(source, target):
        raise OSError(28, "No space left on device")

    # The last call of a whole write: what lies in the folder before it is no file of the store's.
    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="No space left") as caught:
        write(store, store.initialize(), [1], 1)
    assert caught.value.filename == str(tmp_path / "0" / "1_1.bin") and list_files(tmp_path) == []


def test_a_round_costs_what_its_cohort_does(tmp_path, monkeypatch):
    """Of 50,000 clients with 400 bytes each, 50 a round: files of 50 rows are read and written; a state has no row."""
    num_clients, cohort_size, num_rounds = 50_000, 50, 20
    store = ClientStore([np.zeros(100, np.float32)], num_clients, most_bytes=2**20)
    store.keep_in(tmp_path)
    read = []
    monkeypatch.setattr(pathlib.Path, "read_bytes", lambda path: read.append(path) or path.open("rb").read())
    random, states = np.random.default_rng(3), [store.initialize()]
    for round_num in range(1, num_rounds + 1):
        cohort = random.choice(num_clients, cohort_size, replace=False)
        rows = store.read(states[-1], cohort)
        num_files = len(list_files(tmp_path))
        states.append(store.write(states[-1], cohort, [(array + 1,) for (array,) in rows], round_num))
        assert len(list_files(tmp_path)) == num_files + cohort_size
        store.forget(states[-2:])
        assert len(store._doubtful) <= 2 * cohort_size
    newest = states[-1]
    assert 900 < len(newest.clients) <= cohort_size * num_rounds
    assert sum(leaf.nbytes for leaf in flatten_state(newest)) == 12 * len(newest.clients)
    assert len(read) == cohort_size * num_rounds - len(newest.clients)
    read.clear()
    for place, (array,) in enumerate(store.iterate(newest, range(num_clients))):
        assert len(read) == np.searchsorted(newest.clients, place, side="right")
        assert array[0] >= 1 if place in newest.clients else array[0] == 0
        if place >= 2000:
            break


# A row of each of two groups at first, and of the clients 0 and 3 of groups 0 and 1 later.
FIRST = [(np.zeros(2, np.float32),), (np.ones((3,), np.float32), np.int32(7))]
LATER = {0: (np.full(2, 5, np.float32),), 3: (np.full(3, 6, np.float32), np.int32(8))}
GROUP_OF = np.array([0, 1, 0, 1])


@pytest.mark.parametrize("most_bytes", [2**20, 0], ids=["in the state", "in files"])
def test_each_group_has_rows_and_files_of_its_own(tmp_path, most_bytes):
    store = GroupedStore(FIRST, GROUP_OF, most_bytes)
    store.keep_in(tmp_path / "rows")
    before = store.initialize()
    first = store.write(before, [3, 0], [LATER[3], LATER[0]], 1)
    second = store.write(first, [3], [LATER[3]], 2)
    for state, clients, expected in (
        (before, [1, 0, 3], [FIRST[1], FIRST[0], FIRST[1]]),
        (second, [3, 2, 1, 0], [LATER[3], FIRST[0], FIRST[1], LATER[0]]),
    ):
        for row, wanted in zip(store.read(state, clients), expected, strict=True):
            assert_same_row(row, wanted)
    assert [state.clients.tolist() for state in first] == [[0], [3]]
    with pytest.raises(ValueError, match="client 0 keeps"):
        store.write(first, [0], [LATER[3]], 2)
    files = [] if most_bytes else ["0_1.bin", "3_1.bin", "3_2.bin"]
    assert list_files(tmp_path) == files and (store.find_files(second) is None) == bool(most_bytes)
    if files:
        store.forget([store.find_files(first), store.find_files(second)])
        assert list_files(tmp_path / "rows" / "group_1") == files[1:]
        store.forget([store.find_files(second)])
        assert list_files(tmp_path) == [files[0], files[2]]


def test_one_group_in_files_and_the_other_in_the_state():
    large = (np.ones(100, np.float32),)
    store = GroupedStore([FIRST[0], (np.zeros(100, np.float32),)], GROUP_OF, 100)
    state = store.write(store.initialize(), [0, 1], [LATER[0], large], 1)
    in_state, in_files = store.find_files(state)
    assert in_state is None and in_files.clients.tolist() == [1]
    store.forget([store.find_files(state)])
    for row, wanted in zip(store.read(state, [0, 1]), (LATER[0], large), strict=True):
        assert_same_row(row, wanted)
