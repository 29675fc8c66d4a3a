"""Model weights on disk, as a Keras file that other programs can open.

A file needs no class of ours: `tf.keras.models.load_model` opens it, and the file of a quantization-aware model inside
`tfmot.quantization.keras.quantize_scope()`. A user's own layers and models need their own classes, as with Keras.

Where Keras cannot write a user's model, as one with a layer without `get_config`, there is a file of its weights alone:
`weight_<i>` is number i of `model.get_weights()`, so `model.set_weights([*numpy.load(path).values()])` reads it.
"""

import contextlib
import errno
import json
import os
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import tensorflow as tf

from datasets.own_objects import describe_failure
from files.writing import replace_whole
from models.model_names import ARRAYS_FILE, KERAS_FILE, ModelError
from models.model_spec import ModelSpec
from models.stateless_dropout import StatelessDropout

_CONFIG = "config.json"  # in a Keras file, which is a zip archive
_OUR_DROPOUT = tf.keras.utils.get_registered_name(StatelessDropout)
_TF_MOT = "tensorflow_model_optimization."
# Of a disk that takes no file, whatever is in it.
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EACCES)
KEEP_IN_ATTRIBUTES = "keep layers in attributes of others, or in a list or dict there, not in lists of lists"
_UNREAD = np.float32(-1.2345678e-37)  # stands in a weight until it is read; no training ends there


def save_model(spec: ModelSpec, weights: tuple[np.ndarray, ...], folder: str | os.PathLike) -> str:
    """Writes the weights, in the order of `keras_model.weights`, into a folder, which then has this file alone.

    It is `model.keras`, or `weights.npz` if Keras cannot write the model; the file appears whole.

    Returns:
      Why there is no `model.keras` though the specification says that there would be; "" if all is as it says.

    Raises:
      OSError: if the folder cannot be written; it names the file.
    """
    error = write_keras_file(spec, weights, folder) if spec.has_keras_file else None
    if spec.has_keras_file and error is None:
        (Path(folder) / ARRAYS_FILE).unlink(missing_ok=True)
        return ""
    with replace_whole(Path(folder) / ARRAYS_FILE) as draft:
        np.savez(draft, **{f"weight_{position}": array for position, array in enumerate(weights)})
    (Path(folder) / KERAS_FILE).unlink(missing_ok=True)  # of a run that goes on
    return "" if error is None else describe_failure(error)


def write_keras_file(
    spec: ModelSpec, weights: tuple[np.ndarray, ...], folder: str | os.PathLike
) -> BaseException | None:
    """Writes `<folder>/model.keras` whole or not at all.

    Returns:
      What Keras or the user's code raised, so that there is no file; None if there is one.

    Raises:
      OSError: the disk takes no file, whatever is in it.
    """
    try:
        _write_keras_file(spec, weights, Path(folder) / KERAS_FILE)
    except (Exception, SystemExit) as error:  # the user's code may raise anything, such as in a get_config
        if isinstance(error, OSError) and error.errno in _DISK_ERRORS:
            raise
        return error
    return None


def _write_keras_file(spec: ModelSpec, weights: tuple[np.ndarray, ...], path: Path) -> None:
    whole, model = spec.build_whole()
    model.set_weights(weights)
    with replace_whole(path) as draft:  # Keras chooses the format by the suffix
        with _open_elsewhere(spec)(model):
            whole.save(draft)
        with zipfile.ZipFile(draft) as archive:
            contents = {name: archive.read(name) for name in archive.namelist()}
        before = json.loads(contents.pop(_CONFIG))
        if (after := _replace_parts(before)) != before:  # what others lack in the model's description
            with zipfile.ZipFile(draft, "w") as archive:
                for name, content in {**contents, _CONFIG: json.dumps(after).encode()}.items():
                    archive.writestr(name, content)


