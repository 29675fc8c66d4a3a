"""The command line of training: absl flags derived from the configs, read without importing TensorFlow.

The flags are parsed into a `FlagValues` of our own: absl's runner answers a mistake with two lines and exit code 1, and
its global flags belong to whatever libraries are imported.
"""

import functools
import json
import pathlib
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from absl import flags as absl_flags

from launch.settings.algorithms import ALGORITHMS
from launch.settings.errors import FlagError
from launch.settings.experiments import expand_experiments
from launch.settings.flag_fields import FlagField, can_hold, complete_stored_flags
from launch.settings.flagfiles import expand_flagfiles
from launch.settings.renamed_flags import REMOVED, find_new_name, rename_stored_flags
from launch.settings.resuming import CHANGEABLE_ON_RESUME
from launch.settings.run_checks import RUN_TO_RESUME
from launch.settings.run_config import (
    CONFIG_FILE,
    OWN_FORM,
    RunConfig,
    algorithm_fields,
    build_run_config,
    find_algorithm,
    find_idle,
    flag_values,
    shared_fields,
)
from launch.settings.runtimes import AUTO
from launch.settings.suggestions import is_known_elsewhere, suggest_flags, suggest_integer, suggest_value
from launch.settings.trusted_modules import TRUST_FLAG, check_trusted, read_trusted
from tff_algos.settings.config_fields import ConfigError, Setting, is_own

# Algorithms that are a setting of another one here.
ALGORITHMS_ELSEWHERE = {
    "fedprox": "; did you mean --algo=fedavg --fedavg_proximal_weight=0.01?",
    "fedsgd": "; did you mean --algo=fedavg --fedavg_steps=1?",
    "fedbuff": "; did you mean buffered?",
    "amfl": "; did you mean amfl_p?",
}
PROGRAM = "python -m launch.train"
REPLACED = ("flagfile", "experiment")  # flags that others take the place of
LISTING = ("list_experiments", "show_experiment")  # flags of launch.train that stand alone
FULL_HELP = "--helpfull"
_NAME = re.compile("(?:--|-(?!-))([^=]+)")  # of a flag, in an argument
HELP_FLAGS = ("--help", "-help", "-h", FULL_HELP, "-?")


def describe_expected(setting: Setting, value_type: type, value: Any = None) -> str:
    """What a flag takes, in words; "" for any text. With a value that is refused, also the limit that it breaks."""
    if value_type is bool:
        return "true or false"
    if value_type is str and not setting.choices:
        return ""
    described = setting.describe_range(value)
    if value_type is not int:
        return described
    in_full = re.sub(r"\d\S*e\+\d+", lambda number: f"{float(number[0]):.0f}", described)
    return in_full.replace("a number", "an integer")


class _SettingParser(absl_flags.ArgumentParser):
    """Reads a value as the type of the setting's default, and refuses one out of the setting's range."""

    def __init__(self, setting: Setting, value_type: type):
        super().__init__()
        self.setting, self.value_type = setting, value_type

    def parse(self, argument: Any) -> Any:
        try:
            # Python would take 1_0 for 10, and digits of other scripts.
            if self.value_type is not str and not re.fullmatch("[ -^`-~]*", argument):
                raise ValueError
            value = self.value_type(argument)
        except ValueError:
            hint = suggest_integer(argument) if self.value_type is int else ""
            raise ValueError(f"expected {describe_expected(self.setting, self.value_type)}{hint}") from None
        if not self.setting.admits(value):
            hint = ALGORITHMS_ELSEWHERE.get(argument.lower(), "") if self.setting.or_own == OWN_FORM else ""
            hint = hint or suggest_value(argument, self.setting.choices or (), self.setting.or_own)
            hint = "; write it without spaces around =" if argument == "=" else hint
            raise ValueError(f"expected {describe_expected(self.setting, self.value_type, value)}{hint}")
        return value


class _BooleanParser(absl_flags.BooleanParser):
    """absl's, with an error that reads like the others."""

    def parse(self, argument: Any) -> bool:
        try:
            return super().parse(argument)
        except (TypeError, ValueError):
            raise ValueError("expected true or false") from None


def define_flag(field: FlagField, values: absl_flags.FlagValues) -> None:
    """Adds a flag of the type of the field's default to `values`; its own default is None, which means "not given"."""
    is_boolean = isinstance(field.default, bool)
    parser = _BooleanParser() if is_boolean else _SettingParser(field.setting, field.value_type)
    values[field.name] = absl_flags.Flag(parser, None, field.name, None, field.setting.help_text, boolean=is_boolean)


