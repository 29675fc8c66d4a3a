"""Runs forked from a warm process: real processes, which here stand in for training and import no TensorFlow."""

import json
import os
import signal
import time
from types import SimpleNamespace

import psutil
import pytest

from launch.runs.run_records import resolve_experiment
from launch.settings.experiments import get_experiment
from launch.settings.run_config import build_run_config
from launch.sweeps import jobs
from launch.sweeps.pool import run_tasks
from launch.sweeps.recipes import Recipe
from launch.sweeps.tasks import Task

STAND_IN = """
import json, os, pathlib, signal, sys, time, warmed_up
from launch.runtimes.processor import list_cores
arguments = dict(each.lstrip("-").split("=", 1) for each in sys.argv[1:] if "=" in each)
run_dir = pathlib.Path(arguments["run_dir"])
tries = len(list(run_dir.parent.glob(run_dir.name + ".try*")))
run_dir.with_name(f"{run_dir.name}.try{tries}").touch()
warmed_up.COUNT += 1
seen = {
    "name": __name__, "argv": sys.argv[1:], "program": sys.argv[0], "pid": os.getpid(), "parent": os.getppid(),
    "count": warmed_up.COUNT, "imported_by": warmed_up.PID, "cores": list_cores(),
    "session": os.getsid(0), "stdin": os.readlink("/proc/self/fd/0"), "files": len(os.listdir("/proc/self/fd")),
}
print("round 1/1: it ran")
print("and complained", file=sys.stderr, flush=True)
if arguments["what"] == "kill_parent" and not tries:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)
if arguments["what"] == "crash":
    os.kill(os.getpid(), signal.SIGSEGV)
run_dir.mkdir()
(run_dir / "seen.json").write_text(json.dumps(seen))
sys.exit(3 if arguments["what"] == "fail" else 0)
"""
WARMED_UP = "import os\nCOUNT, PID = 0, os.getpid()\n"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """(*what each run does, shares=..., keeps_logs=...) -> (failures, what each run has seen, None if it failed)."""
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    (tmp_path / "warmed_up.py").write_text(WARMED_UP)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(jobs, "TRAIN", "stand_in")
    monkeypatch.setattr(jobs, "IMPORTS", "warmed_up")

    def make(*whats, cores=1, keeps_logs=True):
        tasks = []
        for seed, what in enumerate(whats):
            run_dir = tmp_path / "runs" / "a" / f"seed_{seed}"
            arguments = (f"--run_dir={run_dir}", f"--what={what}")
            tasks.append(
                Task(
                    Recipe("a", "--flagfile=a.flags"),
                    arguments,
                    run_dir,
                    SimpleNamespace(seed=seed, rounds=1, replay=""),
                )
            )
        tasks[0].run_dir.parent.mkdir(parents=True)
        shares = [[core] for core in sorted(os.sched_getaffinity(0))[:cores]]
        failures = run_tasks(tasks, jobs.LocalEngine(shares, keeps_logs))
        files = [task.run_dir / "seen.json" for task in tasks]
        return failures, [json.loads(file.read_text()) if file.exists() else None for file in files]

    return make


def test_each_run_starts_with_what_the_imports_left_in_a_process_of_its_own(run, tmp_path, capfd):
    failures, (first, crashed, second) = run("", "crash", "")
    log = tmp_path / "runs/a/seed_1.log"
    assert failures == [f"a, seed 1: ended by SIGSEGV; and complained; its output: {log}"] and crashed is None
    assert log.read_text() == "round 1/1: it ran\nand complained\n", "and not to our own output"
    assert "it ran" not in "".join(line for line in capfd.readouterr().out.splitlines() if "done in" not in line)
    assert first["imported_by"] == second["imported_by"] == first["parent"] == second["parent"]
    assert first["count"] == second["count"] == 1, "what the first changed is gone"
    assert first["pid"] != second["pid"] and first["session"] == first["pid"]
    assert second["argv"] == ["--flagfile=a.flags", f"--run_dir={tmp_path}/runs/a/seed_2", "--what="]
    assert (first["name"], first["program"], first["stdin"]) == ("__main__", str(tmp_path / "stand_in.py"), os.devnull)
    assert first["files"] == second["files"]
    assert not psutil.pid_exists(first["parent"]), "nothing is left when all runs have ended"


