"""Groups of clients that see the same images turned or permuted, or the same labels with other meanings."""

import numpy as np
import pytest
from refusals import assert_refused
from small_formats import format_of

from datasets.arrays import make_array_dataset
from datasets.client_source import TEST, TRAIN, ClientSource
from datasets.example_format import ExampleFormat, LabelFormat, Preprocessing
from datasets.federate import PartitionSettings, build_federated_data
from datasets.variants import make_transforms

NUM_TRAIN, NUM_TEST = 48, 16
SPLITS_OF_PARTS = ("train", "validation"), ("test",)


def make_images(clients=None, test_clients=None, shape=(3, 3, 2)):
    """Images that are all different."""
    train, test = (
        (np.arange(number * np.prod(shape)) % 251).astype(np.uint8).reshape(number, *shape)
        for number in (NUM_TRAIN, NUM_TEST)
    )
    return make_array_dataset(
        "images",
        (train, np.arange(NUM_TRAIN) % 2),
        (test, np.arange(NUM_TEST) % 2),
        format_of(train, ("even", "odd"), Preprocessing(1 / 255)),
        clients,
        test_clients=test_clients,
    )


def build(arrays, folder, kind="rotated", groups=4, partition="iid", num_clients=8, num_new_clients=0, **options):
    settings = PartitionSettings(
        partition=partition, num_clients=num_clients, variant=kind, variant_groups=groups, **options
    )
    return build_federated_data(arrays, settings, str(folder), num_new_clients)


def read_all(data, split):
    return [data.read_split(client, split) for client in data.clients]


def pair(x, y, quarters=0):
    """The different examples, each turned by so many quarters, with their labels."""
    return {(row.tobytes(), int(label)) for row, label in zip(np.rot90(x, quarters, (1, 2)), y, strict=True)}


def test_each_group_has_the_whole_train_and_test_part_in_its_own_way(tmp_path):
    arrays = make_images()
    data = build(arrays, tmp_path)
    assert data.archetypes.names == ("0 degrees", "90 degrees", "180 degrees", "270 degrees")
    assert data.archetypes.of_clients == data.archetypes.meta_of_clients == (0, 0, 1, 1, 2, 2, 3, 3)
    whole = (NUM_TRAIN, pair(arrays.train_x, arrays.train_y)), (NUM_TEST, pair(arrays.test_x, arrays.test_y))
    for group in range(4):
        own = data.clients[2 * group : 2 * group + 2]
        parts = [[data.read_split(client, split) for client in own for split in splits] for splits in SPLITS_OF_PARTS]
        pooled = [list(map(np.concatenate, zip(*part, strict=True))) for part in parts]
        assert tuple((len(x), pair(x, y, -group)) for x, y in pooled) == whole
        rows = slice(group * NUM_TEST, (group + 1) * NUM_TEST)
        np.testing.assert_array_equal(data.test_x[rows], np.rot90(arrays.test_x, group, (1, 2)))
        np.testing.assert_array_equal(data.test_y[rows], arrays.test_y)


def test_two_groups_are_upright_and_upside_down_and_need_no_square(tmp_path):
    arrays = make_images(shape=(2, 3, 1))
    data = build(arrays, tmp_path, groups=2)
    assert data.archetypes.names == ("0 degrees", "180 degrees")
    np.testing.assert_array_equal(data.test_x[NUM_TEST:], arrays.test_x[:, ::-1, ::-1])
    assert_refused("expected images as high as wide, these are 2 x 3", build, arrays, tmp_path, groups=4)


def test_permutations_move_pixels_with_their_channels(tmp_path):
    arrays = make_images()
    data = build(arrays, tmp_path, "permuted", 2)
    np.testing.assert_array_equal(data.test_x[:NUM_TEST], arrays.test_x)
    before, after = arrays.test_x.reshape(NUM_TEST, 9, 2), data.test_x[NUM_TEST:].reshape(NUM_TEST, 9, 2)
    order = [int(np.flatnonzero((before[0] == pixel).all(axis=1))[0]) for pixel in after[0]]
    assert sorted(order) == list(range(9))
    assert order != list(range(9))
    np.testing.assert_array_equal(after, before[:, order])
    assert not np.array_equal(build(arrays, tmp_path, "permuted", 2, seed=1).test_x, data.test_x)


