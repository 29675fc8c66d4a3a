"""What those may spend who are not limited as others: pooled data, models alone, and a method with one round."""

import pytest
from scripted_contest import ALWAYS, LEVELS, METHODS, Nature, World, make_method

from launch.contests.methods import POOLED


def test_pooled_data_have_fedavgs_rounds_and_models_alone_three_times_as_many(run, tmp_path):
    pooled = make_method("pooled", "fedavg", role=POOLED)
    outcome = run(
        World({**LEVELS, "pooled": Nature(virtual=100)}), methods=(*METHODS, pooled), always=(*ALWAYS, "pooled")
    )
    plan, kept = outcome.plan, [bool(trial.scores[1]) for trial in outcome.get("local_only").trials]
    assert (plan.rounds, plan.count_rounds(plan.first_share), kept) == (20, 7, [True, False, False])
    assert outcome.limits["pooled"] == (20, 0.0, 0.0) and outcome.limits["local_only"] == (60, 0.0, 0.0)
    for name, rounds in (("pooled", (20, 20, 7)), ("local_only", (60, 60, 21))):
        trials = tmp_path / "c/trials" / name
        folders = outcome.get(name).runs[0], trials / "trial_0/seed_100", trials / "trial_1/seed_100"
        assert tuple(len(World({}).read_rows(each)) for each in folders) == rounds


def test_models_alone_may_be_limited_to_fedavgs_time_where_that_is_equal(run, capsys):
    """A round of theirs takes half as long as one of FedAvg's, which has 30 rounds of 1.5 or 2 virtual seconds."""
    natures = {**LEVELS, "local_only": Nature(level=0.4, virtual=0.5)}
    outcome = run(World(natures), limits_alone=True)
    assert outcome.limits["local_only"] == (3000, 0.0, pytest.approx(52.5525)) and not outcome.is_cut
    assert len(World({}).read_rows(outcome.get("local_only").runs[0])) == 60
    said = capsys.readouterr().out
    assert "every method may use as much device time\n" in said and "Local_Only: 90 rounds" not in said
    by_bytes = run(World(natures), folder="d", equal=["most_bytes"], limits_alone=True)
    assert by_bytes.limits["local_only"] == (90, 0.0, 0.0) and "Local_Only: 90 rounds\n" in capsys.readouterr().out


def test_a_method_with_one_round_may_be_limited_to_fedavgs_time_too(run, capsys):
    """Its short runs are as long as whole ones. A round of 100 virtual seconds is more than FedAvg's 30 take."""
    once = METHODS[0]._replace(rounds=1)
    natures = {**LEVELS, "local_only": Nature(level=0.4, virtual=30)}
    outcome = run(World(natures), methods=(once, *METHODS[1:]), limits_alone=True)
    assert outcome.limits["local_only"] == (1, 0.0, pytest.approx(52.5525)) and len(outcome.get("local_only").runs) == 5
    assert all(trial.scores[0] for trial in outcome.get("local_only").trials)
    assert "every method may use as much device time\n" in capsys.readouterr().out
    free = run(World(natures), folder="d", methods=(once, *METHODS[1:]), equal=["most_bytes"], limits_alone=True)
    assert free.limits["local_only"] == (1, 0.0, 0.0)
    natures["local_only"] = Nature(level=0.4, virtual=100)
    slow = run(World(natures), folder="e", methods=(once, *METHODS[1:]), limits_alone=True)
    (too_slow,) = {trial.why_out for trial in slow.get("local_only").trials}
    assert not slow.get("local_only").runs and "first round takes more device time" in too_slow
