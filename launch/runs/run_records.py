"""Reads run folders back: what was asked, what each round gave, and which experiment a run belongs to.

The folders lie in a folder or inside a zip archive; code that reads a run asks its `path` for files, with `/` and
`open`, and works with both. Imports no TensorFlow.
"""

import dataclasses
import json
import math
import pathlib
import posixpath
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from datasets.errors import DatasetError
from launch.runs.checksums import check_inside, check_sums
from launch.runs.columns import (
    ARRAYS_DIGEST,
    BUDGET_SPENT,
    CLASS_WEIGHTS_DIGEST,
    CONFIG_FILE,
    DEVICES,
    DIGEST,
    EXPORT_REPORT,
    FINE_TUNING_S,
    MAX_JSON,
    OWN_ALGORITHM,
    OWN_MODULES,
    PATIENCE,
    REACHED_LIMITS,
    ROUND,
    SOURCE_DIGEST,
    STOPPED_EARLY,
    SUMMARY_FILE,
)
from launch.runs.errors import RunFolderError
from launch.runs.tables import check_columns, iterate_records, iterate_rows, open_text
from launch.settings.experiments import Experiment
from launch.settings.flag_fields import can_hold, complete_stored_flags
from launch.settings.flags import FlagError, parse_config
from launch.settings.renamed_flags import rename_stored_flags
from launch.settings.resuming import CHANGEABLE_ON_RESUME, MEANS_OF_COMPUTING
from launch.settings.run_config import (
    RunConfig,
    algorithm_fields,
    build_run_config,
    find_algorithm,
    find_idle,
    flag_values,
    shared_fields,
)
from launch.settings.run_titles import ShownAlgorithm, describe_devices, show_stored_algorithm
from launch.settings.trusted_modules import list_foreign_modules
from tff_algos.settings.config_fields import ConfigError

RunPath = pathlib.Path | zipfile.Path


class RunRecordError(ValueError):
    """A run folder that cannot be counted: which and why, in one line."""


@dataclasses.dataclass(frozen=True)
class RunRecord:
    """One run of an experiment.

    Attributes:
      path: its folder, on disk or in an archive.
      flags: every flag's value, as in `config.json`.
      experiment: the name of the experiment that it is of.
      rounds: metric values by round, {round: {column: value}}; empty cells are left out.
      dataset: the name of its data set, which differs from `--dataset` if it is a subset.
      revision: of the code that made it; "" if that is not known.
      digests: those by which its data are known, as `Settings` has them.
    """

    path: RunPath
    flags: Mapping[str, Any]
    experiment: str
    rounds: Mapping[int, Mapping[str, float]]
    dataset: str = ""
    revision: str = ""
    digests: Mapping[str, str] = dataclasses.field(default_factory=dict)


def read_rows(path: RunPath) -> list[dict[str, str]]:
    """The rows of a CSV file, each {column: cell}. Raises OSError and ValueError as `open_text` and `iterate_rows`."""
    with open_text(path) as file:
        return list(iterate_records(file))


def read_columns(path: RunPath) -> dict[str, np.ndarray]:
    """The columns of a CSV file that hold numbers, float64, NaN where a cell is empty; columns of text are left out.

    Raises:
      OSError: see `open_text`.
      ValueError: it is no such file, two columns have one name, or a row has more cells or fewer than there are.
    """
    return {name: values for name, values in _read_all_columns(path).items() if values is not None}


def _read_all_columns(path: RunPath) -> dict[str, np.ndarray | None]:
    """The same, and None for a column of text."""
    with open_text(path) as file:
        names, *rows = list(iterate_rows(file)) or [[]]
    if not names:
        raise ValueError("it is empty")
    check_columns(names)
    columns: dict[str, np.ndarray | None] = {}
    for name, cells in zip(names, zip(*rows, strict=True) if rows else ([],) * len(names), strict=True):
        try:
            columns[name] = np.array([float(cell) if cell else math.nan for cell in cells], np.float64)
        except ValueError:
            columns[name] = None
    return columns


