"""Looks into files of weights before these are read.

HDF5 can make other files of this machine part of a Keras file. A file of arrays alone, an npz file with `weight_<i>`
for number i of `model.get_weights()`, may declare any size.
"""

import os
import zipfile
from collections.abc import Sequence

import h5py
import numpy as np
import tensorflow as tf

_WEIGHTS = "model.weights.h5"


class ForeignDataError(ValueError):
    """A weights file that points outside of itself; one line says where."""


def check_weights(path: str | os.PathLike) -> None:
    """Checks that all weights in the Keras file `path` lie in the file itself.

    Raises:
      ForeignDataError: a link that is not to the file's own data, an array stored in another file, one that is put
        together from other arrays, or one that is declared larger than what is stored of it.
      KeyError: the file holds no weights.
      OSError: it cannot be read.
      zipfile.BadZipFile: it is damaged.
    """
    with zipfile.ZipFile(path) as archive, archive.open(_WEIGHTS) as stored, h5py.File(stored, "r") as weights:
        _check_group(weights, {_find_address(weights)})


def _find_address(item: h5py.Group | h5py.Dataset) -> int:
    return h5py.h5o.get_info(item.id).addr


def _check_group(group: h5py.Group, seen: set[int]) -> None:
    for name in group:
        where = f"{group.name.rstrip('/')}/{name}"
        # The link is looked at before what it points to is opened.
        if type(group.get(name, getlink=True)) is not h5py.HardLink:
            raise ForeignDataError(f"its {where} is a link to elsewhere, no weights of its own")
        item = group[name]
        if (address := _find_address(item)) in seen:
            raise ForeignDataError(f"its {where} is there twice, under another name as well")
        seen.add(address)
        if isinstance(item, h5py.Group):
            _check_group(item, seen)
        elif isinstance(item, h5py.Dataset) and (item.external or item.is_virtual):
            raise ForeignDataError(f"its {where} takes its numbers from other files or arrays")
        elif isinstance(item, h5py.Dataset) and item.nbytes > item.id.get_storage_size():
            raise ForeignDataError(f"its {where} is declared as {item.shape}, more than the file holds")


def write_arrays(path: str | os.PathLike, weights: Sequence[np.ndarray]) -> None:
    """Writes the weights of a model, in their order, as an npz file."""
    np.savez(path, **{f"weight_{place}": array for place, array in enumerate(weights)})


def read_arrays(path: str | os.PathLike, variables: Sequence[tf.Variable]) -> tuple[np.ndarray, ...]:
    """The arrays that `write_arrays` wrote, of the shapes and dtypes of these variables; nothing is unpickled.

    Raises:
      ValueError: there are others, as in the weights of another model.
      OSError: it cannot be read.
      zipfile.BadZipFile: it is damaged.
    """
    names = [f"weight_{place}" for place in range(len(variables))]
    with zipfile.ZipFile(path) as archive:
        if sorted(archive.namelist()) != sorted(f"{name}.npy" for name in names):
            raise ValueError(f"{len(names)} arrays weight_0 and so on, found {len(archive.namelist())}")
        return tuple(_read_array(archive, *pair) for pair in zip(names, variables, strict=True))


def _read_array(archive: zipfile.ZipFile, name: str, variable: tf.Variable) -> np.ndarray:
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    with archive.open(f"{name}.npy") as file:  # what is declared comes first, since memory is taken for it
        shape, _, dtype = read[np.lib.format.read_magic(file)](file)
    expected_shape, expected = tuple(variable.shape), np.dtype(variable.dtype.as_numpy_dtype)
    if (shape, dtype) != (expected_shape, expected):
        raise ValueError(f"{name} as {expected} of shape {expected_shape}, found {dtype} of shape {shape}")
    with archive.open(f"{name}.npy") as file:
        return np.lib.format.read_array(file, allow_pickle=False)
