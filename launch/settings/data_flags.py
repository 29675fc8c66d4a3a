"""The flags of users' own files and of how data are read, as `RunConfig` declares them. Imports no TensorFlow."""

from datasets.dataset import (
    CATEGORIES,
    CIFAR100_FORMS,
    EMNIST_LABELS,
    IMAGE_COLOURS,
    MISSING,
    STACKOVERFLOW_TASKS,
    DatasetOptions,
)
from datasets.files.formats import AUTO, FORMAT_NAMES
from tff_algos.settings.config_fields import Needs, Setting, setting

NONE, FEDERATED, CLIENT = "none", "federated", "client"
STANDARDIZATIONS = (NONE, FEDERATED, CLIENT)
OF_FILES = Needs("data", bool, "--data=<your file or folder>")
OF_ARRAYS = Needs("dataset", lambda name: name in ("files", "npz"), "--data=<your file or folder>")
TEXT_DATASETS = ("shakespeare", "stackoverflow")


def _of_files_or(dataset: str) -> Needs:
    """For what concerns a data set that may also come as a file of one's own."""
    return Needs("dataset", lambda name: name in ("files", dataset), f"--dataset={dataset}")


OF_FILES_OR_TEXT = Needs(
    "dataset", lambda name: name in ("files", *TEXT_DATASETS), "--data=<your file>, or --dataset=shakespeare"
)


def _of_files(default, help_text: str, **limits) -> Setting:
    return setting(default, help_text, needs=OF_FILES, of_old_runs=default, **limits)


DATA = setting(
    "", "Your own file or folder: CSV, LEAF, TFF's SQLite, parquet, npz, images; see docs/data_sets.md.", of_old_runs=""
)
DATA_FORMAT = _of_files(AUTO, "Format of --data; auto: by looking.", choices=(AUTO, *FORMAT_NAMES))
CLIENT_COLUMN = _of_files(
    "", "Column of a table that says whose a row is; empty: guessed from the header, none: no such."
)
LABEL_COLUMN = _of_files("", "Column of a table to predict, or several with commas; empty: guessed, and said.")
FEATURE_COLUMNS = _of_files("", "Columns of a table to predict from, with commas; empty: all that are nothing else.")
TIME_COLUMN = _of_files("", "Column of a table by which a client's rows are in order; empty: guessed, none: no such.")
TEST_COLUMN = _of_files(
    "", "Column of a table that says by true, 1 or test which rows are the test; empty: guessed, none: no such."
)
MISSING_VALUES = _of_files("refuse", "What is done with missing values in a table.", choices=MISSING)
CATEGORY_FORM = _of_files("one_hot", "What text in the features of a table becomes.", choices=CATEGORIES)
WINDOW = _of_files(0, "Rows of a time series that make one example; 0: each row is one.", minimum=0)
WINDOW_STEP = setting(
    0,
    "Rows from the start of a window to the start of the next; 0: as long as a window.",
    minimum=0,
    needs=Needs("window", bool, "--window=<rows>"),
    of_old_runs=0,
)
IMAGE_SIZE = setting(
    0,
    "Side in pixels that images of files are resized to; 0: as they are, 84 for celeba.",
    minimum=0,
    maximum=4096,
    needs=_of_files_or("celeba"),
    of_old_runs=0,
)
IMAGE_COLOUR = setting(
    "auto",
    "Whether images of files are read in grey or in colour.",
    choices=IMAGE_COLOURS,
    needs=_of_files_or("celeba"),
    of_old_runs="auto",
)
SEQUENCE_LENGTH = setting(
    DatasetOptions.sequence_length,
    "Tokens in an example of text; 0: as the data set's own protocol has it.",
    minimum=0,
    needs=OF_FILES_OR_TEXT,
    of_old_runs=0,
)
VOCABULARY_SIZE = setting(
    DatasetOptions.vocabulary_size,
    "Words that a model of text knows; 0: as the data set's own protocol has it.",
    minimum=0,
    needs=_of_files_or("stackoverflow"),
    of_old_runs=0,
)
EMNIST_LABEL_SET = setting(
    "digits",
    "Classes of emnist: the 10 digits, or all 62.",
    choices=EMNIST_LABELS,
    needs=_of_files_or("emnist"),
    of_old_runs="digits",
)
CIFAR100_FORM = setting(
    "whole",
    "Images of cifar100: as they are, or the middle 24 x 24 pixels, standardised image by image, as TFF's baseline.",
    choices=CIFAR100_FORMS,
    needs=_of_files_or("cifar100"),
    of_old_runs="whole",
)
STACKOVERFLOW_TASK = setting(
    "next_word",
    "What is predicted from stackoverflow.",
    choices=STACKOVERFLOW_TASKS,
    needs=_of_files_or("stackoverflow"),
    of_old_runs="next_word",
)
MOST_TEST_EXAMPLES = setting(
    100_000,
    "Most examples in the global test set of data that are read client by client, drawn by the seed; 0: all.",
    minimum=0,
    of_old_runs=100_000,
)
STANDARDIZE = setting(
    NONE,
    "Scale features: federated: by means and deviations over all clients, in the model; client: each by its own.",
    choices=STANDARDIZATIONS,
    of_old_runs=NONE,
)