def define_flags(algorithms: Iterable[str] = tuple(ALGORITHMS)) -> absl_flags.FlagValues:
    """The shared flags and those of these algorithms, all with the default None, which means "not given"."""
    values = absl_flags.FlagValues()
    for field in (*shared_fields(), *(field for name in algorithms for field in algorithm_fields(name))):
        define_flag(field, values)
    return values


def define_own_flags(**flags: tuple[Any, str]) -> absl_flags.FlagValues:
    """The flags of a command by name, each (default, help text), of the default's type.

    A tuple holds the choices, of which the first is the default. A number is at least 1, or at least 0 if that is its
    default; a list has commas between its texts.
    """
    values = absl_flags.FlagValues()
    for name, (default, text) in flags.items():
        match default:
            case tuple():
                absl_flags.DEFINE_enum(name, default[0], default, text, flag_values=values)
            case list():
                absl_flags.DEFINE_list(name, default, text, flag_values=values)
            case bool():
                absl_flags.DEFINE_bool(name, default, text, flag_values=values)
            case int():
                absl_flags.DEFINE_integer(name, default, text, min(default, 1), 10**6, flag_values=values)
            case _:
                absl_flags.DEFINE_string(name, default, text, flag_values=values)
    return values


def describe_unknown(name: str, values: absl_flags.FlagValues, of_a_run: str = "") -> str:
    """What is wrong with a flag that is not among `values`, and what was probably meant.

    Args:
      name: the flag, without dashes.
      values: the flags that there are, with what was read so far.
      of_a_run: for a command that trains runs: what to do with a flag that belongs to them.
    """
    is_training, prefix = "algo" in values, ""
    known = [*(field.name for field in shared_fields()), *REPLACED, *LISTING] if is_training else list(values)
    if is_training and (algo := values["algo"].value) is not None:
        known += [field.name for field in algorithm_fields(algo)]
        prefix = find_algorithm(algo).flag_prefix
    if new_name := find_new_name(name):
        return f"--{name}: is called --{new_name} now"
    if name in REMOVED:
        return f"--{name}: {REMOVED[name]}"
    hint = suggest_flags(name, known, values, prefix)
    if not hint and name.removeprefix("no") in _list_flags_of_runs():
        return f"--{name}: is a flag of launch.train{of_a_run and f'; {of_a_run}'}"
    if not hint and of_a_run and is_known_elsewhere(name):
        return f"--{name}: unknown flag; {of_a_run}"
    return f"--{name}: unknown flag{hint or '; --helpfull lists them all'}"


def _list_flags_of_runs() -> set[str]:
    fields = (*shared_fields(), *(field for name in ALGORITHMS for field in algorithm_fields(name)))
    return {field.name for field in fields}


def read_flags(values: absl_flags.FlagValues, argv: Sequence[str], of_a_run: str = "") -> None:
    """Sets `values` from the arguments, without the program's name.

    Args:
      values: the flags that there are.
      argv: the arguments.
      of_a_run: see `describe_unknown`.

    Raises:
      FlagError: an unknown flag, a stray argument, a value of the wrong type or out of range, no such flagfile.
    """
    values.set_gnu_getopt(True)
    try:  # of an unknown flag, absl would look for names alike, which takes a second
        left = values(["command", *expand_flagfiles(argv)], known_only=True)[1:]
    except (absl_flags.Error, ValueError) as error:
        raise FlagError(_reword(" ".join(str(error).split()), values)) from None
    end = left.index("--") if "--" in left else len(left)
    if unknown := next(filter(None, map(_NAME.match, left[:end])), None):
        raise FlagError(describe_unknown(unknown[1], values, of_a_run))
    if stray := [*left[:end], *left[end + 1 :]]:
        shown = repr(stray[0]) if "=" in stray[0] else stray[0]
        raise FlagError(f"{shown}: expected flags only, each as --name=value; {_explain_stray(stray[0], values)}")


def _explain_stray(argument: str, values: absl_flags.FlagValues) -> str:
    """What an argument that is no flag was probably meant to be."""
    name = argument.partition("=")[0]
    if argument == "help":
        return "did you mean --help?"
    if "algo" in values and argument in ALGORITHMS:
        return f"did you mean --algo={argument}?"
    if "=" in argument and name in values and not argument.startswith("-"):
        return f"did you mean --{argument}?"
    if pathlib.Path(argument).is_dir():
        taken = [flag for flag in ("run_dir", "runs", "runs_dir") if flag in values]
        if taken:
            return f"did you mean --{taken[0]}={argument}?"
    if argument.endswith(".flags"):
        return f"did you mean --{'flagfiles' if 'flagfiles' in values else 'flagfile'}={argument}?"
    return "a space before = or in a list?"


