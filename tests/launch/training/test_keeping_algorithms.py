"""Some algorithms through the program, and a run of Ditto with rows in files, killed and resumed."""

import csv
import dataclasses

import numpy as np
import pytest

import launch.train
from launch.runs.checkpoints import Checkpoints
from launch.runs.nested_state import flatten_state
from launch.runs.run_folder import RunFolder
from launch.runs.task_columns import find_task_columns
from launch.settings.run_config import build_run_config
from launch.training.round_loop import RoundLoop
from tff_algos.ditto.config import DittoConfig
from tff_algos.ditto.process import build_ditto_process
from tff_algos.rounds.client_store import ClientStore
from tff_algos.settings.local_training import LocalTrainingConfig

pytestmark = pytest.mark.usefixtures("no_plots")
ROUNDS, FATAL_ROUND = 4, 3
TASK = find_task_columns("classification")
TRAINING = LocalTrainingConfig(epochs=1, batch_size=4, learning_rate=0.01)


class Killed(BaseException):
    """Stands for whatever ends a run."""


@pytest.mark.slow
def test_two_rounds_of_each_through_the_program(tmp_path, monkeypatch, capsys):
    """What these do is tested in `tff_algos`, and how the program treats an algorithm by others."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    up = {}
    for algo in ("ditto", "apfl", "pfedme", "partial", "scaffold", "fednova", "moon", "ifca", "cfl"):
        arguments = f"--algo={algo}", "--smoke", f"--run_dir={tmp_path / algo}"
        assert launch.train.main(arguments) == 0, capsys.readouterr().err
        with open(tmp_path / algo / "metrics.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["round"] for row in rows] == ["1", "2"]
        assert all(np.isfinite(float(row["train_loss"])) and row["num_rejected"] == "0" for row in rows)
        up[algo] = int(rows[0]["bytes_up"])
    assert capsys.readouterr().err == ""
    assert (
        up["scaffold"]
        == 2 * up["ditto"]
        == 2 * up["fednova"]
        == 2 * up["moon"]
        == 2 * up["ifca"]
        == 2 * up["pfedme"]
        == 2 * up["apfl"]
        > 2 * up["partial"]
    )


@pytest.fixture
def ditto(tff_runtime, make_federation, linear_spec):
    config = DittoConfig(TRAINING, cohort_size=2)
    return build_ditto_process(linear_spec, make_federation([9, 4, 14, 6, 7]), config, seed=2)


@pytest.fixture
def make_loop(ditto, tmp_path):
    """A function (name, bytes that rows may have in the state, fatal round) -> the loop of a run of Ditto.

    All share what was traced, and each has a store of its own.
    """
    opened = []

    def make(name, most_bytes=0, fatal_round=None):
        for folder in opened:
            folder.close()
        (tmp_path / name).mkdir(exist_ok=True)
        folder = RunFolder(tmp_path / name, is_new=False)
        opened.append(folder)
        store = ClientStore(ditto.store.initial, ditto.store.num_clients, most_bytes)
        process = dataclasses.replace(ditto, store=store)
        config = build_run_config({"algo": "ditto", "rounds": ROUNDS})

        def evaluate(state, previous, with_shared):
            if state.round_num == fatal_round:
                raise Killed
            return dict.fromkeys(TASK.evaluation, 0.5)

        loop = RoundLoop(config, folder, process, Checkpoints(folder.checkpoints), evaluate, lambda: 7, TASK)
        return process, loop

    yield make
    opened[-1].close()


def get_personal(process, state):
    clients = process.clients.clients
    return [array.tobytes() for _, weights in process.personalize(state, clients) for array in weights]


def test_a_resumed_ditto_with_rows_in_files_has_the_bytes_of_a_straight_one(make_loop, tmp_path):
    """Ended in a round after its files were written; and rows in the state give the same models."""
    process, loop = make_loop("straight")
    straight = loop.run()
    expected = get_personal(process, straight)
    assert list((tmp_path / "straight" / "kept").rglob("*.bin"))
    with pytest.raises(Killed):
        make_loop("broken", fatal_round=FATAL_ROUND)[1].run()
    process, loop = make_loop("broken")
    assert loop.round_num == FATAL_ROUND - 1
    resumed = loop.run()
    for leaf, wanted in zip(flatten_state(resumed), flatten_state(straight), strict=True):
        np.testing.assert_array_equal(leaf, wanted)
    assert get_personal(process, resumed) == expected
    metrics = [(tmp_path / name / "metrics.csv").read_bytes() for name in ("straight", "broken")]
    assert metrics[0] == metrics[1]
    process, loop = make_loop("in_state", most_bytes=2**20)
    assert get_personal(process, loop.run()) == expected
    assert not (tmp_path / "in_state" / "kept").exists()
    assert (tmp_path / "in_state" / "metrics.csv").read_bytes() == metrics[0]
