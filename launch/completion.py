"""What a shell offers while a line of `federated` is typed: commands, flags and their choices, by argcomplete."""

import argparse
import importlib
import os
from collections.abc import Iterator

from absl import flags as absl_flags

from launch.command_line import COMMANDS
from launch.settings.algorithms import ALGORITHMS
from launch.settings.flags import FULL_HELP, define_flags


def complete() -> None:
    """Answers the shell and ends this process; does nothing where argcomplete is not installed."""
    try:
        import argcomplete
    except ImportError:
        return
    argcomplete.autocomplete(build_parser(os.environ.get("COMP_LINE", "")), always_complete_options="long")


def build_parser(line: str) -> argparse.ArgumentParser:
    """A parser of what is typed: the flags are those of the command in the line, and of its algorithm."""
    parser = argparse.ArgumentParser(prog="federated", add_help=False, allow_abbrev=False)
    commands = parser.add_subparsers()
    words = line.split()[1:]
    for name, what in COMMANDS.items():
        command = commands.add_parser(name, help=what, add_help=False, allow_abbrev=False)
        if words[:1] == [name]:
            _add_flags(command, _define_flags(name, words))
    return parser


def _define_flags(name: str, words: list[str]) -> absl_flags.FlagValues:
    if name != "train":
        return importlib.import_module(f"launch.{name}").define_flags()
    asked = [word.removeprefix("--algo=") for word in words if word.startswith("--algo=")]
    return define_flags([algo for algo in asked if algo in ALGORITHMS])


def _add_flags(parser: argparse.ArgumentParser, values: absl_flags.FlagValues) -> None:
    for name in ("help", FULL_HELP.removeprefix("--")):
        parser.add_argument(f"--{name}", action="store_true", help="")
    for name in values:
        flag = values[name]
        choices = list(_list_choices(flag))
        parser.add_argument(f"--{name}", choices=choices or None, help=flag.help.split("\n")[0].replace("%", "%%"))


def _list_choices(flag: absl_flags.Flag) -> Iterator[str]:
    setting = getattr(flag.parser, "setting", None)
    if flag.boolean:
        yield from ("true", "false")
    elif setting is not None:
        yield from setting.choices or ()
    else:
        yield from getattr(flag.parser, "enum_values", None) or ()
