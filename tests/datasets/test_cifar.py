"""CIFAR-10's containers with a few images instead of all, what is refused, and the real files where they lie."""

import io
import os
import pickle
import tarfile

import numpy as np
import pytest
from refusals import assert_refused

from datasets import cifar
from datasets.catalog import DATASETS, load_arrays, locate
from datasets.client_source import TEST, TRAIN
from datasets.dataset import DatasetOptions

BATCH_IMAGES = 20
NAMES = [*cifar.BATCHES["train"], *cifar.BATCHES["test"]]


def make_images(number, num_images=BATCH_IMAGES):
    """Images whose every value differs by batch, image, row, column and channel, modulo 256."""
    indices = np.indices((num_images, 32, 32, 3))
    return (np.tensordot([7, 5, 3, 85], indices, 1) + 11 * number).astype(np.uint8)


def make_labels(number, num_images=BATCH_IMAGES):
    return (np.arange(num_images) + number) % 10


def encode_batch(number, **changes):
    """As in the official files: keys are bytes, the values of a channel side by side, labels a list."""
    planes = np.ascontiguousarray(make_images(number).transpose(0, 3, 1, 2)).reshape(BATCH_IMAGES, -1)
    batch = {b"batch_label": b"a batch", b"labels": make_labels(number).tolist(), b"data": planes}
    return pickle.dumps({**batch, **{key.encode(): value for key, value in changes.items()}}, protocol=2)


def write_folder(folder, **changes):
    """The official folder; `changes` are contents of files, None for a missing one."""
    (folder / cifar.FOLDER_NAME).mkdir(parents=True)
    for number, name in enumerate(NAMES, 1):
        content = changes.get(name, encode_batch(number))
        if content is not None:
            (folder / cifar.FOLDER_NAME / name).write_bytes(content)


def write_archive(folder, names=NAMES):
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(folder / cifar.REMOTE_FILE.name, "w:gz") as archive:
        for name in (*reversed(names), "readme.html"):
            content = encode_batch(NAMES.index(name) + 1) if name in NAMES else b"<html>"
            member = tarfile.TarInfo(f"{cifar.FOLDER_NAME}/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def make_npz_arrays():
    x, y = ([make(number) for number in range(1, 6)] for make in (make_images, make_labels))
    labels = np.concatenate(y)[:, np.newaxis]  # a column, as Keras has it
    return {"x_train": np.concatenate(x), "y_train": labels, "x_test": make_images(6), "y_test": make_labels(6)}


def write_npz(folder, name="cifar10.npz", **changes):
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / name, **{**make_npz_arrays(), **changes})


WRITERS = {"folder": write_folder, "archive": write_archive, "npz": write_npz}


def load(folder, name="cifar10", **options):
    return load_arrays(name, DatasetOptions(str(folder), download=False, **options))


def test_every_container_gives_the_same_images_and_one_digest(tmp_path):
    loaded = []
    for container, write in WRITERS.items():
        for subfolder in (".", "cifar10"):
            write(tmp_path / container / subfolder)
            loaded.append(load(tmp_path / container))
    expected, first = make_npz_arrays(), loaded[0]
    assert {each.source_digest for each in loaded} == {first.source_digest}
    np.testing.assert_array_equal(first.train_x, expected["x_train"])
    np.testing.assert_array_equal(first.test_x, expected["x_test"])
    np.testing.assert_array_equal(first.train_y, expected["y_train"][:, 0])
    assert first.format.class_names[:3] == ("airplane", "automobile", "bird") and first.train_x.dtype == np.uint8


def test_a_batch_by_hand():
    """Row 0 of an image begins with its first 32 red values; green begins at 1,024, blue at 2,048."""
    data = np.zeros((1, 3072), np.uint8)
    data[0, [0, 33, 1024, 2048 + 31]] = [1, 2, 3, 4]
    (image,), (label,) = cifar.read_batch("batch", pickle.dumps({b"data": data, b"labels": [9]}, protocol=2))
    assert [image[0, 0, 0], image[1, 1, 0], image[0, 0, 1], image[0, 31, 2]] == [1, 2, 3, 4]
    assert image.astype(int).sum() == 10 and label == 9


def test_a_subset_says_so_and_the_whole_does_not(tmp_path, monkeypatch):
    write_folder(tmp_path)
    assert load(tmp_path).name == "cifar10 subset (100 + 20 images)"
    monkeypatch.setattr(cifar, "IMAGES_PER_CLASS", {"train": 10, "test": 2})
    assert load(tmp_path).name == "cifar10"


def test_a_subset_file_is_found_after_the_whole(tmp_path):
    write_npz(tmp_path, "cifar10_subset.npz")
    assert cifar.CIFAR10_FILES.find(str(tmp_path)).endswith("cifar10_subset.npz")
    write_npz(tmp_path)
    assert cifar.CIFAR10_FILES.find(str(tmp_path)).endswith("cifar10.npz")
    write_folder(tmp_path)
    assert locate("cifar10", str(tmp_path)).description.endswith("cifar-10-batches-py")


