"""What an export makes of a run: which models, in which formats, and whose examples set the ranges of int8.

Imports no TensorFlow, so that a wrong request is answered at once.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datasets.federated_data import FederatedData
from files.locks import hold_folder
from files.reading import explain_errors, read_regular
from files.writing import remove_unfinished
from launch.console.progress import say
from launch.console.shown_text import escape_hidden
from launch.runs.checkpoints import find_checkpoints
from launch.runs.columns import (
    BEST,
    CHECKPOINTS,
    EXPORT,
    LABELS_FILE,
    MAX_JSON,
    REPORT_CLIENTS,
    REPORT_PAGE,
    REPORT_TABLE,
    REPORT_TEACHERS,
    TEST_SET_FILE,
    VOCABULARY_FILE,
    WEB_PAGE,
)
from launch.runs.errors import RunFolderError
from launch.runs.file_names import encode_name
from launch.settings.flags import FlagError
from launch.tflite.converter_process import ConverterProcess
from launch.tflite.embedded_card import CARD_NAME
from launch.tflite.model_card import CARD_PAGE
from launch.training.finished_run import FinishedRun, FinishedRunFlags, choose_models
from models.model_names import EXPORT_FORMATS, EXPORT_IO, TRAINED_PARTS
from tff_algos.settings.config_fields import setting, texts

INTEGER_FORMATS = ("int8", "qat_int8")
OF_ALL = frozenset(
    (
        *(CARD_NAME, CARD_PAGE, LABELS_FILE, VOCABULARY_FILE, TEST_SET_FILE, WEB_PAGE),
        *(REPORT_PAGE, REPORT_TABLE, REPORT_CLIENTS, REPORT_TEACHERS),
    )
)
_OF_ONE = re.compile(
    rf"(?P<model>.+)\.(?P<format>{'|'.join((*EXPORT_FORMATS, 'training'))})"
    r"\.(?:tflite|json|confusions\.png|layers\.csv)"
)


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
            teachers = [name for name in saved if name in run.teachers]
            kinds = {"a shared model": shared, "a teacher": teachers, "a client": list(run.client_models)}
            listed = [f"{kind} ({abbreviate(known)})" for kind, known in kinds.items() if known]
            raise FlagError(f"--model={model}: expected {', or '.join([ALL_MODELS, *listed])}")
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


def abbreviate(names: Sequence[str]) -> str:
    """Names for an error, of many the first two and the last."""
    return ", ".join(names) if len(names) <= 8 else f"{names[0]}, {names[1]}, ..., {names[-1]}"


def has_qat(run: FinishedRun, is_teacher: bool) -> bool:
    """Whether a model of a run has weights of quantization-aware training."""
    return run.config.quantize == "qat" and run.rounds >= run.config.qat_start_round and not is_teacher


def _plan_export(run: FinishedRun, name: str, saved: Sequence[str], formats: Sequence[str]) -> ModelExport:
    is_saved = name in saved
    source = name if is_saved else run.client_models[name]
    if source not in saved:
        raise RunFolderError(f"--run_dir={run.path}: {source}, the model of {name}, is not among the saved ones")
    is_teacher = source in run.teachers
    can_be_qat = has_qat(run, is_teacher)
    if "qat_int8" in formats and not can_be_qat:
        reason = "a teacher is a float model" if is_teacher else "the run's models are float; train with --quantize=qat"
        raise FlagError(f"--formats=qat_int8 with --model={name}: {reason}, or take int8")
    chosen = [item for item in EXPORT_FORMATS if (item in formats if formats else can_be_qat or item != "qat_int8")]
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

    They replace all that earlier exports of the run have written there; a line names what is gone with these.
    Other files in `export/` stay. If the block fails, nothing of it remains; what an export left that was killed goes.

    Raises:
      RunFolderError: the run's folder cannot be written, or its export folder lies elsewhere, by a link.
    """
    target, temporary = get_export_folder(run), run.path / f".{os.getpid()}.{EXPORT}"
    # A link in a stranger's run must not lead an export to other files.
    if not target.resolve().is_relative_to(run.path.resolve()):
        raise RunFolderError(f"--run_dir={run.path}: its {EXPORT} folder lies elsewhere, by a link; put it there")
    if target.exists() and not target.is_dir():
        raise RunFolderError(f"--run_dir={run.path}: {EXPORT} is a file there, expected a folder; move it away")
    if target.exists() and not os.access(target, os.W_OK | os.X_OK):
        raise RunFolderError(f"--run_dir={run.path}: cannot write into its {EXPORT} folder; fix its permissions")
    with explain_errors(f"--run_dir={run.path}", RunFolderError, "cannot write there"):
        remove_unfinished(run.path)
    # A second export at once would take this one's files for those of an earlier one.
    with hold_folder(run.path):
        with explain_errors(f"--run_dir={run.path}", RunFolderError, "cannot write there"):
            temporary.mkdir()
        try:
            yield temporary
            names = sorted(path.name for path in temporary.iterdir())
            # No file can be put over a folder, which would stop the moving in the midst.
            if taken := [name for name in names if (target / name).is_dir() and not (target / name).is_symlink()]:
                raise RunFolderError(f"{target / taken[0]}: is a folder, expected a file, or nothing; move it away")
            models = {*run.find_model_folders(), *run.client_models}
            # Before the new card replaces the former one, which names its files.
            former = [name for name in find_former_files(target, models) if name not in names]
            target.mkdir(parents=True, exist_ok=True)
            for name in names:
                os.replace(temporary / name, target / name)
            for name in former:
                (target / name).unlink(missing_ok=True)  # of a link, the link
            if former:
                noun = "file" if len(former) == 1 else "files"
                shown = escape_hidden(abbreviate(former))
                say(f"removed  {len(former):,} {noun} of an earlier export, which this one does not have: {shown}")
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def find_former_files(folder: pathlib.Path, models: Collection[str]) -> list[str]:
    """The names of the files, and links, of an export folder that earlier exports have written, in order.

    A report is of one export, so files that it does not know would contradict it: cards and latencies of another time,
    a page of other formats. What a person has put there stays, also a copy of a file under a name of their own.

    Those of all files together are known by their names, those of one file if it is of one of the models, or if the
    former card names it: a run that went on may have other models since. Folders are none.

    Args:
      folder: of the export; it need not exist.
      models: the names of the run's models and clients.
    """
    if not folder.is_dir():
        return []
    stems, listed = set(map(encode_name, models)), set()
    # There may be none, or a damaged one.
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        listed = {file["file"] for file in json.loads(read_regular(folder / CARD_NAME, MAX_JSON))["files"]}

    def is_ours(name: str) -> bool:
        found = _OF_ONE.fullmatch(name)
        is_known = found and (found["model"] in stems or f"{found['model']}.{found['format']}.tflite" in listed)
        return name in OF_ALL or bool(is_known)

    with os.scandir(folder) as entries:
        return sorted(
            entry.name for entry in entries if is_ours(entry.name) and not entry.is_dir(follow_symlinks=False)
        )


