"""Tables with numbers written for people: all values of a column decide, and what none decides is one line."""

import csv
import io
import math

import numpy as np
import pytest
from refusals import assert_refused
from small_tables import assert_facts, open_columns, open_text, write_text

from datasets.dataset import DatasetOptions
from datasets.formats.client_files import open_client_files
from datasets.formats.csv import FORMAT as CSV
from datasets.tables.written_numbers import is_odd, is_unit, read_written


def write(separator=",", **columns):
    """The text of a table of these columns and, unless it is given, of labels x and z in turns."""
    columns.setdefault("y", ["xz"[row % 2] for row in range(len(next(iter(columns.values()))))])
    text = io.StringIO()
    rows = csv.writer(text, delimiter=separator, lineterminator="\n")
    rows.writerows([list(columns), *zip(*columns.values(), strict=True)])
    return text.getvalue()


def list_rows(*columns):
    """What is read of columns of a table without clients, float32."""
    return {"": np.float32(columns).T.tolist()}


READ = {
    "percent": (["12 %", "5%", "0", "-50%"], [0.12, 0.05, 0, -0.5], "a: 12 % read as 0.12"),
    "dollars": (["$45", "$1,230", "$1,230.50", "0"], [45, 1230, 1230.5, 0], "a: $1,230 read as 1230"),
    "euros": (["€ 1.230,50", "45 €", "1.000 EUR"], [1230.5, 45, 1000], "a: 1.000 EUR read as 1000"),
    "a unit": (["45 kg", "99kg", "1.5 kg"], [45, 99, 1.5], "a: 45 kg read as 45"),
    "a unit in all letters": (["45 KG", "99 kg", "1 Kg"], [45, 99, 1], "a: 45 KG read as 45"),
    "a word that all have": (["2 rooms", "1 room", "3 rooms"], [2, 1, 3], "a: 2 rooms read as 2"),
    "two groups": (["900", "1,230", "1,230,400"], [900, 1230, 1230400], "a: 1,230 read as 1230"),
    "decimals of another length": (["1,230", "1,5", "2"], [1.23, 1.5, 2], "a: 1,230 read as 1.23"),
    "a leading zero": (["1,230", "0,125"], [1.23, 0.125], "a: 1,230 read as 1.23"),
    "negatives": (["(45)", "\u22123", "+2", "7-"], [-45, -3, 2, -7], "a: (45) read as -45"),
    "full width": (["\uff11\uff12", "3"], [12, 3], "a: \uff11\uff12 read as 12"),
    "apostrophes": (["1\u2019230.50", "2'000"], [1230.5, 2000], "read as 1230.5"),
    "narrow blanks": (["1\u202f230,50", "7,25"], [1230.5, 7.25], "read as 1230.5"),
}


@pytest.mark.parametrize("name", READ)
def test_what_is_unambiguous_is_read_and_said(tmp_path, name):
    values, expected, said = READ[name]
    source = open_text(tmp_path, write(a=values))
    assert_facts(source, said=[said], features=("a",), x=list_rows(expected))


@pytest.mark.parametrize("name", READ)
def test_text_of_parquet_is_read_alike(tmp_path, name):
    values, expected, said = READ[name]
    if name == "full width":  # digits alone are codes there
        values, expected, said = [*values, "1,5"], [*expected, 1.5], "a: 1,5 read as 1.5"
    source = open_columns(tmp_path, {"a": values, "y": [row % 2 for row in range(len(values))]})
    assert_facts(source, said=[said], x=list_rows(expected))


