"""A user's own data set: one npz file.

Arrays of the file:
  x: examples, any numeric dtype, shape (examples, ...): (N, features), (N, steps, channels), (N, H, W) or (N, H, W, C).
  y: labels, integers 0..C-1 or strings, shape (N,).
  client: optional, who holds each example: integers or strings, shape (N,); the `natural` partition uses it.
  x_test, y_test: optional global test set; without it a stratified fifth of x is held out.
  class_names: optional strings, one for each label; without it integer labels must have no gap.
"""

import math
import os
import tokenize
import zipfile
import zlib
from collections.abc import Collection

import numpy as np

from datasets.arrays import ArrayDataset, hold_out_test_part, make_array_dataset
from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.federated_data import Preprocessing

# What reading a damaged file can raise; RuntimeError is that of an encrypted entry.
DAMAGES = (
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
_REQUIRED_ARRAYS = ("x", "y")
_OPTIONAL_ARRAYS = ("client", "x_test", "y_test", "class_names")


def read_npz_file(
    path: str, required: Collection[str], optional: Collection[str] = (), ignore_unknown: bool = True
) -> dict[str, np.ndarray]:
    """The named arrays of an npz file; nothing in it is ever unpickled.

    Raises:
      DatasetError: no such file, damaged, not npz, an array missing, no array, declared larger than the file can hold,
        or of Python objects.
    """
    try:
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise DatasetError(
                f"{path}: a single array (npy), expected an npz file with {', '.join(required or optional)}"
            )
        with file:
            missing = [key for key in required if key not in file.files]
            if missing:
                raise DatasetError(f"{path}: array {missing[0]!r} is missing; it has {', '.join(file.files)}")
            unknown = [key for key in file.files if key not in (*required, *optional)]
            if unknown and not ignore_unknown:
                raise DatasetError(
                    f"{path}: unknown array {unknown[0]!r}, expected {', '.join((*required, *optional))}"
                )
            wanted = [key for key in (*required, *optional) if key in file.files]
            for key in wanted:
                _check_header(path, file.zip, key)
            return {key: file[key] for key in wanted}
    except FileNotFoundError:
        raise DatasetError(f"{path}: no such file") from None
    except DatasetError:
        raise
    except MemoryError:
        raise DatasetError(f"{path}: its arrays do not fit into the memory of this machine") from None
    except DAMAGES as error:
        if "Object arrays" in str(error):
            raise DatasetError(f"{path}: an array holds Python objects; save numbers or strings") from None
        reason = "another format" if "pickle" in str(error) else error
        raise DatasetError(f"{path}: damaged, truncated or not an npz file ({reason})") from None


def _check_header(path: str, archive: zipfile.ZipFile, key: str) -> None:
    """Refuses an entry before NumPy trusts its header, which would allocate whatever shape is declared there.

    Raises:
      DatasetError: the entry is no array, or declares more than it has bytes for.
    """
    entry = archive.getinfo(key if key in archive.namelist() else f"{key}.npy")
    with archive.open(entry) as stream:
        prefix = stream.read(len(np.lib.format.MAGIC_PREFIX))
    if prefix != np.lib.format.MAGIC_PREFIX:
        raise DatasetError(f"{path}: {key!r} is no array; save the file with numpy.savez")
    with archive.open(entry) as stream:
        is_old = np.lib.format.read_magic(stream) == (1, 0)
        read_header = np.lib.format.read_array_header_1_0 if is_old else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(stream)
    # Examples without values have no bytes, yet a giant number of them would be as bad.
    num_bytes = max(math.prod(shape) * dtype.itemsize, *shape[:1], 0)
    if min(shape, default=0) < 0 or num_bytes > entry.file_size:
        raise DatasetError(
            f"{path}: array {key!r} is declared as {dtype} {shape}, but its entry has {entry.file_size:,} bytes"
        )


def load_npz(options: DatasetOptions) -> ArrayDataset:
    """The catalog's loader; see `load_npz_arrays`. Raises DatasetError also if no file is named."""
    if not options.npz:
        raise DatasetError("dataset npz: name your file with --npz (arrays x and y, see the README)")
    return load_npz_arrays(os.path.expanduser(options.npz), options.seed)


def load_npz_arrays(path: str, seed: int = 0) -> ArrayDataset:
    """A user's file (see the module) as checked arrays.

    uint8 examples stay uint8 and are scaled by 1/255 in the graph; every other dtype becomes float32, unscaled.
    Without `x_test` a stratified fifth, drawn from `seed`, is held out.

    Raises:
      DatasetError: the file cannot be read or what it holds does not fit together.
    """
    arrays = read_npz_file(path, _REQUIRED_ARRAYS, _OPTIONAL_ARRAYS, ignore_unknown=False)
    _check_lengths(path, arrays)
    x = _convert_examples(path, "x", arrays["x"])
    class_names, y, y_test = _convert_labels(path, arrays)
    client = arrays.get("client")
    if client is not None and client.dtype.kind not in "iuU":
        raise DatasetError(f"{path}: client is {client.dtype}, expected integers or strings")
    if y_test is None:
        kept, held_out = hold_out_test_part(y, 0.2, seed)
        train, test = (x[kept], y[kept]), (x[held_out], y[held_out])
        client = None if client is None else client[kept]
    else:
        train, test = (x, y), (_convert_examples(path, "x_test", arrays["x_test"]), y_test)
    is_bytes = x.dtype == np.uint8
    preprocessing = Preprocessing(1 / 255, feature_range=(0.0, 1.0)) if is_bytes else Preprocessing()
    return make_array_dataset("npz", train, test, class_names, preprocessing, client)


def _check_lengths(path: str, arrays: dict[str, np.ndarray]) -> None:
    if ("x_test" in arrays) != ("y_test" in arrays):
        raise DatasetError(f"{path}: x_test and y_test go together, only one is there")
    for key, examples in (("y", "x"), ("client", "x"), ("y_test", "x_test")):
        if key in arrays and arrays[key].shape != arrays[examples].shape[:1]:
            raise DatasetError(
                f"{path}: {key} has shape {arrays[key].shape}, {examples} has {arrays[examples].shape}; "
                f"expected one entry of {key} for each example"
            )


def _convert_examples(path: str, key: str, x: np.ndarray) -> np.ndarray:
    """uint8 or float32 with an explicit channel axis: features (N, F, 1), grey images (N, H, W, 1)."""
    if x.dtype.kind not in "biuf" or x.ndim < 2:
        raise DatasetError(f"{path}: {key} is {x.dtype} of shape {x.shape}, expected numbers of shape (examples, ...)")
    if x.dtype != np.uint8:
        with np.errstate(over="ignore"):  # What overflows becomes infinite and is reported as such.
            x = x.astype(np.float32)
    has_channels = x.ndim > 3 or (x.ndim == 3 and x.dtype == np.float32)
    return x if has_channels else x[..., np.newaxis]


def _convert_labels(path: str, arrays: dict[str, np.ndarray]) -> tuple[tuple[str, ...], np.ndarray, np.ndarray | None]:
    """(class names, labels of x, labels of x_test or None), labels as integers 0..C-1."""
    labels = [arrays[key] for key in ("y", "y_test") if key in arrays]
    if any(y.dtype.kind not in "iuU" for y in labels) or len({y.dtype.kind == "U" for y in labels}) > 1:
        kinds = " and ".join(str(y.dtype) for y in labels)
        raise DatasetError(f"{path}: labels are {kinds}, expected integers 0..C-1 or strings")
    given_names = _read_class_names(path, arrays)
    found = np.unique(np.concatenate(labels))
    if labels[0].dtype.kind == "U":
        class_names = given_names or tuple(found.tolist())
        unknown = sorted(set(found.tolist()) - set(class_names))
        if unknown:
            raise DatasetError(f"{path}: label {unknown[0]!r} is not among class_names")
        order = {name: index for index, name in enumerate(class_names)}
        labels = [np.array([order[name] for name in y.tolist()], np.int64) for y in labels]
    elif given_names:
        class_names = given_names
        if found.size and not 0 <= found[0] <= found[-1] < len(given_names):
            raise DatasetError(f"{path}: labels {found[0]}..{found[-1]}, but {len(given_names)} class_names")
    else:
        if not np.array_equal(found, np.arange(len(found))):
            raise DatasetError(
                f"{path}: labels are {_abbreviate(found)}, expected 0..{len(found) - 1} without a gap; renumber them, "
                f"or name every class in an array class_names"
            )
        class_names = tuple(str(label) for label in found)
    return class_names, labels[0], labels[1] if len(labels) > 1 else None


def _read_class_names(path: str, arrays: dict[str, np.ndarray]) -> tuple[str, ...] | None:
    names = arrays.get("class_names")
    if names is None:
        return None
    if names.ndim != 1 or names.dtype.kind != "U" or len(np.unique(names)) != len(names):
        raise DatasetError(f"{path}: class_names is {names.dtype} {names.shape}, expected a list of different strings")
    return tuple(names.tolist())


def _abbreviate(values: np.ndarray) -> str:
    shown = ", ".join(str(value) for value in values[:12])
    return shown + (", ..." if len(values) > 12 else "")
