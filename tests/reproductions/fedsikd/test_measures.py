"""Where runs stand, and what is measured in them, with numbers by hand."""

import math

import pytest

from reproductions.engine.collection import Cell, Place
from reproductions.fedsikd.measures import (
    count_rounds_within,
    find_place,
    find_targets,
    measure_printed,
    measure_round,
    measure_runs,
    measure_whole,
)
from reproductions.fedsikd.tables import PAPER, list_judged

ROUNDS, MEGABYTES, EQUAL_BYTES = "rounds_to_accuracy", "megabytes_to_accuracy", "equal_bytes_accuracy"


@pytest.fixture
def judge(printed):
    """(runs) -> results by preset, cell and seed."""
    return lambda runs: list_judged(measure_runs(runs, find_targets(printed)))


@pytest.mark.parametrize(
    ("experiment", "place"),
    [
        ("fedsikd_mnist_alpha0.1", Place("printed", "mnist", "0.1", "fedsikd")),
        ("fl_hc_har_alpha1.0", Place("printed", "har", "1", "fl_hc")),
        ("fedavg_har_windows_alpha0.1", Place("printed", "har_windows", "0.1", "fedavg")),
        ("fedsikd_mnist_alpha2.0_authors", Place("authors", "mnist", "2", "fedsikd")),
        ("random_cluster_mnist_alpha0.5_tuned", Place("tuned", "mnist", "0.5", "random_cluster")),
        ("random_cluster_mnist_alpha0.5_control", Place("tuned", "mnist", "0.5", "control")),
        ("fedsikd_mnist_alpha0.1_tuned_k1", Place("tuned", "mnist", "0.1", "fedsikd_k1")),
        ("fedsikd_mnist_alpha0.1_tuned_per_feature", Place("tuned", "mnist", "0.1", "fedsikd_per_feature")),
        ("fedsikd_mnist_alpha0.1_scalar_epsilon4", Place("privacy", "mnist", "0.1", "scalar_4")),
        ("fedsikd_mnist_alpha0.1_per_feature_epsilon_none", Place("privacy", "mnist", "0.1", "per_feature_none")),
    ],
)
def test_experiments_have_their_places(experiment, place):
    assert find_place(experiment) == place


def test_every_experiment_of_the_paper_has_a_place_of_its_own():
    experiments = PAPER.experiments
    assert len({find_place(name) for name in experiments}) == len(experiments) >= 32


@pytest.mark.parametrize(
    ("sums", "budget", "rounds"),
    [
        # 30 bytes a round: three rounds of four fit into 100, and four of them tell that a fourth does not.
        ([30, 60, 90, 120], 100, 3),
        ([30, 60, 90], 100, 3),  # another would make 120
        ([30, 60], 100, None),  # another would fit
        ([30, 60], 90, None),  # exactly
        ([30, 60, 90, 120], 90, 3),  # all of it
        ([30.1, 60.1, 90.1], 90, 2),  # however little is missing
        ([150], 100, 0),
        ([], 100, None),
        ([30, 60, 90, 120], None, None),
    ],
)
def test_a_budget_pays_for_whole_rounds(sums, budget, rounds):
    assert count_rounds_within(sums, budget) == rounds


def test_fluctuation_is_the_deviation_of_changes(make_run):
    """Ten changes of +2 and -2 points in turns: their mean is 0, the sum of squares 40, over nine."""

    def measure(accuracies):
        return measure_round(make_run("fedavg_har_alpha0.1", 0, accuracies), 50).get("fluctuation")

    assert measure([0.5 + 0.02 * (r % 2) for r in range(50)]) == pytest.approx(math.sqrt(40 / 9))
    once = [0.4] * 40 + [0.5] * 10
    assert measure(once) == pytest.approx(math.sqrt(10)), "10 and nine times 0: 9^2 + 9 * 1, over nine"
    assert measure([0.01 * r for r in range(50)]) == pytest.approx(0)  # a steady rise
    assert measure([0.5] * 49) is None
    run = make_run("fedavg_har_alpha0.1", 0, [0.5] * 50)
    del run.rounds[45]
    assert "fluctuation" not in measure_round(run, 50), "one of the rounds is missing"


