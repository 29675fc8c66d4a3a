"""The replay of the published scripts beside the printed rows: ranges by hand, the CSV file, and the committed page."""

import pathlib

import pytest

from launch.papers.fedsikd.published_code import (
    ALPHAS,
    ARMS,
    CLIENT_0,
    COLUMNS,
    DATASETS,
    FEDAVG,
    FL_HC,
    LEADERS,
    REPLAY_FILE,
    Place,
    PrintedRow,
    Range,
    Run,
    count_inside,
    find_range,
    list_gaps,
    list_missing,
    read_printed_rows,
    read_printed_values,
    read_replay,
    share_of_pairs,
    summarize,
    write_replay,
)
from launch.papers.fedsikd.published_code_page import format_page, tabulate_units
from launch.runs.columns import TEST_ACCURACY, TEST_LOSS

PAGE = pathlib.Path(__file__).parents[4] / "docs" / "results" / "fedsikd_published_code.md"


def make_run(first, last, loss=1.0):
    """A run whose accuracy goes from `first` to `last` in equal steps, and its loss from 1 to `loss`."""
    steps = range(5)
    return Run(
        tuple(first + (last - first) * step / 4 for step in steps),
        tuple(1 + (loss - 1) * step / 4 for step in steps),
        5.0,
    )


RUNS = [make_run(0.2, 0.4, 3.0), make_run(0.4, 0.4, 2.0), make_run(0.5, 0.7, 1.5)]


def make_row(first, last, loss, name="FedAvg", dataset="mnist", alpha="0.1"):
    return PrintedRow(dataset, alpha, name, make_run(first, last, loss))


def test_a_row_is_one_unit():
    summary = summarize(Run((0.1, 0.2, 0.3, 0.4, 0.6), (1.0, 9.0, 9.0, 9.0, 3.5)))
    assert summary == pytest.approx((0.32, 0.5, 2.5))


def test_a_range_is_that_of_the_splits():
    assert find_range([3.0, 1.0, 10.0, 2.0]) == Range(1.0, 2.5, 10.0, 4)
    assert find_range([]) is None


@pytest.mark.parametrize(("value", "gap"), [(1.0, 0), (2.0, 0), (4.0, 0), (4.5, 0.5), (0.75, -0.25)])
def test_the_ends_of_a_range_are_inside(value, gap):
    assert Range(1.0, 2.0, 4.0, 3).exceed_by(value) == gap


def test_what_lies_outside_is_told_by_how_much():
    """The splits: levels 0.3, 0.4, 0.6; changes 0.2, 0, 0.2; the loss rises by 2, 1 and 0.5."""
    assert list_gaps(make_row(0.3, 0.4, 2.0), RUNS) == pytest.approx([0, 0, 0])
    assert list_gaps(make_row(0.9, 0.7, 1.25), RUNS) == pytest.approx([0.2, -0.2, -0.25])
    assert list_gaps(make_row(0.9, 0.7, 1.25), []) == []


def test_what_the_printed_digits_leave_open_is_no_miss():
    """The loss of the splits rises by 0.5 at least; two printed losses are rounded to 0.005 each."""
    assert list_gaps(make_row(0.3, 0.4, 1.491), RUNS)[2] == 0
    assert list_gaps(make_row(0.3, 0.4, 1.489), RUNS)[2] == pytest.approx(-0.011)


def test_rounds_inside_are_counted():
    """The least and greatest accuracies are 0.2 to 0.5, then 0.25, 0.3, 0.35, 0.4 to 0.55, 0.6, 0.65, 0.7."""
    row = make_row(0.2, 0.72, 1.0)  # 0.2, 0.33, 0.46, 0.59, 0.72
    assert count_inside(row, RUNS, TEST_ACCURACY) == (4, 5)
    assert count_inside(row, RUNS, TEST_LOSS) == (1, 5)  # 1 after round 1, where all splits have it
    assert count_inside(row, [], TEST_LOSS) == (0, 0)


def test_pairs_of_splits():
    """0.3 and 0.4, 0.3 and 0.6, 0.4 and 0.6: two of three pairs differ by at least 0.15, in either direction."""
    levels = [0.3, 0.4, 0.6]
    assert share_of_pairs(-0.15, levels) == share_of_pairs(0.15, levels) == pytest.approx(2 / 3)
    assert share_of_pairs(0.0, levels) == 1 and share_of_pairs(0.31, levels) == 0
    assert share_of_pairs(0.25, [0.25, 0.5]) == 1, "as much counts"
    assert share_of_pairs(0.1, [0.5]) is None


