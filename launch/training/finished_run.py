"""A finished run, read back from its folder: its settings, its data, its models. Imports no TensorFlow."""

import contextlib
import dataclasses
import json
import os
import pathlib
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat, read_example_format
from datasets.federated_data import FederatedData
from datasets.options import FILES
from files.reading import read_regular
from files.writing import remove_unfinished
from launch.console.progress import say
from launch.live.own_federation import make_own_federation
from launch.runs.checksums import check_sums
from launch.runs.columns import (
    ARCHITECTURE,
    BEST,
    CHECKSUMS_FILE,
    CLASS_WEIGHTS,
    CLIENT,
    CLIENTS_FILE,
    CONFIG_FILE,
    IS_PERSONAL,
    IS_REMOTE,
    KEPT_BEST,
    MAX_JSON,
    MODEL,
    MODELS,
    NUM_TEST,
    NUM_TRAIN,
    OWN_MODULES,
    ROUND,
    SUMMARY_FILE,
)
from launch.runs.errors import RunFolderError
from launch.runs.file_names import decode_names
from launch.runs.run_folder import keep_inside
from launch.runs.run_records import read_rows
from launch.runs.stored_data import read_data_section, read_scaling
from launch.runs.task_columns import TaskColumns, read_task_columns
from launch.settings.flags import FlagError, read_stored_flags
from launch.settings.module_sums import list_changed, sum_run_modules
from launch.settings.run_config import RunConfig, build_run_config, find_algorithm
from launch.settings.run_titles import describe_devices
from launch.settings.trusted_modules import LOSS, check_trusted
from launch.settings.typed_places import check_places, remember_places
from launch.training.federation import build_run_task, build_spec, load_federated_data
from models.model_names import KERAS_FILE, SAVED_FILES
from tff_algos.settings.config_fields import setting

if TYPE_CHECKING:
    from models.model_spec import ModelSpec

LAST = "last"
# How the names of flags end that name models.
MODEL_FLAGS = ("model", "models")


class FinishedRun(NamedTuple):
    """What a run folder says.

    Attributes:
      path: the folder.
      config: what was asked for.
      data: the data's description, as from `describe_data`.
      client_models: the name of each client's model in that round, by the client's name.
      teachers: the names of the models that are teachers.
      rounds: rounds done until then: all of the run, or up to the best one.
      is_best: whether the models of its best round are asked for, and not its end.
      is_personal: whether each client ended up with a model of its own. These are not saved; an export makes them anew.
      architectures: the name of the specification of each saved model, by the model's name, where not all have the
        same.
      trusted: the modules that may be imported if the run names them.
      changed_loss: the modules of the user's own loss that have changed since.
      devices: what the devices of the run were, as from `describe_devices`.
    """

    path: pathlib.Path
    config: RunConfig
    data: Mapping[str, Any]
    client_models: Mapping[str, str]
    teachers: frozenset[str]
    rounds: int
    is_personal: bool = False
    is_best: bool = False
    architectures: Mapping[str, str] = {}
    trusted: Collection[str] = ()
    changed_loss: Collection[str] = ()
    devices: str = ""

    @property
    def task(self) -> TaskColumns:
        """What its results are called, and which way they are better."""
        return read_task_columns(self.data)

    @property
    def format(self) -> ExampleFormat:
        """What the examples that it was trained on are."""
        return read_example_format(self.data)

    @property
    def models(self) -> pathlib.Path:
        """The folder of the saved models of that round."""
        return self.path / MODELS / BEST if self.is_best else self.path / MODELS

    def build_spec(self, precision: str | None = None, to_train: bool = False) -> "ModelSpec":
        """The model of the run as it was at its end: the float model if it ended before quantization began.

        Args:
          precision: what its layers compute in; None for that of the run.
          to_train: whether it is trained further, by the loss of the run. Else a loss of the user's own is left out.

        Raises:
          FlagError: the loss is in a module that is not trusted.
          RunFolderError: the loss is another one by now.
          ModelError: the model cannot be built any more.
        """
        config = dataclasses.replace(self.config, precision=precision) if precision else self.config
        if to_train:
            check_trusted({LOSS: config.loss}, str(self.path), self.trusted)
            if self.changed_loss:
                raise RunFolderError(
                    f"--run_dir={self.path}: your code changed since the run ({', '.join(self.changed_loss)}), by whose"
                    " loss its models are trained; put the former files back, or train again"
                )
        task = build_run_task(config, self.format, tuple(self.data.get(CLASS_WEIGHTS, ())), to_train)
        spec = build_spec(config, self.format, to_train=False, task=task)
        if scaling := read_scaling(self.data):
            from models.standardization import Standardization

            spec = spec.with_standardization(Standardization(*scaling))
        # A budget, a target or patience may end a run before its first quantized round.
        is_float = spec.quantization is not None and self.rounds < self.config.qat_start_round
        return spec.quantization.float_spec if is_float else spec

    def choose_spec(self, spec: "ModelSpec", model: str) -> "ModelSpec":
        """The specification of a saved model: the teacher's, or the one of the variants that it is.

        Args:
          spec: of the run, as from `build_spec`.
          model: the model's name.
        """
        if model in self.teachers:
            return spec.teacher
        name = self.architectures.get(model, spec.name)
        return next((variant for variant in (spec, *spec.peers) if variant.name == name), spec)

    def find_model_folders(self) -> dict[str, pathlib.Path]:
        """The folder of each saved model, by the model's name, in the order of the names."""
        files = [path for name in SAVED_FILES for path in self.models.glob(f"*/{name}")]
        folders = list(dict.fromkeys(path.parent for path in files))
        # A long name is cut in a folder's name, and only the records have the whole.
        known = {*self.client_models.values(), *self.teachers}
        return dict(sorted(zip(decode_names([folder.name for folder in folders], known), folders, strict=True)))

    def load_data(self) -> FederatedData:
        """The clients and the test set that the run was trained on.

        Raises:
          DatasetError: the data cannot be read, or are not those of the run.
          FlagError: the run's records name a folder to be filled that the user has never typed.
        """
        is_remote = bool(self.data.get(IS_REMOTE))
        if is_remote and not self.data.get(NUM_TEST):  # the run had no data set but what its clients have
            return self._seat_clients(self.data["dataset"], self.format, self.data.get("digest", ""))
        own = {"npz": self.config.npz, FILES: self.config.data}.get(self.config.dataset)
        if own and not os.path.exists(os.path.expanduser(own)):
            raise DatasetError(
                f"{own}: no such file, but {self.path} was trained on it; put it back, or name "
                "the folder where it is now with --data_dir"
            )
        # A finished run goes to no cluster again.
        check_places(vars(dataclasses.replace(self.config, ray_address="")), str(self.path))
        data = load_federated_data(self.config)
        if self.data.get("digest", data.digest) != data.digest:
            on_new = f"; on the new one: python -m launch.evaluate --run_dir={self.path} --npz={own}"
            raise DatasetError(
                f"{own}: has changed since {self.path} was trained on it; put the former file back, or name its folder "
                f"with --data_dir{on_new if own == self.config.npz else ''}"
                if own
                else f"{self.path}: the data are not those that the run was trained on; name them with --data_dir"
            )
        if not is_remote:
            return data
        return self._seat_clients(data.dataset, data.format, data.digest, (data.test_x, data.test_y))

    def _seat_clients(self, *data: Any) -> FederatedData:
        """The run's federation of clients whose examples are their own, see `make_own_federation`."""
        try:
            rows = read_rows(self.path / CLIENTS_FILE)
            seats = [(row[CLIENT], int(row[NUM_TRAIN]), int(row[NUM_TEST])) for row in rows]
        except (OSError, ValueError, KeyError, TypeError):
            raise RunFolderError(f"--run_dir={self.path}: its {CLIENTS_FILE} is damaged") from None
        dataset, example_format, digest, *test = data
        return make_own_federation(dataset, example_format, seats, digest, *test)


