"""EMNIST by writer: TFF's synthetic data as its baseline has them, and files that are wrong."""

import numpy as np
import pytest

from datasets.catalog import DATASETS, load_arrays
from datasets.client_source import TEST, TRAIN
from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.smoke import make_random_arrays

GREY = np.full(784, 0.5, np.float32)


@pytest.fixture(scope="module")
def synthetic():
    """TFF's synthetic writers: client -> (features of each example, x and y of TFF's baseline)."""
    import tensorflow_federated as tff
    from tensorflow_federated.python.simulation.baselines.emnist import emnist_preprocessing

    data = tff.simulation.datasets.emnist.get_synthetic()
    spec = tff.simulation.baselines.ClientSpec(num_epochs=1, batch_size=100, shuffle_buffer_size=1)
    preprocess = emnist_preprocessing.create_preprocess_fn(spec, debug_seed=0)
    clients = {}
    for client in data.client_ids:
        dataset = data.create_tf_dataset_for_client(client)
        (theirs,) = preprocess(dataset).as_numpy_iterator()
        clients[client] = list(dataset.as_numpy_iterator()), theirs
    return clients


def write(path, write_tff_file, train, test=None, prefix=""):
    path.parent.mkdir(exist_ok=True)
    return write_tff_file(path, {f"{prefix}train": train, f"{prefix}test": test or train})


def test_examples_of_tffs_synthetic_data_are_its_own(tmp_path, write_tff_file, synthetic):
    examples = {client: rows for client, (rows, _) in synthetic.items()}
    write(tmp_path / "emnist" / "emnist_all.sqlite", write_tff_file, examples, prefix="digits_only_")
    source = load_arrays("emnist", DatasetOptions(str(tmp_path), download=False))
    assert source.client_names == tuple(sorted(synthetic))
    for index, client in enumerate(source.client_names):
        for split in (TRAIN, TEST):
            x, y = source.read(index, split)
            their_x, their_y = synthetic[client][1]
            np.testing.assert_array_equal(x, their_x)
            np.testing.assert_array_equal(y, their_y)
            assert (x.dtype, y.dtype) == (np.float32, np.int32)


def test_digits_and_all_characters_are_splits_of_one_file(tmp_path, write_tff_file):
    digit, letter = {"pixels": GREY, "label": 7}, {"pixels": GREY, "label": 61}
    splits = {
        f"{kind}_{part}": {"writer": rows}
        for part in ("train", "test")
        for kind, rows in (("digits_only", [digit]), ("all", [digit, letter]))
    }
    write_tff_file(tmp_path / "emnist_all.sqlite", splits)
    for labels, expected in (("digits", [7]), ("all", [7, 61])):
        source = load_arrays("emnist", DatasetOptions(str(tmp_path), download=False, emnist_labels=labels))
        assert source.read(0, TRAIN)[1].tolist() == expected
        assert source.format.class_names[7] == "7"
    assert source.format.class_names[61] == "z"
    assert (
        len(
            {
                load_arrays("emnist", DatasetOptions(str(tmp_path), emnist_labels=each)).digest
                for each in ("digits", "all")
            }
        )
        == 2
    )


@pytest.mark.parametrize(
    ("example", "message"),
    [
        ({"pixels": GREY, "label": 10}, "label is 10, expected 0..9; for letters give --emnist_labels=all"),
        ({"pixels": GREY, "label": [1, 2]}, "label is not one whole number"),
        ({"pixels": GREY[1:], "label": 1}, "pixels are not 784 numbers"),
        ({"pixels": 2 * GREY + 1, "label": 1}, "pixels are not numbers from 0 to 1"),
        ({"pixels": GREY}, "it has no feature 'label'"),
    ],
)
def test_a_wrong_example_is_one_line_that_names_it(tmp_path, write_tff_file, example, message):
    good = {"pixels": GREY, "label": 1}
    write(tmp_path / "emnist" / "emnist_all.sqlite", write_tff_file, {"a": [good], "b": [good, example]})
    source = load_arrays("emnist", DatasetOptions(str(tmp_path), download=False))
    assert source.read(0, TRAIN)[1].tolist() == [1]
    with pytest.raises(DatasetError) as error:
        source.read(1, TRAIN)
    assert str(error.value).endswith(f"example 1 (from 0) of client 'b' in split train: {message}")


def test_counts_that_contradict_the_examples_are_refused(tmp_path, write_tff_file):
    path = tmp_path / "emnist_all.sqlite"
    write_tff_file(path, {"train": {"a": [{"pixels": GREY, "label": 1}]}}, metadata=[("a", "train", 2)])
    source = load_arrays("emnist", DatasetOptions(str(tmp_path), download=False))
    with pytest.raises(DatasetError, match="client 'a' has 2 examples in split train, there are 1"):
        source.read(0, TRAIN)


def test_another_file_in_its_place_is_refused(tmp_path, write_tff_file):
    write_tff_file(tmp_path / "emnist_all.sqlite", {"train": {"a": [{"snippets": b"Hark!"}]}})
    with pytest.raises(DatasetError, match="features snippets, expected those of emnist"):
        load_arrays("emnist", DatasetOptions(str(tmp_path), download=False))


@pytest.mark.parametrize(("labels", "number"), [("digits", 10), ("all", 62)])
def test_a_smoke_run_has_its_form(labels, number):
    arrays = make_random_arrays(DATASETS["emnist"], DatasetOptions(emnist_labels=labels))
    assert arrays.train_x.shape[1:] == (28, 28, 1)
    assert len(arrays.format.class_names) == number
    assert arrays.client_names
