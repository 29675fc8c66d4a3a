"""Weights of a table's rows: they are read as numbers, stay with their rows, and are no feature."""

import dataclasses

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import assert_refused

from datasets.class_weights import describe_weights
from datasets.client_files import flip_labels, is_client_whole, measure_files, read_files, write_copy
from datasets.dataset import DatasetOptions
from datasets.example_format import ExampleWeights, read_example_format
from datasets.federate import build_federated_data
from datasets.formats.csv import FORMAT as CSV
from datasets.formats.leaf import open_leaf
from datasets.formats.parquet import FORMAT as PARQUET
from datasets.partition_settings import RELABELLED, PartitionSettings
from datasets.standardized_clients import standardize_clients
from datasets.tables.cells import parse_text, read_missing_words
from datasets.tables.source import GAP, cut_windows

GOOD = "user,a,w,label\nu,1,2,x\nu,2,0.5,y\nv,3,0,x\nv,4,7,y\n"
WEIGHTS = {"u": [2, 0.5], "v": [0, 7]}


def open_text(folder, text, **options):
    path = folder / "mine.csv"
    path.write_text(text)
    return CSV.open(str(path), dataclasses.replace(DatasetOptions(), **{"weight_column": "w", **options}))


def list_weights(source):
    return {name: source.weights.read(client, "train").tolist() for client, name in enumerate(source.client_names)}


@pytest.mark.parametrize(
    ("text", "options", "weights"),
    [
        (GOOD, {}, WEIGHTS),
        (GOOD.replace("w", "How_Much"), {"weight_column": "how much"}, WEIGHTS),
        (GOOD.replace("0.5", "true").replace(",7", ",no"), {}, {"u": [2, 1], "v": [0, 0]}),
        ("user;a;w;label\nu;1;2,25;x\nu;2;0,5;y\nv;3;0;x\nv;4;7;y\n", {}, {"u": [2.25, 0.5], "v": [0, 7]}),
        ('user,a,w,label\nu,1,"1,250.5",x\nu,2,"2,000.25",y\nv,3,0,x\n', {}, {"u": [1250.5, 2000.25], "v": [0]}),
        ("user,a,w,label\nu,1,200 %,x\nu,2,50 %,y\nv,3,0 %,x\n", {}, {"u": [2, 0.5], "v": [0]}),
        (GOOD.replace("0.5", ""), {"missing": "drop"}, {"u": [2], "v": [0, 7]}),
        ("user,time,a,w,label\nu,3,1,30,x\nu,1,2,10,y\nu,2,3,20,x\n", {}, {"u": [10, 20, 30]}),
        # Of what is tested nothing is weighed, so that its weights need not even be there.
        ("user,a,w,label,split\nu,1,2,x,train\nu,2,,y,test\nv,3,1,x,train\nv,4,-1,y,test\n", {}, {"u": [2], "v": [1]}),
        # A window has the weight of its last row, as it has that row's label.
        ("user,a,w,label\n" + "".join(f"u,{n},{10 * n},{n % 2}\n" for n in range(7)), {"window": 3}, {"u": [20, 50]}),
    ],
)  # fmt: skip
def test_weights_are_the_numbers_of_the_column(tmp_path, text, options, weights):
    source = open_text(tmp_path, text, **options)
    assert list_weights(source) == weights
    assert source.format.feature_names in (("a",), ())  # of one channel a window has no names
    assert f"weighted by {source.weights.column}" in source.reading


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (GOOD.replace("0.5", ""), {}, "values, .*: w 1 .*, line 3.*; expected none; --missing=drop leaves"),
        (GOOD.replace("0.5", "NaN"), {"missing": "median"}, "w 1 .*, line 3.*; expected none; --missing=drop leaves"),
        (GOOD.replace("0.5", "big"), {}, "line 3: weight column 'w' has 'big', expected a finite number of at least 0"),
        (GOOD.replace("0.5", "-1"), {}, "line 3: weight column 'w' has '-1', expected"),
        (GOOD.replace("0.5", "inf"), {}, "line 3: weight column 'w' has 'inf', expected"),
        (GOOD.replace("0.5", "1e39"), {}, "line 3: weight column 'w' has '1e39', expected"),
        (GOOD.replace("0.5", "2024-01-02"), {}, "line 3: weight column 'w' has '2024-01-02', expected"),
        (GOOD, {"weight_column": "weigth"}, "weight_column=weigth: no such column"),
        (GOOD, {"weight_column": "label"}, "'label' stands in --weight_column and is the label by its name"),
        (GOOD, {"label_column": "w"}, "'w' stands in --weight_column and in --label_column"),
        (GOOD, {"client_column": "w"}, "'w' stands in --client_column and in --weight_column"),
        (GOOD, {"feature_columns": "a,w"}, "'w' stands in --weight_column and in --feature_columns"),
    ],
)
def test_wrong_weights_are_one_line_with_their_place(tmp_path, text, options, message):
    assert_refused(message, open_text, tmp_path, text, **options)


