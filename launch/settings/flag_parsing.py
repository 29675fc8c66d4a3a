"""Reads flags: absl's, derived from the declared settings of a command or of a run. Imports no TensorFlow.

The flags are parsed into a `FlagValues` of our own: absl's runner answers a mistake with two lines and exit code 1, and
its global flags belong to whatever libraries are imported.
"""

import importlib.metadata
import os
import pathlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from absl import flags as absl_flags

from files.reading import describe
from launch.settings.algorithms import ALGORITHMS, OWN_FORM
from launch.settings.errors import FlagError
from launch.settings.flag_fields import FlagField
from launch.settings.own_algorithm import ENTRY_POINTS, settle_spelling
from launch.settings.setting_names import get_flag
from launch.settings.suggestions import suggest_integer, suggest_value
from tff_algos.settings.config_fields import Setting

# Algorithms that are a setting of another one here.
ALGORITHMS_ELSEWHERE = {
    "fedprox": "; did you mean --algo=fedavg --proximal_weight=0.01?",
    "fedsgd": "; did you mean --algo=fedavg --steps=1?",
    "fedbuff": "; did you mean buffered?",
    "amfl": "; did you mean amfl_p?",
}
FULL_HELP = "--helpfull"
BOOLEANS = {**dict.fromkeys(("true", "t", "1"), True), **dict.fromkeys(("false", "f", "0"), False)}
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


class _Parser(absl_flags.ArgumentParser):
    """Reads a value of a field's type, and refuses one out of the setting's range."""

    def __init__(self, field: FlagField):
        super().__init__()
        self.field = field

    def parse(self, argument: Any) -> Any:
        kind, setting, value = self.field.value_type, self.field.setting, None
        is_algorithm = setting.or_own == OWN_FORM
        try:
            value = settle_spelling(argument) if is_algorithm else _convert(argument, kind)
        except FlagError as error:  # which names the flag, as absl does
            raise ValueError(str(error).partition(f"={argument}: ")[2]) from None
        except (ValueError, KeyError):
            hint = suggest_integer(argument) if kind is int else ""
        else:
            if isinstance(value, tuple) or setting.admits(value):
                return value
            hint = ALGORITHMS_ELSEWHERE.get(argument.lower(), "") if is_algorithm else ""
            installed = importlib.metadata.entry_points(group=ENTRY_POINTS).names if is_algorithm else ()
            choices = [*(setting.choices or ()), *sorted(installed)]
            hint = hint or suggest_value(argument, choices, setting.or_own)
        hint = "; write it without spaces around =" if argument == "=" else hint
        raise ValueError(f"expected {describe_expected(setting, kind, value)}{hint}")


def _convert(argument: Any, kind: type) -> Any:
    if kind is bool:
        return BOOLEANS[str(argument).lower()]
    if kind is tuple:
        return tuple(text.strip() for text in argument.split(",")) if argument else ()
    if kind is not str and not re.fullmatch("[ -^`-~]*", argument):  # Python would take 1_0 for 10
        raise ValueError
    return kind(argument)


def expand_flagfiles(argv: Sequence[str]) -> list[str]:
    """The arguments, with the flags in the place of each `--flagfile=<file>`; what stands after a lone `--` stays.

    Raises:
      FlagError: a file cannot be read, or reads itself again.
    """
    return replace_directives(argv, "flagfile", lambda name: _read_flagfile(name, ()), "<value>")


def replace_directives(
    argv: Sequence[str], flag: str, expand: Callable[[str], Iterable[str]], expected: str
) -> list[str]:
    """The arguments, with `expand(value)` in the place of each `--<flag>=value`; what stands after a lone `--` stays.

    Raises:
      FlagError: the flag is the last argument, without the `expected` value.
    """
    expanded, arguments, directive = [], iter(argv), re.compile(f"--?{flag}(?:=(.*))?", re.DOTALL)
    for argument in arguments:
        found = directive.fullmatch(argument)
        if found is None:
            expanded.append(argument)
            if argument == "--":
                break
            continue
        value = found[1] if found[1] is not None else next(arguments, None)
        if value is None:
            raise FlagError(f"--{flag}: no value, expected --{flag}={expected}")
        expanded += expand(value)
    return [*expanded, *arguments]


