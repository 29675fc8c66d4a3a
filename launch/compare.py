"""`python -m launch.compare --runs='runs/*'` compares runs: in a page, in a figure and a table of a paper.

`--output=compare.html` is the page, opened from its file; it is made if neither `--figure` nor `--table` is given.

Exit codes: 0 done, 1 a file could not be written, 2 the request was wrong, 130 stopped by Ctrl-C.
"""

import dataclasses
import pathlib
import re
import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from files.reading import explain_errors
from launch.command_line import describe_os_error, parse_command, run_command
from launch.console.stop_signals import leave
from launch.runs.errors import RunStopped
from launch.settings.errors import FlagError
from tff_algos.settings.config_fields import setting, texts

if TYPE_CHECKING:
    from launch.pages.comparison.collection import Collected
    from launch.pages.comparison.results import Ranking

PROGRAM = "python -m launch.compare"
COMMON = (
    "runs",
    "archive",
    "output",
    "figure",
    "table",
    "baseline",
    "metric",
    "at",
    "group_by",
)  # of its flags, what --help shows
DEFAULT_RUNS = "runs/*"
DEFAULT_OUTPUT = "compare.html"
PAGES, FIGURES, TABLES = (".html",), (".pdf", ".svg", ".png"), (".tex", ".csv", ".md")
AXES = ("round", "virtual_time", "bytes", "seconds")
WIDTHS = ("column", "page")
MOST_LISTED = 6  # flags in a note
OF_A_PAPER = ("metric", "at", "group_by", "baseline", "against", "width", "smooth")  # flags of figures and tables
OF_A_FIGURE = ("against", "width", "smooth")


@dataclasses.dataclass(frozen=True)
class Flags:
    """The flags of this command."""

    runs: tuple[str, ...] = texts(
        (),
        "Run folders, or folders with some at any depth; * for anything. By default "
        f"'{DEFAULT_RUNS}', or none beside --archive.",
        repeated=True,
    )
    archive: tuple[str, ...] = texts((), "Folder or .zip that launch.report --archive wrote.", repeated=True)
    output: str = setting(
        DEFAULT_OUTPUT, "The page, in a folder that exists. Beside --figure or --table, only if it is given."
    )
    details: str = setting(
        "",
        "Names of the runs whose plots and events go into the page, * for anything, at most 20; by default those with "
        "the best last result on the test set. The others are linked.",
    )
    figure: str = setting(
        "",
        "Curves with bands over seeds and differences to a baseline, as a paper prints them: a "
        f"{', '.join(FIGURES)} file.",
    )
    table: str = setting(
        "", f"The same results as a table: a {', '.join(TABLES)} file; .tex is for LaTeX with booktabs."
    )
    baseline: str = setting(
        "",
        "Name of the group that the others are compared with, as the table has it; empty: FedAvg, or the first where "
        "it is not there.",
    )
    metric: tuple[str, ...] = texts(
        (),
        "Column of metrics.csv that is compared; a table may have several, with commas. Empty: the main metric, on the "
        "clients' own test data where they end with models of their own.",
    )
    at: str = setting("last", "When results are taken: last, best, or the number of a round.")
    group_by: tuple[str, ...] = texts(
        (), "Flags of launch.train whose values make the groups, with commas; empty: those that differ."
    )
    against: str = setting(AXES[0], "What the figure's curves are drawn against.", choices=AXES)
    width: str = setting(
        WIDTHS[0], "How wide the figure is: a column of a two-column paper, or its page.", choices=WIDTHS
    )
    smooth: int = setting(
        0,
        "Evaluated rounds that the figure's curves are averaged over; the raw ones stay visible. 0: none.",
        minimum=0,
        maximum=10**6,
    )


class Request(NamedTuple):
    """What is asked for.

    Attributes:
      flags: the flags; of `runs` those that are looked for.
      output: the page, None if it is not asked for; `figure` and `table` likewise.
      at: when results are taken.
    """

    flags: Flags
    output: pathlib.Path | None
    figure: pathlib.Path | None
    table: pathlib.Path | None
    at: str | int


def parse_request(argv: Sequence[str]) -> Request:
    """Reads the command line, without the program's name.

    Raises:
      FlagError: a wrong flag, or a place where a file cannot go.
    """
    values, given = parse_command(Flags, argv)
    figure, table = (pathlib.Path(text) if text else None for text in (values.figure, values.table))
    with_page = "output" in given or not (figure or table)
    output = pathlib.Path(values.output) if with_page else None
    if not (figure or table):
        _refuse(given, OF_A_PAPER, "does nothing without --figure or --table")
    elif not figure:
        _refuse(given, OF_A_FIGURE, "does nothing without --figure")
    if not output:
        _refuse(given, ("details",), "does nothing without --output")
    places = {"output": (output, PAGES), "figure": (figure, FIGURES), "table": (table, TABLES)}
    for name, (path, suffixes) in places.items():
        if path:
            check_output(name, path, suffixes)
    runs = values.runs or (() if values.archive else (DEFAULT_RUNS,))
    return Request(dataclasses.replace(values, runs=runs), output, figure, table, _parse_at(values.at))


def _refuse(given: Collection[str], names: Sequence[str], why: str) -> None:
    for name in names:
        if name in given:
            raise FlagError(f"--{name}: {why}")


