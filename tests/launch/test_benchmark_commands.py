"""Whole commands in turns: what they cost, what they leave behind (nothing), the results and the requests for them."""

import json
import os
import pathlib
import subprocess
import sys
import textwrap

import psutil
import pytest

from launch import benchmark
from launch.benchmarks import commands, timed_command
from launch.benchmarks.commands import FOLDER, SHARDS, CommandWorkload, Cost
from launch.benchmarks.peer_process import PeerError
from launch.settings.flags import parse_config
from launch.sweep import parse_tasks

COSTS = {"ours": [Cost(6.0, 4.0), Cost(8.0, 5.0), Cost(7.0, 9.0)], "against": [Cost(10.0, 20.0), Cost(14.0, 10.0)]}


def run(tmp_path, code):
    return commands.run_command("ours", tmp_path, ("-c", textwrap.dedent(code)), str(tmp_path))


def test_results_of_commands_are_medians_and_ratios():
    """Medians 7 and 12 seconds, 5 and 15 of the CPU: 12 / 7 and 15 / 5 = 3 times as long; 7 / 12 the other way."""
    results = commands.compute_command_results(COSTS)
    assert results == {
        "ours_s": 7.0,
        "against_s": 12.0,
        "ratio_to_against": pytest.approx(12 / 7),
        "share_of_against": pytest.approx(7 / 12),
        "ours_cpu_s": 5.0,
        "against_cpu_s": 15.0,
        "cpu_ratio_to_against": pytest.approx(3.0),
        "runs_s": {"ours": [6.0, 8.0, 7.0], "against": [10.0, 14.0]},
        "runs_cpu_s": {"ours": [4.0, 5.0, 9.0], "against": [20.0, 10.0]},
    }
    assert set(commands.compute_command_results({"ours": COSTS["ours"]})) == {
        "ours_s",
        "ours_cpu_s",
        "runs_s",
        "runs_cpu_s",
    }


def test_peaks_of_memory_are_medians():
    costs = {"ours": [Cost(1.0, 1.0, 3_000_000), Cost(1.0, 1.0, 1_000_000), Cost(1.0, 1.0, 2_000_000)]}
    assert commands.compute_command_results(costs)["ours_peak_bytes"] == 2_000_000
    table = commands.format_command_table(CommandWorkload("start_x", "x", ()), costs, {"ours": "here"})
    assert "peak of memory: ours 2 MB" in table.splitlines()


def test_table_of_commands_has_both_trees_and_the_ratio():
    table = commands.format_command_table(
        CommandWorkload("start_x", "python -m x", ()), COSTS, {"ours": "here", "against": "there"}
    )
    first, _, ours, against, *_ = table.splitlines()
    assert first == "start_x: python -m x"
    assert ours.split() == ["ours", "7.00", "s", "6.00", "s", "8.00", "s", "5.00", "s", "here"]
    assert against.split() == ["against", "12.00", "s", "10.00", "s", "14.00", "s", "15.00", "s", "1.71", "there"]


def test_a_command_runs_in_its_tree_with_a_fresh_folder_and_the_shards_of_the_tree(tmp_path):
    arguments = (
        "-c",
        "import os, sys; print(os.getcwd(), *sys.argv[1:]); os.mkdir(sys.argv[2])",
        SHARDS,
        f"{FOLDER}/run",
    )
    seen = []
    for name in ("ours", "ours", "against"):
        tree = tmp_path / name
        tree.mkdir(exist_ok=True)
        commands.run_command(name, tree, arguments, str(tmp_path))
        seen.append((tmp_path / f"{name}.log").read_text().split())
    assert [cwd for cwd, _, _ in seen] == [str(tmp_path / name) for name in ("ours", "ours", "against")]
    assert seen[0][1] == seen[1][1] != seen[2][1]
    assert len({folder for *_, folder in seen}) == 3
    assert not any(os.path.exists(os.path.dirname(folder)) for *_, folder in seen)


def test_variables_that_would_reach_one_tree_alone_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    run(tmp_path, "import os; print(*os.environ)")
    assert not set(commands.VARIABLES) & set((tmp_path / "ours.log").read_text().split())


def test_the_cpu_time_of_children_counts_also_of_those_that_outlive_the_command(tmp_path):
    """Each of the two burns 0.2 s: one is waited for, the other is left behind in a session of its own."""
    burn = "import time\nwhile time.process_time() < 0.2: pass"
    cost = run(
        tmp_path,
        f"""
        import subprocess, sys
        subprocess.run([sys.executable, "-c", {burn!r}])
        subprocess.Popen([sys.executable, "-c", {burn!r}], start_new_session=True)
        """,
    )
    assert cost.cpu_s >= 0.4
    assert cost.wall_s > 0


