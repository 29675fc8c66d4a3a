"""The data sets by name, one row each. A loader is imported when its data are asked for: listing costs nothing.

A user's own is a `Dataset` in a module of theirs, named as "module:OBJECT".
The module and its loader are the user's code. Whatever they raise, `sys.exit` included, becomes one line.
"""

import dataclasses
import difflib
import functools
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING

from datasets import terms
from datasets.dataset import Dataset, DatasetLocation, DatasetOptions
from datasets.errors import DatasetError
from datasets.own_objects import describe_failure, import_object
from tff_algos.settings.config_fields import is_own

if TYPE_CHECKING:
    import numpy as np

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
            return dataclasses.replace(data, read=functools.partial(_call, label, _read_as_promised, data))
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


def _read_as_promised(data: "ClientSource", client: int, split: str) -> "tuple[np.ndarray, np.ndarray]":
    """A client's examples, which the user's code reads. Raises DatasetError if they are not as their format says."""
    import numpy as np

    x, y = data.read(client, split)
    count, labels = int(data.num_examples[split][client]), data.format.labels
    for name, array, shape, dtype in (
        ("x", x, data.format.input_shape, data.format.input_dtype),
        ("y", y, labels.shape, labels.dtype),
    ):
        if array.shape != (count, *shape) or not np.can_cast(array.dtype, dtype, "same_kind"):
            whose = f"{split} examples of client {data.client_names[client]!r}"
            expected = f"{dtype} of shape {(count, *shape)}, as its format and num_examples say"
            raise DatasetError(
                f"{whose}: read gave {name} as {array.dtype} of shape {array.shape}, expected {expected}"
            )
    return x, y


def _call(label: str, function: Callable, *arguments) -> typing.Any:
    """`function(*arguments)`; the user's code may raise anything, so anything becomes a DatasetError."""
    try:
        return function(*arguments)
    except DatasetError as error:
        raise DatasetError(f"{label}: {' '.join(str(error).split())}") from error
    except (Exception, SystemExit) as error:
        raise DatasetError(f"{label}: its loader failed with {describe_failure(error)}") from error


__all__ = [
    "DATASETS",
    "DATASET_NAMES",
    "Dataset",
    "DatasetOptions",
    "check_dataset_name",
    "find_dataset",
    "get_title",
    "load_arrays",
    "locate",
]

