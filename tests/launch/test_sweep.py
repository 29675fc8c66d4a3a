"""The sweep on real processes that stand in for training, and its decisions on run folders with made-up numbers."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import psutil
import pytest

from launch import sweep
from launch.runs.errors import RunFolderError
from launch.runs.run_archive import archive_runs
from launch.runs.run_records import RunRecord
from launch.settings.flags import FlagError, parse_config
from launch.settings.renamed_flags import rename_stored_flags
from launch.settings.run_config import flag_values
from launch.sweeps.answers import describe_difference
from launch.sweeps.pool import run_tasks
from launch.sweeps.tasks import build_arguments, is_finished

ROOT = pathlib.Path(__file__).parents[2]
CELL = "fedsikd_mnist_alpha0.1"
RIVAL = "fedavg_mnist_alpha0.1"


def parse(tmp_path, *arguments):
    return sweep.parse_request([f"--runs_dir={tmp_path}", *arguments]).tasks


def test_every_experiment_with_every_seed(tmp_path):
    tasks = parse(tmp_path, f"--experiments={CELL},{RIVAL}", "--seeds=0,7", "--rounds=5", "--", "--data_dir=there")
    assert [task.name for task in tasks] == [
        f"{CELL}, seed 0",
        "fedavg_mnist_alpha0.1, seed 0",
        f"{CELL}, seed 7",
        "fedavg_mnist_alpha0.1, seed 7",
    ]
    assert tasks[2].run_dir == tmp_path / CELL / "seed_7"
    assert (tasks[2].config.rounds, tasks[2].config.seed, tasks[2].config.data_dir) == (5, 7, "there")
    arguments = build_arguments(tasks[2])
    assert arguments[0] == f"--experiment=fedsikd/{CELL}"
    assert {"--seed=7", f"--run_dir={tasks[2].run_dir}", "--rounds=5", "--data_dir=there"} <= set(arguments)
    assert "--resume" not in arguments


def test_patterns_are_expanded_and_overlaps_count_once(tmp_path):
    tasks = parse(tmp_path, f"--experiments=fedsikd/*_mnist_alpha0.1,{CELL}")
    assert [task.config.rounds for task in tasks] == [70] * 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--algos=fedavg,dito"], "--algo=dito: "),
        (["--algo=fedavg"], "--algo: did you mean --algos?"),
        (["--algos=fedavg,fed_async", "--", "--num_clusters=3"], "belongs to none of the algorithms fedavg, fed_async"),
        (
            ["--algos=fedavg", "--", "--algo=fedcd"],
            "fedavg: --algo=fedcd after it; name the algorithms in --algos alon",
        ),
        ([f"--experiments={CELL}", "--flagfiles={folder}/*.flags"], "would share a run folder"),
    ],
)
def test_what_cannot_be_shared_among_the_runs_is_refused(tmp_path, arguments, message):
    (tmp_path / f"{CELL}.flags").write_text("--algo=fedavg\n")
    with pytest.raises(FlagError, match=re.escape(message)):
        parse(tmp_path, *(each.format(folder=tmp_path) for each in arguments))


def test_algorithms_need_no_flagfile_and_get_their_own_flags(tmp_path):
    """Each run folder is named after its algorithm; a flag of one goes to its runs alone, and one of none is wrong."""
    shared = ("--", "--rounds=3", "--num_clients=4")
    tasks = parse(tmp_path, "--algos=fedavg,fedsikd", "--seeds=0-1", *shared, "--temperature=2")
    assert [str(task.run_dir.relative_to(tmp_path)) for task in tasks] == [
        *("fedavg/seed_0", "fedsikd/seed_0", "fedavg/seed_1", "fedsikd/seed_1"),
    ]
    assert {(task.config.num_clients, task.config.rounds) for task in tasks} == {(4, 3)}
    assert tasks[1].config.algorithm.temperature == 2
    assert build_arguments(tasks[0])[0] == "--algo=fedavg" and "--temperature=2" not in tasks[0].arguments
    assert sweep.suggest_report(tasks) == ""
    assert [task.run_dir.parent.name for task in parse(tmp_path, "--algos=fedavg", f"--experiments={CELL}")] == [
        *(CELL, "fedavg"),
    ]


def read_settings(tmp_path, *arguments):
    """{algorithm: its settings} of a sweep, and which lack what."""
    request = sweep.parse_request([f"--runs_dir={tmp_path}", *arguments])
    return {task.config.algo: flag_values(task.config) for task in request.tasks}, request.lacking


@pytest.mark.parametrize("given", [["--epochs=2", "--ditto_epochs=3"], ["--ditto_epochs", "3", "--epochs", "2"]])
def test_a_setting_goes_to_all_that_have_it_and_its_owners_name_wins(tmp_path, given):
    settings, lacking = read_settings(
        tmp_path, "--algos=fedavg,ditto,fedsikd", *given, "--num_clients=4", "--norun_page"
    )
    assert (settings["fedavg"]["epochs"], settings["ditto"]["epochs"]) == (2, 3)
    assert {flags["num_clients"] for flags in settings.values()} == {4}
    assert not any(flags["run_page"] for flags in settings.values())
    assert lacking == {"epochs": ["fedsikd"]}


def test_a_flagfile_that_names_an_experiment_gets_its_algorithms_settings(tmp_path):
    (tmp_path / "own.flags").write_text(f"--experiment=fedsikd/{CELL}\n")
    settings, lacking = read_settings(
        tmp_path, f"--flagfiles={tmp_path}/own.flags", "--algos=fedavg", "--temperature=2"
    )
    assert settings["fedsikd"]["temperature"] == 2 and lacking == {"temperature": ["fedavg"]}


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("fine_tuning_steps", ("7", "9")),
        ("fine_tuning_learning_rate", ("0.7", "0.9")),
        ("fine_tuning_rule", ("steps", "same")),
        ("fine_tuning_start", ("initial", "trained")),
        ("fine_tuning_curve", ("1,2", "3,4")),
    ],
)
def test_a_name_that_can_be_read_in_two_ways_is_that_of_the_algorithm_it_begins_with(tmp_path, name, values):
    short = name.removeprefix("fine_tuning_")
    given = [f"--{name}={values[0]}", f"--amfl_p_{name}={values[1]}"]
    settings, lacking = read_settings(tmp_path, "--algos=amfl_p,fine_tuning", *given)
    assert str(settings["fine_tuning"][short]) == values[0] and str(settings["amfl_p"][name]) == values[1]
    assert lacking == {}
    alone, _ = read_settings(tmp_path, "--algos=amfl_p", given[0])
    assert str(alone["amfl_p"][name]) == values[0]
    assert str(flag_values(parse_config(["--algo=amfl_p", given[0]]))[name]) == values[0]
    assert str(flag_values(parse_config(["--algo=fine_tuning", given[0]]))[short]) == values[0]
    stored = {"algo": "fine_tuning", name: values[0], f"fine_tuning_local_{short}": 1}
    assert rename_stored_flags(stored)[short] == values[0]
    assert rename_stored_flags({"algo": "amfl_p", f"amfl_p_{name}": values[1]}) == {"algo": "amfl_p", name: values[1]}


def test_a_recipe_can_be_sent_to_another_machine(tmp_path):
    (tmp_path / "own.flags").write_text("--algo=fedavg\n--rounds=3\n")
    tasks = parse(tmp_path, f"--experiments={CELL}", f"--flagfiles={tmp_path}/own.flags", "--algos=fl_hc")
    for task in tasks:
        (tmp_path / "sent.flags").write_text(task.recipe.read())
        assert parse_config([f"--flagfile={tmp_path}/sent.flags", *task.arguments]) == task.config


def task_of(tmp_path, rounds, *extra):
    [task] = parse(tmp_path, f"--experiments={CELL}", f"--rounds={rounds}", "--", *extra)
    return task


def test_a_broken_run_is_resumed_and_one_with_other_settings_is_not_touched(tmp_path, write_run):
    write_run(tmp_path, CELL, seed=0, rounds=2, is_finished=False)
    task = task_of(tmp_path, 5)
    assert not is_finished(task) and build_arguments(task)[-1] == "--resume"
    with pytest.raises(RunFolderError, match=r"--temperature=3.0, not 1.0"):
        is_finished(task_of(tmp_path, 5, "--temperature=1"))


def test_the_sweep_goes_on_after_a_failure_and_says_so(tmp_path, write_run, engine_of, capsys):
    write_run(tmp_path, CELL, seed=1, rounds=5)
    write_run(tmp_path, CELL, seed=3, rounds=5, arguments=["--temperature=1"])
    tasks = parse(tmp_path, f"--experiments={CELL}", "--seeds=0,1,2,3,4", "--rounds=5")
    trained = []

    def train(task):
        trained.append(task.config.seed)
        return 2 if task.config.seed == 0 else 0

    failures = run_tasks(tasks, engine_of(train))
    assert trained == [0, 2, 4]
    assert len(failures) == 2
    assert failures[0].startswith(f"{CELL}, seed 0: exit code 2")
    assert "other settings" in failures[1]
    shown = capsys.readouterr().out
    assert f"[2/5] {CELL}, seed 1: finished before" in shown
    assert "left" in shown


@pytest.mark.parametrize(
    ("experiments", "name"),
    [
        ("fl_hc_har_alpha0.5", "fedsikd"),
        ("local_training_building_low", "amfl_p"),
        ("async_periodic_mnist_iid_random_old", "async"),
        ("buffered_mnist_shards", "async"),
        ("fedavg_cifar10_hierarchical_cpu_300rounds", "fedcd"),
        ("fedsikd_mnist_alpha0.5_authors", "fedsikd"),
        ("fl_hc_har_windows_alpha0.5", "fedsikd"),
        ("fedsikd_har_quantization", "quantization"),
        ("fedsikd_har_quantization_qat", "quantization"),
        ("fedsikd_har_*", "fedsikd"),
    ],
)
def test_the_hint_names_the_report_that_counts_most_of_the_runs_and_their_folder(tmp_path, experiments, name):
    tasks = parse(tmp_path, f"--experiments={experiments}")
    assert sweep.suggest_report(tasks).endswith(f"--tables={name} --runs_dir={tmp_path}")
    # The report looks into `runs` by itself.
    in_runs = sweep.parse_request([f"--experiments={experiments}"]).tasks
    assert sweep.suggest_report(in_runs).endswith(f"--tables={name}")


@pytest.mark.parametrize("name", ["kept", "kept.zip"])
def test_runs_that_are_kept_elsewhere_are_not_made_again(tmp_path, write_run, engine_of, name):
    runs = []
    for seed, arguments in ((0, []), (1, ["--temperature=1"])):
        run_dir = write_run(tmp_path / "made", CELL, seed, rounds=5, arguments=arguments)
        runs.append(RunRecord(run_dir, {"seed": seed}, CELL, {}))
    archive_runs(runs, tmp_path / name)
    arguments = [f"--experiments={CELL}", "--seeds=0,1,2", "--rounds=5", f"--finished={tmp_path / name}"]
    tasks = parse(tmp_path / "runs", *arguments)
    trained = []
    assert run_tasks(tasks, engine_of(lambda task: trained.append(task.config.seed) or 0)) == []
    assert trained == [1, 2], "seed 1 was kept with other settings, so that it is another run"
    assert sweep.suggest_report(tasks).endswith(f"--runs_dir={tmp_path / 'runs'} --runs_dir={tmp_path / name}")


def test_the_end_has_means_by_what_was_trained_whether_they_differ_and_the_next_commands(tmp_path, write_run, capsys):
    """After round 2 a run has 0.02 more; of 0.1, 0.2 and 0.3 the deviation is 0.1, and t with 2 degrees is 4.3027."""
    for seed, (first, second) in enumerate(((0.1, 0.2), (0.2, 0.3), (0.3, 0.4))):
        write_run(tmp_path, RIVAL, seed, 2, accuracy=first)
        write_run(tmp_path, CELL, seed, 2, accuracy=second)
    arguments = [f"--experiments={RIVAL},{CELL}", "--rounds=2", f"--runs_dir={tmp_path}"]
    assert sweep.main([*arguments, "--seeds=0-2"]) == 0
    assert capsys.readouterr().out.splitlines()[-7:] == [
        f"all 6 runs are finished; next: python -m launch.report --tables=fedsikd --runs_dir={tmp_path}",
        "results  Test accuracy after the last round, mean and 95 % interval over the seeds",
        f"         {CELL}  0.3200 [0.0716, 0.5684]   3 seeds",
        f"         {RIVAL}   0.2200 [0.0000, 0.4684]   3 seeds",
        f"         {CELL} against {RIVAL}, by seed: +0.1000: better",
        f"next     python -m launch.compare --runs={tmp_path}",
        f"         python -m launch.export --run_dir={tmp_path}/{CELL}/seed_0",
    ]
    assert sweep.main([*arguments[1:], f"--experiments={RIVAL}"]) == 0
    printed = capsys.readouterr().out
    assert "the run is finished" in printed and "0.1200" in printed and "1 seed\n" in printed


def test_runs_of_several_tasks_have_results_of_their_own(tmp_path, write_run, capsys):
    """The run of a regression has an error where the other has an accuracy."""
    kept, made_other = write_run(tmp_path, CELL, 0, 2, accuracy=0.3), write_run(tmp_path, RIVAL, 0, 2, accuracy=0.1)
    for name, old, new in (
        ("config.json", '"data": {}', '"data": {"task": {"kind": "regression"}}'),
        ("metrics.csv", "accuracy", "rmse"),
        ("summary.json", "accuracy", "rmse"),
    ):
        text = (made_other / name).read_text()
        assert old in text
        (made_other / name).write_text(text.replace(old, new))
    assert sweep.main([f"--experiments={RIVAL},{CELL}", "--rounds=2", "--seeds=0", f"--runs_dir={tmp_path}"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[-7:] == [
        "results  Test RMSE after the last round, mean and 95 % interval over the seeds",
        f"         {RIVAL}  0.1200                    1 seed",
        "results  Test accuracy after the last round, mean and 95 % interval over the seeds",
        f"         {CELL}  0.3200                    1 seed",
        f"next     python -m launch.compare --runs={tmp_path}",
        f"         python -m launch.export --run_dir={made_other}",
        f"         python -m launch.export --run_dir={kept}",
    ]


@pytest.mark.parametrize(
    ("first", "second", "sign", "said"),
    [
        # Differences 1, 2 and 3: 2 +- 4.3027 / sqrt(3).
        ((2, 4, 6), (1, 2, 3), 1, "+2.0000 [-0.4841, +4.4841]: undecided"),
        ((12, 13, 14), (1, 1, 1), 1, "+12.00 [+9.5159, +14.48]: better"),
        ((12, 13, 14), (1, 1, 1), -1, "+12.00 [+9.5159, +14.48]: worse"),
        ((1, 1, 1), (2, 2, 2), -1, "-1.0000: better"),
        ((2, 4), (1, 1), 1, "undecided, 2 seeds cannot tell"),
        ((), (), 1, ""),
    ],
)
def test_a_difference_is_decided_by_its_interval_over_three_seeds_at_least(first, second, sign, said):
    found = describe_difference(dict(enumerate(first)), dict(enumerate(second)), sign)
    assert found.endswith(said) and bool(found) == bool(said)


SLEEPER = """
import os, pathlib, sys, time
[run_dir] = [pathlib.Path(each.partition("=")[2]) for each in sys.argv if each.startswith("--run_dir=")]
run_dir.mkdir(parents=True)
try:
    (run_dir / "pid").write_text(str(os.getpid()))
    time.sleep(60)
