"""What one text says as a number, worked out by hand."""

import math

import pytest

from datasets.tables.written_numbers import is_odd, is_unit, read_written

NAN = math.nan
# text -> (unit, the number with a decimal point, the number with a decimal comma)
NUMBERS = {
    "45": ("", 45, 45),
    "1,230": ("", 1230, 1.23),
    "1.230": ("", 1.23, 1230),
    "1.230,50": ("", NAN, 1230.5),
    "1,230.50": ("", 1230.5, NAN),
    "1,230,400": ("", 1230400, NAN),
    "12,34,567.5": ("", 1234567.5, NAN),  # lakhs
    "0,125": ("", NAN, 0.125),
    "1230,456": ("", NAN, 1230.456),
    ",5": ("", NAN, 0.5),
    "45.": ("", 45, NAN),
    "1 230,50": ("", NAN, 1230.5),
    "1\u202f230\u00a0400": ("", 1230400, 1230400),
    "1'230.50": ("", 1230.5, NAN),
    "1\u2019230": ("", 1230, 1230),
    "2.5e-3": ("", 0.0025, NAN),
    "(45)": ("", -45, -45),
    "\u221245": ("", -45, -45),
    "45-": ("", -45, -45),
    "\u201345": ("", -45, -45),
    "+3": ("", 3, 3),
    "'45": ("", 45, 45),
    '="45"': ("", 45, 45),
    "\uff14\uff15\uff0e\uff15": ("", 45.5, NAN),
    "\u0664\u0665": ("", 45, 45),
    "0": ("0", 0, 0),
    "12 %": ("%", 0.12, 0.12),
    "-12,5%": ("%", NAN, -0.125),
    "%50": ("%", 0.5, 0.5),
    "50 percent": ("%", 0.5, 0.5),
    "5\u2030": ("\u2030", 0.005, 0.005),
    "$45": ("$", 45, 45),
    "-$45": ("$", -45, -45),
    "($1,230.50)": ("$", -1230.5, NAN),
    "$(1,230.50)": ("$", -1230.5, NAN),
    "€ (45)": ("EUR", -45, -45),
    "€ 1.230,50": ("EUR", NAN, 1230.5),
    "45 EUR": ("EUR", 45, 45),
    "45,- €": ("EUR", 45, 45),
    "CHF 1'230.-": ("CHF", 1230, 1230),
    "$45/hour": ("$ /hour", 45, 45),
    "1.5M": ("M", 1.5, NAN),
    "45kg": ("kg", 45, 45),
    "99 lbs.": ("lb", 99, 99),
    "3 days": ("day", 3, 3),
    "5 km/h": ("km/h", 5, 5),
    "20 °C": ("°C", 20, 20),
    "800 sq ft": ("sq ft", 800, 800),
}


@pytest.mark.parametrize("text", NUMBERS)
def test_a_number_is_read_with_either_mark(text):
    unit, point, comma = NUMBERS[text]
    found = read_written(text)
    assert found.dress == unit
    for value, expected in ((found.point, point), (found.comma, comma)):
        assert value == pytest.approx(expected, rel=1e-12, nan_ok=True)


@pytest.mark.parametrize(
    "text",
    [
        *("", "free", "1,2,3", "31.12.2024", "10:30", "12/2020", "12 Main Street", "1st", "10am", "5'10\"", "1.2.3"),
        *("<5", "10-20", "(45", "$", "1 23", "3.000.00", "#DIV/0!", "0x1F"),
    ],
)
def test_what_is_no_number_is_none(text):
    assert read_written(text) is None


def test_a_code_keeps_its_zeros_and_a_word_is_no_known_unit():
    assert read_written("007").is_code and not read_written("0.07").is_code
    assert is_unit(read_written("3 kWh").dress) and is_unit(read_written("$3").dress)
    assert not is_unit(read_written("3 rooms").dress)
    assert all(map(is_odd, ("<5", ">= 100", "~12", "10-20", "1/2", "0x1F", "#REF!", "-", ".", "$ -", "3+")))
    assert not any(map(is_odd, ("", "free", "45", "12A")))