def read_rounds(path: RunPath) -> dict[int, dict[str, float]]:
    """A `metrics.csv` as {round: {column: value}}, empty cells left out.

    Raises:
      OSError: see `open_text`.
      ValueError: a column holds something else than numbers, or that of rounds something else than different rounds.
      KeyError: there is no column of rounds.
    """
    columns = _read_all_columns(path)
    if texts := [name for name, values in columns.items() if values is None]:
        raise ValueError(f"its {texts[0]:.60} holds something else than numbers")
    check_rounds(columns[ROUND])
    return {
        int(round_num): {name: float(values[i]) for name, values in columns.items() if not math.isnan(values[i])}
        for i, round_num in enumerate(columns[ROUND])
    }


def check_rounds(rounds: np.ndarray) -> None:
    """Raises ValueError unless these are different whole numbers from 0, float64, shape (rounds,)."""
    odd = rounds[~((rounds >= 0) & (rounds < 2**53) & (rounds == np.floor(rounds)))]
    if len(odd):
        raise ValueError(f"it has the round {odd[0]:g}, expected whole numbers")
    found, counts = np.unique(rounds, return_counts=True)
    if len(found) < len(rounds):
        raise ValueError(f"it has the round {found[counts > 1][0]:.0f} twice")


def read_json(path: RunPath) -> dict[str, Any]:
    """A JSON object. Raises RunRecordError if it is not there or is something else; NaN and infinity are no JSON."""
    try:
        with open_text(path) as file:
            content = json.loads(file.read(MAX_JSON), parse_constant=_refuse_constant)
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise RunRecordError(f"{path}: cannot be read ({error})") from None
    if not isinstance(content, dict):
        raise RunRecordError(f"{path}: expected a JSON object")
    return content


def read_config(run_dir: RunPath) -> dict[str, Any]:
    """The `config.json` of a run, with today's names of its flags. Raises RunRecordError as `read_json` does."""
    config = read_json(run_dir / CONFIG_FILE)
    flags = config.get("flags")
    return {**config, "flags": rename_stored_flags(flags)} if isinstance(flags, dict) else config


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"it holds {name}, which is no number")


def resolve_experiment(experiment: Experiment, arguments: Sequence[str] = ()) -> RunConfig:
    """What an experiment asks for, with further arguments after it. Raises FlagError, naming it."""
    try:
        return parse_config(arguments, experiment.arguments)
    except FlagError as error:
        raise FlagError(f"{experiment.full_name}: {error}") from None


def list_other_settings(stored: Mapping[str, Any], wanted: RunConfig) -> list[str]:
    """The flags by which a stored run computed something other than `wanted`, each as "--name=stored, not wanted".

    By what means it was computed does not count, since the numbers agree to rounding. A flag that only the stored run
    has is skipped, since a later version removed it. So are flags that do nothing in either, such as epochs where steps
    are given.
    """
    asked = flag_values(wanted)
    stored = rename_stored_flags(stored, find_algorithm(wanted.algo))  # of a user's own, whose name is known only here
    stored = complete_stored_flags(stored, (*shared_fields(), *algorithm_fields(wanted.algo)))
    ignored = CHANGEABLE_ON_RESUME | MEANS_OF_COMPUTING
    other = [name for name, value in asked.items() if name in stored and name not in ignored and stored[name] != value]
    if other:
        idle = find_idle(wanted).keys() & find_stored_idle({**asked, **stored})
        other = [name for name in other if name not in idle]
    return [f"--{name}={stored[name]}, not {asked[name]}" for name in other]


def find_stored_idle(flags: Mapping[str, Any]) -> frozenset[str]:
    """The flags that do nothing in a run; none where another version, or a module of somebody's, had other flags."""
    if list_foreign_modules(flags):  # reading a run must not run its code
        return frozenset()
    try:
        known = (*shared_fields(), *algorithm_fields(flags["algo"]))
        flags = {field.name: flags[field.name] for field in known if field.name in flags}
        return frozenset(find_idle(build_run_config(complete_stored_flags(flags, known))))
    except (FlagError, ConfigError, DatasetError, ValueError, TypeError):
        return frozenset()


def find_run_dirs(runs_dir: RunPath) -> list[RunPath]:
    """The run folders (those with a `config.json`) in `runs_dir` at any depth, in the order of their names.

    A pipe or a device of that name makes one too, so that its reader says what is wrong; nobody waits at it.
    """
    if isinstance(runs_dir, pathlib.Path):
        return sorted(path.parent for path in runs_dir.glob(f"**/{CONFIG_FILE}") if not path.is_dir())
    # Sorted part by part, as paths on disk are: "a/b" comes before "a-b/c".
    folders = [posixpath.split(name)[0] for name in runs_dir.root.namelist() if posixpath.basename(name) == CONFIG_FILE]
    return [runs_dir / name for name in sorted(folders, key=lambda name: name.split("/"))]


