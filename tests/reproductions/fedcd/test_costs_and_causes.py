"""The authors' printed run, what runs cost, and what moves FedCD: made-up runs with numbers that are easy by hand."""

import math

import numpy as np
import pandas as pd
import pytest

from reproductions.engine.counted_runs import collect_runs
from reproductions.fedcd.claims import CLAIMS, FURTHER
from reproductions.fedcd.measures import COMPARED_ROUNDS, find_place, measure, measure_preferences, read_authors_run
from reproductions.fedcd.tables import PER_ROUND, compare_with_base, is_decided, list_findings, tabulate_authors_run
from tff_algos.client.cohort_draw import sample_cohort

FEDCD_CPU, FEDAVG_CPU = "fedcd_cifar10_hierarchical_cpu", "fedavg_cifar10_hierarchical_cpu"
MODELS = {"live_models": 6, "active_models": 40, "max_active_models": 2, "preferred_models": 2, "score_deviation": 0.02}


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


def test_the_authors_printed_run_by_the_rules_of_the_report():
    rounds = pd.DataFrame.from_dict(read_authors_run().rounds, orient="index").mul(100).round(1)
    accuracies, changes = {5: 56.2, 10: 69.7, 30: 91.0, 45: 92.1, 53: 92.6}, {5: 13.3, 10: 5.4, 30: 1.3, 45: 1.0}
    assert rounds.client_test_accuracy[[*accuracies]].to_dict() == accuracies
    assert rounds.client_accuracy_change[[*changes]].to_dict() == changes
    (row,) = tabulate_authors_run().records
    assert (row["rounds"], row["converges at round"], row["last change"]) == ("53", "29", "1.36")
    assert float(row["swing of a meta-archetype"]) == pytest.approx(1.3, abs=0.05)


def test_costs_by_hand(tmp_path, write_archetype_run, set_column):
    """5 MB and 2 s a round, and 0.5 s of evaluation: a fifth of both.

    Rounds 51 to 60 of 60 are the late ones: seven changes of 4 points, three of none. Of the last ten that are
    compared, 36 to 45, eight have changes of 4 points; of rounds 10 to 45 33 of 36 have.
    """
    models = MODELS | {"live_models": [8] * 45 + [5] * 15, "preferred_models": [4] * 59 + [3]}
    rates = {"learning_rate_mean": [0.1] * 53 + [0.01] * 7}  # of rounds 51 to 60 three at the first
    experiment, settings = "fedcd_cifar10_hierarchical_authors", {"round_s": 2, "evaluation_s": 0.5}
    write_archetype_run(tmp_path, experiment, [0.5] * 60, **settings, **models, **rates)
    calm = (1, 35, 36, 45, 52, 55, 60)
    set_column(experiment, 0, "client_accuracy_change", [0.04 * (r not in calm) for r in range(1, 61)])
    measured = measure(collect_runs(tmp_path)[0][0])
    expected = {"mb_per_round": 5, "s_per_round": 2, "evaluation_share": 20, "late_rate": 37, "late_change": 2.8}
    expected |= {"last_change": 3.2, "change": 4 * 33 / 36, "live_models": 8, "end_live_models": 5}
    expected |= {"preferred_models": 4, "end_preferred_models": 3}
    assert {name: measured[name] for name in expected} == pytest.approx(expected)


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


BASE = {0: 10.0, 1: 12.0, 2: 14.0}  # deviation 2


@pytest.mark.parametrize(
    ("values", "base", "text"),
    [
        ({0: 15.0}, BASE, "15.00 (+5.00*)"),
        ({0: 14.0}, BASE, "14.00 (+4.00)"),
        ({0: 5.0, 1: 6.0}, BASE, "5.50 (-5.50*)"),
        ({0: math.inf}, BASE, "never"),
        ({0: math.inf, 1: 33.0}, BASE, "never in 1 of 2"),
        ({0: 15.0}, {0: math.inf, 1: 12.0}, "15.00"),
        ({0: math.inf, 1: 33.0}, {0: math.inf, 1: 30.0}, "never in 1 of 2"),  # not 3 of one seed
        ({3: 15.0}, BASE, "15.00"),  # no seed of both
        ({}, BASE, ""),
    ],
)
def test_a_cause_counts_beyond_twice_the_deviation_of_the_runs_without_it(values, base, text):
    assert compare_with_base(*(pd.Series(each, dtype=float) for each in (values, base, BASE))) == text


def test_one_run_without_a_cause_has_no_deviation():
    assert compare_with_base(*(pd.Series({0: each}) for each in (15.0, 10.0, 10.0))) == "15.00 (+5.00)"


