"""Clients of a few groups, each of which sees the same images in its own way: turned, or with their pixels permuted.

Source of `rotated`: Ghosh, Chung, Yin and Ramchandran, An Efficient Framework for Clustered Federated Learning (IFCA),
NeurIPS 2020, Rotated MNIST: the train part is turned by 0, 90, 180 and 270 degrees (two groups: 0 and 180), and each
turned train part is divided over the clients of one of the k groups, so that every image is there k times. The test
part likewise. `permuted` is the same with permutations of the pixels in place of turns, the first of which leaves all
where it is (Goodfellow et al., An Empirical Investigation of Catastrophic Forgetting, 2013).

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
from datasets.federated_data import Archetypes
from datasets.partition_settings import ROTATED, TURNS, VariantSettings

Examples = tuple[np.ndarray, np.ndarray]
Transform = Callable[[np.ndarray], np.ndarray]


def make_transforms(settings: VariantSettings, input_shape: tuple[int, ...], seed: int) -> list[Transform]:
    """What each group does to examples, shape (n, height, width, channels); the first group does nothing.

    Args:
      settings: of an active variant.
      input_shape: of an example.
      seed: draws the permutations, which move all channels of a pixel alike.

    Raises:
      DatasetError: the examples are no images, or not as high as wide where they are turned by a quarter.
    """
    where = f"variant={settings.kind}"
    if len(input_shape) != 3:
        raise DatasetError(f"{where}: expected images, the examples have shape {input_shape}; leave it out")
    if settings.kind == ROTATED:
        turns = TURNS[settings.groups]
        if 1 in turns and input_shape[0] != input_shape[1]:
            raise DatasetError(
                f"{where}: expected images as high as wide, these are {input_shape[0]} x {input_shape[1]}; take "
                "--variant_groups=2, which turns them upside down"
            )
        return [lambda x, quarters=quarters: np.rot90(x, quarters, axes=(1, 2)) for quarters in turns]
    num_pixels = input_shape[0] * input_shape[1]
    orders = [np.arange(num_pixels)]
    orders += [np.random.default_rng([seed, 11, group]).permutation(num_pixels) for group in range(1, settings.groups)]

    def permute(x: np.ndarray, order: np.ndarray) -> np.ndarray:
        return x.reshape(len(x), num_pixels, -1)[:, order].reshape(x.shape)

    return [lambda x, order=order: permute(x, order) for order in orders]


def describe_groups(settings: VariantSettings, groups: np.ndarray) -> Archetypes:
    """The groups as archetypes; `groups` is that of each client."""
    return Archetypes(settings.name_groups(), tuple(range(settings.groups)), tuple(int(group) for group in groups))


def assign_natural(num_clients: int, settings: VariantSettings) -> np.ndarray:
    """The group of each natural client, shape (clients,)."""
    return np.arange(num_clients) % settings.groups


def assign_dealt(num_clients: int, settings: VariantSettings) -> np.ndarray:
    """The group of each client of another partition, shape (clients,).

    Raises:
      DatasetError: the groups would not be alike.
    """
    if num_clients % settings.groups:
        raise DatasetError(
            f"num_clients={num_clients}: expected a multiple of the {settings.groups} groups of --variant"
        )
    return np.repeat(np.arange(settings.groups), num_clients // settings.groups)


def deal_tests(arrays: ArrayDataset, num_clients: int, settings: VariantSettings, seed: int) -> list[np.ndarray]:
    """Indices of each client's own test examples: each group divides the whole test part at random."""
    per_group = num_clients // settings.groups
    parts = []
    for group in range(settings.groups):
        order = np.random.default_rng([seed, 12, group]).permutation(len(arrays.test_y))
        parts += [np.sort(part) for part in np.array_split(order, per_group)]
    return parts


def transform_clients(
    clients: list[Mapping[str, Examples]], groups: np.ndarray, transforms: list[Transform]
) -> list[dict[str, Examples]]:
    """The clients' splits, each as its group sees it."""
    return [
        {split: (np.ascontiguousarray(transforms[group](x)), y) for split, (x, y) in client.items()}
        for client, group in zip(clients, groups.tolist(), strict=True)
    ]


def transform_test(arrays: ArrayDataset, transforms: list[Transform], owners: np.ndarray | None) -> Examples:
    """The global test set.

    Args:
      arrays: the data set.
      transforms: of the groups.
      owners: the group of each test example's client, where the data say whose it is; None: all examples in each way.
    """
    if owners is None:
        x = np.concatenate([transform(arrays.test_x) for transform in transforms])
        return x, np.tile(arrays.test_y, (len(transforms), *[1] * (arrays.test_y.ndim - 1)))
    x = arrays.test_x.copy()
    for group, transform in enumerate(transforms):
        x[owners == group] = transform(arrays.test_x[owners == group])
    return x, arrays.test_y


def vary_source(source: ClientSource, settings: VariantSettings, seed: int) -> ClientSource:
    """A source whose clients see their images as their groups do.

    The groups of those who have something to train on are as `assign_natural` says, in their order.
    """
    transforms = make_transforms(settings, source.format.input_shape, seed)
    trains = source.num_examples[TRAIN] > 0
    groups = np.arange(len(trains)) % settings.groups
    groups[trains] = assign_natural(int(trains.sum()), settings)

    def read(client: int, split: str) -> Examples:
        x, y = source.read(client, split)
        return np.ascontiguousarray(transforms[groups[client]](x)), y

    identity = f"{source.digest} {settings.kind} {settings.groups} {seed}"
    return dataclasses.replace(source, read=read, digest=hashlib.sha256(identity.encode()).hexdigest())
