"""`python -m launch.inspect PATH` says what would be read of a file or folder, before anything is trained on it.

Its columns, format, task, clients, classes and features, what is wrong or looks odd, and the command that trains on it.
All that is wrong with a table is said at once, with the flags that solve it, which are in the command. With
--dataset=NAME a data set of the catalog; flags say how data are read, as in `launch.train`. Of large data a sample is
looked at. Imports no TensorFlow. Exit codes: 0 done, 2 the data cannot be read with any flags or the request
was wrong, 130 Ctrl-C.
"""

import copy
import dataclasses
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

from datasets.dataset import DatasetOptions
from launch.command_line import find_paths, parse_command, run_command
from launch.console.stop_signals import leave
from launch.pages.inspection import BAR, PLAIN_BAR, describe, format_findings, format_problems
from launch.runs.tables import write_json
from launch.settings.errors import FlagError
from launch.settings.run_config import RunConfig
from launch.training.inspected_data import inspect_given, make_config
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
    paths = find_paths(argv)
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
    return make_config(given), given, flags.json


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    return run_command(_run, "inspect", USAGE, Flags, argv, common=COMMON)


def _run(arguments: Sequence[str]) -> None:
    _, given, json_path = parse_request(arguments)
    findings, columns, problems, error = inspect_given(given)
    if findings is None:
        print(format_problems(columns, problems), end="")
        raise error
    # Other encodings may lack the character of the bars.
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    print(format_findings(findings, BAR if is_utf8 else PLAIN_BAR), end="")
    if json_path:
        path = pathlib.Path(json_path).expanduser()
        write_json(path, describe(findings))
        print(f"written   {path}")


if __name__ == "__main__":
    leave(main())
