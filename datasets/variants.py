"""Clients of a few groups, each of which sees the same examples in its own way: images turned, or with their pixels
permuted; or labels with other meanings.

Source of `rotated`: Ghosh, Chung, Yin and Ramchandran, An Efficient Framework for Clustered Federated Learning (IFCA),
NeurIPS 2020, Rotated MNIST: the train part is turned by 0, 90, 180 and 270 degrees (two groups: 0 and 180), and each
turned train part is divided over the clients of one of the k groups, so that every image is there k times. The test
part likewise. `permuted` is the same with permutations of the pixels in place of turns, the first of which leaves all
where it is (Goodfellow et al., An Empirical Investigation of Catastrophic Forgetting, 2013). `relabelled` has
permutations of the labels, with which no one model can serve two groups, as Sattler, Mueller and Samek have it
(Clustered Federated Learning, 2020).

Clients of one group stand side by side. A client's own test split is its share of its group's test part, and the global
test set is the test part in each of the k ways. Natural clients keep their own examples instead: client i belongs to
group i modulo k, and its examples, each of them once, are seen in the way of that group.
"""

import dataclasses
import hashlib
from collections.abc import Callable, Mapping

import numpy as np

from datasets.arrays import ArrayDataset
from datasets.client_source import TRAIN, ClientSource
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat
from datasets.federated_data import Archetypes
from datasets.partition_settings import NATURAL, RELABELLED, ROTATED, TURNS, PartitionSettings

Examples = tuple[np.ndarray, np.ndarray]
Transform = Callable[[np.ndarray, np.ndarray], Examples]


def make_transforms(settings: PartitionSettings, example_format: ExampleFormat) -> list[Transform]:
    """What each group does to examples (x, y); the first group does nothing.

    Args:
      settings: with a variant; the seed draws the permutations; those of pixels move all channels of a pixel alike.
      example_format: of the examples.

    Raises:
      DatasetError: the examples are no images, or not as high as wide where they are turned by a quarter; or they have
        no classes to permute.
    """
    where, input_shape = f"variant={settings.variant}", example_format.input_shape
    if settings.variant == RELABELLED:
        if not example_format.labels.is_by_class:
            raise DatasetError(f"{where}: expected examples of one class each; leave it out")
        orders = _draw_orders(example_format.num_classes, settings)
        return [lambda x, y, order=order: (x, order[y].astype(y.dtype)) for order in orders]
    if len(input_shape) != 3:
        raise DatasetError(f"{where}: expected images, the examples have shape {input_shape}; leave it out")
    if settings.variant == ROTATED:
        turns = TURNS[settings.variant_groups]
        if 1 in turns and input_shape[0] != input_shape[1]:
            raise DatasetError(
                f"{where}: expected images as high as wide, these are {input_shape[0]} x {input_shape[1]}; take "
                "--variant_groups=2, which turns them upside down"
            )
        return [lambda x, y, quarters=quarters: (np.rot90(x, quarters, axes=(1, 2)), y) for quarters in turns]
    num_pixels = input_shape[0] * input_shape[1]

    def permute(x: np.ndarray, order: np.ndarray) -> np.ndarray:
        return x.reshape(len(x), num_pixels, -1)[:, order].reshape(x.shape)

    orders = _draw_orders(num_pixels, settings)
    return [lambda x, y, order=order: (permute(x, order), y) for order in orders]


def _draw_orders(length: int, settings: PartitionSettings) -> list[np.ndarray]:
    """A permutation of so many numbers for each group; the first leaves all where it is."""
    groups = range(1, settings.variant_groups)
    drawn = [np.random.default_rng([settings.seed, 11, group]).permutation(length) for group in groups]
    return [np.arange(length), *drawn]


def describe_groups(settings: PartitionSettings, num_clients: int) -> Archetypes:
    """The groups as archetypes of so many clients, named such as "90 degrees"."""
    kind = {RELABELLED: "labels"}.get(settings.variant, "permutation")
    names = [f"{kind} {group}" for group in range(settings.variant_groups)]
    if settings.variant == ROTATED:
        names = [f"{90 * quarters} degrees" for quarters in TURNS[settings.variant_groups]]
    return Archetypes(tuple(names), tuple(range(len(names))), tuple(assign_groups(num_clients, settings).tolist()))


def assign_groups(num_clients: int, settings: PartitionSettings) -> np.ndarray:
    """The group of each client, shape (clients,): in turns of natural clients, of others side by side.

    Raises:
      DatasetError: the groups of others would not be alike.
    """
    if settings.partition == NATURAL:
        return np.arange(num_clients) % settings.variant_groups
    if num_clients % settings.variant_groups:
        raise DatasetError(
            f"num_clients={num_clients}: expected a multiple of the {settings.variant_groups} groups of --variant"
        )
    return np.repeat(np.arange(settings.variant_groups), num_clients // settings.variant_groups)


def deal_tests(arrays: ArrayDataset, settings: PartitionSettings) -> list[np.ndarray]:
    """Indices of each client's own test examples: each group divides the whole test part at random."""
    parts = []
    for group in range(settings.variant_groups):
        order = np.random.default_rng([settings.seed, 12, group]).permutation(len(arrays.test_y))
        parts += [np.sort(part) for part in np.array_split(order, settings.num_clients // settings.variant_groups)]
    return parts


def transform_client(
    client: Mapping[str, tuple[np.ndarray, ...]], transform: Transform
) -> dict[str, tuple[np.ndarray, ...]]:
    """A client's splits, (x, y) and the weights if there are any, as its group sees them."""
    seen = {split: (*transform(x, y), *weights) for split, (x, y, *weights) in client.items()}
    return {split: (np.ascontiguousarray(x), *rest) for split, (x, *rest) in seen.items()}


def transform_test(arrays: ArrayDataset, transforms: list[Transform], owners: np.ndarray | None) -> Examples:
    """The global test set.

    Args:
      arrays: the data set.
      transforms: of the groups.
      owners: the group of each test example's client, where the data say whose it is; None: all examples in each way.
    """
    x, y = arrays.test_x, arrays.test_y
    if owners is None:
        seen = [transform(x, y) for transform in transforms]
        return np.concatenate([each for each, _ in seen]), np.concatenate([each for _, each in seen])
    # The arrays are those of the data set, which other variants share.
    x, y = x.copy(), y.copy()
    for group, transform in enumerate(transforms):
        own = owners == group
        x[own], y[own] = transform(x[own], y[own])
    return x, y


def vary_source(source: ClientSource, settings: PartitionSettings) -> ClientSource:
    """A source whose clients see their examples as their groups do.

    The groups of those who have something to train on are as `assign_groups` says, in their order.
    """
    transforms = make_transforms(settings, source.format)
    trains = source.num_examples[TRAIN] > 0
    groups = assign_groups(len(trains), settings)
    groups[trains] = assign_groups(int(trains.sum()), settings)

    def read(client: int, split: str) -> Examples:
        x, y = transforms[groups[client]](*source.read(client, split))
        return np.ascontiguousarray(x), y

    identity = f"{source.digest} {settings.variant} {settings.variant_groups} {settings.seed}"
    return dataclasses.replace(source, read=read, digest=hashlib.sha256(identity.encode()).hexdigest())