def _parse_at(text: str) -> str | int:
    if text in ("last", "best"):
        return text
    if not re.fullmatch("0*[1-9][0-9]{0,8}", text):
        raise FlagError(f"--at={text}: expected last, best, or the number of a round")
    return int(text)


def check_output(flag: str, path: pathlib.Path, suffixes: Sequence[str]) -> None:
    """Raises FlagError if a file cannot be written there, or would replace something else than one of this command."""
    if path.suffix not in suffixes:
        raise FlagError(f"--{flag}={path}: expected the name of a {' or '.join(suffixes)} file")
    if not path.parent.is_dir():
        raise FlagError(f"--{flag}={path}: there is no folder {path.parent}; make it first")
    with explain_errors(f"--{flag}={path}", FlagError):
        is_taken = path.exists() and not (path.is_file() and _is_ours(path))
    if is_taken:
        kind = {"output": "page"}.get(flag, flag)
        raise FlagError(f"--{flag}={path}: exists and is no {kind} of this command; choose another name")


def _is_ours(path: pathlib.Path) -> bool:
    from launch.pages.comparison.figure import is_our_figure, is_our_table
    from launch.pages.comparison.page import is_our_page

    if path.suffix in PAGES:
        return is_our_page(path)
    if path.suffix in FIGURES:
        return is_our_figure(path)
    return is_our_table(path.read_text(encoding="utf-8", errors="replace"))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    usage = (
        f"{PROGRAM} --runs='{DEFAULT_RUNS}' [--archive=<runs.zip>] [--output={DEFAULT_OUTPUT}] "
        "[--figure=<x.pdf>] [--table=<x.tex>] [--flag=value ...]"
    )
    return run_command(_run, "compare", usage, Flags, argv, common=COMMON)


def _run(arguments: Sequence[str]) -> None:
    request = parse_request(arguments)
    # NumPy's friends, which --help does without.
    from launch.pages.comparison.collection import collect_runs
    from launch.pages.comparison.groups import describe_twins, describe_versions
    from launch.pages.comparison.page import check_plotly, write_comparison
    from launch.pages.comparison.references import find_missing
    from launch.pages.report.page import is_run_page, write_run_page

    collected = collect_runs(request.flags.runs, request.flags.archive)
    if request.output and not is_run_page(collected, request.output):
        check_plotly()
    for reason in collected.left_out:
        print(f"not compared: {reason}", file=sys.stderr)
    for changed in (*describe_versions(collected.runs), *describe_twins(collected.runs)):
        print(f"note     {changed}", file=sys.stderr)
    rankings = _rank(request, collected) if request.figure or request.table else []
    for missing in find_missing(collected.runs):
        print(f"note     {missing.text} {missing.command}", file=sys.stderr)
    count = len(collected.runs)
    runs = f"{count} run{'s' if count > 1 else ''}"
    try:
        if request.output:
            if is_run_page(collected, request.output):
                write_run_page(request.output.parent)
            else:
                write_comparison(collected, request.output, request.flags.details)
            size = request.output.stat().st_size / 1e6
            print(f"{runs} in {request.output} ({size:.1f} MB); open it in a browser")
        if request.figure:
            further = _draw(request, rankings[0])
            print(f"{runs} in {request.figure}{further}")
        if request.table:
            from launch.pages.comparison.figure import write_paper_table

            write_paper_table(rankings, request.table)
            print(f"{runs} in {request.table}")
    except OSError as error:
        raise RunStopped(f"error: cannot write {describe_os_error(error)}", 1) from None


def _rank(request: Request, collected: "Collected") -> "list[Ranking]":
    """The groups' results of each metric; the baseline of the first counts for all."""
    from launch.pages.comparison.groups import find_mixed_flags, group_runs
    from launch.pages.comparison.results import check_grouping, describe_metric, rank_groups

    metrics = [describe_metric(collected.runs, column) for column in request.flags.metric or ("",)]
    flags = check_grouping(collected.runs, request.flags.group_by)
    if mixed := find_mixed_flags(collected.runs, flags):
        listed = ", ".join(mixed[:MOST_LISTED]) + (
            f" and {len(mixed) - MOST_LISTED} more" if mixed[MOST_LISTED:] else ""
        )
        print(f"note     inside groups, these flags vary as well: {listed}; see --group_by", file=sys.stderr)
    count = len(group_runs(collected.runs, flags))
    rankings = [rank_groups(collected.runs, metrics[0], flags, request.at, request.flags.baseline)]
    if (missing := count - len(rankings[0].results)) > 0:
        column = rankings[0].metric.column
        print(f"note     {missing} of {count} groups have no {column}; see --metric", file=sys.stderr)
    baseline = rankings[0].baseline
    return rankings + [rank_groups(collected.runs, metric, flags, request.at, baseline) for metric in metrics[1:]]


def _draw(request: Request, ranking: "Ranking") -> str:
    """Writes the figure, and says which groups it shows if these are not all."""
    from launch.pages.comparison.figure import AXES as COLUMNS
    from launch.pages.comparison.figure import Drawing, keep_best, write_figure

    write_figure(
        ranking, Drawing(request.flags.width, COLUMNS[request.flags.against], request.flags.smooth), request.figure
    )
    drawn, count = len(keep_best(ranking).results), len(ranking.results)
    return f"; drawn are the best {drawn} of {count} groups, choose with --runs or --group_by" if drawn < count else ""


if __name__ == "__main__":
    leave(main())
