"""Tables, results and claims as Markdown and as rows of CSV."""

from launch.reports.claims import Claim, judge
from launch.reports.collection import Cell, Measured, PrintedValue
from launch.reports.conditions import exceeds
from launch.reports.markdown import Table, format_claims, format_measured, format_table, join_blocks, tabulate_claims

FIFTH = Cell("mnist", "0.1", "fedsikd", 5, "test_accuracy")
RIVAL = FIFTH._replace(algo="fedavg")
PRINTED = [PrintedValue("VI", FIFTH, 0.7483), PrintedValue("VI", RIVAL, 0.3779)]
LEAD = Claim("V-C", "FedSiKD leads", "round 5", (exceeds(FIFTH, RIVAL, "{0} against {1}"),))


def test_a_table():
    assert format_table(Table(("a", "b"), [["1", ""]])) == "| a | b |\n| --- | --- |\n| 1 |  |"
    assert join_blocks(["# Title", "Text."]) == "# Title\n\nText."


def test_a_result():
    assert format_measured("test_accuracy", Measured(0.8, 0.1, 3)) == "80.00 ± 10.00"
    assert format_measured("test_loss", Measured(0.8, None, 1)) == "0.80"
    assert format_measured("test_loss", None) == "not run"
    assert format_measured("test_loss", None, absent="") == ""


def test_claims_as_markdown_and_csv():
    ours = {FIFTH: Measured(0.74, None, 1), RIVAL: Measured(0.89, None, 1)}
    judgements = [judge(LEAD, PRINTED, {"printed": ours, "tuned": {}})]
    text = format_claims(judgements)
    assert "| 1 | V-C | FedSiKD leads | agree | not reproduced |  |" in text
    assert "   - Ours: 74.00 % against 89.00 %." in text
    columns, [row] = tabulate_claims(judgements)
    assert dict(zip(columns, row, strict=True))["ours"] == "not reproduced"
