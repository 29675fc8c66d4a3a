"""What becomes of trials: who is chosen, what is written, and that experiments then have it."""

import pathlib

import pytest

from launch.runs.run_records import read_rows
from launch.settings import experiments
from launch.settings.flags import FlagError
from launch.tuning.request import parse_request
from reproductions.league import choose

SEARCH = "learning_rate=0.02|0.2;epochs=1|2"


@pytest.fixture
def request_of_four(tmp_path):
    flagfile = tmp_path / "a.flags"
    flagfile.write_text("--algo=fedavg\n")
    arguments = [f"--experiment={flagfile}", f"--search={SEARCH}", "--trials=4", "--seeds=100,101"]
    return parse_request([*arguments, "--objective=client_validation_accuracy"])


@pytest.fixture
def places(tmp_path, monkeypatch):
    monkeypatch.setattr(choose, "TRIALS", tmp_path / "league.csv")
    monkeypatch.setattr(choose, "CHOSEN", tmp_path / "chosen.toml")
    return tmp_path


def score(*means):
    """Two seeds a trial, a tenth of a point either side of its mean."""
    return {
        (number, seed): None if mean is None else mean + sign * 0.001
        for number, mean in enumerate(means, 1)
        for seed, sign in (("100", -1), ("101", 1))
    }


def test_the_best_mean_is_chosen_and_the_first_of_equals(request_of_four):
    rows = choose.rank_trials("a", request_of_four, score(0.5, 0.7, 0.7, 0.6))
    assert [row["chosen"] for row in rows] == ["", "yes", "", ""]
    assert rows[0]["scores"] == "0.499 0.501" and rows[0]["mean"] == "0.5"


def test_a_trial_whose_run_failed_is_not_chosen(request_of_four):
    rows = choose.rank_trials("a", request_of_four, score(0.5, None, 0.4, None))
    assert [row["chosen"] for row in rows] == ["yes", "", "", ""] and rows[1]["mean"] == ""
    assert not any(row["chosen"] for row in choose.rank_trials("a", request_of_four, score(*[None] * 4)))


def test_what_was_chosen_of_others_stays(request_of_four, places):
    choose.keep(choose.rank_trials("a", request_of_four, score(0.5, 0.7, 0.6, 0.6)))
    choose.keep(choose.rank_trials("b", request_of_four, score(0.8, 0.7, 0.6, 0.6)))
    choose.keep(choose.rank_trials("a", request_of_four, score(0.5, 0.5, 0.6, 0.5)))
    rows = read_rows(choose.TRIALS)
    assert [(row["experiment"], row["trial"]) for row in rows if row["chosen"]] == [("a", "3"), ("b", "1")]
    assert len(rows) == 8
    choose.keep(choose.rank_trials("b", request_of_four, score(*[None] * 4)))
    assert read_rows(choose.TRIALS) == rows


def test_experiments_have_what_was_chosen(request_of_four, places):
    settings = '[[settings]]\nours = "first"\nalgo = "fedavg"\nfedavg_learning_rate = 0.5\nrounds = 3\n'
    (places / "experiments.toml").write_text(f'[experiments]\na = "A."\n{settings}')
    rows = choose.rank_trials("a", request_of_four, score(0.5, 0.5, 0.6, 0.5))
    choose.keep(rows)
    (experiment,) = experiments._read.__wrapped__("experiments", places / "experiments.toml").values()
    wanted = dict(each.removeprefix("--").split("=") for each in rows[2]["settings"].split())
    assert "the best of 3 trials" in choose.format_choice(rows[2], [{**rows[0], "mean": ""}, *rows[1:]])
    assert experiment.flags == {"algo": "fedavg", "rounds": "3", **wanted}
    sources = {each.flag: each.source for each in experiment.settings}
    assert sources["learning_rate"].startswith("the best of 4 trials on validation examples")
    assert sources["rounds"] == "first"


def test_problems_that_are_tuned_alike_share_what_was_chosen():
    wanted = [f"ditto_league_archetypes{bias}" for bias in (35, 20, 65)]
    assert choose.find_users("ditto_league_archetypes35") == wanted
    assert choose.find_users("fedavg_league_har") == ["fedavg_league_har"]  # new people have trials of their own


def test_a_pattern_like_no_search_is_refused():
    with pytest.raises(FlagError, match="--searches=nothing: like no search of the league"):
        choose.find_requests("nothing", "runs")
    assert pathlib.Path(choose.CHOSEN).name == experiments.CHOSEN
