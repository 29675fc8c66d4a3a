"""The formats of files and folders that are read, a module of `datasets.formats` each, and which one a path is in."""

import functools
import importlib
import os
import typing
from collections.abc import Callable
from typing import NamedTuple

from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.options import AUTO, FORMAT_NAMES
from files.reading import explain_errors

if typing.TYPE_CHECKING:
    from datasets.arrays import ArrayDataset
    from datasets.client_source import ClientSource
    from datasets.tables.table import Table


class FileFormat(NamedTuple):
    """A format: `FORMAT` of its module.

    Attributes:
      title: in words, for messages.
      recognise: (path of a file or folder that exists) -> whether it is in this format; by its name or first bytes,
        quickly, and without reading more. It raises nothing but OSError.
      open: (path, DatasetOptions) -> ClientSource or ArrayDataset. It raises DatasetError.
      choose_partition: (path, DatasetOptions) -> the default of `--partition` for a path: "natural" where it names
        clients, "iid" where its labels are no classes, else "", which leaves it to the algorithm. It reads no more than
        the start. None: always natural.
      make_table: (path, DatasetOptions) -> the table that is opened, whose columns a person may want to see, or None
        where these files are none. It raises DatasetError. None of what is never a table.
      rank: of two formats that recognise a path, the one with the lower rank has it, or else the first by name.
    """

    title: str
    recognise: Callable[[str], bool]
    open: "Callable[[str, DatasetOptions], ArrayDataset | ClientSource]"
    choose_partition: Callable[[str, DatasetOptions], str] | None = None
    rank: int = 50
    make_table: "Callable[[str, DatasetOptions], Table | None] | None" = None


def get_format(name: str) -> FileFormat:
    """The format of a name of `FORMAT_NAMES`."""
    return importlib.import_module(f"datasets.formats.{name}").FORMAT


@functools.cache
def list_formats() -> tuple[FileFormat, ...]:
    """All formats, by rank."""
    return tuple(sorted(map(get_format, FORMAT_NAMES), key=lambda each: each.rank))


def find_format(path: str, data_format: str = AUTO) -> FileFormat:
    """The format of a file or folder, by looking unless it is named.

    Raises:
      DatasetError: there is nothing there, it cannot be looked at, or it is in none of the formats.
    """
    if not os.path.exists(path):
        raise DatasetError(f"data={path}: no such file or folder")
    if data_format != AUTO:
        return get_format(data_format)
    with explain_errors(f"data={path}", DatasetError):
        found = next((each for each in list_formats() if each.recognise(path)), None)
    if found is None:
        titles = ", ".join(each.title for each in list_formats())
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
    return find_format(path, options.data_format).open(path, options)


def choose_partition(options: DatasetOptions) -> str:
    """The default of `--partition` for `--data`; "" leaves it to the algorithm, as does what cannot be read.

    What is wrong with the data is said when they are loaded.
    """
    if not options.data:
        return ""
    path = os.path.abspath(os.path.expanduser(options.data))
    try:
        # What is wrong with the data is said when they are loaded.
        found = find_format(path, options.data_format)
        return "natural" if found.choose_partition is None else found.choose_partition(path, options)
    except DatasetError:
        return ""


def name_data(path: str) -> str:
    """How reports call what lies at a path: the name of the file without its endings, or of the folder."""
    name = os.path.basename(os.path.normpath(path))
    return (name.split(".")[0] if os.path.isfile(path) else name) or "data"
