"""What `python -m launch.report` does: `--tables=<name>` makes a paper's page and tables, or those of quantization.

The runs lie in folders or in archives that `--archive` wrote. `--tables=all` makes all pages from the archives of a
folder, and beside that folder the page of all results.

Exit codes: 0 done, 1 a file could not be written, 2 the request was wrong, 130 stopped by Ctrl-C.

`docs/results.md`: the verdicts and key numbers of all papers, each from the tables of its report.
"""

import dataclasses
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from files.writing import write_text
from launch.command_line import describe_os_error, parse_flags, run_command
from launch.console.shown_text import escape_hidden
from launch.runs.errors import RunStopped
from launch.runs.run_archive import archive_runs, is_archive, open_runs
from launch.runs.run_records import RunPath
from launch.runs.tables import write_table
from launch.settings.errors import FlagError
from reproductions.engine.collection import WORDS
from reproductions.engine.counted_runs import collect_runs
from reproductions.engine.judge import NOT_COMPARABLE, NOT_RUN, REPRODUCED, VERDICTS, count_verdicts, list_counted
from reproductions.engine.page import fill
from reproductions.engine.paper import Paper
from reproductions.engine.tables import Report, Table, format_table
from reproductions.registry import PAPERS, find_paper
from tff_algos.settings.config_fields import setting, texts

Tables = Mapping[str, Table]


def compose_overview(papers: Sequence[tuple[Paper, Tables]]) -> str:
    """The page as Markdown, for all papers in their order."""
    blocks = ["# Results", WORDS["introduction"], summarize(papers)]
    columns = ["page", "runs", "claims", *VERDICTS]
    verdicts, others, key, uses = [], [], [], []
    for paper, tables in papers:
        page = paper.page
        name = f"[{page['title'].partition(':')[0]}](results/{paper.name}.md)"
        if "claims" in tables:
            counts = count_verdicts(tables["claims"], paper.presets).rows
            number = str(len(list_counted(tables["claims"], list(paper.presets))))
            verdicts += [[name, label, number, *each] for label, *each in counts]
        else:
            others.append(name)
        key += [[name, each["what"], fill(each["value"], page, tables)] for each in page["key"]]
        uses.append(f"- {name}: {fill(page['use_it'], page, tables)}")
    blocks += ["## Verdicts", format_table(Table(columns, verdicts))]
    blocks += [f"Without claims of a paper: {', '.join(others)}."]
    blocks += ["## Key numbers", format_table(Table(["page", "what", "ours"], key)), WORDS["compared"]]
    blocks += ["## Use it?", "\n".join(uses)]
    decided = "\n\n".join(
        [*map(WORDS.get, ("read", "printed", "decided")), f"Our further comparisons: {WORDS['further']}"]
    )
    blocks.append(f"<details><summary>How a claim is decided</summary>\n\n{decided}\n\n</details>")
    return "\n\n".join(blocks) + "\n"


def summarize(papers: Sequence[tuple[Paper, Tables]]) -> str:
    """The results in one sentence, which the README has as well.

    A claim counts once, by the best that runs of any setting say for it.
    """
    claims = reproduced = decided = judged = 0
    for paper, tables in papers:
        if "claims" in tables:
            judged += 1
            verdicts = [set(each.values()) for each in list_counted(tables["claims"], list(paper.presets))]
            claims += len(verdicts)
            reproduced += sum(REPRODUCED in each for each in verdicts)
            decided += sum(not each <= {NOT_RUN, NOT_COMPARABLE} for each in verdicts)
    return (
        f"Of {claims} claims of {judged} papers, our runs could test {decided}, and reproduced {reproduced} "
        "in at least one setting."
    )


PROGRAM = "python -m launch.report"
ALL = "all"


class Request(NamedTuple):
    """What is asked for.

    Attributes:
      tables: the paper.
      runs_dirs: where the runs lie.
      output: where the report goes; None: it is only printed.
      figure: whether the paper's figure is drawn into `output`.
      archive: where the numbers of the runs that count are kept; None: nowhere.
    """

    tables: str
    runs_dirs: tuple[RunPath, ...]
    output: pathlib.Path | None
    figure: bool
    archive: pathlib.Path | None


@dataclasses.dataclass(frozen=True)
class Flags:
    """The flags of this command."""

    tables: str = setting(
        "",
        f"The paper whose tables are compared; {ALL}: every one, of <runs_dir>/<paper>.zip.",
        choices=("", *PAPERS, ALL),
        expected=f"one of {', '.join([*PAPERS, ALL])}",
    )
    runs_dir: tuple[str, ...] = texts(
        ("runs",), "Folder with run folders at any depth, or a .zip that --archive wrote.", repeated=True
    )
    output: str = setting("", "Folder for .md and .csv; empty: only print.")
    figure: bool = setting(False, "Draw the paper's figure as well, into --output.")
    archive: str = setting(
        "", "Folder or .zip to keep the runs' settings and metrics in, without models; a .zip is replaced."
    )


