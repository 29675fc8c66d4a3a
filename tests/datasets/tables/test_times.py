"""Dates in all the ways that people write them: in order, or refused with the flag that says what they are."""

import dataclasses

import numpy as np
import pytest
from refusals import assert_refused

from datasets.dataset import DatasetOptions
from datasets.formats.csv import FORMAT as CSV
from datasets.tables.cells import number_cells, parse_text, string_cells
from datasets.tables.table import Piece
from datasets.tables.times import TimeScan, read_times

DAY = 86400.0
NEW_YEAR = 1704067200.0  # 2024-01-01


def read(values, column="date", form="auto", pieces=1):
    """(seconds since 2024 began, what was decided) of a column in several pieces."""
    scan, made = TimeScan(column, form), []
    for part in np.array_split(np.array(values, object), pieces):
        cells = parse_text(list(part))
        made.append(Piece({column: cells}, "", "train", lambda rows: {row: f"row {row}" for row in rows}, len(made)))
        scan.add(cells, made[-1])
    decided = scan.decide()
    return np.concatenate([read_times(piece.cells[column], decided) for piece in made]) - NEW_YEAR, decided


@pytest.mark.parametrize(
    ("values", "days"),
    [
        (["31122024", "01012025", "15012025"], [365, 366, 380]),
        (["31122024", "1012025"], [365, 366]),  # its first zero is lost
        (["12312024", "01012025", "1152025"], [365, 366, 380]),
        (["20241231", "20240101"], [365, 0]),
        (["202412", "202401"], [335, 0]),
        (["122024", "12025"], [335, 366]),  # month and year
        (["31122024 ", "01022024"], [365, 31]),
        (["202412311200", "202401010000"], [365.5, 0]),
        (["31122024235959", "1012024000000"], [366 - 1 / DAY, 0]),
        (["31.12.2024", "01.02.2024"], [365, 31]),
        (["01.02.2024", "02.01.2024"], [31, 1]),  # with full stops the day is first
        (["01/02/2024", "31/12/2024"], [31, 365]),  # the second row tells
        (["01/02/2024", "12/31/2024"], [1, 365]),
        (["12.31.2024", "01.02.2024"], [365, 1]),
        (["31.12.24", "1.2.24"], [365, 31]),
        (["12/31/24", "1/2/25"], [365, 367]),
        (["2024/12/31", "2024/1/1"], [365, 0]),
        (["3-Jan-24", "31-Dec-23"], [2, -1]),
        (["January 3, 2024", "Sept 1 2024", "2024-Dec-31"], [2, 244, 365]),
        (["13/1/2024 12:00 AM", "13/1/2024 1:30 PM"], [12, 12 + 13.5 / 24]),
        (["2024-01-02T00:00:00+05:00", "2024-01-01T20:00:00Z"], [1 - 5 / 24, 20 / 24]),
        (["20240102", "2024-01-01"], [1, 0]),
        (["31.12.2024", "2024-01-01", "02/13/2024"], [365, 0, 43]),
        (["1704067200", "1704153600000"], [0, 1]),  # seconds, and thousandths of them
        (["1012024", "1012024"], [0, 0]),  # which is the same either way
    ],
)
def test_dates_are_days(values, days):
    found, _ = read(values)
    np.testing.assert_allclose(found / DAY, days, rtol=0, atol=1e-9)
    in_pieces, _ = read(values, pieces=2)  # all values decide, not the first ones
    np.testing.assert_array_equal(in_pieces, found)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (
            ["01122024", "02112024"],
            "--date_form=dmy (day, month, year), --date_form=mdy (month, day, year)",
        ),
        (["1122024", "2112024"], "'1122024', which can be read in several ways"),
        (["01/02/2024", "02/01/2024"], "'01/02/2024', which can be read in several ways"),
        (["01-02-2024", "02-01-2024"], "--date_form=mdy"),
        (["311224", "010125"], "--date_form=ymd"),
        (["13/01/2024", "01/13/2024"], "no order of day, month and year fits all of them"),
        (["30/02/2024", "29/02/2024"], "'30/02/2024', expected numbers, dates as in"),
        (["00.00.0000", "29.02.2024"], "'00.00.0000', expected numbers, dates as in"),
        (["23:50", "00:10"], "'23:50', a time of day without a date"),
        (["2350", "0010"], "times of day without a date, such as 2350"),
        (["45000", "2024-01-01"], "the number 45000 beside dates such as '2024-01-01'"),
        (["2024.9", "2024.10"], "2024.9 before 2024.10"),
        (["31.12", "01.01"], "31.01 comes before 01.02"),
        (["soon"], "'soon', expected numbers, dates as in 2024-12-31"),
    ],
)
def test_what_values_leave_open_is_refused(values, expected):
    caught = assert_refused("", read, values)
    assert expected in caught and "column 'date'" in caught and "row 0" in caught
    assert "--" in caught


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["20241231", "01022025", "31012025"], "31012025, which is a date as day, month, year, and 20241231"),
        (["31122024", "12312024"], "12312024, which is a date as month, day, year, and 31122024"),
        ([*(f"202401{day}" for day in range(10, 31)), "31012024"], "31012024, which is a date as day, month, year"),
    ],
)
def test_numbers_that_are_dates_in_several_orders_are_not_put_in_that_of_numbers(values, expected):
    for pieces in (1, 2):
        caught = assert_refused(expected, read, values, "time", pieces=pieces)
        assert "write all dates in the same, or give --date_form=number" in caught
    np.testing.assert_array_equal(read(values, form="number")[0] + NEW_YEAR, [float(value) for value in values])


