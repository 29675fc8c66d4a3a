"""The authors' printed run, what runs cost, and what moves FedCD: made-up runs with numbers that are easy by hand."""

import math

import numpy as np
import pandas as pd
import pytest

from reproductions.engine.counted_runs import collect_runs
from reproductions.fedcd.measures import measure, read_authors_run
from reproductions.fedcd.tables import compare_with_base, tabulate_authors_run
from tff_algos.client.cohort_draw import sample_cohort

SMALL = "cifar10_hierarchical_authors_small"
MODELS = {"live_models": 6, "active_models": 40, "max_active_models": 2, "preferred_models": 2, "score_deviation": 0.02}


def test_the_authors_printed_run_by_the_rules_of_the_report():
    rounds = read_authors_run().rounds
    assert len(rounds) == 53
    accuracies = {5: 56.2, 10: 69.7, 30: 91.0, 45: 92.1, 53: 92.6}
    assert {r: round(100 * rounds[r]["client_test_accuracy"], 1) for r in accuracies} == accuracies
    changes = {5: 13.3, 10: 5.4, 30: 1.3, 45: 1.0}
    assert {r: round(100 * rounds[r]["client_accuracy_change"], 1) for r in changes} == changes
    (row,) = tabulate_authors_run().records
    assert (row["rounds"], row["converges at round"], row["last change"]) == ("53", "29", "1.36")
    assert float(row["swing of a meta-archetype"]) == pytest.approx(1.3, abs=0.05)


def test_costs_by_hand(tmp_path, write_archetype_run):
    """5 MB and 2 s a round, and 0.5 s of evaluation: a fifth of both.

    Rounds 51 to 60 of 60 are the late ones: seven changes of 4 points, three of none. Of the last ten that are
    compared, 36 to 45, eight have changes of 4 points; of rounds 10 to 45 33 of 36 have.
    """
    models = MODELS | {"live_models": [8] * 45 + [5] * 15, "preferred_models": [4] * 59 + [3]}
    rates = {"learning_rate_mean": [0.1] * 53 + [0.01] * 7}  # of rounds 51 to 60 three at the first
    experiment, settings = "fedcd_cifar10_hierarchical_authors", {"round_s": 2, "evaluation_s": 0.5, "swing": 0.02}
    run_dir = write_archetype_run(tmp_path, experiment, [0.5] * 60, **settings, **models, **rates)
    lines = (run_dir / "metrics.csv").read_text().splitlines()
    place = lines[0].split(",").index("client_accuracy_change")
    for r in (35, 36, 45, 52, 55, 60):
        cells = lines[r].split(",")
        lines[r] = ",".join([*cells[:place], "0", *cells[place + 1 :]])
    (run_dir / "metrics.csv").write_text("\n".join(lines) + "\n")
    (run,) = collect_runs(tmp_path)[0]
    measured = measure(run)
    assert (measured["mb_per_round"], measured["s_per_round"]) == (5, 2)
    assert measured["evaluation_share"] == pytest.approx(20)
    assert measured["late_rate"] == pytest.approx(37)
    assert measured["late_change"] == pytest.approx(2.8)
    assert measured["last_change"] == pytest.approx(3.2)
    assert measured["change"] == pytest.approx(4 * 33 / 36)
    assert (measured["live_models"], measured["end_live_models"]) == (8, 5)
    assert (measured["preferred_models"], measured["end_preferred_models"]) == (4, 3)


@pytest.fixture
def set_column(tmp_path):
    """(experiment, seed, column, values by round) writes them into the run's table, whatever was there."""

    def change(experiment, seed, column, values):
        path = tmp_path / experiment / f"seed_{seed}" / "metrics.csv"
        lines = [line.split(",") for line in path.read_text().splitlines()]
        for line, value in zip(lines[1:], values, strict=True):
            line[lines[0].index(column)] = str(value)
        path.write_text("\n".join(map(",".join, lines)) + "\n")

    return change


