"""Loads data again and again, each time with the flags that solve what was wrong, until nothing is.

So all that is wrong is known at the end, and that the flags work has been tried.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from datasets.errors import DatasetError
from datasets.options import DEFAULT_MISSING_WORDS, quote_name, split_names
from datasets.tables.table import simplify

MOST_TRIALS = 100
ADDED_TO = ("drop_columns", "missing_words")  # flags whose values add up
Loaded = TypeVar("Loaded")


class Problem(NamedTuple):
    """What was wrong: in words, and the flags that solve it, {} if none does."""

    text: str
    fix: Mapping[str, str]


class Repaired(NamedTuple, Generic[Loaded]):
    """What came of the trials.

    Attributes:
      loaded: what the loader gave; None if no flags are known with which it gives anything.
      flags: those it was given last.
      problems: all that was wrong, in the order in which it was found.
    """

    loaded: Loaded | None
    flags: dict[str, Any]
    problems: tuple[Problem, ...]


def repair(
    load: Callable[[Mapping[str, Any]], Loaded],
    flags: Mapping[str, Any],
    choose_label: Callable[[Collection[str]], str] = lambda taken: "",
) -> Repaired[Loaded]:
    """Loads data with the flags that were given, and those that solve what the loader says is wrong.

    Args:
      load: (flags) -> what is wanted. It raises DatasetError, whose `fix` is tried.
      flags: that were given, by name.
      choose_label: (columns that are used otherwise) -> the column to predict, "" for none, where none is named.
    """
    flags, problems = dict(flags), []
    for _ in range(MOST_TRIALS):
        try:
            loaded = load(flags)
            # A flag may have got another value for a later problem.
            return Repaired(loaded, flags, tuple(each._replace(fix=_update(each.fix, flags)) for each in problems))
        except DatasetError as error:
            errors = [error, *error.further]
        # A column that is dropped may be wrong in other ways, too, which need no flag then.
        chosen = [each for each in errors if "drop_columns" in each.fix] or errors
        before = dict(flags)
        for each in chosen:
            fix = _complete(each.fix, flags, choose_label)
            changed = {name: value for name, value in flags.items() if value != before.get(name)}
            # Of errors that want different values of a flag the first gets it; the others may need nothing then.
            if _update(fix, changed) != fix:
                continue
            # What is found again was not solved before.
            problems = [problem for problem in problems if problem.text != str(each)] + [Problem(str(each), fix)]
            _add(fix, flags)
        if flags == before:
            break
    return Repaired(None, flags, tuple(problems))


def _update(fix: Mapping[str, str], flags: Mapping[str, Any]) -> dict[str, str]:
    """The flags of a fix as they are by now, where they have one value."""
    return {name: value if name in ADDED_TO else flags.get(name, value) for name, value in fix.items()}


def _complete(
    fix: Mapping[str, str], flags: Mapping[str, Any], choose_label: Callable[[Collection[str]], str]
) -> dict[str, str]:
    """The flags with the label that is chosen; {} if none is."""
    if fix.get("label_column") != "":
        return dict(fix)
    others = ("client_column", "time_column", "test_column", "weight_column", "text_column")
    names = [flags[flag] for flag in others if flags.get(flag)]
    names += [name for flag in ("feature_columns", "drop_columns") for name in split_names(flags.get(flag, ""))]
    label = choose_label(names)
    return {**fix, "label_column": quote_name(label)} if label else {}


def _add(fix: Mapping[str, str], flags: dict[str, Any]) -> None:
    for name, value in fix.items():
        if name == "drop_columns":
            dropped, used = split_names(value), split_names(flags.get("feature_columns", ""))
            left = [column for column in used if simplify(column) not in map(simplify, dropped)]
            if used and not left:
                continue
            if used:
                flags["feature_columns"] = ",".join(map(quote_name, left))
                continue
            _append(flags, name, "", dropped)
        elif name == "missing_words":
            _append(flags, name, DEFAULT_MISSING_WORDS, split_names(value))
        else:
            flags[name] = value
            if name == "text_column":  # which is predicted from alone
                flags.pop("feature_columns", None)


def _append(flags: dict[str, Any], name: str, default: str, values: Collection[str]) -> None:
    """Adds to a flag that takes several what is not there yet."""
    there = split_names(flags.get(name, default))
    flags[name] = ",".join(map(quote_name, dict.fromkeys((*there, *values))))