def test_dates_and_lists_are_no_weights(tmp_path):
    frame = pd.DataFrame({"a": [1, 2], "day": pd.to_datetime(["2024-01-01"] * 2), "l": [[1], [2]], "label": [0, 1]})
    frame.to_parquet(tmp_path / "mine.parquet")
    for name, message in (("day", "row 0 .*'day' has '2024-01-01"), ("l", "'l' holds arrays or images, expected a")):
        options = dataclasses.replace(DatasetOptions(), weight_column=name, feature_columns="a")
        assert_refused(message, PARQUET.open, str(tmp_path / "mine.parquet"), options)


def test_a_store_without_weights_is_not_read_as_one_with(tmp_path):
    """The column is a feature there, and the data are others; what is read without the flag has the name it had."""
    plain, weighted = open_text(tmp_path, GOOD, weight_column=""), open_text(tmp_path, GOOD)
    assert plain.weights is None and plain.format.feature_names == ("a", "w")
    assert plain.digest != weighted.digest and list_weights(open_text(tmp_path, GOOD)) == WEIGHTS
    assert open_text(tmp_path, GOOD, weight_column="none").digest == plain.digest
    other = open_text(tmp_path, GOOD.replace("0.5", "0.25"))
    assert other.digest != weighted.digest and list_weights(other)["u"] == [2, 0.25]


def make_rows(*further):
    """240 rows of three clients whose weight is the feature, in the classes 0 and 1; `further` are more columns.

    Of "split", every fifth row is for the validation and every seventh for the test.
    """
    rows = [",".join(["a,w,label", *further])]
    for n in range(240):
        told = {"user": f"u{n % 3}", "split": "validation" if n % 5 == 0 else "test" if n % 7 == 0 else "train"}
        rows.append(",".join([f"{n},{n},{n // 3 % 2}", *(told[name] for name in further)]))
    return "\n".join(rows) + "\n"


def list_files(data):
    """Of each client (train x, train weights), from the files that the graph reads."""
    found = []
    for client in data.everyone:
        x, weights = (np.fromfile(f"{client.path}.train.{kind}", np.float32) for kind in "xw")
        assert len(weights) == client.num_train == len(data.read_labels(client, "train"))
        found.append((x, weights))
    return found


@pytest.mark.parametrize(
    ("columns", "settings", "further"),
    [
        (("user",), PartitionSettings(partition="natural"), {"num_new_clients": 1}),
        (("user",), PartitionSettings(partition="natural", most_clients=2, most_train_examples=20), {}),
        (("user",), PartitionSettings(partition="natural", variant=RELABELLED, variant_groups=2), {}),
        (("user",), PartitionSettings(partition="iid", num_clients=4, variant=RELABELLED, variant_groups=2), {}),
        (("user", "split"), PartitionSettings(partition="natural"), {}),
        (("user", "split"), PartitionSettings(partition="iid", num_clients=4), {}),
        ((), PartitionSettings(partition="dirichlet", num_clients=4), {}),
    ],
)
def test_weights_stay_with_their_examples(tmp_path, columns, settings, further):
    """Through splits and partitions; only the train split has any, and the mean is that of all train examples."""
    source = open_text(tmp_path, make_rows(*columns))
    data = build_federated_data(source, settings, str(tmp_path / "clients"), **further)
    pairs = list_files(data)
    for x, weights in pairs:
        assert x.tolist() == weights.tolist() and len(weights)
    values = np.concatenate([weights for _, weights in pairs])
    expected = ExampleWeights("w", values.mean(dtype=np.float64), values.min(), values.max(), 0, len(values))
    assert data.format.weights == expected._replace(num_zero=int((values == 0).sum()))


