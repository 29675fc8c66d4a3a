"""Every method of the league is chosen by as many trials, on a seed that is not reported, and has what they chose."""

import pytest

from launch.runs.run_records import read_rows
from launch.settings.experiments import list_experiments
from launch.sweeps.tuning.scored_runs import compute_grid_size, draw_trials
from launch.sweeps.tuning.search_space import format_settings
from reproductions.league.choose import TABLE, find_requests
from reproductions.league.experiments import PROBLEMS, name_tuned, split_name
from reproductions.league.tables import COMMON, PAPER

NUM_TRIALS = 6
REPORTED = {"0", "1", "2", "3", "4"}


@pytest.fixture(scope="module")
def requests():
    return {name: each for of_problem in find_requests("*", "runs").values() for name, each in of_problem.items()}


@pytest.fixture(scope="module")
def rows():
    return read_rows(TABLE)


def test_every_search_has_a_grid_of_equal_size_and_seeds_that_are_not_reported(requests):
    assert {compute_grid_size(each.space) for each in requests.values()} == {NUM_TRIALS}
    assert {each.num_trials for each in requests.values()} == {NUM_TRIALS}
    for name, each in requests.items():
        (flag, rates), _ = sorted(each.space.items(), key=lambda searched: -len(searched[1]))
        assert flag.endswith("learning_rate") and len(rates) == 3 and sorted(rates, key=float) == list(rates), name
        problem = split_name(name)[1]
        accuracy = "token_accuracy" if problem == "shakespeare" else "accuracy"
        clients = "" if PROBLEMS[problem].get("judged_by") == COMMON else "client_"
        assert each.objective == f"{clients}validation_{accuracy}", name
    assert {each.seeds for each in requests.values()} == {("100",)}
    assert not REPORTED & {seed for each in requests.values() for seed in each.seeds}


def test_every_experiment_is_searched_under_the_problem_that_it_is_tuned_as(requests):
    for name in PAPER.experiments:
        assert name_tuned(*split_name(name)) in requests, name


def test_what_was_run_has_the_settings_of_its_best_trial(rows):
    experiments = list_experiments()
    best = {row["experiment"]: row for row in rows if row["chosen"]}
    assert best
    for name, row in best.items():
        mine = [each for each in rows if each["experiment"] == name]
        assert len(mine) == NUM_TRIALS and float(row["mean"]) == max(
            float(each["mean"]) for each in mine if each["mean"]
        )
        assert row["settings"].split() == format_settings(
            {
                flag: experiments[name].flags[flag]
                for flag in (each[2:].split("=")[0] for each in row["settings"].split())
            }
        )


def test_the_kept_trials_are_all_points_of_the_grids(requests, rows):
    for name in {row["experiment"] for row in rows}:
        drawn = [" ".join(format_settings(each)) for each in draw_trials(requests[name].space, NUM_TRIALS)]
        assert [row["settings"] for row in rows if row["experiment"] == name] == drawn
