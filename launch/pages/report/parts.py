"""What the page of a run says after its answer: of clients, devices, settings, and what to type next. No TensorFlow."""

import pathlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from launch.pages.comparison.compared_run import SECONDS, ComparedRun
from launch.pages.comparison.groups import find_defaults
from launch.pages.report.answer import read_last, read_section
from launch.pages.report.words import (
    NBSP,
    count,
    read_number,
    show_bytes,
    show_cell,
    show_metric,
    show_seconds,
)
from launch.runs.column_titles import title_column
from launch.runs.columns import (
    ATTACKER,
    AVAILABILITY,
    BYTES_DOWN,
    BYTES_UP,
    CLIENT,
    EXAMPLES_PER_S,
    JOULES,
    NUM_CLIENTS,
    NUM_TEST,
    ROUND,
    TOOK_PART,
    VIRTUAL_TIME_S,
)
from launch.runs.run_records import find_longer
from launch.runs.task_columns import PERCENT
from launch.settings.run_titles import are_live
from launch.settings.serving import is_live_run
from launch.settings.trusted_modules import list_objects, list_session_names, spell_trust

MOST_ROWS = 1000  # of a table in the page
FEW_EXAMPLES = 30  # of a client: below, what one wrong answer costs is said
POINTS = 100


class Table(NamedTuple):
    """A table of text.

    Attributes:
      columns: titles; the first column names the row.
      rows: cells, as they are shown.
      note: which rows are left out, "" if none.
    """

    columns: list[str]
    rows: list[list[str]]
    note: str = ""


