"""`python -m launch.compare --runs='runs/*' --output=compare.html` shows many runs in one page, opened from its file.

Exit codes: 0 done, 1 a file could not be written, 2 the request was wrong, 130 stopped by Ctrl-C.
"""

import pathlib
import sys
from collections.abc import Sequence
from typing import NamedTuple

from absl import flags as absl_flags

from launch.command_line import describe_os_error, format_command_help, parse_flags, run_main
from launch.runs.errors import RunStopped
from launch.settings.flags import FlagError
from launch.stop_signals import leave

PROGRAM = "python -m launch.compare"
DEFAULT_RUNS = "runs/*"
SUFFIX = ".html"


class Request(NamedTuple):
    """What is asked for.

    Attributes:
      runs: patterns of folders.
      archives: folders or zip archives of runs.
      output: the page.
      details: pattern of the runs whose plots and events go into the page; "" for those of the rule.
    """

    runs: tuple[str, ...]
    archives: tuple[str, ...]
    output: pathlib.Path
    details: str


def define_flags() -> absl_flags.FlagValues:
    """The flags of this command."""
    values = absl_flags.FlagValues()
    absl_flags.DEFINE_multi_string(
        "runs",
        [],
        f"Run folders, or folders with some at any depth; * for anything. By default '{DEFAULT_RUNS}', or none beside "
        "--archive. May be given several times.",
        flag_values=values,
    )
    absl_flags.DEFINE_multi_string(
        "archive",
        [],
        "Folder or .zip that launch.report --archive wrote; may be given several times.",
        flag_values=values,
    )
    absl_flags.DEFINE_string("output", "compare.html", "The page, in a folder that exists.", flag_values=values)
    absl_flags.DEFINE_string(
        "details",
        "",
        "Names of the runs whose plots and events go into the page, * for anything, at most 20; by default those with "
        "the best last result on the test set. The others are linked.",
        flag_values=values,
    )
    return values


def parse_request(argv: Sequence[str]) -> Request:
    """Reads the command line, without the program's name.

    Raises:
      FlagError: a wrong flag, or a place where the page cannot go.
    """
    values = parse_flags(define_flags(), argv)
    output = pathlib.Path(values.output)
    check_output(output)
    runs = tuple(values.runs) or (() if values.archive else (DEFAULT_RUNS,))
    return Request(runs, tuple(values.archive), output, values.details)


def check_output(output: pathlib.Path) -> None:
    """Raises FlagError if the page cannot be written there, or would replace something else than an earlier page."""
    from launch.comparison.page import is_our_page

    if output.suffix != SUFFIX:
        raise FlagError(f"--output={output}: expected the name of a {SUFFIX} file")
    if not output.parent.is_dir():
        raise FlagError(f"--output={output}: there is no folder {output.parent}; make it first")
    try:
        is_taken = output.exists() and not (output.is_file() and is_our_page(output))
    except OSError as error:
        raise FlagError(f"--output={output}: cannot be read ({error.strerror})") from None
    if is_taken:
        raise FlagError(f"--output={output}: exists and is no page of this command; choose another name")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    usage = f"{PROGRAM} --runs='{DEFAULT_RUNS}' [--archive=<runs.zip>] --output=compare{SUFFIX} [--flag=value ...]"
    return run_main(_run, lambda: format_command_help(usage, define_flags()), argv)


def _run(arguments: Sequence[str]) -> None:
    request = parse_request(arguments)
    # NumPy's friends, which --help does without.
    from launch.comparison.collection import collect_runs
    from launch.comparison.page import check_plotly, write_comparison

    check_plotly()
    collected = collect_runs(request.runs, request.archives)
    for reason in collected.left_out:
        print(f"not compared: {reason}", file=sys.stderr)
    try:
        write_comparison(collected, request.output, request.details)
    except OSError as error:
        raise RunStopped(f"error: cannot write {describe_os_error(error)}", 1) from None
    count = len(collected.runs)
    size = request.output.stat().st_size / 1e6
    print(f"{count} run{'s' if count > 1 else ''} in {request.output} ({size:.1f} MB); open it in a browser")


if __name__ == "__main__":
    leave(main())
