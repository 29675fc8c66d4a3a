"""Tables of text: what is read from files as pandas and Excel write them."""

import csv
import dataclasses
import gzip
import io
import os
import pathlib

import numpy as np
import pandas
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusals import assert_refused

from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.formats.csv import FORMAT as CSV
from datasets.formats.csv import is_csv, make_csv_table
from datasets.tables.cells import MISSING_WORDS
from datasets.tables.scan import scan_table
from datasets.tables.table import ClientFile, choose_roles, name_places

OPTIONS = DatasetOptions()
FRAME = pandas.DataFrame(
    {
        "user": ["Zoë", "bob", "Zoë", "bob", "李", "李"],
        "age": [30, 41, 29, 35, 52, 61],
        "height": [1.5, 1.75, 1.625, -2.0, 1e-3, 0.5],
        "colour": ["red", "blue", "red", "green", "blue", "red"],
        "smokes": [True, False, False, True, True, False],
        "label": ["yes", "no", "maybe", "no", "yes", "maybe"],
    }
)


def write(tmp_path, text, name="mine.csv", encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return str(path)


def read(path, split="train", **options):
    """{client: (x without the channel, y)} and the source."""
    source = CSV.open(path, dataclasses.replace(OPTIONS, **options))
    found = {name: source.read(client, split) for client, name in enumerate(source.client_names)}
    return {name: (x[..., 0] if source.format.are_features else x, y) for name, (x, y) in found.items()}, source


def test_a_table_of_pandas_becomes_clients(tmp_path):
    path = tmp_path / "mine.csv"
    FRAME.to_csv(path, index=False)
    clients, source = read(str(path))
    assert source.client_names == ("Zoë", "bob", "李")
    assert source.format.class_names == ("maybe", "no", "yes")
    assert source.format.feature_names == ("age", "height", "colour=blue", "colour=green", "colour=red", "smokes")
    assert source.format.input_shape == (6, 1) and source.format.input_dtype == "float32" and source.format.are_features
    np.testing.assert_array_equal(clients["bob"][0], np.float32([[41, 1.75, 1, 0, 0, 0], [35, -2, 0, 1, 0, 1]]))
    np.testing.assert_array_equal(clients["bob"][1], [1, 1])
    np.testing.assert_array_equal(source.num_examples["train"], [2, 2, 2])
    np.testing.assert_array_equal(source.count_labels(), [[1, 0, 1], [0, 2, 0], [1, 0, 1]])
    assert "client user (by its name)" in source.reading and "label label (by its name)" in source.reading
    assert "comma-separated, UTF-8" in source.reading and "colour (3)" in source.reading
    assert CSV.choose_partition(str(path), OPTIONS) == "natural"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"sep": ";", "decimal": ",", "encoding": "utf-8-sig", "lineterminator": "\r\n"}, "decimal comma"),
        ({"sep": "\t"}, "tab-separated"),
        ({"sep": "|"}, "separated by |"),
        ({"encoding": "utf-16"}, "UTF-16"),
        ({"compression": "gzip"}, "gzip"),
        ({"quoting": 1}, "comma-separated"),
    ],
)
def test_other_ways_to_write_it_mean_the_same(tmp_path, how, said):
    plain, other = tmp_path / "plain.csv", tmp_path / "other.csv"
    FRAME.to_csv(plain, index=False)
    FRAME.to_csv(other, index=False, **how)
    expected, found = read(str(plain))[0], read(str(other))
    assert said in found[1].reading
    for name, (x, y) in expected.items():
        np.testing.assert_array_equal(found[0][name][0], x)
        np.testing.assert_array_equal(found[0][name][1], y)


def test_a_file_of_an_old_windows_is_read_and_that_is_said(tmp_path):
    path = write(tmp_path, "user,a,label\nJürgen,1,ä\nJürgen,2,b\n", encoding="cp1252")
    _, source = read(path)
    assert source.client_names == ("Jürgen",) and source.format.class_names == ("b", "ä")
    assert "Windows-1252" in source.reading


def test_the_first_line_of_excel_that_names_the_separator_is_no_header(tmp_path):
    path = write(tmp_path, "sep=;\r\na;label\r\n1,5;x\r\n2;y\r\n")
    clients, _ = read(path)
    np.testing.assert_array_equal(clients[""][0], [[1.5], [2]])
    assert_refused("line 4: column 'a' has 'q'", read, write(tmp_path, "sep=;\na;label\n1;x\nq;y\n" + "2;x\n" * 20))


