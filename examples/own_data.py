"""Two data sets of one's own, for `--dataset=examples.own_data:WAVES` and `--dataset=examples.own_data:PHONES`.

The first has all examples in arrays. The second reads one client at a time, for large data or many clients.
"""

import numpy as np

from datasets.arrays import ArrayDataset, hold_out_test_part, make_array_dataset
from datasets.catalog import Dataset
from datasets.client_source import ClientSource
from datasets.dataset import DatasetOptions
from datasets.example_format import ExampleFormat

NUM_PHONES = 100_000


def load_waves(options: DatasetOptions) -> ArrayDataset:
    """Sine waves of three frequencies, recorded by six clients: 600 examples of shape (64, 1), float32."""
    rng = np.random.default_rng(options.seed)
    y = rng.integers(0, 3, 600)
    steps = np.linspace(0, 2 * np.pi, 64)
    x = np.sin((y[:, np.newaxis] + 1) * steps) + rng.normal(0, 0.3, (600, 64))
    x = x[..., np.newaxis].astype(np.float32)
    clients = rng.integers(0, 6, 600)
    train, test = hold_out_test_part(y, 0.2, options.seed, clients)  # so that no client loses all it has
    example_format = ExampleFormat((64, 1), "float32", ("slow", "middle", "fast"))
    return make_array_dataset("waves", (x[train], y[train]), (x[test], y[test]), example_format, clients[train])


def load_phones(options: DatasetOptions) -> ClientSource:
    """A hundred thousand clients of a few examples of shape (8,), float32, drawn when they are asked for."""
    counts = {"train": np.random.default_rng(0).integers(3, 10, NUM_PHONES), "test": np.ones(NUM_PHONES, np.int64)}

    def read(client, split):
        rng = np.random.default_rng([client, split == "test"])
        y = rng.integers(0, 2, counts[split][client])
        x = rng.normal(y[:, np.newaxis], 1, (len(y), 8))
        return x.astype(np.float32), y.astype(np.int32)

    names = tuple(f"phone {number}" for number in range(NUM_PHONES))
    example_format = ExampleFormat((8,), "float32", ("calm", "moving"))
    # The digest names the data in the cache: one of files is made by `files.digests`.
    return ClientSource("many_phones", example_format, names, counts, read, digest="1" * 64)


WAVES = Dataset("waves", loader=load_waves, clients="recorders", partition="natural")
PHONES = Dataset("many_phones", loader=load_phones, clients="phones", partition="natural")
