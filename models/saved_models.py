"""Model weights on disk, as a Keras file that other programs can open.

A file needs no class of ours: `tf.keras.models.load_model` opens it, and the file of a quantization-aware model inside
`tfmot.quantization.keras.quantize_scope()`. A user's own layers and models need their own classes, as with Keras.
"""

import contextlib
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from files.writing import replace_whole
from models.model_names import ModelError
from models.model_spec import ModelSpec
from models.stateless_dropout import StatelessDropout
from models.weights_file import ForeignDataError, check_weights

_FILE_NAME = "model.keras"
_CONFIG = "config.json"  # in a Keras file, which is a zip archive
_OUR_DROPOUT = tf.keras.utils.get_registered_name(StatelessDropout)
_TF_MOT = "tensorflow_model_optimization."


def save_model(spec: ModelSpec, weights: tuple[np.ndarray, ...], folder: str | os.PathLike) -> None:
    """Writes `<folder>/model.keras` with `weights`, in the order of `keras_model.weights`; the file appears whole.

    Raises:
      ValueError: if the weights are not those of the model.
      OSError: if the folder cannot be written; it names the file.
    """
    whole, model = spec.build_whole()
    model.set_weights(weights)
    with replace_whole(Path(folder) / _FILE_NAME) as draft:  # Keras chooses the format by the suffix
        with _open_elsewhere(spec)(model):
            whole.save(draft)
        _rewrite_config(draft)


def load_weights(spec: ModelSpec, folder: str | os.PathLike) -> tuple[np.ndarray, ...]:
    """The weights in `<folder>/model.keras`, one array a variable, in the order of `spec.build().weights`.

    The architecture comes from `spec.build`, so a user's own layers need no registration. Files of earlier versions,
    in which quantization-aware layers list their weights otherwise, are read as well.

    Raises:
      ModelError: if there is no such file, it is damaged, or it holds another model.
    """
    path = Path(folder) / _FILE_NAME
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
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelError(f"{path}: expected the weights of {spec.name}, could not read them: {reason}") from error


def _read_weights(spec: ModelSpec, path: Path, listed: Callable[..., Any]) -> tuple[np.ndarray, ...]:
    whole, model = spec.build_whole()
    with listed(model):
        whole.load_weights(path)
    return tuple(model.get_weights())


def _open_elsewhere(spec: ModelSpec) -> Callable[..., Any]:
    """What has a model list its weights as it will where the file is opened: a context manager of the model."""
    if spec.quantization is None:
        return contextlib.nullcontext
    from models.quantization import list_weights_as_loaded  # TF-MOT takes seconds to import, and few runs need it

    return list_weights_as_loaded


def _rewrite_config(path: Path) -> None:
    """Replaces what others lack in the description of a Keras file's model; writes the file anew if there is any."""
    with zipfile.ZipFile(path) as archive:
        before = json.loads(archive.read(_CONFIG))
        after = _replace_parts(before)
        if after == before:
            return
        contents = {name: archive.read(name) for name in archive.namelist() if name != _CONFIG}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**contents, _CONFIG: json.dumps(after).encode()}.items():
            archive.writestr(name, content)


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
