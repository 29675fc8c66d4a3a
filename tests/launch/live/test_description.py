"""People's own tables, described by the organiser's, are read by `join.py` to the bits of the suite's own reader."""

import gzip
import json
import types

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from small_tables import write_text

from datasets.dataset import DatasetOptions
from datasets.digits import DIGITS_FORMAT
from datasets.drawn_images import describe_image
from datasets.errors import DatasetError
from datasets.example_format import CLASSIFICATION, REGRESSION, Preprocessing
from datasets.formats.csv import FORMAT as CSV
from launch.live import join
from launch.live.description import describe_examples, describe_table, digest, find_scaling, make_format
from launch.settings.run_config import build_run_config
from tff_algos.settings.config_fields import ConfigError

PEOPLE = "age,colour,smokes,label\n30,red,yes,no\n41.5,green,no,yes\n7,red,true,no\n1e2,blue,0,yes\n"
GERMAN = "Größe;Gewicht;Straße;label\n1,75;70;Süd;ja\n1,6;55,5;Nord;nein\n;1,230;Süd;ja\n"


def describe_text(folder, content, **options):
    options = DatasetOptions(**options)
    return describe_table(CSV.make_table(write_text(folder, content), options), options, Preprocessing())


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (PEOPLE, {}),
        (PEOPLE, {"categories": "index"}),
        (PEOPLE.replace(",", "\t"), {}),
        (f"\ufeff{PEOPLE}".replace("\n", "\r\n"), {"drop_columns": "smokes"}),
        (gzip.compress(PEOPLE.encode()), {}),
        (GERMAN, {"missing": "median"}),
        (GERMAN, {"missing": "drop"}),
        (GERMAN.encode("cp1252"), {"missing": "drop"}),
        (f"sep=;\r\n{GERMAN}", {"missing": "median", "categories": "index"}),
        # The median is rounded down where truth values stand; a category that is missing is the most frequent one.
        ("a,b,c,label\n,yes,x,0\n0.1,no,,1\n0.2,,y,0\n3.3,yes,y,1\n", {"missing": "median"}),
        ("a,b,label\n-999,x,1\n4,n/a,2\n5,x,1\n6,y,2\n", {"missing": "median", "missing_words": "-999.0,n/a"}),
        ("a,b,label\n1, Cat ,A\n2,cat,B\n3,cat,A\n4,Dog,B\n", {"join_spellings": True}),
        ('a,"b ""c""",label\n"1","x, y",no\n2,";",yes\n3,"x, y",no\n', {}),
        ("a,b,label\n0.1,3.4e38,5\n16777217,-0.0,-2\n 1.17549435e-38,1E-46,5\n", {"task": "classification"}),
        ("a\tb\tlabel\n1,5\tx\t1,0\n2\ty\t2\n3,25\tx\t1\n", {"task": "classification"}),
        ("client,time,a,label\nu,2,1,x\nu,1,2,y\nu,3,4,x\n", {"client_column": "client", "time_column": "none"}),
    ],
)
def test_a_client_reads_what_the_organiser_reads_of_the_same_rows(tmp_path, content, options):
    path = write_text(tmp_path, content)
    options = DatasetOptions(**options)
    description = json.loads(json.dumps(describe_table(CSV.make_table(path, options), options, Preprocessing())))
    source = CSV.open(path, options)
    parts = [source.read(client, "train") for client in range(len(source.client_names))]
    expected_x, expected_y = map(np.concatenate, zip(*parts, strict=True))
    x, y = join.read_table(path, description)
    assert (x.dtype, y.dtype, x.shape) == (np.float32, np.int32, expected_x.shape)
    assert x.tobytes() == (expected_x * np.float32(1) + np.float32(0)).tobytes()  # of -0.0, too
    assert y.tolist() == expected_y.tolist()
    assert make_format(description) == source.format
    assert join.digest_description(description) == digest(description)


