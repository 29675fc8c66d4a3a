"""The tables of AMFL-P, from made-up runs whose means can be worked out by hand."""

import math

import pytest

from launch.papers.amfl_p.claims import ACCURACY, LAST_ROUND, ROUNDS, STEPS, make_cell
from launch.papers.amfl_p.figure import draw_amfl_p_figure
from launch.papers.amfl_p.report import build_amfl_p_report, compute_results, list_printed_values
from launch.papers.engine.collection import summarize_results
from launch.papers.engine.judge import decide_further
from launch.papers.registry import PAPERS
from launch.plots.resource_plots import compute_bin_means, draw_personal
from launch.report import collect_runs
from launch.runs.run_records import find_flagfile, resolve_flagfile
from launch.runs.tables import write_json, write_table
from launch.runs.task_columns import find_task_columns
from launch.settings.run_config import flag_values

PAPER = PAPERS["amfl_p"]
POOLED = {"low": {0: 0.9}, "medium": {0: 0.8, 1: 0.84, 2: 0.82}, "high": {0: 0.7}}


def write_run(runs_dir, experiment, seed, accuracy, rounds=LAST_ROUND, steps=None):
    """A run evaluated every 5 rounds, whose accuracy rises in a line to `accuracy` in its last round."""
    config = resolve_flagfile(find_flagfile(experiment), [f"--seed={seed}"])
    run_dir = runs_dir / experiment / f"seed_{seed}"
    write_json(run_dir / "config.json", {"flags": flag_values(config)})
    rows = []
    for round_num in range(1, rounds + 1):
        reached = f"{accuracy * round_num / rounds}" if round_num % 5 == 0 else ""
        rows.append([str(round_num), reached, *([str(steps)] if steps else [])])
    write_table(run_dir / "metrics.csv", ["round", ACCURACY, *(["mean_fine_tuning_steps"] if steps else [])], rows)
    columns = ("client", "accuracy", "resource", "fine_tuning_steps")
    clients = [[f"client_{i}", str(accuracy), str(i / 10), str(10 * i)] for i in range(1, 11)]
    write_table(run_dir / "clients.csv", columns, clients)
    return run_dir


@pytest.fixture
def runs(tmp_path):
    """At medium: AMFL-P 0.78 and 0.82, Fine-Tuning 0.80, FedAvg 0.60, all tuned."""
    write_run(tmp_path, "start_maml_resources_building_medium", 0, 0.78, steps=55.0)
    write_run(tmp_path, "start_maml_resources_building_medium", 1, 0.82, steps=57.0)
    write_run(tmp_path, "start_fedavg_same_building_medium", 0, 0.80)
    write_run(tmp_path, "fedavg_alone_building_medium", 0, 0.60)
    write_run(tmp_path, "fedavg_alone_building_high", 0, 0.60, rounds=10)
    return collect_runs(tmp_path)[0]


def rows_of(report, table):
    columns, rows = report.tables[table]
    return [dict(zip(columns, row, strict=True)) for row in rows]


def test_results_are_means_over_the_seeds_of_whole_runs(runs):
    tuned = summarize_results(compute_results(runs, POOLED))["tuned"]
    assert tuned[make_cell("amfl_p")].mean == pytest.approx(0.80)
    assert tuned[make_cell("amfl_p")].deviation == pytest.approx(0.04 / 2**0.5)
    assert make_cell("fedavg", "high") not in tuned  # ended after 10 rounds


def test_rounds_to_the_target_are_those_of_the_first_evaluation_that_reaches_it(runs):
    """0.78 r / 50 is 0.75 from r = 48.1 on, so 50; 0.82 r / 50 from r = 45.7 on, so 50; FedAvg never gets there."""
    tuned = compute_results(runs, POOLED)["tuned"]
    assert tuned[make_cell("amfl_p", metric=ROUNDS)] == {0: 50, 1: 50}
    assert tuned[make_cell("fedavg", metric=ROUNDS)] == {0: math.inf}


def test_rounds_after_the_last_one_do_not_count(tmp_path):
    """0.8 r / 60 is 0.75 from r = 56.3 on."""
    write_run(tmp_path, "fedavg_building_medium", 0, 0.80, rounds=60)
    results = compute_results(collect_runs(tmp_path)[0], {})
    assert results["printed"][make_cell("fedavg", metric=ROUNDS)] == {0: math.inf}


def test_steps_are_measured_for_amfl_p_and_set_for_fine_tuning(runs):
    tuned = compute_results(runs, POOLED)["tuned"]
    steps = [tuned[make_cell(algo, metric=STEPS)] for algo in ("amfl_p", "fine_tuning", "fedavg")]
    assert steps == [{0: 55, 1: 57}, {0: 100}, {0: 0}]


