"""A user's own aggregators, from a folder outside of the project, through the program: run, resumed, and wrong."""

import importlib
import pathlib
import shutil
import sys
import textwrap

import pytest

from launch.runs.run_records import read_rows

pytestmark = pytest.mark.usefixtures("no_plots")
ROOT = pathlib.Path(__file__).parents[2]
MODULE = """
    import numpy as np
    import tensorflow_federated as tff

    from tff_algos.rounds.list_aggregator import ListAggregator

    FACTORY = tff.learning.robust_aggregator(clipping=False)
    NUMBER = 5

    def median(updates, weights):
        return np.median(updates, axis=0)

    def short(updates, weights):
        return np.median(updates, axis=0)[1:]

    class SlowMedian(ListAggregator):
        "The mean of all rounds' medians; so a resumed run shows whether the state was kept."

        def initialize(self, shapes, num_groups):
            zeros = np.zeros(sum(int(np.prod(shape)) for shape in shapes))
            return ({"rounds": np.int64(0), "sum": zeros},) * num_groups

        def combine(self, updates, weights, state):
            state = {"rounds": state["rounds"] + 1, "sum": state["sum"] + np.median(updates, axis=0)}
            return state["sum"] / state["rounds"], state, {"rounds": int(state["rounds"])}
"""
ARGUMENTS = ("--algo=fedavg", "--model=perceptron", "--num_clients=3", "--epochs=1", "--seed=1", "--norun_page")


@pytest.fixture
def folder(tmp_path):
    """A folder with the module `outside_sums`."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "outside_sums.py").write_text(textwrap.dedent(MODULE))
    return tmp_path / "elsewhere"


@pytest.fixture
def train_there(train_here, folder, monkeypatch):
    """`train_here`, where the module can be imported."""
    monkeypatch.syspath_prepend(str(folder))
    importlib.invalidate_caches()
    yield train_here
    sys.modules.pop("outside_sums", None)


def read_column(run_dir, name):
    return [row[name] for row in read_rows(run_dir / "metrics.csv")]


def check_resumed(train, tmp_path, name):
    """A straight run of two rounds has the bytes of one that lost its last round."""
    own = f"--aggregator=outside_sums:{name}"
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    code, out, err = train(*ARGUMENTS, own, "--rounds=2", f"--run_dir={straight}")
    assert (code, err) == (0, "") and f"aggregator  outside_sums:{name} sees single updates: 3 a round" in out
    shutil.copytree(straight, broken)
    (broken / "checkpoints" / "round_2.npz").unlink()
    code, _, err = train("--resume", f"--run_dir={broken}", "--rounds=2", "--trust_module=outside_sums")
    assert (code, err) == (0, "")
    assert (broken / "metrics.csv").read_bytes() == (straight / "metrics.csv").read_bytes()
    return straight


def test_a_numpy_median_with_a_state_runs_resumes_and_shows_its_measurement(train_there, tmp_path):
    straight = check_resumed(train_there, tmp_path, "SlowMedian")
    assert read_column(straight, "aggregator_rounds") == ["1", "2"]
    # A stored aggregator is asked for before its code runs.
    sys.modules.pop("outside_sums")
    code, out, err = train_there("--resume", f"--run_dir={straight}", "--rounds=3")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "--trust_module=outside_sums" in err and "outside_sums" not in sys.modules


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("outside_sums:NUMBER", "got int"),
        ("outside_sums:missing", "expected missing in outside_sums"),
        ("outside_sums:short", r"gave an update of shape"),
        ("nowhere_at_all:F", "no module named nowhere_at_all"),
    ],
)
def test_a_wrong_object_is_one_line_and_leaves_no_run(train_there, tmp_path, name, expected):
    run_dir = tmp_path / "run"
    code, _, err = train_there(*ARGUMENTS, f"--aggregator={name}", "--rounds=1", f"--run_dir={run_dir}")
    assert code == 2 and len(err.splitlines()) == 1 and expected in err
    assert err.startswith(f"error: --aggregator={name}: ")
    assert not (run_dir / "metrics.csv").exists()
