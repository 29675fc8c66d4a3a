"""The command line of training, and the config that it asks for. Imports no TensorFlow."""

import dataclasses
import json
import pathlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from files.reading import read_regular
from launch.settings.algorithms import ALGORITHMS, Algorithm
from launch.settings.errors import FlagError
from launch.settings.experiments import expand_experiments
from launch.settings.flag_fields import FlagField, can_hold, complete_stored_flags
from launch.settings.flag_parsing import define_flags, expand_flagfiles, read_flags, read_given, read_known
from launch.settings.renamed_flags import REMOVED, find_new_name, rename_stored_flags
from launch.settings.replaying import choose_repeated_flags, read_live_run
from launch.settings.resuming import ASKED_ONCE, CHANGEABLE_ON_RESUME
from launch.settings.run_config import (
    CONFIG_FILE,
    MAX_JSON,
    RUN_TO_RESUME,
    RunConfig,
    build_run_config,
    find_algorithm,
    find_idle,
    flag_values,
    is_algorithm_spelling,
    shared_fields,
)
from launch.settings.runtimes import AUTO
from launch.settings.serving import ServeFlags
from launch.settings.setting_names import (
    find_owner,
    get_flag,
    read_name,
    rename_arguments,
)
from launch.settings.suggestions import OTHER_NAMES, OUTPUTS, suggest_flags
from launch.settings.trusted_modules import LOSS, TRUST_FLAG, check_trusted, read_trusted
from launch.settings.typed_places import check_places
from tff_algos.settings.config_fields import ConfigError

PROGRAM = "python -m launch.train"
REPLACED = ("flagfile", "experiment")  # flags that others take the place of
OF_SERVE = frozenset(field.name for field in dataclasses.fields(ServeFlags))
LISTING = ("list_experiments", "show_experiment")  # flags of launch.train that stand alone


def describe_unknown(name: str, known: Collection[str], of_a_run: str = "") -> str:
    """What is wrong with a flag that a command does not have, and what was probably meant.

    Args:
      name: the flag, without dashes.
      known: the flags that there are.
      of_a_run: for a command that trains runs: what to do with a flag that belongs to them.
    """
    if gone := _describe_earlier(name):
        return gone
    if "run_dir" in known and name in OUTPUTS - set(known):
        return f"--{name}: unknown flag; what comes of a run is written into its own folder, --run_dir"
    hint = suggest_flags(name, known)
    if not hint and name.removeprefix("no") in list_names_of_runs():
        return f"--{name}: is a flag of launch.train{of_a_run and f'; {of_a_run}'}"
    if not hint and of_a_run and any(name in others for others in OTHER_NAMES.values()):
        return f"--{name}: unknown flag; {of_a_run}"
    return f"--{name}: unknown flag{hint or '; --helpfull lists them all'}"


def describe_unknown_in_run(name: str, rows: Sequence[Algorithm], known: Collection[str]) -> str:
    """The same of a flag that no run of these algorithms has: the one that is named, or several."""
    algorithm = rows[0] if len(rows) == 1 else None
    if gone := _describe_earlier(name, algorithm):
        return gone
    starts = [row.flag_prefix for row in (*rows, *ALGORITHMS.values())]
    plain = next((name.removeprefix(start) for start in starts if name.startswith(start)), name)
    near = f"; did you mean --{plain}?" if plain in known else suggest_flags(name, known) or suggest_flags(plain, known)
    owner = find_owner(name, ALGORITHMS.values())
    owners = [owner] if owner else [row for row in ALGORITHMS.values() if name in row.names]
    if algorithm and owners:
        whose = owners[0].name + (f" and {len(owners) - 1} more" if len(owners) > 1 else "")
        found = f"--{name}: belongs to --algo={whose}, expected settings of --algo={algorithm.name}{near}"
        return f"{found}, which has no private form" if plain == "dp_epsilon" else found
    if not near and name.removeprefix("no") in OF_SERVE:
        return f"--{name}: is a flag of launch.serve, which takes those of launch.train, too"
    return f"--{name}: unknown flag{near or '; --helpfull lists them all'}"


def _describe_earlier(name: str, algorithm: Algorithm | None = None) -> str:
    """What has become of a flag of earlier versions; "" for all others."""
    if (new_name := find_new_name(name)) and name not in list_names_of_runs():
        return f"--{name}: is called --{read_name(new_name, algorithm) if algorithm else new_name} now"
    return f"--{name}: {REMOVED[name]}" if name in REMOVED else ""


