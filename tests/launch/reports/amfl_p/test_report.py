"""The tables of AMFL-P, from made-up runs whose means can be worked out by hand."""

import dataclasses

import pytest

from launch.plots.resource_plots import compute_bin_means, draw_personal
from launch.report import collect_runs
from launch.reports.amfl_p.claims import ACCURACY, LAST_ROUND, ROUNDS, STEPS, make_cell
from launch.reports.amfl_p.figure import draw_amfl_p_figure
from launch.reports.amfl_p.report import build_amfl_p_report, compute_results, list_printed_values
from launch.reports.registry import PAPERS
from launch.runs.run_records import EXPERIMENTS, resolve_flagfile
from launch.runs.tables import write_json, write_table
from launch.settings.run_config import flag_values

PAPER = PAPERS["amfl_p"]
CEILINGS = {"low": [0.9], "medium": [0.8, 0.84], "high": [0.7]}


def write_run(runs_dir, experiment, seed, accuracy, rounds=LAST_ROUND, steps=None):
    """A run evaluated every 5 rounds, whose accuracy rises in a line to `accuracy` in its last round."""
    config = resolve_flagfile(EXPERIMENTS / f"{experiment}.flags", [f"--seed={seed}"])
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
    write_run(tmp_path, "amfl_p_building_medium_tuned", 0, 0.78, steps=55.0)
    write_run(tmp_path, "amfl_p_building_medium_tuned", 1, 0.82, steps=57.0)
    write_run(tmp_path, "fine_tuning_building_medium_tuned", 0, 0.80)
    write_run(tmp_path, "fedavg_building_medium_tuned", 0, 0.60)
    write_run(tmp_path, "fedavg_building_high_tuned", 0, 0.60, rounds=10)
    return collect_runs(tmp_path)[0]


def rows_of(report, table):
    columns, rows = report.tables[table]
    return [dict(zip(columns, row, strict=True)) for row in rows]


def test_results_are_means_over_the_seeds_of_whole_runs(runs):
    tuned = compute_results(runs)["tuned"]
    assert tuned[make_cell("amfl_p")].mean == pytest.approx(0.80)
    assert tuned[make_cell("amfl_p")].deviation == pytest.approx(0.04 / 2**0.5)
    assert make_cell("fedavg", "high") not in tuned  # ended after 10 rounds


def test_rounds_to_the_target_are_those_of_the_first_evaluation_that_reaches_it(runs):
    """0.78 r / 50 is 0.75 from r = 48.1 on, so 50; 0.82 r / 50 from r = 45.7 on, so 50; FedAvg never gets there."""
    tuned = compute_results(runs)["tuned"]
    assert tuned[make_cell("amfl_p", metric=ROUNDS)].mean == 50
    assert tuned[make_cell("fedavg", metric=ROUNDS)].mean == LAST_ROUND + 1


def test_steps_are_measured_for_amfl_p_and_set_for_fine_tuning(runs):
    tuned = compute_results(runs)["tuned"]
    steps = [tuned[make_cell(algo, metric=STEPS)].mean for algo in ("amfl_p", "fine_tuning", "fedavg")]
    assert steps == [56, 100, 0]


def test_table_1_has_the_printed_values_beside_ours(runs):
    rows = rows_of(build_amfl_p_report(PAPER, runs, CEILINGS), "table_1")
    cells = {(row["algorithm"], row["source"]): row for row in rows}
    assert cells["AMFL-P", "printed"]["accuracy"] == "88.70"
    assert cells["AMFL-P", "printed"]["mean fine-tuning steps"] == "65.00"
    assert cells["FedAvg", "printed"]["mean fine-tuning steps"] == ""
    assert cells["AMFL-P", "ours, tuned"]["accuracy"] == "80.00 ± 2.83"
    assert cells["AMFL-P", "ours, tuned"]["seeds"] == "2"
    assert cells["FedAvg", "ours, tuned"]["rounds to target"] == f"> {LAST_ROUND}"
    assert cells["AMFL-P", "ours, paper's rates"]["accuracy"] == "not run"
    assert ("local training", "printed") not in cells


def test_the_gap_to_the_ceiling_is_in_points(runs):
    """Ceiling 0.82, FedAvg 0.60: 22 points, of which AMFL-P's 0.80 closes 20; it is level with Fine-Tuning."""
    low, medium, high = rows_of(build_amfl_p_report(PAPER, runs, CEILINGS), "targets")
    assert list(medium.values()) == ["medium", "22.00", "91%", "+0.00", "reached"]
    assert list(low.values())[1] == list(high.values())[1] == "not run"


def test_aims_are_set_at_medium_heterogeneity_alone(runs):
    """A level of the same accuracies has the same numbers, and no verdict."""
    harder = [
        dataclasses.replace(
            run,
            experiment=run.experiment.replace("medium", "high"),
            flags={**run.flags, "building_heterogeneity": "high"},
        )
        for run in runs
        if run.flags["building_heterogeneity"] == "medium"
    ]
    ceilings = {**CEILINGS, "high": CEILINGS["medium"]}
    _, medium, high = rows_of(build_amfl_p_report(PAPER, [*runs, *harder], ceilings), "targets")
    assert list(high.values())[1:] == [*list(medium.values())[1:-1], "none set"]


@pytest.mark.parametrize(("ceilings", "gap"), [({"medium": [0.69]}, "9.00"), ({"medium": [1.2]}, "60.00")])
def test_each_aim_counts(runs, ceilings, gap):
    """A gap of less than 10 points, and one of which 20 points are less than half."""
    medium = rows_of(build_amfl_p_report(PAPER, runs, ceilings), "targets")[1]
    assert list(medium.values())[1] == gap
    assert medium["aims"] == "not reached"


def test_claims_are_decided_for_the_tuned_runs(runs):
    claims = {row["claim"]: row for row in rows_of(build_amfl_p_report(PAPER, runs, CEILINGS), "claims")}
    outperforms = claims["AMFL-P outperforms FedAvg and Fine-Tuning in accuracy"]
    assert (outperforms["printed_tables"], outperforms["ours"], outperforms["tuned"]) == (
        "agree",
        "not run",
        "not reproduced",  # level with Fine-Tuning
    )
    assert claims["AMFL-P needs fewer fine-tuning steps than Fine-Tuning"]["tuned"] == "reproduced"
    assert claims["the average number of fine-tuning steps in AMFL-P is 65"]["tuned"] == "not reproduced"


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
    assert draw_personal(clients, "AMFL-P", tmp_path / "personal.png").stat().st_size > 5_000
