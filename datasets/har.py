"""UCI HAR: 30 people, six activities, a phone at the waist; 7,352 train and 2,947 test windows of 2.56 s.

Source: Anguita et al., A Public Domain Dataset for Human Activity Recognition Using Smartphones, ESANN 2013 (its
authors ask for the citation and non-commercial use). Read from `har.npz` (with `har_inertial.npz` for the raw windows),
the official `UCI HAR Dataset/` folder of text files, or its zip. The zip that the host serves holds a second zip. The
names of the 561 features are those of the official `features.txt`, which may lie beside `har.npz`, or in the official
folder there.

The host publishes no digest; the one below is what public records of the archive agree on. In addition, row counts,
columns, class counts and subjects are compared with the official ones, whatever the container.
"""

import contextlib
import dataclasses
import functools
import io
import os
import pathlib
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable

import numpy as np

from datasets.arrays import ArrayDataset, TrainBlocks, make_array_dataset
from datasets.dataset import DatasetLocation, DatasetOptions
from datasets.download import KnownFiles, RemoteFile, look_for
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat, Preprocessing
from datasets.formats.npz import read_npz_file
from datasets.layouts import describe_examples
from datasets.options import BOUTS

ACTIVITY_NAMES = ("WALKING", "WALKING_UPSTAIRS", "WALKING_DOWNSTAIRS", "SITTING", "STANDING", "LAYING")
TRAIN_SUBJECTS = (1, 3, 5, 6, 7, 8, 11, 14, 15, 16, 17, 19, 21, 22, 23, 25, 26, 27, 28, 29, 30)


def name_subjects(subjects: Iterable[int]) -> tuple[str, ...]:
    """Names of the people from their numbers 1..30: "subject_01" and so on."""
    return tuple(f"subject_{subject:02}" for subject in subjects)


CHANNELS = tuple(f"{signal}_{axis}" for signal in ("body_acc", "body_gyro", "total_acc") for axis in "xyz")
CHANNEL_UNITS = (*("g",) * 3, *("rad/s",) * 3, *("g",) * 3)
SUBJECT_NAMES = name_subjects(TRAIN_SUBJECTS)
HAR_FORMATS = {
    "statistics": ExampleFormat(
        (561, 1), "float32", ACTIVITY_NAMES, Preprocessing(feature_range=(-1.0, 1.0)), are_features=True
    ),
    "inertial": ExampleFormat(
        (128, 9), "float32", ACTIVITY_NAMES,
        feature_names=CHANNELS, feature_units=CHANNEL_UNITS,
    ),
}  # fmt: skip
FOLDER_NAME = "UCI HAR Dataset"
NPZ_FILES = {"statistics": "har.npz", "inertial": "har_inertial.npz"}
REMOTE_FILE = RemoteFile(
    "human+activity+recognition+using+smartphones.zip",
    ("https://archive.ics.uci.edu/static/public/240/human+activity+recognition+using+smartphones.zip",),
    "c00b803081a5c797cd5e4b83700a9810b38d53d9d84e01917e090e1fdbc81031",
)
# The official file has 15,785 bytes.
NAMES_FILE, MOST_NAME_BYTES = "features.txt", 2**20
ZIP_FILES = (f"{FOLDER_NAME}.zip", REMOTE_FILE.name)
PARTS = ("train", "test")
OVERLAP = 1  # windows after one that share samples with it: they overlap by half
OVERLAP_NOTE = (
    "windows overlap by half, so that a person's validation and test windows, which are drawn one by one, share "
    "samples with windows that are trained on; --har_split=bouts --partition=natural holds out whole bouts"
)
CLASS_COUNTS = {"train": (1226, 1073, 986, 1286, 1374, 1407), "test": (496, 471, 420, 491, 532, 537)}

# The arrays of a source: keys x_train, y_train, subject_train and the same for test; labels 1..6, subjects 1..30.
_Arrays = dict[str, np.ndarray]


def choose_har_format(options: DatasetOptions) -> ExampleFormat:
    """The format of the features asked for."""
    return HAR_FORMATS[options.har_features]


