"""What the README says is so: its examples run, its commands parse, its links lead somewhere."""

import importlib
import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

from launch.command_line import parse_command
from launch.runs.tables import write_json
from launch.settings.flags import parse_config
from launch.settings.run_config import build_run_config, flag_values

ROOT = pathlib.Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
PYTHON_BLOCKS = [text for language, text in BLOCKS if language == "python"]
SHELL_LINES = [
    line
    for language, text in BLOCKS
    if language == "sh"
    for line in text.replace("\\\n", " ").splitlines()
    if line.strip() and not line.startswith("#")
]
PROSE = re.sub(r"^```.*?^```", "", README, flags=re.MULTILINE | re.DOTALL)
CODE_SPANS = sorted(set(re.findall(r"`([^`\n]+)`", PROSE)))
TRAIN = "python -m launch.train "
COMMANDS = sorted({text for text in (*SHELL_LINES, *CODE_SPANS) if text.startswith("python -m launch.")})
LINKS = sorted(set(re.findall(r"\]\(([^)\s]+)\)", PROSE)))
MAKE_TARGETS = sorted(set(re.findall(r"\bmake ([a-z-]+)", "\n".join([*SHELL_LINES, *CODE_SPANS]))))
PATH = re.compile(r"(datasets|models|tff_algos|launch|tests)/[\w./-]*")
PARSERS = {
    "launch.sweep": "parse_tasks",
    "launch.report": "parse_request",
    "launch.export": "parse_request",
    "launch.benchmark": "parse_options",
    "launch.doctor": "parse_request",
}

# A notebook runs its cells inside an event loop.
RUN_AS_CELL = """
import asyncio, pathlib, sys
async def run(code): exec(code, {})
asyncio.run(run(compile(pathlib.Path(sys.argv[1]).read_text(), sys.argv[1], "exec")))
"""


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """An empty folder that looks like the project's after a first run, as the current one."""
    (tmp_path / "launch").symlink_to(ROOT / "launch")
    run = {"flags": flag_values(build_run_config({"algo": "fedsikd"})), "data": {}}
    write_json(tmp_path / "runs" / "fedsikd_digits_001" / "config.json", run)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def find_python_block(text):
    (block,) = [block for block in PYTHON_BLOCKS if text in block]
    return block


def find_train_arguments(*texts):
    """The arguments of the train command that holds all the texts."""
    (command,) = [line for line in COMMANDS if line.startswith(TRAIN) and all(text in line for text in texts)]
    return shlex.split(command)[3:]


def run_python(arguments, folder):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder / "cache")}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


def test_the_notebook_example_runs_and_learns(tmp_path):
    (tmp_path / "cell.py").write_text(find_python_block("run_tff"), encoding="utf-8")
    run = run_python(["-c", RUN_AS_CELL, "cell.py"], tmp_path)
    assert run.returncode == 0, run.stderr[-3000:]
    accuracies = {
        (name, int(round_num)): float(accuracy)
        for name, round_num, accuracy in re.findall(r"(\w+), round (\d): test accuracy ([\d.]+)", run.stdout)
    }
    assert set(accuracies) == {(name, round_num) for name in ("FedAvg", "FedSiKD") for round_num in (1, 2, 3)}
    assert min(accuracies["FedAvg", 3], accuracies["FedSiKD", 3]) > 0.6
    assert "predicted" in run.stdout


def test_own_data_and_own_model_train(tmp_path):
    (tmp_path / "make_data.py").write_text(find_python_block("np.savez"), encoding="utf-8")
    (tmp_path / "my_models.py").write_text(find_python_block("# my_models.py"), encoding="utf-8")
    made = run_python(["make_data.py"], tmp_path)
    assert made.returncode == 0, made.stderr
    arguments = find_train_arguments("--npz=", "--model=my_models:")
    run = run_python(["-m", "launch.train", *arguments, "--smoke"], tmp_path)
    assert run.returncode == 0, run.stderr[-3000:]
    assert "my_models:build_small" in run.stdout


def test_there_are_commands():
    assert {command.split()[2] for command in COMMANDS} == {
        f"launch.{name}"
        for name in (
            "train",
            "sweep",
            "report",
            "evaluate",
            "export",
            "benchmark",
            "doctor",
            "building_reference",
        )
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_understood(command, checkout, capsys):
    _, _, module_name, *arguments = shlex.split(command)
    module = importlib.import_module(module_name)
    assert module.main(["--help"]) == 0
    help_text = capsys.readouterr().out
    for argument in arguments[: arguments.index("--")] if "--" in arguments else arguments:
        name = argument.split("=")[0]
        assert name in ("--help", "--flagfile") or f"{name}\n" in help_text or f"{name} [" in help_text
    if "--help" in arguments:
        return
    if module_name == "launch.train":
        parse_config(arguments)
    elif module_name in PARSERS:
        getattr(module, PARSERS[module_name])(arguments)
    else:
        parse_command(module.define_flags(), arguments)


def test_arguments_of_make_are_understood():
    given = re.findall(r'make train ARGS="(.*?)"', README)
    assert given
    for arguments in given:
        parse_config(["--algo=fedsikd", *shlex.split(arguments)])


@pytest.mark.parametrize("target", MAKE_TARGETS)
def test_a_target_is_in_the_makefile(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("link", [link for link in LINKS if not link.startswith(("#", "http"))])
def test_a_linked_file_exists(link):
    assert (ROOT / link).exists()


@pytest.mark.parametrize("link", [link for link in LINKS if link.startswith("#")])
def test_a_linked_section_exists(link):
    headings = re.findall(r"^#+ (.+)$", PROSE, re.MULTILINE)
    assert link[1:] in {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", [text for text in CODE_SPANS if PATH.fullmatch(text)])
def test_a_path_in_code_exists(path):
    assert (ROOT / path).exists()
