"""`--data` on an npz file, and `--dataset=npz`.

A user's own data set: one npz file.

Arrays of the file:
  x: examples, any numeric dtype, shape (examples, ...); `--layout` and `--scale` say how they are read, see
    `datasets.layouts`.
  y: labels: integers 0..C-1, strings, or one-hot rows; of other tasks, see `datasets.npz_labels`.
  client: optional, who holds each example: integers or strings, shape (N,); the `natural` partition uses it.
  x_test, y_test: optional global test set; without it a stratified fifth of x is held out.
  class_names: optional strings, one for each label; without it integer labels must have no gap.
"""

import contextlib
import itertools
import math
import os
import tokenize
import zipfile
import zlib
from collections.abc import Collection, Iterator
from typing import IO, NamedTuple

import numpy as np

from datasets.arrays import (
    ArrayDataset,
    check_examples,
    convert_examples,
    convert_values,
    hold_out_test_part,
    make_array_dataset,
)
from datasets.data_notes import note_layout
from datasets.dataset import DatasetOptions, refuse_options
from datasets.errors import DatasetError
from datasets.example_format import LABEL_KINDS, NEXT_TOKEN, ExampleFormat
from datasets.file_formats import FileFormat
from datasets.layouts import AUTO, FEATURES, TOKENS, arrange, choose_preprocessing, describe_examples, resolve_layout
from datasets.names import name_some
from datasets.npz_labels import (
    convert_labels,
    guess_task,
    read_class_names,
    read_labels,
    read_names,
    read_task_labels,
    standardise_labels,
)
from datasets.options import ImageOptions, TableOptions, TextOptions
from files.reading import describe

# What reading a damaged file can raise; RuntimeError is that of an encrypted entry.
_DAMAGES = (
    zipfile.BadZipFile,
    zlib.error,
    tokenize.TokenError,
    EOFError,
    OSError,
    ValueError,
    TypeError,
    RuntimeError,
    OverflowError,
)
_BY_DATA = "launch.train reads such a file by --data=PATH"
_IMAGES_BY_DATA = "launch.train reads a folder of images by --data=PATH"
_FOLDER_BY_DATA = "launch.train reads a folder by --data=PATH"
# (where, bytes there, what such a file is, what to do with it) of files that are given in place of an npz file.
_OTHER_KINDS = (
    (0, b"\x89HDF\r\n\x1a\n", "an HDF5 file", "read it with h5py"),
    (0, b"MATLAB 7", "a MATLAB file", "read it with h5py"),
    (0, b"MATLAB 5", "a MATLAB file", "read it with scipy.io.loadmat"),
    (0, b"PAR1", "a Parquet file", _BY_DATA),
    (0, b"ARROW1", "an Arrow file", _BY_DATA),
    (0, b"\x1f\x8b", "a gzip file", "launch.train reads a table in it by --data=PATH; others are unpacked first"),
    (0, b"BZh", "a bzip2 file", "unpack it first"),
    (0, b"\xfd7zXZ", "an xz file", "unpack it first"),
    (257, b"ustar", "a tar archive", "unpack it first"),
    (0, b"\x80", "a pickle", "load it where you trust it"),
    (0, b"\xff\xd8\xff", "a JPEG image", _IMAGES_BY_DATA),
    (0, b"\x89PNG", "a PNG image", _IMAGES_BY_DATA),
    (0, b"\x93NUMPY", "a single array (npy)", "load it with numpy.load"),
)
_SAVE = "save its arrays with numpy.savez"
_IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp")
_MOST_LISTED = 2000
_MOST_NAMED = 12


def read_npz_file(
    path: str, required: Collection[str], optional: Collection[str] = (), ignore_unknown: bool = True
) -> dict[str, np.ndarray]:
    """The named arrays of an npz file; nothing in it is ever unpickled.

    Raises:
      DatasetError: no such file, damaged, of another kind, an array missing, no array, declared larger than the file
        can hold, or of Python objects.
    """
    expected = ", ".join(required or optional)
    with explain_damages(path, expected):
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise DatasetError(f"{path}: a single array (npy), expected an npz file with {expected}; {_SAVE}")
        with file:
            there = file.files
            if missing := [key for key in required if key not in there]:
                shown = name_some(there, _MOST_NAMED) or "none"
                raise DatasetError(f"{path}: array {missing[0]!r} is missing; it has {shown}")
            known = (*required, *optional)
            unknown = [key for key in there if key not in known]
            if unknown and not ignore_unknown:
                raise DatasetError(f"{path}: unknown array {unknown[0]!r}, expected {', '.join(known)}")
            wanted = [key for key in known if key in there]
            for key in wanted:
                _check_header(path, file.zip, key)
            return {key: file[key] for key in wanted}