def check_refused(folder, message):
    assert str(folder) in assert_refused(message, load, folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "data_batch_3 cannot be read"),
        (b"", "data_batch_3: damaged, truncated or not a batch"),
        (b"<html>", "data_batch_3: damaged, truncated or not a batch"),
        (encode_batch(3)[:-30], "data_batch_3: damaged, truncated or not a batch"),
        (pickle.dumps([1, 2]), "data_batch_3: damaged, truncated or not a batch"),
        (pickle.dumps({b"data": np.zeros((1, 3072), np.uint8), b"fine_labels": [1]}), r"no b'labels' in it"),
        (
            encode_batch(3, data=np.zeros((20, 3071), np.uint8)),
            r"data is uint8 \(20, 3071\), expected uint8 \(images, 3",
        ),
        (encode_batch(3, data=np.zeros((20, 3072))), r"data is float64 \(20, 3072\)"),
        (encode_batch(3, data=[1]), "data is list"),
        (encode_batch(3, labels=[1, 2]), r"labels are int64 \(2,\), expected 20 integers"),
        (encode_batch(3, labels=["a"] * 20), "expected 20 integers"),
        (encode_batch(3, labels=[10] * 20), r"labels 0\.\.10 in y_train, expected 0\.\.9"),
    ],
)
def test_a_wrong_batch_is_named(tmp_path, content, message):
    write_folder(tmp_path, data_batch_3=content)
    check_refused(tmp_path, message)