def _read_flagfile(name: str, readers: tuple[str, ...]) -> Iterator[str]:
    """The flags of a file in UTF-8, with or without a mark at its start, which `readers` read one from the other.

    absl would read it in the locale's encoding, and take the mark that some editors write for a part of the first flag.
    """
    path = os.path.expanduser(name.strip())
    if not path:
        return
    if path in readers:
        raise FlagError(f"--flagfile={path}: includes itself; expected flagfiles without a circle")
    try:
        with open(path, encoding="utf-8-sig") as file:
            lines = [line.strip() for line in file]
    except OSError as error:
        raise FlagError(f"cannot read the flagfile {path}: {describe(error)}") from None
    except ValueError:  # no UTF-8, or a name with a NUL
        raise FlagError(f"cannot read the flagfile {ascii(path)[1:-1]}: it is not a text file in UTF-8") from None
    for line in lines:
        if directive := re.fullmatch("--?flagfile=(.*)", line, re.DOTALL):
            yield from _read_flagfile(directive[1], (*readers, path))
        elif line and not line.startswith(("#", "//")):
            yield line


def define_flags(fields: Iterable[FlagField]) -> absl_flags.FlagValues:
    """Flags of the types of these fields; their own default is None, which means "not given".

    Of fields of the same name, the first.
    """
    values = absl_flags.FlagValues()
    for field in fields:
        about = (None, field.name, None, field.setting.help_text)
        if field.setting.repeated:
            values[field.name] = absl_flags.MultiFlag(absl_flags.ArgumentParser(), *about)
        elif field.name not in values:
            values[field.name] = absl_flags.Flag(_Parser(field), *about, boolean=field.value_type is bool)
    return values


def read_given(values: absl_flags.FlagValues) -> dict[str, Any]:
    """{name: value} of the flags that were given; texts as a tuple."""
    given = {name: values[name].value for name in values if values[name].present}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}


def read_flags(values: absl_flags.FlagValues, argv: Sequence[str], describe: Callable[[str], str]) -> None:
    """Sets `values` from the arguments, without the program's name.

    Args:
      values: the flags that there are.
      argv: the arguments.
      describe: says what is wrong with a flag that there is not, without its dashes.

    Raises:
      FlagError: an unknown flag, a stray argument, a value of the wrong type or out of range, no such flagfile.
    """
    left = read_known(values, argv)
    end = left.index("--") if "--" in left else len(left)
    if unknown := next(filter(None, map(get_flag, left[:end])), None):
        raise FlagError(describe(unknown))
    if stray := [*left[:end], *left[end + 1 :]]:
        raise refuse_stray(stray[0], list(values))


def read_known(values: absl_flags.FlagValues, argv: Sequence[str]) -> list[str]:
    """Sets `values` from the arguments and returns those that are no flags of them. Raises FlagError."""
    values.set_gnu_getopt(True)
    try:  # of an unknown flag, absl would look for names alike, which takes a second
        return values(["command", *expand_flagfiles(argv)], known_only=True)[1:]
    except (absl_flags.Error, ValueError) as error:
        text = " ".join(str(error).split()).removeprefix("flag ")
        raise FlagError(re.sub("^Missing value for flag (.+)", r"\1: no value, expected \1=<value>", text)) from None


def refuse_stray(argument: str, known: Collection[str]) -> FlagError:
    """The error of an argument that is no flag, with what it was probably meant to be; `known` are the flags."""
    name, meant = argument.partition("=")[0], "a space before = or in a list?"
    if argument == "help":
        meant = "did you mean --help?"
    elif "algo" in known and argument in ALGORITHMS:
        meant = f"did you mean --algo={argument}?"
    elif "=" in argument and name in known and not argument.startswith("-"):
        meant = f"did you mean --{argument}?"
    elif pathlib.Path(argument).is_dir() and (taken := [f for f in ("run_dir", "runs", "runs_dir") if f in known]):
        meant = f"did you mean --{taken[0]}={argument}?"
    elif argument.endswith(".flags"):
        meant = f"did you mean --{'flagfiles' if 'flagfiles' in known else 'flagfile'}={argument}?"
    shown = repr(argument) if "=" in argument else argument
    return FlagError(f"{shown}: expected flags only, each as --name=value; {meant}")