def test_windows_and_scaled_features_keep_their_weights(tmp_path):
    rows = "user,a,w,label\n" + "".join(f"u{n % 3},{n},{n},{n // 3 % 2}\n" for n in range(240))
    source = open_text(tmp_path, rows, window=2)
    data = build_federated_data(source, PartitionSettings(partition="natural"), str(tmp_path / "clients"))
    for x, weights in list_files(data):
        assert x.reshape(-1, 2)[:, 1].tolist() == weights.tolist()
    own = open_text(tmp_path, make_rows("user", "split"))
    scaled = standardize_clients(own)
    assert list_weights(scaled) == list_weights(own)


def test_all_zero_is_one_line_and_all_alike_has_their_number_as_the_mean(tmp_path):
    zeros = "user,a,w,label\n" + "".join(f"u{n % 2},{n}.5,0,{n // 2 % 2}\n" for n in range(40))
    assert_refused(
        "'w' is 0 for each of 32 train examples, expected numbers above 0 for some",
        build_federated_data,
        open_text(tmp_path, zeros),
        PartitionSettings(partition="natural"),
        str(tmp_path / "clients"),
    )
    sevens = open_text(tmp_path, zeros.replace(".5,0,", ".5,7.3,"))
    data = build_federated_data(sevens, PartitionSettings(partition="natural"), str(tmp_path / "clients"))
    assert data.format.weights.mean == float(np.float32(7.3))  # so that each is exactly 1


def test_attackers_and_copies_keep_the_weights(tmp_path):
    data = build_federated_data(
        open_text(tmp_path, make_rows("user")), PartitionSettings(partition="natural"), str(tmp_path / "c")
    )
    flipped = flip_labels(data, [1])
    path, own = flipped.clients[1].path, data.clients[1].path
    before, after = read_files(own), read_files(path)
    assert after.pop(".train.y") != before.pop(".train.y") and after == before and ".train.w" in after
    copy = write_copy(path, read_files(path), str(tmp_path / "copies"))
    assert read_files(copy) == read_files(path) and measure_files(copy) == measure_files(path)
    assert is_client_whole(copy)
    with open(f"{copy}.train.w", "r+b") as file:
        file.write(b"\x63")
    assert not is_client_whole(copy)


def test_a_format_keeps_its_weights_as_json_and_says_them(tmp_path):
    data = build_federated_data(
        open_text(tmp_path, make_rows("user")), PartitionSettings(partition="natural"), str(tmp_path / "c")
    )
    assert read_example_format(data.format.to_json()) == data.format
    plain = dataclasses.replace(data.format, weights=None)
    assert "weights" not in plain.to_json() and read_example_format(plain.to_json()) == plain
    said = describe_weights(ExampleWeights("w", 1.25, 0.0, 3.0, 2, 1024))
    assert said == "column w: 0 to 3, 2 of 1,024 train examples weigh 0; divided by their mean, 1.25"


LEFT_OUT = 3


def cut(clients, times=None, splits=None, length=2, step=1):
    clients = np.array(clients)
    splits = np.zeros(len(clients), np.uint8) if splits is None else np.array(splits, np.uint8)
    found = cut_windows(clients, splits, None if times is None else np.array(times, float), length, step, LEFT_OUT)
    return [found.order[start : start + length].tolist() for start in found.starts], found


def test_rows_of_one_client_in_the_order_of_the_file():
    assert cut([0, 1, 0, 0, 1])[0] == [[0, 2], [2, 3], [1, 4]]


def test_a_step_leaves_starts_out_and_the_last_rows_that_fill_no_window():
    assert cut([0] * 7, length=3, step=2)[0] == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]
    assert cut([0] * 6, length=3, step=3)[0] == [[0, 1, 2], [3, 4, 5]]
    assert cut([0] * 2, length=3)[0] == []


def test_times_order_the_rows():
    assert cut([0, 0, 0], [3, 1, 2])[0] == [[1, 2], [2, 0]]


def test_a_gap_is_longer_than_three_usual_steps_of_the_client_itself():
    # Client 0 has steps of 1 and one of 3, which is none, and one of 3.5, which is; client 1 has steps of 10.
    windows, found = cut([0] * 6 + [1] * 3, [0, 1, 2, 5, 8.5, 9.5, 0, 10, 20])
    assert windows == [[0, 1], [1, 2], [2, 3], [4, 5], [6, 7], [7, 8]]
    assert (GAP, found.num_gaps) == (3.0, 1)


def test_rows_of_one_time_are_no_step():
    assert cut([0] * 4, [1, 1, 1, 2])[0] == [[0, 1], [1, 2], [2, 3]]


