"""The pages of help: what each shows, and that it fits a terminal."""

import pathlib
import re
import subprocess
import sys

import pytest

from launch.settings.algorithms import ALGORITHMS
from launch.settings.help_pages import COMMON, COMMON_OF_ALGORITHMS, WIDTH, format_help, format_start
from launch.settings.run_config import algorithm_fields, build_run_config, flag_values, list_groups, shared_fields

ROOT = pathlib.Path(__file__).parents[3]
# Of two pages, the first shows more than a screen.
MOST_LINES = 60


def list_shown(text):
    """The flags that a page shows, in order."""
    return [line.split()[0][2:] for line in text.splitlines() if line.startswith("  --")]


def test_the_first_page_fits_a_screen_and_names_every_algorithm():
    lines = format_help(["--help"]).splitlines()
    assert len(lines) <= MOST_LINES and max(map(len, lines)) <= WIDTH
    assert [line.split()[0] for line in lines[4 : 4 + len(ALGORITHMS)]] == list(ALGORITHMS)
    assert [name for name in list_shown("\n".join(lines)) if name in COMMON] == list(COMMON)


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_the_page_of_an_algorithm_has_each_of_its_flags_once(algo):
    text = format_help([f"--algo={algo}", "--help"])
    own, _, of_all = text.partition("Of every algorithm:")
    assert sorted([*list_shown(own), *re.findall(r"--(\w+)", of_all)]) == sorted(list_names(algo))
    lines, used = text.splitlines(), {*COMMON, *COMMON_OF_ALGORITHMS}
    assert max(map(len, lines)) <= WIDTH and len(lines) <= (120 if algo == "fedavg" else 130)
    shown = list_shown(own)
    common = [name for name in shown if name in used]
    assert shown[: len(common)] == common, "the flags that people use come first"


def test_the_page_of_an_algorithm_has_its_own_defaults_and_words():
    assert "--epochs [3] " in format_help(["--algo=fedcd", "--help"])
    assert "--epochs [5] " in format_help(["--algo=fedavg", "--help"])
    assert "--student_epochs [5]\n" in format_help(["--algo=fedsikd", "--helpfull"])


def list_names(algo):
    return flag_values(build_run_config({"algo": algo}))


def test_all_flags_are_on_the_full_page():
    shown = list_shown(format_help(["--helpfull"]))
    assert sorted(shown) == sorted({name for algo in ALGORITHMS for name in list_names(algo)})


def test_every_shared_flag_is_in_one_group():
    grouped = [field.name for group in list_groups().values() for field in group]
    assert grouped == [field.name for field in shared_fields()]


def test_what_is_called_common_is_a_flag():
    assert COMMON.keys() <= {field.name for field in shared_fields()}
    names = {field.name for algo in ALGORITHMS for field in algorithm_fields(algo)}
    assert names >= COMMON_OF_ALGORITHMS


def test_type_range_and_default_are_said():
    text = format_help(["--helpfull"])
    assert "  --rounds_per_evaluation [1]\n" in text
    assert "smaller is more skewed. Expected: a\n      number above 0.\n" in text


def test_the_program_without_arguments_says_what_to_type():
    done = subprocess.run([sys.executable, "-m", "launch.train"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{format_start()}\n")
