"""`--data` on a folder of images: one folder a class, and above these, where images are of clients, one a client.

  cat/1.png, dog/2.jpg                      no clients
  alice/cat/1.png, bob/dog/2.jpg            each folder a client
  train/alice/cat/1.png, test/alice/...     with a test part; likewise train/cat/1.png

Each is decoded once, into the store.
"""

import dataclasses
import os
from typing import NamedTuple

import numpy as np

from datasets.client_source import TRAIN, ClientSource
from datasets.dataset import DatasetOptions, refuse_options
from datasets.errors import DatasetError
from datasets.example_format import BINARY, CLASSIFICATION, ExampleFormat, LabelFormat
from datasets.file_formats import FileFormat, name_data
from datasets.image_pixels import COLOUR, GREY, ImageLayout, read_image
from datasets.layouts import IMAGE
from datasets.names import sort_key
from datasets.options import TableOptions, TextOptions
from datasets.stored_source import Description, Reading, StoreWriter, open_reading, scale_source, show_progress
from datasets.tables.table import SPLIT_NAMES

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm")
# To recognise a format must be quick, also in a folder of millions of entries.
_MOST_LOOKED_AT = 2000


class ImageTree(NamedTuple):
    """The images of a folder, by client, part and class.

    Attributes:
      paths: of each.
      clients: the name of its client; "" where the folders name no clients.
      splits: "train", "validation" or "test".
      labels: index of its class, int32 (images,).
      class_names: in their order.
      has_clients: whether the folders name clients.
    """

    paths: list[str]
    clients: list[str]
    splits: list[str]
    labels: np.ndarray
    class_names: tuple[str, ...]
    has_clients: bool


def is_image_tree(path: str) -> bool:
    """Whether it is a folder with images in folders of it."""
    if not os.path.isdir(path):
        return False
    count = 0
    for _, subfolders, names in os.walk(path):
        subfolders[:] = [name for name in subfolders if not name.startswith(".")]
        if any(_is_image_name(name) for name in names):
            return True
        count += len(names) + len(subfolders)
        if count > _MOST_LOOKED_AT:
            return False
    return False


def open_image_tree(path: str, options: DatasetOptions) -> ClientSource:
    """The clients of a folder of images.

    Raises:
      DatasetError: folders of several depths, fewer than two classes, or images that are damaged or not alike.
    """
    refuse_options(path, "a folder of images", options, TableOptions, TextOptions, "layout")
    if options.task not in ("", None, CLASSIFICATION, BINARY):
        raise DatasetError(f"{path}: task={options.task}: the folders of images are classes, expected {CLASSIFICATION}")
    tree = find_images(path)
    labels = LabelFormat(options.task or CLASSIFICATION)
    labels.check_names(path, tree.class_names)
    relative = [os.path.relpath(each, path) for each in tree.paths]
    how = ["images", relative, options.image_size, options.image_colour]
    source = open_reading(Reading(name_data(path), path, tree.paths, how, lambda writer: _write(tree, options, writer)))
    source = scale_source(source, options.scale, IMAGE)
    return dataclasses.replace(source, format=dataclasses.replace(source.format, labels=labels))


def _write(tree: ImageTree, options: DatasetOptions, writer: StoreWriter) -> Description:
    """Decodes an image after the other; the first says how all are."""
    layout = ImageLayout(options.image_size, options.image_colour)
    for index, path in enumerate(show_progress(tree.paths, "images")):
        pixels = read_image(path, path, layout)
        if not index:
            layout = dataclasses.replace(layout, shape=pixels.shape, first=path)
        labels = tree.labels[index : index + 1]
        writer.append(pixels[np.newaxis], labels, tree.clients[index], tree.splits[index])
    colour = GREY if layout.shape[2] == 1 else COLOUR
    resized = f", resized to {options.image_size} x {options.image_size}" if options.image_size else ""
    clients = f"a folder a client, {len(set(tree.clients)):,}" if tree.has_clients else "no clients"
    return Description(
        ExampleFormat(layout.shape, "uint8", tree.class_names),
        tree.has_clients,
        reading=f", in {colour}{resized}; a folder a class, {clients}",
    )


def choose_image_partition(path: str, options: DatasetOptions) -> str:
    """ "natural" where folders name clients, else ""."""
    return "natural" if find_images(path).has_clients else ""


def _is_image_name(name: str) -> bool:
    return name.lower().endswith(SUFFIXES) and not name.startswith(".")


def find_images(path: str) -> ImageTree:
    """All images of a folder, and what their folders say.

    Raises:
      DatasetError: no image, or not all as deep in folders.
    """
    found = []  # the parts of each image's path below the folder
    for folder, subfolders, names in os.walk(path):
        # The disk has no fixed order, which the digest needs.
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        relative = os.path.relpath(folder, path)
        parts = () if relative == "." else tuple(relative.split(os.sep))
        # A pipe of such a name would be waited at without end.
        images = sorted(each for each in names if _is_image_name(each) and os.path.isfile(os.path.join(folder, each)))
        # A class whose images were forgotten would silently be none.
        if not images and not subfolders and parts:
            raise DatasetError(f"{folder}: no image in it, expected *.png or *.jpg; take a folder without images out")
        found += [(*parts, name) for name in images]
    if not found:
        raise DatasetError(f"{path}: no image in this folder, expected <client>/<class>/*.png or <class>/*.png")
    tops = {parts[0].lower() for parts in found if len(parts) > 1}
    has_splits = "train" in {SPLIT_NAMES.get(top) for top in tops} and tops <= SPLIT_NAMES.keys()
    depth = len(found[0]) - has_splits
    for parts in found:
        if len(parts) - has_splits != depth or depth not in (2, 3):
            first = os.path.join(*found[0])
            beside = f", {first} lies elsewhere" if parts != found[0] else ""
            raise DatasetError(
                f"{os.path.join(path, *parts)}: in {len(parts) - 1} folders{beside}; expected <client>/<class>/<image> "
                f"or <class>/<image> for all, below train/ and test/ or not"
            )
    class_names = tuple(sorted({parts[-2] for parts in found}, key=sort_key))
    labels = {name: label for label, name in enumerate(class_names)}
    return ImageTree(
        [os.path.join(path, *parts) for parts in found],
        [parts[-3] if depth == 3 else "" for parts in found],
        [SPLIT_NAMES[parts[0].lower()] if has_splits else TRAIN for parts in found],
        np.array([labels[parts[-2]] for parts in found], np.int32),
        class_names,
        depth == 3,
    )


FORMAT = FileFormat("a folder of images", is_image_tree, open_image_tree, choose_image_partition, rank=80)