def test_anew_is_compared_with_the_same_steps_shared_too(write_seeds, tmp_path, write_archetype_run, build_report):
    """The runs as they are: 50, 51 and 52, deviation 1. Steps 60; anew 61.5, which is 1.5 more, or 63, which is 3."""
    runs_dir = write_seeds(FEDCD_CPU, lambda seed: [0.5 + 0.01 * seed] * 45, **MODELS)

    def list_rows(**causes):
        for cause, accuracy in causes.items():
            write_archetype_run(tmp_path, f"{FEDCD_CPU}_{cause}", [accuracy] * 45, **MODELS)
        return [row[:3] for row in build_report(runs_dir).tables["causes"].rows]

    base, steps = ["as it is", "0, 1, 2", "51.00"], ["rate 0.1, tenfold down after round 25", "0", "60.00 (+10.00*)"]
    anew = "the same, anew for each clone"
    assert list_rows(steps_anew=0.615) == [base, [anew, "0", "61.50 (+11.50*)"]]
    shown = {0.615: ("61.50 (+11.50*)", "61.50 (+1.50)"), 0.63: ("63.00 (+13.00*)", "63.00 (+3.00*)")}
    for accuracy, (own, beside) in shown.items():
        expected = [base, steps, [anew, "0", own], [f"{anew}, beside: {steps[0]}", "0", beside]]
        assert list_rows(steps=0.6, steps_anew=accuracy) == expected


def test_the_table_of_cohorts_is_of_fedavg(write_seeds, tmp_path, write_archetype_run, build_report):
    """As it is, devices swing by 10 points a round; with as many of each archetype by 1, a difference of -9."""
    runs_dir = write_seeds(FEDAVG_CPU, lambda seed: [0.4 + 0.01 * seed] * 45, swing=0.1)
    assert not {"cohorts", "causes"} & build_report(runs_dir).tables.keys()
    write_archetype_run(tmp_path, f"{FEDAVG_CPU}_stratified", [0.4] * 45, swing=0.01)
    _, row = build_report(runs_dir).tables["cohorts"].records
    assert row["what differs"] == "as many devices of each archetype in a round, or one more"
    assert row["last"].startswith("40.00 (+0.00") and "models left" not in row


@pytest.mark.parametrize(("sign", "draw"), [(1, "1.00"), (-1, "-1.00")])
def test_the_draw_and_the_accuracy_after_it(
    sign, draw, write_seeds, write_archetype_run, tmp_path, set_column, build_report
):
    """A point for each device of archetypes 0 to 4, the first 15 of 30, that is in the cohort; or a point less."""
    write_seeds(FEDAVG_CPU, lambda seed: [0.4] * 45, range(1))
    write_archetype_run(tmp_path, f"{FEDAVG_CPU}_even", [0.4] * 45)
    drawn = [np.sum(sample_cohort(30, 15, "fixed", 0, r) < 15) for r in range(1, 46)]
    assert min(drawn) < 6 and max(drawn) > 9
    for archetype in range(5):
        values = [0.4 + 0.01 * sign * number for number in drawn]
        for experiment in (FEDAVG_CPU, f"{FEDAVG_CPU}_even"):
            set_column(experiment, 0, f"archetype_{archetype}_accuracy", values)
    columns, rows = build_report(tmp_path).tables["cohorts"]
    assert [row[columns.index("draw")] for row in rows] == [draw, ""], "ten of 20 are always of 0 to 4"


MEDIUM = "cifar10_hierarchical_authors"


def read_table_1(report, size):
    """Ours of hierarchical archetypes: ratios real, virtual, bytes; seconds FedCD, FedAvg; megabytes FedCD, FedAvg."""
    _, rows = report.tables[f"{size}_table_1"]
    (row,) = [row for row in rows if row[:2] == ["hierarchical", "ours"]]
    return row[5:]


def jump(first, length):
    """Accuracies that jump by 30 points in a round, without swings: converged four rounds later."""
    return [0.3] * (first - 1) + [0.6] * (length + 1 - first)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((10, 5, True), (20, 8, True), True),
        ((10, 45, False), (20, 60, False), False),
        ((10, 5, True), (20, 60, False), True),
        ((20, 5, True), (20, 60, False), False),  # the other may take 20.1 or 200
        ((10, 61, True), (20, 60, False), False),  # beyond the rounds of the other
        ((10, 60, True), (20, 60, False), True),
        ((20, 40, False), (10, 40, True), True),  # FedAvg alone
        ((20, 40, False), (10, 41, True), False),
        ((30, 45, True), (20, 300, False, True), True),  # as in the paper, 300 rounds count
        ((30, 310, False), (20, 300, False, True), False),
    ],
)
def test_which_costs_decide(first, second, expected):
    """Each run is (seconds, the round by whose end it spent them, whether it converged, whether it counts as if)."""
    runs = []
    for seconds, until, has_converged, *is_capped in (first, second):
        cost = {"real_s": seconds, "spent_until": until, "convergence": until if has_converged else math.inf}
        runs.append(pd.DataFrame([cost | {"is_exact": has_converged or bool(is_capped)}]))
    assert [is_decided(*each, "real_s").tolist() for each in (runs, runs[::-1])] == [[expected]] * 2