def test_the_pooled_reference_is_a_result_of_each_seed(runs):
    results = compute_results(runs, POOLED)
    assert results["printed"][make_cell("pooled_reference")] == POOLED["medium"]


def test_table_1_has_the_printed_values_beside_ours(runs):
    rows = rows_of(build_amfl_p_report(PAPER, runs, POOLED), "table_1")
    cells = {(row["algorithm"], row["source"]): row for row in rows}
    assert cells["AMFL-P", "printed"]["accuracy"] == "88.70"
    assert cells["AMFL-P", "printed"]["mean fine-tuning steps"] == "65.00"
    assert cells["FedAvg", "printed"]["mean fine-tuning steps"] == ""
    assert cells["AMFL-P", "ours, tuned"]["accuracy"] == "80.00 ± 2.83"
    assert cells["AMFL-P", "ours, tuned"]["seeds"] == "2"
    assert cells["FedAvg", "ours, tuned"]["rounds to target"] == f"> {LAST_ROUND} in 1 of 1"
    assert cells["AMFL-P", "ours, paper's rates"]["accuracy"] == "not run"
    assert ("local training", "printed") not in cells


def test_the_gap_to_the_pooled_reference_is_taken_within_a_seed(runs):
    """Seed 0: reference 0.80, FedAvg 0.60, AMFL-P 0.78, Fine-Tuning 0.80; seed 1 has AMFL-P alone."""
    low, medium, high = rows_of(build_amfl_p_report(PAPER, runs, POOLED), "pooled_reference")
    assert list(medium.values()) == ["medium", "20.00", "90%", "-2.00", "not run", "40.34 ± 0.97"]
    assert list(low.values())[1:5] == list(high.values())[1:5] == ["not run"] * 4


def test_the_majority_class_stands_in_both_tables(runs):
    report = build_amfl_p_report(PAPER, runs, POOLED)
    assert rows_of(report, "table_1")[-1] == {
        "algorithm": "majority class",
        "source": "data",
        "seeds": "20",
        "accuracy": "40.34 ± 0.97",
        "rounds to target": "",
        "mean fine-tuning steps": "",
    }
    assert rows_of(report, "table_2")[-2]["medium"] == "40.34 ± 0.97"


@pytest.fixture
def three_seeds(tmp_path):
    """Three buildings that differ: tuned AMFL-P leads FedAvg by 18 to 20 points, Fine-Tuning by -1 to 1.

    With the paper's rates, AMFL-P has runs and nothing else has.
    """
    for seed, moved in enumerate((-0.05, 0.0, 0.05)):
        write_run(tmp_path, "start_maml_resources_building_medium", seed, 0.76 + 1.2 * moved, steps=55.0)
        write_run(tmp_path, "start_fedavg_same_building_medium", seed, 0.76 + moved)
        write_run(tmp_path, "fedavg_alone_building_medium", seed, 0.57 + moved)
        write_run(tmp_path, "local_training_building_medium", seed, 0.70 + 1.1 * moved)
        write_run(tmp_path, "amfl_p_building_medium", seed, 0.4, steps=55.0)
    return collect_runs(tmp_path)[0]


def read_claims(runs):
    rows = rows_of(build_amfl_p_report(PAPER, runs, POOLED), "claims")
    return {row["claim"].split('"')[1]: row for row in rows}


def test_claims_are_decided_by_runs_of_one_building_and_one_preset(three_seeds):
    claims = read_claims(three_seeds)
    both = claims["AMFL-P outperforms both FedAvg and Fine-Tuning in terms of accuracy"]
    assert (both["printed_tables"], both["printed"], both["tuned"]) == ("agree", "not run", "undecided")
    assert both["tuned_numbers"].startswith("1 of 2 comparisons open: medium: AMFL-P 76.00 %, Fine-Tuning 76.00 %")
    fedavg = claims[
        "compared to traditional Federated Averaging (FedAvg), AMFL-P achieves significantly higher accuracy"
    ]
    assert fedavg["tuned"] == "reproduced"
    assert fedavg["tuned_numbers"] == "medium: AMFL-P 76.00 %, FedAvg 57.00 %: +19.00 [+16.52, +21.48], n = 3"


def test_rounds_that_some_runs_never_reach_are_compared_by_signs(three_seeds):
    """AMFL-P and Fine-Tuning get to 75 % in the second and third building, FedAvg in none."""
    row = read_claims(three_seeds)["AMFL-P also converges faster than the other algorithms"]
    assert row["tuned"] == "undecided"
    assert "FedAvg never, AMFL-P 50: 2 of 2 seeds on the claimed side, 1 tie" in row["tuned_numbers"]
    table = rows_of(build_amfl_p_report(PAPER, three_seeds, POOLED), "table_1")
    rounds = {row["algorithm"]: row["rounds to target"] for row in table if row["source"] == "ours, tuned"}
    assert rounds["AMFL-P"] == "median 50; > 50 in 1 of 3" and rounds["FedAvg"] == "> 50 in 3 of 3"


