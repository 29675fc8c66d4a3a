"""The example of a data set in one file: folders of images become clients, and odd folders one line."""

import importlib.util
import pathlib

import numpy as np
import PIL.Image
import pytest

from datasets.catalog import DatasetOptions
from datasets.errors import DatasetError
from launch.settings.run_config import build_run_config, flag_values
from launch.training.federation import load_federated_data

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
SPELLING = "image_folders:DATASET"


@pytest.fixture(scope="module")
def example():
    """The module, by its path, since `examples` is no package."""
    spec = importlib.util.spec_from_file_location("image_folders_of_the_example", EXAMPLES / "image_folders.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_images(folder, num_images, shade, size=(6, 4), mode="RGB"):
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(num_images):
        colour = shade + number if mode == "L" else (shade + number, 0, 7)
        PIL.Image.new(mode, size, colour).save(folder / f"{number:02}.png")


@pytest.fixture
def root(tmp_path):
    """Ann has cats and dogs, Bob dogs only; each image's first value says whose and which it is."""
    root = tmp_path / "photos"
    write_images(root / "ann" / "cat", 10, 0)
    write_images(root / "ann" / "dog", 5, 50)
    write_images(root / "bob" / "dog", 12, 100)
    (root / ".hidden").mkdir()
    (root / "notes.txt").write_text("not a client")
    (root / "ann" / "cat" / "notes.txt").write_text("not an image")
    return root


def load(example, root, seed=0):
    return example.load_image_folders(DatasetOptions(data_dir=str(root), seed=seed))


def test_folders_become_clients_and_classes(example, root):
    arrays = load(example, root)
    assert (arrays.client_names, arrays.class_names) == (("ann", "bob"), ("cat", "dog"))
    assert arrays.train_x.shape == (22, 4, 6, 3) and arrays.train_x.dtype == np.uint8  # 27 images less a fifth
    shades, test_shades = arrays.train_x[:, 0, 0, 0], arrays.test_x[:, 0, 0, 0]
    np.testing.assert_array_equal(arrays.train_y, shades >= 50)
    np.testing.assert_array_equal(arrays.train_clients, shades >= 100)
    assert sorted([*shades, *test_shades]) == [*range(10), *range(50, 55), *range(100, 112)]
    # A fifth of 10, of 5 and of 12: 2, 1 and 2.4, rounded.
    assert [np.count_nonzero(test_shades // 50 == group) for group in range(3)] == [2, 1, 2]
    np.testing.assert_array_equal(arrays.test_clients, test_shades >= 100)


def test_the_split_follows_from_the_seed(example, root):
    digests = [load(example, root, seed).source_digest for seed in (0, 0, 1)]
    assert digests[0] == digests[1] != digests[2]


def test_grey_images_have_one_channel(example, tmp_path):
    for name in ("cat", "dog"):
        write_images(tmp_path / "ann" / name, 5, 9, mode="L")
    assert load(example, tmp_path).train_x.shape[1:] == (4, 6, 1)


def test_photographs_are_read_too(example, root):
    pixels = np.array(PIL.Image.open(root / "bob" / "dog" / "00.png"))
    for suffix in ("jpg", "JPEG"):
        PIL.Image.fromarray(pixels).save(root / "bob" / "dog" / f"photo.{suffix}")
    assert len(load(example, root).train_x) == 22 + 2 - 1  # of 14 dogs of Bob's a fifth is 2.8, rounded


def remove_classes(root):
    for path in (root / "bob" / "dog").iterdir():
        path.unlink()
    (root / "bob" / "dog").rmdir()


def leave_too_few(root):
    for path in root.glob("*/*/*.png"):
        if path.stem > "01":
            path.unlink()


def remove_cats(root):
    for path in (root / "ann" / "cat").iterdir():
        path.unlink()


def forget_cats(root):
    remove_cats(root)
    (root / "ann" / "cat").rmdir()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda root: root.rename(root.parent / "moved"), "photos: cannot be read (No such file or directory)"),
        (remove_classes, "bob: no folder in it, expected <data_dir>/<client>/<class>/*.png"),
        (remove_cats, "cat: no image, expected *.png"),
        (forget_cats, "1 class, expected at least 2"),
        (leave_too_few, "no client has 3 images of a class"),
        (lambda root: (root / "bob" / "dog" / "05.png").write_bytes(b"no image"), "05.png: cannot be read as an image"),
        (
            lambda root: (root / "bob/dog/05.png").write_bytes((root / "bob/dog/04.png").read_bytes()[:40]),
            "05.png: cannot be read as an image",
        ),
        (lambda root: (root / "bob" / "dog" / "folder.png").mkdir(), "folder.png: cannot be read as an image"),
        (
            lambda root: write_images(root / "bob" / "dog", 1, 0, size=(5, 4)),
            "00.png: 5x4 pixels of 3 channels, expected 6x4 pixels of 3 channels as the first image has",
        ),
        (
            lambda root: write_images(root / "bob" / "dog", 1, 0, mode="L"),
            "00.png: 6x4 pixels of 1 channel, expected 6x4 pixels of 3 channels",
        ),
        (
            lambda root: PIL.Image.new("RGBA", (6, 4)).save(root / "bob" / "dog" / "00.png"),
            "00.png: its pixels are RGBA, expected grey (L) or RGB",
        ),
    ],
)
def test_odd_folders_are_one_line(example, root, spoil, message):
    spoil(root)
    with pytest.raises(DatasetError) as caught:
        load(example, root)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_no_folder_named_is_one_line(example):
    with pytest.raises(DatasetError, match="--data_dir is missing: expected the folder"):
        example.load_image_folders(DatasetOptions())


@pytest.mark.parametrize("smoke", [False, True])
def test_a_run_finds_its_clients(root, tmp_path, monkeypatch, smoke):
    """As `launch.train` does it, up to the training; a smoke run reads the images, since only they tell their size."""
    monkeypatch.syspath_prepend(EXAMPLES)
    shards = str(tmp_path / "shards")
    values = {"algo": "fedavg", "dataset": SPELLING, "data_dir": str(root), "shard_dir": shards, "smoke": smoke}
    config = build_run_config(values)
    assert config.partition == "natural" and flag_values(config)["dataset"] == SPELLING
    data = load_federated_data(config)
    assert (data.dataset, data.input_shape, data.class_names) == ("image_folders", (4, 6, 3), ("cat", "dog"))
    assert [client.name for client in data.clients] == ["ann", "bob"]
    assert [client.num_test for client in data.clients] == [3, 2]
    assert data.preprocessing.scale == 1 / 255
    x, y = data.read_split(data.clients[1], "test")
    assert (x[:, 0, 0, 0] >= 100).all() and y.tolist() == [1, 1]
    assert load_federated_data(config).clients == data.clients  # from the cache of shards
    PIL.Image.new("RGB", (6, 4), (200, 0, 0)).save(root / "bob" / "dog" / "99.png")
    assert load_federated_data(config).digest != data.digest