def test_every_printed_row_is_read():
    rows = read_printed_rows()
    assert len({row[:3] for row in rows}) == len(rows) == 2 * 4 * 4
    (row,) = [row for row in rows if row[:3] == ("mnist", "0.1", "FedSiKD")]
    assert row.values[:2] == ((0.5157, 0.6644, 0.7142, 0.7418, 0.7483), (1.45, 1.27, 1.07, 1.04, 1.02))
    assert row.place == Place("mnist", "0.1", LEADERS)
    assert {row.place.arm for row in rows if row.name == "FL+HC"} == {FL_HC}
    assert read_printed_values(TEST_LOSS)["mnist", "0.1", "FedAvg"][70] == 33.25


def test_what_is_written_is_read(tmp_path):
    place, other = Place("har", "0.5", CLIENT_0), Place("mnist", "2", FEDAVG)
    path = tmp_path / "replay.csv"
    assert read_replay(path) == {}
    write_replay({place: {4: RUNS[0], 1: RUNS[1]}, other: {0: RUNS[2]}}, path)
    found = read_replay(path)
    assert list(found) == [other, place] and list(found[place]) == [1, 4]
    assert found[place][4].accuracies == pytest.approx(RUNS[0].accuracies)
    assert found[place][4].losses == pytest.approx(RUNS[0].losses) and found[place][4].cpu_s == pytest.approx(5)
    assert list_missing(found, place, 5) == [0, 2, 3]
    lines = path.read_text().splitlines()
    assert lines[0] == ",".join(COLUMNS) and lines[1] == "mnist,2,fedavg,0,1,0.500000,1.000000,1.000"
    assert len(lines) == 1 + 3 * 5


@pytest.mark.parametrize(
    "line",
    ["mnist,3,fedavg,0,1,0.5,1,1", "mnist,2,fedavg,0,1,much,1,1", "mnist,2,fedavg,0", "mnist,2,fedavg,0,2,0.5,1,1"],
)
def test_a_foreign_file_is_refused(line, tmp_path):
    path = tmp_path / "replay.csv"
    path.write_text(f"{','.join(COLUMNS)}\n{line}\n")
    with pytest.raises(ValueError, match=r"replay\.csv"):
        read_replay(path)


def test_misses_come_first_and_what_is_not_computed_last():
    rows = [make_row(0.3, 0.3, 2.0, "FL+HC"), make_row(0.3, 0.3, 2.0, alpha="2"), make_row(0.3, 0.4, 2.0)]
    rows.append(make_row(0.9, 0.7, 1.75, "FedSiKD"))
    replay = {Place("mnist", "0.1", arm): dict(enumerate(RUNS)) for arm in ARMS if arm != FL_HC}
    table = tabulate_units(rows, replay)
    assert [line[:5] for line in table.rows] == [
        ["FedSiKD", "MNIST", "0.1", "2 of 3", "3 and 3"],
        ["FedAvg", "MNIST", "0.1", "0 of 3", "3 and 3"],
        ["FL+HC", "MNIST", "0.1", "not computed", "0 and 3"],
        ["FedAvg", "MNIST", "2", "not computed", "0 and 0"],
    ]
    assert table.rows[0][5:9] == ["80.0", *2 * ["**outside** of 30.0 to 60.0 (20.0 above)"], "-20.0"]
    assert table.rows[0][9] == "**outside** of +0.0 to +20.0 (20.0 below)"
    assert table.rows[1][11:] == ["+1.00", *2 * ["in +0.50 to +2.00"]]
    assert table.rows[2][5:8] == ["30.0", "not computed", "in 30.0 to 60.0"]
    assert all(len(line) == len(table.columns) for line in table.rows)


