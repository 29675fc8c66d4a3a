"""What a row of the catalog says of a data set. Imports neither NumPy nor a loader, so that names cost nothing to list.

A row names the code that it needs either directly or as "module:name", which is imported when it is first needed. The
rows of the catalog do the latter; a row in a user's own module can do the former.
"""

import dataclasses
import importlib
import operator
import os
import re
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING

from datasets.errors import DatasetError
from datasets.layouts import ArrayOptions
from datasets.options import (
    BuildingOptions,
    Cifar100Options,
    EmnistOptions,
    FileOptions,
    HarOptions,
    ImageOptions,
    OccupancyOptions,
    StackOverflowOptions,
    TableOptions,
    TextOptions,
    check_options,
    declare_options,
)
from datasets.terms import COMMERCIAL_USE, UNKNOWN, Terms

if TYPE_CHECKING:
    from datasets.arrays import ArrayDataset
    from datasets.client_source import ClientSource
    from datasets.example_format import ExampleFormat


@declare_options
class CatalogOptions(
    StackOverflowOptions, Cifar100Options, EmnistOptions, OccupancyOptions, BuildingOptions, HarOptions
):
    """The variants of data sets of the catalog."""


@declare_options
class OwnDataOptions(ArrayOptions, TextOptions, ImageOptions, TableOptions, FileOptions):
    """How a user's own data are read."""


@dataclasses.dataclass(frozen=True)
class DatasetOptions(OwnDataOptions, CatalogOptions):
    """What a loader may be told; each loader reads what concerns it.

    A reader declares its options in a class of its own, beside it, with their ranges and help texts, which are also
    those of their flags. Dataclasses take the fields of the last base first.

    Attributes:
      data_dir: a folder to look in first and to download to; "" is the cache folder.
      download: False to fail instead of using the network.
      seed: draws the held-out test part of a data set that comes without one (digits, npz), and the building.
      task: of a user's labels; "", which `--task=auto` stands for, is told from their form.
    """

    data_dir: str = ""
    download: bool = True
    seed: int = 0
    task: str = dataclasses.field(default="", kw_only=True)


class DatasetLocation(typing.NamedTuple):
    """Where a data set is. `found` is False if its files lie nowhere on this machine; `description` is one line."""

    found: bool
    description: str