@dataclasses.dataclass(frozen=True)
class FinishedRunFlags:
    """The flags of commands that use the models of a run."""

    run_dir: str = setting("", "Folder of a finished run.")
    model: str = setting("", "Only this model of the run; empty: all.")
    round: str = setting(
        LAST, "Models of the run's last round, or of its best, see --keep_best of launch.train.", choices=(LAST, BEST)
    )
    data_dir: str = setting("", "Where the data set's files are now; empty: where the run found them.")
    client_dir: str = setting("", "Folder of the client files; empty: where the run kept them.")
    trust_module: str = setting(
        "", "Modules of yours that the run names and that may be imported, with commas between them."
    )


def read_finished_run(
    run_dir: str,
    data_dir: str = "",
    npz: str = "",
    of_round: str = LAST,
    trusted: Collection[str] = (),
    client_dir: str = "",
) -> FinishedRun:
    """Reads a run folder back.

    Args:
      run_dir: the folder.
      data_dir: folder where the data set's files, or the user's own, are now; "" for where the run found them.
      npz: where the user's own file is now, if it has another name as well.
      of_round: LAST or BEST, whose models are wanted.
      trusted: the modules that may be imported if the run names them, see `launch.settings.trusted_modules`.
      client_dir: where client files go; "" for where the run had them.

    Raises:
      FlagError: there is no run in that folder, its algorithm is the user's own and cannot be used, it has no best
        round, it needs a module that is not trusted, or `npz` is given for a run of another data set.
      RunFolderError: the run is not finished, one of its files is damaged, or something in its folder is a link.
      ConfigError: its config does not fit this version.
    """
    stored = read_stored_flags(run_dir, trusted, to_train=False)
    if npz and stored["dataset"] != "npz":
        raise FlagError(f"--npz={npz}: the run was trained on {stored['dataset']}; expected --data_dir for its files")
    typed = {name: value for name, value in (("npz", npz), ("client_dir", client_dir)) if value}
    config = build_run_config({**stored, **_move_data(stored, data_dir), **typed})
    remember_places({"data_dir": data_dir, "client_dir": client_dir})
    path = pathlib.Path(run_dir)
    keep_inside(path)
    # Of a folder that may only be read.
    with contextlib.suppress(OSError):
        remove_unfinished(path)
    check_sums(path)
    try:
        content = json.loads(read_regular(path / CONFIG_FILE, MAX_JSON))
        data = content["data"]
        summary = json.loads(read_regular(path / SUMMARY_FILE, MAX_JSON))
        rows = read_rows(path / CLIENTS_FILE)
        client_models = {row[CLIENT]: row[MODEL] for row in rows}
        architectures = {row[MODEL]: row[ARCHITECTURE] for row in rows if ARCHITECTURE in row}
        task = read_task_columns(data)
        teachers = frozenset(summary[find_algorithm(config.algo).name].get(task.teachers, ()))
        rounds = int(summary["rounds"])
        best = summary.get(KEPT_BEST, {}).get(ROUND)
    except FileNotFoundError:
        raise RunFolderError(f"--run_dir={path}: the run is not finished; add --resume to its command first") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        names = f"{CONFIG_FILE}, {SUMMARY_FILE} or {CLIENTS_FILE}"
        raise RunFolderError(f"--run_dir={path}: its {names} is damaged") from None
    read_data_section(data, path / CONFIG_FILE)
    is_personal = bool(summary.get(IS_PERSONAL))
    _check_code(path, config, content.get(OWN_MODULES), is_personal)
    changed_loss = list_changed(content.get(OWN_MODULES), sum_run_modules(config, lambda flag: flag == LOSS))
    options = {"architectures": architectures, "trusted": trusted, "changed_loss": changed_loss}
    options |= {"devices": describe_devices(content)}
    run = FinishedRun(path, config, data, client_models, teachers, rounds, is_personal, **options)
    return _take_best(run, best) if of_round == BEST else run