@pytest.mark.parametrize(
    ("central", "outer", "verdict", "numbers"),
    [
        ((1, 1, 1), (30, 31, 32), "reproduced", "central 1, outer 35: -34.00 [-36.48, -31.52], n = 3"),
        ((30, 31, 32), (1, 1, 1), "not reproduced", "central 35, outer 1: +34.00 [+31.52, +36.48], n = 3"),
        ((1, 30, 31), (30, 1, 31), "undecided", "central 23.33, outer 23.33: +0.00 [-81.98, +81.98], n = 3"),
        ((1,), (30,), "undecided", "central 1, outer 34: 1 seed"),
    ],
)
def test_fedavg_on_central_archetypes(
    tmp_path, write_archetype_run, set_column, central, outer, verdict, numbers, build_report, find_claim
):
    """A group that jumps by 20 points in round 30 settles in 34, where its five-round mean is 50; one of round 1 in 1.

    Differences of -33, -34 and -35: 4.303 * 1 / sqrt(3) either side; of -33, 33 and 0 that is 4.3027 * 33 / sqrt(3).
    """
    experiment = "fedavg_cifar10_hypergeometric_cpu"
    for seed, firsts in enumerate(zip(central, outer, strict=True)):
        write_archetype_run(tmp_path, experiment, [0.5] * 80, seed)
        for archetypes, first in zip(((2, 3), (0, 5)), firsts, strict=True):
            for archetype in archetypes:
                values = [0.5 if r >= first else 0.3 for r in range(1, 81)]
                set_column(experiment, seed, f"archetype_{archetype}_accuracy", values)
    row = find_claim(build_report(tmp_path), "converges faster on the central archetypes")
    assert (row["cpu"], row["cpu_numbers"]) == (verdict, f"rounds to convergence: {numbers}")


@pytest.mark.parametrize(
    ("algo", "words"), [("fedavg", "performs better"), ("fedcd", "more skewed probability distributions")]
)
@pytest.mark.parametrize(("lead", "verdict"), [(6, "reproduced"), (-6, "not reproduced"), (0, "undecided")])
def test_which_archetypes_are_better(
    algo, words, lead, verdict, tmp_path, write_archetype_run, set_column, build_report, find_claim
):
    """FedAvg's central ones are claimed to lead, FedCD's outer ones: by 5, 6 and 7 points, or by -1, 0 and 1."""
    experiment = f"{algo}_cifar10_hypergeometric_cpu"
    better = (2, 3) if algo == "fedavg" else (0, 5)
    for seed in range(3):
        write_archetype_run(tmp_path, experiment, [0.5] * 80, seed, **(MODELS if algo == "fedcd" else {}))
        for archetype in better:
            set_column(experiment, seed, f"archetype_{archetype}_accuracy", [0.5 + (lead + seed - 1) / 100] * 80)
    assert find_claim(build_report(tmp_path), words)["cpu"] == verdict


@pytest.mark.parametrize(
    ("fedcd", "fedavg", "verdict", "numbers"),
    [
        ((4, 5, 6), (1, 1, 1), "undecided", "archetypes 5.00: [2.52, 7.48], n = 3"),
        ((6, 6, 6), (1, 2, 3), "reproduced", "FedCD 6.00 against FedAvg 2.00: +4.00 [+1.52, +6.48], n = 3"),
        ((2, 2, 2), (0, 0, 0), "not reproduced", "archetypes 2.00: the same in all 3 seeds"),
    ],
)
def test_most_archetypes_converge(
    fedcd, fedavg, verdict, numbers, tmp_path, write_archetype_run, set_column, build_report, find_claim
):
    """So many archetypes stay at 50 %, the others jump by 40 points each round. At least 4 of 6, and more than FedAvg.

    5 on average with a deviation of 1: 2.52 to 7.48, which does not say whether it is 4.
    """
    for algo, counts in (("fedcd", fedcd), ("fedavg", fedavg)):
        experiment = f"{algo}_cifar10_hypergeometric_cpu"
        for seed, steady in enumerate(counts):
            write_archetype_run(tmp_path, experiment, [0.5] * 80, seed, **(MODELS if algo == "fedcd" else {}))
            for archetype in range(steady, 6):
                set_column(experiment, seed, f"archetype_{archetype}_accuracy", [0.3, 0.7] * 40)
    row = find_claim(build_report(tmp_path), "most archetypes converge under FedCD")
    assert (row["cpu"], numbers in row["cpu_numbers"]) == (verdict, True), row["cpu_numbers"]


@pytest.mark.parametrize(("lead", "expected"), [(30, "yes"), (0, "undecided"), (-30, "no")])
def test_active_models_from_the_first_milestone_on_by_bias(lead, expected, write_seeds, build_report, find_claim):
    """Both biases have 60 in rounds 31 to 45; 0.2 has the lead in the 25 rounds from 6 to 30: 25/40 of it."""
    for bias, active in (("0.2", 60 + lead), ("0.8", 60)):
        counts = [30] * 5 + [active] * 25 + [60] * 15
        runs_dir = write_seeds(
            f"fedcd_{SMALL}_bias{bias}", [0.5] * 45, dataset="cifar10",
            **MODELS | {"active_models": lambda seed, counts=counts: [count + seed for count in counts]},
        )  # fmt: skip
    report = build_report(runs_dir)
    assert find_claim(report, "as the bias decreases")["authors_small"] == "undecided"
    columns, rows = report.tables["further"]
    (row,) = [dict(zip(columns, row, strict=True)) for row in rows if "from the first milestone on" in row[1]]
    assert row["verdict"] == expected
    assert f"bias 0.2 {61 + lead * 25 / 40:.2f}, bias 0.8 61.00" in row["numbers"]