@contextlib.contextmanager
def explain_damages(path: str, expected: str) -> Iterator[None]:
    """Around the reading of an npz file: what is raised becomes one line.

    Args:
      path: of the file.
      expected: the arrays that it should have, in words.

    Raises:
      DatasetError: see `read_npz_file`.
    """
    if os.path.isdir(path):
        found = (name for _, _, names in os.walk(path) for name in names)
        of_images = any(name.lower().endswith(_IMAGE_SUFFIXES) for name in itertools.islice(found, _MOST_LISTED))
        kind = "a folder of images" if of_images else "a folder"
        raise DatasetError(f"{path}: {kind}, expected an npz file with {expected}; {_FOLDER_BY_DATA}")
    # NumPy would wait at a pipe without end.
    if os.path.exists(path) and not os.path.isfile(path):
        raise DatasetError(f"{path}: no regular file, expected an npz file with {expected}")
    try:
        yield
    except FileNotFoundError:
        raise DatasetError(f"{path}: no such file") from None
    except DatasetError:
        raise
    except MemoryError:
        raise DatasetError(f"{path}: its arrays do not fit into the memory of this machine") from None
    except _DAMAGES as error:
        raise DatasetError(f"{path}: {_explain(path, expected, error)}") from None


def list_entries(path: str) -> list[str]:
    """The names of the entries of a zip archive; none if it is no such file or cannot be read."""
    if os.path.isfile(path):
        with contextlib.suppress(*_DAMAGES), zipfile.ZipFile(path) as archive:
            return archive.namelist()
    return []


def has_array(path: str, key: str) -> bool:
    """Whether the list of an npz file's arrays names this one; False if the file cannot be read."""
    return not {key, f"{key}.npy"}.isdisjoint(list_entries(path))


def _explain(path: str, expected: str, error: Exception) -> str:
    """Why an npz file could not be read: what it is in truth, if its first bytes tell, else what failed."""
    try:
        with open(path, "rb") as file:
            start = file.read(4096)
    except OSError as failure:
        return f"cannot be read ({describe(failure)})"
    if not start:
        return f"empty, 0 bytes; expected an npz file with {expected}"
    for offset, signature, kind, fix in _OTHER_KINDS:
        if start.startswith(signature, offset):
            save = "" if "--data=" in fix else f" and {_SAVE}"
            return f"{kind}, expected an npz file with {expected}; {fix}{save}"
    if all(byte >= 32 or byte in b"\t\n\r\f" for byte in start):
        return f"a text file, such as CSV, expected an npz file with {expected}; {_BY_DATA}"
    reason = "another format" if "pickle" in str(error) else error
    return f"damaged, truncated or not an npz file ({reason})"


def read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype]:
    """(shape, dtype) that the header of an entry declares; the array follows it. Raises one of `_DAMAGES`."""
    is_old = np.lib.format.read_magic(stream) == (1, 0)
    read = np.lib.format.read_array_header_1_0 if is_old else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    return shape, dtype


def _check_header(path: str, archive: zipfile.ZipFile, key: str) -> None:
    """Refuses an entry before NumPy trusts its header, which would allocate whatever shape is declared there.

    Raises:
      DatasetError: the entry is no array, holds Python objects, or declares more than it has bytes for.
    """
    entry = archive.getinfo(key if key in archive.namelist() else f"{key}.npy")
    with archive.open(entry) as stream:
        prefix = stream.read(len(np.lib.format.MAGIC_PREFIX))
    if prefix != np.lib.format.MAGIC_PREFIX:
        raise DatasetError(f"{path}: {key!r} is no array; save the file with numpy.savez")
    with archive.open(entry) as stream:
        shape, dtype = read_header(stream)
    # The size of Python objects in the file says nothing.
    if dtype.hasobject:
        ways = f"{key}.astype(float)" if key.startswith("x") else f"{key}.astype(str), or {key}.astype(int) for numbers"
        raise DatasetError(
            f"{path}: array {key!r} has dtype {dtype} (Python objects, as columns of pandas have), which is not read; "
            f"save {ways}"
        )
    # Examples without values have no bytes, yet a giant number of them would be as bad.
    num_bytes = max(math.prod(shape) * dtype.itemsize, *shape[:1], 0)
    if min(shape, default=0) < 0 or num_bytes > entry.file_size:
        raise DatasetError(
            f"{path}: array {key!r} is declared as {dtype} {shape}, but its entry has {entry.file_size:,} bytes"
        )


