"""The flags of data sets, of users' own files and of how they are read, as groups of `RunConfig`. No TensorFlow."""

import dataclasses
import os

from datasets.catalog import BUILDING_HETEROGENEITY, DATASET_NAMES, HAR_FEATURES, OCCUPANCY_FEATURES, is_users_own
from datasets.dataset import (
    CATEGORIES,
    CIFAR100_FORMS,
    EMNIST_LABELS,
    IMAGE_COLOURS,
    MISSING,
    STACKOVERFLOW_TASKS,
    DatasetOptions,
)
from datasets.file_formats import AUTO, FORMAT_NAMES
from datasets.layouts import AS_STORED, BYTES, LAYOUTS, SCALE_FORM
from models.task_kinds import LOSSES, TASK_NAMES
from tff_algos.settings.config_fields import Needs, Setting, needs_value, setting

NONE, FEDERATED, CLIENT = "none", "federated", "client"
STANDARDIZATIONS = (NONE, FEDERATED, CLIENT)
OF_FILES = Needs("data", bool, "--data=<your file or folder>")
OF_ARRAYS = Needs("dataset", lambda name: name in ("files", "npz"), "--data=<your file or folder>")
OF_OWN_DATA = Needs("dataset", is_users_own, "--data=<your file>")
HUBER = "huber"
TEXT_DATASETS = ("shakespeare", "stackoverflow")


def _of_files_or(dataset: str) -> Needs:
    """For what concerns a data set that may also come as a file of one's own."""
    return Needs("dataset", lambda name: name in ("files", dataset), f"--dataset={dataset}")


OF_FILES_OR_TEXT = Needs(
    "dataset", lambda name: name in ("files", *TEXT_DATASETS), "--data=<your file>, or --dataset=shakespeare"
)


def _of_files(default, help_text: str, **limits) -> Setting:
    return setting(default, help_text, needs=OF_FILES, **limits)


@dataclasses.dataclass(frozen=True)
class DataFlags:
    """Data sets"""

    dataset: str = setting(
        "digits",
        f"Data set: {', '.join(DATASET_NAMES)}, or module:OBJECT of your own; digits and building need no download, "
        f"npz is your own file.",
    )
    data_dir: str = setting(
        lambda: os.environ.get("FL_DATA_DIR", ""),
        "Folder of the data sets' files; by default the variable FL_DATA_DIR.",
    )
    client_dir: str = setting("", "Folder of the client files; empty: a cache folder.")
    har_features: str = setting(
        "statistics",
        "Input of har: the 561 statistics, or the windows of shape (128, 9).",
        choices=HAR_FEATURES,
        needs=needs_value("dataset", "har"),
    )
    building_num_sensors: int = setting(
        DatasetOptions.building_num_sensors,
        "Sensors of building, each a client.",
        minimum=1,
        maximum=10**5,
        needs=needs_value("dataset", "building"),
    )
    building_heterogeneity: str = setting(
        DatasetOptions.building_heterogeneity,
        "How much the rooms and sensors of building differ.",
        choices=BUILDING_HETEROGENEITY,
        needs=needs_value("dataset", "building"),
    )
    building_csv: str = setting(
        "",
        "File to save the readings of building to, as CSV; empty: not saved.",
        needs=(needs_value("dataset", "building"), Needs("smoke", lambda smoke: not smoke, "--nosmoke")),
    )
    occupancy_client_hours: int = setting(
        DatasetOptions.occupancy_client_hours,
        "Hours of readings that make a client of occupancy.",
        minimum=1,
        needs=needs_value("dataset", "occupancy"),
    )
    occupancy_features: str = setting(
        DatasetOptions.occupancy_features,
        "Input of occupancy: two of its readings, or all five.",
        choices=OCCUPANCY_FEATURES,
        needs=needs_value("dataset", "occupancy"),
    )
    emnist_labels: str = setting(
        "digits",
        "Classes of emnist: the 10 digits, or all 62.",
        choices=EMNIST_LABELS,
        needs=_of_files_or("emnist"),
    )
    cifar100_form: str = setting(
        "whole",
        "Images of cifar100: whole, or the middle 24 x 24 pixels, each image standardised, as in TFF's baseline.",
        choices=CIFAR100_FORMS,
        needs=_of_files_or("cifar100"),
    )
    stackoverflow_task: str = setting(
        "next_word",
        "What is predicted from stackoverflow.",
        choices=STACKOVERFLOW_TASKS,
        needs=_of_files_or("stackoverflow"),
    )