LONG = [str(number) for number in range(250)]
REFUSED = {
    "thousands or decimals": (
        ["900", "1,230"],
        "line 3: column 'a' has '1,230', which is 1230 or 1.23",
        "--decimal_mark",
    ),
    "grouped with points": (
        ["900", "1.230"],
        "line 3: column 'a' has '1.230', which is 1.23 or 1230",
        "--decimal_mark",
    ),
    "both marks": (["12,5", "3,5", "12.5"], "line 4: column 'a' has '12.5', but '12,5' in other rows", "line 2"),
    "two units": (["45 kg", "3 kg", "99 lb"], "line 4: column 'a' has '99 lb', but '45 kg' in other rows", "one unit"),
    "two prefixes": (["5 kg", "3 kg", "5 g"], "line 4: column 'a' has '5 g', but '5 kg'", "write all in one"),
    "percent and not": (["45%", "3%", "0.3"], "line 4: column 'a' has '0.3', but '45%'", "one unit"),
    "an error of Excel": (["1", "2", "3", "#DIV/0!"], "line 5: column 'a' has '#DIV/0!', expected a number", "empty"),
    "bounds": (
        [*LONG[:40], *["<5"] * 9],
        "line 42: column 'a' has '<5', expected a number as",
        "leave the field empty",
    ),
    "a stray dash": ([*(f"${each}" for each in LONG[:40]), "$ -"], "line 42: column 'a' has '$ -'", "leave the field"),
    "words among amounts": (
        [f"${each}" if int(each) % 5 else "free" for each in LONG],
        "line 2: column 'a' has 'free', expected a number as '$1'",
        "leave the column out",
    ),
    "text of several units": (
        [f"{each} {'abc'[int(each) % 3]}b" for each in LONG],
        "some of them numbers or ranges",
        "one unit",
    ),
    "ranges": ([f"{each}-{each}5" for each in LONG], "some of them numbers or ranges", "write numbers alone"),
    "free text": ([f"the number {each}" for each in LONG], "free text, names or ids", "--drop_columns=a"),
    "sentences": ([f"the text number {each} is long" for each in LONG], "--text_column=a", "--drop_columns=a"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_is_one_line_that_never_advises_the_index_of_a_category(tmp_path, name):
    values, *expected = REFUSED[name]
    caught = assert_refused("", open_text, tmp_path, write(a=values))
    assert all(part in caught for part in expected) and "categories=index" not in caught, caught


GROUPS, HALVES = ["900", "1,230"], [f"{each},5" for each in LONG]
PERCENTS = ["5%", "10%", "20%"]
AMOUNTS = [f"${number},{number:03}.50" for number in range(1, 61)]
OPEN_NOTE = "such as 21,437, read as 21.437; if 21437 is meant"
# text, options, facts; the other columns, or the flag, decide what one leaves open
DECIDED = {
    "semicolons make commas decimal": (
        write(";", a=["21,437", "19,880"]),
        {},
        {"x": list_rows([21.437, 19.88]), "noted": [OPEN_NOTE]},
    ),
    "unless the flag says other": (
        write(";", a=["21,437", "19,880"]),
        {"decimal_mark": "point"},
        {"x": list_rows([21437, 19880]), "said": ["read as 21437"], "noted": []},
    ),
    "a decimal comma at the end": (write(";", a=[*LONG, "250,5"]), {}, {"x": list_rows([*map(float, LONG), 250.5])}),
    "a decimal comma at the beginning": (
        write(";", a=["250,5", *LONG]),
        {},
        {"x": list_rows([250.5, *map(float, LONG)])},
    ),
    "a point and a comma far below": (
        write(";", a=[*HALVES, "1.230,5"]),
        {},
        {"x": list_rows([*(n + 0.5 for n in range(250)), 1230.5])},
    ),
    "a point far below": (
        write(";", a=[*HALVES, "1.230"]),
        {},
        {"x": list_rows([*(n + 0.5 for n in range(250)), 1230])},
    ),
    "points by the flag": (write("\t", a=GROUPS), {"decimal_mark": "point"}, {"x": list_rows([900, 1230])}),
    "commas by the flag": (write("\t", a=GROUPS), {"decimal_mark": "comma"}, {"x": list_rows([900, 1.23])}),
    "another column has points": (write(a=GROUPS, b=["0.5", "2"]), {}, {"x": list_rows([900, 1230], [0.5, 2])}),
    "another column has commas": (write(a=GROUPS, b=["0,5", "2"]), {}, {"x": list_rows([900, 1.23], [0.5, 2])}),
    "another column of a file with semicolons": (
        write(";", a=["1.230", "2.450"], b=["0,5", "2"]),
        {},
        {"x": list_rows([1230, 2450], [0.5, 2])},
    ),
    "plain numbers and codes": (
        write(";", a=["1.125", "2.250", "3.500"], b=["007", "01234", "5"]),
        {},
        {
            "x": list_rows([1.125, 2.25, 3.5], [7, 1234, 5]),
            "noted": ["such as 1.125, read as 1.125; if 1125 is meant, give --decimal_mark=comma"],
        },
    ),
    "names": (
        write(a=["1st", "2nd", "1st"], b=["2 door", "4 door", "2 door"], c=["<20", "20-30", ">30"]),
        {},
        {"features": ("a=1st", "a=2nd", "b=2 door", "b=4 door", "c=20-30", "c=<20", "c=>30")},
    ),
    "clients": (
        write(user=["007", "7", "$7"], a=["$1", "$2", "$3"]),
        {},
        {"clients": ("007", "7", "$7"), "x": {"007": [[1]], "7": [[2]], "$7": [[3]]}},
    ),
    "a bound among few numbers": (
        write(a=["0", "1", "2", "3+"]),
        {},
        {"said": ["a (4)"], "noted": ["since '3+' stands among them"]},
    ),
    "truths among numbers": (
        write(a=["true", "no", "45"], b=["yes", "no", "no"], c=["1", "yes", "0"]),
        {},
        {"noted": ["among the numbers in a stands yes or no, true or false, in 2 rows, which is taken as 1 or 0"]},
    ),
    "ids": (write(a=[f"id{row}" for row in range(50)]), {}, {"noted": ["another text in nearly each row"]}),
    "few amounts are classes": (
        write(a=["1", "2", "3"], y=PERCENTS),
        {},
        {"classes": ("10%", "20%", "5%"), "noted": ["labels in y, such as '5%', are classes", "counts the rows"]},
    ),
    "amounts are numbers of a regression": (
        write(a=["1", "2", "3"], y=PERCENTS),
        {"task": "regression"},
        {"y": {"": np.float32([0.05, 0.1, 0.2]).tolist()}},
    ),
    "many amounts are a regression": (
        write(a=LONG[:60], y=AMOUNTS),
        {},
        {"task": "regression", "y": {"": [number * 1001 + 0.5 for number in range(1, 61)]}},
    ),
    "missing amounts are missing": (
        write(a=["$1", "", "$3", "$9"]),
        {"missing": "median"},
        {"x": list_rows([1, 3, 3, 9])},
    ),
}


@pytest.mark.parametrize("name", DECIDED)
def test_all_values_decide(tmp_path, name):
    text, options, facts = DECIDED[name]
    assert_facts(open_text(tmp_path, text, **options), **facts)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (write(";", a=[*HALVES, "12.5"]), {}, "line 252: column 'a' has '12.5', but '0,5' in other rows"),
        (write("\t", a=GROUPS), {}, "'1,230', which is 1230 or 1.23"),
        (write(";", a=GROUPS), {}, "'1,230', which is 1230 or 1.23"),  # no program writes decimals so
        (
            write(a=GROUPS, b=["0.5", "2"]),
            {"decimal_mark": "comma"},
            "line 2: column 'b' has '0.5', which is no number with a decimal comma",
        ),
        (write(a=["$1", "", "$3", "$9"]), {}, r"missing values.*a 1 \("),
    ],
)
def test_what_values_leave_open_is_refused(tmp_path, text, options, message):
    assert_refused(message, open_text, tmp_path, text, **options)


