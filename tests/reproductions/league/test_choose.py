"""Which searches are made, where their trials go, and that experiments then have what these chose."""

import pytest

from launch.settings.experiments import ours
from launch.settings.flags import FlagError
from launch.tuning.method_choice import keep_trials
from reproductions.league import choose
from reproductions.league.experiments import TABLE, TRIALS, list_rows, read_choices

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
