"""A run that an earlier version made and kept, with a checkpoint of the kind that TFF wrote.

`data/saved_model_checkpoint/run` has two rounds of AMFL-P on digits, three clients, with personal models. Its plots,
logs and older checkpoint are left out, and it names no folder of the machine that made it. `metrics_of_3_rounds.csv` is
of the same run, made by the same version straight through three rounds.
"""

import json
import pathlib
import shutil

import pytest

from launch import train

KEPT = pathlib.Path(__file__).parents[1] / "data" / "saved_model_checkpoint"


@pytest.fixture(scope="session")
def copy_earlier_run(tmp_path_factory):
    """() -> a copy of the run, whose client files go to a temporary folder."""

    def copy():
        folder = tmp_path_factory.mktemp("earlier")
        shutil.copytree(KEPT / "run", folder / "run")
        config = json.loads((folder / "run" / "config.json").read_text())
        config["flags"]["client_dir"] = str(folder / "shards")
        (folder / "run" / "config.json").write_text(json.dumps(config))
        return folder / "run"

    return copy


@pytest.fixture(scope="session")
def resumed_run(copy_earlier_run):
    """A copy of the run that has gone on to round 3; every client has a personal model."""
    run_dir = copy_earlier_run()
    assert train.main(["--resume", "--rounds=3", f"--run_dir={run_dir}"]) == 0
    return run_dir


@pytest.fixture
def straight_metrics():
    """The table of the same run without a stop."""
    return KEPT / "metrics_of_3_rounds.csv"
