"""Runs whose clients keep rows in files: killed, resumed, with damaged checkpoints, and with the best round kept."""

from typing import NamedTuple

import numpy as np
import pytest
from made_up_process import Killed

from launch.command_line import run_main
from launch.runs.checkpoints import Checkpoints, find_checkpoints, flatten_state
from launch.runs.run_folder import check_run_folder
from launch.runs.task_columns import find_task_columns
from launch.settings.run_config import build_run_config
from launch.training import run_models
from tff_algos.protocol import COMMON_METRICS, ClientStateError, FederatedProcess, RoundOutput
from tff_algos.rounds.client_store import ClientStore, StoreState

ROUNDS, NUM_CLIENTS = 7, 5
TASK = find_task_columns("classification")
# Of the rounds on validation examples: the second is the best.
ACCURACIES = (0.3, 0.5, 0.5, 0.4, 0.3, 0.2, 0.1)


class State(NamedTuple):
    """Rounds done, the one model, and what the clients keep."""

    round_num: np.int32
    model: np.ndarray
    kept: StoreState


class Process(FederatedProcess):
    """Each round two clients multiply what they keep by 3 and add the round; the model sums up what they write."""

    def __init__(self, most_bytes):
        self.store = ClientStore([np.ones(2, np.float32)], NUM_CLIENTS, most_bytes)

    def keep_in(self, folder):
        self.store.keep_in(folder)

    def find_kept(self, state):
        return self.store.find_files(state.kept)

    def forget(self, needed):
        self.store.forget(needed)

    def initialize(self):
        return State(np.int32(0), np.zeros(2, np.float32), self.store.initialize())

    def next(self, state):
        round_num = int(state.round_num) + 1
        # Squares, so that some clients come often and others never: files of several rounds are needed at once.
        cohort = [(round_num * round_num) % NUM_CLIENTS, (round_num * round_num + 2) % NUM_CLIENTS]
        rows = [(3 * row[0] + np.float32(round_num),) for row in self.store.read(state.kept, cohort)]
        kept = self.store.write(state.kept, cohort, rows, round_num)
        model = state.model + np.sum([row[0] for row in rows], axis=0)
        return RoundOutput(State(np.int32(round_num), model, kept), dict.fromkeys(COMMON_METRICS, 0.0))

    def get_models(self, state):
        return {"global": (state.model,)}

    def client_model(self, state):
        return ["global"] * NUM_CLIENTS


def evaluate(state, previous, with_shared):
    del previous, with_shared
    return dict.fromkeys(TASK.evaluation, ACCURACIES[state.round_num - 1])


@pytest.fixture
def make_loop(open_loop, monkeypatch):
    monkeypatch.setattr(run_models, "save_models", lambda *arguments: None)

    def make(name="run", most_bytes=0, **values):
        names = list(map(str, range(NUM_CLIENTS)))
        return open_loop(
            Process(most_bytes),
            evaluate,
            name,
            names=names,
            rounds=values.pop("rounds", ROUNDS),
            keep_best=True,
            **values,
        )

    return make


def read_all(state, run_dir):
    """The rows of all clients, bytes; from the state, or from the run's files."""
    process = Process(0)
    process.keep_in(run_dir / "kept")
    return [row[0].tobytes() for row in process.store.read(state.kept, range(NUM_CLIENTS))]


def list_kept(run_dir):
    return sorted(path.name for path in (run_dir / "kept").rglob("*") if path.is_file())


def list_needed(states):
    pairs = [zip(state.kept.clients, state.kept.versions, strict=True) for state in states]
    return sorted({f"{client}_{version}.bin" for each in pairs for client, version in each})


def kill_in(loop, fatal_round, is_saved_on_the_way_out):
    """Has a loop end in this round, after the round's files were written and before its checkpoint."""
    every = loop._config.rounds_per_checkpoint
    save = loop._save

    def die(state, previous, with_shared):
        if state.round_num == fatal_round:
            raise Killed
        return evaluate(state, previous, with_shared)

    loop._evaluate_state = die
    if not is_saved_on_the_way_out:
        loop._save = lambda: save() if loop.round_num % every == 0 else None
    with pytest.raises(Killed):
        loop.run()


