"""A folder with an npz file for each client: arrays x and y, or, as PFLlib writes them, a dictionary of these.

alice.npz, bob.npz                  x, y and, where there is one, the client's own test part, x_test, y_test
train/0.npz, test/0.npz             the parts in folders
"""

import dataclasses
import zipfile
from typing import NamedTuple

import numpy as np

from datasets.client_source import TEST, TRAIN, ClientSource
from datasets.data_notes import note_layout
from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat
from datasets.example_store import StoreWriter
from datasets.file_formats import name_data
from datasets.image_options import ImageOptions
from datasets.label_format import NEXT_TOKEN, REGRESSION
from datasets.layouts import AUTO, FEATURES, TOKENS, resolve_layout
from datasets.npz import check_examples, convert_examples
from datasets.npz_file import explain_damages, has_array, read_header, read_npz_file
from datasets.npz_labels import NpzLabels, read_task_labels, standardise
from datasets.pickled_arrays import read_pickled_arrays
from datasets.progress import show_progress
from datasets.stored_source import Description, Reading, open_reading, scale_source
from datasets.tables.options import TableOptions
from datasets.tables.table import ClientFile
from datasets.text_options import TextOptions
from datasets.unused_options import refuse_options

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
    form = source.format
    layout = FEATURES if form.are_features else resolve_layout(options.layout, form.input_shape, False)
    return scale_source(source, options.scale, TOKENS if form.takes_tokens else layout)


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
    labels, shape, form, largest_token = [], (), None, 0
    for file, _, x_key, y_key in show_progress(parts, "labels"):
        arrays = read_arrays(file.path, (x_key, y_key))
        x, y = arrays[x_key], arrays[y_key]
        check_examples(file.path, x_key, x)
        if len(y) != len(x):
            raise DatasetError(
                f"{file.path}: {len(x)} examples and {len(y)} labels, expected one label for each example"
            )
        if form is None:
            shape, form = x.shape[1:], (x.dtype.kind, file.path)
        if x.shape[1:] != shape:
            raise DatasetError(
                f"{file.path}: {x_key} has examples of shape {x.shape[1:]}, expected {shape} as {form[1]} has"
            )
        if y.shape[1:] != (labels[0].shape[1:] if labels else y.shape[1:]):
            raise DatasetError(
                f"{file.path}: {y_key} has labels of shape {y.shape[1:]}, expected {labels[0].shape[1:]} as "
                f"{form[1]} has"
            )
        if labels and (y.dtype.kind in "US") != (labels[0].dtype.kind in "US"):
            raise DatasetError(
                f"{file.path}: {y_key} is {y.dtype}, expected labels as {labels[0].dtype} in {form[1]}: text or numbers"
            )
        labels.append(y)
        largest_token = max(largest_token, int(x.max())) if x.dtype.kind in "iu" else largest_token
    y_all = np.concatenate(labels)
    # Of next_token the examples themselves are of the task; what it needs of them is their form and largest token.
    stand_in = np.broadcast_to(np.int64(largest_token), (len(y_all), *shape)) if form[0] in "iu" else np.zeros((1, 1))
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


def guess_folder_task(files: list[ClientFile]) -> str:
    """What the labels of the first file tell of the task."""
    arrays = read_arrays(files[0].path, ("x", "y"))
    return read_task_labels(files[0].path, arrays).format.task
