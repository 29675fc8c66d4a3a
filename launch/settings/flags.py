"""The command line of training: absl flags derived from the configs, read without importing TensorFlow.

The flags are parsed into a `FlagValues` of our own, because absl's runner answers a mistake with two lines and exit
code 1, and because its global flags belong to whatever libraries are imported.
"""

import difflib
import json
import pathlib
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from absl import flags as absl_flags

from datasets.archetypes import ARCHETYPE_PARTITIONS
from launch.settings.algorithms import ALGORITHMS
from launch.settings.run_config import (
    CHANGEABLE_ON_RESUME,
    CONFIG_FILE,
    FlagField,
    RunConfig,
    algorithm_fields,
    build_run_config,
    flag_values,
    shared_fields,
)
from tff_algos.settings.config_fields import ConfigError, Setting

PROGRAM = "python -m launch.train"
HELP_FLAGS = ("--help", "-help", "-h", "--helpfull", "-?")


class Dependency(NamedTuple):
    """A flag that another one can make idle.

    Attributes:
      flag: its name, or what follows the group's prefix if it begins with "_".
      other: the other flag, likewise.
      is_needed: whether `flag` does something, from the other's value.
      mend: what to give for it to do something.
    """

    flag: str
    other: str
    is_needed: Callable[[Any], bool]
    mend: str


DEPENDENCIES = (
    Dependency("har_features", "dataset", lambda name: name == "har", "--dataset=har"),
    *(
        Dependency(f"building_{name}", "dataset", lambda name: name == "building", "--dataset=building")
        for name in ("num_sensors", "heterogeneity", "csv")
    ),
    Dependency("building_csv", "smoke", lambda smoke: not smoke, "--nosmoke"),
    *(
        Dependency(f"occupancy_{name}", "dataset", lambda name: name == "occupancy", "--dataset=occupancy")
        for name in ("client_hours", "features")
    ),
    Dependency("num_clients", "partition", lambda name: name != "natural", "another partition"),
    *(
        Dependency(name, "partition", lambda name: name not in ARCHETYPE_PARTITIONS, f"{mend} in its place")
        for name, mend in (
            ("num_clients", "--clients_per_archetype"),
            ("validation_fraction", "--validation_per_client"),
            ("test_fraction", "--test_per_client"),
        )
    ),
    *(
        Dependency(name, "partition", lambda name: name in ARCHETYPE_PARTITIONS, "--partition=hierarchical")
        for name in ("clients_per_archetype", "train_per_client", "validation_per_client", "test_per_client")
    ),
    *(
        Dependency(name, "partition", lambda name: name == "hierarchical", "--partition=hierarchical")
        for name in ("bias_min", "bias_max")
    ),
    Dependency(
        "hypergeometric_draws", "partition", lambda name: name == "hypergeometric", "--partition=hypergeometric"
    ),
    Dependency("dirichlet_alpha", "partition", lambda name: name == "dirichlet", "--partition=dirichlet"),
    Dependency("labels_per_client", "partition", lambda name: name == "shards", "--partition=shards"),
    Dependency("qat_start_round", "quantize", lambda choice: choice == "qat", "--quantize=qat"),
    Dependency("_epochs", "_steps", lambda steps: steps == 0, "0 steps"),
    Dependency("_learning_rate_decay_rounds", "_learning_rate_decay", lambda factor: factor != 1, "a factor below 1"),
    Dependency("_compression_rounding", "_compression_bits", lambda bits: bits < 32, "fewer than 32 bits"),
    Dependency("fedsikd_max_clusters", "fedsikd_num_clusters", lambda number: number == 0, "--fedsikd_num_clusters=0"),
    Dependency("fedsikd_privacy_delta", "fedsikd_privacy_epsilon", lambda epsilon: epsilon > 0, "an epsilon above 0"),
    Dependency(
        "async_periodic_gamma",
        "async_periodic_weighting",
        lambda name: name == "age_aware",
        "--async_periodic_weighting=age_aware",
    ),
    Dependency(
        "async_periodic_period_fraction",
        "async_periodic_waiting",
        lambda name: name == "periodic",
        "--async_periodic_waiting=periodic",
    ),
    Dependency("_max_training_s", "_speed", lambda name: name != "profiles", "another speed"),
    Dependency("_max_away_s", "_dropout", lambda chance: chance > 0, "a chance above 0"),
    Dependency("_availability_share", "_availability_cycle_s", lambda cycle_s: cycle_s > 0, "a cycle above 0"),
    Dependency("_staleness_decay", "_staleness", lambda name: name != "constant", "another function"),
    Dependency("_staleness_grace", "_staleness", lambda name: name == "hinge", "the function hinge"),
    Dependency("fl_hc_num_clusters", "fl_hc_distance_threshold", lambda distance: distance == 0, "a threshold of 0"),
)


