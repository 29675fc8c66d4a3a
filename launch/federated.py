"""`federated <command> ...`, the console script: the same commands as `python -m launch.<command>`. No TensorFlow."""

import importlib
import importlib.metadata
import os
import sys
from collections.abc import Sequence

from launch.command_line import COMMANDS, run_main
from launch.console.stop_signals import leave
from launch.settings.errors import FlagError
from launch.settings.suggestions import suggest_value

PROGRAM = "federated"
DISTRIBUTION = "federated-suite"
HELP, VERSION = "help", "--version"
COMPLETION = "_ARGCOMPLETE"  # a variable that a shell sets while it completes a line


def format_commands() -> str:
    """The commands with a line each, and how to get more."""
    width = max(map(len, COMMANDS)) + 2
    return "\n".join(
        (
            f"{PROGRAM} <command> [--flag=value ...]",
            "",
            *(f"  {name:{width}}{what}" for name, what in COMMANDS.items()),
            "",
            f"{PROGRAM} <command> --help says more.",
            f"To begin with: {PROGRAM} train --algo=fedavg",
        )
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command, which does all else, and returns its exit code: 2 if there is no such command."""
    name, *arguments = list(sys.argv[1:] if argv is None else argv) or [HELP]
    if name == HELP and arguments:
        name, arguments = arguments[0], ["--help"]
    if name in COMMANDS:
        return importlib.import_module(f"launch.{name}").main(arguments)
    return run_main(_answer, format_commands, [name])


def _answer(arguments: Sequence[str]) -> None:
    (name,) = arguments
    if name == HELP:
        print(format_commands())
    elif name == VERSION:
        print(f"{PROGRAM} {importlib.metadata.version(DISTRIBUTION)}")
    else:
        hint = suggest_value(name, (*COMMANDS, HELP)) or f"; {PROGRAM} {HELP} lists them"
        raise FlagError(f"{name}: expected a command{hint}")


def run_script() -> None:
    """What the console script calls: it also completes a line that is being typed.

    As with `python -m`, modules of the current folder can be imported, such as a user's own algorithm.
    """
    if not sys.flags.safe_path:
        sys.path.insert(0, os.getcwd())
    if COMPLETION in os.environ:
        from launch.completion import complete

        complete()
    leave(main())


if __name__ == "__main__":
    run_script()
