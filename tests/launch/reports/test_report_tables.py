"""Means, deviations, counts and the tables made of them, on runs with numbers by hand."""

import pytest

from launch.reports.claims import Cell, Claim, Condition
from launch.reports.registry import PAPERS
from launch.reports.report_tables import (
    Measured,
    PaperReport,
    PrintedValue,
    choose_runs,
    compute_results,
    format_claims,
    format_measured,
    format_tables,
    judge,
    normalize_setting,
    read_printed_values,
    say_ours,
    say_printed,
    summarize,
    tabulate_claims,
    tabulate_values,
)
from launch.runs.run_records import read_runs

FIFTH = Cell("mnist", "0.1", "fedsikd", 5, "test_accuracy")
RIVAL = FIFTH._replace(algo="fedavg")
PAPER = PaperReport("A paper", (), "dirichlet_alpha", {"FedSiKD": "fedsikd", "FedAvg": "fedavg"}, ".*", ())
PRINTED = [PrintedValue("VI", FIFTH, 0.7483), PrintedValue("VI", RIVAL, 0.3779)]
LEAD = Claim("V-C", "FedSiKD leads", "round 5", (Condition(((1, FIFTH), (-1, RIVAL)), "{0} against {1}", above=0),))


def test_the_printed_tables_are_all_read():
    values = read_printed_values(PAPERS["fedsikd"])
    assert len(values) == 64 + 320
    assert len({value.cell for value in values if value.table != "V"}) == 320
    by_place = {(value.table, value.cell): value.value for value in values}
    assert by_place["V", Cell("har", "2", "fedavg", 50, "test_loss")] == 25.64
    assert by_place["VI", FIFTH] == 0.7483
    for cell in {value.cell for value in values if value.table == "V" and value.cell.round_num == 1}:
        assert by_place["V", cell] == next(by_place[key] for key in by_place if key[1] == cell and key[0] != "V")


@pytest.mark.parametrize(("value", "text"), [(1.0, "1"), ("2.0", "2"), ("0.1", "0.1"), ("iid", "iid")])
def test_settings_are_spelled_alike(value, text):
    assert normalize_setting(value) == text


def test_mean_and_sample_deviation():
    # mean (0.7 + 0.8 + 0.9) / 3 = 0.8; squared distances 0.01 + 0 + 0.01 over 2 = 0.01, its root 0.1
    assert summarize([0.7, 0.8, 0.9]) == pytest.approx(Measured(0.8, 0.1, 3))
    assert summarize([0.7]) == Measured(0.7, None, 1)
    assert format_measured("test_accuracy", Measured(0.8, 0.1, 3)) == "80.00 ± 10.00"
    assert format_measured("test_loss", Measured(0.8, None, 1)) == "0.80"
    assert format_measured("test_loss", None) == "not run"


def read_all(runs_dir):
    return [record for record, _ in read_runs(runs_dir) if record]


def test_results_are_taken_over_the_seeds(tmp_path, write_run):
    for seed, accuracy in enumerate((0.60, 0.70)):
        write_run(tmp_path, "fedsikd_mnist_alpha0.1", seed, rounds=5, accuracy=accuracy)
    write_run(tmp_path, "fedsikd_mnist_alpha0.1", 2, rounds=1, accuracy=0.5)
    results = compute_results(read_all(tmp_path), "dirichlet_alpha")["printed"]
    assert results[FIFTH] == pytest.approx(Measured(0.70, 0.0707106781, 2))
    assert results[FIFTH._replace(round_num=1)].count == 3
    assert FIFTH._replace(round_num=6) not in results


def test_a_seed_counts_once_with_its_longest_run(tmp_path, write_run):
    short = write_run(tmp_path / "a", "fedsikd_mnist_alpha0.1", 0, rounds=2)
    long = write_run(tmp_path / "b", "fedsikd_mnist_alpha0.1", 0, rounds=5)
    chosen, left_out = choose_runs(read_all(tmp_path))
    assert [run.path for run in chosen] == [long]
    assert len(left_out) == 1
    assert left_out[0].startswith(str(short))


def results_of(printed=(), tuned=()):
    return {"printed": dict(printed), "tuned": dict(tuned)}


def test_a_table_shows_printed_ours_tuned_and_what_is_not_run():
    results = results_of({FIFTH: Measured(0.7412, 0.0103, 3)}, {FIFTH: Measured(0.9, None, 1)})
    lines = format_tables(PAPER, PRINTED, results).splitlines()
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
    columns, rows = tabulate_values(PAPER, PRINTED, results_of({FIFTH: Measured(0.7412, 0.0103, 3)}))
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


def test_a_claim_is_put_to_the_paper_and_to_us():
    ours = {FIFTH: Measured(0.74, None, 1), RIVAL: Measured(0.89, None, 1)}
    judgement = judge(LEAD, PRINTED, results_of(ours))
    assert say_printed(judgement.printed) == "agree"
    assert say_ours(judgement.ours) == "not reproduced"
    assert judgement.tuned is None
    assert judge(LEAD, [], results_of()).printed.numbers == ""
    assert say_printed(judge(LEAD, [], results_of()).printed) == "not printed"
    assert say_ours(judge(LEAD, PRINTED, results_of()).ours) == "not run"


def test_tuned_runs_stand_in_where_there_are_some():
    ours = {FIFTH: Measured(0.74, None, 1), RIVAL: Measured(0.89, None, 1)}
    judgement = judge(LEAD, PRINTED, results_of(ours, {FIFTH: Measured(0.9, None, 1)}))
    assert say_ours(judgement.ours) == "not reproduced"
    assert say_ours(judgement.tuned) == "reproduced"
    assert judgement.tuned.numbers == "90.00 % against 89.00 %"


def test_a_tuned_run_that_is_too_short_is_not_filled_up_with_an_untuned_one():
    ours = {FIFTH: Measured(0.95, None, 1), RIVAL: Measured(0.89, None, 1)}
    tuned = {FIFTH._replace(round_num=1): Measured(0.9, None, 1)}
    claim = Claim("V", "x", "x", (*LEAD.conditions, Condition(((1, FIFTH._replace(round_num=1)),), "{0}", above=0)))
    assert say_ours(judge(claim, PRINTED, results_of(ours, tuned)).tuned) == "not run"


def test_claims_as_markdown_and_csv():
    ours = {FIFTH: Measured(0.74, None, 1), RIVAL: Measured(0.89, None, 1)}
    judgements = [judge(LEAD, PRINTED, results_of(ours))]
    text = format_claims(judgements)
    assert "| 1 | V-C | FedSiKD leads | agree | not reproduced |  |" in text
    assert "   - Ours: 74.00 % against 89.00 %." in text
    columns, [row] = tabulate_claims(judgements)
    assert dict(zip(columns, row, strict=True))["ours"] == "not reproduced"
