"""What tables become: weights and windows of their rows, classes and categories as written, values that are missing."""

import dataclasses
import functools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import assert_refused
from small_tables import assert_facts, open_columns, open_text, write_text

from datasets.class_weights import describe_weights
from datasets.client_files import flip_labels, is_client_whole, measure_files, read_files, write_copy
from datasets.dataset import DatasetOptions
from datasets.example_format import ExampleWeights, read_example_format
from datasets.federate import build_federated_data
from datasets.formats.csv import FORMAT as CSV
from datasets.formats.leaf import open_leaf
from datasets.partition_settings import RELABELLED, PartitionSettings
from datasets.standardized_clients import standardize_clients
from datasets.tables.cells import parse_text, read_missing_words
from datasets.tables.source import GAP, cut_windows

GOOD = "user,a,w,label\nu,1,2,x\nu,2,0.5,y\nv,3,0,x\nv,4,7,y\n"
WEIGHTS = {"u": [2, 0.5], "v": [0, 7]}
open_weighted = functools.partial(open_text, weight_column="w")


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
    source = open_weighted(tmp_path, text, **options)
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
    assert_refused(message, open_weighted, tmp_path, text, **options)


@pytest.mark.parametrize(
    ("name", "message"), [("day", "row 0 .*'day' has '2024-01-01',"), ("l", "'l' holds arrays or images, expected a")]
)
def test_dates_and_lists_are_no_weights(tmp_path, name, message):
    columns = {"a": [1, 2], "day": pd.to_datetime(["2024-01-01"] * 2), "l": [[1], [2]], "label": [0, 1]}
    assert_refused(message, open_columns, tmp_path, columns, weight_column=name, feature_columns="a")


@pytest.mark.parametrize("open_it", [open_text, open_columns])
def test_what_is_left_without_dropped_columns_are_the_data_of_the_features_that_are_named(tmp_path, open_it):
    """In text and in parquet; 'when me' holds dates, 'a, b' a comma, and an index of pandas is no feature anyhow."""
    columns = {
        "": [0, 1],
        "u": [7, 8],
        "when me": ["2024-01-02", "2024-01-03"],
        "a, b": [1, 2],
        "c": [3, 5],
        "y": [0, 1],
    }
    columns |= {"": [1, 0]} if open_it is open_text else {}
    data = pd.DataFrame(columns).to_csv(index=False) if open_it is open_text else columns
    (tmp_path / "named").mkdir()
    named = open_it(tmp_path, data, client_column="u", feature_columns="c")
    dropped = open_it(tmp_path, data, client_column="u", drop_columns='"a, b",When_Me,')
    assert dropped.format.feature_names == ("c",) and dropped.digest == named.digest
    assert (dropped.reading, dropped.notes, dropped.has_clients) == (named.reading, named.notes, True)
    both = open_it(tmp_path, data, client_column="u", drop_columns="when me", feature_columns="c")
    assert both.digest == named.digest


def test_a_store_without_weights_is_not_read_as_one_with(tmp_path):
    """The column is a feature there, and the data are others; what is read without the flag has the name it had."""
    plain, weighted = open_weighted(tmp_path, GOOD, weight_column=""), open_weighted(tmp_path, GOOD)
    assert plain.weights is None and plain.format.feature_names == ("a", "w")
    assert plain.digest != weighted.digest and list_weights(open_weighted(tmp_path, GOOD)) == WEIGHTS
    assert open_weighted(tmp_path, GOOD, weight_column="none").digest == plain.digest
    other = open_weighted(tmp_path, GOOD.replace("0.5", "0.25"))
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
    source = open_weighted(tmp_path, make_rows(*columns))
    data = build_federated_data(source, settings, str(tmp_path / "clients"), **further)
    pairs = list_files(data)
    for x, weights in pairs:
        assert x.tolist() == weights.tolist() and len(weights)
    values = np.concatenate([weights for _, weights in pairs])
    expected = ExampleWeights("w", values.mean(dtype=np.float64), values.min(), values.max(), 0, len(values))
    assert data.format.weights == expected._replace(num_zero=int((values == 0).sum()))


