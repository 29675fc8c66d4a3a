"""Tables of text: what is read from files as pandas and Excel write them."""

import csv
import gzip
import io
import os

import numpy as np
import pandas
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusals import assert_refused
from small_tables import assert_facts, open_text, read_split, write_text

from datasets.dataset import DatasetOptions
from datasets.federate import build_federated_data
from datasets.federated_data import SPLITS
from datasets.file_formats import find_format
from datasets.formats.csv import FORMAT as CSV
from datasets.formats.csv import is_csv, make_csv_table
from datasets.partition_settings import PartitionSettings
from datasets.tables.cells import MISSING_WORDS
from datasets.tables.scan import scan_table
from datasets.tables.table import ClientFile, choose_roles, name_locations

OPTIONS = DatasetOptions()
FRAME = pandas.DataFrame(
    {
        "user": ["Zoë", "bob", "Zoë", "bob", "李", "李"],
        "age": [30, 41, 29, 35, 52, 61],
        "height": [1.5, 1.75, 1.625, -2.0, 0.25, 0.5],
        "colour": ["red", "blue", "red", "green", "blue", "red"],
        "smokes": [True, False, False, True, True, False],
        "label": ["yes", "no", "maybe", "no", "yes", "maybe"],
    }
)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({}, "comma-separated, UTF-8"),
        ({"sep": ";", "decimal": ",", "encoding": "utf-8-sig", "lineterminator": "\r\n"}, "decimal comma"),
        ({"sep": "\t"}, "tab-separated"),
        ({"sep": "|"}, "separated by |"),
        ({"encoding": "utf-16"}, "UTF-16"),
        ({"compression": "gzip"}, "gzip"),
        ({"quoting": 1}, "comma-separated"),
    ],
)
def test_a_table_of_pandas_becomes_clients_in_whatever_way_it_is_written(tmp_path, how, said):
    path = str(tmp_path / "mine.csv")
    FRAME.to_csv(path, index=False, **how)
    assert_facts(
        CSV.open(path, OPTIONS),
        said=[said, "client user (by its name)", "label label (by its name)", "colour (3)"],
        clients=("Zoë", "bob", "李"),
        classes=("maybe", "no", "yes"),
        features=("age", "height", "colour=blue", "colour=green", "colour=red", "smokes"),
        shape=(6, 1),
        dtype="float32",
        x={
            "Zoë": [[30, 1.5, 0, 0, 1, 1], [29, 1.625, 0, 0, 1, 0]],
            "bob": [[41, 1.75, 1, 0, 0, 0], [35, -2, 0, 1, 0, 1]],
            "李": [[52, 0.25, 1, 0, 0, 1], [61, 0.5, 0, 0, 1, 0]],
        },
        y={"Zoë": [2, 0], "bob": [1, 1], "李": [2, 0]},
        counts={"train": [2, 2, 2]},
        label_counts=[[1, 0, 1], [0, 2, 0], [1, 0, 1]],
    )
    assert CSV.choose_partition(path, OPTIONS) == "natural"


