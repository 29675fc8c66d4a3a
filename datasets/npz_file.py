"""Reads npz files whose origin is unknown: nothing is unpickled, no header is trusted, and other kinds are named."""

import contextlib
import itertools
import math
import os
import tokenize
import zipfile
import zlib
from collections.abc import Collection, Iterator
from typing import IO

import numpy as np

from datasets.errors import DatasetError
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
                shown = ", ".join(there[:_MOST_NAMED]) or "none"
                more = f" and {len(there) - _MOST_NAMED} more" if len(there) > _MOST_NAMED else ""
                raise DatasetError(f"{path}: array {missing[0]!r} is missing; it has {shown}{more}")
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
    if os.path.exists(path) and not os.path.isfile(path):  # NumPy would wait at a pipe without end
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
    if dtype.hasobject:  # its size in the file says nothing
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
