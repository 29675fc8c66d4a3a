"""Parquet and Arrow, written as pandas, Hugging Face and Flower Datasets write them, and one line for what is wrong."""

import datetime
import decimal
import io
import json

import numpy as np
import pandas
import PIL.Image
import pyarrow
import pyarrow.ipc
import pytest
from refusals import assert_refused
from small_tables import assert_facts, open_columns, write_columns

from datasets.dataset import DatasetOptions
from datasets.formats.client_files import choose_client_files_partition, open_client_files
from datasets.formats.parquet import FORMAT as PARQUET
from datasets.formats.parquet import find_arrow_files, is_parquet, make_arrow_table, read_class_names

OPTIONS = DatasetOptions()
TABLE = {
    "user": ["Zoë", "bob", "Zoë", "bob"],
    "age": pyarrow.array([30, 41, 29, 35], pyarrow.int64()),
    "height": pyarrow.array([1.5, 1.75, 1.625, -2.0], pyarrow.float32()),
    "colour": pyarrow.array(["red", "blue", "red", "green"]).dictionary_encode(),
    "smokes": [True, False, False, True],
    "label": ["yes", "no", "maybe", "no"],
}


def read(path, **options):
    return PARQUET.open(str(path), DatasetOptions(**options))


def save_to_disk(folder, columns, features=None, num_files=1, schema=None):
    """A folder as `datasets.Dataset.save_to_disk` makes it: Arrow streams, and what they are in JSON beside them."""
    folder.mkdir(parents=True, exist_ok=True)
    table = pyarrow.table(columns, schema=schema)
    names = [f"data-{n:05d}-of-{num_files:05d}.arrow" for n in range(num_files)]
    size = -(-len(table) // num_files)
    for n, name in enumerate(names):
        part = table.slice(n * size, size)
        with pyarrow.OSFile(str(folder / name), "wb") as sink, pyarrow.ipc.new_stream(sink, part.schema) as writer:
            writer.write_table(part, max_chunksize=3)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    (folder / "dataset_info.json").write_text(json.dumps({"features": features or {}}))


def encode_image(value, size=(5, 4), mode="L"):
    stream = io.BytesIO()
    PIL.Image.new(mode, size, value).save(stream, "PNG")
    return {"bytes": stream.getvalue(), "path": None}


IMAGE = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
CLASSES = {"image": {"_type": "Image"}, "label": {"names": ["cat", "dog", "wolf"], "_type": "ClassLabel"}}


def make_images(values, labels, **how):
    images = pyarrow.array([encode_image(value, **how) for value in values], IMAGE)
    return {"image": images, "label": pyarrow.array(labels, pyarrow.int64())}


def test_a_table_becomes_clients(tmp_path):
    path = write_columns(tmp_path / "mine.parquet", TABLE, row_group_size=3)
    assert_facts(
        read(path),
        said=["table, parquet: label label (by its name), client user (by its name)"],
        clients=("Zoë", "bob"),
        classes=("maybe", "no", "yes"),
        features=("age", "height", "colour=blue", "colour=green", "colour=red", "smokes"),
        x={
            "Zoë": [[30, 1.5, 0, 0, 1, 1], [29, 1.625, 0, 0, 1, 0]],
            "bob": [[41, 1.75, 1, 0, 0, 0], [35, -2, 0, 1, 0, 1]],
        },
        y={"Zoë": [2, 0], "bob": [1, 1]},
    )
    assert PARQUET.choose_partition(path, OPTIONS) == "natural" and is_parquet(path)


def test_what_pandas_writes_has_its_index_left_out(tmp_path):
    frame = pandas.DataFrame({"a": [1.5, 2.5, 3.5], "y": [0, 1, 0]}, index=[4, 7, 9])
    frame.to_parquet(tmp_path / "mine.parquet")
    frame.reset_index(drop=True).to_feather(tmp_path / "mine.feather")
    for name, kind in (("mine.parquet", "parquet"), ("mine.feather", "Arrow")):
        assert_facts(read(tmp_path / name), said=[f"table, {kind}"], features=("a",), x={"": [[1.5], [2.5], [3.5]]})


def test_files_without_a_known_ending_are_told_by_their_first_bytes(tmp_path):
    frame = pandas.DataFrame({"a": [1.5, 2.5], "y": [0, 1]})
    frame.to_parquet(tmp_path / "mine")
    frame.to_feather(tmp_path / "yours")
    (tmp_path / "other").write_text("a,y\n1.5,0\n")
    assert is_parquet(str(tmp_path / "mine")) and is_parquet(str(tmp_path / "yours"))
    assert not is_parquet(str(tmp_path / "other")) and not is_parquet(str(tmp_path / "none"))
    assert_facts(read(tmp_path / "mine"), said=["table, parquet"], x={"": [[1.5], [2.5]]})
    assert_facts(read(tmp_path / "yours"), said=["table, Arrow"], x={"": [[1.5], [2.5]]})


def test_types_of_columns_that_text_files_do_not_have(tmp_path):
    columns = {
        "when": pyarrow.array([datetime.datetime(2024, 1, day) for day in (3, 1, 2)], pyarrow.timestamp("us")),
        "price": pyarrow.array([decimal.Decimal("1.25"), decimal.Decimal("2.5"), None], pyarrow.decimal128(9, 2)),
        "count": pyarrow.array([1, None, 3], pyarrow.int32()),
        "ok": pyarrow.array([True, None, False]),
        "client": pyarrow.array([2, 2, 2], pyarrow.int64()),
        "y": pyarrow.array([0, 1, 0], pyarrow.uint8()),
    }
    message = r"of 3 rows: price 1 \(.*row 2 .*count 1 .*ok 1 "
    assert_refused(message, open_columns, tmp_path, columns, time_column="when")
    source = open_columns(tmp_path, columns, time_column="when", missing="median")
    assert_facts(source, x={"2": [[2.5, 2, 0], [1.875, 3, 0], [1.25, 1, 1]]}, is_ordered=True)


def test_a_data_set_of_hugging_face_saved_to_disk(tmp_path):
    save_to_disk(tmp_path / "saved", make_images([1, 2, 3, 4, 5], [0, 2, 1, 0, 2]), CLASSES, num_files=2)
    (tmp_path / "saved" / "cache-0123.arrow").write_bytes(b"what it computed")
    source = read(tmp_path / "saved")
    assert_facts(
        source,
        classes=("cat", "dog", "wolf"),
        y={"": [0, 2, 1, 0, 2]},
        x={"": np.full((4, 5, 5), [1, 2, 3, 4, 5]).transpose(2, 0, 1).tolist()},
        shape=(4, 5, 1),
        dtype="uint8",
        has_clients=False,
    )
    assert source.format.preprocessing.scale == 1 / 255
    assert PARQUET.choose_partition(str(tmp_path / "saved"), OPTIONS) == "" and is_parquet(str(tmp_path / "saved"))


def test_a_dictionary_of_data_sets_has_a_test_part(tmp_path):
    save_to_disk(tmp_path / "train", make_images([1, 2], [0, 1]), CLASSES)
    save_to_disk(tmp_path / "test", make_images([3], [1]), CLASSES)
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    assert_facts(read(tmp_path), counts={"train": [2], "test": [1]}, test_x={"": [[[3] * 5] * 4]})


def test_partitions_of_flower_are_clients(tmp_path):
    for client, value in (("partition_10", 1), ("partition_9", 2)):
        save_to_disk(tmp_path / "whole" / client, make_images([value], [value - 1]), CLASSES)
    x = {"partition_10": [[[1] * 5] * 4], "partition_9": [[[2] * 5] * 4]}
    assert_facts(read(tmp_path / "whole"), said=["a file a client"], has_clients=True, x=x)
    for part in ("train", "test"):
        save_to_disk(tmp_path / "parts" / "3" / part, make_images([1, 1], [0, 1]), CLASSES)
    assert_facts(read(tmp_path / "parts"), clients=("3",), counts={"train": [2], "test": [2]})


def test_files_as_the_hub_names_them(tmp_path):
    schema = pyarrow.schema([("image", IMAGE), ("label", pyarrow.int64())])
    schema = schema.with_metadata({"huggingface": json.dumps({"info": {"features": CLASSES}})})
    for name, values in (("train-00000-of-00002", [1, 2]), ("train-00001-of-00002", [3]), ("test-00000-of-00001", [4])):
        write_columns(tmp_path / "data" / f"{name}.parquet", make_images(values, [0] * len(values)), schema)
    assert_facts(
        read(tmp_path),
        classes=("cat", "dog", "wolf"),
        x={"": [[[value] * 5] * 4 for value in (1, 2, 3)]},
        counts={"train": [3], "test": [1]},
    )


def test_files_that_are_parts_and_files_that_are_clients(tmp_path):
    for name in ("ann", "bob"):
        write_columns(tmp_path / "clients" / f"{name}.parquet", {"a": [1, 2], "y": [0, 1]})
        write_columns(tmp_path / "months" / f"{name}.parquet", {"a": [1, 2], "y": [0, 1], "user": ["u", name]})
    for n in range(2):
        write_columns(tmp_path / "parts" / f"part-{n:05d}-4e28ba-c000.snappy.parquet", {"a": [1, 2], "y": [0, 1]})
    assert_facts(read(tmp_path / "clients"), clients=("ann", "bob"))
    assert_facts(read(tmp_path / "months"), clients=("ann", "bob", "u"))
    assert_facts(read(tmp_path / "parts"), clients=("",), counts={"train": [4]})
    assert_facts(open_client_files(str(tmp_path / "months"), OPTIONS), clients=("ann", "bob"))
    assert choose_client_files_partition(str(tmp_path / "months"), OPTIONS) == "natural"


@pytest.mark.parametrize(
    ("column", "options", "shape", "dtype"),
    [
        (pyarrow.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), {}, (3, 1), "float32"),
        (pyarrow.array([[1, 2, 3], [4, 5, 6]], pyarrow.list_(pyarrow.int64(), 3)), {}, (3, 1), "float32"),
        (
            pyarrow.array([[[1, 2, 3], [4, 5, 6]]] * 2, pyarrow.list_(pyarrow.list_(pyarrow.uint8()))),
            {},
            (2, 3, 1),
            "uint8",
        ),
        (pyarrow.array([[[1.0, 2.0], [4.0, 5.0]]] * 2), {}, (2, 2), "float32"),
        # Tokens stay whole numbers.
        (pyarrow.array([[1, 2, 3], [4, 5, 70000]]), {"layout": "tokens"}, (3,), "int32"),
    ],
)
def test_lists_are_examples_of_their_shape(tmp_path, column, options, shape, dtype):
    source = open_columns(tmp_path, {"signal": column, "other": [1, 2], "y": [0, 1]}, **options)
    assert_facts(source, shape=shape, dtype=dtype)
    assert "column other is not used" in source.notes and source.format.takes_tokens == bool(options)
    x, _ = source.read(0, "train")
    np.testing.assert_array_equal(x.ravel(), np.array(column.to_pylist(), dtype).ravel())


