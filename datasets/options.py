"""What readers of data may be told. Imports nothing heavy, for `--help`.

A class of options for each reader; its fields are made by `setting`. `datasets.dataset.DatasetOptions` inherits from
all these classes, and so do the flags of a run.
"""

import csv
import dataclasses
import functools
import pathlib
from typing import Any

from datasets.errors import DatasetError
from tff_algos.settings.config_fields import Needs, is_own, needs_value, setting

FILES, NPZ = "files", "npz"  # the data sets of a user's file or folder
OF_FILES = Needs("dataset", lambda name: name == FILES, "--data=<your file or folder>")
# Of a class that is inherited from and never made: methods of its own would take `--help` a millisecond each.
declare_options = functools.partial(dataclasses.dataclass, frozen=True, kw_only=True, init=False, repr=False, eq=False)


def check_options(options: Any, declared: type) -> None:
    """Raises DatasetError for the first of the fields declared in a class whose value is out of its range."""
    for field in dataclasses.fields(declared):
        value, limits = getattr(options, field.name), field.metadata["setting"]
        if not limits.admits(value):
            raise DatasetError(f"{field.name}={value}: expected {limits.describe_range(value)}")


def of_files_or(dataset: str) -> Needs:
    """For what concerns a data set that may also come as a file of one's own."""
    return Needs("dataset", lambda name: name in (FILES, dataset), f"--dataset={dataset}")


def is_users_own(dataset: str) -> bool:
    """Whether the data are a user's: a file of theirs, or what a loader of theirs gives."""
    return dataset in (FILES, NPZ) or is_own(dataset)


AUTO = "auto"
# The spellings of `--data_format`. They are the names of the modules, so that listing them imports none.
FORMAT_NAMES = tuple(
    sorted(path.stem for path in pathlib.Path(__file__).with_name("formats").glob("*.py") if path.stem != "__init__")
)


@declare_options
class FileOptions:
    """See `datasets.file_formats`."""

    data: str = setting(
        "", "Your own file or folder: CSV, LEAF, TFF's SQLite, parquet, npz, images; see docs/data_sets.md."
    )
    data_format: str = setting(
        AUTO, "Format of --data; auto: by looking.", choices=(AUTO, *FORMAT_NAMES), needs=OF_FILES
    )


IMAGE_COLOURS = ("auto", "grey", "colour")


@declare_options
class ImageOptions:
    """See `datasets.image_pixels`."""

    image_size: int = setting(
        0,
        "Side in pixels that images of files are resized to; 0: as they are, 84 for celeba.",
        minimum=0,
        maximum=4096,
        needs=of_files_or("celeba"),
    )
    image_colour: str = setting(
        "auto",
        "Whether images of files are read in grey or in colour.",
        choices=IMAGE_COLOURS,
        needs=of_files_or("celeba"),
    )


TEXT_DATASETS = (FILES, "shakespeare", "stackoverflow")


@declare_options
class TextOptions:
    """Each format of text has a protocol of its own, which 0 stands for."""

    sequence_length: int = setting(
        0,
        "Tokens in an example of text; 0: as the data set's protocol says, of --text_column as most texts have.",
        minimum=0,
        needs=Needs("dataset", lambda name: name in TEXT_DATASETS, "--data=<your file>, or --dataset=shakespeare"),
    )
    vocabulary_size: int = setting(
        0,
        "Words that a model of text knows; 0: as the data set's protocol says, 2,000 of --text_column.",
        minimum=0,
        needs=of_files_or("stackoverflow"),
    )


CIFAR100_FORMS = ("whole", "cropped")


@declare_options
class Cifar100Options:
    """See `datasets.cifar`."""

    cifar100_form: str = setting(
        "whole",
        "Images of cifar100: whole, or the middle 24 x 24 pixels, each image standardised, as in TFF's baseline.",
        choices=CIFAR100_FORMS,
        needs=of_files_or("cifar100"),
    )


EMNIST_LABELS = ("digits", "all")


@declare_options
class EmnistOptions:
    """See `datasets.emnist`."""

    emnist_labels: str = setting(
        "digits",
        "Classes of emnist: the 10 digits, or all 62.",
        choices=EMNIST_LABELS,
        needs=of_files_or("emnist"),
    )


HAR_FEATURES = ("statistics", "inertial")
HAR_SPLITS = WINDOWS, BOUTS = ("windows", "bouts")


@declare_options
class HarOptions:
    """See `datasets.har`."""

    har_features: str = setting(
        "statistics",
        "Input of har: the 561 statistics, or the windows of shape (128, 9).",
        choices=HAR_FEATURES,
        needs=needs_value("dataset", "har"),
    )
    har_split: str = setting(
        WINDOWS,
        "How a person's windows of har, which overlap by half, go to validation and test: windows, one by one at "
        "random; bouts, whole stretches of one activity.",
        choices=HAR_SPLITS,
        needs=(needs_value("dataset", "har"), needs_value("partition", "natural")),
    )


OCCUPANCY_FEATURES = ("temperature_humidity", "all")
OF_OCCUPANCY = needs_value("dataset", "occupancy")


@declare_options
class OccupancyOptions:
    """See `datasets.occupancy`."""

    occupancy_client_hours: int = setting(
        12, "Hours of readings that make a client of occupancy.", minimum=1, needs=OF_OCCUPANCY
    )
    occupancy_features: str = setting(
        "temperature_humidity",
        "Input of occupancy: two of its readings, or all five.",
        choices=OCCUPANCY_FEATURES,
        needs=OF_OCCUPANCY,
    )


STACKOVERFLOW_TASKS = ("next_word", "tags")