def test_parts_and_rows_left_out_break_a_stretch():
    windows, found = cut([0] * 7, splits=[0, 0, 2, 2, 0, 0, LEFT_OUT])
    assert windows == [[0, 1], [4, 5], [2, 3]] and found.splits.tolist() == [0, 0, 2]
    assert cut([0] * 3, splits=[0, LEFT_OUT, 0])[0] == []


@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 30)), max_size=40),
    length=st.integers(1, 5),
    step=st.integers(1, 4),
)
def test_every_window_is_of_one_client_and_part_in_order_of_time(rows, length, step):
    clients, splits, times = (np.array([row[place] for row in rows], int) for place in range(3))
    windows, found = cut(clients, times, splits, length, step)
    for window, client, split in zip(windows, found.clients, found.splits, strict=True):
        assert len(window) == length
        assert set(clients[window]) == {client} and set(splits[window]) == {split}
        assert (np.diff(times[window]) >= 0).all()
    starts = {window[0] for window in windows}
    assert len(starts) == len(windows)
    if step >= length:  # no row is in two
        assert sum(map(len, windows)) == len({row for window in windows for row in window})


def open_column(tmp_path, name, values, **options):
    """A table of this column and another one, and its source."""
    path = tmp_path / "mine.csv"
    head = f"{name},b" if name == "label" else f"{name},b,label"
    rows = [f'"{value}",{n * 7 % 5}' + ("" if name == "label" else f",{n % 2}") for n, value in enumerate(values)]
    path.write_text("\n".join([head, *rows]) + "\n")
    return CSV.open(str(path), DatasetOptions(**options))


def read_labels(source):
    return source.read(0, "train")[1].tolist()


@pytest.mark.parametrize(
    ("values", "names", "labels"),
    [
        (["Yes", "No", "No"], ("No", "Yes"), [1, 0, 0]),
        (["TRUE", "FALSE"], ("FALSE", "TRUE"), [1, 0]),
        (["true", "false"], ("false", "true"), [1, 0]),
        (["yes", "maybe", "no"], ("maybe", "no", "yes"), [2, 0, 1]),
        (["T", "F", "F"], ("F", "T"), [1, 0, 0]),
        (["1", "0"], ("0", "1"), [1, 0]),
        (["yes", "no", "yes", "1", "0"], ("no", "yes"), [1, 0, 1, 1, 0]),
        (["Yes", "no", "YES", "Yes"], ("no", "Yes"), [1, 0, 1, 1]),
    ],
)
def test_classes_are_called_as_they_are_written(tmp_path, values, names, labels):
    source = open_column(tmp_path, "label", values)
    assert source.format.class_names == names and read_labels(source) == labels
    # Runs of earlier versions are read so.
    assert read_labels(open_column(tmp_path, "label", values, truth_names="false_true")) == labels


def test_words_for_yes_that_are_joined_are_told(tmp_path):
    (_, yes) = open_column(tmp_path, "label", ["yes", "no", "yes", "1", "0"]).notes
    assert yes == "the labels in label are written in several ways: 'yes' (2) = '1' (1); all are taken as 'yes'"
    (among,) = open_column(tmp_path, "label", ["0", "1", "2", "yes"]).notes
    assert "yes or no, true or false, stands among them in 1 row" in among
    (feature,) = open_column(tmp_path, "age", ["7", "9", "no", "8"]).notes
    assert feature.startswith("among the numbers in age stands yes or no, true or false, in 1 row")