def test_a_month_and_a_year_of_two_digits_are_not_a_day_of_2000():
    for column, values in (("date", ["1123", "1223", "124"]), ("t", ["1223", "0124"]), ("date", ["1298", "0199"])):
        assert_refused("can be month and year, month and day, or a time of day", read, values, column)
    assert read([str(day) for day in range(100, 900, 7)], "day")[1].numbers == ("", "")
    found, _ = read(["1231", "0101"], form="ymd")  # 366 days before 2001, which is so many before 2024
    np.testing.assert_array_equal(found / DAY, [365 - 8766, -8766])
    for column, values in (("day", ["152", "365"]), ("date", ["152", "365"]), ("t", ["1123", "1223", "124"])):
        assert read(values, column)[1].numbers[0] in ("", "short"), values  # days of a year, and counts


def test_dates_that_lack_a_zero_within_are_not_ordered_as_numbers():
    values = ["13112023", "1122023", "112024", "3112024", "2922024"]  # 13 November, 1 December, 1, 31 January ...
    assert_refused("such as 13112023 that end with the year, but some lack a zero", read, values, "time")
    assert read(["1502023", "1511999", "1522024", "1532001", "9152205"], "time")[1].numbers == ("", "")


def test_what_stands_beside_a_number_that_is_no_date_is_one():
    assert_refused(
        r"row 0: column 'time' has 0, which is no date, .* such as 31122024;",
        read,
        ["0", "31122024", "15012025", "16012025"],
        "time",
    )


@pytest.mark.parametrize("odd", ["0", "31022024", "99999999"])
def test_one_number_that_is_no_date_does_not_make_all_others_numbers(odd):
    values = ["31122024", "01012025", "15012025", odd, "16012025", "17012025"]
    for pieces in (1, 3):
        assert_refused(
            f"has {odd}, which is no date, beside others that are, such as 31122024",
            read,
            values,
            "time",
            pieces=pieces,
        )


@pytest.mark.parametrize(
    ("values", "form", "days"),
    [
        (["01022024", "02012024"], "dmy", [31, 1]),
        (["01022024", "02012024"], "mdy", [1, 31]),
        (["01/02/2024", "02/01/2024"], "dmy", [31, 1]),
        (["01.02.2024"], "mdy", [1]),
        (["31-12-24", "01-02-24"], "dmy", [365, 31]),
        (["24-12-31", "24-02-01"], "ymd", [365, 31]),
        (["311224", "10224"], "dmy", [365, 31]),
    ],
)
def test_the_flag_decides(values, form, days):
    np.testing.assert_array_equal(read(values, form=form)[0] / DAY, days)


def test_a_zero_in_front_tells_a_date_from_a_number():
    assert_refused("'311224', which can be read in several ways", read, ["311224", "010125"], "time")
    np.testing.assert_array_equal(read(["311224", "110125"], "time")[0] + NEW_YEAR, [311224, 110125])


def test_a_flag_that_values_contradict_is_refused():
    assert_refused(r"none in the order month, day, year.*--date_form=dmy", read, ["31/12/2024"], form="mdy")
    assert_refused("has 1704067200, expected dates in the order day, month, year", read, ["1704067200"], form="dmy")


@pytest.mark.parametrize("values", [["3", "1", "2"], ["45000.5", "45000"], ["1700000000", "1690000000"]])
def test_other_numbers_stay(values):
    found, decided = read(values, "time")
    np.testing.assert_array_equal(found + NEW_YEAR, np.float64(values))
    assert not decided.reading and not decided.notes


def test_numbers_that_are_none_by_the_flag_stay():
    np.testing.assert_array_equal(read(["31122024", "01012025"], form="number")[0] + NEW_YEAR, [31122024, 1012025])


def test_columns_of_typed_files():
    for cells, days in (
        (number_cells(np.array([31122024, 1012025])), [365, 366]),
        (string_cells(parse_text(["31/12/2024", "01/01/2025"]).values.dictionary_decode()), [365, 366]),
    ):
        scan = TimeScan("when", "auto")
        scan.add(cells, Piece({}, "", "train", dict.fromkeys, 0))
        np.testing.assert_array_equal((read_times(cells, scan.decide()) - NEW_YEAR) / DAY, days)


def test_what_was_told_is_said(tmp_path, monkeypatch):
    path = tmp_path / "mine.csv"
    rows = ["15012025,1,x", "31122024,0,y", "01012025,5,x"]
    path.write_text("date,a,label\n" + "".join(f"{row}\n" for row in rows))
    source = CSV.open(str(path), DatasetOptions())
    assert source.read(0, "train")[0][:, 0, 0].tolist() == [0, 5, 1]
    assert "date as day, month, year, as in 15012025" in source.reading
    old = CSV.open(str(path), dataclasses.replace(DatasetOptions(), date_form="number"))
    assert old.read(0, "train")[0][:, 0, 0].tolist() == [5, 1, 0] and old.digest != source.digest
    _, decided = read(["2024-01-01 10:00", "2024-01-01 10:00Z", "2024-01-02"])
    assert decided.notes == ("column date has a time zone in some values and none in others, which are taken as UTC",)
    assert "several units" in read(["1704067200", "1704153600000"])[1].notes[0]