def test_images_are_unpacked_a_few_at_a_time(tmp_path, monkeypatch):
    path = write_columns(tmp_path / "mine.parquet", make_images([1, 2, 3, 4, 5], [0, 1, 0, 1, 0]))
    whole = [piece.num_rows for piece in make_arrow_table(path, OPTIONS).read(("image", "label"))]
    monkeypatch.setattr("datasets.image_pixels.BYTES_AT_ONCE", 50)  # two images of 5 x 4
    pieces = list(make_arrow_table(path, OPTIONS).read(("image", "label")))
    assert whole == [1, 4] and [piece.num_rows for piece in pieces] == [1, 2, 2]
    assert np.concatenate([piece.cells["image"].values for piece in pieces])[:, 0, 0, 0].tolist() == [1, 2, 3, 4, 5]
    assert str(pieces[2].locate(1)) == f"{path}, row 4 (counted from 0)"


def test_images_are_resized_and_converted_on_request(tmp_path):
    images = [encode_image((9, 9, 9), (8, 8), "RGB"), encode_image(7, (3, 5))]
    columns = {"img": pyarrow.array(images, IMAGE), "label": [0, 1]}
    message = r"row 1 .*column 'img': 3 x 5 pixels in grey, expected 8 x 8 pixels in colour"
    assert_refused(message, open_columns, tmp_path, columns)
    source = open_columns(tmp_path, columns, image_size=4, image_colour="grey")
    assert_facts(source, x={"": [[[value] * 4] * 4 for value in (9, 7)]})


