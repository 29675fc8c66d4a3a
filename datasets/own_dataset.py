"""A user's own data set: a `Dataset` in a module of theirs, named as "module:OBJECT".

The module and its loader are the user's code. Whatever they raise, `sys.exit` included, becomes one line.
"""

import dataclasses
import functools
import typing
from collections.abc import Callable

from datasets.dataset import Dataset, DatasetOptions
from datasets.errors import DatasetError
from datasets.own_objects import describe_failure, import_object

if typing.TYPE_CHECKING:
    from datasets.arrays import ArrayDataset
    from datasets.client_source import ClientSource
    from datasets.example_format import ExampleFormat


def load_own_row(dataset: str) -> Dataset:
    """Imports the row "module:OBJECT". Its `load`, `find_format` and `find_partition` raise nothing but DatasetError.

    Raises:
      DatasetError: the module is missing or fails, or the object is missing or no `Dataset`.
    """
    row = import_object(dataset, f"dataset={dataset}", DatasetError)
    if not isinstance(row, Dataset):
        raise DatasetError(f"dataset={dataset}: expected a datasets.catalog.Dataset, got {type(row).__name__}")
    label = f"dataset={dataset}"

    def load(options: DatasetOptions) -> "ArrayDataset | ClientSource":
        from datasets.arrays import ArrayDataset
        from datasets.client_source import ClientSource

        data = _call(label, row.load, options)
        if isinstance(data, ClientSource):
            return dataclasses.replace(data, read=functools.partial(_call, label, data.read))
        if not isinstance(data, ArrayDataset):
            raise DatasetError(
                f"{label}: expected its loader to return an ArrayDataset (see datasets.arrays.make_array_dataset) or a "
                f"datasets.client_source.ClientSource, got {type(data).__name__}"
            )
        return data

    def find_format(options: DatasetOptions) -> "ExampleFormat":
        from datasets.example_format import ExampleFormat

        found = _call(label, row.find_format, options)
        if not isinstance(found, ExampleFormat):
            raise DatasetError(f"{label}: expected its format to be an ExampleFormat, got {type(found).__name__}")
        return found

    return dataclasses.replace(
        row,
        loader=load,
        format=None if row.format is None else find_format,
        partition=functools.partial(_call, label, row.find_partition) if row.partition else "",
    )


def _call(label: str, function: Callable, *arguments) -> typing.Any:
    """`function(*arguments)`; the user's code may raise anything, so anything becomes a DatasetError."""
    try:
        return function(*arguments)
    except DatasetError as error:
        raise DatasetError(f"{label}: {' '.join(str(error).split())}") from error
    except (Exception, SystemExit) as error:
        raise DatasetError(f"{label}: its loader failed with {describe_failure(error)}") from error
