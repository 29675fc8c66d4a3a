"""The authors' printed run, what runs cost, and what moves FedCD: made-up runs with numbers that are easy by hand."""

import math

import pytest

from launch.report import collect_runs
from launch.reports.fedcd.authors_run import measure_authors_run, read_authors_run
from launch.reports.fedcd.causes import compare_with_base
from launch.reports.fedcd.measures import measure
from launch.reports.registry import PAPERS

SMALL = "cifar10_hierarchical_authors_small"
MODELS = {"live_models": 6, "active_models": 40, "max_active_models": 2, "preferred_models": 2, "score_deviation": 0.02}


@pytest.fixture
def write_seeds(tmp_path, write_archetype_run):
    """(experiment, accuracies of a seed, ...) writes it with seeds 0 to 2; returns the folder of all."""

    def write(experiment, accuracies, **settings):
        for seed in range(3):
            of_seed = {name: value(seed) if callable(value) else value for name, value in settings.items()}
            write_archetype_run(tmp_path, experiment, accuracies(seed), seed, **of_seed)
        return tmp_path

    return write


def build_report(runs_dir):
    return PAPERS["fedcd"].build_report(collect_runs(runs_dir)[0])


def find_claim(report, words):
    columns, rows = report.tables["claims"]
    (row,) = [row for row in (dict(zip(columns, each, strict=True)) for each in rows) if words in row["claim"]]
    return row


def test_the_authors_printed_run_by_the_rules_of_the_report():
    run = read_authors_run()
    assert (len(run.devices), {len(row) for row in run.devices}) == (53, {30})
    assert [round(run.accuracies[r - 1], 1) for r in (5, 10, 30, 45, 53)] == [56.2, 69.7, 91.0, 92.1, 92.6]
    assert [round(run.changes[r - 1], 1) for r in (5, 10, 30, 45)] == [13.3, 5.4, 1.3, 1.0]
    measured = measure_authors_run()
    assert measured["convergence"] == 29
    assert measured["swing"] == pytest.approx(1.3, abs=0.05)
    assert measured["last_change"] == pytest.approx(1.358)


def test_costs_by_hand(tmp_path, write_archetype_run):
    """5 MB and 2 s a round. Rounds 51 to 60 of 60 are the late ones: seven changes of 4 points, three of none.

    Of the last ten that are compared, 36 to 45, eight have changes of 4 points; of rounds 10 to 45 33 of 36 have.
    """
    models = MODELS | {"live_models": [8] * 45 + [5] * 15, "preferred_models": [4] * 59 + [3]}
    run_dir = write_archetype_run(
        tmp_path, "fedcd_cifar10_hierarchical_authors", [0.5] * 60, round_s=2, swing=0.02, **models
    )
    lines = (run_dir / "metrics.csv").read_text().splitlines()
    place = lines[0].split(",").index("client_accuracy_change")
    for r in (35, 36, 45, 52, 55, 60):
        cells = lines[r].split(",")
        lines[r] = ",".join([*cells[:place], "0", *cells[place + 1 :]])
    (run_dir / "metrics.csv").write_text("\n".join(lines) + "\n")
    (run,) = collect_runs(tmp_path)[0]
    measured = {each.metric: value for each, value in measure(run).items()}
    assert (measured["mb_per_round"], measured["s_per_round"]) == (5, 2)
    assert measured["late_change"] == pytest.approx(2.8)
    assert measured["last_change"] == pytest.approx(3.2)
    assert measured["change"] == pytest.approx(4 * 33 / 36)
    assert (measured["live_models"], measured["end_live_models"]) == (8, 5)
    assert (measured["preferred_models"], measured["end_preferred_models"]) == (4, 3)


@pytest.mark.parametrize(
    ("central", "outer", "verdict"),
    [(1, 30, "undecided"), (30, 30, "undecided")],
)
def test_fedavg_on_central_archetypes(tmp_path, write_archetype_run, central, outer, verdict):
    """One seed decides nothing; the numbers show the rounds: a group that jumps in round 25 settles in round 29."""
    run_dir = write_archetype_run(tmp_path, "fedavg_cifar10_hypergeometric_cpu", [0.5] * 80)
    lines = [line.split(",") for line in (run_dir / "metrics.csv").read_text().splitlines()]
    for archetypes, first in (((2, 3), central), ((0, 5), outer)):
        for archetype in archetypes:
            place = lines[0].index(f"archetype_{archetype}_accuracy")
            for r in range(1, 81):
                lines[r][place] = "0.5" if r >= first else "0.3"
    (run_dir / "metrics.csv").write_text("\n".join(map(",".join, lines)) + "\n")
    row = find_claim(build_report(tmp_path), "converges faster on the central archetypes")
    settled = {1: 1, 30: 34}  # the five-round mean of levels is 46 in round 33, and 50 in round 34
    assert (row["cpu"], row["cpu_numbers"]) == (
        verdict,
        f"rounds to convergence: central {settled[central]}, outer {settled[outer]}: 1 seed",
    )


def jump(first):
    """Accuracies that jump by 30 points in a round, without swings: converged four rounds later."""
    return [0.3] * (first - 1) + [0.6] * (46 - first)