class Settings(NamedTuple):
    """What a run's `config.json` says.

    Attributes:
      flags: every flag's value.
      data: the data section.
      revision: of this project's code, "" if it is not known.
      modules: the sums of the user's own modules, by name; empty if it has none or they are not known.
      algorithm: what people see of its algorithm.
      devices: what they were, as from `describe_devices`.
    """

    flags: dict[str, Any]
    data: dict[str, Any]
    revision: str
    modules: Mapping[str, str]
    algorithm: ShownAlgorithm
    devices: str = ""

    @property
    def digests(self) -> dict[str, str]:
        """Those by which its data are known."""
        names = (DIGEST, SOURCE_DIGEST, ARRAYS_DIGEST, DEVICES, CLASS_WEIGHTS_DIGEST)
        known = ((name, self.data.get(name)) for name in names)
        return {name: value for name, value in known if isinstance(value, str) and value}


def read_settings(run_dir: RunPath) -> Settings:
    """What a run was made with; its records are compared with their sums before.

    Raises:
      RunRecordError: its files cannot be read or have changed.
    """
    try:
        check_sums(run_dir)
        check_inside(run_dir, [EXPORT_REPORT])  # which has no sum
    except RunFolderError as error:
        raise RunRecordError(str(error)) from None
    config = read_config(run_dir)
    flags, data = config.get("flags"), config.get("data")
    if not isinstance(flags, dict) or not {"algo", "seed"} <= flags.keys():
        raise RunRecordError(f"{run_dir}: its config.json holds no flags")
    kinds = {"algo": str, "dataset": str, "partition": str, "seed": int}
    for name, value in flags.items():
        if type(value) is not kinds.get(name, type(value)) or not isinstance(value, bool | int | float | str | None):
            raise RunRecordError(f"{run_dir}: its config.json is damaged ({name}={value!r:.60})")
    if not can_hold(next(field for field in shared_fields() if field.name == "seed"), flags["seed"]):
        raise RunRecordError(f"{run_dir}: its config.json is damaged (seed={flags['seed']!r:.60})")
    if isinstance(data, dict) and not isinstance(data.get("dataset"), str | None):
        raise RunRecordError(f"{run_dir}: its config.json is damaged (the data's dataset={data['dataset']!r:.60})")
    revision, modules = config.get("git_revision"), config.get(OWN_MODULES)
    sums = modules.items() if isinstance(modules, dict) else ()
    return Settings(
        flags,
        data if isinstance(data, dict) else {},
        revision if isinstance(revision, str) else "",
        {name: digest for name, digest in sums if isinstance(digest, str)},
        show_stored_algorithm(flags["algo"], config.get(OWN_ALGORITHM)),
        describe_devices(config),
    )


def read_summary(run: RunRecord) -> dict[str, Any]:
    """What a run's summary says; nothing if it has not ended."""
    path = run.path / SUMMARY_FILE
    return read_json(path) if path.is_file() else {}


def sum_fine_tuning_s(summary: Mapping[str, Any]) -> float:
    """Virtual seconds of the steps on clients' own examples at the end, which no round has; 0 without any."""
    sections = (each for each in summary.values() if isinstance(each, Mapping))
    return sum(float(each.get(FINE_TUNING_S) or 0) for each in sections)


def find_longer(flags: Mapping[str, Any], summary: Mapping[str, Any]) -> dict[str, str]:
    """{flag: value} by which a finished run would go on: twice what ended it, each; {} if no further round may come.

    The numbers come from a run's files, which may be those of anybody.
    """
    if summary.get(BUDGET_SPENT):
        return {}
    limits = summary.get(REACHED_LIMITS)
    if not (limits and isinstance(limits, Mapping)):
        name = PATIENCE if STOPPED_EARLY in summary else "rounds"
        limits = {name: flags.get(name)}
    numbers = {name: value for name, value in limits.items() if type(value) in (int, float) and math.isfinite(value)}
    return {name: f"{2 * value:{'d' if type(value) is int else 'g'}}" for name, value in numbers.items() if value}