def test_a_large_file_is_read_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.formats.parquet.BATCH_ROWS", 7)
    columns = {"user": [f"u{n % 3}" for n in range(50)], "a": list(range(50)), "y": [n % 2 for n in range(50)]}
    assert_facts(
        open_columns(tmp_path, columns), x={f"u{client}": [[n] for n in range(client, 50, 3)] for client in range(3)}
    )
    columns["a"] = [float("inf") if n == 40 else float(n) for n in range(50)]
    assert_refused(r"row 40 \(counted from 0\): column 'a' has inf", open_columns, tmp_path, columns)


GOOD = {"user": ["u", "v"], "a": [1.0, 2.0], "y": [0, 1]}
WRONG = {
    "missing client": ({**GOOD, "user": ["u", None]}, {}, "user 1 ("),
    "missing label": ({**GOOD, "y": [0, None]}, {}, "y 1 ("),
    "no row": ({name: pyarrow.array([], pyarrow.float64()) for name in GOOD}, {}, "no rows below"),
    "no label": ({"user": ["u"], "a": [1.0]}, {}, "say by --label_column"),
    "unknown column": (GOOD, {"label_column": "z"}, "label_column=z: no such column, it has user, a, y"),
    "dates": ({**GOOD, "a": [datetime.date(2024, 1, 1)] * 2}, {}, "column 'a' holds dates ('2024-01-01"),
    "ragged": (
        {**GOOD, "a": [[1.0], [1.0, 2.0]]},
        {},
        "row 1 (counted from 0): column 'a' has a list of another length",
    ),
    "texts": ({**GOOD, "a": [["p"], ["q"]]}, {}, "column 'a' has lists of string, expected numbers"),
    "a record": ({**GOOD, "a": [{"p": 1}, {"p": 2}]}, {}, "column 'a' is of type struct<p: int64>, expected numbers"),
    "no image": (
        {**GOOD, "a": pyarrow.array([{"bytes": b"no", "path": "x.png"}] * 2, IMAGE)},
        {},
        "row 0 (counted from 0): column 'a': no image, or a damaged one",
    ),
    "a path alone": (
        {**GOOD, "a": pyarrow.array([{"bytes": None, "path": "x.png"}] * 2, IMAGE)},
        {},
        "has no bytes of an image, only the path 'x.png'",
    ),
    "two lists": ({**GOOD, "a": [[1.0]] * 2, "b": [[1.0]] * 2}, {}, "columns a, b hold arrays or images"),
    "a window of lists": ({**GOOD, "a": [[1.0]] * 2}, {"window": 2}, "window=2 is for columns of numbers"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_a_table_is_one_line(tmp_path, name):
    columns, options, expected = WRONG[name]
    caught = assert_refused("", open_columns, tmp_path, columns, **options)
    assert expected in caught and str(tmp_path / "mine.parquet") in caught


def test_labels_without_a_name_are_refused(tmp_path):
    save_to_disk(tmp_path / "saved", make_images([1, 2], [0, -1]), CLASSES)
    assert_refused(r"'label' holds -1..0, expected 0..2 for its 3 names", read, tmp_path / "saved")


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.parquet", b"", "empty, 0 bytes"),
        ("a.parquet", b"user,a\n1,2\n", "damaged, cut or no parquet"),
        ("a.parquet", b"PAR1" + bytes(50), "damaged, cut or no parquet"),
        ("a.arrow", b"ARROW1" + bytes(50), "damaged, cut or no parquet or Arrow"),
        ("a.arrow", b"\xff\xff\xff\xff" + bytes(50), "damaged, cut or no parquet or Arrow"),
    ],
)
def test_damaged_files_are_one_line(tmp_path, name, content, expected):
    (tmp_path / name).write_bytes(content)
    caught = assert_refused("", read, tmp_path / name)
    assert expected in caught and name in caught


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "no parquet or Arrow file in this folder"),
        ({"u/v/a": GOOD}, "lies in the folders 'u' and 'v'"),
        (
            {"u/train-00000-of-00001": GOOD, "train-00000-of-00001": GOOD},
            "lies beside the folders of clients",
        ),
        (
            {"u": {"a": [1.0, 2.0], "y": [0, 1]}, "v": {"b": [1.0, 2.0], "y": [0, 1]}},
            r"v\.parquet: column 'a' is missing, which .*u\.parquet has",
        ),
    ],
)
def test_folders_that_say_two_things_are_one_line(tmp_path, files, message):
    for name, columns in files.items():
        write_columns(tmp_path / f"{name}.parquet", columns)
    assert_refused(message, read, tmp_path)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a.parquet"], [("a", "train")]),
        (["train.parquet", "test.parquet"], [("", "test"), ("", "train")]),
        (["train-00000-of-00002.parquet", "train-00001-of-00002.parquet"], [("", "train")] * 2),
        (["data/validation-00000-of-00001.parquet"], [("", "validation")]),
        (["data-00000-of-00001.arrow", "cache-1.arrow", ".tmp.arrow", ".git/x.arrow"], [("", "train")]),
        (["train/data-00000-of-00001.arrow", "test/data-00000-of-00001.arrow"], [("", "test"), ("", "train")]),
        (["default/train/0000.parquet"], [("", "train")]),
        (["9/data-00000-of-00001.arrow", "10/data-00000-of-00001.arrow"], [("9", "train"), ("10", "train")]),
        (["u/test/data-00000-of-00001.arrow"], [("u", "test")]),
        (["0.parquet", "1.parquet"], [("0", "train"), ("1", "train")]),
        (["part.0.parquet", "part-00001-3f.c000.snappy.parquet"], [("", "train")] * 2),
        (["ann.parquet", "train-00000-of-00001.parquet"], [("", "train")] * 2),
        (["train/ann.parquet", "test/ann.parquet"], [("ann", "test"), ("ann", "train")]),
    ],
)
def test_files_by_client_and_split(tmp_path, names, expected):
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"PAR1")
    found = find_arrow_files(str(tmp_path))
    assert [(file.client, file.split) for file in found] == expected
    assert is_parquet(str(tmp_path))


LABELS = {"y": {"names": ["no", "yes"], "_type": "ClassLabel"}, "x": {"dtype": "int64", "_type": "Value"}}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, {}),
        (json.dumps({"features": LABELS}), {"y": ("no", "yes")}),
        *((damaged, {}) for damaged in ("{", "[]", '{"features": 3}', '{"features": {"y": 1}}')),
    ],
)
def test_names_of_labels_come_from_the_description_of_a_saved_data_set(tmp_path, content, expected):
    if content is not None:
        (tmp_path / "dataset_info.json").write_text(content)
    assert read_class_names(str(tmp_path)) == expected
