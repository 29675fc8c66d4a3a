"""Stack Overflow: TFF's synthetic data as its baselines have them, vocabularies, and files that are wrong."""

import io
import json
import tarfile

import numpy as np
import pytest

from datasets.catalog import DATASETS, load_arrays
from datasets.client_source import TEST, TRAIN, VALIDATION
from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.smoke import make_random_arrays
from datasets.stackoverflow import read_vocabulary


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


@pytest.mark.parametrize(("length", "num_words"), [(0, 0), (5, 20), (60, 3)])
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
    with pytest.raises(DatasetError, match=f"counts: damaged, or not TFF's file of {kind}"):
        read_vocabulary(str(tmp_path / "counts"), kind, 5)
    with pytest.raises(DatasetError, match="damaged"):
        (tmp_path / "counts.tar.bz2").write_bytes(content)
        read_vocabulary(str(tmp_path / "counts.tar.bz2"), kind, 5)


def test_a_wrong_example_is_one_line_that_names_it(tmp_path, write_tff_file):
    wrong = make_example()
    del wrong["tokens"]
    write_tff_file(tmp_path / "stackoverflow.sqlite", {"train": {"a": [make_example(), wrong]}})
    source = load_arrays("stackoverflow", DatasetOptions(str(tmp_path), False))
    with pytest.raises(
        DatasetError, match=r"example 1 \(from 0\) of client 'a' in split train: it has no feature 'tokens'"
    ):
        source.read(0, TRAIN)


@pytest.mark.parametrize("task", ["next_word", "tags"])
def test_a_smoke_run_has_its_form(task):
    arrays = make_random_arrays(DATASETS["stackoverflow"], DatasetOptions(stackoverflow_task=task, vocabulary_size=30))
    assert arrays.train_x.shape[1:] == ((20,) if task == "next_word" else (30,))
    assert len(arrays.format.class_names) == (34 if task == "next_word" else 500)