class FlagError(ValueError):
    """A command line that cannot be meant: what was wrong, what was expected, how to mend it, in one line."""


def describe_expected(setting: Setting, value_type: type) -> str:
    """What a flag takes, in words; "" for any text."""
    if value_type is bool:
        return "true or false"
    if value_type is str and not setting.choices:
        return ""
    described = setting.describe_range()
    if value_type is not int:
        return described
    in_full = re.sub(r"\d\S*e\+\d+", lambda number: f"{float(number[0]):.0f}", described)
    return in_full.replace("a number", "an integer")


class _SettingParser(absl_flags.ArgumentParser):
    """Reads one value as the type of the setting's default and holds it to the setting's range."""

    def __init__(self, setting: Setting, value_type: type):
        super().__init__()
        self.setting, self.value_type = setting, value_type

    def parse(self, argument: Any) -> Any:
        try:
            value = self.value_type(argument)
        except ValueError:
            raise ValueError(f"expected {describe_expected(self.setting, self.value_type)}") from None
        if not self.setting.admits(value):
            near = difflib.get_close_matches(argument, self.setting.choices or (), n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ValueError(f"expected {describe_expected(self.setting, self.value_type)}{hint}")
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
    value_type = str if field.default is None else type(field.default)
    parser = _BooleanParser() if is_boolean else _SettingParser(field.setting, value_type)
    flag = absl_flags.Flag(parser, None, field.name, None, field.setting.help_text, boolean=is_boolean)
    absl_flags.DEFINE_flag(flag, values)


def define_flags() -> absl_flags.FlagValues:
    """The shared flags and those of every algorithm, all with the default None, which means "not given"."""
    values = absl_flags.FlagValues()
    for field in shared_fields():
        define_flag(field, values)
    for name in ALGORITHMS:
        for field in algorithm_fields(name):
            define_flag(field, values)
    return values


def suggest(name: str, known: Iterable[str]) -> str:
    """A half sentence with the nearest known flags, empty if none is near."""
    near = difflib.get_close_matches(name, list(known), n=3, cutoff=0.7)
    return "; did you mean " + " or ".join(f"--{match}" for match in near) + "?" if near else ""


def read_flags(values: absl_flags.FlagValues, argv: Sequence[str]) -> None:
    """Sets `values` from the arguments, without the program's name.

    Raises:
      FlagError: an unknown flag, a stray argument, a value of the wrong type or out of range, no such flagfile.
    """
    values.set_gnu_getopt(True)
    try:
        stray = values(["command", *argv])[1:]
    except absl_flags.UnrecognizedFlagError as error:
        hint = suggest(error.flagname, values) or "; --help lists them all"
        raise FlagError(f"--{error.flagname}: unknown flag{hint}") from None
    except absl_flags.CantOpenFlagFileError as error:
        raise FlagError(f"cannot read the flagfile: {error.__cause__ or error.__context__}") from None
    except UnicodeDecodeError:
        raise FlagError("cannot read the flagfile: it is not a text file") from None
    except (absl_flags.Error, ValueError) as error:
        raise FlagError(_reword(" ".join(str(error).split()), values)) from None
    if stray:
        raise FlagError(f"{stray[0]}: expected flags only, each as --name=value; a space before = or in a list?")


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
    return f"{refused[1]}: expected {'true or false' if flag.boolean else expected}"


def parse_given(argv: Sequence[str]) -> dict[str, Any]:
    """The flags that are on the command line or in its flagfiles, as {name: value}.

    Args:
      argv: the arguments, without the program's name.

    Raises:
      FlagError: see `read_flags`.
    """
    values = define_flags()
    read_flags(values, argv)
    return {name: values[name].value for name in values if values[name].present}


def parse_config(argv: Sequence[str]) -> RunConfig:
    """The config that a command line asks for; with --resume, flags left out come from the run folder.

    Raises:
      FlagError: see `read_flags`; also a flag of another algorithm, one that does nothing, or values in conflict.
    """
    given = parse_given(argv)
    stored = read_stored_flags(given["run_dir"]) if given.get("resume") and given.get("run_dir") else {}
    name = given.get("algo") or stored.get("algo")
    if name is None:
        raise FlagError(f"--algo is missing: expected --algo=<{'|'.join(ALGORITHMS)}>; --help lists the flags")
    _check_no_flag_of_another_algorithm(name, given)
    try:
        config = build_run_config({**stored, **given})
    except ConfigError as error:
        raise FlagError(f"--{error}") from None
    typed = {argument.lstrip("-").split("=")[0] for argument in argv if argument.startswith("-")}
    _check_no_idle_flag([name for name in given if name in typed], flag_values(config))
    if stored:
        _check_same_run(stored, flag_values(config))
    return config


def read_stored_flags(run_dir: str) -> dict[str, Any]:
    """The flags in a run folder's `config.json`.

    Raises:
      FlagError: there is no run in that folder, or it was written by another version.
    """
    path = pathlib.Path(run_dir) / CONFIG_FILE
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))["flags"]
    except (OSError, ValueError, KeyError, TypeError):
        stored = None
    if not isinstance(stored, dict):
        raise FlagError(f"--run_dir={run_dir}: no run to read there (no valid {path.name}); was it ever started?")
    if stored.get("algo") not in list(ALGORITHMS):
        raise FlagError(f"--run_dir={run_dir}: its algorithm {stored.get('algo')} is unknown; start a new run")
    known = {field.name: field for field in (*shared_fields(), *algorithm_fields(stored["algo"]))}
    unknown = sorted(set(stored) - set(known))
    if unknown:
        raise FlagError(
            f"--run_dir={run_dir}: its {path.name} has unknown flags ({', '.join(unknown)}); start a new run"
        )
    damaged = [f"{name}={value}" for name, value in stored.items() if not _can_hold(known[name], value)]
    if damaged:
        raise FlagError(f"--run_dir={run_dir}: its {path.name} is damaged ({', '.join(damaged)}); start a new run")
    return {name: value for name, value in stored.items() if name not in ("resume", "overwrite", "run_dir")}