def _look(folder: str, features: str) -> str | None:
    """The npz file, folder or zip of a folder that has these features."""
    # The raw windows are stored without labels: row k is row k of har.npz.
    is_labelled = os.path.isfile(os.path.join(folder, NPZ_FILES["statistics"]))
    return look_for(*((NPZ_FILES[features],) if is_labelled else ()), FOLDER_NAME, *ZIP_FILES)(folder)


HAR_FILES = {
    features: KnownFiles(
        "har", functools.partial(_look, features=features), (REMOTE_FILE,), f"{npz_file} or '{ZIP_FILES[0]}'"
    )
    for features, npz_file in NPZ_FILES.items()
}


def locate_har(data_dir: str | None) -> DatasetLocation:
    """Where the files lie, for the doctor. The statistics are what a run without further flags needs."""
    sources = {features: files.find(data_dir) for features, files in HAR_FILES.items()}
    found = ", ".join(dict.fromkeys(filter(None, sources.values())))
    if found and not sources["inertial"]:
        found += f"; for the raw windows put {NPZ_FILES['inertial']} beside it"
    return HAR_FILES["statistics"]._replace(look=lambda folder: found).locate(data_dir)


def load_har(options: DatasetOptions) -> ArrayDataset:
    """UCI HAR with its official train and test subjects; float32, clients are the 21 train subjects.

    "statistics" are the 561 official features in [-1, 1], shape (561, 1), with their names if `features.txt` is there;
    "inertial" the raw windows, shape (128 steps, 9 channels), acceleration in g and angular velocity in rad/s, without
    a bound. With `har_split="bouts"`, windows of a bout belong together.

    Raises:
      DatasetError: a source is missing and cannot be downloaded, or is damaged, truncated or not UCI HAR.
    """
    example_format, features = choose_har_format(options), options.har_features
    source = HAR_FILES[features].find_or_fetch(options)
    arrays, text = _read_source(source, features)
    names, notes = _name_features(source, text) if features == "statistics" else (example_format.feature_names, ())
    for part in PARTS:
        _check_part(source, arrays, part, features)
    # The parts are divided by people: others would mean another division.
    if set(arrays["subject_train"].tolist()) != set(TRAIN_SUBJECTS):
        raise DatasetError(f"{source}: the train subjects are not UCI HAR's")
    train, test = (
        (arrays[f"x_{part}"].reshape(-1, *example_format.input_shape), arrays[f"y_{part}"].astype(np.int32) - 1)
        for part in PARTS
    )
    subjects = np.array(name_subjects(arrays["subject_train"].tolist()))
    example_format = dataclasses.replace(example_format, feature_names=names)
    if options.har_split != BOUTS:
        return make_array_dataset("har", train, test, example_format, subjects, notes=(*notes, OVERLAP_NOTE))
    blocks = TrainBlocks(find_bouts(arrays["subject_train"], train[1]), OVERLAP)
    described = describe_examples(example_format.input_shape, example_format.preprocessing)
    reading = f"{described}; {blocks.values[-1] + 1:,} bouts, of which whole ones are held out"
    return make_array_dataset("har", train, test, example_format, subjects, reading=reading, notes=notes, blocks=blocks)


def find_bouts(subjects: np.ndarray, activities: np.ndarray) -> np.ndarray:
    """The bout of each window, from 0: a run of windows of one person and activity in the official order.

    Args:
      subjects: integers, shape (windows,).
      activities: likewise.
    """
    begins = (np.diff(subjects.astype(np.int64)) != 0) | (np.diff(activities.astype(np.int64)) != 0)
    return np.concatenate([[0], np.cumsum(begins)])


