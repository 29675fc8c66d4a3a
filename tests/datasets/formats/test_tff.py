"""TFF's files by --data: forms that are known by their features, and labelled examples of any other."""

import io
import json
import tarfile

import numpy as np
import PIL.Image
import pytest
from refusals import assert_refused

from datasets.catalog import load_arrays
from datasets.client_source import TEST, TRAIN, VALIDATION
from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.file_formats import find_format, get_format, open_data
from datasets.stackoverflow import read_vocabulary

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
    assert_refused(r"features smiling, x, z, of no form that is known; name the label by --label", open_file, path)
    source = open_file(path, label_column="smiling", feature_columns="z")
    assert source.read(0, TRAIN)[0].tolist() == [[7.0], [8.0]]
    assert source.read(0, TRAIN)[1].tolist() == [1, 0]
    assert_refused(
        r"label_column=frowning: .* has the features smiling, x, z", open_file, path, label_column="frowning"
    )
    assert_refused("has no feature w beside the label", open_file, path, label_column="smiling", feature_columns="x,w")


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
    assert_refused(
        f"client 'client' in split train: {message}", open_file, write(tmp_path, write_tff_file, [*FLAT, example])
    )


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ({"train": {"a": FLAT}, "extra": {"a": FLAT}}, "split 'extra', expected train, heldout and test"),
        ({"heldout": {"a": FLAT}, "test": {"a": FLAT}}, "splits heldout, test, expected one called train"),
        ({"train": {"a": [{"label": 1}]}}, "no feature of numbers beside label"),
    ],
)
def test_splits_and_features_that_cannot_be_meant_are_one_line(tmp_path, write_tff_file, splits, message):
    assert_refused(message, open_file, write_tff_file(tmp_path / "own.sqlite", splits))


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


def write_of_emnist(path, write_tff_file, train, test=None, prefix=""):
    path.parent.mkdir(exist_ok=True)
    return write_tff_file(path, {f"{prefix}train": train, f"{prefix}test": test or train})


def test_examples_of_tffs_synthetic_data_are_its_own(tmp_path, write_tff_file, synthetic):
    examples = {client: rows for client, (rows, _) in synthetic.items()}
    write_of_emnist(tmp_path / "emnist" / "emnist_all.sqlite", write_tff_file, examples, prefix="digits_only_")
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
    write_of_emnist(tmp_path / "emnist" / "emnist_all.sqlite", write_tff_file, {"a": [good], "b": [good, example]})
    source = load_arrays("emnist", DatasetOptions(str(tmp_path), download=False))
    assert source.read(0, TRAIN)[1].tolist() == [1]
    error = assert_refused("", source.read, 1, TRAIN)
    assert error.endswith(f"example 1 (from 0) of client 'b' in split train: {message}")


def test_counts_that_contradict_the_examples_are_refused(tmp_path, write_tff_file):
    path = tmp_path / "emnist_all.sqlite"
    write_tff_file(path, {"train": {"a": [{"pixels": GREY, "label": 1}]}}, metadata=[("a", "train", 2)])
    source = load_arrays("emnist", DatasetOptions(str(tmp_path), download=False))
    assert_refused("client 'a' has 2 examples in split train, there are 1", source.read, 0, TRAIN)


def test_another_file_in_its_place_is_refused(tmp_path, write_tff_file):
    write_tff_file(tmp_path / "emnist_all.sqlite", {"train": {"a": [{"snippets": b"Hark!"}]}})
    assert_refused(
        "features snippets, expected those of emnist",
        load_arrays,
        "emnist",
        DatasetOptions(str(tmp_path), download=False),
    )


def make_example(tokens=b"the spec .", title=b"spec", tags=b"vb|net"):
    return {"creation_date": b"2008", "score": 1, "tags": tags, "title": title, "tokens": tokens, "type": b"answer"}


@pytest.fixture(scope="module")
def tff_data():
    """TFF's synthetic users and vocabularies."""
    from tensorflow_federated.python.simulation.datasets import stackoverflow as theirs

    return theirs.get_synthetic(), list(theirs.get_synthetic_word_counts()), list(theirs.get_synthetic_tag_counts())


@pytest.fixture
def synthetic_folder(tmp_path, write_tff_file, tff_data):
    data, words, tags = tff_data
    clients = {
        client: list(data.create_tf_dataset_for_client(client).as_numpy_iterator()) for client in data.client_ids
    }
    first = {data.client_ids[0]: clients[data.client_ids[0]]}
    write_tff_file(
        tmp_path / "stackoverflow.sqlite", {"train": clients, "heldout": {"new": clients["synthetic_3"]}, "test": first}
    )
    (tmp_path / "stackoverflow.word_count").write_text(
        "".join(f"{word} {9 - rank}\n" for rank, word in enumerate(words))
    )
    counts = {tag: 100 - rank for rank, tag in enumerate(tags)}
    (tmp_path / "stackoverflow.tag_count").write_text(json.dumps(dict(reversed(counts.items()))))
    return tmp_path


def preprocess_as_tff(dataset, module, *vocabularies, **options):
    import tensorflow_federated as tff
    from tensorflow_federated.python.simulation.baselines import stackoverflow

    del stackoverflow
    spec = tff.simulation.baselines.ClientSpec(num_epochs=1, batch_size=100, shuffle_buffer_size=1)
    (batch,) = module.create_preprocess_fn(spec, *vocabularies, **options)(dataset).as_numpy_iterator()
    return batch


