"""Writes `report.html`: one finished run as a page that answers before it details, loads nothing and runs no script.

Its choices are radio buttons, which style sheets answer. Imports no TensorFlow.
"""

import pathlib
from typing import Any

from files.writing import write_text
from launch.console.shown_text import escape_hidden
from launch.pages.comparison.collection import Collected
from launch.pages.comparison.compared_run import is_on_disk, read_compared_run
from launch.pages.comparison.content import LINKED, read_details
from launch.pages.comparison.page import MARK
from launch.pages.report.answer import find_answer
from launch.pages.report.live import describe_live
from launch.pages.report.parts import (
    Table,
    list_commands,
    list_costs,
    list_spread,
    say_how_sure,
    tabulate_clients,
    tabulate_flags,
    tabulate_rounds,
)
from launch.pages.report.pictures import describe_choices, list_pictures, sketch_run
from launch.pages.report.words import show_cell
from launch.pages.templates import compute_digest, format_policy, render
from launch.runs.column_titles import title_column
from launch.runs.columns import RUN_PAGE, SUMMARY_FILE
from launch.runs.run_records import read_config, read_json

STYLE = pathlib.Path(__file__).with_name("page.css")
NO_SCRIPT = "'none'"
MOST_OPEN_ROWS = 12  # of a table that is not folded


def write_run_page(run_dir: pathlib.Path) -> None:
    """Writes `report.html` into a finished run's folder.

    Raises:
      RunRecordError: the run's files cannot be read.
      OSError: the page cannot be written.
    """
    write_text(run_dir / RUN_PAGE, assemble_page(run_dir))


def is_run_page(collected: Collected, output: pathlib.Path) -> bool:
    """Whether a comparison would be the page of the one run in whose folder it lies."""
    is_named_so = output.name == RUN_PAGE and len(collected.runs) == 1 and is_on_disk(collected.runs[0])
    return is_named_so and output.parent.resolve() == collected.runs[0].path.resolve()


def assemble_page(run_dir: pathlib.Path) -> str:
    """The page's HTML of a finished run. Raises as `write_run_page`."""
    run = read_compared_run(run_dir, run_dir.name or str(run_dir))
    summary, config = read_json(run_dir / SUMMARY_FILE), read_config(run_dir)
    data = config.get("data", {})
    answer = find_answer(run, summary, data)
    details = read_details([run], [0])[0]
    sketches = sketch_run(run, answer)
    chosen, others = tabulate_flags(run)
    style = f"\n{STYLE.read_text(encoding='utf-8')}"
    title = escape_hidden(run.heading or run.name)
    return render(
        "pages/report/page.html.j2",
        title=title,
        mark=MARK,
        policy=format_policy([], compute_digest(style), NO_SCRIPT),
        style=style,
        run=run,
        answer=answer,
        sketches=sketches,
        choices=describe_choices(sketches, run),
        pictures=list_pictures(run, details.pictures),
        spread=list_spread(run, summary),
        sure=say_how_sure(run),
        clients=tabulate_clients(run),
        live=describe_live(run, config, run_dir),
        costs=list_costs(run, summary),
        events=_tabulate_events(details.events),
        rounds=tabulate_rounds(run),
        chosen=chosen,
        others=others,
        files=[name for name in LINKED if name != RUN_PAGE and (run_dir / name).exists()],
        commands=list(list_commands(run, summary, run_dir)),
        most_open=MOST_OPEN_ROWS,
    )


def _tabulate_events(events: dict[str, Any] | None) -> Table | None:
    if not events:
        return None
    shown, total = len(events["rows"]), events["total"]
    note = f"The first {shown:,} of {total:,}; events.csv has all." if shown < total else ""
    cells = [[show_cell(cell) for cell in row] for row in events["rows"]]
    return Table([title_column(name) for name in events["columns"]], cells, note)
