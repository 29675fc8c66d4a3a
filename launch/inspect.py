"""`python -m launch.inspect PATH` says what would be read of a file or folder, before anything is trained on it.

Its columns, format, task, clients, classes and features, what is wrong or looks odd, and the command that trains on it.
All that is wrong with a table is said at once, with the flags that solve it, which are in the command. With
--dataset=NAME a data set of the catalog; flags say how data are read, as in `launch.train`. Of large data a sample is
looked at. Imports no TensorFlow. Exit codes: 0 done, 2 the data cannot be read with any flags or the request
was wrong, 130 Ctrl-C.
"""

import copy
import dataclasses
import functools
import os
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from datasets.catalog import find_dataset, get_title
from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.file_formats import find_format
from datasets.options import FILES
from datasets.repair import repair
from datasets.tables.profile import choose_label, profile_table
from launch.command_line import parse_command, run_command
from launch.console.stop_signals import leave
from launch.pages.inspection import (
    BAR,
    PLAIN_BAR,
    Findings,
    check_findings,
    describe,
    format_findings,
    format_problems,
    inspect_data,
)
from launch.runs.tables import write_json
from launch.settings.data_flags import choose_options
from launch.settings.errors import FlagError
from launch.settings.flags import parse_config
from launch.settings.run_config import RunConfig
from launch.training.federation import find_scale
from tff_algos.settings.config_fields import setting

USAGE = "python -m launch.inspect <file or folder> [--flag=value ...], or --dataset=<name>"
COMMON = (
    "dataset",
    "data",
    "label_column",
    "client_column",
    "feature_columns",
    "drop_columns",
    "time_column",
    "test_column",
    "weight_column",
    "window",
    "json",
)  # of its flags, what --help shows
OF_THE_DATA = {*(field.name for field in dataclasses.fields(DatasetOptions)), "dataset", "standardize", "unscaled"}


# The flags of this command: those of a run that say how data are read, and where to write the JSON.
Flags = dataclasses.make_dataclass(
    "Flags",
    [
        *(
            (each.name, each.type, copy.copy(each))
            for each in dataclasses.fields(RunConfig)
            if each.name in OF_THE_DATA
        ),
        ("json", str, setting("", "File to write the findings to, as JSON.")),
    ],
    frozen=True,
)


def parse_request(argv: Sequence[str]) -> tuple[RunConfig, dict[str, Any], str]:
    """Reads the command line, without the program's name.

    Returns:
      The config of a run on the data, the flags of the data that were typed, and the file for the JSON, or "".

    Raises:
      FlagError: it is wrong.
    """
    paths = _find_paths(argv)
    flags, names = parse_command(
        Flags, [argument for argument in argv if argument not in paths], "give it to launch.train"
    )
    given = {name: getattr(flags, name) for name in names if name != "json"}
    if len(paths) > 1:
        raise FlagError(f"{' '.join(paths)}: expected one file or folder: {USAGE}")
    if paths:
        if others := [f"--{name}" for name in ("data", "dataset", "npz") if name in given]:
            raise FlagError(f"{paths[0]}: either a file or folder, or {others[0]}, not both")
        given = {"data": paths[0], **given}
    if not {"data", "dataset"} & set(given):
        raise FlagError(f"expected a file or folder, or --dataset=<name>: {USAGE}")
    return _make_config(given), given, flags.json


def _make_config(given: Mapping[str, Any]) -> RunConfig:
    """The config of a run on the data."""
    return parse_config(["--algo=fedavg", *(f"--{name}={value}" for name, value in given.items())])


def _find_paths(argv: Sequence[str]) -> list[str]:
    """The arguments that are no flags and not the value of the flag before them."""
    before = argv[: list(argv).index("--")] if "--" in argv else argv
    return [
        argument
        for i, argument in enumerate(before)
        if not argument.startswith("-") and (i == 0 or "=" in before[i - 1] or not before[i - 1].startswith("-"))
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    return run_command(_run, "inspect", USAGE, Flags, argv, common=COMMON)


def _run(arguments: Sequence[str]) -> None:
    config, given, json_path = parse_request(arguments)
    kind, columns, path = f"the data set {get_title(config.dataset)}", (), ""
    if config.dataset == FILES:
        path = os.path.abspath(os.path.expanduser(config.data))
        found = find_format(path, config.data_format)
        kind, options = found.title, choose_options(vars(config))
        table = found.make_table and found.make_table(path, options)
        columns = profile_table(table, options) if table else ()

    def look(flags: Mapping[str, Any]) -> Findings:
        config = _make_config(flags)
        data = find_dataset(config.dataset).load(choose_options(vars(config)))
        findings = inspect_data(data, kind, find_scale(config), flags, config.seed)
        if columns:
            check_findings(findings, columns, flags)
        return findings

    findings, flags, problems = repair(look, given, functools.partial(choose_label, columns))
    problems = [each._replace(text=each.text.removeprefix(f"{path}: ").replace(f"{path}, ", "")) for each in problems]
    if findings is None:
        *others, last = problems
        print(format_problems(columns, others), end="")
        raise DatasetError(f"{path}: {last.text}" if columns else last.text)
    added = {name: value for name, value in flags.items() if given.get(name) != value}
    findings = dataclasses.replace(findings, columns=columns, problems=tuple(problems), added=added)
    # Other encodings may lack the character of the bars.
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    print(format_findings(findings, BAR if is_utf8 else PLAIN_BAR), end="")
    if json_path:
        path = pathlib.Path(json_path).expanduser()
        write_json(path, describe(findings))
        print(f"written   {path}")


if __name__ == "__main__":
    leave(main())
