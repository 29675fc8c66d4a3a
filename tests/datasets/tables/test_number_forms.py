"""Tables with numbers written for people: all values of a column decide, and what none decides is one line."""

import csv
import io
import math

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from refusals import assert_refused

from datasets.dataset import DatasetOptions
from datasets.formats.client_files import open_client_files
from datasets.formats.csv import FORMAT as CSV
from datasets.formats.parquet import FORMAT as PARQUET
from datasets.tables.written_numbers import is_odd, is_unit, read_written


def write(tmp_path, separator=",", name="mine.csv", **columns):
    """A table of these columns and, unless it is given, of labels x and z in turns."""
    columns.setdefault("y", ["xz"[row % 2] for row in range(len(next(iter(columns.values()))))])
    text = io.StringIO()
    rows = csv.writer(text, delimiter=separator, lineterminator="\n")
    rows.writerows([list(columns), *zip(*columns.values(), strict=True)])
    (tmp_path / name).write_text(text.getvalue(), encoding="utf-8")
    return str(tmp_path / name)


def read(path, **options):
    """(features by row, labels, source)."""
    opened = PARQUET.open if path.endswith(".parquet") else CSV.open
    source = opened(path, DatasetOptions(**options))
    x, y = source.read(0, "train")
    return x[..., 0].T.tolist(), y.tolist(), source


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
    found, _, source = read(write(tmp_path, a=values))
    np.testing.assert_array_equal(found, [np.float32(expected).tolist()])
    assert said in source.reading and source.format.feature_names == ("a",)


