"""A data set of your own in one file: a folder of images for each client.

    <data_dir>/<client>/<class>/<image>.png (or .jpg)

Every client is a natural client. All images have one size and are all grey or all RGB. The classes are the names of the
folders inside the clients' folders; a client need not have them all, as one person may never have photographed a dog.
Of each client's images of each class a fifth, rounded, is held out for the test: these are the client's own test split,
and together the global test set. They are drawn from `--seed`, so the same folder and seed give the same split.

Run it from the project's folder:

    python -m launch.train --algo=fedavg --dataset=examples.image_folders:DATASET --data_dir=<data_dir>

From this folder, from the folder of a copy, or with either in PYTHONPATH, it is `--dataset=image_folders:DATASET`.
"""

import pathlib

import numpy as np
import PIL.Image

from datasets.arrays import ArrayDataset, hold_out_test_part, make_array_dataset
from datasets.catalog import Dataset, DatasetOptions
from datasets.errors import DatasetError
from datasets.federated_data import Preprocessing

CHANNELS = {"L": 1, "RGB": 3}  # by Pillow's name for how an image stores a pixel
SUFFIXES = (".png", ".jpg", ".jpeg")
TEST_FRACTION = 0.2


def load_image_folders(options: DatasetOptions) -> ArrayDataset:
    """The images as uint8, shape (height, width, 1 or 3); a client is called as its folder.

    Raises:
      DatasetError: no folder, nothing in it, an image that cannot be read or differs from the first in size or
        colours, fewer than two classes, a class without an image, or too few images to hold out a test part.
    """
    if not options.data_dir:
        raise DatasetError("--data_dir is missing: expected the folder that holds a folder for each client")
    root = pathlib.Path(options.data_dir).expanduser()
    clients = list_folders(root)
    class_names = sorted({folder.name for client in clients for folder in list_folders(client)})
    images, labels, owners = [], [], []
    for client in clients:
        for folder in list_folders(client):
            paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
            if not paths:
                raise DatasetError(f"{folder}: no image, expected *.png or *.jpg; delete a folder without images")
            for path in paths:
                images.append(read_image(path, images[0] if images else None))
            labels += [class_names.index(folder.name)] * len(paths)
            owners += [client.name] * len(paths)
    return split_images(np.stack(images), np.array(labels), np.array(owners), tuple(class_names), options.seed)


def list_folders(parent: pathlib.Path) -> list[pathlib.Path]:
    """The folders in a folder, by name; hidden ones are left out.

    Raises:
      DatasetError: the folder cannot be read, or there is none in it.
    """
    try:
        found = sorted(path for path in parent.iterdir() if path.is_dir() and not path.name.startswith("."))
    except OSError as error:
        raise DatasetError(
            f"{parent}: cannot be read ({error.strerror}); name the images' folder by --data_dir"
        ) from None
    if not found:
        raise DatasetError(f"{parent}: no folder in it, expected <data_dir>/<client>/<class>/*.png")
    return found


def read_image(path: pathlib.Path, first: np.ndarray | None) -> np.ndarray:
    """One image, uint8, shape (height, width, channels).

    Args:
      path: the file.
      first: the first image that was read, whose shape this one must have; None if this is the first.

    Raises:
      DatasetError: it cannot be read, is neither grey nor RGB, or has another shape.
    """
    try:
        with PIL.Image.open(path) as image:
            mode, pixels = image.mode, np.asarray(image)
    except (OSError, ValueError, SyntaxError, PIL.Image.DecompressionBombError) as error:
        raise DatasetError(f"{path}: cannot be read as an image ({error})") from None
    if mode not in CHANNELS:
        raise DatasetError(f"{path}: its pixels are {mode}, expected grey (L) or RGB; convert it")
    pixels = pixels.reshape(*pixels.shape[:2], CHANNELS[mode])
    if first is not None and pixels.shape != first.shape:
        raise DatasetError(f"{path}: {describe(pixels)}, expected {describe(first)} as the first image has")
    return pixels


def describe(pixels: np.ndarray) -> str:
    """The size of an image in words."""
    height, width, channels = pixels.shape
    return f"{width}x{height} pixels of {channels} channel{'s' if channels > 1 else ''}"


def split_images(
    x: np.ndarray, y: np.ndarray, owners: np.ndarray, class_names: tuple[str, ...], seed: int
) -> ArrayDataset:
    """Holds out the test part of each client and class.

    Args:
      x: images, shape (images, height, width, channels).
      y: labels, shape (images,).
      owners: the client of each, strings.
      class_names: one name a label.
      seed: draws the test part.

    Raises:
      DatasetError: fewer than two classes, or no client has three images of a class.
    """
    groups = np.unique(owners, return_inverse=True)[1] * len(class_names) + y
    train, test = hold_out_test_part(groups, TEST_FRACTION, seed)
    if not len(test):
        raise DatasetError("image_folders: no client has 3 images of a class, so a fifth of them is none; add images")
    return make_array_dataset(
        "image_folders",
        (x[train], y[train]),
        (x[test], y[test]),
        class_names,
        Preprocessing(1 / 255, feature_range=(0.0, 1.0)),
        clients=owners[train],
        test_clients=owners[test],
    )


DATASET = Dataset("image_folders", loader=load_image_folders, clients="folders", partition="natural")
