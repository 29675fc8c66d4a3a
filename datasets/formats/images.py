"""`--data` on a folder of images: one folder a class, and above these, where images are of clients, one a client.

  cat/1.png, dog/2.jpg                      no clients
  alice/cat/1.png, bob/dog/2.jpg            each folder a client
  train/alice/cat/1.png, test/alice/...     with a test part; likewise train/cat/1.png

Images are read when they are asked for. When a folder is opened, only their heads are.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from datasets.client_source import TRAIN, ClientSource
from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat
from datasets.example_store import SPLIT_ORDER, count_by_client, select_splits, sort_key
from datasets.file_digest import compute_source_digest
from datasets.file_formats import FileFormat, name_data
from datasets.image_pixels import FIX, ImageForm, describe_pixels, look_at_image, read_image
from datasets.label_format import BINARY, CLASSIFICATION, LabelFormat
from datasets.layouts import IMAGE, choose_preprocessing, describe_examples
from datasets.tables.table import SPLIT_NAMES
from datasets.unused_options import OF_TABLES, OF_TEXT, refuse_options

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm")
_MOST_LOOKED_AT = 2000  # entries, to tell whether a folder holds images


class ImageTree(NamedTuple):
    """The images of a folder, by client, part and class.

    Attributes:
      paths: of each.
      clients: index of its client, int64 (images,).
      splits: index into `SPLIT_ORDER`.
      labels: index of its class.
      client_names: in their order; one, "", where the folders name no clients.
      class_names: in their order.
      has_clients: whether the folders name clients.
    """

    paths: list[str]
    clients: np.ndarray
    splits: np.ndarray
    labels: np.ndarray
    client_names: tuple[str, ...]
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
    refuse_options(path, "a folder of images", options, *OF_TABLES, *OF_TEXT, "layout")
    if options.task not in ("", None, CLASSIFICATION, BINARY):
        raise DatasetError(f"{path}: task={options.task}: the folders of images are classes, expected {CLASSIFICATION}")
    tree = find_images(path)
    labels = LabelFormat(options.task or CLASSIFICATION)
    labels.check_names(path, tree.class_names)
    form = _check_alike(tree, ImageForm(options.image_size, options.image_colour))
    relative = [os.path.relpath(each, path) for each in tree.paths]
    try:
        digest = compute_source_digest(tree.paths, ["images", relative, options.image_size, options.image_colour])
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error.strerror or error})") from None
    groups = tree.clients * len(SPLIT_ORDER) + tree.splits
    order = np.argsort(groups, kind="stable")
    counts = np.bincount(groups, minlength=len(tree.client_names) * len(SPLIT_ORDER))
    ends = np.cumsum(counts)

    def read(client: int, split: str) -> tuple[np.ndarray, np.ndarray]:
        group = client * len(SPLIT_ORDER) + SPLIT_ORDER.index(split)
        images = order[ends[group] - counts[group] : ends[group]]
        x = np.empty((len(images), *form.shape), np.uint8)
        for row, image in enumerate(images):
            x[row] = read_image(tree.paths[image], tree.paths[image], form)
        return x, tree.labels[images].astype(labels.dtype)

    def count_labels() -> np.ndarray:
        is_train = tree.splits == SPLIT_ORDER.index(TRAIN)
        return count_by_client(
            tree.clients[is_train], tree.labels[is_train], len(tree.client_names), len(tree.class_names)
        )

    preprocessing = choose_preprocessing(options.scale, form.shape, True)
    how = f", resized to {options.image_size} x {options.image_size}" if options.image_size else ""
    colour = "grey" if form.shape[2] == 1 else "colour"
    clients = f"a folder a client, {len(tree.client_names):,}" if tree.has_clients else "no clients"
    return ClientSource(
        name=name_data(path),
        format=ExampleFormat(form.shape, "uint8", tree.class_names, preprocessing, labels=labels),
        client_names=tree.client_names,
        num_examples=select_splits(counts.reshape(-1, len(SPLIT_ORDER))),
        read=read,
        digest=digest,
        has_clients=tree.has_clients,
        reading=f"{describe_examples(form.shape, preprocessing, IMAGE)}, in {colour}{how}; a folder a class, {clients}",
        count_labels=count_labels,
    )


def choose_image_partition(path: str, options: DatasetOptions) -> str:
    """ "natural" where folders name clients, else ""."""
    return "natural" if find_images(path).has_clients else ""


def _is_image_name(name: str) -> bool:
    return name.lower().endswith(SUFFIXES) and not name.startswith(".")


def _walk(path: str) -> Iterator[tuple[str, ...]]:
    """The parts of each image's path below the folder."""
    for folder, subfolders, names in os.walk(path):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        relative = os.path.relpath(folder, path)
        parts = () if relative == "." else tuple(relative.split(os.sep))
        # A pipe of such a name would be waited at without end.
        images = sorted(each for each in names if _is_image_name(each) and os.path.isfile(os.path.join(folder, each)))
        if not images and not subfolders and parts:
            raise DatasetError(f"{folder}: no image in it, expected *.png or *.jpg; take a folder without images out")
        yield from ((*parts, name) for name in images)


def find_images(path: str) -> ImageTree:
    """All images of a folder, and what their folders say.

    Raises:
      DatasetError: no image, or not all as deep in folders.
    """
    found = list(_walk(path))
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
    splits = [SPLIT_ORDER.index(SPLIT_NAMES[parts[0].lower()]) if has_splits else 0 for parts in found]
    client_of = [parts[-3] if depth == 3 else "" for parts in found]
    class_of = [parts[-2] for parts in found]
    client_names = tuple(sorted(set(client_of), key=sort_key))
    class_names = tuple(sorted(set(class_of), key=sort_key))
    clients = {name: index for index, name in enumerate(client_names)}
    classes = {name: index for index, name in enumerate(class_names)}
    return ImageTree(
        [os.path.join(path, *parts) for parts in found],
        np.array([clients[name] for name in client_of], np.int64),
        np.array(splits, np.int64),
        np.array([classes[name] for name in class_of], np.int64),
        client_names,
        class_names,
        depth == 3,
    )


def _check_alike(tree: ImageTree, form: ImageForm) -> ImageForm:
    """The form of the images, all of which have it."""
    for path in tree.paths:
        shape = look_at_image(path, form)
        if not form.shape:
            form = ImageForm(form.size, form.colour, shape, path)
        elif shape != form.shape:
            raise DatasetError(
                f"{path}: {describe_pixels(shape)}, expected {describe_pixels(form.shape)} as {form.first} has; {FIX}"
            )
    return form


FORMAT = FileFormat("a folder of images", is_image_tree, open_image_tree, choose_image_partition, rank=80)
