"""`--data` on a folder with a file for each client, named after the client: npz, CSV or parquet.

An npz file holds x and y, and x_test and y_test where a client has a test part of its own; or, as PFLlib writes it, a
pickled dictionary of these (see `files.unpickling` for what is read of a pickle).

alice.csv, bob.csv                    a file a client; or, where a column names clients, parts of one table
train/0.npz, test/0.npz               with a test part of each client's own, as PFLlib writes it
train.csv, test.csv                   one table in two parts
"""

import dataclasses
import os
import zipfile
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from datasets.arrays import check_examples, convert_examples
from datasets.client_source import TEST, TRAIN, ClientSource
from datasets.data_notes import note_layout
from datasets.dataset import DatasetOptions, refuse_options
from datasets.errors import DatasetError
from datasets.example_format import LABEL_KINDS, NEXT_TOKEN, REGRESSION, ExampleFormat
from datasets.file_formats import FileFormat, name_data
from datasets.formats.csv import ENDINGS, has_csv_name, make_csv_table
from datasets.formats.npz import (
    explain_damages,
    has_array,
    read_header,
    read_npz_file,
)
from datasets.formats.parquet import ARROW_ENDINGS, PARQUET_ENDINGS, make_arrow_table
from datasets.layouts import AUTO, FEATURES, TOKENS, resolve_layout
from datasets.names import sort_key
from datasets.npz_labels import NpzLabels, read_task_labels, standardise
from datasets.options import ImageOptions, TableOptions, TextOptions
from datasets.stored_source import Description, Reading, StoreWriter, open_reading, scale_source, show_progress
from datasets.tables.source import choose_table_partition, open_table
from datasets.tables.table import SPLIT_NAMES, ClientFile, Table, names_clients
from files.reading import explain_errors
from files.unpickling import read_pickled_dictionary


def read_pickled_arrays(content: bytes, where: str) -> dict[str, np.ndarray]:
    """The arrays of a pickled dictionary {name: array}, or of an array without axes that holds one.

    Args:
      content: the pickle, as NumPy writes an array of objects.
      where: what an error begins with.

    Raises:
      DatasetError: it holds anything but such a dictionary, or is damaged.
    """
    try:
        arrays = {}
        for key, value in read_pickled_dictionary(content).items():
            if not isinstance(key, str):
                raise ValueError("it is no dictionary of arrays by name")
            array = np.array(value) if isinstance(value, list | int | float | str | bool) else value
            if not isinstance(array, np.ndarray) or (array is not value and array.dtype.kind not in "biufU"):
                raise ValueError(f"{key} is no array of numbers or text")
            arrays[key] = array
        return arrays
    except Exception as error:
        # A damaged pickle can raise anything.
        raise DatasetError(
            f"{where}: holds Python objects that are not read ({error}), expected a dictionary of arrays x and y; save "
            f"them with numpy.savez(file, x=x, y=y)"
        ) from None


VERSION = 1
_PICKLED = "data"  # the entry of PFLlib's files


class _Part(NamedTuple):
    """The examples of a file that are of one split, and the keys of their arrays."""

    file: ClientFile
    split: str
    x_key: str
    y_key: str


def open_npz_clients(path: str, files: list[ClientFile], options: DatasetOptions) -> ClientSource:
    """The clients of a folder of npz files.

    Each file is read once, one at a time, into a store.

    Args:
      path: the folder.
      files: in a fixed order.
      options: layout, scale and task.

    Raises:
      DatasetError: a file cannot be read, or they do not fit together.
    """
    refuse_options(path, "npz files", options, TableOptions, ImageOptions, TextOptions)
    names = [[file.client, file.split] for file in files]
    how = [VERSION, "npz", names, options.layout, options.task or ""]
    paths = [file.path for file in files]
    source = open_reading(
        Reading(name_data(path), path, paths, how, lambda writer: _write(path, files, options, writer))
    )
    found = source.format
    layout = FEATURES if found.are_features else resolve_layout(options.layout, found.input_shape, False)
    return scale_source(source, options.scale, TOKENS if found.takes_tokens else layout)