def test_windows_and_scaled_features_keep_their_weights(tmp_path):
    rows = "user,a,w,label\n" + "".join(f"u{n % 3},{n},{n},{n // 3 % 2}\n" for n in range(240))
    source = open_weighted(tmp_path, rows, window=2)
    data = build_federated_data(source, PartitionSettings(partition="natural"), str(tmp_path / "clients"))
    for x, weights in list_files(data):
        assert x.reshape(-1, 2)[:, 1].tolist() == weights.tolist()
    own = open_weighted(tmp_path, make_rows("user", "split"))
    scaled = standardize_clients(own)
    assert list_weights(scaled) == list_weights(own)


def test_all_zero_is_one_line_and_all_alike_has_their_number_as_the_mean(tmp_path):
    zeros = "user,a,w,label\n" + "".join(f"u{n % 2},{n}.5,0,{n // 2 % 2}\n" for n in range(40))
    assert_refused(
        "'w' is 0 for each of 32 train examples, expected numbers above 0 for some",
        build_federated_data,
        open_weighted(tmp_path, zeros),
        PartitionSettings(partition="natural"),
        str(tmp_path / "clients"),
    )
    sevens = open_weighted(tmp_path, zeros.replace(".5,0,", ".5,7.3,"))
    data = build_federated_data(sevens, PartitionSettings(partition="natural"), str(tmp_path / "clients"))
    assert data.format.weights.mean == float(np.float32(7.3))  # so that each is exactly 1


def test_attackers_and_copies_keep_the_weights(tmp_path):
    data = build_federated_data(
        open_weighted(tmp_path, make_rows("user")), PartitionSettings(partition="natural"), str(tmp_path / "c")
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
        open_weighted(tmp_path, make_rows("user")), PartitionSettings(partition="natural"), str(tmp_path / "c")
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


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"clients": [0, 1, 0, 0, 1]}, [[0, 2], [2, 3], [1, 4]]),  # in the order of the file
        # A step leaves starts out, and the last rows that fill no window.
        ({"clients": [0] * 7, "length": 3, "step": 2}, [[0, 1, 2], [2, 3, 4], [4, 5, 6]]),
        ({"clients": [0] * 6, "length": 3, "step": 3}, [[0, 1, 2], [3, 4, 5]]),
        ({"clients": [0] * 2, "length": 3}, []),
        ({"clients": [0] * 3, "times": [3, 1, 2]}, [[1, 2], [2, 0]]),
        ({"clients": [0] * 4, "times": [1, 1, 1, 2]}, [[0, 1], [1, 2], [2, 3]]),  # rows of one time are no step
        # Parts and rows that are left out break a stretch.
        ({"clients": [0] * 7, "splits": [0, 0, 2, 2, 0, 0, LEFT_OUT]}, [[0, 1], [4, 5], [2, 3]]),
        ({"clients": [0] * 3, "splits": [0, LEFT_OUT, 0]}, []),
    ],
)
def test_windows_are_cut_by_client_time_and_part(settings, expected):
    assert cut(**settings)[0] == expected


def test_a_gap_is_longer_than_three_usual_steps_of_the_client_itself():
    # Client 0 has steps of 1 and one of 3, which is none, and one of 3.5, which is; client 1 has steps of 10.
    windows, found = cut([0] * 6 + [1] * 3, [0, 1, 2, 5, 8.5, 9.5, 0, 10, 20])
    assert windows == [[0, 1], [1, 2], [2, 3], [4, 5], [6, 7], [7, 8]]
    assert (GAP, found.num_gaps) == (3.0, 1)


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


