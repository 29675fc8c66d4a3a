"""Dates in all the ways that people write them: in order, or refused with the flag that says what they are."""

import numpy as np
import pytest
from refusals import assert_refused
from small_tables import assert_facts, open_text

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


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        # 13 November, 1 December, 1, 31 January: dates that lack a zero within are not ordered as numbers.
        (
            ["13112023", "1122023", "112024", "3112024", "2922024"],
            {"column": "time"},
            "such as 13112023 that end with the year, but some lack a zero",
        ),
        # What stands beside a number that is no date is one.
        (
            ["0", "31122024", "15012025", "16012025"],
            {"column": "time"},
            r"row 0: column 'time' has 0, which is no date, .* such as 31122024;",
        ),
        (["311224", "010125"], {"column": "time"}, "'311224', which can be read in several ways"),
        # A flag that values contradict.
        (["31/12/2024"], {"form": "mdy"}, r"none in the order month, day, year.*--date_form=dmy"),
        (["1704067200"], {"form": "dmy"}, "has 1704067200, expected dates in the order day, month, year"),
    ],
)
def test_numbers_and_flags_that_contradict_dates_are_refused(values, options, message):
    assert_refused(message, read, values, **options)


@pytest.mark.parametrize(
    ("values", "options"),
    [
        (["3", "1", "2"], {}),
        (["45000.5", "45000"], {}),
        (["1700000000", "1690000000"], {}),
        (["31122024", "1012025"], {"form": "number"}),  # which are none by the flag
        (["311224", "110125"], {}),  # without a zero in front, which would tell a date from a number
        (["1502023", "1511999", "1522024", "1532001", "9152205"], {}),  # not all end like years
    ],
)
def test_other_numbers_stay(values, options):
    found, decided = read(values, "time", **options)
    np.testing.assert_array_equal(found + NEW_YEAR, np.float64(values))
    assert not decided.reading and not decided.notes


@pytest.mark.parametrize(
    "cells",
    [
        number_cells(np.array([31122024, 1012025])),
        string_cells(parse_text(["31/12/2024", "01/01/2025"]).values.dictionary_decode()),
    ],
)
def test_columns_of_typed_files(cells):
    scan = TimeScan("when", "auto")
    scan.add(cells, Piece({}, "", "train", dict.fromkeys, 0))
    np.testing.assert_array_equal((read_times(cells, scan.decide()) - NEW_YEAR) / DAY, [365, 366])


@pytest.mark.parametrize(
    ("options", "x", "said"),
    [
        ({}, [[0], [5], [1]], ["date as day, month, year, as in 15012025"]),
        ({"date_form": "number"}, [[5], [1], [0]], []),
    ],
)
def test_what_was_told_is_said_and_the_flag_makes_other_data(tmp_path, options, x, said):
    text = "date,a,label\n15012025,1,x\n31122024,0,y\n01012025,5,x\n"
    source = open_text(tmp_path, text, **options)
    assert_facts(source, x={"": x}, said=said)
    assert (source.digest == open_text(tmp_path, text).digest) == (not options)


def test_what_may_be_meant_otherwise_is_noted():
    _, decided = read(["2024-01-01 10:00", "2024-01-01 10:00Z", "2024-01-02"])
    assert decided.notes == ("column date has a time zone in some values and none in others, which are taken as UTC",)
    assert "several units" in read(["1704067200", "1704153600000"])[1].notes[0]