_REQUIRED_ARRAYS = ("x", "y")
_OPTIONAL_ARRAYS = ("client", "x_test", "y_test", "class_names")
ARRAYS = _REQUIRED_ARRAYS + _OPTIONAL_ARRAYS  # all that a file may hold
_TEST_ARRAYS = ("x_test", "y_test")
TASKS_WITHOUT_CLASSES = tuple(name for name, kind in LABEL_KINDS.items() if not kind.is_by_class)


class NpzExamples(NamedTuple):
    """Examples of a file in the form that a model takes.

    Attributes:
      x: uint8 or float32, shape (examples, *shape of an example).
      y: their labels as the file has them, int64 or text, shape (examples,); where these are no classes, in the dtype
        that the task stores, shape (examples, ...).
      class_names: those of the file; None if it names none.
    """

    x: np.ndarray
    y: np.ndarray
    class_names: tuple[str, ...] | None


def choose_partition(options: DatasetOptions) -> str:
    """As `choose_npz_partition`, of the file of `--npz`."""
    return choose_npz_partition(os.path.expanduser(options.npz), options) if options.npz else ""


def choose_npz_partition(path: str, options: DatasetOptions) -> str:
    """ "natural" if the file says whose the examples are, "iid" if its labels are no classes.

    Else it is "", which leaves it to the algorithm.
    """
    if has_array(path, "client"):
        return "natural"
    task = options.task
    if not task:
        # What is wrong is said when the file is loaded.
        with contextlib.suppress(DatasetError):
            y = read_npz_file(path, ("y",))["y"]
            x = read_npz_file(path, ("x",))["x"] if y.ndim == 2 and y.dtype.kind in "iu" else None
            task = guess_task(y, x, has_array(path, "class_names"))[0]
    return "iid" if task in TASKS_WITHOUT_CLASSES else ""


def load_npz(options: DatasetOptions) -> ArrayDataset:
    """The catalog's loader; see `open_npz`. Raises DatasetError also if no file is named."""
    if not options.npz:
        raise DatasetError("dataset npz: name your file with --npz (arrays x and y, see the README)")
    return open_npz(os.path.expanduser(options.npz), options)


