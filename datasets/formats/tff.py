"""TensorFlow Federated's SQLite files, packed or not: what their examples are is told from the first of them."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from datasets.client_source import TEST, TRAIN, VALIDATION, ClientSource
from datasets.dataset import DatasetOptions, resolve_reference
from datasets.errors import DatasetError
from datasets.file_formats import FileFormat, name_data
from datasets.tff_files.database import TffDatabase, starts_as_sqlite
from datasets.tff_files.example import decode_example
from datasets.tff_files.labelled import open_labelled
from datasets.unused_options import OF_TABLES_ALONE, refuse_options

# How splits are called in files of TFF and of others.
_PARTS = {
    TRAIN: ("train", "training"),
    VALIDATION: ("heldout", "held_out", "validation", "valid", "val", "dev"),
    TEST: ("test", "testing"),
}
PART_OF_SPLIT = {split: part for part, splits in _PARTS.items() for split in splits}


class Schema(NamedTuple):
    """Examples of a known form: the features that tell them, and "module:function" that opens a file of them.

    The function is (TffDatabase, {split of the file: part}, DatasetOptions, name) -> ClientSource.
    """

    features: frozenset[str]
    open: str


# By the data set that is known by them; the first that fits is it.
_SCHEMATA = {
    "shakespeare": Schema(frozenset({"snippets"}), "datasets.tff_files.text:open_snippets"),
    "emnist": Schema(frozenset({"pixels", "label"}), "datasets.emnist:open_emnist"),
    "cifar100": Schema(frozenset({"coarse_label", "image", "label"}), "datasets.cifar100:open_cifar100"),
    "stackoverflow": Schema(frozenset({"tokens", "title", "tags"}), "datasets.stackoverflow:open_stackoverflow"),
}
# TFF's file of EMNIST holds two data sets.
_EMNIST_PREFIXES = {"digits": "digits_only_", "all": "all_"}


def is_tff(path: str) -> bool:
    """Whether it is an SQLite file, packed or not."""
    return os.path.isfile(path) and starts_as_sqlite(path)


def open_tff(path: str, options: DatasetOptions, name: str = "", form: str = "") -> ClientSource:
    """The clients of a file; see `ClientSource`.

    Args:
      path: of the .sqlite or .sqlite.lzma file.
      options: how it is read.
      name: of the data set; "" is the file's.
      form: of its examples, a name of `_SCHEMATA`; "" for any.

    Raises:
      DatasetError: it is damaged, has not TFF's tables, or its examples are of no form that is known or of another.
    """
    database = TffDatabase(path)
    refuse_options(path, "TFF's SQLite", options, *OF_TABLES_ALONE)
    parts = find_parts(database, options)
    names = find_features(database, next(split for split, part in parts.items() if part == TRAIN))
    found = next((each for each, schema in _SCHEMATA.items() if schema.features <= names), None)
    if options.label_column or options.feature_columns:
        found = None  # who names features means them, whatever the data set
    if form not in ("", found):
        raise DatasetError(
            f"{path}: its examples have the features {', '.join(sorted(names))}, expected those of {form}"
        )
    if found is None:
        return open_labelled(database, parts, options, name or name_data(path))
    return resolve_reference(_SCHEMATA[found].open)(database, parts, options, name or name_data(path))


def find_parts(database: TffDatabase, options: DatasetOptions) -> Mapping[str, str]:
    """Split of the file -> part; the only split of a file is trained on, whatever its name.

    Raises:
      DatasetError: the file has no split to train on, or one that cannot be told.
    """
    splits = database.count_examples()
    if any(split.startswith(tuple(_EMNIST_PREFIXES.values())) for split in splits):
        prefix = _EMNIST_PREFIXES[options.emnist_labels]
        splits = [split for split in splits if split.startswith(prefix)]
        found = {split: PART_OF_SPLIT.get(split.removeprefix(prefix), "") for split in splits}
        if TRAIN not in found.values() or "" in found.values():
            raise DatasetError(f"{database.source}: splits {', '.join(sorted(splits))}, expected {prefix}train")
        return found
    if len(splits) == 1:  # TFF's own writer calls it "default_split"
        return dict.fromkeys(splits, TRAIN)
    if unknown := sorted(set(splits) - set(PART_OF_SPLIT)):
        raise DatasetError(f"{database.source}: split {unknown[0]!r}, expected train, heldout and test")
    if TRAIN not in map(PART_OF_SPLIT.get, splits):
        raise DatasetError(f"{database.source}: splits {', '.join(sorted(splits))}, expected one called train")
    return {split: PART_OF_SPLIT[split] for split in splits}


def find_features(database: TffDatabase, split: str) -> frozenset[str]:
    """The names of the features of the first examples.

    Raises:
      DatasetError: they are no examples.
    """
    names: set[str] = set()
    for record in database.fetch_first(split, 20):
        try:
            names |= decode_example(record).keys()
        except ValueError as error:
            raise DatasetError(f"{database.source}: the first examples of split {split} are damaged: {error}") from None
    return frozenset(names)


FORMAT = FileFormat("TensorFlow Federated's SQLite", is_tff, open_tff, rank=20)
