"""What a contest gave is kept as experiments with their runs, and kept again it takes its own place."""

import json

import pytest
from made_contests import METHODS, make_outcome

from launch.contests.problem import Limits, Problem
from launch.runs.run_archive import open_runs
from launch.runs.run_records import find_run_dirs
from launch.runs.task_columns import find_task_columns
from launch.settings.flags import parse_config
from launch.settings.run_config import flag_values
from reproductions.contests.experiments import (
    COLUMNS,
    list_rows,
    name_experiment,
    read_trials,
    split_argument,
    split_name,
)
from reproductions.contests.keeping import keep_runs, keep_trials
from reproductions.engine.counted_runs import read_run

PROBLEM = Problem("digits", ("--dataset=digits", "--num_clients=4"), find_task_columns("classification"))
WORK = ("--epochs=2", "--optimizer=sgd")


@pytest.fixture
def outcome(tmp_path, write_seed):
    """IFCA and FedAvg on two seeds, each with two trials."""
    made = make_outcome(["fedavg", "ifca"])
    entered = []
    for each in made.entered[:2]:
        method = METHODS[each.method.name]._replace(fixed=WORK)
        other = each.trials[0]._replace(number=1, settings={"learning_rate": "0.5"}, scores=({100: 0.4}, {}))
        runs = {seed: write_seed(method, each.chosen, seed) for seed in (0, 1)}
        entered.append(each._replace(method=method, trials=(*each.trials, other), runs=runs))
    limits = {"fedavg": Limits(30), "ifca": Limits(300, 0.0, 12.5)}
    return made._replace(problem=PROBLEM, entered=tuple(entered), limits=limits)


@pytest.fixture
def write_seed(tmp_path):
    """(method, its chosen settings, seed) -> the folder of a finished run, as a contest makes it."""

    def write(method, chosen, seed):
        folder = tmp_path / "seeds" / method.name / f"seed_{seed}"
        folder.mkdir(parents=True)
        (row,) = [f"--{name}={value}" for name, value in chosen.items()]
        arguments = [*PROBLEM.arguments, *WORK, row, "--fairness", "--rounds=7", f"--seed={seed}"]
        flags = flag_values(parse_config([f"--algo={method.algo}", *arguments, *END]))
        (folder / "config.json").write_text(json.dumps({"flags": flags, "data": {"dataset": "digits"}}))
        (folder / "metrics.csv").write_text("round,test_accuracy,client_test_accuracy,train_loss\n7,0.8,0.9,1.5\n")
        (folder / "summary.json").write_text(json.dumps({"rounds": 7, "clients": {"accuracy_mean": 0.9}}))
        return folder

    return write


END = ("--rounds_per_evaluation=1000000", "--rounds_per_shared_evaluation=1000000", "--rounds_per_checkpoint=1000000")


def test_names_are_put_together_and_taken_apart():
    assert split_name(name_experiment("fedavg_fine_tuned", "bytes", "har_new")) == (
        "fedavg_fine_tuned",
        "bytes",
        "har_new",
    )
    with pytest.raises(ValueError, match="expected <method>_"):
        split_name("ditto_league_har")
    assert split_argument("--fairness") == ("fairness", "True") and split_argument("--a=b=c") == ("a", "b=c")


def test_what_trials_have_chosen_becomes_an_experiment_whose_runs_count(outcome, tmp_path):
    table, archive = tmp_path / "trials.csv", tmp_path / "contests.zip"
    assert list_rows(read_trials(table)) == []
    keep_trials(outcome, "seconds", table)
    keep_runs(outcome, "seconds", archive)
    rows = read_trials(table)
    assert list(rows[0]) == list(COLUMNS) and [row["chosen"] for row in rows] == ["yes", "", "yes", ""]
    assert rows[0]["short runs"] == "100:0.6" and rows[0]["whole runs"] == "100:0.605 101:0.62"
    fedavg, ifca = list_rows(rows)
    assert (ifca.name, ifca.flags["algo"], ifca.flags["learning_rate"]) == ("ifca_seconds_digits", "ifca", "0.05")
    assert (ifca.flags["rounds"], ifca.flags["most_virtual_s"], fedavg.flags["rounds"]) == ("300", "12.5", "30")
    assert "best of 2 trials" in next(each.source for each in ifca.settings if each.flag == "learning_rate")
    runs = find_run_dirs(open_runs(archive))
    assert [f"{run.parent.name}/{run.name}" for run in runs] == [
        f"{name}_seconds_digits/seed_{seed}" for name in ("fedavg", "ifca") for seed in (0, 1)
    ]
    counted = [read_run(run, each) for run, each in zip(runs, (fedavg, fedavg, ifca, ifca), strict=True)]
    assert [run.rounds for run in counted] == 4 * [{7: {"round": 7, "test_accuracy": 0.8, "client_test_accuracy": 0.9}}]


def test_a_method_without_a_finished_run_is_no_experiment_and_the_table_says_why(outcome, tmp_path):
    fedavg, ifca = outcome.entered
    trials = tuple(trial._replace(why_out="too dear") for trial in ifca.trials)
    outcome = outcome._replace(entered=(fedavg, ifca._replace(trials=trials, runs={})))
    keep_trials(outcome, "bytes", tmp_path / "trials.csv")
    rows = read_trials(tmp_path / "trials.csv")
    assert [(row["chosen"], row["why out"]) for row in rows] == [
        ("yes", ""),
        ("", ""),
        ("", "too dear"),
        ("", "too dear"),
    ]
    assert [each.name for each in list_rows(rows)] == ["fedavg_bytes_digits"]


def test_a_contest_that_is_kept_again_takes_its_own_place(outcome, tmp_path):
    table, archive = tmp_path / "trials.csv", tmp_path / "contests.zip"
    for equal in ("seconds", "bytes", "seconds"):
        keep_trials(outcome, equal, table)
        keep_runs(outcome, equal, archive)
        outcome = outcome._replace(entered=outcome.entered[:2])
    assert len(read_trials(table)) == 8 and len(find_run_dirs(open_runs(archive))) == 8
    one = outcome.entered[0]
    fewer = outcome._replace(entered=(one._replace(runs={0: one.runs[0]}), *outcome.entered[1:]))
    keep_runs(fewer, "bytes", archive)
    assert len(find_run_dirs(open_runs(archive))) == 7


def test_a_method_that_left_the_contest_leaves_what_is_kept(outcome, tmp_path):
    table, archive = tmp_path / "trials.csv", tmp_path / "contests.zip"
    for made in (outcome, outcome._replace(entered=outcome.entered[:1])):
        keep_trials(made, "seconds", table)
        keep_runs(made, "seconds", archive)
    [name] = {row["experiment"] for row in read_trials(table)}
    assert name == name_experiment(outcome.entered[0].method.name, "seconds", outcome.problem.name)
    assert {run_dir.parent.name for run_dir in find_run_dirs(open_runs(archive))} == {name}
