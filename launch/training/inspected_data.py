"""Looks at the data that flags name, again and again, until the flags are known with which they can be read.

What `launch.inspect` prints, and what `launch.advise` begins with. Imports no TensorFlow.
"""

import dataclasses
import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from datasets.catalog import find_dataset, get_title
from datasets.errors import DatasetError
from datasets.file_formats import find_format
from datasets.options import FILES
from datasets.repair import Problem, repair
from datasets.tables.profile import ColumnProfile, choose_label, profile_table
from launch.pages.inspection import Findings, check_findings, inspect_data
from launch.settings.data_flags import choose_options
from launch.settings.flags import parse_config
from launch.settings.run_config import RunConfig
from launch.training.federation import find_scale


class Inspected(NamedTuple):
    """What came of looking.

    Attributes:
      findings: what was found; None if no flags are known with which the data can be read.
      columns: of a table, as they are in the file.
      problems: what was wrong, in the order in which it was found, and the flags that solve it.
      error: the problem that no flag solves, which is none of `problems`; None where there is none.
    """

    findings: Findings | None
    columns: Sequence[ColumnProfile] = ()
    problems: tuple[Problem, ...] = ()
    error: DatasetError | None = None


def make_config(given: Mapping[str, Any]) -> RunConfig:
    """The config of a run on the data that these flags name. Raises FlagError as `parse_config` does."""
    return parse_config(["--algo=fedavg", *(f"--{name}={value}" for name, value in given.items())])


def inspect_given(given: Mapping[str, Any]) -> Inspected:
    """Reads the data with the flags that are given and, where that is wrong, with those that solve it.

    Args:
      given: flags of a run, by name.

    Raises:
      FlagError: flags that a run would refuse.
      DatasetError: there are no such data.
    """
    config = make_config(given)
    kind, columns, path = f"the data set {get_title(config.dataset)}", (), ""
    if config.dataset == FILES:
        path = os.path.abspath(os.path.expanduser(config.data))
        found = find_format(path, config.data_format)
        kind, options = found.title, choose_options(vars(config))
        table = found.make_table and found.make_table(path, options)
        columns = profile_table(table, options) if table else ()

    def look(flags: Mapping[str, Any]) -> Findings:
        config = make_config(flags)
        data = find_dataset(config.dataset).load(choose_options(vars(config)))
        findings = inspect_data(data, kind, find_scale(config), flags, config.seed)
        if columns:
            check_findings(findings, columns, flags)
        return findings

    findings, flags, problems = repair(look, given, functools.partial(choose_label, columns))
    if path:
        problems = tuple(
            each._replace(text=each.text.removeprefix(f"{path}: ").replace(f"{path}, ", "")) for each in problems
        )
    if findings is None:
        *others, last = problems
        error = DatasetError(f"{path}: {last.text}" if columns else last.text)
        return Inspected(None, columns, tuple(others), error)
    added = {name: value for name, value in flags.items() if given.get(name) != value}
    findings = dataclasses.replace(findings, columns=columns, problems=problems, added=added)
    return Inspected(findings, columns, problems)