@dataclasses.dataclass(frozen=True)
class Dataset:
    """One data set as the command line knows it.

    Attributes:
      name: the spelling of `--dataset`; lower-case letters, digits and underscores.
      loader: (DatasetOptions) -> ArrayDataset, or ClientSource where clients are read one by one.
      title: its name in titles of plots and tables; "" is `name`. A row outside of the catalog is shown by the name
        that its arrays have.
      format: an ExampleFormat, or (DatasetOptions) -> ExampleFormat where it depends on the options. A smoke run draws
        random arrays of it. None, where only the files tell, makes a smoke run load the data.
      clients: what its natural clients are, for example "people"; "" if it does not say who holds which example.
      client_names: of these, where they are known before the data are read, or "module:NAME"; a smoke run has them.
      partition: the default of `--partition` for this data set, or (DatasetOptions) -> that, where it depends on the
        options; "" leaves it to the algorithm.
      model: what `--model=auto` means here, or (DatasetOptions) -> that; "" leaves it to the form of an example.
      locate: (data folder or None) -> DatasetLocation; None for a data set without files of its own.
      origin: for a data set without files of its own, where it comes from, in the words of `launch.doctor`.
      smoke_sizes: numbers of train and test examples of the random arrays.
      num_examples: train and test examples together, at most; 0 where only the files tell.
      terms: what a model card says of it.

    Raises:
      DatasetError: a value is not of this form.
    """

    name: str
    loader: "str | Callable[[DatasetOptions], ArrayDataset | ClientSource]"
    title: str = ""
    format: "str | ExampleFormat | Callable[[DatasetOptions], ExampleFormat] | None" = None
    clients: str = ""
    client_names: str | tuple[str, ...] = ()
    partition: str | Callable[[DatasetOptions], str] = ""
    model: str | Callable[[DatasetOptions], str] = ""
    locate: str | Callable[[str | None], DatasetLocation] | None = None
    origin: str = ""
    smoke_sizes: tuple[int, int] = (600, 120)
    num_examples: int = 0
    terms: Terms = UNKNOWN

    def __post_init__(self):
        # The name becomes part of the names of run folders.
        if not isinstance(self.name, str) or not re.fullmatch("[a-z][a-z0-9_]*", self.name):
            raise DatasetError(f"name={self.name!r}: expected lower-case letters, digits and underscores")
        if not (callable(self.loader) or _is_reference(self.loader)):
            raise DatasetError(f"{self.name}: loader is {self.loader!r}, expected a function of DatasetOptions")
        sizes = self.smoke_sizes
        if len(sizes) != 2 or not all(isinstance(size, int) and size >= 1 for size in sizes):
            raise DatasetError(f"{self.name}: smoke_sizes={sizes}, expected two numbers of at least 1")
        if not isinstance(self.terms, Terms) or self.terms.commercial_use not in COMMERCIAL_USE:
            raise DatasetError(f"{self.name}: terms={self.terms!r}, expected datasets.terms.Terms(...)")

    @property
    def is_drawn_for_smoke(self) -> bool:
        """Whether a smoke run gets random arrays in place of the data."""
        return self.format is not None

    def load(self, options: DatasetOptions) -> "ArrayDataset | ClientSource":
        """The data.

        Raises:
          DatasetError: a file, or the folder that was named for it, is missing or damaged, or an option is out of its
            range.
        """
        check_options(options, CatalogOptions)
        folder = options.data_dir
        # A misspelled folder must not become a new one, with a download in it.
        if folder and self.locate is not None and not os.path.isdir(os.path.expanduser(folder)):
            raise DatasetError(
                f"data_dir={folder}: no such folder; make it, or name another by --data_dir or the variable FL_DATA_DIR"
            )
        return resolve_reference(self.loader)(options)

    def find_format(self, options: DatasetOptions) -> "ExampleFormat":
        """How an example looks, of the variant that the options ask for. Raises DatasetError: there is no such one."""
        check_options(options, CatalogOptions)
        found = resolve_reference(self.format)
        return found(options) if callable(found) else found

    def find_partition(self, options: DatasetOptions) -> str:
        """The default of `--partition`; "" leaves it to the algorithm."""
        found = resolve_reference(self.partition) if _is_reference(self.partition) else self.partition
        return found(options) if callable(found) else found

    def find_model(self, options: DatasetOptions) -> str:
        """What `--model=auto` means; "" goes by the form of an example."""
        found = resolve_reference(self.model) if _is_reference(self.model) else self.model
        return found(options) if callable(found) else found

    def find(self, data_dir: str | None) -> DatasetLocation:
        """Where the files lie, or what is missing, without reading them."""
        return DatasetLocation(True, self.origin) if self.locate is None else resolve_reference(self.locate)(data_dir)


def _is_reference(value: typing.Any) -> bool:
    return isinstance(value, str) and ":" in value


def resolve_reference(value: typing.Any) -> typing.Any:
    """What "module:name" stands for, imported now; anything that is no string stands for itself."""
    if not isinstance(value, str):
        return value
    module, _, name = value.partition(":")
    return operator.attrgetter(name)(importlib.import_module(module))


# Of readers that take some of the options of a table.
OF_TABLES_ALONE = ("missing_words", "join_spellings", "date_form", "weight_column", "text_column")


def refuse_options(path: str, kind: str, options: DatasetOptions, *unused: type | str) -> None:
    """Raises DatasetError if one of these options is neither its default nor what runs did before there was it.

    Args:
      path: of the data, for the error.
      kind: what they are, such as "a folder of images".
      options: all that were given.
      unused: what does nothing there: classes of options, such as `TableOptions`, or the names of single ones.
    """
    declared: dict[str, typing.Any] = {
        field.name: field.metadata.get("setting") for field in dataclasses.fields(DatasetOptions)
    }
    for each in unused:
        for name in (each,) if isinstance(each, str) else (field.name for field in dataclasses.fields(each)):
            value, of_old_runs = getattr(options, name), declared[name] and declared[name].of_old_runs
            # A flag that was not given may come as None.
            if value not in (None, "", getattr(DatasetOptions, name), of_old_runs):
                raise DatasetError(f"{path}: {name}={value}: does nothing with {kind}; leave it out")