def test_rows_in_files_and_in_the_state_give_the_same_run(make_loop, tmp_path):
    in_files = make_loop("files").run()
    in_state = make_loop("state", most_bytes=2**20).run()
    np.testing.assert_array_equal(in_files.model, in_state.model)
    assert read_all(in_files, tmp_path / "files") == read_all(in_state, tmp_path / "state")
    assert not (tmp_path / "state" / "kept").exists() and list_kept(tmp_path / "files")


@pytest.mark.parametrize("rounds_per_checkpoint", [1, 3])
@pytest.mark.parametrize("fatal_round", [2, 4, 7])
@pytest.mark.parametrize("is_saved_on_the_way_out", [True, False])
@pytest.mark.parametrize("is_damaged", [True, False])
def test_a_resumed_run_is_the_same(
    make_loop, tmp_path, rounds_per_checkpoint, fatal_round, is_saved_on_the_way_out, is_damaged
):
    """Also where the newest checkpoint is damaged, and the run goes on from the older one."""
    straight = make_loop("straight", rounds_per_checkpoint=rounds_per_checkpoint).run()
    broken = make_loop(rounds_per_checkpoint=rounds_per_checkpoint)
    kill_in(broken, fatal_round, is_saved_on_the_way_out)
    found = find_checkpoints(tmp_path / "run" / "checkpoints")
    if is_damaged and len(found) == 2:
        # The beginning of an npz, of which the rest is lost.
        found[max(found)].write_bytes(b"PK")
    resumed = make_loop(rounds_per_checkpoint=rounds_per_checkpoint).run()
    for leaf, expected in zip(flatten_state(resumed), flatten_state(straight), strict=True):
        np.testing.assert_array_equal(leaf, expected)
    assert read_all(resumed, tmp_path / "run") == read_all(straight, tmp_path / "straight")


@pytest.mark.parametrize("rounds_per_checkpoint", [1, 3])
@pytest.mark.parametrize("fatal_round", [None, 5])
def test_the_files_are_those_that_the_kept_states_need(make_loop, tmp_path, rounds_per_checkpoint, fatal_round):
    """Those of both checkpoints and of the best round, 2, whose rows have long been written anew."""
    loop = make_loop(rounds_per_checkpoint=rounds_per_checkpoint)
    if fatal_round:
        kill_in(loop, fatal_round, is_saved_on_the_way_out=False)
        loop = make_loop(rounds_per_checkpoint=rounds_per_checkpoint)
    loop.run()
    checkpoints, template = Checkpoints(tmp_path / "run" / "checkpoints"), Process(0).initialize()
    rounds = checkpoints.list_rounds()
    states = [checkpoints.load_any(round_num, template) for round_num in rounds]
    assert rounds[0] == 2 and rounds[-1] == ROUNDS and len(rounds) == 3
    assert [int(state.round_num) for state in states] == rounds
    assert list_kept(tmp_path / "run") == list_needed(states) != list_needed(states[1:])
    assert all(len(read_all(state, tmp_path / "run")) == NUM_CLIENTS for state in states)


def test_a_lost_file_is_one_line_and_leaves_the_checkpoints(make_loop, tmp_path, capsys):
    make_loop(rounds=4).run()
    for path in (tmp_path / "run" / "kept").rglob("*.bin"):
        path.unlink()
    resumed = make_loop()
    with pytest.raises(ClientStateError, match=r"kept/0/\d_\d\.bin: gone or damaged"):
        resumed.run()
    # In round 5 take part who keep nothing yet.
    assert max(find_checkpoints(tmp_path / "run" / "checkpoints")) == 5

    def fail(arguments):
        raise ClientStateError("kept/0/1_2.bin: gone")

    assert run_main(fail, str, []) == 2
    assert capsys.readouterr().err == "error: kept/0/1_2.bin: gone\n"


def test_a_run_folder_with_such_files_is_one(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "config.json").write_text('{"flags": {"algo": "fedavg"}}')
    check_run_folder(build_run_config({"algo": "fedavg", "run_dir": str(tmp_path), "overwrite": True}))