def test_what_a_command_leaves_running_is_killed(tmp_path):
    text = pathlib.Path(timed_command.__file__).read_text()
    limit = f"ORPHANS_LIMIT_S = {timed_command.ORPHANS_LIMIT_S}"
    assert limit in text
    script = tmp_path / "quick.py"
    script.write_text(text.replace(limit, "ORPHANS_LIMIT_S = 0.1"))
    code = "import subprocess; print(subprocess.Popen(['sleep', '1000'], start_new_session=True).pid, flush=True)"
    answers, answer_fd = os.pipe()
    ended = subprocess.run(
        [sys.executable, str(script), str(os.getpid()), str(answer_fd), sys.executable, "-c", code],
        pass_fds=[answer_fd],
        stdout=subprocess.PIPE,
        text=True,
    )
    os.close(answer_fd)
    with open(answers) as lines:
        assert json.loads(lines.readline())["exit_code"] == 0
    assert not psutil.pid_exists(int(ended.stdout))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (
            "import sys; print('bad luck'); sys.exit(3)",
            "ours: python -c .* ended with exit code 3; its log ends: bad luck",
        ),
        ("import os; os.kill(os.getpid(), 9)", "ended with exit code -9; its log is empty"),
        ("import os; os.kill(os.getppid(), 9)", "was killed; its log is empty"),
    ],
)
def test_a_command_that_fails_is_an_error_of_one_line(code, expected, tmp_path):
    with pytest.raises(PeerError, match=expected) as raised:
        run(tmp_path, code)
    assert "\n" not in str(raised.value)


def test_trees_take_turns_after_a_warm_up_of_their_own(tmp_path):
    workload = CommandWorkload("x", "x", ("-c", "timed"), ("-c", "warm"))
    calls = []

    def note(name, tree, arguments, folder):
        calls.append((name, tree, arguments[1]))
        return Cost(float(len(calls)), 0.0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commands, "run_command", note)
        trees = {"ours": tmp_path / "a", "against": tmp_path / "b"}
        costs = commands.time_commands(workload, trees, 2, lambda line: None)
    both = [("ours", tmp_path / "a"), ("against", tmp_path / "b")]
    assert calls == [(*each, kind) for kind in ("warm", "timed", "timed") for each in both]
    assert costs == {"ours": [Cost(3.0, 0.0), Cost(5.0, 0.0)], "against": [Cost(4.0, 0.0), Cost(6.0, 0.0)]}


def test_the_sweep_takes_every_algorithm_at_one_heterogeneity_before_the_next():
    flagfiles = commands.list_sweep_flagfiles()
    assert len(flagfiles) == 12
    assert [path.stem for path in flagfiles[:4]] == [
        f"{algo}_building_high" for algo in ("amfl_p", "fedavg", "fine_tuning", "local_only")
    ]
    assert {path.stem.split("_building_")[1] for path in flagfiles[4:8]} == {"low"}


def test_the_sweep_is_one_that_launch_sweep_makes():
    workload = benchmark.parse_options(
        ["--workloads=sweep", "--sweep_flagfiles=2", "--sweep_seeds=3", "--sweep_rounds=7"]
    ).workloads[0]
    assert workload.arguments[:2] == ("-m", "launch.sweep")
    tasks = parse_tasks(workload.arguments[2:])
    assert [task.config.seed for task in tasks] == [0, 0, 1, 1, 2, 2]
    assert {task.config.rounds for task in tasks} == {7} and {task.config.client_dir for task in tasks} == {SHARDS}
    assert [task.config.rounds for task in parse_tasks(workload.warm_up[2:])] == [1]
    assert "--rounds=7 of amfl_p_building_high, fedavg_building_high, 3 seeds" in workload.describe()


@pytest.mark.parametrize("workload", [*commands.STARTS.values(), *commands.LONGS.values()], ids=lambda each: each.name)
def test_start_workloads_are_runs_that_launch_train_makes(workload):
    assert workload.arguments[:2] == ("-m", "launch.train")
    config = parse_config(workload.arguments[2:])
    assert workload.name in (f"start_{config.algo}", f"long_{config.algo}") and config.client_dir == SHARDS


def test_start_names_all_of_them():
    assert benchmark.parse_options(["--workloads=start"]).workloads == tuple(commands.STARTS.values())
    assert benchmark.parse_options(["--workloads=long"]).workloads == tuple(commands.LONGS.values())
    both = benchmark.parse_options(["--workloads=start_amfl_p,start"]).workloads
    assert [each.name for each in both] == ["start_amfl_p", "start_fedavg", "start_fedsikd"]


@pytest.mark.slow
def test_a_small_run_is_timed_in_this_tree():
    workload = CommandWorkload(
        "start_small",
        "x",
        ("-m", "launch.train", "--algo=fedavg", "--smoke", f"--run_dir={FOLDER}/run", f"--client_dir={SHARDS}"),
    )
    costs = commands.time_commands(workload, {"ours": benchmark.PROJECT_FOLDER}, 1, print)
    assert costs["ours"][0].cpu_s > 1


@pytest.mark.slow
def test_a_small_sweep_is_timed_in_this_tree():
    workload = commands.build_sweep(num_flagfiles=1, num_seeds=1, rounds=1)
    costs = commands.time_commands(workload, {"ours": benchmark.PROJECT_FOLDER}, 1, print)
    assert costs["ours"][0].cpu_s > 1
