"""A finished run, read back from its folder: its settings, its data, its models. Imports no TensorFlow."""

import csv
import dataclasses
import json
import pathlib
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from datasets.errors import DatasetError
from datasets.federated_data import FederatedData
from launch.runs.checksums import check_sums
from launch.runs.columns import (
    CLIENT,
    CLIENTS_FILE,
    CONFIG_FILE,
    IS_PERSONAL,
    METRICS_FILE,
    MODEL,
    MODELS,
    PERSONAL_METRICS,
    SUMMARY_FILE,
    TEACHERS_TEST_ACCURACY,
)
from launch.runs.errors import RunFolderError
from launch.runs.file_names import decode_names, encode_name
from launch.runs.tables import iterate_records
from launch.settings.flags import FlagError, read_stored_flags
from launch.settings.run_config import RunConfig, build_run_config, find_algorithm
from launch.training.federation import build_spec, load_federated_data

if TYPE_CHECKING:
    from models.model_spec import ModelSpec

NEEDED_DATA = ("input_shape", "input_dtype", "scale", "offset", "class_names")


class FinishedRun(NamedTuple):
    """What a run folder says.

    Attributes:
      path: the folder.
      config: what was asked for.
      data: the data's description, as from `describe_data`.
      client_models: the name of each client's model, by the client's name.
      teachers: the names of the models that are teachers.
      rounds: rounds done.
      is_personal: whether each client ended up with a model of its own. These are not saved; an export makes them anew.
    """

    path: pathlib.Path
    config: RunConfig
    data: Mapping[str, Any]
    client_models: Mapping[str, str]
    teachers: frozenset[str]
    rounds: int
    is_personal: bool = False

    def build_spec(self, precision: str | None = None) -> "ModelSpec":
        """The model of the run as it was at its end: the float model if it ended before quantization began.

        Args:
          precision: what its layers compute in; None for that of the run.

        Raises:
          ModelError: the model cannot be built any more.
        """
        config = dataclasses.replace(self.config, precision=precision) if precision else self.config
        spec = build_spec(config, self.data, to_train=False)
        is_float = spec.quantization is not None and self.rounds < self.config.qat_start_round
        return spec.quantization.float_spec if is_float else spec

    def find_model_folders(self) -> dict[str, pathlib.Path]:
        """The folder of each saved model, by the model's name, in the order of the names.

        A run of an earlier version that was resumed has two folders of some names; the one called as today counts.
        """
        folders = [path.parent for path in self.path.glob(f"{MODELS}/*/model.keras")]
        known = {*self.client_models.values(), *self.teachers}
        named = zip(decode_names([folder.name for folder in folders], known), folders, strict=True)
        return dict(sorted(named, key=lambda pair: (pair[0], pair[1].name == encode_name(pair[0]))))

    def load_data(self) -> FederatedData:
        """The clients and the test set that the run was trained on.

        Raises:
          DatasetError: the data cannot be read, or are not those of the run.
        """
        is_npz = self.config.dataset == "npz"
        if is_npz and not pathlib.Path(self.config.npz).exists():
            raise DatasetError(f"{self.config.npz}: no such file; if it was moved, --npz says where it is now")
        data = load_federated_data(self.config)
        if self.data.get("digest", data.digest) != data.digest:
            flag = "--npz" if is_npz else "--data_dir"
            raise DatasetError(
                f"{self.path}: the data are not those that the run was trained on; name them with {flag}"
            )
        return data


def read_finished_run(run_dir: str, data_dir: str = "", npz: str = "", trusted: Collection[str] = ()) -> FinishedRun:
    """Reads a run folder back.

    Args:
      run_dir: the folder.
      data_dir: where the data set's files are now; "" for where the run found them.
      npz: the same for the file of a run with --dataset=npz.

    Raises:
      FlagError: there is no run in that folder, or its algorithm is the user's own and cannot be used, or `npz` is
        given for a run of another data set.
      RunFolderError: the run is not finished, or one of its files is damaged.
      ConfigError: its config does not fit this version.
    """
    stored = read_stored_flags(run_dir, trusted)
    if npz and stored["dataset"] != "npz":
        raise FlagError(f"--npz={npz}: the run was trained on {stored['dataset']}; expected --data_dir for its files")
    moved = {"data_dir": data_dir, "npz": npz}
    config = build_run_config({**stored, **{name: place for name, place in moved.items() if place}})
    path = pathlib.Path(run_dir)
    check_sums(path)
    try:
        data = json.loads((path / CONFIG_FILE).read_text(encoding="utf-8"))["data"]
        summary = json.loads((path / SUMMARY_FILE).read_text(encoding="utf-8"))
        with open(path / CLIENTS_FILE, newline="", encoding="utf-8") as file:
            client_models = {row[CLIENT]: row[MODEL] for row in iterate_records(file)}
        teachers = frozenset(summary[find_algorithm(config.algo).name].get(TEACHERS_TEST_ACCURACY, ()))
        rounds = int(summary["rounds"])
    except FileNotFoundError:
        raise RunFolderError(f"--run_dir={path}: the run is not finished; add --resume to its command first") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, csv.Error):
        names = f"{CONFIG_FILE}, {SUMMARY_FILE} or {CLIENTS_FILE}"
        raise RunFolderError(f"--run_dir={path}: its {names} is damaged") from None
    missing = [name for name in NEEDED_DATA if not isinstance(data, dict) or name not in data]
    if missing:
        raise RunFolderError(f"--run_dir={path}: its {CONFIG_FILE} is damaged, says nothing of {', '.join(missing)}")
    return FinishedRun(path, config, data, client_models, teachers, rounds, _is_personal(path, summary))


def _is_personal(path: pathlib.Path, summary: Mapping[str, Any]) -> bool:
    """Whether the summary says so or, where it says nothing, `metrics.csv` has columns of runs with personal models."""
    if IS_PERSONAL in summary:
        return bool(summary[IS_PERSONAL])
    metrics = path / METRICS_FILE
    columns = metrics.read_text(encoding="utf-8").partition("\n")[0].split(",") if metrics.is_file() else []
    return set(PERSONAL_METRICS) <= set(columns)


def choose_models(run: FinishedRun, model_name: str) -> list[str]:
    """The names of the models that are asked for.

    Raises:
      FlagError: there is no model of that name.
      RunFolderError: there is no model at all.
    """
    folders = run.find_model_folders()
    names = list(folders)
    if not names:
        raise RunFolderError(f"--run_dir={run.path}: its saved models are gone (models/*/model.keras); train again")
    if model_name and model_name not in names:
        raise FlagError(f"--model={model_name}: expected one of {', '.join(names)}")
    chosen = [model_name] if model_name else names
    check_sums(run.path, [f"{MODELS}/{folders[name].name}/model.keras" for name in chosen])
    return chosen
