"""The official batch files of CIFAR-10 and CIFAR-100, in their folder or its archive.

A batch file is a pickled dictionary: `data`, uint8 (images, 3072), a row the red, then the green, then the blue values
of an image, row by row; lists of labels.
"""

import os
import tarfile
import zlib
from collections.abc import Iterable

import numpy as np

from datasets.errors import DatasetError
from files.reading import explain_errors, read_regular
from files.unpickling import read_pickled_dictionary

_VALUES_PER_IMAGE = 3 * 32 * 32


def read_batch_files(source: str, folder_name: str, names: Iterable[str]) -> dict[str, bytes]:
    """The contents of the batches of these names, from the official folder, or the archive of it.

    Raises:
      DatasetError: one is missing or cannot be read, or the archive is damaged or truncated.
    """
    contents = {}
    if os.path.isdir(source):
        for name in names:
            with explain_errors(source, DatasetError, f"{name} cannot be read", "unpack it again"):
                contents[name] = read_regular(os.path.join(source, name))
        return contents
    wanted = {f"{folder_name}/{name}": name for name in names}
    try:
        # In one pass: to go back in the archive would mean to decompress it again.
        with tarfile.open(source, "r:gz") as archive:
            for member in archive:
                if member.name in wanted and member.isfile():
                    contents[wanted[member.name]] = archive.extractfile(member).read()
            while archive.fileobj.read(2**20):  # only at its end gzip compares its sum
                pass
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise DatasetError(
            f"{source}: damaged or truncated archive ({error}); delete it to have it downloaded"
        ) from None
    missing = [name for name in wanted.values() if name not in contents]
    if missing:
        raise DatasetError(f"{source}: {missing[0]} is missing; expected the official archive, download it again")
    return contents


def read_batch(
    where: str, content: bytes, title: str = "CIFAR-10", label_keys: tuple[str, ...] = ("labels",)
) -> tuple[np.ndarray, ...]:
    """The images, uint8 (n, 32, 32, 3), and labels, int64 (n,) for each key, of an official batch file.

    Args:
      where: what errors call the file.
      content: its bytes.
      title: of the data set.
      label_keys: of the labels in it.

    Raises:
      DatasetError: damaged, truncated or no such batch.
    """
    try:
        batch = read_pickled_dictionary(content, "bytes")
        data, labels = batch[b"data"], [np.array(batch[key.encode()]) for key in label_keys]
    except Exception as error:  # a damaged pickle can raise almost anything
        reason = f"no {error} in it" if isinstance(error, KeyError) else error
        raise DatasetError(f"{where}: damaged, truncated or not a batch of {title} ({reason})") from None
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape != (len(data), _VALUES_PER_IMAGE):
        found = f"{data.dtype} {data.shape}" if isinstance(data, np.ndarray) else type(data).__name__
        raise DatasetError(f"{where}: data is {found}, expected uint8 (images, {_VALUES_PER_IMAGE})")
    for each in labels:
        if each.shape != data.shape[:1] or each.dtype.kind not in "iu":
            raise DatasetError(f"{where}: labels are {each.dtype} {each.shape}, expected {len(data)} integers")
    return data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), *labels