@pytest.mark.parametrize(
    ("delays", "verdict"),
    [((0, 1, 2), "reproduced"), ((0, 5, 10), "undecided"), ((11, 12, 13), "not reproduced")],
)
def test_bits_and_the_time_to_convergence(delays, verdict, write_seeds):
    """1 +- 2.48 rounds; 5 +- 12.4; 12 +- 2.48, and with two comparisons 12 +- 3.58."""
    write_seeds(f"fedcd_{SMALL}", lambda seed: jump(10), **MODELS)
    write_seeds(f"fedcd_{SMALL}_4bits", lambda seed: jump(10), **MODELS)
    runs_dir = write_seeds(f"fedcd_{SMALL}_8bits", lambda seed: jump(10 + delays[seed]), **MODELS)
    row = find_claim(build_report(runs_dir), "only slightly impacted the time to convergence")
    assert row["authors_small"] == verdict


@pytest.mark.parametrize(
    ("gaps", "verdict"), [((0, 0.1, 0.2), "reproduced"), ((-1, 0.5, 2), "undecided"), ((5, 6, 7), "not reproduced")]
)
def test_fedavg_and_bits(gaps, verdict, write_seeds):
    write_seeds(f"fedavg_{SMALL}", lambda seed: [0.4] * 45)
    write_seeds(f"fedavg_{SMALL}_4bits", lambda seed: [0.4 + 0.001 * seed] * 45)
    runs_dir = write_seeds(f"fedavg_{SMALL}_8bits", lambda seed: [0.4 + gaps[seed] / 100] * 45)
    assert find_claim(build_report(runs_dir), "similarly insensitive")["authors_small"] == verdict


@pytest.mark.parametrize(
    ("gaps", "verdict"), [((0, 0.1, 0.2), "reproduced"), ((-1, 0.5, 2), "undecided"), ((5, 6, 7), "not reproduced")]
)
def test_later_clonings(gaps, verdict, write_seeds):
    write_seeds(f"fedcd_{SMALL}_1milestone", lambda seed: [0.4] * 45, **MODELS)
    runs_dir = write_seeds(f"fedcd_{SMALL}", lambda seed: [0.4 + gaps[seed] / 100] * 45, **MODELS)
    assert find_claim(build_report(runs_dir), "Subsequent cloning rounds")["authors_small"] == verdict


def test_calm_counts_only_if_fedavg_is_less_calm(write_seeds):
    """Both calm: FedCD swings by 1 point a round, FedAvg by 0.4, so that steps explain it; then FedAvg by 10."""
    write_seeds(f"fedcd_{SMALL}", lambda seed: [0.6] * 45, swing=0.005, **MODELS)
    runs_dir = write_seeds(f"fedavg_{SMALL}", lambda seed: [0.4] * 45, swing=0.002)
    assert find_claim(build_report(runs_dir), "in FedCD stop by round 10")["authors_small"] == "not reproduced"
    write_seeds(f"fedavg_{SMALL}", lambda seed: [0.4] * 45, swing=0.05)
    assert find_claim(build_report(runs_dir), "in FedCD stop by round 10")["authors_small"] == "reproduced"


def test_bytes_to_convergence(write_seeds):
    """FedCD converges in round 14 of 5 MB each; FedAvg, which swings, is capped at 300 rounds."""
    write_seeds(f"fedcd_{SMALL}", lambda seed: jump(10), **MODELS)
    runs_dir = write_seeds("fedavg_cifar10_hierarchical_cpu_300rounds", lambda seed: [0.4] * 300, swing=0.1)
    assert find_claim(build_report(runs_dir), "communication cost\": below FedAvg's, hier")["cpu"] == "not run"
    write_seeds("fedcd_cifar10_hierarchical_cpu", lambda seed: jump(10 + seed), **MODELS)
    row = find_claim(build_report(runs_dir), "communication cost\": below FedAvg's, hier")
    # 14, 15 and 16 rounds of 5 MB: 75 on average, 1,425 fewer, and 4.303 * 5 / sqrt(3) either side.
    assert (row["cpu"], row["cpu_numbers"]) == (
        "reproduced",
        "megabytes to convergence: FedCD 75.00, FedAvg 1500.00: -1425.00 [-1437.42, -1412.58], n = 3",
    )


def test_a_cause_counts_beyond_twice_the_deviation_of_the_runs_without_it():
    base = {0: 10.0, 1: 12.0, 2: 14.0}  # deviation 2
    assert compare_with_base({0: 15.0}, base) == "15.00 (+5.00*)"
    assert compare_with_base({0: 14.0}, base) == "14.00 (+4.00)"
    assert compare_with_base({0: 5.0, 1: 6.0}, base) == "5.50 (-5.50*)"
    assert compare_with_base({0: 15.0}, {0: 10.0}) == "15.00 (+5.00)", "one run has no deviation"
    assert compare_with_base({0: math.inf}, base) == "never"
    assert compare_with_base({0: 15.0}, {0: math.inf, 1: 12.0}) == "15.00"


def test_the_table_of_causes_has_those_that_were_run(write_seeds, tmp_path, write_archetype_run):
    runs_dir = write_seeds("fedcd_cifar10_hierarchical_cpu", lambda seed: [0.5 + 0.01 * seed] * 45, **MODELS)
    assert "causes" not in build_report(runs_dir).tables
    write_archetype_run(tmp_path, "fedcd_cifar10_hierarchical_cpu_steps", [0.53] * 45, **MODELS)
    report = build_report(runs_dir)
    columns, rows = report.tables["causes"]
    assert [row[:3] for row in rows] == [
        ["as it is", "0, 1, 2", "51.00"],
        ["rate 0.1, tenfold down after round 25", "0", "53.00 (+3.00*)"],
    ]
    assert columns[2] == "last" and "Exploratory" in report.markdown
