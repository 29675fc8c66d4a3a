"""Which format a path is taken to be in, by looking, and what is said of paths in none."""

import dataclasses
import gzip
import json

import numpy as np
import PIL.Image
import pytest
from refusals import assert_refused

from datasets.dataset import DatasetOptions
from datasets.file_formats import choose_partition, find_format, get_format, list_formats, name_data, open_data

OPTIONS = DatasetOptions()
TABLE = "user,a,label\nu,1,x\nv,2,y\n"


def write_text(path):
    path.write_text(TABLE)


def write_packed(path):
    path.write_bytes(gzip.compress(TABLE.encode()))


def write_npz(path):
    np.savez(path, x=np.ones((20, 2)), y=np.arange(20) % 2)


def write_npz_folder(path):
    path.mkdir()
    write_npz(path / "ann.npz")


def write_pfllib(path):
    (path / "train").mkdir(parents=True)
    np.savez_compressed(path / "train" / "0.npz", data={"x": np.ones((2, 2)), "y": [0, 1]})
    (path / "config.json").write_text("{}")


def write_tables(path):
    path.mkdir()
    write_text(path / "ann.csv")


def write_images(path):
    for name in ("ann/cat", "ann/dog"):
        (path / name).mkdir(parents=True)
        PIL.Image.new("L", (3, 3)).save(path / name / "1.png")


def write_parquet(path):
    path.write_bytes(b"PAR1")


def write_saved(path):
    path.mkdir()
    (path / "state.json").write_text("{}")
    (path / "data-00000-of-00001.arrow").write_bytes(b"\xff\xff\xff\xff")


def write_leaf(path):
    path.mkdir()
    users = {"users": ["u"], "num_samples": [1], "user_data": {"u": {"x": [[1.0, 2.0]], "y": [0]}}}
    (path / "all_data.json").write_text(json.dumps(users))


@pytest.mark.parametrize(
    ("name", "write", "expected"),
    [
        ("a.csv", write_text, "csv"),
        ("a.tsv", write_text, "csv"),
        ("a.csv.gz", write_packed, "csv"),
        ("a.txt", write_text, "csv"),
        ("a", write_text, "csv"),
        ("a.npz", write_npz, "npz"),
        ("clients", write_npz_folder, "client_files"),
        ("pfllib", write_pfllib, "client_files"),
        ("tables", write_tables, "client_files"),
        ("photos", write_images, "images"),
        ("a.parquet", write_parquet, "parquet"),
        ("saved", write_saved, "parquet"),
        ("femnist", write_leaf, "leaf"),
    ],
)
def test_a_format_is_found_by_looking(tmp_path, name, write, expected):
    write(tmp_path / name)
    assert find_format(str(tmp_path / name)) == get_format(expected)


def test_a_format_that_is_named_is_not_looked_for(tmp_path):
    write_tables(tmp_path / "a")
    assert find_format(str(tmp_path / "a"), "images") == get_format("images")
    options = dataclasses.replace(OPTIONS, data=str(tmp_path / "a"), data_format="images")
    assert_refused("no image in this folder", open_data, options)


def test_what_is_in_no_format_is_one_line(tmp_path):
    (tmp_path / "letter.txt").write_text("Dear all,\nthis is no table. Or is it?\nYours\n")
    (tmp_path / "empty").mkdir()
    for name in ("letter.txt", "empty"):
        assert_refused("in none of the formats that are read", find_format, str(tmp_path / name))
    assert_refused("no such file or folder", find_format, str(tmp_path / "none"))


def test_data_are_opened_and_their_partition_told_by_their_path(tmp_path, monkeypatch):
    write_text(tmp_path / "a.csv")
    monkeypatch.chdir(tmp_path)
    options = dataclasses.replace(OPTIONS, data="a.csv")
    source = open_data(options)
    assert source.name == "a" and source.client_names == ("u", "v")
    assert choose_partition(options) == "natural"
    assert choose_partition(dataclasses.replace(options, label_column="none")) == ""  # said when they are loaded
    assert choose_partition(OPTIONS) == ""
    assert_refused("--data", open_data, OPTIONS)


def test_formats_that_take_much_are_asked_last():
    titles = [each.title for each in list_formats()]
    assert titles[0] == "an npz file of arrays" and titles[-1] == "a folder of images"


@pytest.mark.parametrize(
    ("name", "write", "expected"),
    [("my data.csv.gz", write_text, "my data"), ("photos.2024", write_images, "photos.2024")],
)
def test_data_are_called_as_their_file_without_endings(tmp_path, name, write, expected):
    write(tmp_path / name)
    assert name_data(str(tmp_path / name)) == expected


@pytest.mark.parametrize(
    ("name", "write", "changes", "expected"),
    [
        ("a.csv", write_text, {"image_size": 8}, "image_size=8: does nothing with a table"),
        ("a.csv", write_text, {"sequence_length": 8}, "sequence_length=8: does nothing with a table"),
        ("a.npz", write_npz, {"missing": "drop"}, "missing=drop: does nothing with an npz file"),
        ("clients", write_npz_folder, {"window": 3}, "window=3: does nothing with npz files"),
        ("photos", write_images, {"label_column": "y"}, "label_column=y: does nothing with a folder of images"),
        ("photos", write_images, {"layout": "image"}, "layout=image: does nothing with a folder of images"),
    ],
)
def test_options_without_a_use_are_refused(tmp_path, name, write, changes, expected):
    write(tmp_path / name)
    options = dataclasses.replace(OPTIONS, data=str(tmp_path / name))
    assert_refused(expected, open_data, dataclasses.replace(options, **changes))
    open_data(dataclasses.replace(options, client_column=None))  # as a flag that was not given arrives
