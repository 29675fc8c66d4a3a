"""Compares what a page of launch.compare showed in a browser with the runs: `check_compare.py answers.json --runs=...`.

The flags after the answers are those of launch.compare; `drive_compare.mjs` wrote the answers. Each group's mean and
interval, in the table that the page begins with, must be those that Python computes from the same runs. Exit codes:
0 all is well, 1 the page differs or misbehaves, 2 it cannot be checked.
"""

import json
import pathlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))


from launch.compare import parse_request  # noqa: E402 (the project's folder must be on the path first)
from launch.pages.comparison.collection import collect_runs  # noqa: E402
from launch.pages.comparison.compared_run import ComparedRun  # noqa: E402
from launch.pages.comparison.seed_statistics import average_repeats, estimate_mean  # noqa: E402

METRIC = "test_accuracy"
NO_INTERVAL = "\N{EN DASH}"


def format_value(value: Any) -> str:
    """A flag's value as the page writes it."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def compute_groups(runs: Sequence[ComparedRun], flag: str) -> dict[str, list[str]]:
    """Mean, interval and number of seeds of the last test accuracy, as the page writes them, by the flag's value."""
    results: dict[str, list[tuple[int, float]]] = {}
    for run in runs:
        values = run.columns[METRIC]
        last = float(values[~np.isnan(values)][-1])
        results.setdefault(format_value(run.flags.get(flag)), []).append((run.flags["seed"], last))
    groups = {}
    for name, measured in results.items():
        found = estimate_mean(average_repeats(measured).values(), bounds=(0.0, 1.0))
        interval = NO_INTERVAL if found.low is None else f"{found.low:.4f} to {found.high:.4f}"
        groups[name] = [f"{found.mean:.4f}", interval, str(found.count)]
    return groups


def check_visit(visit: Mapping[str, Any], runs: Sequence[ComparedRun]) -> Iterator[str]:
    """A line for everything that is wrong with one visit."""
    yield from visit["problems"]
    if visit["problems"]:
        return
    if visit["name"].startswith("desktop") and not any(digit in visit["hover"] for digit in "0123456789"):
        yield "a pointer over a curve reads nothing"
    if visit["name"].startswith("desktop"):
        yield from check_buttons(visit["buttons"])
    if not all(visit["pictures"]):
        yield "a plot is not shown"
    if len(runs) == 1:
        return
    (flag, *_), *rows = visit["groups"]
    shown = {row[0]: row[1:4] for row in rows}
    for name, expected in compute_groups(runs, flag).items():
        if shown.get(name) != expected:
            yield f"group {name}: {shown.get(name)}, computed from the runs: {expected}"
    if table := visit.get("table"):
        yield from check_table(table, len(runs))


def check_buttons(buttons: Sequence[str]) -> Iterator[str]:
    """A line if the toolbars of the charts were not found, or for a button that leads to Plotly or its cloud."""
    if not any(title.startswith("Download") for title in buttons):
        yield "no button of a chart was pressed"
    for title in buttons:
        if any(word in title.lower() for word in ("cloud", "share", "studio", "plotly")):
            yield f"a button says {title}"


def check_table(table: Mapping[str, Any], count: int) -> Iterator[str]:
    """A line for each of sorting, filtering and putting back that does not work."""
    if table["all"] != count or table["afterReset"] != count:
        yield f"the table has {table['all']} rows, and {table['afterReset']} once put back, of {count} runs"
    if not 0 < table["filtered"] < count or table["count"] != f"{table['filtered']} of {count}":
        yield f"a filter leaves {table['filtered']} of {count} runs"
    once, twice = ([float(cell) for cell in table[name]] for name in ("once", "twice"))
    if once != sorted(once, reverse=True) or twice != sorted(twice):
        yield "a click on a heading does not sort"


def main(arguments: list[str]) -> int:
    """Checks the answers that the arguments name and returns the exit code."""
    if len(arguments) < 2:
        print("error: expected a file of answers and the flags of launch.compare", file=sys.stderr)
        return 2
    try:
        answers = json.loads(pathlib.Path(arguments[0]).read_text(encoding="utf-8"))
        request = parse_request(arguments[1:])
        runs = collect_runs(request.flags.runs, request.flags.archive).runs
        problems = [f"{visit['name']}: {line}" for visit in answers["visits"] for line in check_visit(visit, runs)]
        for visit in answers["visits"]:
            print(f"{visit['name']}: {len(runs)} runs, {answers['size']:,} bytes, ready in {visit['seconds']:.1f} s")
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        print(f"error: {arguments[0]}: cannot be checked: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    for line in problems:
        print(f"WRONG {line}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
