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
    source = open_file(path)
    assert find_format(path) == get_format("tff")
    assert (source.name, source.format.input_shape, source.format.labels.task) == ("own", shape, task)
    assert source.read(0, TRAIN)[0].shape == (1, *shape)


def test_numbers_beside_a_label_are_features(tmp_path, write_tff_file):
    source = open_file(write(tmp_path, write_tff_file, FLAT, FLAT[:1]))
    x, y = source.read(0, TRAIN)
    np.testing.assert_array_equal(x, np.array([[1, 2, 3], [-1.5, 4, 5]], np.float32))
    assert (y.tolist(), source.read(0, TEST)[1].tolist()) == ([0, 2], [0])
    assert source.format.class_names == ("0", "1", "2") and source.notes == ("the label is label, told from a, b",)


def test_label_and_features_can_be_named(tmp_path, write_tff_file):
    path = write(tmp_path, write_tff_file, [{"smiling": 1, "x": 0.5, "z": 7.0}, {"smiling": 0, "x": 1.5, "z": 8.0}])
    x, y = open_file(path, label_column="smiling", feature_columns="z").read(0, TRAIN)
    assert (x.tolist(), y.tolist()) == ([[7.0], [8.0]], [1, 0])
    dropped = open_file(path, label_column="smiling", drop_columns="x")
    assert dropped.digest == open_file(path, label_column="smiling", feature_columns="z").digest
    for options, message in (
        ({}, "features smiling, x, z, of no form that is known; name the label by --label"),
        ({"label_column": "frowning"}, "label_column=frowning: .* has the features smiling, x, z"),
        ({"label_column": "smiling", "feature_columns": "x,w"}, "has no feature w beside the label"),
        ({"label_column": "smiling", "drop_columns": "smiling"}, "has no feature smiling beside the label"),
        ({"label_column": "smiling", "drop_columns": "x", "feature_columns": "x"}, "x stands in --feature_columns and"),
    ):
        assert_refused(message, open_file, path, **options)


def test_square_numbers_called_image_are_an_image(tmp_path, write_tff_file):
    x, _ = open_file(write(tmp_path, write_tff_file, [{"image": np.arange(12), "label": 1}])).read(0, TRAIN)
    np.testing.assert_array_equal(x[0], np.arange(12, dtype=np.uint8).reshape(2, 2, 3))
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
    path = write(tmp_path, write_tff_file, [*FLAT, example])
    assert_refused(f"client 'client' in split train: {message}", open_file, path)


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


def load(folder, name="emnist", **options):
    return load_arrays(name, DatasetOptions(str(folder), download=False, **options))


def test_examples_of_tffs_synthetic_data_are_its_own(tmp_path, write_tff_file, synthetic):
    examples = {client: rows for client, (rows, _) in synthetic.items()}
    (tmp_path / "emnist").mkdir()
    splits = {"digits_only_train": examples, "digits_only_test": examples}
    write_tff_file(tmp_path / "emnist" / "emnist_all.sqlite", splits)
    source = load(tmp_path)
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
    rows = {"digits_only": [digit], "all": [digit, letter]}
    splits = {f"{kind}_{part}": {"writer": own} for part in ("train", "test") for kind, own in rows.items()}
    write_tff_file(tmp_path / "emnist_all.sqlite", splits)
    digits, both = (load(tmp_path, emnist_labels=labels) for labels in ("digits", "all"))
    assert [source.read(0, TRAIN)[1].tolist() for source in (digits, both)] == [[7], [7, 61]]
    assert (digits.format.class_names[7], both.format.class_names[61]) == ("7", "z") and digits.digest != both.digest


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
    write_tff_file(tmp_path / "emnist_all.sqlite", {"train": {"a": [good], "b": [good, example]}})
    source = load(tmp_path)
    assert source.read(0, TRAIN)[1].tolist() == [1]
    error = assert_refused("", source.read, 1, TRAIN)
    assert error.endswith(f"example 1 (from 0) of client 'b' in split train: {message}")