def _reword(text: str, values: absl_flags.FlagValues) -> str:
    """absl's complaint about a value, in the words of our own parsers."""
    missing = re.fullmatch("Missing value for flag (.+)", text)
    if missing:
        return f"{missing[1]}: no value, expected {missing[1]}=<value>"
    refused = re.fullmatch(r"flag (--(\w+)=.*?): (?!expected )(.+)", text)
    if refused is None:
        return text.removeprefix("flag ")
    flag = values[refused[2]]
    choices = getattr(flag.parser, "enum_values", None)
    expected = "one of " + ", ".join(choices) if choices else flag.parser.syntactic_help or refused[3]
    hint = suggest_value(refused[1].partition("=")[2], choices) if choices else ""
    return f"{refused[1]}: expected {'true or false' if flag.boolean else expected}{hint}"


def parse_given(argv: Sequence[str]) -> dict[str, Any]:
    """The flags that are on the command line or in its flagfiles and experiments, as {name: value}.

    Args:
      argv: the arguments, without the program's name.

    Raises:
      FlagError: see `read_flags`; also a user's own algorithm that cannot be used.
    """
    arguments = expand_experiments(expand_flagfiles(argv))
    own = find_own_algorithm(arguments)
    values = define_flags((*ALGORITHMS, *own)) if own else _define_once()
    values.unparse_flags()
    read_flags(values, arguments)
    return {name: values[name].value for name in values if values[name].present}


@functools.cache
def _define_once() -> absl_flags.FlagValues:
    """The flags of all algorithms of ours: to define 800 takes longer than to read a command line."""
    return define_flags()


def find_asked_algorithm(argv: Sequence[str]) -> str:
    """The algorithm that is asked for, or that the run to be resumed has, as --algo spells it; "" if it is not known.

    The flags of a user's own must be known before the arguments are read, so this looks ahead. It passes over every
    mistake, which `read_flags` then finds.
    """
    values = absl_flags.FlagValues()
    values.set_gnu_getopt(True)
    for field in shared_fields():
        if field.name in ("algo", "resume", "run_dir", TRUST_FLAG):
            define_flag(field, values)
    try:
        values(["command", *expand_experiments(expand_flagfiles(argv))], known_only=True)
    except (absl_flags.Error, ValueError):
        return ""
    spelling = values["algo"].value
    if spelling is None and values["resume"].value and values["run_dir"].value:
        spelling = (_read_flags_of_run(values["run_dir"].value) or {}).get("algo")
        check_trusted({"algo": spelling}, values["run_dir"].value, read_trusted(values[TRUST_FLAG].value or ""))
    return spelling if isinstance(spelling, str) and (spelling in ALGORITHMS or is_own(spelling)) else ""


def find_own_algorithm(argv: Sequence[str]) -> list[str]:
    """The same, of a user's own algorithm alone; empty for one of ours."""
    spelling = find_asked_algorithm(argv)
    return [spelling] if is_own(spelling) else []


def parse_config(argv: Sequence[str], base: Sequence[str] = ()) -> RunConfig:
    """The config that a command line asks for; with --resume, flags left out come from the run folder.

    Args:
      argv: the arguments, without the program's name.
      base: flags that these override, as those of a flagfile that stands before them.

    Raises:
      FlagError: see `parse_given`; also a flag of another algorithm, one that does nothing, or values in conflict.
    """
    given = parse_given([*base, *argv])
    trusted = read_trusted(given.get(TRUST_FLAG, ""), given)
    stored = read_stored_flags(given["run_dir"], trusted) if given.get("resume") and given.get("run_dir") else {}
    for name in {"device", "compile"} & given.keys():
        if stored and given[name] == AUTO:  # it was settled when the run began
            given.pop(name)
    name = given.get("algo") or stored.get("algo")
    if name is None:
        if given.get("resume"):
            raise FlagError(f"--resume=True: expected {RUN_TO_RESUME}")
        raise FlagError(f"--algo is missing: expected --algo=<{'|'.join(ALGORITHMS)}>; --help lists them")
    _check_no_flag_of_another_algorithm(name, given)
    try:
        config = build_run_config({**stored, **given})
        if stored:
            spelled_anew = flag_values(build_run_config(stored))  # 5, 15 in an old config.json is 5,15 today
            _check_same_run({flag: spelled_anew[flag] for flag in stored}, flag_values(config))
    except ConfigError as error:
        raise FlagError(f"--{error}") from None
    typed = {argument.lstrip("-").split("=")[0] for argument in argv if argument.startswith("-")}
    _check_no_idle_flag([name for name in given if name in typed], config)
    return config


