"""What clients of several groups keep: each group's rows have shapes of their own."""

import numpy as np
import pytest

from tff_algos.rounds.client_store import GroupedStore

INITIAL = [(np.zeros(2, np.float32),), (np.ones((3,), np.float32), np.int32(7))]
GROUP_OF = np.array([0, 1, 0, 1])
ROWS = {0: (np.full(2, 5, np.float32),), 3: (np.full(3, 6, np.float32), np.int32(8))}


@pytest.fixture(params=[2**20, 0], ids=["in the state", "in files"])
def store(request, tmp_path):
    store = GroupedStore(INITIAL, GROUP_OF, request.param)
    store.keep_in(tmp_path / "kept")
    return store


def assert_rows(found, expected):
    for row, wanted in zip(found, expected, strict=True):
        for array, other in zip(row, wanted, strict=True):
            np.testing.assert_array_equal(array, other)
            assert array.dtype == other.dtype


def list_files(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.bin"))


def test_each_client_gets_back_what_it_wrote_or_the_first_row_of_its_group(store):
    before = store.initialize()
    assert_rows(store.read(before, [1, 0]), [INITIAL[1], INITIAL[0]])
    after = store.write(before, [3, 0], [ROWS[3], ROWS[0]], 1)
    assert_rows(store.read(after, [3, 2, 1, 0]), [ROWS[3], INITIAL[0], INITIAL[1], ROWS[0]])
    assert_rows(store.iterate(before, [3]), [INITIAL[1]])
    assert [state.clients.tolist() for state in after] == [[0], [3]]
    assert_rows(store.read(store.write(after, [], [], 2), [0]), [ROWS[0]])
    with pytest.raises(ValueError, match="client 0 keeps"):
        store.write(after, [0], [ROWS[3]], 2)


def test_files_that_no_state_needs_are_removed_group_by_group(store, tmp_path):
    first = store.write(store.initialize(), [0, 3], [ROWS[0], ROWS[3]], 1)
    second = store.write(first, [3], [ROWS[3]], 2)
    if store.find_files(second) is None:
        assert not (tmp_path / "kept").exists()
        return
    kept = ["kept/group_0/0/0_1.bin", "kept/group_1/0/3_1.bin", "kept/group_1/0/3_2.bin"]
    assert list_files(tmp_path) == kept
    store.forget([store.find_files(first), store.find_files(second)])
    assert list_files(tmp_path) == kept
    store.forget([store.find_files(second)])
    assert list_files(tmp_path) == [kept[0], kept[2]]
    assert_rows(store.read(second, [0, 3]), [ROWS[0], ROWS[3]])


def test_one_group_in_files_and_the_other_in_the_state():
    store = GroupedStore([(np.zeros(2, np.float32),), (np.zeros(100, np.float32),)], GROUP_OF, 100)
    state = store.write(store.initialize(), [0, 1], [ROWS[0], (np.ones(100, np.float32),)], 1)
    in_state, in_files = store.find_files(state)
    assert in_state is None and in_files.clients.tolist() == [1]
    store.forget([store.find_files(state)])
    assert_rows(store.read(state, [0, 1]), [ROWS[0], (np.ones(100, np.float32),)])
