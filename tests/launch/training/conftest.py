"""A fixture that opens the rounds of a run without data and models."""

import types

import pytest

from launch.runs.checkpoints import Checkpoints
from launch.runs.run_folder import RunFolder
from launch.runs.task_columns import find_task_columns
from launch.settings.run_config import build_run_config
from launch.training.round_loop import RoundLoop
from launch.training.run_models import BestRound


@pytest.fixture
def open_loop(tmp_path):
    """A function (process, evaluate, folder's name, checkpoints, names of clients, flags of FedAvg) -> its rounds.

    The folder before is closed; the checkpoints lie in the run's folder unless others are given. With names of clients
    the models of the best round are kept for them.
    """
    folders = []

    def open_one(process, evaluate, name="run", checkpoints=None, names=(), clients_by_round=None, **values):
        (tmp_path / name).mkdir(exist_ok=True)
        for folder in folders:
            folder.close()
        folders.append(RunFolder(tmp_path / name, is_new=False))
        config = build_run_config({"algo": "fedavg", **values})
        task, checkpoints = find_task_columns("classification"), checkpoints or Checkpoints(folders[-1].checkpoints)
        data = types.SimpleNamespace(everyone=[types.SimpleNamespace(name=each) for each in names])
        best = BestRound(folders[-1], data, None, process, checkpoints) if names else None
        return RoundLoop(
            *(config, folders[-1], process, checkpoints, evaluate, lambda: 7, task),
            best=best,
            clients_by_round=clients_by_round,
        )

    yield open_one
    for folder in folders:
        folder.close()
