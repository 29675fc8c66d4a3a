"""Tables of text that are wrong: one line for each way, which names the place."""

import gzip
import pathlib

import pytest

from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.formats.csv import open_csv


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


GOOD = "user,a,b,label\n" + "".join(f"u{n % 2},{n},{n * 0.5},{'xy'[n % 2]}\n" for n in range(20))
WRONG = {
    "too many fields": (GOOD + "u1,1,2,x,9\n", {}, "mine.csv, line 22: 5 fields, expected 4"),
    "too few fields": (GOOD + "u1,1\n", {}, "line 22: 2 fields, expected 4 as the first line has"),
    "a text among numbers": (GOOD + "u1,oops,2,x\n", {}, "line 22: column 'a' has 'oops', expected a number"),
    "no header": (GOOD.split("\n", 1)[1], {}, "line 1: u0, 0, 0.0, x are values, expected the names of the columns"),
    "a header twice": (GOOD + "user,a,b,label\n", {}, "line 22: the names of the columns stand here again"),
    "a name twice": (GOOD.replace("a,b", "a,a"), {}, "line 1: columns 2 and 3 are all called 'a'"),
    "a column without a name": (GOOD.replace("a,b", "a,"), {}, "line 1: column 3 has no name"),
    "nothing": ("", {}, "empty, expected the names of the columns"),
    "blanks": ("\n \n", {}, "empty, expected"),
    "a header alone": ("user,a,label\n", {}, "no rows below the names of the columns"),
    "a row without a client": (GOOD + ",1,2,x\n", {}, "user 1 ("),
    "a row without a label": (GOOD + "u1,1,2,\n", {}, "label 1 ("),
    "a label missing and medians": (GOOD + "u1,1,2,\n", {"missing": "median"}, "--missing=drop leaves such rows out"),
    "zeros": (b"user,a\x00,label\n1,2,3\n", {}, "a binary file, byte 6 is 0"),
    "a workbook": (b"PK\x03\x04" + bytes(range(1, 60)), {}, "a zip archive or an Excel workbook"),
    "neither encoding": (GOOD.encode() + b"u1,1,2,\x81\n", {}, "line 22: neither UTF-8 nor Windows-1252"),
    "a damaged gzip": (gzip.compress(GOOD.encode())[:-20], {}, "damaged or cut gzip file"),
    "an open quote": (GOOD + 'u1,1,2,"x\n' + "u1,1,2,x\n" * 3, {}, 'line 22: a quote " is opened and never closed'),
    "a text behind a quote": (GOOD + 'u1,1,2,"x"y\n', {}, 'line 22: text stands after a closing quote "'),
    "one column": ("label\n1\n2\n", {}, "one column only, the first line is 'label'"),
    "an unknown column": (GOOD, {"client_column": "usr"}, "client_column=usr: no such column"),
    "what it may be": (GOOD, {"label_column": "lable"}, "did you mean label?"),
    "a column for two": (
        GOOD,
        {"client_column": "a", "feature_columns": "a,b"},
        "column 'a' stands in --client_column",
    ),
    "no label": (GOOD.replace("label", "what"), {}, "no column is called label, target, y or class"),
    "two labels": (GOOD.replace("b,label", "y,label"), {}, "columns y, label could each be meant by --label_column"),
    "two clients": (GOOD.replace("a,b", "device,b"), {}, "columns user, device could each be meant"),
    "dates": (
        GOOD.replace("a,b", "a,when").replace(",0.5,", ",2024-01-02,"),
        {},
        "line 3: column 'when' holds dates ('2024-01-02')",
    ),
    "dates alone": ("a,y\n2024-01-01,0\n2024-01-02,1\n", {}, "line 2: column 'a' holds dates ('2024-01-01')"),
    "no time": (GOOD.replace("b,", "time,", 1) + "u1,1,soon,x\n", {}, "line 22: column 'time' has 'soon'"),
    "no test mark": (GOOD, {"test_column": "b"}, "line 2: column 'b' says '0.0', expected true, 1 or test"),
    "an endless number": (GOOD + "u1,inf,2,x\n", {}, "line 22: column 'a' has inf, expected a finite number"),
    "too large": (GOOD + "u1,1e39,2,x\n", {}, "line 22: column 'a' has 1e39, expected a finite number"),
    "ids": (
        "a,y\n" + "".join(f"id{n},{n % 2}\n" for n in range(150)),
        {},
        "more than 100 different texts, such as 'id0'",
    ),
    "one class": ("a,y\n1,0\n2,0\n", {}, "label column 'y': 1 class, expected at least 2"),
    "three classes of two": ("a,y\n1,0\n2,1\n3,2\n", {"task": "binary"}, "3 classes, expected 2 for --task=binary"),
    "text for a number": (GOOD, {"task": "regression"}, "label column 'label' has 'x', expected a number"),
    "classes with fractions": ("a,y\n1,.5\n2,1\n", {"task": "classification"}, "numbers that are not whole"),
    "several for one": (GOOD, {"task": "multi_label", "label_column": "a"}, "needs several columns of 0 and 1"),
    "a layout": (GOOD, {"layout": "image"}, "layout=image: the columns of a table are features"),
    "no value": ("a,b,y\n,1,0\n,2,1\n", {"missing": "median"}, "column 'a' has no value in any row"),
    "words for nothing": (
        "a,y\n" + "".join(f"{n if n % 3 else 'unknown'},{n % 2}\n" for n in range(600)),
        {},
        "line 2: column 'a' has 'unknown', expected a number",
    ),
    "no whole row": ("a,b,y\n,1,0\n1,,1\n", {"missing": "drop"}, "each of the 2 rows lacks a value"),
    "a tab in a category": ('a,y\n"p\tq",0\nr,1\n', {}, "column 'a': the category 'p\\tq' holds the control character"),
    "a line in a class": (
        'a,y\n1,"p\nq"\n2,r\n',
        {},
        "label column 'y': the class 'p\\nq' holds the control character",
    ),
    "a control character": ("user,a,y\nu\x1b[2J,1,0\nv,2,1\n", {}, "holds the control character"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_one_line_that_names_the_place(tmp_path, name):
    content, options, expected = WRONG[name]
    path = str(tmp_path / "mine.csv")
    pathlib.Path(path).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DatasetError) as caught:
        source = open_csv(path, DatasetOptions(**options))
        for client in range(len(source.client_names)):
            source.read(client, "train")
    assert expected in str(caught.value) and path in str(caught.value)
    assert "\n" not in str(caught.value)