@st.composite
def draw_tables(draw):
    """(text, options) of a table that the organiser's reader takes."""
    missing = draw(st.sampled_from(["refuse", "median", "drop"]))
    separator = draw(st.sampled_from([",", ";", "\t"]))
    blank = [] if missing == "refuse" else ["", " n/a "]
    numbers = st.one_of(st.integers(-(10**6), 10**6), st.floats(-(2.0**99), 2.0**99, width=32)).map(repr)
    if separator == ";" and draw(st.booleans()):
        numbers = st.decimals(-999, 999, places=2, allow_nan=False).map(lambda number: str(number).replace(".", ","))
    kinds = st.sampled_from(
        [numbers, st.sampled_from(["yes", "No", "TRUE"]), st.sampled_from(["a b", "ü", "cat ", "z"])]
    )
    columns = draw(st.lists(kinds, min_size=1, max_size=4))
    num_rows = draw(st.integers(6, 25))
    cells = [
        # A whole row stays, and no column is empty.
        [draw(kind) if row < 3 or not blank else draw(st.one_of(kind, kind, kind, st.sampled_from(blank)))
         for kind in columns] + [["x", "y"][row % 2]] for row in range(num_rows)
    ]  # fmt: skip
    header = [*(f"column {number}" for number in range(len(columns))), "label"]
    text = "\n".join(separator.join(row) for row in [header, *cells]) + "\n"
    return text, {"missing": missing, "categories": draw(st.sampled_from(["one_hot", "index"]))}


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=draw_tables())
def test_drawn_tables_are_read_alike(tmp_path, table):
    text, given_options = table
    options, path = DatasetOptions(**given_options), write_text(tmp_path, text)
    try:
        source = CSV.open(path, options)
        described = describe_table(CSV.make_table(path, options), options, Preprocessing())
    except DatasetError:  # such as numbers that may be meant otherwise, or one class
        reject()
    expected_x, expected_y = source.read(0, "train")
    x, y = join.read_table(path, json.loads(json.dumps(described)))
    assert x.tobytes() == (expected_x * np.float32(1) + np.float32(0)).tobytes()
    assert y.tolist() == expected_y.tolist()
    assert make_format(described) == source.format


def test_what_a_client_is_told(tmp_path):
    """Of ages 30, 41.5, 7 and 100 the median is 35.75; colours are by name, and red is the most frequent."""
    described = describe_text(tmp_path, PEOPLE, missing="median")
    age, colour, smokes = described["columns"]
    ages = np.array([30, 41.5, 7, 100])
    assert age == {"name": "age", "kind": "number", "fill": 35.75, "mean": ages.mean(), "deviation": ages.std()}
    values = {"values": ["blue", "green", "red"], "joined": {}, "most_frequent": 2}
    assert colour == {"name": "colour", "kind": "one_hot", **values}
    # Of truth values the median is one, and they are not scaled.
    assert smokes == {"name": "smokes", "kind": "number", "fill": 0.0, "mean": 0.0, "deviation": 1.0}
    assert described["label"] == {
        "name": "label", "classes": ["no", "yes"], "numbers": [], "spellings": {"no": 0, "yes": 1}
    }  # fmt: skip
    scaling = find_scaling(described)
    assert (scaling.means, scaling.deviations) == ((ages.mean(), 0, 0, 0, 0), (ages.std(), 1, 1, 1, 1))
    left = describe_text(tmp_path, PEOPLE, drop_columns="age,colour")
    assert (left["left_out"], find_scaling(left)) == (["age", "colour"], None)


