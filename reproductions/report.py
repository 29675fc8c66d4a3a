"""What `python -m launch.report` does: `--tables=<name>` makes a paper's page and tables, or those of quantization.

The runs lie in folders or in archives that `--archive` wrote. `--tables=all` makes all pages from the archives of a
folder, and beside that folder the page of all results.

Exit codes: 0 done, 1 a file could not be written, 2 the request was wrong, 130 stopped by Ctrl-C.

`docs/results.md`: the verdicts and key numbers of all papers, each from the tables of its report.
"""

import dataclasses
import pathlib
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence

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
from reproductions.engine.judge import TESTED, VERDICTS, count_verdicts, list_counted
from reproductions.engine.page import fill, fold
from reproductions.engine.paper import Paper
from reproductions.engine.tables import Report, Table, format_table
from reproductions.registry import PAPERS, find_paper
from tff_algos.settings.config_fields import setting, texts

Tables = Mapping[str, Table]
LINK_OF_PAGE = re.compile(r"\]\((\.\./)?(?=\w+\.md)")  # of a page of results, which lies a folder below the overview


def compose_overview(papers: Sequence[tuple[Paper, Tables]]) -> str:
    """The page as Markdown, for all papers in their order; what a reader can use comes first."""
    columns = ["page", "runs", "claims", *VERDICTS]
    verdicts, others, key, uses = [], [], [], []
    for paper, tables in papers:
        page = paper.page
        name = f"[{page['title'].partition(':')[0]}](results/{paper.name}.md)"
        if "claims" in tables:
            rows = count_verdicts(tables["claims"], paper.presets).rows
            number = str(len(list_counted(tables["claims"], list(paper.presets))))
            verdicts += [[name, label, number, *each] for label, *each in rows]
        else:
            others.append(name)
        key += [[name, each["what"], fill(each["value"], page, tables)] for each in page["key"]]
        use = LINK_OF_PAGE.sub(lambda link: "](" if link[1] else "](results/", fill(page["use_when"], page, tables))
        uses.append(f"- {name}: {use}")
    counts = count_claims(papers)
    found = {verdict.replace(" ", "_"): counts[verdict] for verdict in TESTED}
    introduction = WORDS["introduction"].format(tested=sum(found.values()), **found)
    blocks = ["# Results", introduction, "## Use it when", "\n".join(uses)]
    others_than_tested = _say(counts, VERDICTS[len(TESTED) :])
    split = f"{summarize(papers)} The others are {others_than_tested}. {WORDS['split']}"
    blocks += ["## Verdicts", split, format_table(Table(columns, verdicts))]
    blocks += [f"Without claims of a paper: {', '.join(others)}."]
    blocks += ["## Key numbers", format_table(Table(["page", "what", "ours"], key)), WORDS["compared"], WORDS["made"]]
    decided = [*map(WORDS.get, ("read", "printed", "decided")), f"Our further comparisons: {WORDS['further']}"]
    return "\n\n".join([*blocks, "## How a claim is decided", fold("The rules", *decided)]) + "\n"


def summarize(papers: Sequence[tuple[Paper, Tables]]) -> str:
    """How many claims were tested, and what came of them, in one sentence, which the README has as well."""
    counts, judged = count_claims(papers), sum("claims" in tables for _, tables in papers)
    tested = sum(counts[verdict] for verdict in TESTED)
    return f"Of {sum(counts.values())} claims of {judged} papers, our runs test {tested}: {_say(counts, TESTED)}."


def count_claims(papers: Sequence[tuple[Paper, Tables]]) -> Mapping[str, int]:
    """How many claims of all papers have which verdict, each once: the first of VERDICTS that runs of any setting say.

    So one counts as reproduced if runs of one setting reproduce it, whatever those of another say.
    """
    return Counter(
        min(verdicts.values(), key=VERDICTS.index)
        for paper, tables in papers
        if "claims" in tables
        for verdicts in list_counted(tables["claims"], list(paper.presets))
    )


def _say(counts: Mapping[str, int], verdicts: Sequence[str]) -> str:
    *texts, last = (f"{counts[verdict]} {verdict}" for verdict in verdicts)
    return f"{', '.join(texts)} and {last}"


PROGRAM = "python -m launch.report"
ALL = "all"


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