def test_truth_values_of_parquet_stay(tmp_path):
    path = str(tmp_path / "mine.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"a": [1.0, 2.0], "label": [True, False]}), path)
    assert PARQUET.open(path, DatasetOptions()).format.class_names == ("false", "true")


def test_a_class_that_is_a_missing_word_is_told(tmp_path):
    values = ["None", "mild", "None", "severe"]
    caught = assert_refused("", open_column, tmp_path, "label", values)
    fix = (
        "in column label 'None' (2 rows) is taken as missing; if it is a value, give --missing_words='na,n/a,nan,null,?"
    )
    assert fix in caught and ",none" not in caught
    dropped = open_column(tmp_path, "label", values, missing="drop")
    assert dropped.format.class_names == ("mild", "severe") and fix in dropped.notes[0]
    source = open_column(tmp_path, "label", values, missing_words="na,n/a")
    assert source.format.class_names == ("None", "mild", "severe") and read_labels(source) == [0, 1, 0, 2]
    assert not source.notes


def test_a_category_that_is_filled_in_is_counted_and_told(tmp_path):
    values = ["None", "attached", "", "attached", "NA"]
    source = open_column(tmp_path, "garage", values, missing="median")
    assert source.filled == {"garage": 3} and source.pool().filled == {"garage": 3}
    assert source.notes[0].startswith("in column garage 'None' (1 row), 'NA' (1 row) is taken as missing; if it is")
    kept = open_column(tmp_path, "garage", ["NA", "DE", "NO"], missing_words="")
    assert kept.format.feature_names == ("garage=DE", "garage=NA", "garage=NO", "b") and not kept.filled


def test_a_word_that_is_a_value_here_and_missing_among_numbers(tmp_path):
    path = tmp_path / "houses.csv"
    path.write_text("front,alley,label\n60,NA,0\nNA,Pave,1\n80,Grvl,0\n70,NA,1\n")
    (said,) = CSV.open(str(path), DatasetOptions(missing="median")).notes
    # Without the word, --missing_words would end in an error: front would have a text among numbers.
    assert said == (
        "in column alley 'NA' (2 rows) is taken as missing; if it is a value, write it there in another way, since "
        "front has it among numbers"
    )


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["-999", "3", "-999.0", "5"], "-999"),
        (["-", "3", " - ", "5"], "na,-"),
        ([".", "3", "", "5"], "."),
        (["N/A ", "3", "\u00a0n/a", "5"], "n/a"),
        (["Unknown", "3", "UNKNOWN", "5"], "unknown"),
    ],
)
def test_words_that_were_given_are_missing(tmp_path, values, words):
    source = open_column(tmp_path, "age", values, missing_words=words, missing="median")
    # The median of 3 and 5.
    assert source.read(0, "train")[0][:, 0, 0].tolist() == [4, 3, 4, 5] and source.filled == {"age": 2}
    cells = parse_text(values, missing_words=read_missing_words(words))
    assert cells.is_missing.tolist() == [True, False, True, False]
    assert sum(cells.missing_words.values()) == sum(bool(value.strip()) for value in values[::2])


def test_words_of_parquet_are_values_unless_given(tmp_path):
    path = str(tmp_path / "mine.parquet")
    content = {"garage": ["NA", "x", "x"], "age": [-999.0, 3.0, 5.0], "label": [0, 1, 0]}
    pyarrow.parquet.write_table(pyarrow.table(content), path)
    source = PARQUET.open(path, DatasetOptions())
    assert source.format.feature_names == ("garage=NA", "garage=x", "age") and not source.filled
    given = PARQUET.open(path, DatasetOptions(missing_words="NA,-999", missing="median"))
    assert given.format.feature_names == ("garage=x", "age") and given.filled == {"garage": 1, "age": 1}
    assert given.read(0, "train")[0][0, :, 0].tolist() == [1, 4]


def test_numbers_that_may_stand_for_nothing_are_told(tmp_path):
    (said,) = open_column(tmp_path, "age", ["-999", "3", "4", "-999"]).notes
    assert said.startswith(
        "age is -999 in 2 rows, and never else below 0; if it stands for a missing value, give --missi"
    )
    assert said.endswith(",-999'")
    assert not open_column(tmp_path, "heat", ["-9", "-3", "4", "2"]).notes
    (cold,) = open_column(tmp_path, "cold", ["-999", "-3.5", "4", "-999"]).notes
    assert cold.startswith("cold is -999 in 2 rows, and never else below -3.5; if it stands for a missing value")
    assert not open_column(tmp_path, "cold", ["-99", "-30", "4", "-99"]).notes
    (high,) = open_column(tmp_path, "days", ["999", "3", "27", "999"]).notes
    assert high.startswith("days is 999 in 2 rows, and never else above 27; if it stands for a missing value")
    assert not open_column(tmp_path, "heat", ["999", "100", "4", "999"]).notes
    (among,) = open_column(tmp_path, "age", ["unknown", "0", "1", "2", "1"]).notes
    assert "numbers of age are categories, since 'unknown' stands among them in 1 row" in among