def test_the_index_of_pandas_is_left_out_and_that_is_said(tmp_path):
    path = tmp_path / "mine.csv"
    FRAME.to_csv(path)
    _, source = read(str(path))
    assert source.format.feature_names[0] == "age"
    assert any("index that pandas writes" in note for note in source.notes)


def test_flags_say_what_columns_are_for(tmp_path):
    text = "who,when,target,b,part\nx,3,1.5,10,train\nx,1,2.5,20,train\ny,2,0.5,30,TEST\nx,2,3.5,40,1\nx,9,4.5,50,0\n"
    path = write(tmp_path, text)
    clients, source = read(path, client_column="who", time_column="when", test_column="part", feature_columns="b")
    np.testing.assert_array_equal(clients["x"][0][:, 0], [20, 10, 50])
    np.testing.assert_array_equal(clients["x"][1], np.float32([2.5, 1.5, 4.5]))
    assert source.read(0, "test")[1].tolist() == [3.5] and source.read(1, "test")[1].tolist() == [0.5]
    assert source.is_ordered_by_time and source.has_tests
    # Of the train part: 2.5, 1.5, 4.5 have the mean 17/6 and the variance 14/9.
    labels = source.pool().format.labels
    assert labels.offset == pytest.approx((17 / 6,)) and labels.scale == pytest.approx(((14 / 9) ** 0.5,))
    assert "task regression, since target has numbers that are not whole" in source.reading
    assert (
        CSV.choose_partition(path, dataclasses.replace(OPTIONS, client_column="b", feature_columns="when")) == "natural"
    )


def test_dates_order_the_rows_of_a_client(tmp_path):
    rows = ["2024-02-01 10:00,1", "2024-01-31 23:59:59,2", "01.03.2024,3", "2024-02-01T09:00:00Z,4"]
    path = write(tmp_path, "time,label\n" + "".join(f"{row}\n" for row in rows), "other.csv")
    text = "time,a,label\n" + "".join(f"{row},{n % 2}\n" for n, row in enumerate(rows))
    clients, source = read(write(tmp_path, text))
    assert clients[""][0][:, 0].tolist() == [2, 4, 1, 3]
    assert "ordered by time (by its name)" in source.reading and not source.has_clients
    assert_refused("no column is left to predict from", read, path)


@pytest.mark.parametrize(
    ("labels", "task", "expected"),
    [
        (["0", "1", "1", "0"], "", ("classification", ("0", "1"))),
        (["1", "2", "3", "1"], "", ("classification", ("1", "2", "3"))),
        (["true", "false", "true", "true"], "", ("classification", ("false", "true"))),
        (["10", "9", "a b", "c"], "", ("classification", ("9", "10", "a b", "c"))),
        (["0.5", "1", "2", "3"], "", ("regression", ())),
        (["0", "1", "1", "0"], "binary", ("binary", ("0", "1"))),
        (["4", "8", "15", "16"], "regression", ("regression", ())),
    ],
)
def test_the_labels_tell_the_task_unless_it_is_given(tmp_path, labels, task, expected):
    text = "a,y\n" + "".join(f"{n},{label}\n" for n, label in enumerate(labels))
    _, source = read(write(tmp_path, text), task=task)
    assert (source.format.labels.task, source.format.class_names) == expected
    partition = CSV.choose_partition(write(tmp_path, text), dataclasses.replace(OPTIONS, task=task))
    assert partition == ("iid" if expected[0] == "regression" else "")


def test_many_whole_numbers_with_gaps_are_measurements(tmp_path):
    text = "a,y\n" + "".join(f"{n},{n * n}\n" for n in range(60))
    assert read(write(tmp_path, text))[1].format.labels.task == "regression"


@pytest.mark.parametrize(
    ("rows", "task", "shape", "y"),
    [
        (["1,0", "1,1", "0,0"], "multi_label", (2,), [[1, 0], [1, 1], [0, 0]]),
        (["1,0", "0,1", "1,0"], "classification", (), [0, 1, 0]),
        (["1,0.5", "2,1", "4,1.5"], "regression", (2,), [[1, 0.5], [2, 1], [4, 1.5]]),
    ],
)
def test_several_label_columns(tmp_path, rows, task, shape, y):
    path = write(tmp_path, "f,u,v\n" + "".join(f"{n},{row}\n" for n, row in enumerate(rows)))
    clients, source = read(path, label_column="u,v")
    assert (source.format.labels.task, source.format.labels.shape) == (task, shape)
    assert source.format.class_names == ("u", "v")
    np.testing.assert_array_equal(clients[""][1], y)


MISSING = "user,a,c,label\nu,1,x,p\nu,,x,q\nv,4,?,p\nv,9,z,q\nv,NA,x,p\n"