@pytest.mark.parametrize(("length", "num_words"), [(0, 0), (5, 20)])
def test_sentences_of_tffs_synthetic_data_are_its_own(synthetic_folder, tff_data, length, num_words):
    from tensorflow_federated.python.simulation.baselines.stackoverflow import word_prediction_preprocessing as theirs

    options = DatasetOptions(str(synthetic_folder), False, sequence_length=length, vocabulary_size=num_words)
    source = load_arrays("stackoverflow", options)
    words = tff_data[1][: num_words or None]
    special = theirs.get_special_tokens(len(words))
    names = source.format.class_names
    assert list(names[1:-3]) == words
    assert (names[0], names[-3], names[-2], names[-1]) == ("<pad>", "<oov>", "<bos>", "<eos>")
    assert source.format.labels.oov == special.out_of_vocab[0] == len(names) - 3
    assert special.end_of_sentence == len(names) - 1
    for index in np.flatnonzero(source.num_examples[TRAIN]):
        dataset = tff_data[0].create_tf_dataset_for_client(source.client_names[index])
        their_x, their_y = preprocess_as_tff(dataset, theirs, words, sequence_length=length or 20)
        x, y = source.read(int(index), TRAIN)
        np.testing.assert_array_equal(x, their_x)
        np.testing.assert_array_equal(y, their_y)
        assert x.dtype == y.dtype == np.int32


def test_tags_of_tffs_synthetic_data_are_its_own(synthetic_folder, tff_data):
    from tensorflow_federated.python.simulation.baselines.stackoverflow import tag_prediction_preprocessing as theirs

    source = load_arrays("stackoverflow", DatasetOptions(str(synthetic_folder), False, stackoverflow_task="tags"))
    data, words, tags = tff_data
    assert list(source.format.class_names) == tags
    for index in np.flatnonzero(source.num_examples[TRAIN]):
        dataset = data.create_tf_dataset_for_client(source.client_names[index])
        their_x, their_y = preprocess_as_tff(dataset, theirs, words, tags)
        x, y = source.read(int(index), TRAIN)
        np.testing.assert_array_equal(x, their_x)
        np.testing.assert_array_equal(y, np.minimum(their_y, 1))
        assert (x.dtype, y.dtype) == (np.float32, np.uint8)


def test_held_out_users_are_clients_of_their_own(synthetic_folder):
    source = load_arrays("stackoverflow", DatasetOptions(str(synthetic_folder), False))
    assert source.client_names == ("new", "synthetic_1", "synthetic_2", "synthetic_3")
    assert source.num_examples[TRAIN].tolist() == [0, 3, 3, 2]
    assert source.num_examples[VALIDATION].tolist() == [2, 0, 0, 0]
    assert source.num_examples[TEST].tolist() == [0, 3, 0, 0]


def test_without_vocabularies_words_and_tags_are_counted(tmp_path, write_tff_file):
    rows = [make_example(b"b a a", tags=b"x|y"), make_example(b"b a c", tags=b"x")]
    write_tff_file(tmp_path / "stackoverflow.sqlite", {"train": {"user": rows}})
    source = load_arrays("stackoverflow", DatasetOptions(str(tmp_path), False, vocabulary_size=2))
    assert source.format.class_names == ("<pad>", "a", "b", "<oov>", "<bos>", "<eos>")
    assert source.read(0, TRAIN)[1][1, :5].tolist() == [2, 1, 3, 5, 0]
    assert "words were counted in its first examples" in source.notes[0]
    source = load_arrays("stackoverflow", DatasetOptions(str(tmp_path), False, stackoverflow_task="tags"))
    assert source.format.class_names == ("x", "y")
    assert source.read(0, TRAIN)[1].tolist() == [[1, 1], [1, 0]]
    np.testing.assert_allclose(source.read(0, TRAIN)[0][0], [2 / 3, 1 / 3, 0])  # a, b, c
    assert len(source.notes) == 2


def test_another_vocabulary_is_another_identity(synthetic_folder):
    digests = {
        load_arrays("stackoverflow", DatasetOptions(str(synthetic_folder), False, **options)).digest
        for options in ({}, {"vocabulary_size": 5}, {"sequence_length": 5}, {"stackoverflow_task": "tags"})
    }
    assert len(digests) == 4


def test_vocabularies_come_in_archives(tmp_path):
    for kind, content in (("word", b"the 9\na 7\n, 3\n"), ("tag", b'{"x": 1, "y": 5}')):
        with tarfile.open(tmp_path / f"{kind}.tar.bz2", "w:bz2") as archive:
            member = tarfile.TarInfo(f"stackoverflow.{kind}_count")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    assert read_vocabulary(str(tmp_path / "word.tar.bz2"), "words", 2) == [b"the", b"a"]
    assert read_vocabulary(str(tmp_path / "tag.tar.bz2"), "tags", 2) == [b"y", b"x"]


@pytest.mark.parametrize(
    ("kind", "content"), [("words", b"the\n"), ("words", b"a b 3\n"), ("tags", b"{"), ("tags", b"[1]")]
)
def test_a_damaged_vocabulary_is_one_line(tmp_path, kind, content):
    (tmp_path / "counts").write_bytes(content)
    assert_refused(f"counts: damaged, or not TFF's file of {kind}", read_vocabulary, str(tmp_path / "counts"), kind, 5)
    with pytest.raises(DatasetError, match="damaged"):
        (tmp_path / "counts.tar.bz2").write_bytes(content)
        read_vocabulary(str(tmp_path / "counts.tar.bz2"), kind, 5)


def test_a_wrong_example_is_one_line_that_names_it_of_stackoverflow(tmp_path, write_tff_file):
    wrong = make_example()
    del wrong["tokens"]
    write_tff_file(tmp_path / "stackoverflow.sqlite", {"train": {"a": [make_example(), wrong]}})
    source = load_arrays("stackoverflow", DatasetOptions(str(tmp_path), False))
    assert_refused(
        r"example 1 \(from 0\) of client 'a' in split train: it has no feature 'tokens'", source.read, 0, TRAIN
    )