def read_stored_flags(run_dir: str, trusted: Collection[str] = ()) -> dict[str, Any]:
    """The flags in a run folder's `config.json`.

    Args:
      run_dir: the folder.
      trusted: the modules that may be imported if the flags name them, see `trusted_modules`.

    Raises:
      FlagError: there is no run in that folder, it was written by another version, or it needs a module that is not
        trusted.
    """
    stored = _read_flags_of_run(run_dir)
    if stored is None:
        raise FlagError(f"--run_dir={run_dir}: no run to read there ({_explain_no_run(pathlib.Path(run_dir))}")
    check_trusted(stored, run_dir, trusted)
    try:
        find_algorithm(stored.get("algo"))
    except ConfigError:
        raise FlagError(
            f"--run_dir={run_dir}: its algorithm {stored.get('algo')} is unknown; start a new run"
        ) from None
    except FlagError as error:
        raise FlagError(f"--run_dir={run_dir} has {error}") from None
    for name, reason in REMOVED.items():
        if name in stored:
            raise FlagError(f"--run_dir={run_dir}: was made with --{name}={stored[name]}: {reason}; start a new run")
    known = {field.name: field for field in (*shared_fields(), *algorithm_fields(stored["algo"]))}
    unknown = sorted(set(stored) - set(known))
    if unknown:
        raise FlagError(
            f"--run_dir={run_dir}: its {CONFIG_FILE} has unknown flags ({', '.join(unknown)}); start a new run"
        )
    damaged = [f"{name}={value}" for name, value in stored.items() if not can_hold(known[name], value)]
    if damaged:
        raise FlagError(f"--run_dir={run_dir}: its {CONFIG_FILE} is damaged ({', '.join(damaged)}); start a new run")
    kept = {name: value for name, value in stored.items() if name not in ("resume", "overwrite", "run_dir", TRUST_FLAG)}
    return complete_stored_flags(kept, known.values())


def _explain_no_run(path: pathlib.Path) -> str:
    """Why there is no run in a folder, and where there may be one; after an opening bracket."""
    if not path.is_dir():
        return "a file, not a folder)" if path.exists() else "no such folder)"
    if (path / CONFIG_FILE).exists():
        return f"no valid {CONFIG_FILE}); was it ever started?"
    runs = sorted(inner.parent for inner in path.glob(f"*/{CONFIG_FILE}"))
    if runs:
        return f"it holds {'a run' if len(runs) == 1 else f'{len(runs)} runs'}); did you mean --run_dir={runs[-1]}?"
    return f"no {CONFIG_FILE}); was it ever started?"


def _read_flags_of_run(run_dir: str) -> dict[str, Any] | None:
    """What `config.json` holds under "flags"; None if there is no such file or it holds something else."""
    try:
        stored = json.loads((pathlib.Path(run_dir) / CONFIG_FILE).read_text(encoding="utf-8"))["flags"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return rename_stored_flags(stored) if isinstance(stored, dict) else None


def _check_no_flag_of_another_algorithm(spelling: str, given: dict[str, Any]) -> None:
    own = {field.name for field in algorithm_fields(spelling)}
    for other, row in ALGORITHMS.items():
        foreign = [field.name for field in algorithm_fields(other) if field.name in given and field.name not in own]
        if foreign:
            prefix = find_algorithm(spelling).flag_prefix
            near = suggest_flags(foreign[0].replace(row.flag_prefix, prefix, 1), own, prefix=prefix)
            raise FlagError(f"--{foreign[0]}: belongs to --algo={other}, expected flags of --algo={spelling}{near}")


def _check_no_idle_flag(names: Sequence[str], config: RunConfig) -> None:
    """Refuses a flag that another makes idle. Only typed flags count: those of a flagfile may be overridden."""
    idle = find_idle(config) if names else {}
    for name in names:
        if name in idle:
            other, value, fix = idle[name]
            raise FlagError(f"--{name}: does nothing with --{other}={value}; leave it out, or give {fix}")


def _check_same_run(stored: dict[str, Any], wanted: dict[str, Any]) -> None:
    names = stored if wanted["algo"] == stored["algo"] else ("algo",)
    differences = [
        f"--{name}={wanted.get(name)} (the run has {stored[name]})"
        for name in names
        if name not in CHANGEABLE_ON_RESUME and wanted.get(name) != stored[name]
    ]
    if differences:
        raise FlagError(
            f"cannot resume with other settings: {', '.join(differences)}; leave them out or start a new run"
        )