def test_numbers_that_no_client_reads_are_refused_when_the_run_begins(tmp_path):
    with pytest.raises(DatasetError, match=r"column 'a' has numbers such as '5 kg', expected plain ones"):
        describe_text(tmp_path, "a,label\n5 kg,x\n7 kg,y\n")
    with pytest.raises(ConfigError, match=r"label_column=x,y: expected one column with --own_data"):
        describe_text(tmp_path, "a,x,y\n1,0,1\n2,1,0\n", label_column="x,y")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"standardize": "client", "partition": "natural"}, "standardize=client: expected none with --own_data"),
        ({"window": 2}, "window=2: expected none with --own_data: each row is an example"),
        ({"weight_column": "age"}, "weight_column=age: expected none with --own_data"),
        ({"text_column": "words"}, "own_data=True: expected false for tokens: clients read numbers and one class"),
        ({"label_column": "age", "task": "regression"}, "own_data=True: expected false for regression: clients"),
    ],
)
def test_data_that_clients_cannot_read_are_refused(tmp_path, flags, message):
    path = write_text(tmp_path, PEOPLE.replace("smokes", "words"))
    config = build_run_config({"algo": "fedavg", "data": path, "dataset": "files", **flags})
    task = REGRESSION if "task" in flags else CLASSIFICATION
    labels, takes_tokens = types.SimpleNamespace(task=task, title=task), "text_column" in flags
    data = types.SimpleNamespace(format=types.SimpleNamespace(labels=labels, takes_tokens=takes_tokens))
    with pytest.raises(ConfigError) as error:
        describe_examples(config, data)
    assert message in str(error.value)


def test_data_that_are_no_table_are_arrays():
    config = build_run_config({"algo": "fedavg"})
    data = types.SimpleNamespace(dataset="digits", format=DIGITS_FORMAT, test_x=np.zeros((2, 8, 8, 1), np.uint8))
    described = describe_examples(config, data)
    assert (described["kind"], described["input_shape"], described["input_dtype"]) == ("arrays", [8, 8, 1], "uint8")
    assert make_format(described).class_names == DIGITS_FORMAT.class_names
    assert find_scaling(described) is None
    assert described["scale"] == 1 / 16


def test_how_pictures_are_drawn_is_told_and_does_not_change_how_arrays_are_read(tmp_path):
    data = types.SimpleNamespace(dataset="digits", format=DIGITS_FORMAT, test_x=np.zeros((2, 8, 8, 1), np.uint8))
    described = describe_examples(build_run_config({"algo": "fedavg"}), data)
    assert described["image"] == describe_image(data)
    assert json.loads(json.dumps(described)) == described
    assert described["image"]["framing"] == "digits"
    path = str(tmp_path / "mine.npz")
    np.savez(path, x=np.full((5, 8, 8, 1), 4, np.uint8), y=np.arange(5))
    without = {name: value for name, value in described.items() if name != "image"}
    read, expected = (join.read_arrays(path, each) for each in (described, without))
    assert [each.tobytes() for each in read] == [each.tobytes() for each in expected]
    assert digest(described) == join.digest_description(described) != digest(without)