def parse_request(argv: Sequence[str]) -> Request:
    """Reads the command line, without the program's name, and opens the archives of runs.

    Raises:
      FlagError: a wrong flag, or no such folder.
      RunFolderError: an archive that cannot be read.
    """
    values = parse_flags(Flags, argv)
    if not values.tables:
        raise FlagError(f"--tables is missing: expected one of {', '.join([*PAPERS, ALL])}")
    if values.figure and not values.output:
        raise FlagError("--figure needs --output=<folder to draw into>")
    if values.tables == ALL and (not values.output or values.archive or len(values.runs_dir) > 1):
        raise FlagError(f"--tables={ALL} needs --output, one --runs_dir with an archive a paper, and no --archive")
    if values.figure and values.tables != ALL and PAPERS[values.tables].draw is None:
        raise FlagError(f"--figure: --tables={values.tables} has no figure; leave it out")
    output, archive = (pathlib.Path(folder) if folder else None for folder in (values.output, values.archive))
    if output is not None and output.is_file():
        raise FlagError(f"--output={output}: a file; expected a folder")
    if archive is not None and archive.is_file() and not is_archive(archive):
        raise FlagError(f"--archive={archive}: a file; expected a folder or a name that ends in .zip")
    if values.tables == ALL:
        return Request(ALL, (pathlib.Path(values.runs_dir[0]),), output, values.figure, archive)
    runs_dirs = tuple(open_runs(pathlib.Path(name)) for name in values.runs_dir)
    return Request(values.tables, runs_dirs, output, values.figure, archive)


def write_report(report: Report, request: Request) -> list[pathlib.Path]:
    """Writes what is asked for: archive, Markdown, CSV files, figure; returns their paths."""
    paper = PAPERS[request.tables]
    written = []
    if request.archive is not None:
        archive_runs(report.runs, request.archive, paper.kept)
        written.append(request.archive)
    if request.output is None:
        return written
    written.append(request.output / f"{request.tables}.md")
    write_text(written[-1], report.markdown)
    for name, (columns, rows) in report.tables.items():
        written.append(request.output / f"{request.tables}_{name}.csv")
        write_table(written[-1], columns, rows)
    if request.figure and paper.draw is not None:
        before = {path: path.stat().st_mtime_ns for path in request.output.glob("*.png")}
        written.append(paper.draw(report.runs, request.output))
        for path in request.output.glob("*.png"):
            # Drawn just now, and not a file of somebody else's.
            if before.get(path) != path.stat().st_mtime_ns:
                reduce_colors(path)
    return written


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    usage = f"{PROGRAM} --tables=<{'|'.join([*PAPERS, ALL])}> [--flag=value ...]"
    return run_command(_run, "report", usage, Flags, argv)


def _run(arguments: Sequence[str]) -> None:
    request = parse_request(arguments)
    if request.tables != ALL:
        make_report(request)
        return
    (folder,) = request.runs_dirs
    requests = [request._replace(tables=name, runs_dirs=(open_runs(folder / f"{name}.zip"),)) for name in PAPERS]
    # All archives could be read.
    made = [(PAPERS[each.tables], make_report(each).tables) for each in requests]
    path = request.output.with_suffix(".md")
    try:
        write_text(path, compose_overview(made))
    except OSError as error:
        raise RunStopped(f"error: cannot write {describe_os_error(error)}", 1) from None
    print(f"written: {path}", file=sys.stderr)


def make_report(request: Request) -> Report:
    """Makes the report of one paper, prints its page, and writes what is asked for.

    Raises:
      RunStopped: a file could not be written.
    """
    runs, left_out = collect_runs(*request.runs_dirs)
    report = PAPERS[request.tables].build_report(runs)
    print(report.markdown)
    for reason in (*left_out, *report.left_out):
        print(f"not counted: {escape_hidden(reason)}", file=sys.stderr)
    if others := sorted({run.experiment for run in runs} - PAPERS[request.tables].experiments.keys()):
        hint = find_paper(others)
        see = f"; see --tables={hint}" if hint else ""
        print(f"not counted: runs of {len(others)} experiments of other tables{see}", file=sys.stderr)
    if not report.runs:
        places = ", ".join(map(str, request.runs_dirs))
        print(f"no runs of these tables in {places}; make some with python -m launch.sweep", file=sys.stderr)
    try:
        written = write_report(report, request)
    except OSError as error:
        raise RunStopped(f"error: cannot write {describe_os_error(error)}", 1) from None
    if written:
        print("written: " + ", ".join(map(str, written)), file=sys.stderr)
    figure = PAPERS[request.tables].page.get("figure")
    if request.output is not None and figure and not (request.output / figure).is_file():
        print(f"not drawn: {figure}, which the page shows; --figure draws it", file=sys.stderr)
    return report


COLORS = 64  # lines, bands and their smooth edges


def reduce_colors(path: pathlib.Path) -> None:
    """Rewrites a PNG with a palette of COLORS."""
    from PIL import Image

    with Image.open(path) as image:
        # Without dithering plain areas keep their colours, and a figure that is reduced again stays the same.
        reduced = image.convert("RGB").quantize(COLORS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    reduced.save(path, optimize=True)