def test_where_no_process_can_be_forked_each_run_has_one_of_its_own(run, monkeypatch, tmp_path, without_linux):
    monkeypatch.setenv("PYTHONPATH", without_linux, prepend=os.pathsep)
    failures, seen = run("", "crash", "fail", "")
    assert failures == [
        f"a, seed 1: ended by SIGSEGV; and complained; its output: {tmp_path}/runs/a/seed_1.log",
        f"a, seed 2: exit code 3; and complained; its output: {tmp_path}/runs/a/seed_2.log",
    ]
    ran = [each for each in seen if each]
    assert len({each["pid"] for each in ran}) == len(ran) == 3
    for each in ran:
        assert each["pid"] == each["imported_by"] == each["session"] and each["parent"] == os.getpid()
        assert (each["count"], each["cores"], each["stdin"]) == (1, [min(os.sched_getaffinity(0))], os.devnull)
    assert (tmp_path / "runs/a/seed_3.log").read_text() == "round 1/1: it ran\nand complained\n"


def test_the_output_of_one_at_a_time_is_ours(run, tmp_path, capfd):
    failures, _ = run("", "fail", keeps_logs=False)
    assert not list(tmp_path.glob("runs/a/*.log"))
    printed = capfd.readouterr()
    assert printed.out.splitlines() == [
        "[1/2] a, seed 0: 2 runs to look at",
        "round 1/1: it ran",
        *[line for line in printed.out.splitlines() if line.startswith("[2/2] a, seed 1: ") and "gone" in line],
        "round 1/1: it ran",
        f"[2/2] a, seed 1: failed (exit code 3, see above and {tmp_path}/runs/a/seed_1)",
    ]
    assert printed.err == "and complained\n" * 2
    assert len(failures) == 1


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_each_slot_has_cores_of_its_own(run):
    _, seen = run("", "", "", "", cores=2)
    cores = sorted(os.sched_getaffinity(0))[:2]
    assert all(len(each["cores"]) == 1 and each["cores"][0] in cores for each in seen)
    assert {(each["parent"], each["cores"][0]) for each in seen[:2]} == set(
        zip([each["parent"] for each in seen[:2]], cores, strict=True)
    )


def test_a_run_whose_warm_process_is_killed_is_made_again_by_another(run, tmp_path):
    failures, (first, second) = run("kill_parent", "")
    assert failures == []
    assert len(list(tmp_path.glob("runs/a/seed_0.try*"))) == 2
    assert first["parent"] == second["parent"], "the new one serves the rest"


def test_a_process_that_cannot_import_what_it_needs_fails_the_run_after_a_second_try(run, monkeypatch, capfd):
    monkeypatch.setattr(jobs, "IMPORTS", "no_such_module")
    failures, seen = run("")
    assert seen == [None] and failures[0].startswith("a, seed 0: exit code 1; ")
    assert capfd.readouterr().err.count("No module named 'no_such_module'") == 2


def test_an_interrupt_while_the_process_still_imports_ends_it_at_once(run, tmp_path, monkeypatch):
    (tmp_path / "slow_import.py").write_text("import time; time.sleep(60)")
    monkeypatch.setattr(jobs, "IMPORTS", "slow_import")
    # An alarm stands for Ctrl-C, which would go to the whole process group of the tests.
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    start_s = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            run("")
    finally:
        signal.signal(signal.SIGALRM, handler)
    assert time.monotonic() - start_s < 20
    assert not [child for child in psutil.Process().children() if "warm_process" in " ".join(child.cmdline())]


GIGABYTE = 2**30
SMALL = build_run_config({"algo": "fedavg"})


def resolve(name, *arguments):
    return resolve_experiment(get_experiment(name), arguments)