@pytest.mark.parametrize("name", READ)
def test_text_of_parquet_is_read_alike(tmp_path, name):
    values, expected, said = READ[name]
    if name == "full width":  # digits alone are codes there
        values, expected = [*values, "1,5"], [*expected, 1.5]
    path = str(tmp_path / "mine.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"a": values, "y": [row % 2 for row in range(len(values))]}), path)
    found, _, source = read(path)
    np.testing.assert_array_equal(found, [np.float32(expected).tolist()])
    assert said in source.reading or name == "full width"


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
    "free text": ([f"the text number {each} is long" for each in LONG], "free text, names or ids", "--feature_columns"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_is_one_line_that_never_advises_the_index_of_a_category(tmp_path, name):
    values, *expected = REFUSED[name]
    caught = assert_refused("", read, write(tmp_path, a=values))
    assert all(part in caught for part in expected), caught
    assert "\n" not in caught and "categories=index" not in caught


def test_a_decimal_comma_may_begin_anywhere(tmp_path):
    values = [*LONG, "250,5"]
    expected = [*map(float, LONG), 250.5]
    for rows in (values, values[::-1]):
        found, _, source = read(write(tmp_path, ";", a=rows))
        assert sorted(found[0]) == expected
        assert "decimal comma" in source.reading or "250,5 read as 250.5" in source.reading


def test_a_stray_point_far_below_decimal_commas_is_found(tmp_path):
    values = [f"{each},5" for each in LONG]
    assert_refused(
        r"line 252: column 'a' has '12.5', but '0,5' in other rows", read, write(tmp_path, ";", a=[*values, "12.5"])
    )
    found, *_ = read(write(tmp_path, ";", a=[*values, "1.230,5"]))
    assert found[0][-2:] == [249.5, 1230.5]
    found, *_ = read(write(tmp_path, ";", a=[*values, "1.230"]))
    assert found[0][-1] == 1230


def test_thousands_of_a_tab_separated_file_are_no_decimals(tmp_path):
    path = write(tmp_path, "\t", a=["900", "1,230"])
    assert_refused(r"which is 1230 or 1.23", read, path)
    assert read(path, decimal_mark="point")[0] == [[900, 1230]]
    assert read(path, decimal_mark="comma")[0] == [[900, np.float32(1.23)]]


def test_semicolons_make_commas_decimal_unless_no_program_writes_such(tmp_path):
    found, _, source = read(write(tmp_path, ";", a=["21,437", "19,880"]))
    np.testing.assert_array_equal(found, np.float32([[21.437, 19.88]]))
    assert any("such as 21,437, read as 21.437; if 21437 is meant" in note for note in source.notes)
    assert_refused(r"'1,230', which is 1230 or 1.23", read, write(tmp_path, ";", a=["900", "1,230"]))
    found, _, source = read(write(tmp_path, ";", a=["21,437", "19,880"]), decimal_mark="point")
    assert found == [[21437, 19880]] and "read as 21437" in source.reading and not source.notes


def test_other_columns_decide_and_the_flag_holds_for_all(tmp_path):
    assert read(write(tmp_path, a=["900", "1,230"], b=["0.5", "2"]))[0] == [[900, 1230], [0.5, 2]]
    assert read(write(tmp_path, a=["900", "1,230"], b=["0,5", "2"]))[0] == [[900, np.float32(1.23)], [0.5, 2]]
    assert read(write(tmp_path, ";", a=["1.230", "2.450"], b=["0,5", "2"]))[0] == [[1230, 2450], [0.5, 2]]
    assert_refused(
        r"line 2: column 'b' has '0.5', which is no number with a decimal comma",
        read,
        write(tmp_path, a=["900", "1,230"], b=["0.5", "2"]),
        decimal_mark="comma",
    )


def test_plain_numbers_codes_and_names_stay_what_they_were(tmp_path):
    found, _, source = read(write(tmp_path, ";", a=["1.125", "2.250", "3.500"], b=["007", "01234", "5"]))
    assert found == [[1.125, 2.25, 3.5], [7, 1234, 5]] and "read as" not in source.reading
    assert any("such as 1.125, read as 1.125; if 1125 is meant, give --decimal_mark=comma" in n for n in source.notes)
    columns = {"a": ["1st", "2nd", "1st"], "b": ["2 door", "4 door", "2 door"], "c": ["<20", "20-30", ">30"]}
    names = read(write(tmp_path, **columns))[2].format.feature_names
    assert names == ("a=1st", "a=2nd", "b=2 door", "b=4 door", "c=20-30", "c=<20", "c=>30")
    source = CSV.open(write(tmp_path, user=["007", "7", "$7"], a=["$1", "$2", "$3"]), DatasetOptions())
    assert set(source.client_names) == {"007", "7", "$7"}


def test_numbers_that_stay_categories_are_named(tmp_path):
    _, _, source = read(write(tmp_path, a=["0", "1", "2", "3+"]))
    assert "a (4)" in source.reading and any("since '3+' stands among them" in note for note in source.notes)
    path = str(tmp_path / "mine.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"zip": ["01234", "99999"], "y": [0, 1]}), path)
    assert read(path)[2].format.feature_names == ("zip=01234", "zip=99999")
    notes = read(write(tmp_path, a=["true", "no", "45"], b=["yes", "no", "no"], c=["1", "yes", "0"]))[2].notes
    assert notes == ("among the numbers in a stands yes or no, true or false, in 2 rows, which is taken as 1 or 0",)
    ids = write(tmp_path, a=[f"id{row}" for row in range(50)])
    assert any("another text in nearly each row" in note for note in read(ids)[2].notes)


def test_files_of_clients_that_are_written_differently_have_one_reading(tmp_path):
    def read_folder(**texts):
        folder = tmp_path / "_".join(texts)
        folder.mkdir()
        for name, text in texts.items():
            (folder / f"{name}.csv").write_text(text)
        source = open_client_files(str(folder), DatasetOptions())
        return [source.read(client, "train")[0][..., 0].T.tolist() for client in range(2)]

    assert read_folder(a="v;y\n9,5;0\n4;1\n", b="v;y\n1.230;0\n801;1\n") == [[[9.5, 4]], [[1230, 801]]]
    assert read_folder(c="v;y\n5,5;0\n7;1\n", d="v;y\n9.5;0\n11;1\n") == [[[5.5, 7]], [[9.5, 11]]]
    late = "v;y\n" + "9;0\n" * 220 + "9,5;1\n"
    assert read_folder(e="v;y\n5,5;0\n7;1\n", f=late)[1][0][-1] == 9.5
    assert_refused(
        r"h.csv, line 2: column 'v' has '9', but '5%' in other rows",
        read_folder,
        g="v,y\n5%,0\n7%,1\n",
        h="v,y\n9,0\n11,1\n",
    )


def test_a_regression_has_the_same_numbers_and_few_classes_keep_their_names(tmp_path):
    path = write(tmp_path, a=LONG[:60], y=[f"${number},{number:03}.50" for number in range(1, 61)])
    _, y, source = read(path)
    assert source.format.labels.task == "regression" and y[:2] == [1001.5, 2002.5]
    assert CSV.choose_partition(path, DatasetOptions()) == "iid"
    _, _, source = read(write(tmp_path, a=["1", "2", "3"], y=["5%", "10%", "20%"]))
    assert source.format.class_names == ("10%", "20%", "5%")
    assert any("the labels in y, such as '5%', are classes" in note for note in source.notes)
    _, y, _ = read(write(tmp_path, a=["1", "2", "3"], y=["5%", "10%", "20%"]), task="regression")
    assert y == np.float32([0.05, 0.1, 0.2]).tolist()


def test_missing_amounts_are_missing(tmp_path):
    path = write(tmp_path, a=["$1", "", "$3", "$9"])
    assert_refused(r"missing values.*a 1 \(", read, path)
    assert read(path, missing="median")[0] == [[1, 3, 3, 9]]


def test_a_second_reading_is_the_same_and_no_store_of_an_earlier_version_is_opened(tmp_path, monkeypatch):
    path = write(tmp_path, a=["12 %", "5 %"])
    first, again = read(path), read(path)
    assert first[:2] == again[:2] and first[2].digest == again[2].digest and first[2].reading == again[2].reading
    plain = write(tmp_path, name="plain.csv", a=["12", "5"])
    read(plain)
    monkeypatch.setattr("datasets.tables.source.STORE_VERSION", 1)
    written = []
    monkeypatch.setattr("datasets.tables.source.write_table", lambda *_: written.append(True) or pytest.skip("anew"))
    for each in (path, plain):
        with pytest.raises(pytest.skip.Exception):
            read(each)
    assert len(written) == 2


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