def test_missing_values_are_refused_with_the_count_by_column(tmp_path):
    caught = assert_refused("", read, write(tmp_path, MISSING))
    assert "of 5 rows: a 2 (" in caught and "line 3), c 1 (" in caught
    assert "--missing=median" in caught and "--missing=drop" in caught


def test_missing_values_become_medians_of_the_train_part(tmp_path):
    clients, source = read(write(tmp_path, MISSING), missing="median")
    assert source.format.feature_names == ("a", "c=x", "c=z")
    np.testing.assert_array_equal(clients["u"][0], [[1, 1, 0], [4, 1, 0]])
    np.testing.assert_array_equal(clients["v"][0], [[4, 1, 0], [9, 0, 1], [4, 1, 0]])
    text = "a,y,is_test\n1,p,0\n5,q,0\n,p,0\n100,q,1\n,q,1\n"
    clients, source = read(write(tmp_path, text), missing="median")
    assert clients[""][0][:, 0].tolist() == [1, 5, 3] and source.read(0, "test")[0][:, 0, 0].tolist() == [100, 3]


def test_rows_that_lack_values_are_dropped_and_counted(tmp_path):
    clients, source = read(write(tmp_path, MISSING), missing="drop")
    assert clients["u"][0].tolist() == [[1, 1, 0]] and clients["v"][0].tolist() == [[9, 0, 1]]
    assert source.num_dropped == 3


def test_categories_as_an_index(tmp_path):
    clients, source = read(write(tmp_path, "c,y\nb,0\na,1\nb,1\n10,0\n9,1\n"), categories="index")
    assert source.format.feature_names == ("c",) and clients[""][0][:, 0].tolist() == [3, 2, 3, 1, 0]
    assert "index of its category: c (4)" in source.reading


def test_a_table_tells_which_features_are_categories(tmp_path):
    path = write(tmp_path, "user,a,c,y\n" + "u,1.5,x,0\nu,2,z,1\n" * 2)
    assert read(path)[1].format.categories == (1, 2)
    first = read(path, categories="index")[1]
    assert first.format.categories == (1,) and not read(path, feature_columns="a")[1].format.categories
    windows = read(path, categories="index", window=2)[1].format
    assert windows.categories == (1,) and windows.has_whole_steps
    assert read(path, categories="index", window=2, feature_columns="c")[1].format.categories == (0, 1)


def test_columns_that_say_nothing_are_noted(tmp_path):
    text = "id,same,ok,kind,y\n" + "".join(f"{n + 7},3,{n % 2},a,{n % 2}\n" for n in range(6))
    notes = read(write(tmp_path, text))[1].notes
    assert any(note.startswith("column id counts the rows") for note in notes)
    assert any(note.startswith("column same is 3 in every row") for note in notes)
    assert any(note.startswith("column kind is a in every row") for note in notes)
    assert len(notes) == 3


def test_windows_cross_no_client_and_no_gap(tmp_path):
    rows = [("u", 1), ("u", 2), ("u", 3), ("u", 4), ("v", 1), ("u", 50), ("u", 51), ("v", 2), ("v", 3), ("v", 4)]
    text = "user,time,a,b,label\n" + "".join(f"{who},{t},{t * 10},{n},{t % 2}\n" for n, (who, t) in enumerate(rows))
    clients, source = read(write(tmp_path, text), window=2, window_step=1)
    assert source.format.input_shape == (2, 2) and not source.format.are_features
    assert source.format.feature_names == ("a", "b")
    assert clients["u"][0][..., 0].tolist() == [[10, 20], [20, 30], [30, 40], [500, 510]]
    assert clients["u"][1].tolist() == [0, 1, 0, 1]
    assert source.num_examples["train"].tolist() == [4, 3]
    assert source.count_labels().tolist() == [[2, 2], [2, 1]]
    assert "7 windows of 2 rows, one every 1" in source.reading and "crosses one of 1 gap" in source.reading
    assert_refused("window=9: no client has so many rows", read, write(tmp_path, text), window=9)


def test_a_dropped_row_breaks_a_window(tmp_path):
    text = "user,a,y\n" + "".join(f"u,{n if n != 3 else ''},{n % 2}\n" for n in range(8))
    clients, source = read(write(tmp_path, text), window=2, window_step=1, missing="drop")
    assert clients["u"][0][..., 0].tolist() == [[0, 1], [1, 2], [4, 5], [5, 6], [6, 7]]
    assert source.num_dropped == 1