def list_names_of_runs(algorithms: Iterable[Algorithm] = ()) -> frozenset[str]:
    """Every name that a setting of a run may be given by, of our algorithms and of these."""
    own = [(row.flag_prefix, name) for row in (*ALGORITHMS.values(), *algorithms) for name in row.names]
    return frozenset(spelling for prefix, name in own for spelling in (name, prefix + name)).union(
        field.name for field in shared_fields()
    )


def parse_given(argv: Sequence[str], beside: Collection[str] = ()) -> dict[str, Any]:
    """The flags that are on the command line or in its flagfiles and experiments, as {name of the setting: value}.

    Args:
      argv: the arguments, without the program's name.
      beside: flags that the command has beside these, which may have been meant by an unknown one.

    Raises:
      FlagError: see `read_flags`; also a user's own algorithm that cannot be used, or a setting of another algorithm.
    """
    arguments = expand_experiments(expand_flagfiles(argv))
    asked = find_asked_algorithm(arguments)
    rows = (find_algorithm(asked),) if asked else tuple(ALGORITHMS.values())
    values = define_flags(list_fields_of(rows))
    known = [*values, *REPLACED, *LISTING, *beside]
    read_flags(values, rename_arguments(arguments, rows), lambda name: describe_unknown_in_run(name, rows, known))
    return read_given(values)


def list_fields_of(rows: Iterable[Algorithm]) -> list[FlagField]:
    """The flags of every run, and the settings of these algorithms."""
    return [*shared_fields(), *(field for row in rows for field in row.fields)]


def find_asked_algorithm(argv: Sequence[str]) -> str:
    """The algorithm that is asked for, or that the run to be resumed has, as --algo spells it; "" if it is not known.

    The flags of a user's own must be known before the arguments are read, so this looks ahead. It passes over every
    mistake, which `read_flags` then finds.
    """
    names = ("algo", "resume", "run_dir", "replay", TRUST_FLAG)
    values = define_flags(each for each in shared_fields() if each.name in names)
    try:
        read_known(values, expand_experiments(expand_flagfiles(argv)))
    except FlagError:
        return ""
    spelling = values["algo"].value
    folder = values["run_dir"].value if values["resume"].value else values["replay"].value
    if spelling is None and folder:
        spelling = (read_flags_of_run(folder) or {}).get("algo")
        check_trusted({"algo": spelling}, folder, read_trusted(values[TRUST_FLAG].value or ""))
    return spelling if is_algorithm_spelling(spelling) else ""


def parse_config(argv: Sequence[str], base: Sequence[str] = (), beside: Collection[str] = ()) -> RunConfig:
    """The config that a command line asks for; with --resume or --replay, flags left out come from the run's folder.

    Args:
      argv: the arguments, without the program's name.
      base: flags that these override, as those of a flagfile that stands before them.
      beside: flags that the command has beside these, see `parse_given`.

    Raises:
      FlagError: see `parse_given`; also a flag of another algorithm, one that does nothing, or values in conflict.
    """
    given = parse_given([*base, *argv], beside)
    trusted = read_trusted(given.get(TRUST_FLAG, ""), given)
    stored = read_stored_flags(given["run_dir"], trusted) if given.get("resume") and given.get("run_dir") else {}
    if stored:
        check_places({name: value for name, value in stored.items() if name not in given}, given["run_dir"])
    for name in {"device", "compile"} & given.keys():
        if stored and given[name] == AUTO:  # it was settled when the run began
            given.pop(name)
    repeated = _read_repeated_flags(given, trusted) if given.get("replay") and not given.get("resume") else {}
    name = given.get("algo") or stored.get("algo") or repeated.get("algo")
    if name is None:
        if given.get("resume"):
            raise FlagError(f"--resume=True: expected {RUN_TO_RESUME}")
        raise FlagError(f"--algo is missing: expected --algo=<{'|'.join(ALGORITHMS)}>; --help lists them")
    try:
        taken = {**stored, **repeated, **given}
        config = build_run_config(taken) if not stored or name == stored["algo"] else None
        wanted = flag_values(config) if config else {"algo": name}
        before = flag_values(build_run_config(stored)) if stored else {}  # 5, 15 in an old config.json is 5,15 today
    except ConfigError as error:
        raise FlagError(f"--{error}") from None
    differences = [
        f"--{flag}={wanted[flag]} (the run has {before[flag]})"
        for flag in stored
        if flag in wanted and flag not in CHANGEABLE_ON_RESUME and wanted[flag] != before[flag]
    ]
    if differences:
        others = ", ".join(differences)
        raise FlagError(f"cannot resume with other settings: {others}; leave them out or start a new run")
    idle = find_idle(config)
    # Those of a flagfile may be made idle by what is typed after it.
    for flag in map(get_flag, rename_arguments(argv, [find_algorithm(name)])):
        if flag in idle and flag in given:
            other, value, fix = idle[flag]
            raise FlagError(f"--{flag}: does nothing with --{other}={value}; leave it out, or give {fix}")
    return config