def test_one_word_among_decimals_of_a_text_column_is_named(tmp_path):
    path = tmp_path / "mine.parquet"
    values = ["0.5", "1.5", "2.25", "n.a.", "3.5"]
    pyarrow.parquet.write_table(pyarrow.table({"a": values, "y": [0, 1, 0, 1, 1]}), path)
    (note,) = PARQUET.open(str(path), DatasetOptions()).notes
    assert "the numbers of a are categories, since 'n.a.' stands among them in 1 row" in note
    options = DatasetOptions(missing_words="n.a.", missing="median")  # what the note advises
    x, _ = PARQUET.open(str(path), options).read(0, "train")
    np.testing.assert_array_equal(x.ravel(), np.float32([0.5, 1.5, 2.25, 1.875, 3.5]))


def test_dates_that_are_numbers_are_no_measurements(tmp_path):
    (note,) = open_column(tmp_path, "born", ["31122024", "1012025", "15012025"]).notes
    assert "the numbers of born are dates, such as 31122024, whose differences are no days" in note
    assert not open_column(tmp_path, "pay", ["31122024", "1012025", "15992025"]).notes


def test_classes_are_joined_on_request(tmp_path):
    values = ["cat", "Cat", "CAT", "cat", "dog.", "dog", "dog"]
    source = open_column(tmp_path, "label", values)
    assert source.format.class_names == ("CAT", "Cat", "cat", "dog", "dog.")
    joined = open_column(tmp_path, "label", values, join_spellings=True)
    assert joined.format.class_names == ("cat", "dog") and read_labels(joined) == [0, 0, 0, 0, 1, 1, 1]
    assert "spellings of label joined: 'CAT' as 'cat', 'Cat' as 'cat', 'dog.' as 'dog'" in joined.reading
    assert joined.digest != source.digest
    yes = open_column(tmp_path, "label", ["Y", "N", "yes", "no", "N"], join_spellings=True)
    assert yes.format.class_names == ("N", "Y") and read_labels(yes) == [1, 0, 1, 0, 0]


def test_categories_are_joined_on_request(tmp_path):
    values = ["red", "Red", "red", "blue", ""]
    source = open_column(tmp_path, "kind", values, missing="median")
    assert source.notes[0].startswith(
        "categories of kind that are spelled in several ways, with their rows: 'red' (2) = "
    )
    joined = open_column(tmp_path, "kind", values, join_spellings=True, missing="median")
    assert joined.format.feature_names == ("kind=blue", "kind=red", "b") and not joined.notes
    assert joined.read(0, "train")[0][:, :2, 0].tolist() == [[0, 1], [0, 1], [0, 1], [1, 0], [0, 1]]


def test_more_spellings_than_categories_may_be_joined(tmp_path):
    values = [f"{word}{n}" for word in ("site ", "Site_", "SITE-") for n in range(60)]
    assert_refused("more than 100 different texts", open_column, tmp_path, "where", values)
    assert len(open_column(tmp_path, "where", values, join_spellings=True).format.feature_names) == 61


def test_clients_are_joined_on_request_and_stay_as_they_are_written(tmp_path):
    values = ["007", "7", "007", "1.0", "1", "1.0", "b"]
    source = open_column(tmp_path, "client", values)
    assert set(source.client_names) == {"007", "7", "1.0", "1", "b"}
    joined = open_column(tmp_path, "client", values, join_spellings=True)
    assert joined.client_names == ("007", "1.0", "b") and joined.num_examples["train"].tolist() == [3, 3, 1]
    assert "spellings of clients joined: '1' as '1.0', '7' as '007'" in joined.reading


def test_what_other_formats_do_not_do_is_refused(tmp_path):
    assert_refused(
        "join_spellings=True: does nothing with LEAF's JSON",
        open_leaf,
        str(tmp_path),
        DatasetOptions(join_spellings=True),
    )


def test_a_form_of_dates_needs_a_column_of_dates(tmp_path):
    assert_refused(
        "date_form=dmy: no column orders the rows; name it by --time_column",
        open_column,
        tmp_path,
        "age",
        ["1", "2"],
        date_form="dmy",
    )


def test_a_table_of_an_earlier_run_has_its_digest(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("date,b,label\n31122024,0,Yes\n01012025,2,No\n")
    source = CSV.open(str(path), DatasetOptions(truth_names="false_true", date_form="number"))
    # Computed by the version before there were options for words and dates, whose clients' files are those of the run.
    assert source.digest == "b1dabebf280296ba1fea55d009663f596628f5a6a9e073d9e55d5a310f096197"
    assert source.format.class_names == ("false", "true") and source.read(0, "train")[0][:, 0, 0].tolist() == [2, 0]
    assert CSV.open(str(path), DatasetOptions()).format.class_names == ("No", "Yes")