def jump(first):
    """Accuracies that jump by 30 points in a round, without swings: converged four rounds later."""
    return [0.3] * (first - 1) + [0.6] * (46 - first)


@pytest.mark.parametrize(
    ("delays", "verdict"),
    [((0, 1, 2), "reproduced"), ((0, 5, 10), "undecided"), ((11, 12, 13), "not reproduced")],
)
def test_bits_and_the_time_to_convergence(delays, verdict, write_seeds, build_report, find_claim):
    """1 +- 2.48 rounds; 5 +- 12.4; 12 +- 2.48, and with two comparisons 12 +- 3.58."""
    write_seeds(f"fedcd_{SMALL}", lambda seed: jump(10), **MODELS)
    write_seeds(f"fedcd_{SMALL}_4bits", lambda seed: jump(10), **MODELS)
    runs_dir = write_seeds(f"fedcd_{SMALL}_8bits", lambda seed: jump(10 + delays[seed]), **MODELS)
    row = find_claim(build_report(runs_dir), "only slightly impacted the time to convergence")
    assert row["authors_small"] == verdict


@pytest.mark.parametrize(
    ("gaps", "verdict"), [((0, 0.1, 0.2), "reproduced"), ((-1, 0.5, 2), "undecided"), ((5, 6, 7), "not reproduced")]
)
def test_fedavg_and_bits(gaps, verdict, write_seeds, build_report, find_claim):
    write_seeds(f"fedavg_{SMALL}", lambda seed: [0.4] * 45)
    write_seeds(f"fedavg_{SMALL}_4bits", lambda seed: [0.4 + 0.001 * seed] * 45)
    runs_dir = write_seeds(f"fedavg_{SMALL}_8bits", lambda seed: [0.4 + gaps[seed] / 100] * 45)
    assert find_claim(build_report(runs_dir), "similarly insensitive")["authors_small"] == verdict


@pytest.mark.parametrize(
    ("gaps", "verdict"), [((0, 0.1, 0.2), "reproduced"), ((-1, 0.5, 2), "undecided"), ((5, 6, 7), "not reproduced")]
)
def test_later_clonings(gaps, verdict, write_seeds, build_report, find_claim):
    write_seeds(f"fedcd_{SMALL}_1milestone", lambda seed: [0.4] * 45, **MODELS)
    runs_dir = write_seeds(f"fedcd_{SMALL}", lambda seed: [0.4 + gaps[seed] / 100] * 45, **MODELS)
    assert find_claim(build_report(runs_dir), "Subsequent cloning rounds")["authors_small"] == verdict


def test_calm_counts_only_if_fedavg_is_less_calm(write_seeds, build_report, find_claim):
    """Both calm: FedCD swings by 1 point a round, FedAvg by 0.4, so that steps explain it; then FedAvg by 10."""
    write_seeds(f"fedcd_{SMALL}", lambda seed: [0.6] * 45, swing=0.005, **MODELS)
    runs_dir = write_seeds(f"fedavg_{SMALL}", lambda seed: [0.4] * 45, swing=0.002)
    assert find_claim(build_report(runs_dir), "in FedCD stop by round 10")["authors_small"] == "not reproduced"
    write_seeds(f"fedavg_{SMALL}", lambda seed: [0.4] * 45, swing=0.05)
    assert find_claim(build_report(runs_dir), "in FedCD stop by round 10")["authors_small"] == "reproduced"


def test_a_cause_counts_beyond_twice_the_deviation_of_the_runs_without_it():
    def compare(values, base, usual=None):
        return compare_with_base(*(pd.Series(each, dtype=float) for each in (values, base, usual or base)))

    base = {0: 10.0, 1: 12.0, 2: 14.0}  # deviation 2
    assert compare({0: 15.0}, base) == "15.00 (+5.00*)"
    assert compare({0: 14.0}, base) == "14.00 (+4.00)"
    assert compare({0: 5.0, 1: 6.0}, base) == "5.50 (-5.50*)"
    assert compare({0: 15.0}, {0: 10.0}) == "15.00 (+5.00)", "one run has no deviation"
    assert compare({0: math.inf}, base) == "never"
    assert compare({0: math.inf, 1: 33.0}, base) == "never in 1 of 2"
    assert compare({0: 15.0}, {0: math.inf, 1: 12.0}) == "15.00"
    assert compare({0: math.inf, 1: 33.0}, {0: math.inf, 1: 30.0}, base) == "never in 1 of 2", "not 3 of one seed"
    assert compare({3: 15.0}, base) == "15.00", "no seed of both"
    assert compare({}, base) == ""


