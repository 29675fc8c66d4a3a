"""What is measured in a run of asynchronous FL, by hand, and which experiments there are."""

import math
import statistics

import numpy as np
import pandas as pd
import pytest
from experiment_flags import find_experiments, read_flags

from launch.runs.run_records import RunRecord
from reproductions.async_periodic.tables import (
    FEDAVG,
    FEDAVG_PROXIMAL,
    MEASURES,
    MODEL_BYTES,
    OTHERS,
    PLACES,
    TUNED,
    compute_accuracy_curve,
    find_last_within,
    list_rounds,
    measure,
)
from reproductions.engine.collection import Place

CITY = "async_periodic_mnist_city"  # shows what a large federation costs; no accuracy of it is reported


def make_run(experiment, accuracies, period=0.25, models=None):
    """A run whose round r ends at `period` * r T_max, has 30 updates, and moves so many models down and up."""
    flags = read_flags(experiment, "--seed=0")
    longest_s = flags["max_training_s"]
    moved = {} if models is None else {"bytes_down": models[0] * MODEL_BYTES, "bytes_up": models[1] * MODEL_BYTES}
    rounds = {
        i: {"virtual_time_s": period * i * longest_s, "num_clients": 30.0, "test_accuracy": accuracy, **moved}
        for i, accuracy in enumerate(accuracies, start=1)
    }
    return RunRecord(None, flags, experiment, rounds)


def climb(last, swing=0.0):
    """40 accuracies in a straight line to `last`, every other one lower by `swing`."""
    return [last * index / 40 - swing * (index % 2) for index in range(1, 41)]


def test_every_place_has_its_experiment_and_every_experiment_its_place():
    names = {each.name for each in find_experiments("async_periodic")}
    assert PLACES.keys() == names - {CITY}
    assert len([place for place in PLACES.values() if not place.algo.endswith("_tuned")]) == 2 * (3 * 5 + 2) + 5
    older = Place("printed", "persistent", "random", "old1.25")
    assert PLACES["async_periodic_mnist_persistent_random_old1.25"] == older
    assert PLACES["fed_async_mnist_iid"] == Place("printed", "iid", "", "fed_async")
    assert PLACES["fed_async_mnist_shards_tuned"] == Place("printed", "shards", "", "fed_async_tuned")
    tuned = {Place("printed", "shards", policy, f"{kind}_tuned") for policy, kind in TUNED.values()}
    assert len(tuned) == 4 and tuned <= set(PLACES.values())


def test_fedavg_with_the_proximal_term_differs_from_the_papers_in_that_alone():
    for case in ("iid", "shards"):
        plain, proximal = (
            read_flags(f"async_periodic_mnist_{case}_random_{kind}") for kind in (FEDAVG, FEDAVG_PROXIMAL)
        )
        assert plain == proximal | {"proximal_weight": 0.0}


def test_methods_that_never_wait_send_alike():
    runs = [read_flags(f"{algo}_mnist_shards") for _, algo in OTHERS.values()]
    assert len({(run["rounds"], run["batch_size"]) for run in runs}) == 1


def test_costs_are_met_as_by_a_step_function():
    rounds = pd.DataFrame({"time": [0.4, 0.8, 1.2], "accuracy": [1.0, 2.0, 3.0]})
    assert [find_last_within(rounds, "time", budget) for budget in (1.0, 1.2)] == [2, 3]
    assert math.isnan(find_last_within(rounds, "time", 0.3))


def test_fluctuation_is_of_the_last_ten_changes_and_blind_to_a_steady_climb():
    changes = [1.0, -1.0] * 5
    swinging = [100.0, 3.0, *(3.0 + np.cumsum(changes))]
    climbing, swinging, short = (
        MEASURES["fluctuation"](pd.DataFrame({"accuracy": levels}))
        for levels in ([9.0, 0.0, *np.arange(11.0)], swinging, swinging[-10:])
    )
    assert (climbing, swinging) == pytest.approx((0, statistics.stdev(changes))) and math.isnan(short)


def test_measures_by_hand():
    """FedAvg, 0.99 T_max a round: ten rounds fit in 10 T_max, 38 in 1,150 updates."""
    fedavg = measure(make_run("async_periodic_mnist_iid_random_synchronous_plain", climb(0.75), period=0.99))
    expected = {
        "final": 75,
        "at_equal_time": 75 * 10 / 40,
        "at_equal_uploads": 75 * 38 / 40,
        "time": 39.6,
        "updates": 1200,
    }
    assert {name: fedavg[name] for name in expected} == pytest.approx(expected)
    assert math.isnan(fedavg["at_equal_bytes"]), "the run says nothing of bytes"
    changes = [2.0 * (1 if index % 2 == 0 else -1) for index in range(31, 41)]
    swinging = measure(make_run("async_periodic_mnist_iid_significance_old", climb(0.0, 0.02)))
    assert swinging["fluctuation"] == pytest.approx(statistics.stdev(changes))
    assert measure(make_run("async_periodic_mnist_iid_random_equal", climb(0.8)[:39])) == {}, "it ended early"
    assert measure(make_run(CITY, [0.5])) == {}


def test_equal_bytes_are_counted_both_ways_in_models():
    """65 models a round, 35 down and 30 up: 2,600 are 40 rounds, so that the 41st does not count."""
    run = make_run("buffered_mnist_iid", [index / 100 for index in range(1, 71)], models=(35, 30))
    assert measure(run)["at_equal_bytes"] == pytest.approx(40)


def test_the_mean_over_a_cycle_is_of_the_last_twelve_aggregations():
    """50 % at the last ten, 38 at the two before: 576 / 12 = 48."""
    run = make_run("async_periodic_mnist_persistent_random_old", [0.9] * 28 + [0.38] * 2 + [0.5] * 10)
    assert [measure(run)[metric] for metric in ("mean_of_last", "mean_of_cycle")] == pytest.approx([50, 48])


def test_a_curve_is_the_mean_and_deviation_over_the_seeds():
    lasts = (0.8, 0.84, 0.88)
    seeds = [list_rounds(make_run("async_periodic_mnist_iid_random_equal", climb(last))) for last in lasts]
    curve = compute_accuracy_curve(seeds, "time")
    assert (curve.places[0], curve.places[-1]) == (0.25, 10.0)
    assert (curve.mean[-1], curve.spread[-1]) == (pytest.approx(84), pytest.approx(4))
    assert compute_accuracy_curve(seeds[:1], "aggregation").places[-1] == 40