# What an export is asked for, what its files share, and a model that is exported. Imports no TensorFlow.

if TYPE_CHECKING:
    from models.model_spec import ModelSpec
    from tff_algos.protocol import Weights


NO_TRAINING = "none"  # of `ExportRequest.on_device_training`, beside TRAINED_PARTS
ALL_MODELS = "all"


@dataclasses.dataclass(frozen=True)
class ExportRequest(FinishedRunFlags):
    """What is asked for, flag by flag; see `launch.export`."""

    model: str = setting(
        ALL_MODELS, "Saved models, or clients, for the models that they ended up with; all: all but teachers."
    )
    npz: str = setting("", "Where the file of a run with --dataset=npz is now; empty: where the run found it.")
    formats: tuple[str, ...] = texts((), f"Some of {', '.join(EXPORT_FORMATS)}; empty: all that apply.")
    io: str = setting(EXPORT_IO[0], "Inputs and outputs of int8 and qat_int8.", choices=EXPORT_IO)
    representative_client: str = setting(
        "", "Client whose train split sets the ranges of int8; empty: all that use the model."
    )
    representative_examples: int = setting(
        200, "How many examples set the ranges of int8 at most.", minimum=1, maximum=10**6
    )
    on_device_training: str = setting(
        NO_TRAINING,
        "Also write each model in a form that can be trained on the phone: head trains its last dense layers, full all "
        "of it.",
        choices=(NO_TRAINING, *TRAINED_PARTS),
    )
    save_test_set: bool = setting(False, "Also write the test set, with each file's predictions.")
    debug_quantization: bool = setting(
        False, "Also measure what int8 does to each layer; qat_int8 cannot be looked into."
    )
    web_page: bool = setting(
        False, "Also write a page that runs the files in a phone's browser; needs `make web` once."
    )
    flower_app: str = setting(
        "", "Also write a Flower app that trains the model on your own fleet, into this new folder."
    )


class ExportJob(NamedTuple):
    """What all files of one export share.

    Attributes:
      run: the run.
      data: its clients and test set.
      request: what is asked for.
      folder: where the files go.
      converter: what converts the models and first runs the files.
      personal_weights: the weights of the personal models to be exported, by the client's name.
    """

    run: FinishedRun
    data: FederatedData
    request: ExportRequest
    folder: pathlib.Path
    converter: ConverterProcess
    personal_weights: Mapping[str, "Weights"]

    def suit(self, spec: "ModelSpec") -> "ExportJob":
        """The same for a model's files: where the model gets the stored numbers as they are, the format says so."""
        if not spec.input_dtype:
            return self
        example_format = dataclasses.replace(self.data.format, preprocessing=spec.format.preprocessing)
        return self._replace(data=dataclasses.replace(self.data, format=example_format))


class LoadedModel(NamedTuple):
    """A saved model.

    Attributes:
      spec: its specification.
      weights: in the order of `spec.build().weights`.
      parameters: as in `FileRow`.
      multiply_accumulates: as in `FileRow`.
      float32: its float32 file, which may be exported or not; b"" if it cannot be made.
      reason: why it cannot be made.
    """

    spec: "ModelSpec"
    weights: tuple[np.ndarray, ...]
    parameters: int
    multiply_accumulates: int
    float32: bytes
    reason: str = ""
