"""LEAF's JSON: read once, a file after the other, into a store from which clients are read when they are asked for."""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from datasets.client_source import TRAIN, ClientSource
from datasets.dataset import DatasetOptions
from datasets.emnist import ALL_NAMES, CLASS_NAMES
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat
from datasets.example_store import ExampleStore, StoreWriter, open_or_write_store
from datasets.federated_data import Preprocessing
from datasets.file_digest import compute_source_digest
from datasets.file_formats import FileFormat, name_data
from datasets.leaf import examples as forms
from datasets.leaf.files import find_leaf_files, iterate_users, looks_like_leaf
from datasets.leaf.images import DEFAULT_SIZE, ImageFolder, find_image_folder
from datasets.leaf.repeats import RepeatCheck

_READING_VERSION = 1
_READINGS = {
    forms.CHARACTERS: "text in pieces of {0} characters, of which the one after the last is predicted",
    forms.TWEETS: "the first {0} words of texts",
    forms.WORDS: "pieces of {0} words, of which the next one is predicted",
}
_WITH_WORDS = (forms.TWEETS, forms.WORDS)


def is_leaf(path: str) -> bool:
    """Whether it is such a file, or a folder of them."""
    files = find_leaf_files(path) if os.path.isdir(path) or path.endswith(".json") else []
    return bool(files) and looks_like_leaf(files[0][0])


def open_leaf(
    path: str, options: DatasetOptions, name: str = "", class_names: tuple[str, ...] = (), form: str = ""
) -> ClientSource:
    """The clients of a file or folder; see `ClientSource`.

    Args:
      path: of the file, or of a folder as `leaf_files.find_leaf_files` takes it.
      options: lengths, size of a vocabulary, size of images.
      name: of the data set; "" is that of the path.
      class_names: of the labels, where these are numbers; () to use the numbers, or EMNIST's for images of 784 numbers.
      form: that its examples must have, one of `leaf_examples`; "" for any.

    Raises:
      DatasetError: there is no such file, it is damaged, or contradicts itself; one line that names file and user.
    """
    files = _find_files(path)
    how = ["leaf", _READING_VERSION, [part for _, part in files], options.sequence_length, options.vocabulary_size]
    try:
        digest = compute_source_digest([file for file, _ in files], how)
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error.strerror or error})") from None
    store = open_or_write_store(digest, lambda writer: _write(path, files, options, writer))
    kind, name = store.facts["form"], name or name_data(path)
    if form not in ("", kind):
        raise DatasetError(f"{path}: its examples are {kind}, expected {form}".replace("_", " "))
    notes = tuple(store.facts["notes"])
    if kind == forms.IMAGE_NAMES:
        return _open_images(path, store, options, name, digest, class_names, notes)
    example_format = _make_format(store, class_names)
    ranks = _rank_texts(store)

    def read(client: int, split: str) -> tuple[np.ndarray, np.ndarray]:
        x, y = store.read(client, split)
        return x, (y if ranks is None else ranks[y])

    reading = _READINGS.get(kind, "").format(*example_format.input_shape)
    return ClientSource(
        name, example_format, store.client_names, store.num_examples, read, digest, reading=reading, notes=notes
    )


def _find_files(path: str) -> list[tuple[str, str]]:
    try:
        files = find_leaf_files(path)
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error.strerror or error})") from None
    if not files:
        raise DatasetError(f"{path}: no files all_data*.json, and no folders train and test with JSON of LEAF's form")
    return files


