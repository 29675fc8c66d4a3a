"""What `launch.advise` is asked for: its flags, and what they say together. Imports nothing heavy."""

import copy
import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from launch.advice.candidates import check_names
from launch.command_line import find_paths, parse_command
from launch.runs.run_archive import is_archive
from launch.settings.data_flags import DataFlags, LossFlags, OwnDataFlags
from launch.settings.errors import FlagError
from launch.settings.run_config import RunConfig, build_run_config, find_idle, flag_values
from launch.settings.run_flags import ArchetypeFlags, DeviceFlags, ModelFlags, PartitionFlags
from launch.sweeps.jobs import JobsFlags
from launch.sweeps.recipes import find_recipe
from launch.training.inspected_data import make_config
from tff_algos.settings.config_fields import setting, texts

PROGRAM = "python -m launch.advise"
USAGE = f"{PROGRAM} <file or folder> [--flag=value ...], or --dataset=<name>, or --experiment=<name>"
# Of the flags of a run, those that the commands' runs get from elsewhere, or that make no sense for many runs.
NOT_OURS = {"building_csv", "replay", "runtime", "ray_address", "ray_shares"}
SOURCES = ("data", "dataset", "npz")


@dataclasses.dataclass(frozen=True)
class _OwnFlags(JobsFlags):
    """What is asked of the advice."""

    minutes: float = setting(30.0, "How long it may take, in minutes of this machine.", minimum=1, maximum=10**5)
    plan_only: bool = setting(False, "Measure how fast FedAvg is, print the plan, and end.")
    no_pooled: bool = setting(
        False, "Leave out training on all data in one place, which shows the most that sharing data could give."
    )
    methods: tuple[str, ...] = texts(
        (),
        "What to try beside local training and FedAvg: names of the plan, other algorithms, or your own as "
        "module:ALGORITHM; by default all that fit the data.",
    )
    experiment: str = setting("", "Experiment of a paper, or flagfile, of which the data and the model are taken.")
    rounds: int | None = setting(
        None, "Rounds of FedAvg, by which the others' time is limited; by default what the minutes allow.",
        minimum=2, maximum=10**6,
    )  # fmt: skip
    runs_dir: str = setting("runs/advice", "Folder for the folder of this advice, which is called after the data.")


# How data are read and divided, which model, on which devices.
_GROUPS = (ArchetypeFlags, PartitionFlags, ModelFlags, DeviceFlags, DataFlags, OwnDataFlags, LossFlags)
_NAMES = {field.name for group in _GROUPS for field in dataclasses.fields(group)} - NOT_OURS | {"batch_size"}
DATA_NAMES = tuple(field.name for field in dataclasses.fields(RunConfig) if field.name in _NAMES)

# The flags of this command: its own, and those of a run on the data.
Flags = dataclasses.make_dataclass(
    "Flags",
    [(each.name, each.type, copy.copy(each)) for each in dataclasses.fields(RunConfig) if each.name in _NAMES],
    bases=(_OwnFlags,),
    frozen=True,
)
COMMON = (
    *("minutes", "plan_only", "methods", "no_pooled", "runs_dir"),
    *("dataset", "data", "experiment", "client_column", "label_column", "model", "new_clients", "device_profiles"),
)  # of its flags, what --help shows


class Request(NamedTuple):
    """What a command line asks for.

    Attributes:
      given: the flags of the data and the model, by name: those of the experiment and, over these, what was typed.
      typed: of these, the ones that were typed.
      seconds: how long it may take.
      methods: names of what to try; none: whatever fits.
      has_pooled: whether training on all data in one place may be among them.
      rounds: of FedAvg; None: what the time allows.
      jobs: runs at a time; None: what memory and cores allow.
      runs_dir: where the folder of the advice goes.
      is_plan_alone: whether it ends with the plan.
    """

    given: Mapping[str, Any]
    typed: frozenset[str]
    seconds: float
    methods: tuple[str, ...]
    has_pooled: bool
    rounds: int | None
    jobs: int | None
    runs_dir: pathlib.Path
    is_plan_alone: bool


def parse_request(argv: Sequence[str]) -> Request:
    """Reads the command line, without the program's name.

    Raises:
      FlagError: it is wrong, or a run would refuse its flags.
    """
    paths = find_paths(argv)
    flags, names = parse_command(
        Flags,
        [argument for argument in argv if argument not in paths],
        "the methods get their settings from trials, and the runs from the minutes",
    )
    typed = {name: getattr(flags, name) for name in DATA_NAMES if name in names}
    if len(paths) > 1:
        raise FlagError(f"{' '.join(paths)}: expected one file or folder: {USAGE}")
    named = [f"--{name}" for name in SOURCES if name in names]
    if paths and named:
        raise FlagError(f"{paths[0]}: either a file or folder, or {named[0]}, not both")
    if not (paths or named or flags.experiment):
        raise FlagError(f"expected a file or folder, --dataset=<name> or --experiment=<name>: {USAGE}")
    if paths:
        typed["data"] = paths[0]
    given = {**(_read_experiment(flags.experiment, typed) if flags.experiment else {}), **typed}
    make_config(given)  # what a run would refuse
    runs_dir = pathlib.Path(flags.runs_dir)
    nearest = next((path for path in (runs_dir, *runs_dir.parents) if path.exists()), runs_dir)
    if is_archive(runs_dir) or (nearest.exists() and not nearest.is_dir()):
        raise FlagError(f"--runs_dir={runs_dir}: expected a folder, {nearest} is a file; choose another")
    check_names(flags.methods)
    return Request(
        given,
        frozenset(typed),
        60 * flags.minutes,
        flags.methods,
        not flags.no_pooled,
        flags.rounds,
        flags.jobs,
        runs_dir,
        flags.plan_only,
    )


def _read_experiment(text: str, typed: Mapping[str, Any]) -> dict[str, Any]:
    """What an experiment or a flagfile says of data and model, where that is not the default.

    Its algorithm, and whatever belongs to that, is left out: the trials choose.

    Raises:
      FlagError: there is no such experiment, or it says something wrong.
    """
    config = find_recipe(text).resolve()
    stored, idle = flag_values(config), find_idle(config)
    # With other data the default of the partition would be another one.
    plain = flag_values(build_run_config({"algo": "fedavg", "dataset": config.dataset, "data": config.data,
                                          "npz": config.npz}))  # fmt: skip
    if any(name in typed for name in SOURCES):
        stored = {name: value for name, value in stored.items() if name not in SOURCES}
    return {
        name: stored[name]
        for name in DATA_NAMES
        if name in stored and name not in idle and (name == "dataset" or stored[name] != plain[name])
    }