def test_a_second_opening_reads_the_store(tmp_path, monkeypatch):
    path = write(tmp_path, "user,a,y\nu,1,0\nv,2,1\n")
    first = CSV.open(path, OPTIONS)
    monkeypatch.setattr("datasets.tables.source.write_table", None)
    second = CSV.open(path, OPTIONS)
    assert second.digest == first.digest and second.reading == first.reading
    np.testing.assert_array_equal(second.read(1, "train")[0], first.read(1, "train")[0])
    with pytest.raises(TypeError):  # the file is read anew where it is read in another way
        CSV.open(path, dataclasses.replace(OPTIONS, categories="index", feature_columns="a"))


def test_a_large_file_is_read_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.formats.csv.BLOCK_BYTES", 40)
    text = "user,a,y\n" + "".join(f"u{n % 3},{n},{n % 2}\n" for n in range(50))
    clients, source = read(write(tmp_path, text))
    assert source.num_examples["train"].tolist() == [17, 17, 16]
    assert clients["u1"][0][:, 0].tolist() == list(range(1, 50, 3))
    assert_refused(r"line 45: 4 fields, expected 3", read, write(tmp_path, text.replace("u1,43,1", "u1,43,1,9")))


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
    path = write(tmp_path, end.join(lines) + end)
    pieces = list(make_csv_table(path, OPTIONS).read(("name", "said")))
    found = [piece.cells["said"].get_text(row) for piece in pieces for row in range(piece.num_rows)]
    expected = [row[1].strip() for _, row in read_rows(path)[1:]]
    assert found == ["" if text.lower() in MISSING_WORDS else text for text in expected]
    places = name_places(piece.locate(row) for piece in pieces for row in range(piece.num_rows))
    assert [int(place.rsplit(" ", 1)[1]) for place in places] == [line for line, _ in read_rows(path)[1:]]


def read_rows(path):
    """(line in which it begins, fields) of each row."""
    with open(path, newline="", encoding="utf-8") as file:
        reader, rows, line = csv.reader(file, strict=True), [], 1
        for row in reader:
            rows.append((line, row))
            line = reader.line_num + 1
    return rows


def test_a_quote_inside_of_a_field_is_a_letter(tmp_path, monkeypatch):
    text = "user,a,label\n" + "".join(f'u{n % 2},{n},{n}" disk\n' for n in range(9)) + 'u1,9,"a\nb"\n'
    for block_bytes in (30, 2**20):
        monkeypatch.setattr("datasets.formats.csv.BLOCK_BYTES", block_bytes)
        table = make_csv_table(write(tmp_path, text), OPTIONS)
        labels = [cells.get_text(row) for cells in read_column(table, "label") for row in range(len(cells.is_missing))]
        assert labels == [*(f'{n}" disk' for n in range(9)), "a\nb"]


def read_column(table, name):
    return [piece.cells[name] for piece in table.read((name,))]