def write_column(name, values):
    """A table of text with this column and another one, and labels unless they are the column."""
    head = f"{name},b" if name == "label" else f"{name},b,label"
    rows = [f'"{value}",{n * 7 % 5}' + ("" if name == "label" else f",{n % 2}") for n, value in enumerate(values)]
    return "\n".join([head, *rows]) + "\n"


def open_column(tmp_path, name, values, **options):
    return open_text(tmp_path, write_column(name, values), **options)


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
    assert_facts(open_column(tmp_path, "label", values), classes=names, y={"": labels})
    # Runs of earlier versions are read so.
    assert_facts(open_column(tmp_path, "label", values, truth_names="false_true"), y={"": labels})


IS_MISSING = "in column label 'None' (2 rows) is taken as missing; if it is a value, give --missing_words='na,n/a,nan,"
GRADES = ["None", "mild", "None", "severe"]
KINDS = ["cat", "Cat", "CAT", "cat", "dog.", "dog", "dog"]
COLOURS = ["red", "Red", "red", "blue", ""]
IDS = ["007", "7", "007", "1.0", "1", "1.0", "b"]
SITES = [f"{word}{n}" for word in ("site ", "Site_", "SITE-") for n in range(60)]
JOINED = {"join_spellings": True}
# name of the column, its values, options, facts
READ = {
    "words for yes that are joined": (
        "label",
        ["yes", "no", "yes", "1", "0"],
        {},
        {
            "noted": [
                "'no' (1) = '0' (1)",
                "the labels in label are written in several ways: 'yes' (2) = '1' (1); all are taken as 'yes'",
            ]
        },
    ),
    "a yes among classes": ("label", ["0", "1", "2", "yes"], {}, {"noted": ["false, stands among them in 1 row"]}),
    "a no among numbers": (
        "age",
        ["7", "9", "no", "8"],
        {},
        {"noted": ["among the numbers in age stands yes or no, true or false, in 1 row"]},
    ),
    "a class that is a missing word": (
        "label",
        GRADES,
        {"missing": "drop"},
        {"classes": ("mild", "severe"), "noted": [IS_MISSING]},
    ),
    "a class that is no longer": (
        "label",
        GRADES,
        {"missing_words": "na,n/a"},
        {"classes": ("None", "mild", "severe"), "y": {"": [0, 1, 0, 2]}, "noted": []},
    ),
    "a category that is filled in is counted": (
        "garage",
        ["None", "attached", "", "attached", "NA"],
        {"missing": "median"},
        {
            "filled": {"garage": 3},
            "noted": ["in column garage 'None' (1 row), 'NA' (1 row) is taken as missing; if it is", "tells nothing"],
        },
    ),
    "no missing words": (
        "garage",
        ["NA", "DE", "NO"],
        {"missing_words": ""},
        {"features": ("garage=DE", "garage=NA", "garage=NO", "b"), "filled": {}},
    ),
    "a number below all others": (
        "age",
        ["-999", "3", "4", "-999"],
        {},
        {"noted": ["age is -999 in 2 rows, and never else below 0; if it stands for a missing value, give --missi"]},
    ),
    "one of several below 0": ("heat", ["-9", "-3", "4", "2"], {}, {"noted": []}),
    "one far below others below 0": (
        "cold",
        ["-999", "-3.5", "4", "-999"],
        {},
        {"noted": ["cold is -999 in 2 rows, and never else below -3.5; if it stands for a missing value"]},
    ),
    "one not so far below": ("cold", ["-99", "-30", "4", "-99"], {}, {"noted": []}),
    "a number above all others": (
        "days",
        ["999", "3", "27", "999"],
        {},
        {"noted": ["days is 999 in 2 rows, and never else above 27; if it stands for a missing value"]},
    ),
    "one not so far above": ("heat", ["999", "100", "4", "999"], {}, {"noted": []}),
    "one word among numbers": (
        "age",
        ["unknown", "0", "1", "2", "1"],
        {},
        {"noted": ["numbers of age are categories, since 'unknown' stands among them in 1 row"]},
    ),
    "dates that are numbers": (
        "born",
        ["31122024", "1012025", "15012025"],
        {},
        {"noted": ["the numbers of born are dates, such as 31122024, whose differences are no days"]},
    ),
    "numbers that are no dates": ("pay", ["31122024", "1012025", "15992025"], {}, {"noted": []}),
    "classes": ("label", KINDS, {}, {"classes": ("CAT", "Cat", "cat", "dog", "dog.")}),
    "classes that are joined": (
        "label",
        KINDS,
        JOINED,
        {
            "classes": ("cat", "dog"),
            "y": {"": [0, 0, 0, 0, 1, 1, 1]},
            "said": ["spellings of label joined: 'CAT' as 'cat', 'Cat' as 'cat', 'dog.' as 'dog'"],
        },
    ),
    "truths that are joined": (
        "label",
        ["Y", "N", "yes", "no", "N"],
        JOINED,
        {"classes": ("N", "Y"), "y": {"": [1, 0, 1, 0, 0]}},
    ),
    "categories": (
        "kind",
        COLOURS,
        {"missing": "median"},
        {"noted": ["categories of kind that are spelled in several ways, with their rows: 'red' (2) = "]},
    ),
    "categories that are joined": (
        "kind",
        COLOURS,
        {"missing": "median", **JOINED},
        {
            "features": ("kind=blue", "kind=red", "b"),
            "x": {"": [[0, 1, 0], [0, 1, 2], [0, 1, 4], [1, 0, 1], [0, 1, 3]]},
            "noted": [],
        },
    ),
    "clients are not joined": ("client", IDS, {}, {"clients": ("1", "007", "7", "1.0", "b")}),
    "clients that are joined keep the most frequent name": (
        "client",
        IDS,
        JOINED,
        {
            "clients": ("007", "1.0", "b"),
            "counts": {"train": [3, 3, 1]},
            "said": ["spellings of clients joined: '1' as '1.0', '7' as '007'"],
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_what_a_column_may_mean_is_said(tmp_path, name):
    column, values, options, facts = READ[name]
    assert_facts(open_column(tmp_path, column, values, **options), **facts)


def test_more_spellings_than_categories_may_be_joined(tmp_path):
    assert_refused("more than 100 different texts", open_column, tmp_path, "where", SITES)
    assert len(open_column(tmp_path, "where", SITES, **JOINED).format.feature_names) == 61
    assert_refused("join_spellings=True: does nothing with LEAF", open_leaf, str(tmp_path), DatasetOptions(**JOINED))


def test_a_missing_class_is_refused_with_the_words_that_are_left(tmp_path):
    caught = assert_refused("", open_column, tmp_path, "label", GRADES)
    assert IS_MISSING in caught and ",none" not in caught


def test_a_word_that_is_a_value_here_and_missing_among_numbers(tmp_path):
    source = open_text(
        tmp_path, "front,alley,label\n" + "60,NA,0\nNA,Pave,1\n80,Grvl,0\n70,NA,1\n" * 2, missing="median"
    )
    # Without the word, --missing_words would end in an error: front would have a text among numbers.
    assert source.notes == (
        "in column alley 'NA' (4 rows) is taken as missing; if it is a value, write it there in another way, since "
        "front has it among numbers",
    )
    assert source.pool().filled == source.filled == {"front": 2, "alley": 4}


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
    assert_facts(source, x={"": [[4, 0], [3, 2], [4, 4], [5, 1]]}, filled={"age": 2})
    cells = parse_text(values, missing_words=read_missing_words(words))
    assert cells.is_missing.tolist() == [True, False, True, False]
    assert sum(cells.missing_words.values()) == sum(bool(value.strip()) for value in values[::2])


GARAGES = {"garage": ["NA", "x", "x"], "age": [-999.0, 3.0, 5.0], "label": [0, 1, 0]}
DECIMALS = {"a": ["0.5", "1.5", "2.25", "n.a.", "3.5"], "y": [0, 1, 0, 1, 1]}


@pytest.mark.parametrize(
    ("columns", "options", "facts"),
    [
        ({"a": [1.0, 2.0], "label": [True, False]}, {}, {"classes": ("false", "true")}),
        # Words are values in typed files unless they are given.
        (GARAGES, {}, {"features": ("garage=NA", "garage=x", "age"), "filled": {}}),
        (
            GARAGES,
            {"missing_words": "NA,-999", "missing": "median"},
            {"features": ("garage=x", "age"), "filled": {"garage": 1, "age": 1}, "x": {"": [[1, 4], [1, 3], [1, 5]]}},
        ),
        (DECIMALS, {}, {"noted": ["the numbers of a are categories, since 'n.a.' stands among them in 1 row"]}),
        # What the note advises.
        (
            DECIMALS,
            {"missing_words": "n.a.", "missing": "median"},
            {"x": {"": [[0.5], [1.5], [2.25], [1.875], [3.5]]}},
        ),
    ],
)
def test_words_and_truths_of_parquet(tmp_path, columns, options, facts):
    assert_facts(open_columns(tmp_path, columns, **options), **facts)


def test_a_second_opening_reads_the_store_of_the_same_reading_and_version(tmp_path, monkeypatch):
    path = write_text(tmp_path, "user,a,b,y\nu,12 %,1,0\nv,5 %,2,1\n")
    first = CSV.open(path, DatasetOptions())
    with monkeypatch.context() as patch:
        patch.setattr("datasets.tables.source.write_table", None)
        again = CSV.open(path, DatasetOptions())
        assert (again.digest, again.reading) == (first.digest, first.reading)
        assert_facts(again, x={"u": [[np.float32(0.12), 1]], "v": [[np.float32(0.05), 2]]})
        with pytest.raises(TypeError):  # the file is read anew where it is read in another way
            CSV.open(path, DatasetOptions(categories="index", feature_columns="b"))
        patch.setattr("datasets.tables.source.STORE_VERSION", 1)
        with pytest.raises(TypeError):
            CSV.open(path, DatasetOptions())


def test_a_table_of_an_earlier_run_has_its_digest(tmp_path):
    text = "date,b,label\n31122024,0,Yes\n01012025,2,No\n"
    source = open_text(tmp_path, text, truth_names="false_true", date_form="number")
    # Computed by the version before there were options for words and dates, whose clients' files are those of the run.
    assert source.digest == "b1dabebf280296ba1fea55d009663f596628f5a6a9e073d9e55d5a310f096197"
    assert_facts(source, classes=("false", "true"), x={"": [[2], [0]]})
    assert_facts(open_text(tmp_path, text), classes=("No", "Yes"))


def test_yes_and_no_are_one_feature_of_0_and_1_in_text_and_in_typed_files(tmp_path):
    """A median fills in 0 or 1, here of yes, no, yes; a word beside them makes categories."""
    columns = {"user": ["u"] * 4, "a": ["Yes", "no", None, "yes"], "b": ["yes", "no", "maybe", "no"], "y": [0, 1, 0, 1]}
    of_text = open_text(tmp_path, pd.DataFrame(columns).to_csv(index=False), missing="median")
    typed = open_columns(tmp_path, columns, missing="median")
    assert of_text.format.feature_names == typed.format.feature_names == ("a", "b=maybe", "b=no", "b=yes")
    for source in (of_text, typed):
        assert source.read(0, "train")[0][:, 0, 0].tolist() == [1, 0, 1, 1]
        assert source.format.categories == (1, 2, 3) and dict(source.filled) == {"a": 1}
    assert open_columns(tmp_path, {**columns, "a": [True, False, None, True]}, missing="median").filled == typed.filled
