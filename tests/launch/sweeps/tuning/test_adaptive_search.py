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


# Round 2 has four values, round 1 eight.
WITHOUT_ROUND_2 = [{1: 0.0}] * 4 + COMPLETE[:4]


@pytest.mark.parametrize(
    ("curve", "complete", "rounds", "sign", "behind"),
    [
        ({1: 0.31, 2: 0.59, 3: 0.0}, COMPLETE, range(1, 9), 1, Behind(2, 0.59, 0.6)),
        ({1: 0.29, 2: 0.9}, COMPLETE, range(1, 9), 1, Behind(1, 0.29, 0.3)),
        # At the median it goes on.
        ({1: 0.3, 2: 0.7}, COMPLETE, range(1, 9), 1, None),
        # Not before the first round, not again, and not after the last, when nothing is left to save.
        ({1: 0.0, 2: 0.7}, COMPLETE, range(2, 9), 1, None),
        ({1: 0.5, 2: 0.0}, COMPLETE, range(1, 2), 1, None),
        # Few complete trials judge nothing.
        ({1: 0.0}, COMPLETE[:4], range(1, 9), 1, None),
        ({1: 0.2, 2: 0.0}, WITHOUT_ROUND_2, range(1, 9), 1, None),
        # Where lower is better, a run above the median ends.
        ({1: 0.29, 2: 0.61}, COMPLETE, range(1, 9), -1, Behind(2, 0.61, 0.6)),
    ],
)
def test_the_first_round_that_is_worse_than_the_median_ends_a_run(curve, complete, rounds, sign, behind):
    found = find_behind(curve, complete, rounds, sign)
    assert found == (behind and Behind(behind.round_num, behind.value, pytest.approx(behind.median)))


def test_the_folder_of_a_pruned_run_says_so(tmp_path):
    below, above = Behind(2, 0.59, 0.6), Behind(2, 0.61, 0.6)
    mark_pruned(tmp_path, "stopped", below)
    marked = json.loads((tmp_path / "pruned.json").read_text())
    assert marked == {"reason": "stopped", "round_num": 2, "value": 0.59, "median": 0.6}
    assert str(below) == "stopped after round 2: 0.5900 is below the median 0.6000"
    assert str(above) == "stopped after round 2: 0.6100 is above the median 0.6000"


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