@pytest.mark.parametrize(
    ("accuracies", "target", "budget", "expected"),
    [
        # 20 MB a round and 50 MB: two rounds, of which neither has 0.75; three rounds say nothing about the fifth.
        ([0.5, 0.7, 0.8], 0.75, 50e6, {EQUAL_BYTES: 70, MEGABYTES: math.inf}),
        ([0.5, 0.7, 0.8], 0.75, 80e6, {}),  # pays for a fourth round
        ([0.5, 0.7, 0.8], 0.65, 50e6, {EQUAL_BYTES: 70, MEGABYTES: 40}),
        ([0.5, 0.7, 0.8, 0.8, 0.8], 0.75, None, {ROUNDS: 3}),
        ([0.5, 0.7, 0.8, 0.8, 0.8], 0.9, None, {ROUNDS: math.inf}),
        # A run that gets there in round 6 has not got there within five, however long it is.
        ([0.1] * 5 + [0.9] * 5, 0.75, None, {ROUNDS: math.inf}),
    ],
)
def test_a_run_within_its_budget(accuracies, target, budget, expected, make_run):
    found = measure_whole(make_run("fedavg_mnist_alpha0.1_tuned", 0, accuracies, megabytes=20), target, budget)
    assert {name: found[name] for name in (ROUNDS, MEGABYTES, EQUAL_BYTES) if name in found} == pytest.approx(expected)


def test_the_drift_ratio_by_round(make_run):
    run = make_run("fedsikd_mnist_alpha0.1", 0, [0.5, 0.6], drift=[0.7, 0.8])
    assert [measure_round(run, r)["drift_ratio"] for r in (1, 2)] == pytest.approx([0.7, 0.8])
    assert measure_round(run, 3) == {}
    run.rounds[1]["total_drift"] = 0.0
    assert "drift_ratio" not in measure_round(run, 1)


def test_the_budget_is_what_fedsikd_moves_with_the_same_seed(make_run, judge):
    runs = [
        make_run("fedsikd_mnist_alpha0.1_tuned", seed, [0.8] * 6, megabytes=60 if seed else 30) for seed in (0, 1)
    ] + [make_run("fedavg_mnist_alpha0.1_tuned", seed, [0.01 * r for r in range(1, 31)]) for seed in (0, 1, 2)]
    values = judge(runs)["tuned"]
    cell = Cell("mnist", "0.1", "fedavg", 5, "equal_bytes_accuracy")
    # 150 MB pay for 15 rounds of 10; 300 for all 30; seed 2 has no FedSiKD.
    assert values[cell] == pytest.approx({0: 15, 1: 30})
    assert values[cell._replace(algo="fedsikd")] == pytest.approx({0: 80, 1: 80})


def test_printed_random_cluster_is_the_control(make_run, judge):
    runs = [make_run("random_cluster_mnist_alpha0.1", 0, [0.5], drift=0.7)]
    runs += [make_run("random_cluster_mnist_alpha0.1_tuned", 0, [0.5], drift=0.6)]
    results = judge(runs)
    cell = Cell("mnist", "0.1", "control", 1, "drift_ratio")
    assert results["printed"][cell] == pytest.approx({0: 0.7})
    assert results["printed"][cell._replace(metric="test_accuracy")] == pytest.approx({0: 0.5})
    assert cell not in results["tuned"]


def test_printed_rounds_to_the_printed_accuracy(printed):
    """HAR, alpha 0.1: FedSiKD prints 55.55 % in round 5, had 56.57 in round 4, and FL+HC 55.72 in the first."""
    rounds = measure_printed(printed).set_index(list(Cell._fields)).value
    cell = Cell("har", "0.1", "fedsikd", 5, "rounds_to_accuracy")
    assert (rounds[cell], rounds[cell._replace(algo="fl_hc")]) == (4, 1)
    assert rounds[cell._replace(algo="fedavg")] == math.inf
    assert rounds[cell._replace(dataset="har_windows")] == 4
    assert rounds[cell._replace(dataset="mnist")] == 5
