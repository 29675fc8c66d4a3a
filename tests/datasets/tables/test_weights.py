"""Weights of a table's rows: they are read as numbers, stay with their rows, and are no feature."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from datasets.client_file_copies import flip_labels, measure_files, read_files, write_copy
from datasets.client_files import is_client_whole
from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.example_format import ExampleWeights, read_example_format
from datasets.example_weights import describe_weights
from datasets.federate import build_federated_data
from datasets.formats.csv import open_csv
from datasets.formats.parquet import open_parquet
from datasets.partition_settings import RELABELLED, PartitionSettings, VariantSettings
from datasets.standardized_clients import standardize_clients

GOOD = "user,a,w,label\nu,1,2,x\nu,2,0.5,y\nv,3,0,x\nv,4,7,y\n"
WEIGHTS = {"u": [2, 0.5], "v": [0, 7]}


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def open_text(folder, text, **options):
    path = folder / "mine.csv"
    path.write_text(text)
    return open_csv(str(path), dataclasses.replace(DatasetOptions(), **{"weight_column": "w", **options}))


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
    with pytest.raises(DatasetError, match=message) as raised:
        open_text(tmp_path, text, **options)
    assert "\n" not in str(raised.value)


def test_dates_and_lists_are_no_weights(tmp_path):
    frame = pd.DataFrame({"a": [1, 2], "day": pd.to_datetime(["2024-01-01"] * 2), "l": [[1], [2]], "label": [0, 1]})
    frame.to_parquet(tmp_path / "mine.parquet")
    for name, message in (("day", "row 0 .*'day' has '2024-01-01"), ("l", "'l' holds arrays or images, expected a")):
        options = dataclasses.replace(DatasetOptions(), weight_column=name, feature_columns="a")
        with pytest.raises(DatasetError, match=message):
            open_parquet(str(tmp_path / "mine.parquet"), options)


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
        (("user",), PartitionSettings("natural"), {"num_new_clients": 1}),
        (("user",), PartitionSettings("natural", most_clients=2, most_train_examples=20), {}),
        (("user",), PartitionSettings("natural", variant=VariantSettings(RELABELLED, 2)), {}),
        (("user",), PartitionSettings("iid", num_clients=4, variant=VariantSettings(RELABELLED, 2)), {}),
        (("user", "split"), PartitionSettings("natural"), {}),
        (("user", "split"), PartitionSettings("iid", num_clients=4), {}),
        ((), PartitionSettings("dirichlet", num_clients=4), {}),
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
    data = build_federated_data(source, PartitionSettings("natural"), str(tmp_path / "clients"))
    for x, weights in list_files(data):
        assert x.reshape(-1, 2)[:, 1].tolist() == weights.tolist()
    own = open_text(tmp_path, make_rows("user", "split"))
    scaled = standardize_clients(own)
    assert list_weights(scaled) == list_weights(own)


def test_all_zero_is_one_line_and_all_alike_has_their_number_as_the_mean(tmp_path):
    zeros = "user,a,w,label\n" + "".join(f"u{n % 2},{n}.5,0,{n // 2 % 2}\n" for n in range(40))
    with pytest.raises(DatasetError, match="'w' is 0 for each of 32 train examples, expected numbers above 0 for some"):
        build_federated_data(open_text(tmp_path, zeros), PartitionSettings("natural"), str(tmp_path / "clients"))
    sevens = open_text(tmp_path, zeros.replace(".5,0,", ".5,7.3,"))
    data = build_federated_data(sevens, PartitionSettings("natural"), str(tmp_path / "clients"))
    assert data.format.weights.mean == float(np.float32(7.3))  # so that each is exactly 1


def test_attackers_and_copies_keep_the_weights(tmp_path):
    data = build_federated_data(
        open_text(tmp_path, make_rows("user")), PartitionSettings("natural"), str(tmp_path / "c")
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
        open_text(tmp_path, make_rows("user")), PartitionSettings("natural"), str(tmp_path / "c")
    )
    assert read_example_format(data.format.to_json()) == data.format
    plain = dataclasses.replace(data.format, weights=None)
    assert "weights" not in plain.to_json() and read_example_format(plain.to_json()) == plain
    said = describe_weights(ExampleWeights("w", 1.25, 0.0, 3.0, 2, 1024))
    assert said == "column w: 0 to 3, 2 of 1,024 train examples weigh 0; divided by their mean, 1.25"