# Code is named by text, and imported when it is needed: to list the data sets costs nothing.
_ROWS = (
    Dataset(
        "digits",
        loader="datasets.digits:load_digits",
        format="datasets.digits:DIGITS_FORMAT",
        origin="comes with scikit-learn",
        num_examples=1_797,
        terms=terms.DIGITS,
    ),
    Dataset(
        "mnist",
        title="MNIST",
        loader="datasets.mnist:load_mnist",
        format="datasets.mnist:MNIST_FORMAT",
        locate="datasets.mnist:MNIST_FILES.locate",
        num_examples=70_000,
        terms=terms.MNIST,
    ),
    Dataset(
        "fashion_mnist",
        title="Fashion-MNIST",
        loader="datasets.mnist:load_fashion_mnist",
        format="datasets.mnist:FASHION_MNIST_FORMAT",
        locate="datasets.mnist:FASHION_MNIST_FILES.locate",
        num_examples=70_000,
        terms=terms.FASHION_MNIST,
    ),
    Dataset(
        "cifar10",
        title="CIFAR-10",
        loader="datasets.cifar:load_cifar10",
        format="datasets.cifar:CIFAR10_FORMAT",
        locate="datasets.cifar:CIFAR10_FILES.locate",
        num_examples=60_000,
        terms=terms.CIFAR10,
    ),
    Dataset(
        "cifar100",
        title="CIFAR-100",
        loader="datasets.cifar:load_cifar100",
        format="datasets.cifar:choose_cifar100_format",
        clients="500 parts by Pachinko Allocation, in TFF's file",
        partition="datasets.cifar:choose_cifar100_partition",
        model="resnet18_gn",
        locate="datasets.cifar:CIFAR100_FILES.locate",
        # Fewer, since its model has millions of parameters.
        smoke_sizes=(150, 30),
        num_examples=60_000,
        terms=terms.CIFAR100,
    ),
    Dataset(
        "har",
        title="HAR",
        loader="datasets.har:load_har",
        format="datasets.har:choose_har_format",
        clients="people",
        client_names="datasets.har:SUBJECT_NAMES",
        locate="datasets.har:locate_har",
        # Fewer, since its models have millions of parameters.
        smoke_sizes=(150, 30),
        num_examples=10_299,
        terms=terms.HAR,
    ),
    Dataset(
        "building",
        loader="datasets.building.readings:load_building",
        format="datasets.building.readings:BUILDING_FORMAT",
        clients="sensors",
        partition="natural",
        origin="simulated, needs no file",
        terms=terms.BUILDING,
    ),
    Dataset(
        "occupancy",
        loader="datasets.occupancy:load_occupancy",
        format="datasets.occupancy:choose_occupancy_format",
        clients="blocks of time",
        partition="natural",
        locate="datasets.occupancy:FILES.locate",
        num_examples=20_560,
        terms=terms.OCCUPANCY,
    ),
    Dataset(
        "emnist",
        title="EMNIST",
        loader="datasets.emnist:load_emnist",
        format="datasets.emnist:choose_emnist_format",
        clients="writers",
        partition="natural",
        model="emnist_cnn",
        locate="datasets.emnist:FILES.locate",
        terms=terms.EMNIST,
    ),
    Dataset(
        "celeba",
        title="CelebA",
        loader="datasets.celeba:load_celeba",
        format="datasets.celeba:choose_celeba_format",
        clients="celebrities",
        partition="natural",
        locate="datasets.celeba:FILES.locate",
        smoke_sizes=(60, 20),
        terms=terms.CELEBA,
    ),
    Dataset(
        "shakespeare",
        title="Shakespeare",
        loader="datasets.shakespeare:load_shakespeare",
        format="datasets.character_text:choose_character_format",
        clients="speaking roles",
        partition="natural",
        model="char_lstm",
        locate="datasets.shakespeare:FILES.locate",
        smoke_sizes=(60, 20),
        terms=terms.SHAKESPEARE,
    ),
    Dataset(
        "stackoverflow",
        title="Stack Overflow",
        loader="datasets.stackoverflow:load_stackoverflow",
        format="datasets.stackoverflow:choose_stackoverflow_format",
        clients="users",
        partition="natural",
        model="datasets.stackoverflow:choose_stackoverflow_model",
        locate="datasets.stackoverflow:FILES.locate",
        smoke_sizes=(60, 20),
        terms=terms.STACKOVERFLOW,
    ),
    Dataset(
        "files",
        loader="datasets.file_formats:open_data",
        partition="datasets.file_formats:choose_partition",
        origin="your own file or folder, named by --data",
    ),
    Dataset(
        "npz",
        loader="datasets.formats.npz:load_npz",
        partition="datasets.formats.npz:choose_partition",
        origin="your own file, named by --npz",
    ),
)
DATASETS = {row.name: row for row in _ROWS}
DATASET_NAMES = tuple(DATASETS)


def check_dataset_name(dataset: str) -> None:
    """Checks a spelling of `--dataset` without importing anything.

    Raises:
      DatasetError: neither a name of the catalog nor of the form "module:OBJECT".
    """
    if dataset not in DATASETS and not is_own(dataset):
        near = difflib.get_close_matches(dataset, DATASET_NAMES, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise DatasetError(
            f"dataset={dataset}: expected one of {', '.join(DATASET_NAMES)}, or your own as module:OBJECT{hint}"
        )


def find_dataset(dataset: str) -> Dataset:
    """The row of a data set; a user's own, "module:OBJECT", is imported from their module.

    Raises:
      DatasetError: an unknown name, or a user's row that cannot be had; see `load_own_row`.
    """
    check_dataset_name(dataset)
    if dataset in DATASETS:
        return DATASETS[dataset]
    row = load_own_row(dataset)
    if row.name in DATASETS:
        raise DatasetError(f"dataset={dataset}: its name is {row.name}, which the catalog has already; choose another")
    return row


def get_title(name: str) -> str:
    """How titles write a data set's name; a name that the catalog does not have, for example a subset's, stays."""
    return (DATASETS[name].title or name) if name in DATASETS else name


def load_arrays(dataset: str, options: DatasetOptions | None = None) -> "ArrayDataset | ClientSource":
    """Loads a data set, downloading it if it is nowhere on this machine and there is an address for it.

    Args:
      dataset: one of `DATASET_NAMES`, or a user's own as "module:OBJECT".
      options: where to find it and which variant of it; None is the defaults.

    Raises:
      DatasetError: one line that says what is missing or wrong and how to fix it.
    """
    return find_dataset(dataset).load(options or DatasetOptions())


def locate(name: str, data_dir: str | None = None) -> DatasetLocation:
    """Says where a data set lies, or what is missing, without reading the files.

    Raises:
      DatasetError: an unknown name.
    """
    return find_dataset(name).find(data_dir)
