"""Random arrays that stand in for a data set in a smoke run: nothing is read, and everything has its shape."""

import numpy as np

from datasets.arrays import ArrayDataset, make_array_dataset
from datasets.dataset import Dataset, DatasetOptions, resolve_reference
from datasets.errors import DatasetError
from datasets.example_format import MULTI_LABEL, REGRESSION, ExampleFormat

# Where the labels do not say how many tokens there are: any vocabulary has these.
NUM_TOKENS = 2
NUM_CLIENTS = 3  # of a data set whose natural clients are not known before it is read


def make_random_arrays(row: Dataset, options: DatasetOptions | None = None) -> ArrayDataset:
    """Noise of the shape, dtype, classes and natural clients of a data set: `row.smoke_sizes` examples.

    Args:
      row: the data set.
      options: the variant of it, and the seed of the noise; None is the defaults.

    Raises:
      DatasetError: the format of this data set (npz) is not known before the file is read.
    """
    if row.format is None:
        raise DatasetError(f"no random arrays for data set {row.name}: its format is not known before it is read")
    options = options or DatasetOptions()
    example_format = row.find_format(options)
    rng = np.random.default_rng(options.seed)
    train, test = (_make_random_part(example_format, num_examples, rng) for num_examples in row.smoke_sizes)
    clients = None
    if row.clients:
        names = resolve_reference(row.client_names) or [f"{row.name}_{client}" for client in range(NUM_CLIENTS)]
        clients = np.resize(np.array(names), len(train[1]))
    return make_array_dataset(
        row.name,
        train,
        test,
        example_format,
        clients,
    )


def _make_random_part(
    example_format: ExampleFormat, num_examples: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    shape = (num_examples, *example_format.input_shape)
    labels, shape_of_labels = example_format.labels, (num_examples, *example_format.labels.shape)
    if labels.is_by_class:
        # Each class has examples, however few there are.
        y = rng.permutation(np.arange(num_examples) % example_format.num_classes)
    elif labels.task == REGRESSION:
        y = rng.normal(size=shape_of_labels) * np.array(labels.scale or 1.0) + np.array(labels.offset or 0.0)
    else:
        y = rng.integers(0, 2 if labels.task == MULTI_LABEL else labels.num_outputs, shape_of_labels)
    if example_format.takes_tokens:
        return rng.integers(0, labels.num_outputs or NUM_TOKENS, shape, example_format.input_dtype), y
    if example_format.input_dtype == "float32":
        return rng.uniform(-1, 1, shape).astype(np.float32), y
    # The stored values that preprocessing maps to 0..1: 0..16 of digits, 0..255 of photographs.
    scale = example_format.preprocessing.scale
    largest = 255 if scale <= 1 / 255 else round(1 / scale)
    return rng.integers(0, largest + 1, shape, np.uint8), y