def list_spread(run: ComparedRun, summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(name, text) of how the clients differ; empty without clients that were tested."""
    task, names, values = run.task, *_read_tested(run)
    if not len(values):
        return []
    statistics = read_section(summary, "clients")
    mean, deviation, _, worst_tenth = (read_number(statistics.get(name)) for name in task.statistics)
    mean = float(values.mean()) if mean is None else mean
    if len(values) == 1:
        return [(f"{names[0]}, the only one", show_metric(mean, task))]
    size = -(-len(values) // 10)
    worst = int(np.argmin(task.sign * values))
    rows = [(f"Mean of {count(len(values), 'client')}", show_metric(mean, task))]
    if worst_tenth is not None:
        rows.append((f"Worst tenth, {count(size, 'client')}", show_metric(worst_tenth, task)))
    if size > 1 or worst_tenth is None:
        rows.append((f"Worst, {names[worst]}", show_metric(float(values[worst]), task)))
    if deviation is not None:
        is_share = task.metric.unit == PERCENT
        shown = f"{POINTS * deviation:.1f}{NBSP}points" if is_share else show_metric(deviation, task)
        rows.append(("Standard deviation between clients", shown))
    return rows


def _read_tested(run: ComparedRun) -> tuple[list[str], np.ndarray]:
    """The clients of the run that were tested, without new ones and attackers: names, and the main metric of each."""
    names = [show_cell(name) for name in run.clients.get(CLIENT, ())]
    values = np.asarray(run.clients.get(run.task.of_client, ()))
    if values.dtype.kind != "f" or len(names) != len(values):
        return [], np.array([])
    kept = _find_members(run) & np.isfinite(values)
    return [name for name, is_kept in zip(names, kept, strict=True) if is_kept], values[kept]


def _find_members(run: ComparedRun) -> np.ndarray:
    """Whether each client took part honestly."""
    number = max(map(len, run.clients.values()), default=0)
    is_member = np.ones(number, bool)
    for column, wanted in ((TOOK_PART, 1), (ATTACKER, 0)):
        if column in run.clients:
            is_member &= np.asarray(run.clients[column]) == wanted
    return is_member


def say_how_sure(run: ComparedRun) -> str:
    """On how few examples each client is tested, and what one of them is worth; "" if that is not known."""
    sizes, values = np.asarray(run.clients.get(NUM_TEST, ())), np.asarray(run.clients.get(run.task.of_client, ()))
    if sizes.dtype.kind != "f" or len(sizes) != len(values) or values.dtype.kind != "f":
        return ""
    sizes = sizes[_find_members(run) & np.isfinite(values) & (sizes > 0)].astype(int)
    if not len(sizes):
        return ""
    least, most = int(sizes.min()), int(sizes.max())
    number = count(most, "example") if least == most else f"{least:,} to {count(most, 'example')}"
    middle = "" if least == most else f" (median {int(np.median(sizes)):,})"
    who = "It is" if len(sizes) == 1 else "Each is"
    text = f"{who} tested on {number} of its own{middle}."
    if run.task.kind.is_labelled_by_class and least < FEW_EXAMPLES:
        cost = POINTS / least
        shown = f"{cost:.0f}" if cost >= 10 or cost == int(cost) else f"{cost:.1f}"
        text += f" One wrong answer of {least:,} costs {shown}{NBSP}points."
    elif least < FEW_EXAMPLES:
        text += " With so few, chance alone makes clients differ."
    return text


def tabulate_clients(run: ComparedRun) -> Table | None:
    """`clients.csv` for the page, the worst client first; None without clients."""
    if not run.clients:
        return None
    number = max(map(len, run.clients.values()))
    values = np.asarray(run.clients.get(run.task.of_client, ()))
    order = np.arange(number)
    if values.dtype.kind == "f" and len(values) == number:
        order = np.argsort(run.task.sign * values, kind="stable")  # NaN comes last
    shown = order[:MOST_ROWS]
    first = [name for name in (CLIENT, run.task.of_client, NUM_TEST) if name in run.clients]
    names = [*first, *(name for name in run.clients if name not in first)]

    def show(name: str, value: Any) -> str:
        number = None if isinstance(value, str) else read_number(value)
        return show_metric(number, run.task) if name == run.task.of_client and number is not None else show_cell(value)

    rows = [[show(name, run.clients[name][i]) for name in names] for i in shown]
    left_out = f"The {count(MOST_ROWS, 'client')} with the worst results; clients.csv has all {number:,}."
    return Table([title_column(name) for name in names], rows, left_out if number > MOST_ROWS else "")


def list_costs(run: ComparedRun, summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(name, text) of what the run took: time, bytes and energy of the devices, and time of this machine."""
    rounds, rows = len(run.columns[ROUND]), []
    if (seconds := read_last(run, VIRTUAL_TIME_S)) is not None:
        each = f"; {show_seconds(seconds / rounds)} a round" if rounds > 1 else ""
        name = "Time of the live rounds" if run.devices else "Time of the devices, virtual"
        rows.append((name, f"{show_seconds(seconds)}{each}"))
    takers = float(np.nansum(run.columns.get(NUM_CLIENTS, np.array([]))))
    for column, name in ((BYTES_DOWN, "Sent to clients"), (BYTES_UP, "Sent by clients")):
        if column in run.columns:
            total = float(np.nansum(run.columns[column]))
            each = f"; {show_bytes(total / takers)} a client and round" if takers else ""
            rows.append((name, f"{show_bytes(total)}{each}"))
    energy = read_section(summary, JOULES)
    total, mean, most = (read_number(energy.get(name)) for name in ("total", "mean", "most"))
    if total is not None:
        each = f"; {mean:,.3g}{NBSP}J a client, at most {most:,.3g}{NBSP}J" if mean is not None and most else ""
        rows.append(("Energy of training", f"{total:,.4g}{NBSP}J{each}"))
    for column, name, form in (
        (EXAMPLES_PER_S, "Speed of the devices", "{} examples a second"),
        (AVAILABILITY, "Share of the time that a device is there", "{}"),
    ):
        known = np.asarray(run.clients.get(column, ()))
        if known.dtype.kind == "f" and np.isfinite(known).any() and (column != AVAILABILITY or np.nanmin(known) < 1):
            ends = list(dict.fromkeys(show_cell(float(value)) for value in (np.nanmin(known), np.nanmax(known))))
            rows.append((name, form.format(" to ".join(ends))))
    if (seconds := read_last(run, SECONDS)) is not None:
        name = (
            "Rounds at the server, waiting included"
            if are_live(run.devices)
            else "Computed by the machine that simulated them"
        )
        rows.append((name, show_seconds(seconds)))
    return rows


def tabulate_rounds(run: ComparedRun) -> Table:
    """`metrics.csv` for the page; of a long run every k-th round and the last."""
    number = len(run.columns[ROUND])
    step = -(-number // MOST_ROWS)
    shown = sorted({*range(step - 1, number, step), number - 1})
    rows = [[show_cell(float(values[i])) for values in run.columns.values()] for i in shown]
    note = f"Every {step}th round; metrics.csv has all." if step > 1 else ""
    return Table([title_column(name) for name in run.columns], rows, note)


def tabulate_flags(run: ComparedRun) -> tuple[Table, Table]:
    """The settings that somebody chose, and all others."""
    # A run stores what --compile=auto came to, which nobody chose.
    defaults = {**find_defaults(run.flags), "compile": run.flags.get("compile")}
    chosen = [name for name, value in run.flags.items() if name not in defaults or defaults[name] != value]
    others = [name for name in run.flags if name not in chosen]
    return _tabulate_values(run.flags, chosen), _tabulate_values(run.flags, others)


def _tabulate_values(flags: Mapping[str, Any], names: Sequence[str]) -> Table:
    def show(value: Any) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        return "(empty)" if value == "" else f"{value:g}" if isinstance(value, float) else str(value)

    return Table(["Flag", "Value"], [[name, show(flags[name])] for name in names])


def list_commands(run: ComparedRun, summary: Mapping[str, Any], run_dir: pathlib.Path) -> Iterator[tuple[str, str]]:
    """(what for, command) of what may come next; the folder as seen from where the page is written."""
    if list_session_names(list_objects(run.asked)):
        return  # what the run needs was in a script or notebook, which no command has
    folder, trust = shlex.quote(str(_shorten(run_dir))), spell_trust(run.asked)
    yield "Test the models again, or on other data", f"python -m launch.evaluate --run_dir={folder}{trust}"
    yield "Bring them onto phones", f"python -m launch.export --run_dir={folder}{trust}"
    if longer := find_longer(run.asked, summary):
        command = "launch.serve" if is_live_run(run_dir) else "launch.train"
        given = "".join(f" {shlex.quote(f'--{name}={value}')}" for name, value in longer.items())
        yield "Train on", f"python -m {command} --resume --run_dir={folder}{given}{trust}"
    others = shlex.quote(str(_shorten(run_dir).parent / "*"))
    yield "Compare with other runs, in charts that answer a pointer", f"python -m launch.compare --runs={others}"


def _shorten(run_dir: pathlib.Path) -> pathlib.Path:
    """The folder from here if it lies below, else its name alone: a page may go to others."""
    path = run_dir.resolve()
    here = pathlib.Path.cwd().resolve()
    return path.relative_to(here) if path.is_relative_to(here) else pathlib.Path(path.name)
