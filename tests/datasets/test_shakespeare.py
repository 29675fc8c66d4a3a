"""Shakespeare: characters as TFF's baseline has them, the real file example by example."""

import os

import numpy as np
import pytest
from refusals import assert_refused

from datasets.catalog import DATASETS, load_arrays
from datasets.character_text import BOS, EOS, OOV, PAD, TOKEN_NAMES, cut_into_sequences
from datasets.client_source import TEST, TRAIN
from datasets.dataset import DatasetOptions

HARK = {"snippets": b"Hark!"}
needs_real_data = pytest.mark.skipif(
    not os.path.exists(os.path.join(os.environ.get("FL_DATA_DIR") or "/nowhere", "shakespeare")),
    reason="no Shakespeare in FL_DATA_DIR: no real data here",
)


@pytest.fixture(scope="session")
def tff_characters():
    """TFF's baseline: (vocabulary, special tokens, (dataset of snippets, length) -> its sequences x and y)."""
    import tensorflow_federated as tff
    from tensorflow_federated.python.simulation.baselines.shakespeare import char_prediction_preprocessing as theirs

    def preprocess(dataset, length):
        spec = tff.simulation.baselines.ClientSpec(num_epochs=1, batch_size=10**4, shuffle_buffer_size=1)
        batches = list(theirs.create_preprocess_fn(spec, length)(dataset).as_numpy_iterator())
        return tuple(np.concatenate(parts) for parts in zip(*batches, strict=True))

    return theirs.CHAR_VOCAB, theirs.get_special_tokens(), preprocess


def test_the_vocabulary_is_tffs(tff_characters):
    vocabulary, special, _ = tff_characters
    assert [
        name.replace("\\n", "\n").replace("\\r", "\r") for name in TOKEN_NAMES[1 : len(vocabulary) + 1]
    ] == vocabulary
    assert special == (PAD, OOV, BOS, EOS)
    assert [TOKEN_NAMES[token] for token in special] == ["<pad>", "<oov>", "<bos>", "<eos>"]
    assert len(TOKEN_NAMES) == len(set(TOKEN_NAMES)) == 90


def test_a_snippet_worked_by_hand():
    # "d" is the first character of the vocabulary, "h" the second; "é" is two bytes outside of it.
    for text, rows in {
        "dhé": [[BOS, 1, 2, OOV], [OOV, EOS, PAD, PAD]],
        "": [[BOS, EOS, PAD, PAD]],
        "dh": [[BOS, 1, 2, EOS]],
        "dhd": [[BOS, 1, 2, 1], [EOS, PAD, PAD, PAD]],
    }.items():
        assert cut_into_sequences(text.encode(), 3).tolist() == rows


@pytest.mark.parametrize("length", [80, 7])
def test_examples_of_tffs_synthetic_data_are_its_own(tmp_path, write_tff_file, tff_characters, length):
    import tensorflow_federated as tff

    synthetic = tff.simulation.datasets.shakespeare.get_synthetic()
    datasets = {client: synthetic.create_tf_dataset_for_client(client) for client in synthetic.client_ids}
    clients = {
        client: [{"snippets": each["snippets"]} for each in dataset.as_numpy_iterator()]
        for client, dataset in datasets.items()
    }
    write_tff_file(tmp_path / "shakespeare.sqlite", {"train": clients, "test": clients})
    source = load_arrays("shakespeare", DatasetOptions(str(tmp_path), download=False, sequence_length=length))
    assert source.client_names == tuple(sorted(synthetic.client_ids))
    assert source.format.input_shape == (length,)
    for index, client in enumerate(source.client_names):
        their_x, their_y = tff_characters[2](synthetic.create_tf_dataset_for_client(client), length)
        for split in (TRAIN, TEST):
            x, y = source.read(index, split)
            assert x.dtype == y.dtype == np.int32
            assert source.num_examples[split][index] == len(x)
            np.testing.assert_array_equal(x, their_x)
            np.testing.assert_array_equal(y, their_y)


def compare_with_tff(names, tff_characters):
    import tensorflow as tf
    import tensorflow_federated as tff

    source = load_arrays("shakespeare", DatasetOptions(os.environ["FL_DATA_DIR"], download=False))
    from datasets.shakespeare import FILES
    from datasets.tff_database import TffDatabase, decode_example

    database = TffDatabase(FILES.find(os.environ["FL_DATA_DIR"]))
    parse = lambda record: tf.io.parse_example(record, {"snippets": tf.io.FixedLenFeature((), tf.string)})
    for split in (TRAIN, TEST):
        theirs = tff.simulation.datasets.SqlClientData(database._path, split)
        own = [source.client_names[index] for index in np.flatnonzero(source.num_examples[split])]
        assert own == theirs.client_ids
        chosen = names or own
        snippets = []
        for name in chosen:
            records = theirs.create_tf_dataset_for_client(name)
            examples = [each["snippets"] for each in records.map(parse).as_numpy_iterator()]
            assert [decode_example(each)["snippets"][0] for each in database.fetch(name, split)] == examples
            snippets += examples
        # A snippet stands alone, so all can be cut at once.
        their_x, their_y = tff_characters[2](tf.data.Dataset.from_tensor_slices({"snippets": snippets}), 80)
        parts = [source.read(source.client_names.index(name), split) for name in chosen]
        np.testing.assert_array_equal(np.concatenate([x for x, _ in parts]), their_x)
        np.testing.assert_array_equal(np.concatenate([y for _, y in parts]), their_y)


@needs_real_data
def test_some_roles_of_the_real_file_are_as_tff_reads_them(tff_characters):
    compare_with_tff(
        ["HAMLET_HAMLET", "A_MIDSUMMER_NIGHT_S_DREAM_BOTTOM", "CYMBELINE_POSTHUMUS_LEONATUS"], tff_characters
    )


@pytest.mark.slow
@needs_real_data
def test_all_roles_of_the_real_file_are_as_tff_reads_them(tff_characters):
    compare_with_tff(None, tff_characters)


@pytest.mark.parametrize(
    ("clients", "metadata", "options", "message"),
    [
        ({"a": [HARK] * 2}, [("a", "train", 3)], {}, r"client 'a' has 3 examples in split train, there are 2"),
        (
            {"a": [HARK], "b": [{"other": b"When?"}]},
            None,
            {},
            r"an example of client 'b' in split train has no text snippets",
        ),
        ({"a": [HARK]}, None, {"vocabulary_size": 50}, "vocabulary_size=50: expected 0"),
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path, write_tff_file, clients, metadata, options, message):
    write_tff_file(tmp_path / "shakespeare.sqlite", {"train": clients}, metadata=metadata)
    assert_refused(message, load_arrays, "shakespeare", DatasetOptions(str(tmp_path), download=False, **options))


def test_the_doctor_finds_the_file_or_says_where_to_put_it(tmp_path, write_tff_file):
    row, options = DATASETS["shakespeare"], DatasetOptions(str(tmp_path), download=False)
    missing = row.find(str(tmp_path))
    assert not missing.found and str(tmp_path / "shakespeare") in missing.description
    assert_refused(r"not found; put shakespeare\.sqlite\.lzma", load_arrays, "shakespeare", options)
    (tmp_path / "shakespeare").mkdir()
    path = write_tff_file(tmp_path / "shakespeare" / "shakespeare.sqlite", {"train": {"a": [HARK]}})
    assert row.find(str(tmp_path)) == (True, path)