def _name_features(source: str, text: bytes | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(a name for each of the statistics, notes) from `features.txt`; no names without it, or if it is another file.

    The official names are not all different: one that repeats has the feature's number, from 1, in brackets.
    """
    if text is None:
        return (), ()
    number = HAR_FORMATS["statistics"].input_shape[0]
    lines = [line.split(maxsplit=1) for line in text.decode("utf-8-sig", "replace").splitlines() if line.strip()]
    if [line[0] for line in lines if len(line) == 2] != [str(position) for position in range(1, number + 1)]:
        return (), (
            f"{NAMES_FILE} of {source} has not a line of a number and a name for each of the {number} features, which "
            f"so have no names; put the official one there",
        )
    names = [line[1].strip() for line in lines]
    counts = Counter(names)
    return tuple(f"{name} ({position})" if counts[name] > 1 else name for position, name in enumerate(names, 1)), ()


def _read_source(source: str, features: str) -> tuple[_Arrays, bytes | None]:
    """The arrays, and what `features.txt` holds; None without it."""
    root = pathlib.Path(source)
    if source.endswith(".npz"):
        label_keys = [f"{kind}_{part}" for kind in ("y", "subject") for part in PARTS]
        labels = read_npz_file(str(root.with_name(NPZ_FILES["statistics"])), label_keys)
        arrays = {**labels, **read_npz_file(source, [f"x_{part}" for part in PARTS])}
        texts = map(_read_names, (root.parent, root.parent / FOLDER_NAME))
        return arrays, next((text for text in texts if text is not None), None)
    if root.is_dir():
        return _read_texts(source, root, features), _read_names(root)
    try:
        with contextlib.ExitStack() as stack:
            archive = stack.enter_context(zipfile.ZipFile(source))
            if ZIP_FILES[0] in archive.namelist():
                archive = stack.enter_context(zipfile.ZipFile(io.BytesIO(archive.read(ZIP_FILES[0]))))
            folder = zipfile.Path(archive, f"{FOLDER_NAME}/")
            return _read_texts(source, folder, features), _read_names(folder)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise DatasetError(f"{source}: damaged or truncated zip ({error}); delete it to have it downloaded") from None


def _read_names(folder: "pathlib.Path | zipfile.Path") -> bytes | None:
    try:
        with (folder / NAMES_FILE).open("rb") as file:
            return file.read(MOST_NAME_BYTES)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None


def _read_texts(source: str, folder: "pathlib.Path | zipfile.Path", features: str) -> _Arrays:
    """The arrays of the official text files."""

    def read(name: str, dtype: type) -> np.ndarray:
        try:
            with (folder / name).open("rb") as file:
                return np.loadtxt(file, dtype, ndmin=2)
        except FileNotFoundError:
            raise DatasetError(f"{source}: {name} is missing; unpack the official zip again") from None
        except ValueError as error:
            raise DatasetError(f"{source}: {name} is damaged or truncated ({error})") from None

    arrays = {}
    for part in PARTS:
        if features == "statistics":
            arrays[f"x_{part}"] = read(f"{part}/X_{part}.txt", np.float32)
        else:
            signals = [read(f"{part}/Inertial Signals/{channel}_{part}.txt", np.float32) for channel in CHANNELS]
            if len({signal.shape for signal in signals}) > 1:
                raise DatasetError(f"{source}: the files of {part}/Inertial Signals differ in their numbers of rows")
            arrays[f"x_{part}"] = np.stack(signals, axis=-1)
        for kind in ("y", "subject"):
            arrays[f"{kind}_{part}"] = read(f"{part}/{kind}_{part}.txt", np.int32)[:, 0]
    return arrays


def _check_part(source: str, arrays: _Arrays, part: str, features: str) -> None:
    x, y, subject = (arrays[f"{kind}_{part}"] for kind in ("x", "y", "subject"))
    num_rows = sum(CLASS_COUNTS[part])
    for kind, array in (("x", x), ("y", y), ("subject", subject)):
        if len(array) != num_rows:
            raise DatasetError(f"{source}: {kind}_{part} has {len(array)} rows, expected {num_rows}: truncated?")
    shape = HAR_FORMATS[features].input_shape
    if x.dtype != np.float32 or x.size != num_rows * np.prod(shape):
        raise DatasetError(f"{source}: x_{part} is {x.dtype} {x.shape}, expected float32 with {shape} a row")
    if y.dtype.kind not in "iu" or tuple(np.bincount(y.clip(0), minlength=7)) != (0, *CLASS_COUNTS[part]):
        raise DatasetError(f"{source}: the labels of the {part} part are not UCI HAR's (class counts differ)")
    value_range = HAR_FORMATS[features].preprocessing.feature_range
    if value_range and not (x.min() >= value_range[0] and x.max() <= value_range[1]):
        raise DatasetError(f"{source}: features from {x.min()} to {x.max()}, expected UCI HAR's, within {value_range}")
