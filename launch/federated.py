"""`federated <command> ...`, the console script: the same commands as `python -m launch.<command>`. No TensorFlow.

`python -m launch <command> ...` is the same where the script is not installed.
A shell is offered commands, flags and their choices while a line is typed, by argcomplete.
"""

import argparse
import contextlib
import importlib
import importlib.metadata
import os
import sys
from collections.abc import Iterable, Sequence

from launch.command_line import COMMANDS, list_fields, run_main
from launch.console.stop_signals import leave
from launch.settings.algorithms import ALGORITHMS
from launch.settings.errors import FlagError
from launch.settings.flag_fields import DEBUG, FlagField
from launch.settings.flag_parsing import FULL_HELP
from launch.settings.flags import list_fields_of
from launch.settings.suggestions import suggest_value

PROGRAM = "federated"
DISTRIBUTION = "federated-suite"
HELP, VERSION = "help", "--version"
COMPLETION = "_ARGCOMPLETE"  # a variable that a shell sets while it completes a line


def format_commands(program: str = PROGRAM) -> str:
    """The commands with a line each, and how to get more; `program` is what is typed before a command."""
    width = max(map(len, COMMANDS)) + 2
    return "\n".join(
        (
            f"{program} <command> [--flag=value ...]",
            "",
            *(f"  {name:{width}}{what}" for name, what in COMMANDS.items()),
            "",
            f"{program} <command> --help says more.",
            f"To begin with: {program} train --algo=fedavg",
        )
    )


def main(argv: Sequence[str] | None = None, program: str = PROGRAM) -> int:
    """Runs a command, which does all else, and returns its exit code: 2 if there is no such command."""
    name, *arguments = list(sys.argv[1:] if argv is None else argv) or [HELP]
    if name == HELP and arguments:
        name, arguments = arguments[0], ["--help"]
    if name in COMMANDS:
        return importlib.import_module(f"launch.{name}").main(arguments)
    return run_main(lambda _: _answer(name, program), lambda: format_commands(program), [name])


def _answer(name: str, program: str) -> None:
    if name == HELP:
        print(format_commands(program))
    elif name == VERSION:
        print(f"{PROGRAM} {importlib.metadata.version(DISTRIBUTION)}")
    else:
        hint = suggest_value(name, (*COMMANDS, HELP)).replace("mean ", f"mean {program} ")
        raise FlagError(f"{name}: expected a command{hint or f'; {program} {HELP} lists them'}")


def run_script() -> None:
    """What the console script calls: it also completes a line that is being typed.

    As with `python -m`, modules of the current folder can be imported, such as a user's own algorithm.
    """
    if not sys.flags.safe_path:
        sys.path.insert(0, os.getcwd())
    if COMPLETION in os.environ:
        with contextlib.suppress(ModuleNotFoundError):  # then nobody is answered
            import argcomplete

            # Answers the shell and ends this process.
            argcomplete.autocomplete(build_parser(os.environ.get("COMP_LINE", "")), always_complete_options="long")
    leave(main())


def build_parser(line: str) -> argparse.ArgumentParser:
    """A parser of what is typed: the flags are those of the command in the line, and of its algorithm."""
    parser = argparse.ArgumentParser(prog="federated", add_help=False, allow_abbrev=False)
    commands = parser.add_subparsers()
    words = line.split()[1:]
    for name, what in COMMANDS.items():
        command = commands.add_parser(name, help=what, add_help=False, allow_abbrev=False)
        if words[:1] == [name]:
            for flag in ("--help", FULL_HELP, DEBUG):
                command.add_argument(flag, action="store_true", help="")
            for field in _list_flags(name, words):
                choices = ["true", "false"] if field.value_type is bool else field.setting.choices
                help_text = field.setting.help_text.replace("%", "%%")
                command.add_argument(f"--{field.name}", choices=choices, help=help_text)
    return parser


def _list_flags(name: str, words: list[str]) -> Iterable[FlagField]:
    own = [] if name == "train" else list_fields(importlib.import_module(f"launch.{name}").Flags)
    if name not in ("train", "serve"):
        return own
    asked = [word.removeprefix("--algo=") for word in words if word.startswith("--algo=")]
    return [*own, *list_fields_of([ALGORITHMS[algo] for algo in asked if algo in ALGORITHMS])]


if __name__ == "__main__":
    run_script()