FLAGGED = "who,when,target,b,part\nx,3,1.5,10,train\nx,1,2.5,20,train\ny,2,0.5,30,TEST\nx,2,3.5,40,1\nx,9,4.5,50,0\n"
FLAGS = {"client_column": "who", "time_column": "when", "test_column": "part", "feature_columns": "b"}
DATES = ["2024-02-01 10:00", "2024-01-31 23:59:59", "01.03.2024", "2024-02-01T09:00:00Z"]
MISSING = "user,a,c,label\nu,1,x,p\nu,,x,q\nv,4,?,p\nv,9,z,q\nv,NA,x,p\n"
OF_R = '"","user","a","ok","y"\n"1","u",1.5,TRUE,"x"\n"2","u",NA,FALSE,"y"\n"3","v",2.5,TRUE,"x"\n'
TIMES = [("u", 1), ("u", 2), ("u", 3), ("u", 4), ("v", 1), ("u", 50), ("u", 51), ("v", 2), ("v", 3), ("v", 4)]
STEPS = "user,time,a,b,label\n" + "".join(f"{who},{t},{t * 10},{n},{t % 2}\n" for n, (who, t) in enumerate(TIMES))
MIXED = "user,a,c,y\n" + "u,1.5,x,0\nu,2,z,1\n" * 2
READ = {
    "an old Windows": (
        "user,a,label\nJürgen,1,ä\nJürgen,2,b\n".encode("cp1252"),
        {},
        {"clients": ("Jürgen",), "classes": ("b", "ä"), "said": ["Windows-1252"]},
    ),
    "Excel names the separator in a line of its own": (
        "sep=;\r\na;label\r\n1,5;x\r\n2;y\r\n",
        {},
        {"x": {"": [[1.5], [2]]}, "features": ("a",)},
    ),
    "the index of pandas": (
        FRAME.to_csv(),
        {},
        {
            "features": ("age", "height", "colour=blue", "colour=green", "colour=red", "smokes"),
            "noted": ["index that pandas writes"],
        },
    ),
    "R": (
        OF_R,
        {"missing": "drop"},
        {"features": ("a", "ok"), "dropped": 1, "x": {"u": [[1.5, 1]], "v": [[2.5, 1]]}},
    ),
    "flags say what columns are for": (
        FLAGGED,
        FLAGS,
        {
            "x": {"x": [[20], [10], [50]], "y": []},
            "y": {"x": [2.5, 1.5, 4.5], "y": []},
            "test_y": {"x": [3.5], "y": [0.5]},
            "is_ordered": True,
            "said": ["task regression, since target has numbers that are not whole"],
        },
    ),
    "dates order the rows of a client": (
        "time,a,label\n" + "".join(f"{row},{n},{n % 2}\n" for n, row in enumerate(DATES, 1)),
        {},
        {"x": {"": [[2], [4], [1], [3]]}, "said": ["ordered by time (by its name)"], "has_clients": False},
    ),
    "medians": (
        MISSING,
        {"missing": "median"},
        {
            "features": ("a", "c=x", "c=z"),
            "x": {"u": [[1, 1, 0], [4, 1, 0]], "v": [[4, 1, 0], [9, 0, 1], [4, 1, 0]]},
            "filled": {"a": 2, "c": 1},
        },
    ),
    "medians are of the train part": (
        "a,y,is_test\n1,p,0\n5,q,0\n,p,0\n100,q,1\n,q,1\n",
        {"missing": "median"},
        {"x": {"": [[1], [5], [3]]}, "test_x": {"": [[100], [3]]}},
    ),
    "the median of truth values is one": (
        "a,b,y\nyes,1,0\nno,2,1\n,4,0\n",
        {"missing": "median"},
        {"x": {"": [[1, 1], [0, 2], [0, 4]]}},
    ),
    "rows that lack values are dropped": (
        MISSING,
        {"missing": "drop"},
        {"x": {"u": [[1, 1, 0]], "v": [[9, 0, 1]]}, "dropped": 3},
    ),
    "categories as an index": (
        "c,y\nb,0\na,1\nb,1\n10,0\n9,1\n",
        {"categories": "index"},
        {"features": ("c",), "x": {"": [[3], [2], [3], [1], [0]]}, "said": ["index of its category: c (4)"]},
    ),
    "which features are categories": (MIXED, {}, {"categories": (1, 2)}),
    "which are indices": (MIXED, {"categories": "index"}, {"categories": (1,)}),
    "no categories": (MIXED, {"feature_columns": "a"}, {"categories": ()}),
    "categories in windows": (MIXED, {"categories": "index", "window": 2}, {"categories": (1,)}),
    "windows of a category": (
        MIXED,
        {"categories": "index", "window": 2, "feature_columns": "c"},
        {"categories": (0, 1)},
    ),
    "columns that say nothing": (
        "id,same,ok,kind,y\n" + "".join(f"{n + 7},3,{n % 2},a,{n % 2}\n" for n in range(6)),
        {},
        {"noted": ["column id counts the rows", "column same is 3 in every row", "column kind is a in every row"]},
    ),
    "windows cross no client and no gap": (
        STEPS,
        {"window": 2, "window_step": 1},
        {
            "shape": (2, 2),
            "features": ("a", "b"),
            "x": {
                "u": [[[10, 0], [20, 1]], [[20, 1], [30, 2]], [[30, 2], [40, 3]], [[500, 5], [510, 6]]],
                "v": [[[10, 4], [20, 7]], [[20, 7], [30, 8]], [[30, 8], [40, 9]]],
            },
            "y": {"u": [0, 1, 0, 1], "v": [0, 1, 0]},
            "counts": {"train": [4, 3]},
            "label_counts": [[2, 2], [2, 1]],
            "said": ["7 windows of 2 rows, one every 1", "crosses one of 1 gap"],
        },
    ),
    "a dropped row breaks a window": (
        "user,a,y\n" + "".join(f"u,{n if n != 3 else ''},{n % 2}\n" for n in range(8)),
        {"window": 2, "window_step": 1, "missing": "drop"},
        {"x": {"u": [[0, 1], [1, 2], [4, 5], [5, 6], [6, 7]]}, "dropped": 1},
    ),
    "columns whose names mean something else": (
        "device,time,a,y\n1,soon,5,0\n2,late,6,1\n",
        {"time_column": "none", "client_column": "none"},
        {"features": ("device", "time=late", "time=soon", "a"), "has_clients": False, "is_ordered": False},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_a_table_is_read(tmp_path, name):
    content, options, facts = READ[name]
    assert_facts(open_text(tmp_path, content, **options), **facts)


def write_series(num_rows=(120, 40, 11), gap_after=30):
    """A row a second of some clients, whose only feature tells the row; after so many rows an hour is missing."""
    lines, number = ["user,time,a,y"], 0
    for client, count in enumerate(num_rows):
        for row in range(count):
            lines.append(f"u{client},{row + 3600 * (row >= gap_after)},{number * 7 % 1009},{row % 2}")
            number += 1
    return "\n".join(lines) + "\n"


WINDOWS = {"feature_columns": "a", "window": 4}


@pytest.mark.parametrize("step", [1, 2, 3, 4, 6])
def test_no_row_of_a_series_lies_on_two_sides(tmp_path, step):
    source = open_text(tmp_path, write_series(), window_step=step, **WINDOWS)
    shares = PartitionSettings(partition="natural", validation_fraction=0.15, test_fraction=0.25)
    data = build_federated_data(source, shares, str(tmp_path))
    for client in data.clients:
        rows = [set(data.read_split(client, split)[0].ravel().tolist()) for split in SPLITS]
        assert not (rows[0] & rows[1] or rows[0] & rows[2] or rows[1] & rows[2]) and rows[0]
    assert sum(client.num_test for client in data.clients) > 0
    overlap = {1: 3, 2: 1, 3: 1}.get(step, 0)
    assert source.overlap == overlap and not source.notes
    assert ("left out, for rows shared" in source.reading) == bool(overlap)
    notes = source.pool().notes
    assert len(notes) == bool(overlap) and all("or --partition=natural" in note for note in notes)


def test_windows_that_share_rows_can_be_kept_as_they_were(tmp_path):
    """The digests are those of versions without the option, by which the files of a client are found."""
    kept, left_out, apart = (
        open_text(tmp_path, write_series(), **WINDOWS, **options)
        for options in ({"window_step": 2, "shared_rows": "keep"}, {"window_step": 2}, {})
    )
    assert (kept.overlap, left_out.overlap, apart.overlap) == (0, 1, 0)
    assert kept.digest == "b276085d62703eb432e7ca521720ed77f439b63c497f2aac70f32826135cadc1"
    assert apart.digest == "3bcc586ea8f9d5e19c7d5c7a74ca090addc6fedb1746c9d40b5d59f3dbab8f99"
    assert left_out.digest not in (kept.digest, apart.digest)
    assert "--window_step=4 makes them apart" in kept.notes[0] and "left out" not in kept.reading


def test_a_regression_has_offset_and_scale_of_its_train_part(tmp_path):
    source = open_text(tmp_path, FLAGGED, **FLAGS)
    # Of the train part: 2.5, 1.5, 4.5 have the mean 17/6 and the variance 14/9.
    labels = source.pool().format.labels
    assert labels.offset == pytest.approx((17 / 6,)) and labels.scale == pytest.approx(((14 / 9) ** 0.5,))
    told = DatasetOptions(client_column="b", feature_columns="when")
    assert CSV.choose_partition(str(tmp_path / "mine.csv"), told) == "natural"


@pytest.mark.parametrize(
    ("labels", "options", "facts"),
    [
        (["0", "1", "1", "0"], {}, {"task": "classification", "classes": ("0", "1")}),
        (["1", "2", "3", "1"], {}, {"task": "classification", "classes": ("1", "2", "3")}),
        (["true", "false", "true"], {}, {"task": "classification", "classes": ("false", "true")}),
        (["10", "9", "a b", "c"], {}, {"task": "classification", "classes": ("9", "10", "a b", "c")}),
        (["0.5", "1", "2", "3"], {}, {"task": "regression", "classes": ()}),
        (["0", "1", "1", "0"], {"task": "binary"}, {"task": "binary", "classes": ("0", "1")}),
        (["4", "8", "15", "16"], {"task": "regression"}, {"task": "regression", "classes": ()}),
        # Many whole numbers with gaps are measurements.
        ([str(n * n) for n in range(60)], {}, {"task": "regression"}),
        (["1,0", "1,1", "0,0"], {}, {"task": "multi_label", "y": {"": [[1, 0], [1, 1], [0, 0]]}}),
        (["1,0", "0,1", "1,0"], {}, {"task": "classification", "y": {"": [0, 1, 0]}, "classes": ("y", "z")}),
        (["1,0.5", "2,1", "4,1.5"], {}, {"task": "regression", "y": {"": [[1, 0.5], [2, 1], [4, 1.5]]}}),
    ],
)
def test_the_labels_tell_the_task_unless_it_is_given(tmp_path, labels, options, facts):
    columns = "y,z" if "," in labels[0] else "y"
    text = f"a,{columns}\n" + "".join(f"{n},{label}\n" for n, label in enumerate(labels))
    options = {"label_column": columns, **options}
    assert_facts(open_text(tmp_path, text, **options), **facts)
    partition = CSV.choose_partition(str(tmp_path / "mine.csv"), DatasetOptions(**options))
    assert partition == ("iid" if facts["task"] in ("regression", "multi_label") else "")


def test_a_large_file_is_read_in_pieces_and_its_last_row_may_decide_what_a_column_is(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.formats.csv.BLOCK_BYTES", 40)
    text = "user,a,y\n" + "".join(f"u{n % 3},{n},{n % 2}\n" for n in range(50))
    x = {f"u{client}": [[n] for n in range(client, 50, 3)] for client in range(3)}
    assert_facts(open_text(tmp_path, text), x=x)
    assert_refused("line 45: 4 fields, expected 3", open_text, tmp_path, text.replace("u1,43,1", "u1,43,1,9"))
    text = "a,label\n" + "".join(f"{n % 7},{n % 2}\n" for n in range(70)) + "red,1\n" * 20
    assert_facts(open_text(tmp_path, text), features=(*(f"a={n}" for n in range(7)), "a=red"))


FIELDS = st.one_of(
    st.sampled_from(["a,b", 'say "so"', "two\nlines", "two\r\nlines", "", "Zoë", '5" disk', "x y"]),
    st.text('ab,"\n;é', max_size=6),
)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(FIELDS, FIELDS, st.booleans()), min_size=1, max_size=30),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    block_bytes=st.integers(40, 90),
)
def test_blocks_are_cut_between_rows_alone(tmp_path, monkeypatch, rows, end, block_bytes):
    monkeypatch.setattr("datasets.formats.csv.BLOCK_BYTES", block_bytes)
    lines = ["name,said,label"]
    for name, said, is_bare in rows:  # without need of them, quotes may stand inside of a field
        is_bare = is_bare and not set(said) & set(',\n\r"')
        written = ['"' + field.replace('"', '""') + '"' for field in (name, said)]
        lines.append(",".join([written[0], said if is_bare else written[1], "1"]))
    path = write_text(tmp_path, end.join(lines) + end)
    pieces = list(make_csv_table(path, OPTIONS).read(("name", "said")))
    found = [piece.cells["said"].get_text(row) for piece in pieces for row in range(piece.num_rows)]
    expected = [row[1].strip() for _, row in read_rows(path)[1:]]
    assert found == ["" if text.lower() in MISSING_WORDS else text for text in expected]
    places = name_locations(piece.locate(row) for piece in pieces for row in range(piece.num_rows))
    assert [int(place.rsplit(" ", 1)[1]) for place in places] == [line for line, _ in read_rows(path)[1:]]


def read_rows(path):
    """(line in which it begins, fields) of each row."""
    with open(path, newline="", encoding="utf-8") as file:
        reader, rows, line = csv.reader(file, strict=True), [], 1
        for row in reader:
            rows.append((line, row))
            line = reader.line_num + 1
    return rows


@pytest.mark.parametrize("block_bytes", [30, 2**20])
def test_a_quote_inside_of_a_field_is_a_letter(tmp_path, monkeypatch, block_bytes):
    monkeypatch.setattr("datasets.formats.csv.BLOCK_BYTES", block_bytes)
    text = "user,a,label\n" + "".join(f'u{n % 2},{n},{n}" disk\n' for n in range(9)) + 'u1,9,"a\nb"\n'
    pieces = list(make_csv_table(write_text(tmp_path, text), OPTIONS).read(("label",)))
    labels = [piece.cells["label"].get_text(row) for piece in pieces for row in range(piece.num_rows)]
    assert labels == [*(f'{n}" disk' for n in range(9)), "a\nb"]


def test_a_line_is_not_held_that_is_no_row(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.formats.csv.LINE_BYTES", 2**20)
    monkeypatch.setattr("datasets.formats.csv.BLOCK_BYTES", 2**19)
    text = "a,label\n1,0\n2,1\n"
    bomb = gzip.compress((text + "7" * 2**22).encode())
    assert_refused(r"mine\.csv, line 4: more than 1 MB without an end of the row", open_text, tmp_path, bomb)
    open_quote = text + '"' + "7\n" * 2**20 + '",1\n'
    assert_refused(r"line 4: (more than 1 MB|a quote)", open_text, tmp_path, open_quote)


def test_places_are_looked_for_once_and_only_when_they_are_told(tmp_path, monkeypatch):
    text = "a,b,c,label\n1,,3,0\n,2,3,1\n1,2,,0\n"
    opened, open_wrapper = [], io.TextIOWrapper
    monkeypatch.setattr(io, "TextIOWrapper", lambda *given, **how: opened.append(1) or open_wrapper(*given, **how))
    open_text(tmp_path, text, missing="median")
    assert not opened
    assert_refused(r"a 1 \(.*line 3\), b 1 \(.*line 2\), c 1 \(.*line 4\)", open_text, tmp_path, text)
    assert len(opened) == 1


def test_a_long_field_does_not_hide_the_place_of_another(tmp_path):
    before = csv.field_size_limit(2**17)  # as in a new process: the limit is the process's, others may have raised it
    text = "said,a,label\n" + "x" * 200_000 + ",1,0\ny,,1\n"
    assert_refused(r"a 1 \(.*mine\.csv, line 3\)", open_text, tmp_path, text)
    assert csv.field_size_limit(before) == 2**17


@pytest.mark.parametrize(
    ("name", "content", "is_table"),
    [
        ("a.csv", "", True),
        ("a.TSV.gz", "", True),
        ("table.txt", "a;b\n1;2\n3;4\n", True),
        ("table.gz", gzip.compress(b"a;b\n1;2\n3;4\n"), True),
        ("words.txt", "some words, and more\nthen\n", False),
        ("leaf.json", '{"users": [1, 2],\n"a": 3,\n', False),
        ("data.bin", bytes(range(256)), False),
        ("damaged.gz", b"\x1f\x8b" + bytes(20), False),
    ],
)
def test_a_table_is_known_by_its_name_or_its_lines(tmp_path, name, content, is_table):
    assert is_csv(write_text(tmp_path, content, name)) == is_table


def test_a_pipe_is_not_waited_at_and_a_folder_is_no_table(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    assert not is_csv(str(tmp_path / "pipe.csv")) and not is_csv(str(tmp_path))
    assert_refused("no regular file", CSV.open, str(tmp_path / "pipe.csv"), OPTIONS)
    assert_refused("a folder, expected a table of text", CSV.open, str(tmp_path), OPTIONS)


def test_files_of_one_table_have_the_same_columns(tmp_path):
    paths = [write_text(tmp_path, f"a,{name}\n1,0\n", f"{name}.csv") for name in "yz"]
    table = make_csv_table(str(tmp_path), OPTIONS, [ClientFile(path, path, "train") for path in paths])
    assert_refused(r"z\.csv: column 'y' is missing, which .*y\.csv has; it has a, z", list, table.read(("a", "y")))


@pytest.mark.parametrize(
    "header", ["land,1999,2000,label", "a,2,b,label", "0,1,2,3", "1,2,3,4", "4,b,5,y", "-1,0,1,target"]
)
def test_names_of_columns_can_be_numbers(tmp_path, header):
    *features, label = header.split(",")
    source = open_text(tmp_path, f"{header}\n1,2,3,0\n4,5,6,1\n", label_column=label)
    assert source.format.feature_names == tuple(features)


def test_a_wide_table_of_numbers_keeps_few_values(tmp_path):
    table = make_csv_table(write_text(tmp_path, "a,y\n" + "".join(f"{n},0.5\n" for n in range(2000))), OPTIONS)
    y, a = scan_table(table, choose_roles(table, OPTIONS)).columns.values()
    assert (a.texts, a.numbers, y.numbers) == (None, None, {0.5})


NAMES = st.text("aB7 é李ß,;|\"'.-%", min_size=1, max_size=8).map(str.strip)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.tuples(
            NAMES.filter(lambda name: name.lower() not in MISSING_WORDS),
            st.floats(-1e6, 1e6, width=32),
            st.sampled_from(["aa", "b;b", 'c"c', "d,d", "f|f"]),
        ),
        min_size=2,
        max_size=12,
    ),
    separator=st.sampled_from([",", ";", "\t", "|"]),
)
def test_what_pandas_writes_comes_back(tmp_path, rows, separator):
    frame = pandas.DataFrame(rows, columns=["user", "a", "kind"]).assign(y=[n % 2 for n in range(len(rows))])
    frame.to_csv(tmp_path / "mine.csv", index=False, sep=separator)
    source = CSV.open(str(tmp_path / "mine.csv"), OPTIONS)
    kinds = [name.removeprefix("kind=") for name in source.format.feature_names[1:]]
    xs, ys = read_split(source)
    found = {name: [(row[0], kinds[int(np.argmax(row[1:]))]) for row in x] for name, x in xs.items()}
    own = dict(iter(frame.groupby("user", sort=False)))
    assert found == {name: list(zip(part.a, part.kind, strict=True)) for name, part in own.items()}
    assert ys == {name: part.y.tolist() for name, part in own.items()}


GOOD = "user,a,b,label\n" + "".join(f"u{n % 2},{n},{n * 0.5},{'xy'[n % 2]}\n" for n in range(20))
WRONG = {
    "too many fields": (GOOD + "u1,1,2,x,9\n", {}, "mine.csv, line 22: 5 fields, expected 4"),
    "too few fields": (GOOD + "u1,1\n", {}, "line 22: 2 fields, expected 4 as the first line has"),
    "a text among numbers": (GOOD + "u1,oops,2,x\n", {}, "line 22: column 'a' has 'oops', expected a number"),
    "a line for Excel": ("sep=;\na;label\n1;x\nq;y\n" + "2;x\n" * 20, {}, "line 4: column 'a' has 'q'"),
    "no header": (GOOD.split("\n", 1)[1], {}, "line 1: no header, u0, 0, 0.0, x are values, expected"),
    "no header but numbers": ("5;3.5;1\n4;;0\n", {}, "add a first line with names, as in x1;x2;label"),
    "no header of many": ("5,7,9" * 9 + "\n" + "4,,1" * 9 + "\n", {}, "with names, as in x1,x2,...,label"),
    "a header twice": (GOOD + "user,a,b,label\n", {}, "line 22: the names of the columns stand here again"),
    "a name twice": (GOOD.replace("a,b", "a,a"), {}, "line 1: columns 2 and 3 are all called 'a'"),
    "a column without a name": (GOOD.replace("a,b", "a,"), {}, "line 1: column 3 has no name"),
    "nothing": ("", {}, "empty, expected the names of the columns"),
    "blanks": ("\n \n", {}, "empty, expected"),
    "a header alone": ("user,a,label\n", {}, "no rows below the names of the columns"),
    "missing values": (MISSING, {}, "of 5 rows: a 2 (mine.csv, line 3), c 1 (mine.csv, line 4); expected none; --mis"),
    "missing numbers": ("a,y\n,0\n1,1\n", {}, "--missing=median fills them, --missing=drop leaves such rows out"),
    "a row without a client": (GOOD + ",1,2,x\n", {}, "user 1 ("),
    "a row without a label": (GOOD + "u1,1,2,\n", {}, "label 1 ("),
    "a label missing and medians": (GOOD + "u1,1,2,\n", {"missing": "median"}, "--missing=drop leaves such rows out"),
    "zeros": (b"user,a\x00,label\n1,2,3\n", {}, "a binary file, byte 6 is 0"),
    "an archive": (b"PK\x03\x04" + bytes(range(1, 60)), {}, "no table of text but a zip archive; unpack it"),
    "a workbook": (b"PK\x03\x04..[Content_Types].xml" + bytes(9), {}, "an Excel workbook; save the sheet as CSV"),
    "an old workbook": (b"\xd0\xcf\x11\xe0" + bytes(9), {}, "an Excel workbook; save the sheet as CSV"),
    "neither encoding": (GOOD.encode() + b"u1,1,2,\x81\n", {}, "line 22: neither UTF-8 nor Windows-1252"),
    "a damaged gzip": (gzip.compress(GOOD.encode())[:-20], {}, "damaged or cut gzip file"),
    "an open quote": (GOOD + 'u1,1,2,"x\n' + "u1,1,2,x\n" * 3, {}, 'line 22: a quote " is opened and never closed'),
    "an open quote in the header": ('user,"a\n1,2\n', {}, 'line 1: a quote " is opened and never closed'),
    "a text behind a quote": (GOOD + 'u1,1,2,"x"y\n', {}, 'line 22: text stands after a closing quote "'),
    "one column": ("label\n1\n2\n", {}, "one column only, the first line is 'label'"),
    "dates and a label": ("time,label\n" + "".join(f"{row},1\n" for row in DATES), {}, "no column is left to predict"),
    "an unknown column": (GOOD, {"client_column": "usr"}, "client_column=usr: no such column"),
    "what it may be": (GOOD, {"label_column": "lable"}, "did you mean label?"),
    "a column for two": (GOOD, {"client_column": "a", "feature_columns": "a,b"}, "'a' stands in --client_column and"),
    "a column twice": (GOOD, {"feature_columns": "a,b,a"}, "column 'a' stands twice in --feature_columns"),
    "a column used and dropped": (GOOD, {"feature_columns": "a", "drop_columns": "b,a"}, "'a' stands in --feature_col"),
    "a client dropped": (
        GOOD,
        {"client_column": "b", "drop_columns": "b"},
        "'b' stands in --client_column and in",
    ),
    "an unknown column dropped": (
        GOOD,
        {"drop_columns": "lable"},
        "drop_columns=lable: no such column, it has user",
    ),
    "the label dropped": (GOOD, {"drop_columns": "label"}, "'label' stands in --drop_columns and is the label by its"),
    "whose they are dropped": (GOOD, {"drop_columns": "user"}, "of it; give --client_column=none for no clients"),
    "all dropped": (GOOD, {"drop_columns": "a,b"}, "no column is left to predict from"),
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
    "no way to order": ("device,time,a,y\n1,soon,5,0\n", {}, "--time_column names another column, or is none"),
    "no test mark": (GOOD, {"test_column": "b"}, "line 2: column 'b' says '0.0', expected true, 1 or test"),
    "an empty test mark": ("a,y,split\n1,0,\n", {"missing": "drop"}, "column 'split' says nothing, expected true"),
    "an order without a column": (GOOD, {"date_form": "dmy"}, "date_form=dmy: no column orders the rows; name it by"),
    "an endless number": (GOOD + "u1,inf,2,x\n", {}, "line 22: column 'a' has inf, expected a finite number"),
    "too large": (GOOD + "u1,1e39,2,x\n", {}, "line 22: column 'a' has 1e39, expected a finite number"),
    "ids": ("a,y\n" + "".join(f"id{n},{n % 2}\n" for n in range(150)), {}, "100 different texts, such as 'id0'"),
    "one class": ("a,y\n1,0\n2,0\n", {}, "label column 'y': 1 class, expected at least 2"),
    "three classes of two": ("a,y\n1,0\n2,1\n3,2\n", {"task": "binary"}, "3 classes, expected 2 for --task=binary"),
    "text for a number": (GOOD, {"task": "regression"}, "label column 'label' has 'x', expected a number"),
    "classes with fractions": ("a,y\n1,.5\n2,1\n", {"task": "classification"}, "numbers that are not whole"),
    "several for one": (GOOD, {"task": "multi_label", "label_column": "a"}, "needs several columns of 0 and 1"),
    "next words": (GOOD, {"task": "next_token"}, "task=next_token is for text, expected another for a label"),
    "labels that are large": ("a,y\n1,0\n2,9007199254740993\n", {"task": "classification"}, "whole numbers from 2**53"),
    "an endless label": ("a,y\n1,inf\n2,1.5\n", {}, "line 2: label column 'y' has inf, expected a finite number"),
    "labels of other numbers": (
        "a,y,z\n1,2,0\n2,1,1\n",
        {"task": "multi_label", "label_column": "y,z"},
        "label columns y, z hold other numbers than 0 and 1",
    ),
    "rows of several classes": (
        "a,y,z\n1,1,1\n2,1,0\n",
        {"task": "classification", "label_column": "y,z"},
        "label columns y, z have rows with 1 to 2 ones, expected one in each",
    ),
    "a layout": (GOOD, {"layout": "image"}, "layout=image: the columns of a table are features"),
    "long windows": (STEPS, {"window": 9}, "window=9: no client has so many rows"),
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
        "the class 'p\\nq' holds the control character",
    ),
    "a control character": ("user,a,y\nu\x1b[2J,1,0\nv,2,1\n", {}, "holds the control character"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_one_line_that_names_the_place(tmp_path, monkeypatch, name):
    content, options, expected = WRONG[name]
    monkeypatch.chdir(tmp_path)
    write_text(tmp_path, content)
    caught = assert_refused("", CSV.open, "mine.csv", DatasetOptions(**options))
    assert expected in caught and "mine.csv" in caught


def test_a_workbook_is_known_by_its_name_though_it_is_broken_unless_it_is_text(tmp_path):
    for content in (b"", b"PK", b"\x00\x01"):
        path = write_text(tmp_path, content, "mine.XLSX")
        assert find_format(path) is CSV
        assert_refused("an Excel workbook; save the sheet as CSV$", CSV.open, path, DatasetOptions())
    assert CSV.open(write_text(tmp_path, GOOD, "mine.xls"), DatasetOptions()).format.feature_names == ("a", "b")