def _write(path: str, files: list[ClientFile], options: DatasetOptions, writer: StoreWriter) -> Description:
    """Reads labels, then examples, a file at a time."""
    parts = []
    for file in files:
        parts.append(_Part(file, file.split, "x", "y"))
        if file.split == TRAIN and has_array(file.path, "x_test"):
            parts.append(_Part(file, TEST, "x_test", "y_test"))
    found = _read_labels(path, parts, options.task or "")
    label_format, layout, start, trained = found.format, "", 0, [found.y[:0]]
    for file, split, key, _ in show_progress(parts, "examples"):
        x = read_arrays(file.path, (key,))[key]
        if not layout:
            is_uint8, shape = x.dtype == np.uint8, x.shape[1:]
            is_text = label_format.task == NEXT_TOKEN and options.layout == AUTO
            layout = TOKENS if is_text else resolve_layout(options.layout, x.shape[1:], is_uint8)
        if (x.dtype == np.uint8) != is_uint8:
            kind, other = ("uint8", "other numbers") if is_uint8 else ("other numbers than uint8", "uint8")
            raise DatasetError(f"{file.path}: {key} is {x.dtype}, expected {kind} as in the first file, not {other}")
        x, y = convert_examples(file.path, key, x, layout), found.y[start : start + len(x)].astype(label_format.dtype)
        writer.append(x, y, file.client, split)
        start += len(x)
        trained += [y] if split == TRAIN else []
    if label_format.task == REGRESSION:
        offset, scale = standardise(np.concatenate(trained))
        label_format = dataclasses.replace(label_format, offset=offset, scale=scale)
    example_format = ExampleFormat(
        x.shape[1:],
        x.dtype.name,
        found.class_names,
        labels=label_format,
        takes_tokens=layout == TOKENS,
        are_features=layout == FEATURES,
    )
    reading = f"; an npz file a client; {found.reading}".removesuffix("; ")
    notes = () if layout == TOKENS else note_layout(options.layout, shape, is_uint8)
    return Description(example_format, reading=reading, notes=notes)


def _read_labels(path: str, parts: list[_Part], task: str) -> NpzLabels:
    """The labels of all files, one after the other, which are of one task."""
    labels, shape, first, largest_token = [], (), None, 0
    for file, _, x_key, y_key in show_progress(parts, "labels"):
        arrays = read_arrays(file.path, (x_key, y_key))
        x, y = arrays[x_key], arrays[y_key]
        check_examples(file.path, x_key, x)
        if len(y) != len(x):
            raise DatasetError(
                f"{file.path}: {len(x)} examples and {len(y)} labels, expected one label for each example"
            )
        if first is None:
            shape, first = x.shape[1:], (x.dtype.kind, file.path)
        if x.shape[1:] != shape:
            raise DatasetError(
                f"{file.path}: {x_key} has examples of shape {x.shape[1:]}, expected {shape} as {first[1]} has"
            )
        if y.shape[1:] != (labels[0].shape[1:] if labels else y.shape[1:]):
            raise DatasetError(
                f"{file.path}: {y_key} has labels of shape {y.shape[1:]}, expected {labels[0].shape[1:]} as "
                f"{first[1]} has"
            )
        if labels and (y.dtype.kind in "US") != (labels[0].dtype.kind in "US"):
            raise DatasetError(
                f"{file.path}: {y_key} is {y.dtype}, expected labels as {labels[0].dtype} in {first[1]}: text or "
                f"numbers"
            )
        labels.append(y)
        largest_token = max(largest_token, int(x.max())) if x.dtype.kind in "iu" else largest_token
    y_all = np.concatenate(labels)
    # Of next_token the examples themselves are of the task; what it needs of them is their form and largest token.
    stand_in = np.broadcast_to(np.int64(largest_token), (len(y_all), *shape)) if first[0] in "iu" else np.zeros((1, 1))
    return read_task_labels(path, {"x": stand_in, "y": y_all}, task)


