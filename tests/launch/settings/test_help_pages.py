"""The pages of help: what each shows, and that it fits a terminal."""

import re

import pytest

from launch import train
from launch.settings.algorithms import ALGORITHMS
from launch.settings.help_pages import COMMON, COMMON_OF_ALGORITHMS, WIDTH, format_help, format_start
from launch.settings.run_config import algorithm_fields, build_run_config, flag_values, list_groups, shared_fields

# Of two pages, the first shows more than a screen.
MOST_LINES = 60


def list_shown(text):
    """The flags that a page shows, in order."""
    return [line.split()[0][2:] for line in text.splitlines() if line.startswith("  --")]


def test_the_first_page_fits_a_screen_and_names_every_algorithm():
    lines = format_help(["--help", "--debug", "--list_experiments"]).splitlines()
    assert len(lines) <= MOST_LINES and max(map(len, lines)) <= WIDTH
    assert [line.split()[0] for line in lines[4 : 4 + len(ALGORITHMS)]] == list(ALGORITHMS)
    assert [name for name in list_shown("\n".join(lines)) if name in COMMON] == list(COMMON)


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_the_page_of_an_algorithm_has_each_of_its_flags_once(algo):
    text = format_help([f"--algo={algo}", "--help"])
    own, _, of_all = text.partition("Of every algorithm:")
    assert sorted([*list_shown(own), *re.findall(r"--(\w+)", of_all)]) == sorted(list_names(algo))
    lines, used = text.splitlines(), {*COMMON, *COMMON_OF_ALGORITHMS}
    assert max(map(len, lines)) <= WIDTH and len(lines) <= (120 if algo == "fedavg" else 135)
    shown = list_shown(own)
    common = [name for name in shown if name in used]
    assert shown[: len(common)] == common, "the flags that people use come first"


def list_names(algo):
    return flag_values(build_run_config({"algo": algo}))


def test_all_flags_are_on_the_full_page_with_type_range_and_default_and_each_in_one_group():
    text = format_help(["--helpfull"])
    assert sorted(list_shown(text)) == sorted({name for algo in ALGORITHMS for name in list_names(algo)})
    assert "  --rounds_per_evaluation [1]\n" in text
    assert "smaller is more skewed. Expected: a\n      number above 0.\n" in text
    assert "--epochs [3] " in format_help(["--algo=fedcd", "--help"])
    assert "--student_epochs [5]\n" in format_help(["--algo=fedsikd", "--helpfull"])
    shared = [field.name for field in shared_fields()]
    assert [field.name for group in list_groups().values() for field in group] == shared
    assert COMMON.keys() <= set(shared)
    assert {field.name for algo in ALGORITHMS for field in algorithm_fields(algo)} >= COMMON_OF_ALGORITHMS


def test_the_program_without_arguments_says_what_to_type(capsys):
    assert train.main([]) == 2
    assert capsys.readouterr() == ("", f"{format_start()}\n")


def test_a_mistake_beside_help_is_told_in_place_of_a_page_that_was_not_meant(refuse):
    assert refuse("--help --algo=fedavgg", format_help).endswith("; did you mean fedavg?")
    assert (
        refuse("--algo=fedavg --roundz=3 --helpfull", format_help) == "--roundz: unknown flag; did you mean --rounds?"
    )
