"""The random arrays of smoke runs look like the data that they stand in for."""

import numpy as np
import pytest
from refusals import assert_refused

from datasets.catalog import DATASETS, Dataset, DatasetOptions
from datasets.character_text import TOKEN_NAMES
from datasets.example_format import ExampleFormat, Preprocessing
from datasets.label_format import LabelFormat
from datasets.smoke import make_random_arrays


@pytest.mark.parametrize(
    ("name", "options", "sizes", "shape", "dtype", "largest"),
    [
        ("digits", {}, (600, 120), (8, 8, 1), np.uint8, 16),
        ("mnist", {}, (600, 120), (28, 28, 1), np.uint8, 255),
        ("cifar10", {}, (600, 120), (32, 32, 3), np.uint8, 255),
        ("har", {"har_features": "statistics"}, (150, 30), (561, 1), np.float32, 1),
        ("har", {"har_features": "inertial"}, (150, 30), (128, 9), np.float32, 1),
        ("building", {}, (600, 120), (8,), np.float32, 1),
        ("occupancy", {"occupancy_features": "temperature_humidity"}, (600, 120), (2,), np.float32, 1),
        ("occupancy", {"occupancy_features": "all"}, (600, 120), (5,), np.float32, 1),
    ],
)
def test_random_arrays_look_like_the_data_set(name, options, sizes, shape, dtype, largest):
    arrays, again, other = (
        make_random_arrays(DATASETS[name], DatasetOptions(**options, seed=seed)) for seed in (1, 1, 2)
    )
    assert (arrays.train_x.shape, arrays.test_x.shape) == ((sizes[0], *shape), (sizes[1], *shape))
    assert arrays.train_x.dtype == dtype and largest * 0.9 < arrays.train_x.max() <= largest
    assert set(arrays.train_y) == set(range(len(arrays.format.class_names)))
    assert arrays.source_digest == again.source_digest != other.source_digest


@pytest.mark.parametrize(
    ("name", "options", "shape", "num_classes"),
    [
        ("emnist", {"emnist_labels": "digits"}, (28, 28, 1), 10),
        ("emnist", {"emnist_labels": "all"}, (28, 28, 1), 62),
        ("stackoverflow", {"stackoverflow_task": "next_word", "vocabulary_size": 30}, (20,), 34),
        ("stackoverflow", {"stackoverflow_task": "tags", "vocabulary_size": 30}, (30,), 500),
        ("cifar100", {"cifar100_form": "whole"}, (32, 32, 3), 100),
        ("cifar100", {"cifar100_form": "cropped"}, (24, 24, 3), 100),
        ("shakespeare", {}, (80,), len(TOKEN_NAMES)),
    ],
)
def test_federated_data_sets_have_clients_and_the_form_of_their_variant(name, options, shape, num_classes):
    arrays = make_random_arrays(DATASETS[name], DatasetOptions(**options))
    assert arrays.train_x.shape[1:] == shape and len(arrays.format.class_names) == num_classes and arrays.client_names


def test_data_with_natural_clients_have_some():
    assert make_random_arrays(DATASETS["building"]).client_names == ("building_0", "building_1", "building_2")
    assert make_random_arrays(DATASETS["digits"]).client_names is None
    people = make_random_arrays(DATASETS["har"]).client_names
    assert len(people) == 21 and people[:2] == ("subject_01", "subject_03")


def test_a_format_unknown_before_reading_is_refused():
    assert not DATASETS["npz"].is_drawn_for_smoke
    assert_refused("npz", make_random_arrays, DATASETS["npz"])


@pytest.mark.parametrize(("scale", "largest"), [(1.0, 1), (0.1, 10), (1 / 1000, 255), (0.0, 255), (-1.0, 255)])
def test_any_preprocessing_of_bytes_gives_bytes(scale, largest):
    row = Dataset("toy", loader=print, format=ExampleFormat((64, 1), "uint8", ("a", "b"), Preprocessing(scale)))
    assert make_random_arrays(row).train_x.max() == largest


@pytest.mark.parametrize(
    "labels",
    [
        LabelFormat("multi_label", (4,), 4),
        LabelFormat("regression", (), 1, (100.0,), (2.0,)),
        LabelFormat("regression", (2,), 2),
        LabelFormat("next_token", (5,), 9),
    ],
)
def test_random_labels_are_of_the_task(labels):
    is_text = labels.task == "next_token"
    options = {"labels": labels, "takes_tokens": is_text}
    example_format = ExampleFormat((5,), "int32" if is_text else "float32", (), **options)
    arrays = make_random_arrays(Dataset("toy", loader=print, format=example_format, smoke_sizes=(200, 10)))
    assert arrays.format.labels == labels and arrays.format.takes_tokens == is_text
    assert arrays.train_y.shape == (200, *labels.shape) and arrays.train_y.dtype == labels.dtype
    if labels.offset:
        assert arrays.train_y.mean() == pytest.approx(100, abs=1) and arrays.train_y.std() == pytest.approx(2, rel=0.3)