def test_the_page_says_what_the_splits_do():
    """The level of FedAvg of all clients is 98.0, the printed ones on MNIST are 38.1 to 85.2."""
    bad, good = dict(enumerate([make_run(0.1, 0.1, 2.0)] * 3)), {0: make_run(0.97, 0.99, 0.5)}
    replay = {Place("mnist", alpha, CLIENT_0): bad for alpha in ALPHAS}
    replay |= {Place("mnist", alpha, FEDAVG): good for alpha in ALPHAS}
    replay[Place("mnist", "0.1", LEADERS)] = {0: make_run(0.5, 0.6), 1: make_run(0.5, 0.70)}
    page = format_page(replay)
    assert "below every split of FedAvg of all clients in 4 of 4 places, by 12.8 to 59.9 points" in page
    assert "in 12 of 12 splits of client 0 alone, in 0 of 4 splits of FedAvg of all clients" in page
    # 4 rows against 3 splits, 2 rows against 2, three comparisons each: 4 * 3 * 2/4 + 2 * 3 * 2/3 = 10
    assert "- 6 of 24 printed rows" in page and "10.0 would be expected" in page
    # Of the two printed rows beside the teachers' two splits, FedSiKD's loss falls and RandomCluster's rises; the
    # splits' loss stays, so one row lies below and one above, where 2 * 2/3 would be outside, half of them below.
    said = "it falls in 1 of 2 printed rows and in 0 of 2 splits. In 1 of these rows the printed change lies below"
    assert f"- FedSiKD and RandomCluster on MNIST, loss from round 1 to 5: {said}" in page
    assert "below that of every split, where 0.7 would be expected to.\n" in page
    # Client 0's splits are all alike, so nothing lies inside; RandomCluster's level, 59.5, lies between 55 and 60.
    groups = "MNIST, FedAvg 12 of 12 (6.0 expected); MNIST, FedSiKD and RandomCluster 5 of 6 (4.0 expected)."
    assert f"- Outside by group: {groups}" in page
    assert (
        "give 60.0, 70.0. Of these 2, 0 reach FedSiKD's and 1 RandomCluster's; the greatest is 4.8 points below" in page
    )
    assert "with probability 1/3. The first replay does not add to this" in page
    assert "- HAR, alpha 0.1, four leaders' teachers: 10 splits\n" in page
    assert "- MNIST, alpha 0.1, four leaders' teachers: 8 splits\n" in page
    assert "| MNIST | client 0 alone | 12 of 40 | 5 s | 1 min |" in page


def test_fl_hc_has_a_group_and_a_table_of_its_own():
    """Printed on MNIST at alpha 0.1: 57.5 % in mean; losses 6.48 to 6.44, and 6.43 after round 70."""
    runs = {0: make_run(0.55, 0.59, 1.5), 1: make_run(0.56, 0.6, 0.5)}
    page = format_page({Place("mnist", "0.1", FL_HC): runs})
    # Changes of 4 points and of 0.5 and -0.5: the level and the loss lie inside, the change of 0.0 outside.
    assert "- 0 of 24 printed rows (FL+HC's apart" in page
    assert "- Outside by group: MNIST, FL+HC 1 of 3 (2.0 expected)." in page
    assert "| MNIST | 0.1 | 56.7 to 58.1 | 55.0 to 60.0 | 6.48 | 6.44 | 6.43 | 0.50 to 1.50 |" in page
    assert "| MNIST | 0.5 | 79.8 to 80.4 | not computed | 4.76 | 4.82 | 4.74 | not computed |" in page


def test_losses_that_most_rows_fall_below_are_called_a_misfit():
    """The splits' losses rise by 2, the printed ones of MNIST at alpha 0.1 by -0.43 and 1.12."""
    page = format_page({Place("mnist", "0.1", LEADERS): dict(enumerate([make_run(0.5, 0.6, 3.0)] * 2))})
    assert "In 2 of these rows" in page and "So either these scripts did not make these rows, or one of our" in page


def test_ranges_of_three_splits_are_compared_with_ranges_of_three():
    """Every printed value lies between a low split and a high one; two low ones give no range around it."""
    low, high, good = make_run(0.05, 0.05 - 0.2, -2.0), make_run(0.8, 1.1, 20.0), make_run(0.97, 1.0, 0.5)
    places = [(dataset, alpha) for dataset in DATASETS for alpha in ALPHAS]
    replay = {Place(*place, CLIENT_0): dict(enumerate([low, low, low, high])) for place in places}
    replay |= {Place(*place, FEDAVG): dict(enumerate([good] * 3)) for place in places}
    # Of the four choices of three splits one has no high one: 8 rows, of each 3 misses in a quarter of the choices.
    assert "missed: FedAvg, 6.0 of 24 by the replay, 24 by FedAvg of all clients." in format_page(replay)


def test_the_page_of_nothing_can_be_made():
    assert "- 0 of 24 printed rows" in format_page({})


def test_the_page_in_the_docs_is_made_of_the_kept_numbers():
    assert PAGE.read_text(encoding="utf-8") == format_page(read_replay(REPLAY_FILE))