@pytest.mark.parametrize(
    ("count", "number", "shares"),
    [
        (2, 1, [[0, 1]]),
        (2, 2, [[0], [1]]),
        (8, 3, [[0, 1], [2, 3, 4], [5, 6, 7]]),
        (2, 5, [[0], [1], [0], [1], [0]]),
    ],
)
def test_cores_are_shared_evenly(count, number, shares):
    assert jobs.share_cores(range(count), number) == shares


def test_as_many_jobs_as_cores_and_runs_if_memory_allows():
    assert jobs.choose_jobs([SMALL] * 10, 4, 100 * GIGABYTE) == 4
    assert jobs.choose_jobs([SMALL] * 3, 4, 100 * GIGABYTE) == 3
    needed = jobs.estimate_memory_bytes(SMALL, 2)
    assert jobs.choose_jobs([SMALL] * 10, 4, int(2.5 * needed)) == 2
    assert jobs.choose_jobs([SMALL] * 10, 4, 1) == 1
    assert jobs.choose_jobs([], 4, 100 * GIGABYTE) == 1
    # The largest runs decide.
    large = resolve("fedcd_cifar10_hierarchical_paper")
    needed = jobs.estimate_memory_bytes(large, 1)
    assert jobs.choose_jobs([SMALL, SMALL, large, large], 2, int(1.9 * needed)) == 1
    assert jobs.choose_jobs([SMALL, SMALL, large], 2, int(1.9 * needed)) == 2
    # A GPU is not shared unasked.
    on_gpu = SimpleNamespace(**{**vars(SMALL), "device": "gpu"})
    assert jobs.choose_jobs([SMALL, on_gpu], 4, 100 * GIGABYTE) == 1


def test_the_largest_of_the_clients_models_decides():
    sizes = [
        jobs.estimate_memory_bytes(build_run_config({"algo": "fedproto", "models": models}), 2)
        for models in ("perceptron", "perceptron,emnist_cnn", "emnist_cnn", "auto")
    ]
    assert sizes[0] < sizes[1] == sizes[2] and sizes[3] == jobs.estimate_memory_bytes(
        build_run_config({"algo": "fedproto"}), 2
    )


@pytest.mark.parametrize(
    ("name", "measured_gb"),
    [
        # The peaks of host and worker together in kept runs, in the head of a flagfile, or in a round on two cores.
        ("amfl_p_building_low", 0.78),
        ("fed_async_mnist_iid", 1.45),
        ("async_periodic_mnist_iid_significance_synchronous", 1.61),
        ("fedcd_cifar10_hierarchical_cpu", 1.48),
        ("fedcd_cifar10_hierarchical_paper", 2.3),
        ("fl_hc_mnist_alpha0.1", 0.94),
        ("fedsikd_har_alpha0.1", 4.83),
    ],
)
def test_the_estimate_is_no_less_than_what_was_measured_and_no_extravagance(name, measured_gb):
    estimate = jobs.estimate_memory_bytes(resolve(name), 2) / 1e9
    assert measured_gb <= estimate <= 2.5 * measured_gb


def test_a_model_that_is_not_known_counts_as_a_large_one():
    own = build_run_config({"algo": "fedavg", "model": "mine:build"})
    assert jobs.estimate_memory_bytes(own, 2) > jobs.estimate_memory_bytes(SMALL, 2) + GIGABYTE


def test_finished_runs_need_no_share(tmp_path, write_run, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {2, 3, 5})
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"available": 64 * GIGABYTE}))
    name = "fedsikd_mnist_alpha0.1"
    tasks = [
        Task(
            Recipe(name, f"--experiment={name}"), (), tmp_path / name / f"seed_{seed}", resolve(name, f"--seed={seed}")
        )
        for seed in range(3)
    ]
    assert [jobs.open_engine(tasks, number).slots for number in (None, 1, 2, 7)] == [3, 1, 2, 3]
    write_run(tmp_path, name, seed=0, rounds=70)
    write_run(tmp_path, name, seed=1, rounds=70)
    one = jobs.open_engine(tasks, None)
    assert (one.slots, one.keeps_logs) == (1, False), "a run alone has all cores, and prints to our output"
    assert one.shares == [[2, 3, 5]]
