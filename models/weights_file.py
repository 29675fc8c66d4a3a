"""Looks into a Keras file before its weights are read: HDF5 can make other files of this machine part of one."""

import os
import zipfile

import h5py

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