def test_a_line_is_not_held_that_is_no_row(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.formats.csv.LINE_BYTES", 2**20)
    monkeypatch.setattr("datasets.formats.csv.BLOCK_BYTES", 2**19)
    text = "a,label\n1,0\n2,1\n"
    path = write(tmp_path, gzip.compress((text + "7" * 2**22).encode()), "bomb.csv.gz")
    assert_refused(r"bomb\.csv\.gz, line 4: more than 1 MB without an end of the row", read, path)
    assert_refused(r"line 4: (more than 1 MB|a quote)", read, write(tmp_path, text + '"' + "7\n" * 2**20 + '",1\n'))


def test_places_are_looked_for_once_and_only_when_they_are_told(tmp_path, monkeypatch):
    path = write(tmp_path, "a,b,c,label\n1,,3,0\n,2,3,1\n1,2,,0\n")
    opened, open_text = [], io.TextIOWrapper
    monkeypatch.setattr(io, "TextIOWrapper", lambda *given, **how: opened.append(1) or open_text(*given, **how))
    read(path, missing="median")
    assert not opened
    assert_refused(r"a 1 \(.*line 3\), b 1 \(.*line 2\), c 1 \(.*line 4\)", read, path)
    assert len(opened) == 1


def test_a_long_field_does_not_hide_the_place_of_another(tmp_path):
    path = write(tmp_path, "said,a,label\n" + "x" * 200_000 + ",1,0\ny,,1\n")
    before = csv.field_size_limit(2**17)  # as in a new process: the limit is the process's, others may have raised it
    assert_refused(r"a 1 \(.*mine\.csv, line 3\)", read, path)
    assert csv.field_size_limit(before) == 2**17


def test_the_last_row_may_decide_what_a_column_is(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.formats.csv.BLOCK_BYTES", 256)
    text = "a,label\n" + "".join(f"{n % 7},{n % 2}\n" for n in range(500)) + "red,1\n" * 100
    clients, source = read(write(tmp_path, text))
    assert source.format.feature_names == ("a=0", "a=1", "a=2", "a=3", "a=4", "a=5", "a=6", "a=red")
    assert clients[""][0].sum() == 600


def test_a_table_is_known_by_its_name_or_its_lines(tmp_path):
    assert is_csv(write(tmp_path, "", "a.csv")) and is_csv(write(tmp_path, "", "a.TSV.gz"))
    assert is_csv(write(tmp_path, "a;b\n1;2\n3;4\n", "table.txt"))
    assert is_csv(write(tmp_path, gzip.compress(b"a;b\n1;2\n3;4\n"), "table.gz"))
    assert not is_csv(write(tmp_path, "some words, and more\nthen\n", "words.txt"))
    assert not is_csv(write(tmp_path, '{"users": [1, 2],\n"a": 3,\n', "leaf.json"))
    assert not is_csv(write(tmp_path, bytes(range(256)), "data.bin")) and not is_csv(str(tmp_path))


def test_files_of_one_table_have_the_same_columns(tmp_path):
    first, second = write(tmp_path, "a,y\n1,0\n", "1.csv"), write(tmp_path, "a,z\n1,0\n", "2.csv")
    table = make_csv_table(str(tmp_path), OPTIONS, [ClientFile(first, "u", "train"), ClientFile(second, "v", "train")])
    assert_refused(r"2\.csv: column 'y' is missing", list, table.read(("a", "y")))


@pytest.mark.parametrize(
    "header", ["land,1999,2000,label", "a,2,b,label", "0,1,2,3", "1,2,3,4", "4,b,5,y", "-1,0,1,target"]
)
def test_names_of_columns_can_be_numbers(tmp_path, header):
    path = write(tmp_path, header + "\n" + "1,2,3,0\n4,5,6,1\n")
    _, source = read(path, label_column=header.split(",")[3])
    assert source.format.feature_names == tuple(header.split(",")[:3])


def test_a_pipe_is_not_waited_at(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    assert not is_csv(str(tmp_path / "pipe.csv"))
    assert_refused("no regular file", read, str(tmp_path / "pipe.csv"))
    assert_refused("a folder, expected a table of text", read, str(tmp_path))


def test_a_wide_table_of_numbers_keeps_few_values(tmp_path):
    table = make_csv_table(write(tmp_path, "a,y\n" + "".join(f"{n},0.5\n" for n in range(2000))), OPTIONS)
    scan = scan_table(table, choose_roles(table, OPTIONS))
    assert scan.columns["a"].texts is None and scan.columns["a"].numbers is None
    assert scan.columns["y"].numbers == {0.5}


def test_what_r_writes(tmp_path):
    text = '"","user","a","ok","y"\n"1","u",1.5,TRUE,"x"\n"2","u",NA,FALSE,"y"\n"3","v",2.5,TRUE,"x"\n'
    clients, source = read(write(tmp_path, text), missing="drop")
    assert source.format.feature_names == ("a", "ok") and source.num_dropped == 1
    assert clients["u"][0].tolist() == [[1.5, 1]] and clients["v"][0].tolist() == [[2.5, 1]]


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
    path = tmp_path / "mine.csv"
    frame.to_csv(path, index=False, sep=separator)
    clients, source = read(str(path))
    assert set(clients) == set(frame.user)
    for name, own in frame.groupby("user", sort=False):
        x, y = clients[name]
        np.testing.assert_array_equal(x[:, 0], own.a.to_numpy(np.float32))
        np.testing.assert_array_equal(y, own.y)
        kinds = [source.format.feature_names[1 + place] for place in np.argmax(x[:, 1:], axis=1)]
        assert kinds == [f"kind={kind}" for kind in own.kind]


def test_a_column_whose_name_means_something_else_can_be_a_feature(tmp_path):
    path = write(tmp_path, "device,time,a,y\n1,soon,5,0\n2,late,6,1\n")
    assert_refused("--time_column names another column, or is none", read, path)
    _, source = read(path, time_column="none", client_column="none")
    assert source.format.feature_names == ("device", "time=late", "time=soon", "a")
    assert not source.has_clients and not source.is_ordered_by_time


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
        source = CSV.open(path, DatasetOptions(**options))
        for client in range(len(source.client_names)):
            source.read(client, "train")
    assert expected in str(caught.value) and path in str(caught.value)
