"""The console script: which command runs, and what a shell offers while a line is typed."""

import pathlib

import pytest

from launch.command_line import COMMANDS
from launch.federated import build_parser, format_commands, main

LAUNCH = pathlib.Path(__file__).parents[2] / "launch"


def test_every_program_is_a_command():
    programs = {path.stem for path in LAUNCH.glob("*.py") if '"__main__"' in path.read_text(encoding="utf-8")}
    assert COMMANDS.keys() | {"federated"} == programs


@pytest.mark.parametrize("arguments", [[], ["help"], ["--help"], ["-h"]])
def test_alone_it_lists_the_commands(arguments, capsys):
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert out == f"{format_commands()}\n" and max(map(len, out.splitlines())) <= 80
    assert [line.split()[0] for line in out.splitlines()[2:-3]] == list(COMMANDS)


def test_a_command_gets_its_arguments_and_a_wrong_one_is_one_line(capsys):
    for typed, said in (
        ("card", "expected one file that launch.export has written"),
        ("trian", "trian: did you mean federated train? expected a command\n"),
        ("xyz", "xyz: expected a command; federated help lists them\n"),
    ):
        assert main([typed]) == 2
        assert capsys.readouterr().err.startswith(f"error: {said}")
    assert main(["trian"], "python -m launch") == 2
    assert capsys.readouterr().err == "error: trian: did you mean python -m launch train? expected a command\n"
    assert main(["help", "card"]) == main(["card", "--help"]) == 0
    first, second = capsys.readouterr().out.split("python -m launch.card")[1:]
    assert first == second


def list_options(line):
    """{flag: choices} of the command in a line."""
    commands = build_parser(line)._subparsers._group_actions[0].choices
    assert commands.keys() == COMMANDS.keys()
    actions = commands[line.split()[1]]._actions
    return {action.option_strings[0]: action.choices for action in actions}


def test_a_shell_is_offered_the_flags_of_the_command_and_of_the_algorithm():
    shared = list_options("federated train --ro")
    assert "--rounds" in shared and "--epochs" not in shared
    assert "dirichlet" in shared["--partition"] and shared["--resume"] == ["true", "false"]
    assert "--epochs" in list_options("federated train --algo=fedavg --fed")
    assert list_options("federated compare --against=")["--against"][0] == "round"
