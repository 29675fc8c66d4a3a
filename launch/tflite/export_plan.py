"""What an export makes of a run: which models, in which formats, and whose examples set the ranges of int8.

Imports no TensorFlow, so that a wrong request is answered at once.
"""

import contextlib
import os
import pathlib
import shutil
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from files.locks import hold_folder
from files.reading import explain_errors
from files.writing import remove_unfinished
from launch.runs.checkpoints import find_checkpoints
from launch.runs.columns import BEST, CHECKPOINTS, EXPORT
from launch.runs.errors import RunFolderError
from launch.settings.flags import FlagError
from launch.tflite.export_job import ALL_MODELS
from launch.training.finished_run import FinishedRun, choose_models
from models.model_names import EXPORT_FORMATS

INTEGER_FORMATS = ("int8", "qat_int8")


class ModelExport(NamedTuple):
    """One model to be exported.

    Attributes:
      name: what its files are called after: the saved model's name, or a client's.
      source: the saved model's name.
      is_teacher: whether it is a teacher.
      formats: of EXPORT_FORMATS, in that order.
      clients: the names of the clients that use it and on whose own test splits it is measured.
      is_personal: whether it is not the saved model itself, but what the client that it is named after made of it.
    """

    name: str
    source: str
    is_teacher: bool
    formats: tuple[str, ...]
    clients: tuple[str, ...]
    is_personal: bool = False


def plan_exports(run: FinishedRun, model: str, formats: Sequence[str]) -> list[ModelExport]:
    """The models that `--model` and `--formats` ask for.

    Args:
      run: the run.
      model: ALL_MODELS for the shared models, or names of saved models or of clients, with commas between them.
      formats: of EXPORT_FORMATS; empty for all that a model can have.

    Raises:
      FlagError: there is no such model, or it cannot have one of the formats.
      RunFolderError: the run's saved models are gone.
    """
    saved = choose_models(run, "")
    shared = [name for name in saved if name not in run.teachers]
    if model == ALL_MODELS:
        names = shared
        if not names:
            raise FlagError(f"--model={model}: only teachers are saved; expected one of {', '.join(saved)}")
    else:
        names = split_names(model, {*saved, *run.client_models})
        if not names:
            raise FlagError(f"--model={model}: expected {_list_models(run, saved, shared)}")
    return [_plan_export(run, name, saved, formats) for name in names]


def split_names(text: str, known: Collection[str]) -> list[str]:
    """The known names that `text` lists with commas between them; empty if one is unknown.

    A name may hold commas itself: the longest one that is known counts, all of `text` if it is one.
    """
    parts = text.split(",")
    for end in range(len(parts), 0, -1):
        name, others = ",".join(parts[:end]), parts[end:]
        if name in known:
            rest = split_names(",".join(others), known) if others else []
            if rest or not others:
                return list(dict.fromkeys([name, *rest]))
    return []


def _list_models(run: FinishedRun, saved: Sequence[str], shared: Sequence[str]) -> str:
    teachers = [name for name in saved if name in run.teachers]
    kinds = {"a shared model": shared, "a teacher": teachers, "a client": list(run.client_models)}
    return ", or ".join([ALL_MODELS, *(f"{kind} ({abbreviate(names)})" for kind, names in kinds.items() if names)])


def abbreviate(names: Sequence[str]) -> str:
    """Names for an error, of many the first two and the last."""
    return ", ".join(names) if len(names) <= 8 else f"{names[0]}, {names[1]}, ..., {names[-1]}"


def _plan_export(run: FinishedRun, name: str, saved: Sequence[str], formats: Sequence[str]) -> ModelExport:
    is_saved = name in saved
    source = name if is_saved else run.client_models[name]
    if source not in saved:
        raise RunFolderError(f"--run_dir={run.path}: {source}, the model of {name}, is not among the saved ones")
    is_teacher = source in run.teachers
    has_qat = run.config.quantize == "qat" and run.rounds >= run.config.qat_start_round and not is_teacher
    if "qat_int8" in formats and not has_qat:
        reason = "a teacher is a float model" if is_teacher else "the run's models are float; train with --quantize=qat"
        raise FlagError(f"--formats=qat_int8 with --model={name}: {reason}, or take int8")
    chosen = [item for item in EXPORT_FORMATS if (item in formats if formats else has_qat or item != "qat_int8")]
    is_personal = run.is_personal and not is_saved
    if is_personal and not find_checkpoints(run.path / CHECKPOINTS):
        raise RunFolderError(f"--run_dir={run.path}: its checkpoints are gone, from which the personal models are made")
    users = [client for client, used in run.client_models.items() if used == source]
    return ModelExport(
        name, source, is_teacher, tuple(chosen), tuple(users if is_saved else [name]), is_personal=is_personal
    )


def get_export_folder(run: FinishedRun) -> pathlib.Path:
    """Where the files of an export go: those of the best round into a folder of their own."""
    return run.path / EXPORT / BEST if run.is_best else run.path / EXPORT


@contextlib.contextmanager
def open_export_folder(run: FinishedRun) -> Iterator[pathlib.Path]:
    """Yields a folder to write into; its files move into the run's export folder when the block has succeeded.

    If the block fails, nothing of it remains; what an export left that was killed goes. Other files in `export/` stay.

    Raises:
      RunFolderError: the run's folder cannot be written.
    """
    target, temporary = get_export_folder(run), run.path / f".{os.getpid()}.{EXPORT}"
    if target.exists() and not target.is_dir():
        raise RunFolderError(f"--run_dir={run.path}: {EXPORT} is a file there, expected a folder; move it away")
    if target.exists() and not os.access(target, os.W_OK | os.X_OK):
        raise RunFolderError(f"--run_dir={run.path}: cannot write into its {EXPORT} folder; fix its permissions")
    with explain_errors(f"--run_dir={run.path}", RunFolderError, "cannot write there"):
        remove_unfinished(run.path)
    with hold_folder(run.path):
        with explain_errors(f"--run_dir={run.path}", RunFolderError, "cannot write there"):
            temporary.mkdir()
        try:
            yield temporary
            target.mkdir(parents=True, exist_ok=True)
            for path in sorted(temporary.iterdir()):
                os.replace(path, target / path.name)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
