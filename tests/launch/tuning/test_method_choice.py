"""What becomes of the trials of several methods: which run together, who is chosen, what is kept."""

import pytest

from launch.runs.run_records import read_rows
from launch.tuning import method_choice
from launch.tuning.method_choice import keep_trials, make_trials, rank_trials
from launch.tuning.request import parse_request

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


def test_the_best_mean_is_chosen_and_the_first_of_equals(request_of_four):
    rows = rank_trials("a", request_of_four, score(0.5, 0.7, 0.7, 0.6))
    assert [row["chosen"] for row in rows] == ["", "yes", "", ""]
    assert rows[0]["scores"] == "0.499 0.501" and rows[0]["mean"] == "0.5"


def test_of_an_error_the_lowest_mean_is_chosen(request_of_four):
    rows = rank_trials("a", request_of_four._replace(objective="validation_rmse"), score(0.5, 0.7, 0.4, 0.4))
    assert [row["chosen"] for row in rows] == ["", "", "yes", ""]


def test_a_trial_whose_run_failed_is_not_chosen(request_of_four):
    rows = rank_trials("a", request_of_four, score(0.5, None, 0.4, None))
    assert [row["chosen"] for row in rows] == ["yes", "", "", ""] and rows[1]["mean"] == ""
    assert not any(row["chosen"] for row in rank_trials("a", request_of_four, score(*[None] * 4)))


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
    monkeypatch.setattr(method_choice, "open_engine", lambda tasks, jobs: (len(tasks), jobs))
    monkeypatch.setattr(
        method_choice, "run_tasks", lambda tasks, engine: asked.append((len(tasks), engine)) or ["one failed"]
    )
    monkeypatch.setattr(method_choice, "read_score", lambda task, objective: task.config.algorithm.training.epochs / 10)
    requests = {"a": request_of_four, "b": request_of_four._replace(seeds=("100",))}
    rows, failures = make_trials(requests, 3)
    assert asked == [(12, (12, 3))] and failures == ["one failed"]
    assert [row["experiment"] for row in rows] == ["a"] * 4 + ["b"] * 4
    chosen = [row for row in rows if row["chosen"]]
    assert [(row["experiment"], row["mean"]) for row in chosen] == [("a", "0.2"), ("b", "0.2")]
    assert all("--epochs=2" in row["settings"] for row in chosen)
