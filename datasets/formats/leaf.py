"""LEAF's JSON: read once, a file after the other, into a store; images that it names are decoded into another one."""

import os
from collections import Counter

import numpy as np

from datasets.client_source import TRAIN, ClientSource
from datasets.dataset import DatasetOptions
from datasets.emnist import ALL_NAMES, CLASS_NAMES
from datasets.errors import DatasetError
from datasets.example_store import StoreWriter
from datasets.file_formats import FileFormat, name_data
from datasets.leaf import examples as forms
from datasets.leaf.files import find_leaf_files, iterate_users, looks_like_leaf
from datasets.leaf.images import open_named_images
from datasets.leaf.repeats import RepeatCheck
from datasets.stored_source import Description, Reading, open_reading
from datasets.unused_options import OF_TABLES_ALONE, refuse_options
from files.reading import explain_errors

_READING_VERSION = 1
_READINGS = {
    forms.CHARACTERS: "text in pieces of {0} characters, of which the one after the last is predicted",
    forms.TWEETS: "the first {0} words of texts",
    forms.WORDS: "pieces of {0} words, of which the next one is predicted",
}


def is_leaf(path: str) -> bool:
    """Whether it is such a file, or a folder of them."""
    files = find_leaf_files(path) if os.path.isdir(path) or path.endswith(".json") else []
    return bool(files) and looks_like_leaf(files[0][0])


def open_leaf(path: str, options: DatasetOptions, name: str = "", form: str = "") -> ClientSource:
    """The clients of a file or folder; see `ClientSource`.

    Labels that are texts are in their order; numbers are their own names, but EMNIST's for images of 784 numbers.

    Args:
      path: of the file, or of a folder as `leaf.files.find_leaf_files` takes it.
      options: lengths, size of a vocabulary, size of images.
      name: of the data set; "" is that of the path.
      form: that its examples must have, one of `leaf.examples`; "" for any.

    Raises:
      DatasetError: there is no such file, it is damaged, or contradicts itself; one line that names file and user.
    """
    refuse_options(path, "LEAF's JSON", options, *OF_TABLES_ALONE)
    with explain_errors(path, DatasetError):
        files = find_leaf_files(path)
    if not files:
        raise DatasetError(f"{path}: no files all_data*.json, and no folders train and test with JSON of LEAF's form")
    how = ["leaf", _READING_VERSION, [part for _, part in files], options.sequence_length, options.vocabulary_size]
    source = open_reading(
        Reading(
            name or name_data(path),
            path,
            [file for file, _ in files],
            how,
            lambda writer: _write(path, files, options, writer),
        )
    )
    kind = forms.tell_form(source.format)
    if form not in ("", kind):
        raise DatasetError(f"{path}: its examples are {kind}, expected {form}".replace("_", " "))
    return open_named_images(path, source, options) if kind == forms.IMAGE_NAMES else source


def _write(path: str, files: list[tuple[str, str]], options: DatasetOptions, writer: StoreWriter) -> Description:
    """Goes through the files to the first example, for the words if there are any, and then for the examples."""
    first = next((user for user in iterate_users(files) if user.part == TRAIN and user.y), None)
    if first is None:
        raise DatasetError(f"{path}: nobody has an example to train on")
    try:
        kind = forms.find_form(first.x[0], first.y[0])
    except ValueError as error:
        raise DatasetError(f"{first.where}: {error}") from None
    counts: Counter[str] = Counter()
    for user in iterate_users(files) if kind in (forms.TWEETS, forms.WORDS) else ():
        try:
            if user.part == TRAIN:
                forms.count_words(kind, user.x, user.y, counts)
        except ValueError as error:
            raise DatasetError(f"{user.where}: {error}") from None
    most = options.vocabulary_size or forms.DEFAULT_NUM_WORDS
    words = tuple(word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most])
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
    if encoder.class_texts:
        classes = tuple(sorted(encoder.class_texts))
        ranks = np.empty(len(classes), np.int32)
        ranks[[encoder.class_texts[text] for text in classes]] = np.arange(len(classes))
        writer.relabel(ranks)
    elif kind == forms.IMAGES and encoder.most < len(ALL_NAMES):
        classes = CLASS_NAMES["digits"] if encoder.most < 10 else ALL_NAMES
    else:
        classes = tuple(str(label) for label in range(max(2, encoder.most + 1)))
    example_format = forms.make_format(kind, encoder.shape, classes, words)
    reading = _READINGS.get(kind, "").format(*encoder.shape)
    return Description(example_format, reading=reading, notes=tuple(repeats.notes))


FORMAT = FileFormat("LEAF's JSON", is_leaf, open_leaf, rank=30)
