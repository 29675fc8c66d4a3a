"""The median rule on made-up curves."""

import json

import pytest

from launch.runs.errors import RunFolderError
from launch.settings.run_config import flag_values
from launch.sweeps.tuning.adaptive_search import Behind, check_same_data, find_behind, mark_pruned
from launch.sweeps.tuning.request import parse_request
from launch.sweeps.tuning.trials import Outcome, State, build_task

# Medians 0.3 and 0.6.
COMPLETE = [{1: number / 10, 2: number / 5} for number in range(1, 6)]


def test_the_first_round_below_the_median_ends_a_run():
    assert find_behind({1: 0.31, 2: 0.59, 3: 0.0}, COMPLETE, range(1, 9)) == Behind(2, 0.59, 0.6)
    assert find_behind({1: 0.29, 2: 0.9}, COMPLETE, range(1, 9)).round_num == 1


def test_a_run_at_the_median_goes_on():
    assert find_behind({1: 0.3, 2: 0.7}, COMPLETE, range(1, 9)) is None


def test_only_the_rounds_asked_for_are_compared():
    """Not before the first, not again, and not the last, after which nothing is left to save."""
    assert find_behind({1: 0.0, 2: 0.7}, COMPLETE, range(2, 9)) is None
    assert find_behind({1: 0.5, 2: 0.0}, COMPLETE, range(1, 2)) is None


def test_few_complete_trials_judge_nothing():
    assert find_behind({1: 0.0}, COMPLETE[:4], range(1, 9)) is None
    # Round 2 has four values, round 1 eight.
    without_round_2 = [{1: 0.0}] * 4 + COMPLETE[:4]
    assert find_behind({1: 0.2, 2: 0.0}, without_round_2, range(1, 9)) is None


def test_the_folder_of_a_pruned_run_says_so(tmp_path):
    behind = Behind(2, 0.59, 0.6)
    mark_pruned(tmp_path, "stopped", behind)
    marked = json.loads((tmp_path / "pruned.json").read_text())
    assert marked == {"reason": "stopped", "round_num": 2, "value": 0.59, "median": 0.6}
    assert str(behind) == "stopped after round 2: 0.5900 is below the median 0.6000"


def test_trials_on_other_data_end_the_search(tmp_path):
    """What the journal has of them would choose the next ones."""
    (tmp_path / "a.flags").write_text("--algo=fedavg\n--dataset=digits\n")
    asked = [f"--experiment={tmp_path / 'a.flags'}", "--search=epochs=int(1,8)", f"--runs_dir={tmp_path / 'runs'}"]
    request = parse_request([*asked, "--seeds=3"])
    outcome = Outcome(1, {"epochs": "2"}, State.PRUNED)
    # Without a folder nothing is known.
    check_same_data(request, outcome)
    task = build_task(request, 1, outcome.settings, "3")
    task.run_dir.mkdir(parents=True)
    content = {"flags": flag_values(task.config), "data": {"digest": "other"}}
    (task.run_dir / "config.json").write_text(json.dumps(content))
    check_same_data(request, outcome._replace(state=State.OPEN))
    for state in (State.PRUNED, State.COMPLETE):
        with pytest.raises(RunFolderError, match="trial_1/seed_3: a trial on other data than digits holds now"):
            check_same_data(request, outcome._replace(state=state))


def test_where_lower_is_better_a_run_above_the_median_ends():
    behind = find_behind({1: 0.29, 2: 0.61}, COMPLETE, range(1, 9), sign=-1)
    assert behind == Behind(2, 0.61, 0.6)
    assert str(behind) == "stopped after round 2: 0.6100 is above the median 0.6000"