def test_the_partition_of_amounts_is_that_of_their_task(tmp_path):
    path = write_text(tmp_path, write(a=LONG[:60], y=AMOUNTS))
    assert CSV.choose_partition(path, DatasetOptions()) == "iid"


def test_codes_of_a_text_column_stay_categories(tmp_path):
    assert_facts(open_columns(tmp_path, {"zip": ["01234", "99999"], "y": [0, 1]}), features=("zip=01234", "zip=99999"))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("v;y\n9,5;0\n4;1\n", "v;y\n1.230;0\n801;1\n", [[9.5, 4], [1230, 801]]),
        ("v;y\n5,5;0\n7;1\n", "v;y\n9.5;0\n11;1\n", [[5.5, 7], [9.5, 11]]),
        ("v;y\n5,5;0\n7;1\n", "v;y\n" + "9;0\n" * 220 + "9,5;1\n", [[5.5, 7], [9] * 220 + [9.5]]),
        ("v,y\n5%,0\n7%,1\n", "v,y\n9,0\n11,1\n", r"b.csv, line 2: column 'v' has '9', but '5%' in other rows"),
    ],
)
def test_files_of_clients_that_are_written_differently_have_one_reading(tmp_path, first, second, expected):
    write_text(tmp_path, first, "a.csv")
    write_text(tmp_path, second, "b.csv")
    if isinstance(expected, str):
        assert_refused(expected, open_client_files, str(tmp_path), DatasetOptions())
    else:
        source = open_client_files(str(tmp_path), DatasetOptions())
        assert_facts(source, x={name: [[value] for value in x] for name, x in zip("ab", expected, strict=True)})


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