def _read_repeated_flags(given: Mapping[str, Any], trusted: Collection[str]) -> dict[str, Any]:
    """The settings that --replay takes over from its run. Raises FlagError if that run cannot be repeated."""
    folder = given["replay"]
    run = read_live_run(folder)
    place = str(run.folder)
    try:
        repeated = choose_repeated_flags(run, read_stored_flags(place, trusted), given)
        check_places({name: value for name, value in repeated.items() if name not in given}, place)
    except FlagError as error:  # which takes the folder for that of a run that goes on
        raise FlagError(str(error).replace(f"--run_dir={place}", f"--replay={folder}")) from None
    return repeated


def read_stored_flags(run_dir: str, trusted: Collection[str] = (), to_train: bool = True) -> dict[str, Any]:
    """The flags in a run folder's `config.json`.

    Args:
      run_dir: the folder.
      trusted: the modules that may be imported if the flags name them, see `trusted_modules`.
      to_train: whether the run goes on; else its loss, of which a finished run has no need, may be in any module.

    Raises:
      FlagError: there is no run in that folder, it was written by another version, or it needs a module that is not
        trusted.
    """
    stored = read_flags_of_run(run_dir)
    if stored is None:
        path = pathlib.Path(run_dir)
        runs = sorted(inner.parent for inner in path.glob(f"*/{CONFIG_FILE}")) if path.is_dir() else []
        why, hint = f"no {CONFIG_FILE}", "; was it ever started?"
        if not path.is_dir():
            why, hint = "a file, not a folder" if path.exists() else "no such folder", ""
        elif (path / CONFIG_FILE).exists():
            why = f"no valid {CONFIG_FILE}"
        elif runs:
            why, hint = (
                f"it holds {'a run' if len(runs) == 1 else f'{len(runs)} runs'}",
                f"; did you mean --run_dir={runs[-1]}?",
            )
        raise FlagError(f"--run_dir={run_dir}: no run to read there ({why}){hint}")
    needed = stored if to_train else {name: value for name, value in stored.items() if name != LOSS}
    check_trusted(needed, run_dir, trusted)
    try:
        algorithm = find_algorithm(stored.get("algo"))
    except ConfigError:
        raise FlagError(
            f"--run_dir={run_dir}: its algorithm {stored.get('algo')} is unknown; start a new run"
        ) from None
    except FlagError as error:
        raise FlagError(f"--run_dir={run_dir} has {error}") from None
    stored = rename_stored_flags(stored, algorithm)
    for name, reason in REMOVED.items():
        if name in stored:
            raise FlagError(f"--run_dir={run_dir}: was made with --{name}={stored[name]}: {reason}; start a new run")
    known = {field.name: field for field in list_fields_of([algorithm])}
    unknown = sorted(set(stored) - set(known))
    if unknown:
        raise FlagError(
            f"--run_dir={run_dir}: its {CONFIG_FILE} has unknown flags ({', '.join(unknown)}); start a new run"
        )
    damaged = [f"{name}={value}" for name, value in stored.items() if not can_hold(known[name], value)]
    if damaged:
        raise FlagError(f"--run_dir={run_dir}: its {CONFIG_FILE} is damaged ({', '.join(damaged)}); start a new run")
    kept = {name: value for name, value in stored.items() if name not in ("run_dir", *ASKED_ONCE)}
    return complete_stored_flags(kept, known.values())


def read_flags_of_run(run_dir: str | pathlib.Path) -> dict[str, Any] | None:
    """What `config.json` holds under "flags"; None if there is no such file or it holds something else."""
    try:
        stored = json.loads(read_regular(pathlib.Path(run_dir) / CONFIG_FILE, MAX_JSON))["flags"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return rename_stored_flags(stored) if isinstance(stored, dict) else None