def test_where_fedavg_stops_early_its_rounds_are_a_bound(write_seeds, build_report, find_claim):
    """FedCD converges in round 14, 15 or 16, of 2 s, and FedAvg not in 60 of 1 s: 28 / 60, 30 / 60 and 32 / 60."""
    write_seeds(f"fedcd_{MEDIUM}", lambda seed: jump(10 + seed, 60), round_s=2, dataset="cifar10", **MODELS)
    runs_dir = write_seeds(f"fedavg_{MEDIUM}", [0.4] * 60, swing=0.1, dataset="cifar10")
    report = build_report(runs_dir)
    assert read_table_1(report, "authors") == [
        "< 0.47, < 0.50, < 0.53",
        *["< 0.23, < 0.25, < 0.27"] * 2,
        "28, 30, 32",
        "> 60, > 60, > 60",
        "70, 75, 80",
        "> 300, > 300, > 300",
    ]
    row = find_claim(report, "wall-clock time", "hierarchical")
    # -32, -30 and -28 s, or more: 4.303 * 2 / sqrt(3) either side.
    assert (row["authors"], row["authors_numbers"]) == (
        "reproduced",
        "time to convergence: FedCD 30.00, FedAvg 60.00: -30.00 [-34.97, -25.03], n = 3",
    )


def test_seeds_that_end_differently_stand_one_by_one(write_seeds, write_archetype_run, tmp_path, build_report):
    """FedCD converges in round 14 of 60, and in seed 2 not; FedAvg in round 24, and not in seed 1 (150 rounds)."""
    write_seeds(f"fedcd_{MEDIUM}", jump(10, 60), swing=lambda seed: 0.1 * (seed == 2), dataset="cifar10", **MODELS)
    write_seeds(f"fedavg_{MEDIUM}", jump(20, 60), dataset="cifar10")
    write_archetype_run(tmp_path, f"fedavg_{MEDIUM}_150rounds", [0.4] * 150, 1, swing=0.1, dataset="cifar10")
    ratios = read_table_1(build_report(tmp_path), "authors")
    assert ratios[0] == "0.58, < 0.09, > 2.50"
    assert ratios[3:5] == ["14, 14, > 60", "24, > 150, 24"]


def lay_out(models):
    """The models of 30 devices, of which the first three are given."""
    return [*models, *[7] * 27]


@pytest.mark.parametrize(
    ("first_archetype", "agreement", "returning"),
    [
        ([[0, 0, 0]] * 40, 100, 0),
        ([[0, 0, 1]] * 40, 90, 0),  # one of ten archetypes never agrees
        ([[0, 0, 0]] * 20 + [[4, 4, 4]] * 10 + [[0, 0, 0]] * 10, 100, 1),
        ([[0, 0, 0]] * 20 + [[4, 4, 4]] * 20, 100, 0),  # it leaves and stays away
        ([[0, 0, 0]] * 20 + [[0, 4, 5]] * 10 + [[0, 0, 0]] * 10, 97.5, 0),  # no two agree: still the last
        ([[0, 0, 0]] * 20 + [[4, 4, 0]] * 10 + [[0, 0, 4]] * 10, 95, 1),
    ],
)
def test_agreement_and_return(tmp_path, write_archetype_run, write_preferences, first_archetype, agreement, returning):
    """Rounds 1 to 5, before the first milestone, do not count; nor do those after the 45th."""
    write_preferences(
        write_archetype_run(tmp_path, FEDCD_CPU, [0.5] * 47),
        [
            lay_out(each)
            for each in [[1, 2, 3], [0, 0, 0], [1, 1, 1], [0, 0, 0], [1, 1, 1], *first_archetype, *[[2, 3, 4]] * 2]
        ],
    )
    (run,) = collect_runs(tmp_path)[0]
    assert measure_preferences(run, 45) == pytest.approx({"agreement": agreement, "returning": returning})


def test_a_log_that_is_missing_or_ends_early_says_nothing(tmp_path, write_archetype_run, write_preferences):
    run_dir = write_archetype_run(tmp_path, FEDCD_CPU, [0.5] * 45)
    (run,) = collect_runs(tmp_path)[0]
    assert measure_preferences(run, 45) == {}
    write_preferences(run_dir, [lay_out([0, 0, 0])] * 44)
    assert measure_preferences(run, 45) == {}


def test_ratios_of_what_both_have():
    """Of seed 0 both moved something, FedCD's alone was timed; of seed 1 FedAvg moved nothing; seed 2 is FedCD's."""
    fedcd = {"algo": "fedcd", "seed": [0, 1, 2], "mb_per_round": [6.0, 6.0, 6.0], "s_per_round": 1.0}
    fedavg = {"algo": "fedavg", "seed": [0, 1, 3], "mb_per_round": [2.0, 0.0, 2.0], "s_per_round": math.nan}
    same = {"experiment": "", "preset": "cpu", "dataset": "hierarchical", "setting": "", "data": "", "variant": ""}
    same |= dict.fromkeys(["real_s", "virtual_s", "megabytes", "last_mb_per_round"], math.nan)
    same |= {"convergence": 14.0, "spent_until": 14, "is_exact": True}
    frame = pd.concat([pd.DataFrame(each | same) for each in (fedcd, fedavg)], ignore_index=True)
    found = list_findings(frame)["cpu"]
    ratios = {(cell.algo, cell.metric): by_seed for cell, by_seed in found.items() if cell.metric.endswith("_ratio")}
    assert ratios == {("fedcd", "mb_per_round_ratio"): {0: 3.0}}
