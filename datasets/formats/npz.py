"""`--data` on an npz file: what `--dataset=npz` reads."""

import dataclasses
import os

from datasets.arrays import ArrayDataset
from datasets.dataset import DatasetOptions, refuse_options
from datasets.file_formats import FileFormat
from datasets.npz import choose_partition, load_npz_arrays
from datasets.npz_file import list_entries
from datasets.options import ImageOptions, TableOptions, TextOptions


def is_npz(path: str) -> bool:
    """Whether it is a zip archive of arrays."""
    if os.path.isfile(path) and path.endswith(".npz"):
        return True
    entries = list_entries(path)
    return bool(entries) and all(entry.endswith(".npy") for entry in entries)


def open_npz(path: str, options: DatasetOptions) -> ArrayDataset:
    """The file's arrays; see `datasets.npz`."""
    refuse_options(path, "an npz file", options, TableOptions, ImageOptions, TextOptions)
    return load_npz_arrays(path, options.seed, options.layout, options.scale, options.task)


def choose_npz_partition(path: str, options: DatasetOptions) -> str:
    """See `datasets.npz.choose_partition`."""
    return choose_partition(dataclasses.replace(options, npz=path))


FORMAT = FileFormat("an npz file of arrays", is_npz, open_npz, choose_npz_partition, rank=10)
