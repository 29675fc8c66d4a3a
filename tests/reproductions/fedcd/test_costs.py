"""Seconds and megabytes to convergence, where runs end before it as well: made-up runs, easy by hand."""

import math

import pandas as pd
import pytest

from reproductions.fedcd.tables import is_decided

FEDCD_CPU, FEDAVG_CPU = "fedcd_cifar10_hierarchical_cpu", "fedavg_cifar10_hierarchical_cpu"
MEDIUM = "cifar10_hierarchical_authors"
MODELS = {"live_models": 6, "active_models": 40, "max_active_models": 2, "preferred_models": 2, "score_deviation": 0.02}


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
    stopped = "FedAvg stopped after 60 rounds"
    assert read_table_1(report, "authors") == [
        f"< 0.47, {stopped}; < 0.50, {stopped}; < 0.53, {stopped}",
        *[f"< 0.23, {stopped}; < 0.25, {stopped}; < 0.27, {stopped}"] * 2,
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
    assert ratios[0] == "0.58; < 0.09, FedAvg stopped after 150 rounds; > 2.50, FedCD stopped after 60 rounds"
    assert ratios[3:5] == ["14, 14, > 60", "24, > 150, 24"]
