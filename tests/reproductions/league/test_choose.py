"""Which searches are made, where their trials go, and that experiments then have what these chose.

Every method of the league is chosen by as many trials, on a seed that is not reported, and has what they chose.
"""

import pytest

from launch.runs.run_records import read_rows
from launch.settings.experiments import list_experiments, ours
from launch.settings.flags import FlagError
from launch.sweeps.tuning.request import parse_request
from launch.sweeps.tuning.scored_runs import compute_grid_size, draw_trials
from launch.sweeps.tuning.search_space import format_settings
from reproductions.league import choose
from reproductions.league.choose import find_requests, keep_trials, make_trials, rank_trials
from reproductions.league.experiments import PROBLEMS, TABLE, TRIALS, list_rows, name_tuned, read_choices, split_name
from reproductions.league.tables import COMMON, PAPER

NAME = "ditto_league_archetypes35"


def build_trial(number, rate, mean, chosen=""):
    settings = f"--learning_rate={rate} --pull=1"
    return {"experiment": NAME, "trial": number, "settings": settings, "scores": mean, "mean": mean, "chosen": chosen}


def find_users(choices, value):
    """The experiments with that learning rate."""
    return [each.name for each in list_rows(choices) if each.flags.get("learning_rate") == value]


def test_experiments_have_what_was_chosen(tmp_path):
    path = tmp_path / "league.csv"
    trials = [build_trial("1", "0.5", "0.6"), build_trial("2", "0.7", "0.8", "yes"), build_trial("3", "1", "")]
    keep_trials(path, trials)
    ditto = next(each for each in list_rows(read_choices(path)) if each.name == NAME)
    assert (ditto.flags["learning_rate"], ditto.flags["pull"], ditto.flags["epochs"]) == ("0.7", "1", "2")
    sources = {each.flag: each.source for each in ditto.settings}
    assert sources["pull"] == f"the best of 2 trials on validation examples ({TRIALS})"
    assert sources["epochs"].startswith("plain SGD")


def test_without_trials_an_experiment_has_its_first_rates(tmp_path):
    assert read_choices(tmp_path / "league.csv") == {}
    flags = {each.name: each.flags for each in list_rows({})}
    assert flags["fine_tuning_league_har"]["local_learning_rate"] == "0.1"
    assert "learning_rate" not in flags[NAME] and flags[NAME]["epochs"] == "2"


def test_problems_that_are_tuned_alike_share_what_was_chosen():
    chosen = ours("chosen", learning_rate=7)
    assert find_users({NAME: chosen}, "7") == [f"ditto_league_archetypes{bias}" for bias in (20, 35, 65)]
    # New people have trials of their own.
    assert find_users({"fedavg_league_har": chosen}, "7") == ["fedavg_league_har"]


def test_the_command_keeps_its_trials_where_experiments_read_them(tmp_path, monkeypatch):
    assert choose.TABLE == TABLE and TABLE.is_file()
    monkeypatch.setattr(choose, "TABLE", tmp_path / "league.csv")
    asked = []

    def make_trials(requests, jobs):
        asked.append((list(requests), jobs))
        return [build_trial("1", "0.5", "0.6", "yes")], []

    monkeypatch.setattr(choose, "make_trials", make_trials)
    assert choose.main(["--searches=ditto_league_*35", "--jobs=2"]) == 0
    assert asked == [([NAME], 2)]
    assert find_users(read_choices(tmp_path / "league.csv"), "0.5")[1] == NAME


def test_a_pattern_like_no_search_is_refused():
    with pytest.raises(FlagError, match="--searches=nothing: like no search of the league"):
        choose.find_requests("nothing", "runs")


SEARCH = "learning_rate=0.02|0.2;epochs=1|2"


@pytest.fixture
def request_of_four(tmp_path):
    flagfile = tmp_path / "a.flags"
    flagfile.write_text("--algo=fedavg\n")
    arguments = [f"--experiment={flagfile}", f"--search={SEARCH}", "--trials=4", "--seeds=100,101"]
    return parse_request([*arguments, "--objective=client_validation_accuracy", f"--runs_dir={tmp_path}"])


