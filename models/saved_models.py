"""Model weights on disk, as a Keras file that other programs can open."""

import os
import zipfile
from pathlib import Path

import numpy as np

from models.model_names import ModelError
from models.model_spec import ModelSpec

_FILE_NAME = "model.keras"


def save_model(spec: ModelSpec, weights: tuple[np.ndarray, ...], folder: str | os.PathLike) -> None:
    """Writes `<folder>/model.keras` with `weights`, in the order of `keras_model.weights`; the file appears whole.

    Raises:
      ValueError: if the weights are not those of the model.
      OSError: if the folder cannot be written; it names the file.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    model = spec.build()
    model.set_weights(weights)
    temporary = folder / f".{os.getpid()}.{_FILE_NAME}"  # Keras chooses the format by the suffix
    try:
        model.save(temporary)
        os.replace(temporary, folder / _FILE_NAME)
    except OSError as error:
        error.filename = str(folder / _FILE_NAME)  # a full disk's error has none, others have the temporary one
        raise
    finally:
        temporary.unlink(missing_ok=True)


def load_weights(spec: ModelSpec, folder: str | os.PathLike) -> tuple[np.ndarray, ...]:
    """The weights in `<folder>/model.keras`, one array a variable, in the order of `spec.build().weights`.

    The architecture comes from `spec.build`, so a user's own layers need no registration.

    Raises:
      ModelError: if there is no such file, it is damaged, or it holds another model.
    """
    path = Path(folder) / _FILE_NAME
    if not path.is_file():
        raise ModelError(f"{path}: no such file; expected the folder of a saved model")
    if not zipfile.is_zipfile(path):
        raise ModelError(f"{path}: damaged, not a Keras file; restore it or train again")
    model = spec.build()
    try:
        model.load_weights(path)
    except Exception as error:  # the reader's errors have many types: KeyError, ValueError, OSError, BadZipFile
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelError(f"{path}: expected the weights of {spec.name}, could not read them: {reason}") from error
    return tuple(model.get_weights())