def test_scale_and_digest(tmp_path):
    options = DatasetOptions()
    table = CSV.make_table(write_text(tmp_path, PEOPLE), options)
    described = describe_table(table, options, Preprocessing(0.5, 1.0))
    x, _ = join.read_table(str(tmp_path / "mine.csv"), described)
    assert x[:, 0, 0].tolist() == [16, 21.75, 4.5, 51]
    assert described["columns"][0]["mean"] == pytest.approx(44.625 * 0.5 + 1)
    assert len(digest(described)) == 64
    assert digest({**described, "scale": 1.0}) != digest(described) == digest(dict(reversed(described.items())))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (PEOPLE.replace("age", "Agee"), "no column 'age', which the run needs; it has Agee, colour, smokes, label; did"
         " you mean Agee?"),
        (PEOPLE.replace("smokes", "age"), "2 columns are called 'age', expected one"),
        (PEOPLE.replace("41.5", "many"), "line 3: column 'age' has 'many', no number; write numbers alone$"),
        (PEOPLE.replace("41.5", "41.5x"), "'41.5x', no number; write numbers alone, all with a decimal point$"),
        (PEOPLE.replace("7,red", "2024-05-01,red"), "line 4: column 'age' has '2024-05-01', a date, and no number"),
        (PEOPLE.replace("1e2", "1e39"), "line 5: column 'age' has '1e39', beyond the numbers of 32 bits"),
        (PEOPLE.replace("1e2", "inf"), "line 5: column 'age' has 'inf', beyond the numbers of 32 bits"),
        (PEOPLE.replace("1e2", "nan"), "line 5: column 'age' has no value (1 row in all), and the run fills none in; "
         "fill it in, or take such rows out"),
        (PEOPLE.replace("true,no", "true,No"), "line 4: label column 'label' has 'No', which is no class; expected one "
         "of no, yes; did you mean no?"),
        (PEOPLE.replace("0,yes", "0,"), "line 5: column 'label' has no value"),
        (PEOPLE.replace("7,red", "7"), "line 4: no row of the table: 3 fields, expected 4 as in the first line"),
        (PEOPLE.replace("red", '"re"d', 1), "line 2: no row of the table: "),
        (PEOPLE[: PEOPLE.index("30")], "no rows below the names of the columns, expected at least one"),
        ("", "no rows below the names of the columns, expected at least one"),
        (PEOPLE.encode("utf-16"), "no table of text; save it as CSV in UTF-8"),
        (gzip.compress(PEOPLE.encode())[:40], "cannot be read (Compressed file ended before"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_said_in_a_line(tmp_path, content, message):
    described = describe_text(tmp_path, PEOPLE)
    path = write_text(tmp_path, content, "theirs.csv")
    with pytest.raises(join.JoinError) as error:
        join.load_examples(path, described)
    text = str(error.value)
    assert text.startswith(path)
    assert message in f"{text}$"
    assert "\n" not in text


def test_what_a_run_does_not_know_is_said(tmp_path, capsys):
    described = describe_text(tmp_path, PEOPLE)
    path = write_text(tmp_path, "label;age;smokes;town;colour\nyes;1,5;no;Ulm;pink\nno;2;no;;blue\n", "theirs.csv")
    x, y = join.read_table(path, described)
    assert x[..., 0].tolist() == [[1.5, 0, 0, 1, 0], [2, 1, 0, 0, 0]]
    assert y.tolist() == [1, 0]
    assert capsys.readouterr().out.splitlines() == [
        f"{path}: left out, since the run does not use them: town",
        f"{path}, line 2: column 'colour' has 'pink', which the run does not know; such values, in 1 row, are taken "
        "as 'red', its most frequent one",
    ]


@pytest.mark.parametrize("description", [{}, {"kind": "table"}, {"kind": "table", "columns": 3, "label": 4}])
def test_a_description_of_a_wrong_server_ends_in_a_line(tmp_path, description):
    with pytest.raises(join.JoinError, match="in a way that cannot be used here"):
        join.load_examples(write_text(tmp_path, PEOPLE), description)


@pytest.mark.parametrize(("num", "num_test"), [(1, 0), (4, 0), (5, 1), (14, 2), (100, 20)])
def test_a_fifth_is_held_out_by_the_key(num, num_test, capsys):
    x, y = np.arange(num, dtype=np.float32)[:, None], np.arange(num, dtype=np.int32)
    parts = join.hold_out(x, y, "a key")
    train_x, train_y, _, test_y = parts
    assert (len(train_y), len(test_y)) == (num - num_test, num_test)
    assert train_x[:, 0].tolist() == train_y.tolist() == sorted(train_y)
    assert sorted([*train_y, *test_y]) == list(range(num))
    assert all(np.array_equal(one, other) for one, other in zip(parts, join.hold_out(x, y, "a key"), strict=True))
    assert num < 100 or not np.array_equal(test_y, join.hold_out(x, y, "another")[3])
    assert ("too few" in capsys.readouterr().out) == (not num_test)
