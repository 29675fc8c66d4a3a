"""A run has the same bytes whether it is made in a process of its own or forked from one that has served others."""

import os
import pathlib
import subprocess
import sys

import pytest

import launch.train
from launch.settings.flags import parse_config
from launch.sweeps import jobs
from launch.sweeps.jobs import LocalEngine
from launch.sweeps.pool import run_tasks
from launch.sweeps.recipes import from_flagfile
from launch.sweeps.tasks import Task

ROOT = pathlib.Path(__file__).parents[3]
CORE = str(min(os.sched_getaffinity(0)))
DIGITS = ("--num_clients=5", "--rounds=3")
RUNS = {
    "fedavg": ("--algo=fedavg", *DIGITS),
    "fedsikd": ("--algo=fedsikd", *DIGITS),
    "fedcd": ("--algo=fedcd", "--smoke", "--fedcd_compression_bits=8"),
    "async_periodic": ("--algo=async_periodic", *DIGITS),
    "amfl_p": ("--algo=amfl_p", "--building_num_sensors=10", "--rounds=3"),
    "qat": ("--algo=fedsikd", "--quantize=qat", "--qat_start_round=2", "--num_clients=5", "--rounds=2"),
}


WITHOUT_PLOTS = """
import launch.sweeps.imports
from launch.pages.plots import run_plots
run_plots.draw_run = lambda *given: []
"""


@pytest.fixture
def fork_runs(tmp_path):
    """(name, ..., failures=[]) -> folders of these runs, forked one after another from one process on the first core.

    A run called `wrong` is asked for no rounds at all.
    """

    def make(*names, failures=()):
        tasks = []
        for number, name in enumerate(names):
            flagfile = tmp_path / f"{name}.flags"
            flagfile.write_text("\n".join(RUNS["fedavg" if name == "wrong" else name]))
            run_dir = tmp_path / "forked" / name / f"run_{number}"
            config = parse_config([f"--flagfile={flagfile}"])
            more = ("--rounds=0",) if name == "wrong" else ()
            tasks.append(Task(from_flagfile(flagfile), (f"--run_dir={run_dir}", *more), run_dir, config))
        engine = LocalEngine([[min(os.sched_getaffinity(0))]], keeps_logs=True)
        assert run_tasks(tasks, engine) == list(failures)
        return [task.run_dir for task in tasks]

    return make


def read_bytes(run_dir):
    """What must not vary, by name: the tables, the events and the checkpoints."""
    tables = [run_dir / name for name in ("metrics.csv", "clients.csv", "events.csv")]
    files = [path for path in (*tables, *sorted((run_dir / "checkpoints").iterdir())) if path.exists()]
    assert len(files) >= 4
    return {path.name: path.read_bytes() for path in files}


@pytest.mark.slow
@pytest.mark.usefixtures("no_plots")
def test_a_run_after_another_is_as_one_of_this_process(fork_runs, tmp_path, monkeypatch, capfd):
    """The other fails, which says so and no more: TFF's destructors used to complain at the end of a process, and the
    sweep took that for the reason.
    """
    (tmp_path / "imports_without_plots.py").write_text(WITHOUT_PLOTS)
    monkeypatch.setattr(jobs, "IMPORTS", "imports_without_plots")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(RUNS, "fedavg", ("--algo=fedavg", "--smoke", "--model=perceptron", "--norun_page"))
    log = tmp_path / "forked" / "wrong" / "run_0.log"
    said = "error: --rounds=0: expected an integer at least 1 and at most 1000000"
    _, second = fork_runs("wrong", "fedavg", failures=[f"wrong, seed 0: exit code 2; {said}; its output: {log}"])
    assert log.read_text() == f"{said}\n" and capfd.readouterr().err == ""
    assert launch.train.main([*RUNS["fedavg"], f"--run_dir={tmp_path / 'own'}"]) == 0
    assert read_bytes(second) == read_bytes(tmp_path / "own")


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """The bytes of each of `RUNS`, made in a process of its own on all cores."""
    folder = tmp_path_factory.mktemp("fresh")
    for name, arguments in RUNS.items():
        command = [sys.executable, "-m", "launch.train", *arguments, f"--run_dir={folder / name}"]
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    return {name: read_bytes(folder / name) for name in RUNS}


@pytest.mark.slow
@pytest.mark.parametrize("names", [(*RUNS, "fedavg"), (*reversed(RUNS), "amfl_p")], ids=["forwards", "backwards"])
def test_every_algorithm_after_every_other_has_the_bytes_of_a_fresh_process(names, fresh, fork_runs):
    for name, run_dir in zip(names, fork_runs(*names), strict=True):
        assert read_bytes(run_dir) == fresh[name], name


@pytest.mark.slow
def test_the_imports_start_no_threads_that_a_run_would_miss():
    """On one core: the main thread, and the idle event loop of the context that TFF makes on import.

    Where scikit-learn finds pyarrow it imports it, whose jemalloc has a thread of its own, which a fork restarts.
    """
    code = """
import os
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
import launch.sweeps.imports
names = [open(f"/proc/self/task/{each}/comm").read().strip() for each in os.listdir("/proc/self/task")]
print(len([name for name in names if not name.startswith("jemalloc")]))
from tensorflow.python.eager import context
print(context.context()._initialized)
"""
    printed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert printed.split() == ["2", "False"]