def load_weights(spec: ModelSpec, folder: str | os.PathLike) -> tuple[np.ndarray, ...]:
    """The weights in `<folder>`'s file, one array a variable, in the order of `spec.build().weights`.

    The architecture comes from `spec.build`, so a user's own layers need no registration. Files of earlier versions,
    in which quantization-aware layers list their weights otherwise, are read as well.

    Raises:
      ModelError: if there is no such file, it is damaged, or it holds another model.
    """
    path = Path(folder) / KERAS_FILE
    if not path.is_file() and (arrays := path.with_name(ARRAYS_FILE)).is_file():
        try:
            return read_arrays(arrays, spec.build().weights)
        except Exception as error:  # of many types, as below
            raise ModelError(f"{arrays}: expected the weights of {spec.name}, {_shorten(error)}") from error
    if not path.is_file():
        raise ModelError(f"{path}: no such file; expected the folder of a saved model")
    if not zipfile.is_zipfile(path):
        raise ModelError(f"{path}: damaged, not a Keras file; restore it or train again")
    try:
        check_weights(path)
        return _read_weights(spec, path, _open_elsewhere(spec))
    except ForeignDataError as error:
        raise ModelError(f"{path}: {error}; it cannot be read") from None
    except Exception as error:  # the reader's errors have many types: KeyError, ValueError, OSError, BadZipFile
        if spec.quantization is not None:
            with contextlib.suppress(Exception):
                return _read_weights(spec, path, contextlib.nullcontext)
        raise ModelError(
            f"{path}: expected the weights of {spec.name}, could not read them: {_shorten(error)}"
        ) from error


def _shorten(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _read_weights(spec: ModelSpec, path: Path, listed: Callable[..., Any]) -> tuple[np.ndarray, ...]:
    whole, model = spec.build_whole()
    # Keras passes over what it does not find, as layers in a list of lists, and a fresh weight would count as read.
    model.set_weights(
        [np.full_like(each, _UNREAD) if each.dtype == np.float32 else each for each in model.get_weights()]
    )
    with listed(model):
        whole.load_weights(path)
    weights = tuple(model.get_weights())
    for variable, array in zip(model.weights, weights, strict=True):
        if array.dtype == np.float32 and array.size and (array == _UNREAD).all():
            raise ValueError(f"Keras has left out {variable.name} as it wrote them; {KEEP_IN_ATTRIBUTES}")
    return weights


def _open_elsewhere(spec: ModelSpec) -> Callable[..., Any]:
    """What has a model list its weights as it will where the file is opened: a context manager of the model."""
    if spec.quantization is None:
        return contextlib.nullcontext
    from models.quantization import list_weights_as_loaded  # TF-MOT takes seconds to import, and few runs need it

    return list_weights_as_loaded


def _replace_parts(config: Any) -> Any:
    """Our dropout becomes Keras's, and TF-MOT's layers are built once, by the first call.

    Keras would build them by their "build_config" as well, and TF-MOT's would then have some weights twice.
    """
    if isinstance(config, list):
        return [_replace_parts(item) for item in config]
    if not isinstance(config, dict):
        return config
    replaced = {key: _replace_parts(value) for key, value in config.items()}
    if config.get("registered_name") == _OUR_DROPOUT:
        layer = tf.keras.layers.Dropout(config["config"]["rate"], name=config["config"]["name"])
        own = {**layer.get_config(), "trainable": config["config"]["trainable"], "dtype": config["config"]["dtype"]}
        replaced |= {"module": "keras.layers", "class_name": "Dropout", "config": own, "registered_name": None}
    if str(config.get("module")).startswith(_TF_MOT):
        replaced.pop("build_config", None)
    return replaced


# Looks into files of weights before these are read.
#
# HDF5 can make other files of this machine part of a Keras file. A file of arrays alone, an npz file with `weight_<i>`
# for number i of `model.get_weights()`, may declare any size.

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


def read_arrays(path: str | os.PathLike, variables: Sequence[tf.Variable]) -> tuple[np.ndarray, ...]:
    """The arrays that `write_arrays` wrote, of the shapes and dtypes of these variables; nothing is unpickled.

    Raises:
      ValueError: there are others, as in the weights of another model.
      OSError: it cannot be read.
      zipfile.BadZipFile: it is damaged.
    """
    names = [f"weight_{position}" for position in range(len(variables))]
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