def test_fewer_steps_follow_from_the_algorithm_and_their_mean_from_the_law_of_resources(three_seeds):
    row = read_claims(three_seeds)["AMFL-P achieves better resource utilization than Fine-Tuning"]
    assert (row["printed"], row["tuned"]) == ("by construction", "by construction")
    assert "Fine-Tuning 100.00, AMFL-P 55.00" in row["tuned_numbers"]
    report = build_amfl_p_report(PAPER, three_seeds, POOLED)
    assert "AMFL-P is 65" in report.markdown.split("## Tables")[0].split("## Claims that no run can decide")[1]
    assert "| ours, tuned | 1 | 0 | 3 | 1 | 5 |" in report.markdown


def test_what_was_aimed_at_is_compared_seed_by_seed(three_seeds):
    """The pooled reference is 0.80, 0.84, 0.82: above FedAvg by 28, 27, 20 points, whose half AMFL-P passes."""
    rows = rows_of(build_amfl_p_report(PAPER, three_seeds, POOLED), "further")
    tuned = {row["comparison"].removeprefix("medium heterogeneity: "): row for row in rows if "tuned" in row["runs"]}
    gap = tuned["FedAvg is 10 points or more below the pooled reference"]
    assert gap["numbers"].startswith("medium: pooled reference 82.00 %, FedAvg 57.00 %: +25.00 [")
    half = tuned["AMFL-P closes half of that gap or more"]
    # 0.70, 0.76, 0.82 minus the middles 0.66, 0.705, 0.72
    assert "minus the middle between FedAvg 57.00 % and pooled reference 82.00 %: +6.50 [" in half["numbers"]
    assert tuned["AMFL-P is at most 1 point behind Fine-Tuning"]["verdict"] == "undecided"
    assert tuned["AMFL-P is ahead of local training"]["verdict"] == "yes"


@pytest.mark.parametrize(
    ("text", "amfl_p", "fedavg", "verdict"),
    [
        ("FedAvg is 10 points or more below the pooled reference", 0.0, -0.15, "yes"),
        ("FedAvg is 10 points or more below the pooled reference", 0.0, -0.10, "yes"),
        ("FedAvg is 10 points or more below the pooled reference", 0.0, -0.09, "no"),
        ("AMFL-P closes half of that gap or more", 0.0, -0.10, "yes"),
        ("AMFL-P closes half of that gap or more", -0.01, -0.10, "no"),
        ("AMFL-P is at most 1 point behind Fine-Tuning", 0.0, 0.0, "yes"),
        ("AMFL-P is at most 1 point behind Fine-Tuning", -0.01, 0.0, "yes"),
        ("AMFL-P is at most 1 point behind Fine-Tuning", -0.015, 0.0, "no"),
    ],
)
def test_the_bounds_of_our_comparisons(text, amfl_p, fedavg, verdict):
    """Beside a Fine-Tuning of 70, 75 and 80 %, and a pooled reference that is 5 points above it."""
    moved = {"amfl_p": amfl_p, "fine_tuning": 0.0, "fedavg": fedavg + 0.05, "pooled_reference": 0.05}
    values = {make_cell(algo): {seed: 0.7 + 0.05 * seed + by for seed in range(3)} for algo, by in moved.items()}
    (claim,) = [claim for claim in PAPER.further if claim.text.endswith(text)]
    assert decide_further([claim], values)[0].verdict == verdict


def test_other_runs_do_not_count(tmp_path):
    write_run(tmp_path, "fedavg_mnist_alpha0.1", 0, 0.5)
    assert PAPER.build_report(collect_runs(tmp_path)[0]).runs == []


def test_the_printed_table_is_that_of_the_paper():
    printed = {value.cell: value.value for value in list_printed_values(PAPER.read_printed_rows())}
    assert printed[make_cell("fine_tuning")] == 0.825
    assert len(printed) == 8  # FedAvg has no fine-tuning steps


def test_bins_are_of_equal_size_and_in_order():
    places, values = compute_bin_means([3, 1, 2, 4, 5], [30.0, 10.0, float("nan"), 40.0, 50.0], 2)
    assert places.tolist() == [2, 4.5]  # 1 and 3, 4 and 5; the place with no value is left out
    assert values.tolist() == [20, 45]


def test_figures_are_drawn(runs, tmp_path):
    import numpy as np

    assert draw_amfl_p_figure(runs, tmp_path).stat().st_size > 10_000
    assert draw_amfl_p_figure([], tmp_path).exists()
    clients = {name: np.linspace(0.1, 1, 20) for name in ("accuracy", "resource", "fine_tuning_steps")}
    task = find_task_columns("classification")
    assert draw_personal(clients, task, "AMFL-P", tmp_path / "personal.png").stat().st_size > 5_000