def read_arrays(path: str, keys: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Arrays of a file, whether it holds these or a dictionary of them.

    Raises:
      DatasetError: see `read_npz_file` and `read_pickled_arrays`.
    """
    if has_array(path, keys[0]) or not has_array(path, _PICKLED):
        return read_npz_file(path, keys)
    where = f"{path}: array {_PICKLED!r}"
    with explain_damages(path, ", ".join(keys)), zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        with archive.open(f"{_PICKLED}.npy" if f"{_PICKLED}.npy" in names else _PICKLED) as stream:
            shape, dtype = read_header(stream)
            if not dtype.hasobject or shape != ():
                raise DatasetError(f"{where} is {dtype} of shape {shape}, expected arrays x and y")
            content = stream.read()
    arrays = read_pickled_arrays(content, where)
    missing = [key for key in keys if key not in arrays]
    if missing:
        raise DatasetError(f"{where} lacks {missing[0]!r}, it has {', '.join(arrays)}; expected x and y")
    return arrays


NPZ, CSV, ARROW = "npz", "csv", "parquet"


def is_client_files(path: str) -> bool:
    """Whether it is a folder of such files, or of folders train and test of them."""
    return os.path.isdir(path) and next(_list_files(path), None) is not None


def open_client_files(path: str, options: DatasetOptions) -> ClientSource:
    """The clients of a folder.

    Raises:
      DatasetError: files of several kinds, two files of one client and part, or a file that cannot be read.
    """
    kind, files = find_client_files(path)
    if kind == NPZ:
        return open_npz_clients(path, files, options)
    return open_table(_make_table(path, kind, files, options), options)


def choose_client_files_partition(path: str, options: DatasetOptions) -> str:
    """ "natural", unless the files are parts of one table without clients; see `choose_table_partition`."""
    kind, files = find_client_files(path)
    if kind != NPZ:
        return choose_table_partition(_make_table(path, kind, files, options), options)
    if any(file.client for file in files):
        return "natural"
    first = files[0].path  # whose labels tell the task
    task = options.task or read_task_labels(first, read_arrays(first, ("x", "y"))).format.task
    return "" if LABEL_KINDS[task].is_by_class else "iid"


def _list_files(path: str) -> Iterator[tuple[str, str, str]]:
    """(path, folder or "", kind) of each file, hidden ones left out."""
    for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
        if entry.is_dir() and entry.name.lower() in SPLIT_NAMES:
            for inner in sorted(os.scandir(entry.path), key=lambda inner: inner.name):
                if inner.is_file() and _find_kind(inner.name):
                    yield inner.path, entry.name, _find_kind(inner.name)
        elif entry.is_file() and _find_kind(entry.name):
            yield entry.path, "", _find_kind(entry.name)


def _find_kind(name: str) -> str:
    lower = name.lower()
    if name.startswith("."):
        return ""
    if lower.endswith(".npz"):
        return NPZ
    if lower.endswith((*PARQUET_ENDINGS, *ARROW_ENDINGS)):
        return ARROW
    return CSV if has_csv_name(name) else ""


def find_client_files(path: str) -> tuple[str, list[ClientFile]]:
    """(kind, files), by client and part.

    A file that is called train, test or validation is that part of a table and no client.

    Raises:
      DatasetError: none, files of several kinds, or two files for a client's part.
    """
    with explain_errors(path, DatasetError):
        found = list(_list_files(path))
    if not found:
        raise DatasetError(f"{path}: no file of a client in this folder, expected *.npz, *.csv or *.parquet")
    kinds = {kind: file for file, _, kind in found}
    if len(kinds) > 1:
        raise DatasetError(
            f"{path}: files of several kinds ({', '.join(sorted(kinds))}, the last {os.path.basename(found[-1][0])}), "
            f"expected one kind in a folder"
        )
    files = [_name_client(file, folder) for file, folder, _ in found]
    seen: dict[tuple[str, str], str] = {}
    for file in files:
        other = seen.setdefault((file.client, file.split), file.path)
        if other != file.path:
            raise DatasetError(
                f"{file.path}: client {file.client!r} has a file of this part already, {other}; expected one"
            )
    if len({bool(file.client) for file in files}) > 1:
        part = next(file for file in files if not file.client)
        raise DatasetError(
            f"{part.path}: a part of a whole beside files of clients, expected either; put it into a folder of its own"
        )
    return found[0][2], sorted(files, key=lambda file: (sort_key(file.client), file.split, file.path))


def _name_client(path: str, folder: str) -> ClientFile:
    stem = os.path.basename(path)
    for ending in (".gz", ".npz", *ENDINGS, *PARQUET_ENDINGS, *ARROW_ENDINGS):
        if stem.lower().endswith(ending):
            stem = stem[: -len(ending)]
    if not folder and stem.lower() in SPLIT_NAMES:
        return ClientFile(path, "", SPLIT_NAMES[stem.lower()])
    return ClientFile(path, stem, SPLIT_NAMES[folder.lower()] if folder else TRAIN)


def _make_table(path: str, kind: str, files: list[ClientFile], options: DatasetOptions) -> Table:
    if kind == ARROW:
        return make_arrow_table(path, options, files)
    table = make_csv_table(path, options, files)
    if table.has_clients and names_clients(table.columns, options):
        return make_csv_table(path, options, [file._replace(client="") for file in files])
    return table


def make_client_table(path: str, options: DatasetOptions) -> Table | None:
    """The table in the files of a folder; None of npz files. Raises DatasetError."""
    kind, files = find_client_files(path)
    return None if kind == NPZ else _make_table(path, kind, files, options)


FORMAT = FileFormat(
    "a folder with a file a client",
    is_client_files,
    open_client_files,
    choose_client_files_partition,
    70,
    make_client_table,
)
