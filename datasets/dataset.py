"""What a row of the catalog says of a data set. Imports neither NumPy nor a loader, so that names cost nothing to list.

A row names the code that it needs either directly or as "module:name", which is imported when it is first needed. The
rows of the catalog do the latter; a row in a user's own module can do the former.
"""

import dataclasses
import importlib
import os
import re
import typing
from collections.abc import Callable

from datasets.errors import DatasetError
from datasets.terms import COMMERCIAL_USE, UNKNOWN, Terms

if typing.TYPE_CHECKING:
    from datasets.arrays import ArrayDataset
    from datasets.client_source import ClientSource
    from datasets.example_format import ExampleFormat

HAR_FEATURES = ("statistics", "inertial")
BUILDING_HETEROGENEITY = ("low", "medium", "high", "structured")
OCCUPANCY_FEATURES = ("temperature_humidity", "all")
MISSING = ("refuse", "median", "drop")
CATEGORIES = ("one_hot", "index")
IMAGE_COLOURS = ("auto", "grey", "colour")
EMNIST_LABELS = ("digits", "all")
CIFAR100_FORMS = ("whole", "cropped")
STACKOVERFLOW_TASKS = ("next_word", "tags")


@dataclasses.dataclass(frozen=True)
class DatasetOptions:
    """What a loader may be told; each loader reads what concerns it.

    Attributes:
      data_dir: a folder to look in first and to download to; None is the cache folder.
      download: False to fail instead of using the network.
      seed: draws the held-out test part of a data set that comes without one (digits, npz), and the building.
      har_features: one of `HAR_FEATURES`.
      npz: path of the user's file, for "npz".
      data: the user's file or folder, for "files".
      data_format: a name of `datasets.file_formats.FORMAT_NAMES`, or "auto" to look.
      client_column: of a table, whose a row is; "" to guess, "none" for no such column, as with the time and the test.
      label_column: of a table, one or several with commas between them; "" to guess.
      feature_columns: of a table, with commas between them; "" for all that are nothing else.
      time_column: of a table, by which a client's rows are in order; "" to guess.
      test_column: of a table, which says whether a row is for the test; "" to guess.
      missing: what is done with missing values, one of `MISSING`.
      categories: what text in features becomes, one of `CATEGORIES`.
      window: rows of a time series that make one example; 0: each row is one.
      window_step: rows from the start of a window to that of the next; 0: as long as a window.
      image_size: side in pixels that images are resized to; 0: as they are, all alike.
      image_colour: one of `IMAGE_COLOURS`; "auto" as the files are.
      sequence_length: tokens in an example of text; 0: as the format's own protocol has it.
      vocabulary_size: most frequent words or tags that are kept; 0: as the format's own protocol has it.
      emnist_labels: one of `EMNIST_LABELS`.
      cifar100_form: one of `CIFAR100_FORMS`.
      stackoverflow_task: one of `STACKOVERFLOW_TASKS`.
      layout: how its axes are read, one of `datasets.layouts.LAYOUTS`.
      scale: of its numbers, see `datasets.layouts.choose_preprocessing`.
      task: of its labels, one of `datasets.label_format.TASK_NAMES`; "" is told from their form. See
        `datasets.npz_labels`.
      building_num_sensors: at least 1.
      building_heterogeneity: one of `BUILDING_HETEROGENEITY`.
      building_csv: where to save the building's readings; None for nowhere.
      occupancy_client_hours: length of the block of time that is a client, at least 1.
      occupancy_features: one of `OCCUPANCY_FEATURES`.
    """

    data_dir: str | None = None
    download: bool = True
    seed: int = 0
    har_features: str = "statistics"
    npz: str | None = None
    data: str | None = None
    data_format: str = "auto"
    client_column: str = ""
    label_column: str = ""
    feature_columns: str = ""
    time_column: str = ""
    test_column: str = ""
    missing: str = "refuse"
    categories: str = "one_hot"
    window: int = 0
    window_step: int = 0
    image_size: int = 0
    image_colour: str = "auto"
    sequence_length: int = 0
    vocabulary_size: int = 0
    emnist_labels: str = "digits"
    cifar100_form: str = "whole"
    stackoverflow_task: str = "next_word"
    layout: str = "auto"
    scale: str = "auto"
    task: str = ""
    building_num_sensors: int = 100
    building_heterogeneity: str = "medium"
    building_csv: str | None = None
    occupancy_client_hours: int = 12
    occupancy_features: str = "temperature_humidity"


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
        folder = options.data_dir
        if folder and self.locate is not None and not os.path.isdir(os.path.expanduser(folder)):
            raise DatasetError(
                f"data_dir={folder}: no such folder; make it, or name another by --data_dir or the variable FL_DATA_DIR"
            )
        return resolve_reference(self.loader)(options)

    def find_format(self, options: DatasetOptions) -> "ExampleFormat":
        """How an example looks, of the variant that the options ask for."""
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
    return getattr(importlib.import_module(module), name)
