"""The formats of files and folders that are read, one row each, and which of them a path is in. Imports no reader."""

import os
import typing
from typing import NamedTuple

from datasets.dataset import DatasetOptions, resolve_reference
from datasets.errors import DatasetError

if typing.TYPE_CHECKING:
    from datasets.arrays import ArrayDataset
    from datasets.client_source import ClientSource

AUTO = "auto"


class FileFormat(NamedTuple):
    """A format.

    Attributes:
      name: the spelling of `--data_format`.
      title: in words, for messages.
      recognise: "module:function", (path of a file or folder that exists) -> whether it is in this format; by its name
        or first bytes, quickly, and without reading more. It raises nothing but OSError.
      open: "module:function", (path, DatasetOptions) -> ClientSource or ArrayDataset. It raises DatasetError.
      choose_partition: "module:function", (path, DatasetOptions) -> the default of `--partition` for a path: "natural"
        where it names clients, "iid" where its labels are no classes, else "", which leaves it to the algorithm. It
        reads no more than the start. None: always natural.
    """

    name: str
    title: str
    recognise: str
    open: str
    choose_partition: str | None = None


# The first that recognises a path has it.
_ROWS = (
    FileFormat(
        "npz",
        "an npz file of arrays",
        "datasets.files.npz_arrays:is_npz",
        "datasets.files.npz_arrays:open_npz",
        "datasets.files.npz_arrays:choose_npz_partition",
    ),
    FileFormat("tff", "TensorFlow Federated's SQLite", "datasets.files.tff:is_tff", "datasets.files.tff:open_tff"),
    FileFormat("leaf", "LEAF's JSON", "datasets.files.leaf:is_leaf", "datasets.files.leaf:open_leaf"),
    FileFormat(
        "parquet",
        "parquet or Arrow",
        "datasets.files.parquet:is_parquet",
        "datasets.files.parquet:open_parquet",
        "datasets.files.parquet:choose_parquet_partition",
    ),
    FileFormat(
        "csv",
        "a table, CSV or TSV",
        "datasets.files.csv_tables:is_csv",
        "datasets.files.csv_tables:open_csv",
        "datasets.files.csv_tables:choose_csv_partition",
    ),
    FileFormat(
        "client_files",
        "a folder with a file a client",
        "datasets.files.client_files:is_client_files",
        "datasets.files.client_files:open_client_files",
        "datasets.files.client_files:choose_client_files_partition",
    ),
    FileFormat(
        "images",
        "a folder of images",
        "datasets.files.images:is_image_tree",
        "datasets.files.images:open_image_tree",
        "datasets.files.images:choose_image_partition",
    ),
)
FILE_FORMATS = {row.name: row for row in _ROWS}
FORMAT_NAMES = tuple(FILE_FORMATS)


def find_format(path: str, data_format: str = AUTO) -> FileFormat:
    """The format of a file or folder, by looking unless it is named.

    Raises:
      DatasetError: there is nothing there, it cannot be looked at, or it is in none of the formats.
    """
    if not os.path.exists(path):
        raise DatasetError(f"data={path}: no such file or folder")
    if data_format != AUTO:
        return FILE_FORMATS[data_format]
    try:
        found = next((row for row in _ROWS if resolve_reference(row.recognise)(path)), None)
    except OSError as error:
        raise DatasetError(f"data={path}: cannot be read ({error.strerror or error})") from None
    if found is None:
        titles = ", ".join(row.title for row in _ROWS)
        raise DatasetError(f"data={path}: in none of the formats that are read ({titles}); name it by --data_format")
    return found


def open_data(options: DatasetOptions) -> "ArrayDataset | ClientSource":
    """The catalog's loader of `--data`.

    Raises:
      DatasetError: what lies there cannot be read, one line that says what and where.
    """
    if not options.data:
        raise DatasetError("dataset files: name your file or folder with --data")
    path = os.path.abspath(os.path.expanduser(options.data))
    return resolve_reference(find_format(path, options.data_format).open)(path, options)


def choose_partition(options: DatasetOptions) -> str:
    """The default of `--partition` for `--data`; "" leaves it to the algorithm, as does what cannot be read.

    What is wrong with the data is said when they are loaded.
    """
    if not options.data:
        return ""
    path = os.path.abspath(os.path.expanduser(options.data))
    try:
        row = find_format(path, options.data_format)
        return "natural" if row.choose_partition is None else resolve_reference(row.choose_partition)(path, options)
    except DatasetError:
        return ""


def name_data(path: str) -> str:
    """How reports call what lies at a path: the name of the file without its endings, or of the folder."""
    name = os.path.basename(os.path.normpath(path))
    return (name.split(".")[0] if os.path.isfile(path) else name) or "data"