def test_labels_of_a_group_have_meanings_of_their_own(tmp_path):
    x, y = np.arange(60, dtype=np.float32).reshape(60, 1), np.arange(60) % 5
    arrays = make_array_dataset("numbers", (x, y), (x[:20], y[:20]), format_of(x, tuple("abcde")))
    data = build(arrays, tmp_path, "relabelled", 3, num_clients=6)
    assert data.archetypes.names == ("labels 0", "labels 1", "labels 2")
    tests = data.test_y.reshape(3, 20)
    assert tests.dtype == np.int32 and tests[0].tolist() == y[:20].tolist()
    # A permutation each, and not the same.
    orders = tests[:, :5].tolist()
    assert all(sorted(order) == list(range(5)) for order in orders) and len(set(map(tuple, orders))) == 3
    for client, (own_x, own_y) in enumerate(read_all(data, "train")):
        order = orders[data.archetypes.of_clients[client]]
        assert own_y.tolist() == [order[int(value) % 5] for value in own_x[:, 0]]


def test_natural_clients_keep_their_examples(tmp_path):
    owners, test_owners = np.arange(NUM_TRAIN) % 3, np.arange(NUM_TEST) % 3
    arrays = make_images(owners, test_owners)
    data = build(arrays, tmp_path, groups=2, partition="natural", validation_fraction=0.0)
    assert data.archetypes.of_clients == (0, 1, 0)
    for client, (x, _) in enumerate(read_all(data, "train")):
        quarters = 2 * data.archetypes.of_clients[client]
        np.testing.assert_array_equal(x, np.rot90(arrays.train_x[owners == client], quarters, (1, 2)))
    np.testing.assert_array_equal(data.test_x[1], arrays.test_x[1, ::-1, ::-1])
    np.testing.assert_array_equal(data.test_x[2], arrays.test_x[2])


def test_a_source_of_natural_clients_is_turned_when_it_is_read(tmp_path):
    images = make_images()
    owners = np.arange(NUM_TRAIN) % 4

    def read(client, split):
        # Client 1 only tests.
        x, y = (images.train_x, images.train_y) if split == TRAIN else (images.test_x, images.test_y)
        chosen = owners[: len(y)] == client
        return x[chosen], y[chosen]

    counts = {TRAIN: np.array([12, 0, 12, 12]), TEST: np.array([4, 4, 4, 4])}
    example_format = ExampleFormat((3, 3, 2), "uint8", ("even", "odd"))
    source = ClientSource("images", example_format, tuple("abcd"), counts, read, "0" * 64)
    data = build(source, tmp_path, groups=4, partition="natural", validation_fraction=0.0)
    assert [client.name for client in data.clients] == ["a", "c", "d"]
    assert data.archetypes.of_clients == (0, 1, 2)
    for row, client in enumerate((0, 2, 3)):
        x, _ = data.read_split(data.clients[row], "train")
        np.testing.assert_array_equal(x, np.rot90(images.train_x[owners == client], row, (1, 2)))
    plain = build(source, tmp_path, "none", partition="natural", validation_fraction=0.0)
    assert plain.digest != data.digest


def test_without_a_variant_nothing_changes(tmp_path):
    plain, groups = (build(make_images(), tmp_path, "none", number) for number in (4, 2))
    assert plain.archetypes is None
    assert plain.digest == groups.digest != build(make_images(), tmp_path).digest


def test_new_clients_have_archetypes_too(tmp_path):
    data = build(make_images(), tmp_path, num_new_clients=3)
    assert len(data.clients) == 5 and data.archetypes.of_clients == (0, 0, 1, 1, 2, 2, 3, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_clients": 6}, "num_clients=6: expected a multiple of the 4 groups"),
        ({"partition": "hierarchical"}, "variant=rotated: expected none with partition=hierarchical"),
        ({"kind": "mirrored"}, "variant=mirrored: expected one of none, rotated, permuted"),
        ({"groups": 3}, "variant_groups=3: expected 1, 2 or 4"),
        (
            {"partition": "shards", "labels_per_client": 1, "num_clients": 4},
            r"cannot hold .* classes; raise num_clients or labels_per_client \(of each of the 4 groups of --variant\)",
        ),
        ({"kind": "permuted", "groups": 0}, "variant_groups=0: expected a number at least 1"),
    ],
)
def test_what_cannot_be_is_one_line(tmp_path, change, message):
    assert_refused(message, build, make_images(), tmp_path, **change)


@pytest.mark.parametrize(
    ("kind", "labels", "message"),
    [
        ("rotated", LabelFormat(), r"expected images, the examples have shape \(5,\)"),
        ("relabelled", LabelFormat("regression", (), 1), "variant=relabelled: expected examples of one class each"),
    ],
)
def test_other_examples_than_a_variant_takes_are_refused(kind, labels, message):
    example_format = ExampleFormat((5,), "float32", ("a", "b") if labels.is_by_class else (), labels=labels)
    assert_refused(message, make_transforms, PartitionSettings(variant=kind), example_format)