def open_npz(path: str, options: DatasetOptions) -> ArrayDataset:
    """A user's file (see the module) as checked arrays.

    Examples in uint8 stay so, every other dtype becomes float32; both are scaled in the graph, by what `--scale` says.
    Tokens are uint8 or int32, and not scaled. A regression's labels are standardised in the graph, by mean and
    deviation of the train part. Without `x_test` a stratified fifth, drawn from the seed, is held out; a client keeps
    an example to train on wherever another client can give one of that class to the test part.

    Raises:
      DatasetError: the file cannot be read or what it holds does not fit together.
    """
    refuse_options(path, "an npz file", options, TableOptions, ImageOptions, TextOptions)
    layout = options.layout
    arrays = read_npz_file(path, _REQUIRED_ARRAYS, _OPTIONAL_ARRAYS, ignore_unknown=False)
    if ("x_test" in arrays) != ("y_test" in arrays):
        raise DatasetError(f"{path}: x_test and y_test go together, only one is there")
    for key in ("x", "x_test"):
        if key in arrays:
            check_examples(path, key, arrays[key])
    for key, examples in (("y", "x"), ("client", "x"), ("y_test", "x_test")):
        # Before labels are read, which are not what is wrong then.
        if key in arrays and arrays[key].shape[:1] != arrays[examples].shape[:1]:
            raise DatasetError(
                f"{path}: {key} has shape {arrays[key].shape}, {examples} has {arrays[examples].shape}; "
                f"expected one entry of {key} for each example"
            )
    client = read_names(f"{path}: client", arrays["client"]) if "client" in arrays else None
    found = read_task_labels(path, arrays, options.task)
    y, y_test, labels = found.y, found.y_test, found.format
    is_uint8, shape = arrays["x"].dtype == np.uint8, arrays["x"].shape[1:]
    resolved = TOKENS if labels.task == NEXT_TOKEN and layout == AUTO else resolve_layout(layout, shape, is_uint8)
    x = convert_examples(path, "x", arrays["x"], resolved, client)
    num_clients = 0 if client is None else len(np.unique(client))
    if y_test is None:
        classes = y if labels.is_by_class else np.zeros(len(y), np.int64)
        train_rows, held_out = hold_out_test_part(classes, 0.2, options.seed, client)
        if not len(held_out):
            noun = "no class has" if labels.is_by_class else "it does not have"
            raise DatasetError(f"{path}: {noun} 3 examples, so no fifth can be held out; give x_test and y_test")
        train, test = (x[train_rows], y[train_rows]), (x[held_out], y[held_out])
        client = None if client is None else client[train_rows]
    else:
        train, test = (x, y), (convert_examples(path, "x_test", arrays["x_test"], resolved), y_test)
    labels.check_names("npz", found.class_names)
    is_tokens = resolved == TOKENS
    preprocessing = choose_preprocessing(options.scale, x.shape[1:], is_uint8, is_tokens)
    reading = describe_examples(x.shape[1:], preprocessing, resolved)
    example_format = ExampleFormat(
        x.shape[1:], x.dtype.name, found.class_names, preprocessing, labels, is_tokens, resolved == FEATURES
    )
    return make_array_dataset(
        "npz",
        train,
        test,
        standardise_labels(example_format, train[1]),
        client,
        num_clients_left_out=num_clients - (0 if client is None else len(np.unique(client))),
        reading="; ".join(filter(None, (reading, found.reading))),
        notes=() if is_tokens else note_layout(layout, shape, is_uint8),
    )


def read_examples(path: str, example_format: ExampleFormat, layout: str = AUTO) -> NpzExamples:
    """A file's test set, or x and y if it has none, in the form of a data set that is there already.

    Args:
      path: the file; `x_test` and `y_test` alone will do.
      example_format: of the data set.
      layout: that of the data set; examples that have its shape need none.

    Raises:
      DatasetError: the file cannot be read, or its examples or labels are not of that form.
    """
    arrays = read_npz_file(path, (), (*_REQUIRED_ARRAYS, *_OPTIONAL_ARRAYS))
    keys = next((keys for keys in (_TEST_ARRAYS, _REQUIRED_ARRAYS) if arrays.keys() & set(keys)), _REQUIRED_ARRAYS)
    missing = [key for key in keys if key not in arrays]
    if missing:
        there = f"it has {', '.join(arrays)}" if arrays else "it has nothing that could be used"
        raise DatasetError(f"{path}: array {missing[0]!r} is missing; {there}; expected x_test and y_test, or x and y")
    x, labels, label = arrays[keys[0]], example_format.labels, f"{path}: {keys[1]}"
    if labels.is_by_class:
        y = read_labels(label, arrays[keys[1]])
    else:
        y = convert_labels(label, arrays[keys[1]], labels.task)
        labels.check_labels(label, y, len(y), 0)
    if not len(x) or len(y) != len(x):
        raise DatasetError(f"{path}: {len(x)} examples and {len(y)} labels, expected one label for each example")
    check_examples(path, keys[0], x)
    x = convert_values(path, keys[0], x, example_format.input_dtype)
    shape, given, class_names = example_format.input_shape, x.shape[1:], read_class_names(path, arrays)
    # The axes may have been arranged already, as the data set has them.
    with contextlib.suppress(DatasetError):
        arranged = arrange(x, resolve_layout(layout, given, x.dtype == np.uint8), path)
        if arranged.shape[1:] == shape:
            return NpzExamples(arranged, y, class_names)
    if given not in (shape, shape[:-1] if shape[-1] == 1 else shape):
        raise DatasetError(f"{path}: examples have the shape {given}, expected numbers of shape {shape}")
    return NpzExamples(x.reshape(-1, *shape), y, class_names)


def is_npz(path: str) -> bool:
    """Whether it is a zip archive of arrays."""
    if os.path.isfile(path) and path.endswith(".npz"):
        return True
    entries = list_entries(path)
    return bool(entries) and all(entry.endswith(".npy") for entry in entries)


FORMAT = FileFormat("an npz file of arrays", is_npz, open_npz, choose_npz_partition, rank=10)
