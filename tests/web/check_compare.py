"""Compares what a page of launch.compare showed in a browser with the runs: `check_compare.py answers.json --runs=...`.

The flags after the answers are those of launch.compare; `drive_compare.mjs` wrote the answers. What the first card says
of each group, and each group's mean and interval in the table below, must be what Python computes from the same runs.
The card must stand before the filters, and on a phone its first line on the first screen. Exit codes: 0 all is well,
1 the page differs or misbehaves, 2 it cannot be checked.
"""

import json
import pathlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))


from launch.compare import parse_request  # noqa: E402 (the project's folder must be on the path first)
from launch.pages.comparison.collection import collect_runs  # noqa: E402
from launch.pages.comparison.compared_run import ComparedRun  # noqa: E402
from launch.pages.comparison.groups import Group, find_differing_data, group_runs  # noqa: E402
from launch.pages.comparison.results import choose_baseline  # noqa: E402
from launch.pages.comparison.seed_statistics import (  # noqa: E402
    LEAST_SEEDS,
    LOSS,
    WIN,
    average_repeats,
    compare_by_seed,
    compute_mean,
    estimate_mean,
)

METRIC = "test_accuracy"
NO_INTERVAL = "\N{EN DASH}"
CHOICES = ("baseline", "metric", "at", "axis", "spread", "smoothing", "one", "other", "run")


def format_value(value: Any) -> str:
    """A flag's value as the page writes it."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def split_runs(runs: Sequence[ComparedRun], flag: str) -> dict[str, list[ComparedRun]]:
    """The runs by the flag's value, as the page writes it."""
    groups: dict[str, list[ComparedRun]] = {}
    for run in runs:
        groups.setdefault(format_value(run.flags.get(flag)), []).append(run)
    return groups


def read_seeds(runs: Sequence[ComparedRun]) -> dict[int, float]:
    """The last test accuracy by seed."""
    columns = [(run.flags["seed"], run.columns[METRIC]) for run in runs]
    return average_repeats((seed, float(values[~np.isnan(values)][-1])) for seed, values in columns)


def compute_groups(runs: Sequence[ComparedRun], flag: str) -> dict[str, list[str]]:
    """Mean, interval and number of seeds of the last test accuracy, as the page writes them, by the flag's value."""
    groups = {}
    for key, members in split_runs(runs, flag).items():
        name = members[0].title if flag == "algo" else key
        found = estimate_mean(read_seeds(members).values(), bounds=(0.0, 1.0))
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
    answer = visit["answer"]
    if answer["filters"] <= answer["ends"]:
        yield "the filters stand before the answer"
    if visit["name"].startswith("phone") and answer["ends"] > visit["height"]:
        yield f"the answer ends at {answer['ends']:.0f} of {visit['height']} pixels"
    if len(runs) == 1:
        if answer["title"] != "One run alone" or not re.match(r"\d\.\d{4} ", answer["text"]):
            yield f"of one run the first card says {answer['title']}, {answer['text']}"
        return
    (flag, *_), *rows = visit["groups"]
    shown = {row[0]: row[1:4] for row in rows}
    for name, expected in compute_groups(runs, flag).items():
        if shown.get(name) != expected:
            yield f"group {name}: {shown.get(name)}, computed from the runs: {expected}"
    yield from check_answer(answer, runs, flag)
    for choice in CHOICES if "reached" in visit else ():
        if not visit["reached"].get(choice):
            yield f"Tab does not reach {choice}, or one does not see it"
    if table := visit.get("table"):
        yield from check_table(table, len(runs))


def check_answer(answer: Mapping[str, Any], runs: Sequence[ComparedRun], flag: str) -> Iterator[str]:
    """A line for each line of the first card that is not what the runs say: verdict, points, interval, bytes."""
    # The card begins with the data of which there are most runs, among those with several groups.
    splits = [split_runs(split.runs, flag) for split in group_runs(runs, find_differing_data(runs))]
    groups = max((split for split in splits if len(split) > 1), key=lambda split: sum(map(len, split.values())))
    results = {name: read_seeds(members) for name, members in groups.items()}
    baseline = choose_baseline(runs, [(Group(name, groups[name]), by_seed) for name, by_seed in results.items()])
    if answer["baseline"] != baseline:
        yield f"the baseline is {answer['baseline']}, expected {baseline}"
        return
    lines = {name: (verdict, cost) for name, _, verdict, cost in answer["leads"]}
    if lines.keys() != groups.keys() - {baseline}:
        yield f"the first card has {sorted(lines)}, expected all of {sorted(groups)} but {baseline}"
        return
    if set(answer["changed"]) != groups.keys() - {answer["other"]}:
        yield f"with {answer['other']} as the baseline the first card has {answer['changed']}"
    are_decided = []
    for name, (verdict, cost) in lines.items():
        found = compare_by_seed(results[name], results[baseline])
        side = "better" if WIN in found.verdict else "worse" if LOSS in found.verdict else "undecided"
        is_constant = found.low is None and found.mean == 0 and found.count >= LEAST_SEEDS
        are_decided.append(side != "undecided" or is_constant)
        has_interval = found.low is not None and found.count >= LEAST_SEEDS
        expected = [] if not found.count else [found.mean, found.low, found.high] if has_interval else [found.mean]
        texts = re.findall("[+-]?[0-9.]+", verdict.replace("\N{MINUS SIGN}", "-"))
        # Numbers are rounded; one that lies in the middle of two may be written either way.
        slack = 0.501 * 10.0 ** -max([len(text.partition(".")[2]) for text in texts], default=0)
        shown = list(map(float, texts))
        is_near = len(shown) == len(expected) and np.allclose(shown, 100 * np.array(expected), rtol=0, atol=slack)
        if not verdict.startswith("the same: " if is_constant else f"{side}: ") or not is_near:
            yield f"{name}: {verdict}; computed from the runs: {side}, {expected}"
        ours, theirs = (compute_mean(run.columns["total_bytes"][-1] for run in groups[key]) for key in (name, baseline))
        shown_ratio = re.search("for ([0-9.]+) \N{MULTIPLICATION SIGN} the bytes", cost)
        if not np.isclose(float(shown_ratio[1]) if shown_ratio else 1, ours / theirs, rtol=0.051):
            yield f"{name}: {cost}; computed from the runs: {ours / theirs:.3f} times the bytes"
        if found.count and not cost.startswith(f"{found.count} seed"):
            yield f"{name}: {cost}; computed from the runs: {found.count} seeds"
    if are_decided != sorted(are_decided, reverse=True):
        yield "what is undecided comes before what is decided"


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
