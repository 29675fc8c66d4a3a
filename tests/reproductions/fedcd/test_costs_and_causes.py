"""The authors' printed run, what runs cost, and what moves FedCD: made-up runs with numbers that are easy by hand."""

import math

import numpy as np
import pandas as pd
import pytest

from reproductions.engine.counted_runs import collect_runs
from reproductions.fedcd.claims import CLAIMS, FURTHER
from reproductions.fedcd.measures import COMPARED_ROUNDS, find_place, measure, read_authors_run
from reproductions.fedcd.tables import PER_ROUND, compare_with_base, tabulate_authors_run
from tff_algos.client.cohort_draw import sample_cohort

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


def test_when_archetypes_settle_by_hand(tmp_path, write_archetype_run, set_column):
    """The outer ones jump by 20 points in round 30, of which the five-round mean is rid in 34; archetype 1 swings."""
    experiment = "fedcd_cifar10_hypergeometric_cpu"
    write_archetype_run(tmp_path, experiment, [0.5] * 80, **MODELS)
    for archetype, values in ((0, [0.3] * 29 + [0.5] * 51), (5, [0.3] * 29 + [0.5] * 51), (1, [0.3, 0.7] * 40)):
        set_column(experiment, 0, f"archetype_{archetype}_accuracy", values)
    (run,) = collect_runs(tmp_path)[0]
    expected = {"convergence_central": 1, "convergence_outer": 34, "convergence_archetype_1": math.inf, "converged": 5}
    expected |= {"outer": 50, "archetype_1": 50}
    measured = measure(run)
    assert {name: measured[name] for name in expected} == pytest.approx(expected) and "separation" not in measured


def test_every_metric_of_a_claim_is_measured(tmp_path, write_archetype_run, write_preferences):
    """A claim on a metric that no run has would be "not run" for ever."""
    steady, measured = MODELS | {"learning_rate_mean": 0.1}, {}
    for partition in COMPARED_ROUNDS:
        run_dir = write_archetype_run(tmp_path, f"fedcd_cifar10_{partition}_cpu", [0.5] * 80, **steady)
        write_preferences(run_dir, [[0] * 30] * 80)
        write_archetype_run(tmp_path, f"fedavg_cifar10_{partition}_cpu_300rounds", [0.4] * 300)
    for run in collect_runs(tmp_path)[0]:
        place = find_place(run.experiment)
        ratios = [f"{name}_ratio" for name in PER_ROUND] if place.algo == "fedcd" else []
        measured[place.dataset, place.algo] = {*measure(run), *ratios}
    cells = {cell for claim in (*CLAIMS, *FURTHER) for each in claim.conditions for cell in each.cells}
    assert [cell for cell in cells if cell.metric not in measured[cell.dataset, cell.algo]] == []


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
