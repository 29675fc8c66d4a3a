"""`python -m launch.report --tables=<name>` makes the tables of a paper, or of quantization, of the runs in a folder.

Exit codes: 0 done, 1 a file could not be written, 2 the request was wrong, 130 stopped by Ctrl-C.
"""

import pathlib
import sys
from collections.abc import Sequence
from typing import NamedTuple

from absl import flags as absl_flags

from launch.command_line import describe_os_error, format_command_help, parse_command, run_main
from launch.reports.registry import REPORTS
from launch.reports.report_tables import Report, choose_runs
from launch.runs.errors import RunStopped
from launch.runs.run_archive import archive_runs
from launch.runs.run_records import RunRecord, read_runs
from launch.runs.tables import write_table, write_text
from launch.settings.flags import FlagError

PROGRAM = "python -m launch.report"


class Request(NamedTuple):
    """What is asked for.

    Attributes:
      tables: the paper.
      runs_dir: where the runs lie.
      output: where the report goes; None: it is only printed.
      figure: whether the paper's figure is drawn into `output`.
      archive: where the numbers of the runs that count are kept; None: nowhere.
    """

    tables: str
    runs_dir: pathlib.Path
    output: pathlib.Path | None
    figure: bool
    archive: pathlib.Path | None


def define_flags() -> absl_flags.FlagValues:
    """The flags of this command."""
    values = absl_flags.FlagValues()
    absl_flags.DEFINE_enum("tables", None, list(REPORTS), "The paper whose tables are compared.", flag_values=values)
    absl_flags.DEFINE_string("runs_dir", "runs", "Folder with the run folders, at any depth.", flag_values=values)
    absl_flags.DEFINE_string("output", "", "Folder for .md and .csv; empty: only print.", flag_values=values)
    absl_flags.DEFINE_bool("figure", False, "Draw accuracy by round as well, into --output.", flag_values=values)
    absl_flags.DEFINE_string(
        "archive", "", "Folder to keep the runs' settings and metrics in, without models.", flag_values=values
    )
    return values


def parse_request(argv: Sequence[str]) -> Request:
    """Reads the command line, without the program's name. Raises FlagError."""
    values = define_flags()
    if parse_command(values, argv):
        raise FlagError("nothing is expected after --")
    if values.tables is None:
        raise FlagError(f"--tables is missing: expected one of {', '.join(REPORTS)}")
    if values.figure and not values.output:
        raise FlagError("--figure needs --output=<folder to draw into>")
    if values.figure and REPORTS[values.tables].draw is None:
        raise FlagError(f"--figure: --tables={values.tables} has no figure; leave it out")
    runs_dir = pathlib.Path(values.runs_dir)
    if not runs_dir.is_dir():
        raise FlagError(f"--runs_dir={runs_dir}: no such folder; python -m launch.sweep makes runs")
    output, archive = (pathlib.Path(folder) if folder else None for folder in (values.output, values.archive))
    return Request(values.tables, runs_dir, output, values.figure, archive)


def collect_runs(runs_dir: pathlib.Path) -> tuple[list[RunRecord], list[str]]:
    """The runs in a folder, one for each experiment and seed, and a line for each run folder that is not counted."""
    records, left_out = [], []
    for record, reason in read_runs(runs_dir):
        if record is None:
            left_out.append(reason)
        else:
            records.append(record)
    chosen, duplicates = choose_runs(records)
    return chosen, left_out + duplicates


def name_subsets(runs: Sequence[RunRecord]) -> str:
    """A paragraph that says which runs were made on a subset of their data set; "" if none was."""
    subsets = sorted({(run.flags["dataset"], run.dataset) for run in runs if run.dataset != run.flags["dataset"]})
    lines = [
        f"Not on the whole data set: {sum(run.dataset == subset for run in runs)} of the runs with `--dataset={name}` "
        f"had {subset}."
        for name, subset in subsets
    ]
    return "\n".join(["", *lines, ""]) if lines else ""


def write_report(report: Report, request: Request) -> list[pathlib.Path]:
    """Writes what is asked for: archive, Markdown, CSV files, figure; returns their paths."""
    draw = REPORTS[request.tables].draw
    if request.archive is not None:
        archive_runs(report.runs, request.archive)
    if request.output is None:
        return [request.archive] if request.archive else []
    written = [request.output / f"{request.tables}.md"]
    write_text(written[0], report.markdown)
    for name, (columns, rows) in report.tables.items():
        written.append(request.output / f"{request.tables}_{name}.csv")
        write_table(written[-1], columns, rows)
    if request.figure and draw is not None:
        written.append(draw(report.runs, request.output))
    return written


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    usage = f"{PROGRAM} --tables=<{'|'.join(REPORTS)}> [--flag=value ...]"
    return run_main(_run, lambda: format_command_help(usage, define_flags()), argv)


def _run(arguments: Sequence[str]) -> None:
    request = parse_request(arguments)
    runs, left_out = collect_runs(request.runs_dir)
    report = REPORTS[request.tables].build(runs)
    report = report._replace(markdown=report.markdown + name_subsets(report.runs))
    print(report.markdown)
    for reason in left_out:
        print(f"not counted: {reason}", file=sys.stderr)
    try:
        written = write_report(report, request)
    except OSError as error:
        raise RunStopped(f"error: cannot write {describe_os_error(error)}", 1) from None
    if written:
        print("written: " + ", ".join(map(str, written)), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
