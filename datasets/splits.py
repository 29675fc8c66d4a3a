"""Which of a client's examples are for training, for validation and for its own test."""

import numpy as np

from datasets.partition_settings import PartitionSettings

# A client with fewer examples keeps them all for training: a split of one example says nothing.
MINIMUM_EXAMPLES_TO_SPLIT = 12


def split_client(
    indices: np.ndarray, client: int, settings: PartitionSettings, is_ordered: bool = False
) -> dict[str, np.ndarray]:
    """Divides one client's examples: split -> ascending indices; counts are rounded, halves up.

    The division is random, unless the examples are ordered: then the test split comes last and validation before it.
    With `most_train_examples` the rest of the train split is left out.
    """
    num_validation = num_test = 0
    if len(indices) >= MINIMUM_EXAMPLES_TO_SPLIT:
        num_validation = int(len(indices) * settings.validation_fraction + 0.5)
        num_test = int(len(indices) * settings.test_fraction + 0.5)
    most = settings.most_train_examples or len(indices)
    if is_ordered:
        train, validation, test = np.split(indices, [len(indices) - num_validation - num_test, len(indices) - num_test])
        return {"train": train[:most], "validation": validation, "test": test}
    shuffled = np.random.default_rng([settings.seed, 2, client]).permutation(indices)
    validation, test, train = np.split(shuffled, [num_validation, num_validation + num_test])
    return {"train": np.sort(train[:most]), "validation": np.sort(validation), "test": np.sort(test)}


def count_drawn(num_examples: np.ndarray, settings: PartitionSettings) -> dict[str, np.ndarray]:
    """How many examples `split_client` gives each split, of clients with so many: int64, shape (clients,)."""
    is_split = num_examples >= MINIMUM_EXAMPLES_TO_SPLIT
    validation, test = (
        np.where(is_split, (num_examples * fraction + 0.5).astype(np.int64), 0)
        for fraction in (settings.validation_fraction, settings.test_fraction)
    )
    train = num_examples - validation - test
    if settings.most_train_examples:
        train = np.minimum(train, settings.most_train_examples)
    return {"train": train, "validation": validation, "test": test}