def _check_code(path: pathlib.Path, config: RunConfig, stored: Any, is_personal: bool) -> None:
    """Raises RunFolderError if the code of a user's own that the run's models are built with has changed.

    Clients' own models are not saved, so that the algorithm is needed for them. Other code is noted: the saved models
    are as it left them, and the digest of the data tells of a data set.
    """
    changed = list_changed(stored, sum_run_modules(config))
    needed = sum_run_modules(config, lambda flag: flag != "dataset" if is_personal else flag.endswith(MODEL_FLAGS))
    if list_changed(stored, needed):
        raise RunFolderError(
            f"--run_dir={path}: your code changed since the run ({', '.join(changed)}), by which its models are built; "
            "put the former files back, or train again"
        )
    if changed:
        names = ", ".join(changed)
        say(f"note     {path}: your code changed since the run ({names}); its saved models are as they were")


def say_if_unchecked(run: FinishedRun) -> None:
    """Says so if the run has no sums, as one of an earlier version, or one of somebody who took them away."""
    if not (run.path / CHECKSUMS_FILE).exists():
        say(f"note     {run.path} has no {CHECKSUMS_FILE}: its files cannot be checked for changes")


def _move_data(stored: Mapping[str, Any], data_dir: str) -> dict[str, str]:
    """The flags of where the data are, if they lie in another folder than when the run was made."""
    if not data_dir:
        return {}
    own = {name: stored[name] for name in ("npz", "data") if stored.get(name)}
    moved = {name: os.path.join(data_dir, os.path.basename(os.path.normpath(path))) for name, path in own.items()}
    return {"data_dir": data_dir, **moved}


def _take_best(run: FinishedRun, best: int | None) -> FinishedRun:
    """The run as it was after its best round."""
    if best is None:
        raise FlagError(f"--round={BEST}: {run.path} has kept no best round; train with --keep_best, or leave it out")
    clients = run._replace(is_best=True).models / CLIENTS_FILE
    check_sums(run.path, [clients.relative_to(run.path).as_posix()])
    try:
        client_models = {row[CLIENT]: row[MODEL] for row in read_rows(clients)}
        return run._replace(rounds=int(best), is_best=True, client_models=client_models)
    except (OSError, ValueError, TypeError, KeyError):
        raise RunFolderError(f"{clients}: gone or damaged; restore it, or leave out --round={BEST}") from None


def choose_models(run: FinishedRun, model_name: str) -> list[str]:
    """The names of the models that are asked for.

    Raises:
      FlagError: there is no model of that name.
      RunFolderError: there is no model at all.
    """
    folders = run.find_model_folders()
    names, below = list(folders), run.models.relative_to(run.path)
    if not names:
        raise RunFolderError(f"--run_dir={run.path}: its saved models are gone ({below}/*/{KERAS_FILE}); train again")
    if model_name and model_name not in names:
        raise FlagError(f"--model={model_name}: expected one of {', '.join(names)}")
    chosen = [model_name] if model_name else names
    check_sums(run.path, [f"{below}/{folders[name].name}/{file}" for name in chosen for file in SAVED_FILES])
    return chosen