def score(*means):
    """Two seeds a trial, a tenth of a point either side of its mean."""
    return {
        (number, seed): None if mean is None else mean + sign * 0.001
        for number, mean in enumerate(means, 1)
        for seed, sign in (("100", -1), ("101", 1))
    }


@pytest.mark.parametrize(
    ("objective", "means", "chosen"),
    [
        ("client_validation_accuracy", (0.5, 0.7, 0.7, 0.6), 2),  # the first of equals
        ("validation_rmse", (0.5, 0.7, 0.4, 0.4), 3),  # of an error the lowest
        ("client_validation_accuracy", (0.5, None, 0.4, None), 1),  # not one whose run failed
        ("client_validation_accuracy", (None,) * 4, None),
    ],
)
def test_the_best_mean_is_chosen(objective, means, chosen, request_of_four):
    rows = rank_trials("a", request_of_four._replace(objective=objective), score(*means))
    assert [number for number, row in enumerate(rows, 1) if row["chosen"]] == ([chosen] if chosen else [])
    assert [row["mean"] for row in rows] == ["" if mean is None else f"{mean:g}" for mean in means]


def test_scores_of_all_seeds_stand_side_by_side(request_of_four):
    assert rank_trials("a", request_of_four, score(*[0.5] * 4))[0]["scores"] == "0.499 0.501"


def test_what_was_chosen_of_others_stays(request_of_four, tmp_path):
    path = tmp_path / "trials.csv"
    keep_trials(path, rank_trials("a", request_of_four, score(0.5, 0.7, 0.6, 0.6)))
    keep_trials(path, rank_trials("b", request_of_four, score(0.8, 0.7, 0.6, 0.6)))
    keep_trials(path, rank_trials("a", request_of_four, score(0.5, 0.5, 0.6, 0.5)))
    rows = read_rows(path)
    assert [(row["experiment"], row["trial"]) for row in rows if row["chosen"]] == [("a", "3"), ("b", "1")]
    assert len(rows) == 8
    keep_trials(path, rank_trials("b", request_of_four, score(*[None] * 4)))
    assert read_rows(path) == rows


def test_the_runs_of_all_methods_are_made_together_and_each_has_its_best(request_of_four, monkeypatch):
    asked = []
    monkeypatch.setattr(choose, "open_engine", lambda tasks, jobs: (len(tasks), jobs))
    monkeypatch.setattr(choose, "run_tasks", lambda tasks, engine: asked.append((len(tasks), engine)) or ["one failed"])
    monkeypatch.setattr(choose, "read_score", lambda task, objective: task.config.algorithm.training.epochs / 10)
    requests = {"a": request_of_four, "b": request_of_four._replace(seeds=("100",))}
    rows, failures = make_trials(requests, 3)
    assert asked == [(12, (12, 3))] and failures == ["one failed"]
    assert [row["experiment"] for row in rows] == ["a"] * 4 + ["b"] * 4
    chosen = [row for row in rows if row["chosen"]]
    assert [(row["experiment"], row["mean"]) for row in chosen] == [("a", "0.2"), ("b", "0.2")]
    assert all("--epochs=2" in row["settings"] for row in chosen)


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
    experiments, best = list_experiments(), {row["experiment"]: row for row in rows if row["chosen"]}
    assert best
    for name, row in best.items():
        means = [each["mean"] for each in rows if each["experiment"] == name]
        assert len(means) == NUM_TRIALS and float(row["mean"]) == max(float(mean) for mean in means if mean)
        flags = [each[2:].split("=")[0] for each in row["settings"].split()]
        own = format_settings({flag: experiments[name].flags[flag] for flag in flags})
        assert row["settings"].split() == own


def test_the_kept_trials_are_all_points_of_the_grids(requests, rows):
    for name in {row["experiment"] for row in rows}:
        drawn = [set(format_settings(each)) for each in draw_trials(requests[name].space, NUM_TRIALS)]
        kept = [set(row["settings"].split()) for row in rows if row["experiment"] == name]
        assert sorted(kept, key=sorted) == sorted(drawn, key=sorted)
