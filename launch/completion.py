"""What a shell offers while a line of `federated` is typed: commands, flags and their choices, by argcomplete."""

import argparse
import importlib
import os
from collections.abc import Iterable

from launch.command_line import COMMANDS, list_fields
from launch.settings.algorithms import ALGORITHMS
from launch.settings.flag_fields import DEBUG, FlagField
from launch.settings.flag_parsing import FULL_HELP
from launch.settings.flags import list_fields_of


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
            _add_flags(command, _list_flags(name, words))
    return parser


def _list_flags(name: str, words: list[str]) -> Iterable[FlagField]:
    if name != "train":
        module = importlib.import_module(f"launch.{name}")
        return list_fields(module.Flags)
    asked = [word.removeprefix("--algo=") for word in words if word.startswith("--algo=")]
    return list_fields_of([ALGORITHMS[algo] for algo in asked if algo in ALGORITHMS])


def _add_flags(parser: argparse.ArgumentParser, fields: Iterable[FlagField]) -> None:
    for name in ("--help", FULL_HELP, DEBUG):
        parser.add_argument(name, action="store_true", help="")
    for field in fields:
        choices = ["true", "false"] if field.value_type is bool else field.setting.choices
        parser.add_argument(f"--{field.name}", choices=choices, help=field.setting.help_text.replace("%", "%%"))