@declare_options
class StackOverflowOptions:
    """See `datasets.stackoverflow`; beside it `TextOptions`."""

    stackoverflow_task: str = setting(
        "next_word",
        "What is predicted from stackoverflow.",
        choices=STACKOVERFLOW_TASKS,
        needs=of_files_or("stackoverflow"),
    )


BUILDING_HETEROGENEITY = ("low", "medium", "high", "structured")
OF_BUILDING = needs_value("dataset", "building")


@declare_options
class BuildingOptions:
    """See `datasets.building.readings`."""

    building_num_sensors: int = setting(
        100, "Sensors of building, each a client.", minimum=1, maximum=10**5, needs=OF_BUILDING
    )
    building_heterogeneity: str = setting(
        "medium",
        "How much the rooms and sensors of building differ.",
        choices=BUILDING_HETEROGENEITY,
        needs=OF_BUILDING,
    )
    building_csv: str = setting(
        "",
        "File to save the readings of building to, as CSV; empty: not saved.",
        needs=(OF_BUILDING, Needs("smoke", lambda smoke: not smoke, "--no{flag}")),
    )


MISSING = ("refuse", "median", "drop")
CATEGORIES = ("one_hot", "index")
DEFAULT_MISSING_WORDS = "na,n/a,nan,null,none,?,#n/a,<na>"
YEAR_FIRST, DAY_FIRST, MONTH_FIRST, NUMBER = "ymd", "dmy", "mdy", "number"
WRITTEN, FALSE_TRUE = "written", "false_true"
LEAVE_OUT, KEEP = "leave_out", "keep"
OF_WINDOWS = Needs("window", bool, "--window=<rows>")
DECIMAL_MARKS = (AUTO, "point", "comma")


@declare_options
class TableOptions:
    """See `datasets.tables.table` for columns, and `datasets.tables.source` for windows."""

    client_column: str = setting(
        "",
        "Column of a table that names the client of each row; empty: guessed; none: there is no such column.",
        needs=OF_FILES,
    )
    label_column: str = setting(
        "", "Column of a table to predict, or several with commas; empty: guessed.", needs=OF_FILES
    )
    feature_columns: str = setting(
        "", "Columns of a table to predict from, with commas; empty: all others.", needs=OF_FILES
    )
    drop_columns: str = setting("", "Columns of a table that are not read, with commas.", needs=OF_FILES)
    text_column: str = setting(
        "", "Column of a table whose sentences are what is predicted from, as words; empty: none.", needs=OF_FILES
    )
    time_column: str = setting(
        "",
        "Column of a table that orders a client's rows; empty: guessed; none: there is no such column.",
        needs=OF_FILES,
    )
    test_column: str = setting(
        "",
        "Column of a table that marks test rows by true, 1 or test; empty: guessed; none: there is no such column.",
        needs=OF_FILES,
    )
    weight_column: str = setting(
        "",
        "Column of a table whose numbers weigh the examples' losses in training, and which is no feature; empty: all "
        "count alike.",
        needs=OF_FILES,
    )
    missing: str = setting("refuse", "What to do with missing values in a table.", choices=MISSING, needs=OF_FILES)
    missing_words: str = setting(
        DEFAULT_MISSING_WORDS,
        "What stands for no value in a table beside an empty field, with commas, in small or large letters.",
        needs=OF_FILES,
    )
    join_spellings: bool = setting(
        False,
        "Joins classes, categories and clients of a table that differ in how they are spelled only, as cat and Cat.",
        needs=OF_FILES,
    )
    truth_names: str = setting(
        WRITTEN,
        "What classes yes and no, or true and false, of a text table are called: as they are written, or false and "
        "true, as earlier versions did.",
        choices=(WRITTEN, FALSE_TRUE),
        needs=OF_FILES,
        of_old_runs=FALSE_TRUE,
    )
    date_form: str = setting(
        AUTO,
        "Order of day, month and year in dates that order rows; auto: by all of them; number: numbers are no dates.",
        choices=(AUTO, YEAR_FIRST, DAY_FIRST, MONTH_FIRST, NUMBER),
        needs=OF_FILES,
        of_old_runs=NUMBER,
    )
    categories: str = setting(
        "one_hot", "How text in the features of a table becomes numbers.", choices=CATEGORIES, needs=OF_FILES
    )
    decimal_mark: str = setting(
        AUTO,
        "Which mark begins the decimals of the numbers in a table's text; auto: told from all of them.",
        choices=DECIMAL_MARKS,
        needs=OF_FILES,
    )
    window: int = setting(
        0, "Rows of a time series that make one example; 0: each row is one.", minimum=0, needs=OF_FILES
    )
    window_step: int = setting(
        0,
        "Rows from the start of a window to the start of the next; 0: as long as a window.",
        minimum=0,
        needs=OF_WINDOWS,
    )
    shared_rows: str = setting(
        LEAVE_OUT,
        "Windows of a series that share rows with one of its validation or test part: leave them out of what comes "
        "before, or keep them, as earlier versions did.",
        choices=(LEAVE_OUT, KEEP),
        needs=OF_WINDOWS,
        of_old_runs=KEEP,
    )


def quote_name(name: str) -> str:
    """A column's name as a flag that takes several has it: in quotes if it holds a comma or a quote."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"' if "," in name or '"' in name else name


def split_names(value: str) -> tuple[str, ...]:
    """The names of a flag that takes several: commas between them, a name with a comma in quotes."""
    rows = list(csv.reader([value], skipinitialspace=True))
    return tuple(name.strip() for name in rows[0] if name.strip()) if rows else ()