def parse_request(argv: Sequence[str]) -> Flags:
    """Reads the command line, without the program's name.

    Raises:
      FlagError: a wrong flag, or flags that do not go together.
    """
    flags = parse_flags(Flags, argv)
    if not flags.tables:
        raise FlagError(f"--tables is missing: expected one of {', '.join([*PAPERS, ALL])}")
    if flags.figure and not flags.output:
        raise FlagError("--figure needs --output=<folder to draw into>")
    if flags.tables == ALL and (not flags.output or flags.archive or len(flags.runs_dir) > 1):
        raise FlagError(f"--tables={ALL} needs --output, one --runs_dir with an archive a paper, and no --archive")
    if flags.figure and flags.tables != ALL and PAPERS[flags.tables].draw is None:
        raise FlagError(f"--figure: --tables={flags.tables} has no figure; leave it out")
    if flags.output and pathlib.Path(flags.output).is_file():
        raise FlagError(f"--output={pathlib.Path(flags.output)}: a file; expected a folder")
    archive = pathlib.Path(flags.archive)
    if archive.is_file() and not is_archive(archive):
        raise FlagError(f"--archive={archive}: a file; expected a folder or a name that ends in .zip")
    return flags


def write_report(report: Report, flags: Flags) -> list[pathlib.Path]:
    """Writes what is asked for: archive, Markdown, CSV files, figure; returns their paths."""
    paper, output = PAPERS[flags.tables], pathlib.Path(flags.output)
    written = []
    if flags.archive:
        written.append(pathlib.Path(flags.archive))
        archive_runs(report.runs, written[-1], paper.kept)
    if not flags.output:
        return written
    written.append(output / f"{flags.tables}.md")
    write_text(written[-1], report.markdown)
    for name, (columns, rows) in report.tables.items():
        written.append(output / f"{flags.tables}_{name}.csv")
        write_table(written[-1], columns, rows)
    if flags.figure and paper.draw is not None:
        before = {path: path.stat().st_mtime_ns for path in output.glob("*.png")}
        written.append(paper.draw(report.runs, output))
        for path in output.glob("*.png"):
            # Drawn just now, and not a file of somebody else's.
            if before.get(path) != path.stat().st_mtime_ns:
                reduce_colors(path)
    return written


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    usage = f"{PROGRAM} --tables=<{'|'.join([*PAPERS, ALL])}> [--flag=value ...]"
    return run_command(_run, "report", usage, Flags, argv)


def _run(arguments: Sequence[str]) -> None:
    flags = parse_request(arguments)
    if flags.tables != ALL:
        make_report(flags, [open_runs(pathlib.Path(name)) for name in flags.runs_dir])
        return
    (folder,) = flags.runs_dir
    # All are opened before anything is written, so that a missing one leaves the pages as they were.
    archives = {name: open_runs(pathlib.Path(folder, f"{name}.zip")) for name in PAPERS}
    made = [
        (PAPERS[name], make_report(dataclasses.replace(flags, tables=name), [runs]).tables)
        for name, runs in archives.items()
    ]
    path = pathlib.Path(flags.output).with_suffix(".md")
    try:
        write_text(path, compose_overview(made))
    except OSError as error:
        raise RunStopped(f"error: cannot write {describe_os_error(error)}", 1) from None
    print(f"written: {path}", file=sys.stderr)


def make_report(flags: Flags, runs_dirs: Sequence[RunPath]) -> Report:
    """Makes the report of one paper of the runs in these, prints its page, and writes what is asked for.

    Raises:
      RunStopped: a file could not be written.
    """
    paper = PAPERS[flags.tables]
    runs, left_out = collect_runs(*runs_dirs)
    report = paper.build_report(runs)
    print(report.markdown)
    for reason in (*left_out, *report.left_out):
        print(f"not counted: {escape_hidden(reason)}", file=sys.stderr)
    if others := sorted({run.experiment for run in runs} - paper.experiments.keys()):
        hint = find_paper(others)
        see = f"; see --tables={hint}" if hint else ""
        print(f"not counted: runs of {len(others)} experiments of other tables{see}", file=sys.stderr)
    if not report.runs:
        places = ", ".join(map(str, runs_dirs))
        print(f"no runs of these tables in {places}; make some with python -m launch.sweep", file=sys.stderr)
    try:
        written = write_report(report, flags)
    except OSError as error:
        raise RunStopped(f"error: cannot write {describe_os_error(error)}", 1) from None
    if written:
        print("written: " + ", ".join(map(str, written)), file=sys.stderr)
    figure = paper.page.get("figure")
    if flags.output and figure and not pathlib.Path(flags.output, figure).is_file():
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
