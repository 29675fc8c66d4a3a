"""The printed tables of FedSiKD beside our runs, with numbers by hand."""

import pytest

from launch.reports.collection import Cell, Measured, Place, PrintedValue
from launch.reports.fedsikd.report import (
    compute_results,
    find_place,
    format_tables,
    list_printed_values,
    tabulate_values,
)
from launch.reports.registry import PAPERS
from launch.runs.run_records import read_runs

FIFTH = Cell("mnist", "0.1", "fedsikd", 5, "test_accuracy")
RIVAL = FIFTH._replace(algo="fedavg")
PRINTED = [PrintedValue("VI", FIFTH, 0.7483), PrintedValue("VI", RIVAL, 0.3779)]


def results_of(printed=(), tuned=()):
    return {"printed": dict(printed), "tuned": dict(tuned)}


def test_the_printed_tables_are_all_read():
    values = list_printed_values(PAPERS["fedsikd"].read_printed_rows())
    assert len(values) == 64 + 320
    assert len({value.cell for value in values if value.table != "V"}) == 320
    by_place = {(value.table, value.cell): value.value for value in values}
    assert by_place["V", Cell("har", "2", "fedavg", 50, "test_loss")] == 25.64
    assert by_place["VI", FIFTH] == 0.7483
    for cell in {value.cell for value in values if value.table == "V" and value.cell.round_num == 1}:
        assert by_place["V", cell] == next(by_place[key] for key in by_place if key[1] == cell and key[0] != "V")


@pytest.mark.parametrize(
    ("experiment", "place"),
    [
        ("fedsikd_mnist_alpha0.1", Place("printed", "mnist", "0.1", "fedsikd")),
        ("fl_hc_har_alpha1.0", Place("printed", "har", "1", "fl_hc")),
        ("fedsikd_har_alpha0.5_tuned", Place("tuned", "har", "0.5", "fedsikd")),
        ("fedsikd_har_quantization", None),
        ("fedsikd_har_windows_alpha0.5", None),
        ("fedsikd_mnist_alpha0.5_authors", None),
        ("fedavg_building_low", None),
    ],
)
def test_experiments_have_their_places(experiment, place):
    assert find_place(experiment) == place


def test_results_are_taken_over_the_seeds(tmp_path, write_run):
    for seed, accuracy in enumerate((0.60, 0.70)):
        write_run(tmp_path, "fedsikd_mnist_alpha0.1", seed, rounds=5, accuracy=accuracy)
    write_run(tmp_path, "fedsikd_mnist_alpha0.1", 2, rounds=1, accuracy=0.5)
    results = compute_results(record for record, _ in read_runs(tmp_path))["printed"]
    assert results[FIFTH] == pytest.approx(Measured(0.70, 0.0707106781, 2))
    assert results[FIFTH._replace(round_num=1)].count == 3
    assert FIFTH._replace(round_num=6) not in results


def test_a_table_shows_printed_ours_tuned_and_what_is_not_run():
    results = results_of({FIFTH: Measured(0.7412, 0.0103, 3)}, {FIFTH: Measured(0.9, None, 1)})
    lines = format_tables(PRINTED, results).splitlines()
    assert lines[0] == "## Table VI"
    assert lines[2] == "**MNIST, dirichlet alpha 0.1, test accuracy (%)**"
    assert lines[6:11] == [
        "| FedSiKD | printed | 74.83 |",
        "|  | ours (n = 3) | 74.12 ± 1.03 |",
        "|  | ours, tuned (n = 1) | 90.00 |",
        "| FedAvg | printed | 37.79 |",
        "|  | ours | not run |",
    ]


def test_the_csv_has_a_row_a_printed_value_and_empty_cells_where_not_run():
    columns, rows = tabulate_values(PRINTED, results_of({FIFTH: Measured(0.7412, 0.0103, 3)}))
    assert columns[:7] == ["table", "dataset", "dirichlet_alpha", "algo", "round", "metric", "printed"]
    assert rows[0] == [
        "VI",
        "mnist",
        "0.1",
        "fedsikd",
        "5",
        "test_accuracy",
        "0.7483",
        "0.7412",
        "0.0103",
        "3",
        "",
        "",
        "",
    ]
    assert rows[1][-6:] == [""] * 6
    assert {len(row) for row in rows} == {len(columns)}
