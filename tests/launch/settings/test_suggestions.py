"""What an unknown flag or value was probably meant to be; further ones are in the table of wrong requests."""

import pytest

from launch.settings.algorithms import ALGORITHMS
from launch.settings.run_config import algorithm_fields, shared_fields
from launch.settings.suggestions import OTHER_NAMES, suggest_flags, suggest_integer, suggest_value


def list_flags(algo):
    return [field.name for field in (*shared_fields(), *algorithm_fields(algo))]


@pytest.mark.parametrize("algo", [name for name in ALGORITHMS if name != "amfl_p"])
def test_only_flags_of_the_chosen_algorithm_are_meant_by_names_of_other_tools(algo):
    known = list_flags(algo)
    for name in ("lr", "epochs", "local_epochs", "momentum", "batch", "clients", "alpha"):
        hint = suggest_flags(name, known)
        meant = [flag.removeprefix("--") for flag in hint.removeprefix("; did you mean ").rstrip("?").split(" or ")]
        assert meant and set(meant) <= set(known), (algo, name, hint)


def test_a_name_of_other_tools_is_no_flag_of_every_run():
    """It would never be asked for; two are flags of other commands, where those of runs are not known."""
    others = {name for names in OTHER_NAMES.values() for name in names}
    assert others & {field.name for field in shared_fields()} == {"run_dir", "seed"}


def test_what_is_spelled_alike_comes_from_the_chosen_algorithm_first():
    known = list_flags("fedsikd")
    assert suggest_flags("temperatur", known) == "; did you mean --temperature?"
    assert suggest_flags("roundz", known).startswith("; did you mean --rounds")
    assert suggest_flags("xyzzyx", known) == ""


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("MNIST", "mnist"),
        ("Cifar-10", "cifar10"),
        ("cifar 10", "cifar10"),
        ("minst", "mnist"),
        ("a.b.LOAD", "a.b:LOAD"),
    ],
)
def test_a_value_that_is_spelled_otherwise_is_recognised(value, hint):
    assert suggest_value(value, ("digits", "mnist", "cifar10"), "module:OBJECT") == f"; did you mean {hint}?"


def test_nothing_is_made_up():
    assert suggest_value("weather", ("digits", "mnist"), "module:OBJECT") == ""
    assert suggest_value("a.b", ("digits",)) == ""
    assert [suggest_integer(text) for text in ("1e3", "2.0", "2.5", "1e99", "abc", "1_0", "1e5e5", "")] == [
        "; did you mean 1000?",
        "; did you mean 2?",
        *[""] * 6,
    ]
