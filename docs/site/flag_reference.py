"""The page of all flags, made from the code: the settings of a run as tables, the other commands as their own help."""

import pathlib
import subprocess
import sys
from collections.abc import Iterable

from launch.settings.algorithms import ALGORITHMS
from launch.settings.flag_fields import FlagField
from launch.settings.flag_parsing import describe_expected
from launch.settings.run_config import algorithm_fields, list_groups

ROOT = pathlib.Path(__file__).parents[2]
HEAD = """# Flags

This page is made from the code when the site is built. `python -m launch.train --helpfull` prints the same.
A flag that is left out has the default. `--flagfile=<file>` reads flags from a file, one a line.
"""


def list_commands() -> list[str]:
    """The names of the commands beside `train`, in alphabetical order."""
    programs = [path for path in (ROOT / "launch").glob("*.py") if '"__main__"' in path.read_text(encoding="utf-8")]
    return sorted(path.stem for path in programs if path.stem != "train")


def format_flag(field: FlagField) -> str:
    """A row of a table: the flag, its default, what it does and what it takes."""
    expected = describe_expected(field.setting, field.value_type)
    takes = f" Takes {expected}." if expected else ""
    text = (field.setting.help_text + takes).replace("|", r"\|").replace("<", "&lt;")
    default = str(field.default).replace("|", r"\|") if field.default not in ("", None) else ""
    return f"| `--{field.name}` | {f'`{default}`' if default else ''} | {text} |"


def format_table(fields: Iterable[FlagField]) -> str:
    """A Markdown table of flags."""
    return "\n".join(("| flag | default | what |", "|---|---|---|", *map(format_flag, fields)))


def read_help(command: str) -> str:
    """What a command prints for --helpfull, or an error where it cannot."""
    program = [sys.executable, "-m", f"launch.{command}", "--helpfull"]
    return subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def build_page() -> str:
    """The whole page, as Markdown."""
    parts = [HEAD]
    for title, fields in list_groups().items():
        parts += [f"\n## {title}\n", format_table(fields)]
    for algorithm in ALGORITHMS.values():
        parts += [f"\n## {algorithm.title}\n\n`--algo={algorithm.name}`. {algorithm.summary}\n"]
        parts += [format_table(algorithm_fields(algorithm.name))]
    for command in list_commands():
        parts += [f"\n## launch.{command}\n\n```text\n{read_help(command)}\n```"]
    return "\n".join(parts) + "\n"
