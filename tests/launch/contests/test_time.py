"""The time that was given is kept, however wrong the guesses are; what was not run for want of it is said."""

import hypothesis
import pytest
from hypothesis import strategies
from scripted_contest import ALWAYS, METHODS, Killed, Nature, World, compete

from launch.runs.errors import RunStopped

MOST = 1.1


@pytest.fixture
def run(tmp_path, monkeypatch):
    def compete_here(natures, seconds, methods=METHODS, folder="c", world=None, **settings):
        world = world or World(natures, settings.pop("slots", 1))
        outcome = compete(world, methods, tmp_path / folder, monkeypatch, seconds, always=ALWAYS, **settings)
        assert world.clock.now - 1000 <= MOST * seconds and outcome.seconds <= MOST * seconds
        return outcome

    return compete_here


@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("seconds", [60.0, 300.0])
@pytest.mark.parametrize(
    "natures",
    [
        {"ifca": Nature(real=15)},
        {name: Nature(real=5) for name in ("local_only", "ifca", "ditto")},
        {"ditto": Nature(real=1000, stops_s=1e6)},
        {"local_only": Nature(real=1000, stops_s=1e6)},
        {name: Nature(failure="error: x") for name in ("local_only", "ifca", "ditto")},
        {"fedavg": Nature(failure="error: x", fails_with="/seeds/")},
    ],
    ids=[
        "one is slow",
        "all are slow",
        "one never ends",
        "alone never ends",
        "all fail",
        "FedAvg fails on fresh seeds",
    ],
)
def test_the_time_is_kept(run, natures, seconds, slots):
    outcome = run(natures, seconds, slots=slots)
    assert [each.method.name for each in outcome.entered] == [method.name for method in METHODS]
    for each in outcome.entered:
        assert each.why_out or each.chosen is not None


@pytest.mark.parametrize("seconds", [30.0, 60.0, 300.0])
def test_what_is_far_too_short_is_refused_within_it(tmp_path, monkeypatch, seconds):
    world = World({"fedavg": Nature(real=30)})
    with pytest.raises(RunStopped, match="too short"):
        compete(world, METHODS, tmp_path, monkeypatch, seconds, always=ALWAYS)
    assert world.clock.now - 1000 <= MOST * seconds


def test_one_that_never_ends_takes_no_time_of_the_others(run):
    outcome = run({"ifca": Nature(real=1000, stops_s=1e6), "ditto": Nature(level=0.7)}, 900.0)
    assert outcome.get("ifca").why_out == "it took far too long"
    assert [trial.why_out for trial in outcome.get("ifca").trials[1:]] == ["a trial of it took far too long"] * (
        outcome.plan.trials - 1
    )
    assert {len(outcome.get(name).runs) for name in ("fedavg", "local_only", "ditto")} == {len(outcome.plan.seeds)}
    # It was not the end of the minutes that ended it.
    assert not outcome.is_cut


def test_methods_are_as_fast_as_they_turn_out_to_be(run):
    """A guess that is too high leaves more for further seeds, one that is too low fewer trials; none ends the rest."""
    cheap = tuple(method._replace(cost=5.0) for method in METHODS)
    outcome = run({}, 900.0, methods=cheap)
    assert outcome.seconds < 500 and not outcome.is_cut
    dear = run({name: Nature(real=4) for name in ("ifca", "ditto")}, 450.0, folder="d")
    reasons = {trial.why_out for name in ("ifca", "ditto") for trial in dear.get(name).trials}
    assert "there was no time for it" in reasons and dear.get("fedavg").runs and dear.get("local_only").runs
    assert dear.get("ifca").runs or dear.get("ditto").runs


@pytest.mark.parametrize("slots", [1, 2])
def test_how_long_the_first_run_waits_for_the_disk_does_not_change_the_plan(run, slots):
    warm = run({}, 900.0, world=World({}, slots))
    cold = run({}, 900.0, folder="d", world=World({}, slots, cold_s=20.0))
    assert (cold.plan, cold.is_cut) == (warm.plan, False)


@pytest.mark.parametrize(("overhead_s", "seeds"), [(7.0, [100, 101]), (8.0, [100, 100])])
def test_a_first_run_that_takes_much_of_the_time_is_not_followed_by_another(run, overhead_s, seeds):
    """With three rounds of half a second; 3 % of 300 s are 9. What follows is the first trial."""
    run({}, 300.0, world=(world := World({}, overhead_s=overhead_s)))
    assert [seed for _, _, seed, _ in world.started[:2]] == seeds


def test_a_command_that_has_less_time_than_the_one_before_ends_with_what_there_is(run):
    world = World({}, 1)
    with pytest.raises(Killed):
        run({}, 300.0, world=world, kill_after=5)
    world.clock.now = 1000.0
    outcome = run({}, 34.0, world=world)
    assert outcome.is_cut and outcome.get("ditto").why_out == "there was no time for it"
    assert all(each.chosen is not None for each in outcome.entered if each.method.name in ALWAYS)


@hypothesis.settings(max_examples=8, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
@hypothesis.given(
    real=strategies.lists(strategies.sampled_from([0.1, 1, 3, 20, 500]), min_size=4, max_size=4),
    stops_s=strategies.sampled_from([0.5, 5, 1e6]),
    fails=strategies.sampled_from(["", "--seed=1", "learning_rate=0.1"]),
    seconds=strategies.sampled_from([60.0, 120.0, 400.0]),
    slots=strategies.integers(1, 4),
    overhead_s=strategies.sampled_from([0.5, 4]),
)
def test_the_time_is_kept_in_any_world(tmp_path, monkeypatch, real, stops_s, fails, seconds, slots, overhead_s):
    natures = {
        method.name: Nature(real=factor, stops_s=stops_s, failure="error: x" if fails else "", fails_with=fails or "-")
        for method, factor in zip(METHODS, real, strict=True)
    }
    # Its speed is what others are measured by.
    natures["fedavg"] = Nature()
    world = World(natures, slots, overhead_s)
    folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
    outcome = compete(world, METHODS, folder, monkeypatch, seconds, always=ALWAYS)
    assert world.clock.now - 1000 <= MOST * seconds and outcome.seconds <= MOST * seconds
