"""TFF's files by --data: forms that are known by their features, and labelled examples of any other."""

import io

import numpy as np
import PIL.Image
import pytest

from datasets.client_source import TEST, TRAIN
from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.file_formats import find_format, get_format, open_data

FLAT = [{"a": 1.0, "b": [2, 3], "label": 0}, {"a": -1.5, "b": [4, 5], "label": 2}]


def open_file(path, **options):
    return open_data(DatasetOptions(data=str(path), **options))


def write(tmp_path, write_tff_file, rows, test=None):
    splits = {"train": {"client": rows}, **({"test": {"client": test}} if test else {})}
    return write_tff_file(tmp_path / "own.sqlite", splits)


def encode_png(array):
    stream = io.BytesIO()
    PIL.Image.fromarray(array).save(stream, "PNG")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("example", "shape", "task"),
    [
        ({"snippets": b"Hark!"}, (80,), "next_token"),
        ({"pixels": np.zeros(784, np.float32), "label": 3}, (28, 28, 1), "classification"),
        ({"image": np.zeros(3072, int), "label": 3, "coarse_label": 0}, (32, 32, 3), "classification"),
        ({"tokens": b"a b", "title": b"t", "tags": b"c", "score": 1}, (20,), "next_token"),
    ],
)
def test_data_sets_are_known_by_their_features(tmp_path, write_tff_file, example, shape, task):
    path = write(tmp_path, write_tff_file, [example], [example])
    assert find_format(path) == get_format("tff")
    source = open_file(path)
    assert (source.name, source.format.input_shape, source.format.labels.task) == ("own", shape, task)
    assert source.read(0, TRAIN)[0].shape == (1, *shape)


def test_numbers_beside_a_label_are_features(tmp_path, write_tff_file):
    source = open_file(write(tmp_path, write_tff_file, FLAT, FLAT[:1]))
    x, y = source.read(0, TRAIN)
    np.testing.assert_array_equal(x, np.array([[1, 2, 3], [-1.5, 4, 5]], np.float32))
    assert y.tolist() == [0, 2]
    assert source.format.class_names == ("0", "1", "2")
    assert source.read(0, TEST)[1].tolist() == [0]
    assert source.notes == ("the label is label, told from a, b",)


def test_label_and_features_can_be_named(tmp_path, write_tff_file):
    path = write(tmp_path, write_tff_file, [{"smiling": 1, "x": 0.5, "z": 7.0}, {"smiling": 0, "x": 1.5, "z": 8.0}])
    with pytest.raises(
        DatasetError, match=r"features smiling, x, z, of no form that is known; name the label by --label"
    ):
        open_file(path)
    source = open_file(path, label_column="smiling", feature_columns="z")
    assert source.read(0, TRAIN)[0].tolist() == [[7.0], [8.0]]
    assert source.read(0, TRAIN)[1].tolist() == [1, 0]
    with pytest.raises(DatasetError, match=r"label_column=frowning: .* has the features smiling, x, z"):
        open_file(path, label_column="frowning")
    with pytest.raises(DatasetError, match="has no feature w beside the label"):
        open_file(path, label_column="smiling", feature_columns="x,w")


def test_square_numbers_called_image_are_an_image(tmp_path, write_tff_file):
    image = np.arange(12)
    x, _ = open_file(write(tmp_path, write_tff_file, [{"image": image, "label": 1}])).read(0, TRAIN)
    np.testing.assert_array_equal(x[0], image.reshape(2, 2, 3))
    assert x.dtype == np.uint8


def test_images_in_file_formats_are_opened_and_resized(tmp_path, write_tff_file):
    grey = np.arange(20, dtype=np.uint8).reshape(4, 5)
    path = write(tmp_path, write_tff_file, [{"image": encode_png(grey), "label": 1}])
    np.testing.assert_array_equal(open_file(path).read(0, TRAIN)[0], grey[np.newaxis, ..., np.newaxis])
    assert open_file(path, image_size=2, image_colour="colour").read(0, TRAIN)[0].shape == (1, 2, 2, 3)


@pytest.mark.parametrize(
    ("example", "message"),
    [
        ({"a": 1.0, "b": [2, 3], "label": -1}, "label is -1, expected whole numbers from 0"),
        ({"a": 1.0, "b": [2, 3], "label": 0.5}, "label is not one whole number"),
        ({"a": 1.0, "b": [2], "label": 1}, r"an example has shape \(2,\), expected \(3,\) as the first"),
        ({"a": float("nan"), "b": [2, 3], "label": 1}, "a number is NaN or infinite"),
        ({"a": b"text", "b": [2, 3], "label": 1}, "a feature is no list of numbers"),
        ({"b": [2, 3], "label": 1}, "no feature 'a'"),
    ],
)
def test_an_example_of_another_form_is_one_line_that_names_its_client(tmp_path, write_tff_file, example, message):
    with pytest.raises(DatasetError, match=f"client 'client' in split train: {message}"):
        open_file(write(tmp_path, write_tff_file, [*FLAT, example]))


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ({"train": {"a": FLAT}, "extra": {"a": FLAT}}, "split 'extra', expected train, heldout and test"),
        ({"heldout": {"a": FLAT}, "test": {"a": FLAT}}, "splits heldout, test, expected one called train"),
        ({"train": {"a": [{"label": 1}]}}, "no feature of numbers beside label"),
    ],
)
def test_splits_and_features_that_cannot_be_meant_are_one_line(tmp_path, write_tff_file, splits, message):
    with pytest.raises(DatasetError, match=message):
        open_file(write_tff_file(tmp_path / "own.sqlite", splits))


def test_what_tff_itself_writes_is_read(tmp_path):
    import tensorflow as tf
    from tensorflow_federated.python.simulation.datasets import sql_client_data_utils

    def make(client):
        number = float(client[-1])
        return tf.data.Dataset.from_tensor_slices({"x": tf.constant([[number, 1.0], [2.0, 3.0]]), "label": [0, 1]})

    path = str(tmp_path / "own.sqlite")
    sql_client_data_utils.save_to_sql_client_data(["client_1", "client_2"], make, path)
    source = open_file(path)
    assert source.client_names == ("client_1", "client_2")
    assert source.read(1, TRAIN)[0].tolist() == [[2.0, 1.0], [2.0, 3.0]]
    assert source.read(1, TRAIN)[1].tolist() == [0, 1]