def test_anew_is_compared_with_the_same_steps_shared_too(write_seeds, tmp_path, write_archetype_run, build_report):
    """The runs as they are: 50, 51 and 52, deviation 1. Steps 60; anew 61.5, which is 1.5 more, or 63, which is 3."""
    base = "fedcd_cifar10_hierarchical_cpu"
    runs_dir = write_seeds(base, lambda seed: [0.5 + 0.01 * seed] * 45, **MODELS)
    for anew, beside in ((0.615, "61.50 (+1.50)"), (0.63, "63.00 (+3.00*)")):
        write_archetype_run(tmp_path, f"{base}_steps_anew", [anew] * 45, **MODELS)
        _, rows = build_report(runs_dir).tables["causes"]
        if "steps" not in {path.name.removeprefix(f"{base}_") for path in tmp_path.iterdir()}:
            assert [row[0] for row in rows] == ["as it is", "the same, anew for each clone"]
            write_archetype_run(tmp_path, f"{base}_steps", [0.6] * 45, **MODELS)
            _, rows = build_report(runs_dir).tables["causes"]
        assert [(row[0], row[2]) for row in rows][2:] == [
            ("the same, anew for each clone", f"{100 * anew:.2f} (+{100 * anew - 50:.2f}*)"),
            ("the same, anew for each clone, beside: rate 0.1, tenfold down after round 25", beside),
        ]


def test_the_table_of_causes_has_those_that_were_run(write_seeds, tmp_path, write_archetype_run, build_report):
    runs_dir = write_seeds("fedcd_cifar10_hierarchical_cpu", lambda seed: [0.5 + 0.01 * seed] * 45, **MODELS)
    assert "causes" not in build_report(runs_dir).tables
    write_archetype_run(tmp_path, "fedcd_cifar10_hierarchical_cpu_steps", [0.53] * 45, **MODELS)
    report = build_report(runs_dir)
    columns, rows = report.tables["causes"]
    assert [row[:3] for row in rows] == [
        ["as it is", "0, 1, 2", "51.00"],
        ["rate 0.1, tenfold down after round 25", "0", "53.00 (+3.00*)"],
    ]
    (legend,) = [row for row in report.tables["legend"].rows if row[0] == "causes"]
    assert columns[2] == "last" and legend[2].startswith("Exploratory")


def test_the_table_of_cohorts_is_of_fedavg(write_seeds, tmp_path, write_archetype_run, build_report):
    """As it is, devices swing by 10 points a round; with as many of each archetype by 1, a difference of -9."""
    base = "fedavg_cifar10_hierarchical_cpu"
    runs_dir = write_seeds(base, lambda seed: [0.4 + 0.01 * seed] * 45, swing=0.1)
    assert "cohorts" not in build_report(runs_dir).tables
    write_archetype_run(tmp_path, f"{base}_stratified", [0.4] * 45, swing=0.01)
    columns, rows = build_report(runs_dir).tables["cohorts"]
    assert [row[0] for row in rows] == ["as it is", "as many devices of each archetype in a round, or one more"]
    assert rows[1][columns.index("last")].startswith("40.00 (+0.00") and "models left" not in columns


@pytest.mark.parametrize(("sign", "draw"), [(1, "1.00"), (-1, "-1.00")])
def test_the_draw_and_the_accuracy_after_it(
    sign, draw, write_seeds, write_archetype_run, tmp_path, set_column, build_report
):
    """A point for each device of archetypes 0 to 4, the first 15 of 30, that is in the cohort; or a point less."""
    base = "fedavg_cifar10_hierarchical_cpu"
    write_seeds(base, lambda seed: [0.4] * 45, range(1))
    write_archetype_run(tmp_path, f"{base}_even", [0.4] * 45)
    drawn = [np.sum(sample_cohort(30, 15, "fixed", 0, r) < 15) for r in range(1, 46)]
    assert min(drawn) < 6 and max(drawn) > 9
    for archetype in range(5):
        values = [0.4 + 0.01 * sign * number for number in drawn]
        for experiment in (base, f"{base}_even"):
            set_column(experiment, 0, f"archetype_{archetype}_accuracy", values)
    columns, rows = build_report(tmp_path).tables["cohorts"]
    assert [row[columns.index("draw")] for row in rows] == [draw, ""], "ten of 20 are always of 0 to 4"
