"""What names of parquet and Arrow files and of their folders say; nothing here needs pyarrow."""

import json

import pytest

from datasets.formats.parquet import find_arrow_files, is_parquet, read_class_names


def make(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"PAR1")
    return str(folder)


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
    found = find_arrow_files(make(tmp_path, *names))
    assert [(file.client, file.split) for file in found] == expected
    assert is_parquet(str(tmp_path))


def test_names_of_labels_come_from_the_description_of_a_saved_data_set(tmp_path):
    assert read_class_names(str(tmp_path)) == {}
    features = {"y": {"names": ["no", "yes"], "_type": "ClassLabel"}, "x": {"dtype": "int64", "_type": "Value"}}
    (tmp_path / "dataset_info.json").write_text(json.dumps({"features": features}))
    assert read_class_names(str(tmp_path)) == {"y": ("no", "yes")}
    for damaged in ("{", "[]", '{"features": 3}', '{"features": {"y": 1}}'):
        (tmp_path / "dataset_info.json").write_text(damaged)
        assert read_class_names(str(tmp_path)) == {}