class Call:
    """Unpickled without care, it makes a folder."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_a_batch_that_wants_to_run_something_is_refused(tmp_path):
    made = tmp_path / "made"
    write_folder(tmp_path, data_batch_3=pickle.dumps({b"data": Call(str(made)), b"labels": []}))
    check_refused(tmp_path, r"it asks for posix\.mkdir")
    assert not made.exists()


def test_a_damaged_archive_is_named(tmp_path):
    write_archive(tmp_path)
    path = tmp_path / cifar.REMOTE_FILE.name
    content = path.read_bytes()
    other_sum = content[:-8] + bytes([content[-8] ^ 1]) + content[-7:]  # what was packed had another one
    for damaged, message in ((content[: len(content) // 2], ""), (other_sum, ".*CRC check failed"), (b"<html>", "")):
        path.write_bytes(damaged)
        check_refused(tmp_path, f"damaged or truncated archive {message}")
    write_archive(tmp_path, [name for name in NAMES if name != "test_batch"])
    check_refused(tmp_path, "test_batch is missing")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"x_train": np.zeros((100, 3, 32, 32), np.uint8)},
            r"x_train is uint8 \(100, 3, 32, 32\), expected uint8 \(im",
        ),
        ({"x_test": np.zeros((20, 32, 32, 3))}, "x_test is float64"),
        ({"y_train": np.zeros(99, int)}, r"y_train is int64 \(99,\), expected an integer for each of 100 images"),
        ({"y_test": np.zeros(20)}, "y_test is float64"),
        ({"y_test": np.full(20, 10)}, r"labels 10\.\.10 in y_test, expected 0\.\.9"),
        (
            {"x_test": np.zeros((0, 32, 32, 3), np.uint8), "y_test": np.zeros(0, int)},
            "0 test images, expected 1 to 10,000",
        ),
    ],
)
def test_a_wrong_npz_file_is_named(tmp_path, changes, message):
    write_npz(tmp_path, **changes)
    check_refused(tmp_path, message)


def test_more_than_there_are_is_another_data_set(tmp_path, monkeypatch):
    write_npz(tmp_path)
    monkeypatch.setattr(cifar, "IMAGES_PER_CLASS", {"train": 9, "test": 2})
    check_refused(tmp_path, "100 train images, expected 1 to 90")
    write_npz(tmp_path, y_test=np.zeros(20, int))
    monkeypatch.setattr(cifar, "IMAGES_PER_CLASS", {"train": 10, "test": 2})
    check_refused(tmp_path, "20 test images of label 0, CIFAR-10 has 2 of each: another data set")


def test_nothing_found_names_the_folder_or_downloads(tmp_path, monkeypatch):
    assert_refused(rf"put cifar-10-python\.tar\.gz or cifar10\.npz into {tmp_path}/cifar10", load, tmp_path)
    assert not locate("cifar10", str(tmp_path)).found
    write_archive(tmp_path / "server")
    monkeypatch.setattr("datasets.download.fetch_file", lambda remote, folder: str(tmp_path / "server" / remote.name))
    assert len(cifar.load_cifar10(DatasetOptions(str(tmp_path / "data"))).train_x) == 100


@pytest.mark.skipif(not os.environ.get("FL_DATA_DIR"), reason="FL_DATA_DIR is not set: no real data here")
def test_the_real_images():
    """All of them, or a subset that says so."""
    loaded = load(os.environ["FL_DATA_DIR"])
    (count,) = set(np.bincount(loaded.train_y).tolist())
    assert 1000 < count <= 5000
    assert ("subset" in loaded.name) != ((len(loaded.train_y), len(loaded.test_y)) == (50_000, 10_000))
    assert 100 < loaded.train_x[::10].mean() < 140


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


def test_whole_and_cropped_images_are_those_of_the_file_and_of_tffs_baseline(folder, synthetic):
    import tensorflow_federated as tff
    from tensorflow_federated.python.simulation.baselines.cifar100 import image_classification_preprocessing as theirs

    spec = tff.simulation.baselines.ClientSpec(num_epochs=1, batch_size=100, shuffle_buffer_size=1)
    preprocess = theirs.create_preprocess_fn(spec, (24, 24, 3))
    whole, cropped = (load(folder, "cifar100", cifar100_form=form) for form in ("whole", "cropped"))
    assert cropped.format.input_shape == (24, 24, 3)
    for name, dataset in synthetic.items():
        x, y = whole.read(whole.client_names.index(name), TRAIN)
        rows = list(dataset.as_numpy_iterator())
        np.testing.assert_array_equal(x, [row["image"] for row in rows])
        np.testing.assert_array_equal(y, [row["label"] for row in rows])
        assert (x.dtype, y.dtype) == (np.uint8, np.int32)
        (their_x, their_y) = next(preprocess(dataset).as_numpy_iterator())
        x, y = cropped.read(cropped.client_names.index(name), TRAIN)
        np.testing.assert_allclose(x, their_x, atol=1e-5)
        np.testing.assert_array_equal(y, their_y)


def test_an_even_image_is_not_divided_by_nothing():
    assert np.all(cifar.shape_images(np.full((1, 32, 32, 3), 200, np.uint8), "cropped") == 0)


def test_test_clients_are_others_than_the_train_clients_of_their_names(folder, synthetic):
    source = load(folder, "cifar100")
    assert set(source.client_names) == set(synthetic) | {f"test {name}" for name in synthetic}
    index = source.client_names.index("test synthetic1")
    assert (source.num_examples[TRAIN][index], source.num_examples[TEST][index]) == (0, 5)
    assert len(source.read(index, TEST)[1]) == 5
    assert DATASETS["cifar100"].find_partition(DatasetOptions(folder)) == "natural"
    assert DATASETS["cifar100"].find(folder).found


def test_classes_and_their_kinds():
    names, kinds = cifar.CIFAR100_CLASS_NAMES, cifar.KIND_OF_CLASS
    assert len(set(names)) == 100
    assert list(names) == sorted(names)
    assert np.bincount(kinds).tolist() == [5] * 20
    assert list(cifar.KIND_NAMES) == sorted(cifar.KIND_NAMES)
    # As the labels of official examples have it.
    found = [(names[label], kinds[label]) for label in (0, 71, 92, 99)]
    assert found == [("apple", 4), ("sea", 10), ("tulip", 2), ("worm", 13)]


def write_batches(folder, monkeypatch, per_class=None):
    monkeypatch.setattr(cifar, "_CIFAR100_IMAGES_PER_CLASS", {"train": 2, "test": 1})
    folder.mkdir(parents=True)
    for part, number in (per_class or {"train": 2, "test": 1}).items():
        labels = [label for label in range(100) for _ in range(number)]
        data = np.random.default_rng(0).integers(0, 256, (len(labels), 3072), np.uint8)
        batch = {b"data": data, b"fine_labels": labels, b"coarse_labels": [0] * len(labels)}
        (folder / part).write_bytes(pickle.dumps(batch, protocol=2))
    return data


def test_the_official_batches_have_no_clients(tmp_path, monkeypatch):
    data = write_batches(tmp_path / "cifar100" / "cifar-100-python", monkeypatch)
    arrays = load(tmp_path, "cifar100")
    assert arrays.client_names is None and arrays.train_x.shape == (200, 32, 32, 3)
    np.testing.assert_array_equal(arrays.test_x[3, :, :, 1], data[3].reshape(3, 32, 32)[1])
    assert arrays.test_y.tolist() == list(range(100))
    assert DATASETS["cifar100"].find_partition(DatasetOptions(str(tmp_path), False)) == ""
    write_batches(tmp_path / "other" / "cifar-100-python", monkeypatch, {"train": 2, "test": 2})
    assert_refused("test: expected 1 images of each of 100 classes", load, tmp_path / "other", "cifar100")


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
    source = load(tmp_path, "cifar100")
    error = assert_refused("", source.read, 0, TRAIN)
    assert error.endswith(f"example 1 (from 0) of client '7' in split train: {message}")