def test_what_contradicts_the_examples_is_refused(tmp_path, write_tff_file):
    for name, example, metadata in (
        ("other", {"snippets": b"Hark!"}, None),
        ("more", {"pixels": GREY, "label": 1}, [("a", "train", 2)]),
    ):
        (tmp_path / name).mkdir()
        write_tff_file(tmp_path / name / "emnist_all.sqlite", {"train": {"a": [example]}}, metadata=metadata)
    assert_refused("features snippets, expected those of emnist", load, tmp_path / "other")
    message = "client 'a' has 2 examples in split train, there are 1"
    assert_refused(message, load(tmp_path / "more").read, 0, TRAIN)


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
    counts = "".join(f"{word} {9 - rank}\n" for rank, word in enumerate(words))
    (tmp_path / "stackoverflow.word_count").write_text(counts)
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

    source = load(synthetic_folder, "stackoverflow", sequence_length=length, vocabulary_size=num_words)
    words = tff_data[1][: num_words or None]
    special = theirs.get_special_tokens(len(words))
    names = source.format.class_names
    assert names == ("<pad>", *words, "<oov>", "<bos>", "<eos>")
    assert (source.format.labels.oov, len(names) - 1) == (special.out_of_vocab[0], special.end_of_sentence)
    for index in np.flatnonzero(source.num_examples[TRAIN]):
        dataset = tff_data[0].create_tf_dataset_for_client(source.client_names[index])
        expected = preprocess_as_tff(dataset, theirs, words, sequence_length=length or 20)
        for ours, their in zip(source.read(int(index), TRAIN), expected, strict=True):
            np.testing.assert_array_equal(ours, their)
            assert ours.dtype == np.int32


def test_tags_of_tffs_synthetic_data_are_its_own(synthetic_folder, tff_data):
    from tensorflow_federated.python.simulation.baselines.stackoverflow import tag_prediction_preprocessing as theirs

    source = load(synthetic_folder, "stackoverflow", stackoverflow_task="tags")
    data, words, tags = tff_data
    assert list(source.format.class_names) == tags
    for index in np.flatnonzero(source.num_examples[TRAIN]):
        dataset = data.create_tf_dataset_for_client(source.client_names[index])
        their_x, their_y = preprocess_as_tff(dataset, theirs, words, tags)
        x, y = source.read(int(index), TRAIN)
        np.testing.assert_array_equal(x, their_x)
        np.testing.assert_array_equal(y, np.minimum(their_y, 1))
        assert (x.dtype, y.dtype) == (np.float32, np.uint8)


def test_held_out_users_are_clients_of_their_own_and_another_vocabulary_another_identity(synthetic_folder):
    source = load(synthetic_folder, "stackoverflow")
    assert source.client_names == ("new", "synthetic_1", "synthetic_2", "synthetic_3")
    counts = {split: number.tolist() for split, number in source.num_examples.items()}
    assert counts == {TRAIN: [0, 3, 3, 2], VALIDATION: [2, 0, 0, 0], TEST: [0, 3, 0, 0]}
    changes = ({"vocabulary_size": 5}, {"sequence_length": 5}, {"stackoverflow_task": "tags"})
    assert len({source.digest, *(load(synthetic_folder, "stackoverflow", **change).digest for change in changes)}) == 4


def test_without_vocabularies_words_and_tags_are_counted(tmp_path, write_tff_file):
    rows = [make_example(b"b a a", tags=b"x|y"), make_example(b"b a c", tags=b"x")]
    write_tff_file(tmp_path / "stackoverflow.sqlite", {"train": {"user": rows}})
    source = load(tmp_path, "stackoverflow", vocabulary_size=2)
    assert source.format.class_names == ("<pad>", "a", "b", "<oov>", "<bos>", "<eos>")
    assert source.read(0, TRAIN)[1][1, :5].tolist() == [2, 1, 3, 5, 0]
    assert "words were counted in its first examples" in source.notes[0]
    source = load(tmp_path, "stackoverflow", stackoverflow_task="tags")
    x, y = source.read(0, TRAIN)
    assert (source.format.class_names, y.tolist(), len(source.notes)) == (("x", "y"), [[1, 1], [1, 0]], 2)
    np.testing.assert_allclose(x[0], [2 / 3, 1 / 3, 0])  # a, b, c


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
    for name in ("counts", "counts.tar.bz2"):
        (tmp_path / name).write_bytes(content)
        message = f"{name}: damaged, or not TFF's file of {kind}"
        assert_refused(message, read_vocabulary, str(tmp_path / name), kind, 5)


def test_a_wrong_example_is_one_line_that_names_it_of_stackoverflow(tmp_path, write_tff_file):
    wrong = make_example()
    del wrong["tokens"]
    write_tff_file(tmp_path / "stackoverflow.sqlite", {"train": {"a": [make_example(), wrong]}})
    message = r"example 1 \(from 0\) of client 'a' in split train: it has no feature 'tokens'"
    assert_refused(message, load(tmp_path, "stackoverflow").read, 0, TRAIN)
