"""CIFAR-100: TFF's synthetic data as its baseline has them, the official batches, and the kinds of its classes."""

import pickle

import numpy as np
import pytest

from datasets import cifar100
from datasets.catalog import DATASETS, load_arrays
from datasets.client_source import TEST, TRAIN
from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.smoke import make_random_arrays

IMAGE = np.arange(3072) % 256


@pytest.fixture(scope="module")
def synthetic():
    import tensorflow_federated as tff

    data = tff.simulation.datasets.cifar100.get_synthetic()
    return {client: data.create_tf_dataset_for_client(client) for client in data.client_ids}


@pytest.fixture
def folder(tmp_path, write_tff_file, synthetic):
    clients = {client: list(dataset.as_numpy_iterator()) for client, dataset in synthetic.items()}
    write_tff_file(tmp_path / "cifar100.sqlite", {"train": clients, "test": clients})
    return str(tmp_path)


def test_whole_images_are_those_of_the_file(folder, synthetic):
    source = load_arrays("cifar100", DatasetOptions(folder, False))
    for name, dataset in synthetic.items():
        x, y = source.read(source.client_names.index(name), TRAIN)
        rows = list(dataset.as_numpy_iterator())
        np.testing.assert_array_equal(x, [row["image"] for row in rows])
        np.testing.assert_array_equal(y, [row["label"] for row in rows])
        assert (x.dtype, y.dtype) == (np.uint8, np.int32)


def test_cropped_images_are_those_of_tffs_baseline(folder, synthetic):
    import tensorflow_federated as tff
    from tensorflow_federated.python.simulation.baselines.cifar100 import image_classification_preprocessing as theirs

    spec = tff.simulation.baselines.ClientSpec(num_epochs=1, batch_size=100, shuffle_buffer_size=1)
    preprocess = theirs.create_preprocess_fn(spec, (24, 24, 3))
    source = load_arrays("cifar100", DatasetOptions(folder, False, cifar100_form="cropped"))
    for name, dataset in synthetic.items():
        (their_x, their_y) = next(preprocess(dataset).as_numpy_iterator())
        x, y = source.read(source.client_names.index(name), TRAIN)
        assert x.shape[1:] == source.format.input_shape == (24, 24, 3)
        np.testing.assert_allclose(x, their_x, atol=1e-5)
        np.testing.assert_array_equal(y, their_y)


def test_an_even_image_is_not_divided_by_nothing():
    assert np.all(cifar100.shape_images(np.full((1, 32, 32, 3), 200, np.uint8), "cropped") == 0)


def test_test_clients_are_others_than_the_train_clients_of_their_names(folder, synthetic):
    source = load_arrays("cifar100", DatasetOptions(folder, False))
    assert set(source.client_names) == set(synthetic) | {f"test {name}" for name in synthetic}
    index = source.client_names.index("test synthetic1")
    assert (source.num_examples[TRAIN][index], source.num_examples[TEST][index]) == (0, 5)
    assert len(source.read(index, TEST)[1]) == 5


def test_classes_and_their_kinds():
    names, kinds = cifar100.CLASS_NAMES, cifar100.KIND_OF_CLASS
    assert len(set(names)) == 100
    assert list(names) == sorted(names)
    assert np.bincount(kinds).tolist() == [5] * 20
    assert list(cifar100.KIND_NAMES) == sorted(cifar100.KIND_NAMES)
    # As the labels of official examples have it: apple, sea, tulip, worm.
    assert [(names[label], kinds[label]) for label in (0, 71, 92, 99)] == [
        ("apple", 4),
        ("sea", 10),
        ("tulip", 2),
        ("worm", 13),
    ]


def write_batches(folder, monkeypatch, per_class=None):
    monkeypatch.setattr(cifar100, "_IMAGES_PER_CLASS", {"train": 2, "test": 1})
    folder.mkdir(parents=True)
    for part, number in (per_class or {"train": 2, "test": 1}).items():
        labels = [label for label in range(100) for _ in range(number)]
        data = np.random.default_rng(0).integers(0, 256, (len(labels), 3072), np.uint8)
        batch = {b"data": data, b"fine_labels": labels, b"coarse_labels": [0] * len(labels)}
        (folder / part).write_bytes(pickle.dumps(batch, protocol=2))
    return data


def test_the_official_batches_have_no_clients(tmp_path, monkeypatch):
    data = write_batches(tmp_path / "cifar100" / "cifar-100-python", monkeypatch)
    options = DatasetOptions(str(tmp_path), False)
    arrays = load_arrays("cifar100", options)
    assert arrays.client_names is None
    assert arrays.train_x.shape == (200, 32, 32, 3)
    np.testing.assert_array_equal(arrays.test_x[3, :, :, 1], data[3].reshape(3, 32, 32)[1])
    assert arrays.test_y.tolist() == list(range(100))
    assert DATASETS["cifar100"].find_partition(options) == ""


def test_tffs_file_has_natural_clients(folder):
    assert DATASETS["cifar100"].find_partition(DatasetOptions(folder)) == "natural"
    assert DATASETS["cifar100"].find(folder).found


def test_batches_of_another_number_of_images_are_refused(tmp_path, monkeypatch):
    write_batches(tmp_path / "cifar-100-python", monkeypatch, {"train": 2, "test": 2})
    with pytest.raises(DatasetError, match="test: expected 1 images of each of 100 classes"):
        load_arrays("cifar100", DatasetOptions(str(tmp_path), False))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": 100}, "label is 100, expected 0..99"),
        ({"image": IMAGE[1:]}, "image is not 3072 whole numbers"),
        ({"image": IMAGE + 1}, "image holds numbers that are not 0..255"),
    ],
)
def test_a_wrong_example_is_one_line_that_names_it(tmp_path, write_tff_file, change, message):
    good = {"image": IMAGE, "label": 1, "coarse_label": 1}
    write_tff_file(tmp_path / "cifar100.sqlite", {"train": {"7": [good, {**good, **change}]}})
    source = load_arrays("cifar100", DatasetOptions(str(tmp_path), False))
    with pytest.raises(DatasetError) as error:
        source.read(0, TRAIN)
    assert str(error.value).endswith(f"example 1 (from 0) of client '7' in split train: {message}")


@pytest.mark.parametrize(("form", "side"), [("whole", 32), ("cropped", 24)])
def test_a_smoke_run_has_its_form(form, side):
    arrays = make_random_arrays(DATASETS["cifar100"], DatasetOptions(cifar100_form=form))
    assert arrays.train_x.shape[1:] == (side, side, 3)