except KeyboardInterrupt:
    (run_dir / "checkpoint").write_text("kept")
    sys.exit(130)
"""
SWEEP = """
import sys
from launch import sweep
from launch.sweeps import jobs
jobs.TRAIN, jobs.IMPORTS = "sleeper", "json"
sys.exit(sweep.main(sys.argv[1:]))
"""


@pytest.fixture
def sleeping_sweep(tmp_path, request, without_linux):
    """A sweep of three sleeping runs; yields (process, folders of those that sleep already).

    The parameter is how many runs at a time, and whether this is Linux.
    """
    jobs, is_linux = request.param
    (tmp_path / "sleeper.py").write_text(SLEEPER)
    arguments = [f"--experiments={CELL}", "--seeds=0,1,2", f"--jobs={jobs}", f"--runs_dir={tmp_path}"]
    process = subprocess.Popen(
        [sys.executable, "-c", SWEEP, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path) if is_linux else f"{without_linux}{os.pathsep}{tmp_path}"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # Tests that run in the background have Ctrl-C ignored, and a child inherits that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    run_dirs = [tmp_path / CELL / f"seed_{seed}" for seed in range(jobs)]
    wait_until(lambda: all((run_dir / "pid").exists() and (run_dir / "pid").read_text() for run_dir in run_dirs))
    yield process, run_dirs
    process.kill()
    process.communicate()


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def is_alive(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.parametrize(
    ("sleeping_sweep", "number", "exit_code"),
    [
        ((1, True), signal.SIGINT, 130),
        ((2, True), signal.SIGINT, 130),
        ((2, True), signal.SIGTERM, 143),
        ((1, True), signal.SIGHUP, 129),
        ((2, False), signal.SIGINT, 130),
    ],
    indirect=["sleeping_sweep"],
)
def test_stopping_lets_the_runs_keep_their_checkpoints_and_says_how_to_go_on(sleeping_sweep, number, exit_code):
    process, run_dirs = sleeping_sweep
    os.kill(process.pid, number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == exit_code
    assert [(run_dir / "checkpoint").read_text() for run_dir in run_dirs] == ["kept"] * len(run_dirs)
    assert errors.startswith("stopped; go on with: python -m launch.sweep --experiments=")
    assert errors.count("\n") == 1
    assert len(list(run_dirs[0].parent.glob("seed_*/pid"))) == len(run_dirs), "no further run was started"


@pytest.mark.parametrize("sleeping_sweep", [(2, True), (2, False)], indirect=True)
def test_no_run_outlives_a_killed_sweep(sleeping_sweep):
    process, run_dirs = sleeping_sweep
    pids = [int((run_dir / "pid").read_text()) for run_dir in run_dirs]
    # What they were forked from, or the sweep.
    pids += [psutil.Process(pid).ppid() for pid in pids]
    assert all(map(is_alive, pids))
    process.kill()
    wait_until(lambda: not any(map(is_alive, pids)))