def _write(path: str, files: list[tuple[str, str]], options: DatasetOptions, writer: StoreWriter) -> Mapping[str, Any]:
    first = next((user for user in iterate_users(files) if user.part == TRAIN and user.y), None)
    if first is None:
        raise DatasetError(f"{path}: nobody has an example to train on")
    try:
        kind = forms.find_form(first.x[0], first.y[0])
    except ValueError as error:
        raise DatasetError(f"{first.where}: {error}") from None
    words = _count_words(files, kind, options) if kind in _WITH_WORDS else ()
    encoder = forms.Encoder(kind, first.x[0], options.sequence_length, words)
    if kind == forms.CHARACTERS and options.sequence_length not in (0, encoder.shape[0]):
        raise DatasetError(
            f"{first.where}: its texts have {encoder.shape[0]} characters, expected --sequence_length=0 or as many"
        )
    repeats = RepeatCheck()
    for user in iterate_users(files):
        try:
            x, y = encoder.encode(user.x, user.y)
        except ValueError as error:
            raise DatasetError(f"{user.where}: {error}") from None
        repeats.add(user, x, y)
        writer.append(x, y, user.name, user.part)
    facts = {"form": kind, "shape": encoder.shape, "words": words, "most": encoder.most}
    return {**facts, "texts": list(encoder.class_texts), "notes": repeats.notes}


def _count_words(files: list[tuple[str, str]], kind: str, options: DatasetOptions) -> tuple[str, ...]:
    """The most frequent words of the train part, in order."""
    counts: Counter[str] = Counter()
    for user in iterate_users(files):
        try:
            if user.part == TRAIN:
                forms.count_words(kind, user.x, user.y, counts)
        except ValueError as error:
            raise DatasetError(f"{user.where}: {error}") from None
    most = options.vocabulary_size or forms.DEFAULT_NUM_WORDS
    return tuple(word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most])


def _make_format(store: ExampleStore, class_names: tuple[str, ...]) -> ExampleFormat:
    facts = store.facts
    return forms.make_format(
        facts["form"], tuple(facts["shape"]), _name_classes(store, class_names), tuple(facts["words"])
    )


def _name_classes(store: ExampleStore, class_names: tuple[str, ...]) -> tuple[str, ...]:
    """Of the labels: texts in their order, the names that are given or known, or the numbers."""
    facts = store.facts
    if facts["texts"]:
        return tuple(sorted(facts["texts"]))
    if not class_names and facts["form"] == forms.IMAGES and facts["most"] < len(ALL_NAMES):
        class_names = CLASS_NAMES["digits"] if facts["most"] < 10 else ALL_NAMES
    if facts["most"] < len(class_names):
        return class_names
    if class_names:
        raise DatasetError(f"label {facts['most']} in the data, expected 0..{len(class_names) - 1}")
    return tuple(str(label) for label in range(max(2, facts["most"] + 1)))


def _rank_texts(store: ExampleStore) -> np.ndarray | None:
    """The label of each text by the number that the store has for it; None where labels are numbers."""
    texts = store.facts["texts"]
    if not texts:
        return None
    ranks = np.empty(len(texts), np.int32)
    ranks[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    return ranks


def _open_images(
    path: str,
    store: ExampleStore,
    options: DatasetOptions,
    name: str,
    digest: str,
    class_names: tuple[str, ...],
    notes: tuple[str, ...],
) -> ClientSource:
    """Names of images: the images are opened when a client is read."""
    images = ImageFolder(find_image_folder(path), options.image_size or DEFAULT_SIZE, options.image_colour)
    ranks = _rank_texts(store)

    def read(client: int, split: str) -> tuple[np.ndarray, np.ndarray]:
        names, y = store.read(client, split)
        return images.read(names), (y if ranks is None else ranks[y])

    identity = json.dumps([digest, images.shape])
    return ClientSource(
        name,
        ExampleFormat(
            images.shape,
            "uint8",
            _name_classes(store, class_names),
            Preprocessing(1 / 255, feature_range=(0.0, 1.0)),
        ),
        store.client_names,
        store.num_examples,
        read,
        hashlib.sha256(identity.encode()).hexdigest(),
        notes=notes,
    )


FORMAT = FileFormat("LEAF's JSON", is_leaf, open_leaf, rank=30)
