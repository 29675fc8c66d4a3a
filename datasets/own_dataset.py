"""A user's own data set: a `Dataset` in a module of theirs, named as "module:OBJECT".

The module and its loader are the user's code. Whatever they raise, `sys.exit` included, becomes one line.
"""

import dataclasses
import functools
import importlib
import typing
from collections.abc import Callable

from datasets.dataset import Dataset, DatasetOptions
from datasets.errors import DatasetError

if typing.TYPE_CHECKING:
    from datasets.arrays import ArrayDataset, ExampleFormat


def is_own_dataset(dataset: str) -> bool:
    """Whether `dataset` has the form "module:OBJECT"; the module may be in a package."""
    module, colon, name = dataset.partition(":")
    return bool(colon) and name.isidentifier() and all(part.isidentifier() for part in module.split("."))


def load_own_row(dataset: str) -> Dataset:
    """Imports the row "module:OBJECT". Its `load` and `find_format` raise nothing but DatasetError.

    Raises:
      DatasetError: the module is missing or fails, or the object is missing or no `Dataset`.
    """
    row = import_object(dataset, f"dataset={dataset}")
    if not isinstance(row, Dataset):
        raise DatasetError(f"dataset={dataset}: expected a datasets.catalog.Dataset, got a {type(row).__name__}")
    return dataclasses.replace(
        row,
        loader=functools.partial(_load, f"dataset={dataset}", row),
        format=None if row.format is None else functools.partial(_find_format, f"dataset={dataset}", row),
    )


def _load(label: str, row: Dataset, options: DatasetOptions) -> "ArrayDataset":
    from datasets.arrays import ArrayDataset

    arrays = _call(label, row.load, options)
    if not isinstance(arrays, ArrayDataset):
        raise DatasetError(
            f"{label}: expected its loader to return an ArrayDataset (see datasets.arrays.make_array_dataset), "
            f"got a {type(arrays).__name__}"
        )
    return arrays


def _find_format(label: str, row: Dataset, options: DatasetOptions) -> "ExampleFormat":
    from datasets.arrays import ExampleFormat

    found = _call(label, row.find_format, options)
    if not isinstance(found, ExampleFormat):
        raise DatasetError(f"{label}: expected its format to be an ExampleFormat, got a {type(found).__name__}")
    return found


def _call(label: str, function: Callable, options: DatasetOptions) -> typing.Any:
    """`function(options)`; the user's code may raise anything, so anything becomes a DatasetError."""
    try:
        return function(options)
    except DatasetError as error:
        raise DatasetError(f"{label}: {' '.join(str(error).split())}") from error
    except (Exception, SystemExit) as error:
        raise DatasetError(f"{label}: its loader failed with {describe_error(error)}") from error


def import_object(spelling: str, label: str) -> typing.Any:
    """The object that a user names as "module:OBJECT".

    Args:
      spelling: of that form.
      label: how errors begin, for example "dataset=my_data:DATASET".

    Raises:
      DatasetError: the module is missing or fails, or has no such object.
    """
    module_name, _, name = spelling.partition(":")
    try:
        found = getattr(importlib.import_module(module_name), name, None)
    except ModuleNotFoundError as error:
        mend = "run from the folder that holds it, or put that folder in PYTHONPATH"
        # Not the user's module is missing, nor a package that it lies in, but something that it imports.
        if error.name and not f"{module_name}.".startswith(f"{error.name}."):
            mend = f"{module_name} needs it; install it"
        raise DatasetError(f"{label}: no module named {error.name}; {mend}") from error
    except (Exception, SystemExit) as error:
        raise DatasetError(f"{label}: importing {module_name} failed: {describe_error(error)}") from error
    if found is None:
        raise DatasetError(f"{label}: expected an object {name} in {module_name}, there is none")
    return found


def describe_error(error: BaseException) -> str:
    """What user's code raised, in one line."""
    if isinstance(error, SystemExit):
        return "a call of sys.exit"
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