def _can_hold(field: FlagField, value: Any) -> bool:
    """Whether a value read from JSON is of the flag's type and in its range."""
    value_type = str if field.default is None else type(field.default)
    types = (int, float) if value_type is float else value_type
    return isinstance(value, types) and isinstance(value, bool) == (value_type is bool) and field.setting.admits(value)


def _check_no_flag_of_another_algorithm(name: str, given: dict[str, Any]) -> None:
    own = {field.name for field in algorithm_fields(name)}
    for other in ALGORITHMS:
        foreign = [field.name for field in algorithm_fields(other) if field.name in given and field.name not in own]
        if foreign:
            near = suggest(foreign[0].replace(other, name, 1), own)
            raise FlagError(f"--{foreign[0]}: belongs to --algo={other}, expected flags of --algo={name}{near}")


def _check_no_idle_flag(names: Iterable[str], values: Mapping[str, Any]) -> None:
    """Refuses a flag that another makes idle. Flags of a flagfile are let pass: other flags may be set over them."""
    for name in names:
        for flag, other, is_needed, mend in DEPENDENCIES:
            if name == flag or (flag.startswith("_") and name.endswith(flag)):
                other_name = name.removesuffix(flag) + other
                if not is_needed(values[other_name]):
                    raise FlagError(
                        f"--{name}: does nothing with --{other_name}={values[other_name]}; leave it out, or give {mend}"
                    )


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


def _describe(field: FlagField) -> str:
    value_type = str if field.default is None else type(field.default)
    default = (
        str(field.default).lower() if value_type is bool else "" if field.default in (None, "") else str(field.default)
    )
    expected = describe_expected(field.setting, value_type)
    lines = textwrap.wrap(
        f"{field.setting.help_text} Expected: {expected}." if expected else field.setting.help_text, 100
    )
    return "\n      ".join([f"  --{field.name}" + (f" [{default}]" if default else ""), *lines])


def format_help() -> str:
    """The text of --help: the shared flags, then each algorithm's."""
    lines = [f"{PROGRAM} --algo=<{'|'.join(ALGORITHMS)}> [--flag=value ...]", ""]
    lines += ["Flags of every algorithm; the default is in brackets. --flagfile=<file> reads flags from a file:"]
    lines += [_describe(field) for field in shared_fields()]
    for name, algorithm in ALGORITHMS.items():
        lines += ["", f"--algo={name}: {algorithm.summary}", *map(_describe, algorithm_fields(name))]
    return "\n".join(lines)
