"""Files as the field writes them, for the tests of their readers."""

import sqlite3

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path_factory):
    """Nothing that a test writes into the cache outlives it, or was there before."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def _encode_record(features):
    """A serialized tf.train.Example, by TensorFlow: bytes, floats or integers by name, one value or several."""
    import tensorflow as tf

    example = tf.train.Example()
    for name, value in features.items():
        feature = example.features.feature[name]
        values = np.asarray(value).reshape(-1)
        if isinstance(value, bytes):
            feature.bytes_list.value.append(value)
        elif values.dtype.kind == "f":
            feature.float_list.value.extend(values.tolist())
        else:
            feature.int64_list.value.extend(values.tolist())
    return example.SerializeToString()


@pytest.fixture(scope="session")
def encode_record():
    """A function (features) -> a serialized tf.train.Example, by TensorFlow."""
    return _encode_record


@pytest.fixture(scope="session")
def write_tff_file():
    """A function (path, {split: {client: [features]}}, has_index) that writes a file as TFF's are."""

    def write(path, splits, has_index=True, metadata=None):
        connection = sqlite3.connect(path)
        with connection:
            connection.execute("CREATE TABLE examples (split_name TEXT, client_id TEXT, serialized_example_proto BLOB)")
            connection.execute("CREATE TABLE client_metadata (client_id TEXT, split_name TEXT, num_examples INTEGER)")
            for split, clients in splits.items():
                for client, examples in clients.items():
                    records = [(split, client, _encode_record(each)) for each in examples]
                    connection.executemany("INSERT INTO examples VALUES (?, ?, ?)", records)
                    connection.execute("INSERT INTO client_metadata VALUES (?, ?, ?)", (client, split, len(examples)))
            if metadata is not None:
                connection.execute("DELETE FROM client_metadata")
                connection.executemany("INSERT INTO client_metadata VALUES (?, ?, ?)", metadata)
            if has_index:
                connection.execute("CREATE INDEX by_client ON examples (client_id, split_name)")
        connection.close()
        return str(path)

    return write