@dataclasses.dataclass(frozen=True)
class OwnDataFlags:
    """Your own data"""

    data: str = setting(
        "",
        "Your own file or folder: CSV, LEAF, TFF's SQLite, parquet, npz, images; see docs/data_sets.md.",
    )
    data_format: str = _of_files(AUTO, "Format of --data; auto: by looking.", choices=(AUTO, *FORMAT_NAMES))
    client_column: str = _of_files(
        "",
        "Column of a table that names the client of each row; empty: guessed; none: there is no such column.",
    )
    label_column: str = _of_files("", "Column of a table to predict, or several with commas; empty: guessed.")
    feature_columns: str = _of_files("", "Columns of a table to predict from, with commas; empty: all others.")
    time_column: str = _of_files(
        "", "Column of a table that orders a client's rows; empty: guessed; none: there is no such column."
    )
    test_column: str = _of_files(
        "", "Column of a table that marks test rows by true, 1 or test; empty: guessed; none: there is no such column."
    )
    missing: str = _of_files("refuse", "What to do with missing values in a table.", choices=MISSING)
    categories: str = _of_files("one_hot", "How text in the features of a table becomes numbers.", choices=CATEGORIES)
    window: int = _of_files(0, "Rows of a time series that make one example; 0: each row is one.", minimum=0)
    window_step: int = setting(
        0,
        "Rows from the start of a window to the start of the next; 0: as long as a window.",
        minimum=0,
        needs=Needs("window", bool, "--window=<rows>"),
    )
    image_size: int = setting(
        0,
        "Side in pixels that images of files are resized to; 0: as they are, 84 for celeba.",
        minimum=0,
        maximum=4096,
        needs=_of_files_or("celeba"),
    )
    image_colour: str = setting(
        "auto",
        "Whether images of files are read in grey or in colour.",
        choices=IMAGE_COLOURS,
        needs=_of_files_or("celeba"),
    )
    sequence_length: int = setting(
        DatasetOptions.sequence_length,
        "Tokens in an example of text; 0: as the data set's protocol says.",
        minimum=0,
        needs=OF_FILES_OR_TEXT,
    )
    vocabulary_size: int = setting(
        DatasetOptions.vocabulary_size,
        "Words that a model of text knows; 0: as the data set's protocol says.",
        minimum=0,
        needs=_of_files_or("stackoverflow"),
    )
    most_test_examples: int = setting(
        100_000,
        "Most examples in the global test set of data that are read client by client, drawn by the seed; 0: all.",
        minimum=0,
    )
    standardize: str = setting(
        NONE,
        "Scales features. federated: by the mean and deviation over all clients; client: each client by its own.",
        choices=STANDARDIZATIONS,
    )
    npz: str = setting("", "Your own file for --dataset=npz: x, y, and optionally client, x_test, y_test.")
    layout: str = setting(
        AUTO,
        "How the axes of your own arrays are read: features, steps and channels, pixels; auto: by shape and dtype.",
        choices=LAYOUTS,
        needs=OF_ARRAYS,
        of_old_runs=AS_STORED,
    )
    scale: str = setting(
        AUTO,
        f"Factor on your own numbers: {SCALE_FORM}; auto: 1/255 for images in uint8, bytes: for all in uint8.",
        needs=OF_ARRAYS,
        of_old_runs=BYTES,
    )
    task: str = setting(
        AUTO,
        "Task that your own labels are for; auto: guessed from their form.",
        choices=(AUTO, *TASK_NAMES),
        needs=OF_OWN_DATA,
        of_old_runs="classification",
    )
    loss: str = setting(
        AUTO,
        "Loss that a regression minimises; auto: squared errors. Other tasks have one loss each.",
        choices=(AUTO, *LOSSES),
        needs=OF_OWN_DATA,
    )
    huber_delta: float = setting(
        1.0,
        "Error above which the Huber loss is linear, in standard deviations of the labels.",
        above=0,
        needs=needs_value("loss", HUBER),
    )
