"""The report of asynchronous FL with periodic aggregation: what is measured, the tables, the figures. No TensorFlow.

Accuracies are in per cent, times in T_max. A run stands in a data case, under a scheduling policy ("" if every update
is taken), with a kind: a weighting of the asynchronous runs, FedAvg with or without a proximal term, or a method that
never waits. Runs with tuned settings are kinds of their own, since claims are about the printed ones. What data and
kinds are called stands beside the claims.
"""

import itertools
import math
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from launch.pages.comparison.seed_statistics import LOSS, MARGIN, TIE, WIN, compute_mean
from launch.pages.plots.style import COLORS, LINES
from launch.runs.columns import NUM_CLIENTS, TEST_ACCURACY, VIRTUAL_TIME_S
from launch.runs.run_records import RunRecord
from launch.settings.algorithms import ALGORITHMS
from reproductions.async_periodic.claims import ALGOS, CASES, CLAIMS, DATA, FURTHER, METRICS, POLICIES, WEIGHTINGS
from reproductions.engine.collection import PRINTED, Place, list_bytes
from reproductions.engine.counted_runs import TUNED_SUFFIX
from reproductions.engine.figures import Curve, Line, Panel, compute_curve, draw_panels, name_line_ends
from reproductions.engine.page import compose_report
from reproductions.engine.paper import Paper
from reproductions.engine.tables import (
    SEED,
    Report,
    Table,
    describe,
    list_results,
    make_frame,
    select,
    show,
    show_difference,
    spread,
)

FEDAVG, FEDAVG_PROXIMAL = "synchronous_plain", "synchronous"
OLDER = {"old1.25": ALGOS["old1.25"], "old1.5": ALGOS["old1.5"], "old": f"{ALGOS['old']}, gamma 2"}
OWN_DIGITS = "persistent"  # ours, for one claim: only the runs that it compares were made
OTHERS = {"FedAsync": ("", "fed_async"), "FedBuff": ("", "buffered")}
COMPARED = [*itertools.product(POLICIES, (*WEIGHTINGS, FEDAVG, FEDAVG_PROXIMAL)), *OTHERS.values()]
# What is tuned on validation examples, each by (policy, kind): all with as many trials.
TUNED = {"periodic": ("random", "fresh"), "FedAvg": ("random", FEDAVG_PROXIMAL), **OTHERS}
# The parts of the table: data, how kinds end, (policy, kind) of each row.
PARTS = (
    *(("iid", "", COMPARED), ("shards", "", COMPARED), ("shards", TUNED_SUFFIX, TUNED.values())),
    (OWN_DIGITS, "", [("random", kind) for kind in dict.fromkeys((*WEIGHTINGS, *OLDER))]),
)
# By experiment where its runs stand, in the order of the table.
PLACES = {
    (f"async_periodic_mnist_{case}_{policy}_{kind}" if policy else f"{kind}_mnist_{case}") + end: Place(
        PRINTED, case, policy, kind + end
    )
    for case, end, rows in PARTS
    for policy, kind in rows
}

LAST_ROUND = 40
TIME_BUDGET = LAST_ROUND / 4  # T_max: when an asynchronous run ends, since its periods are T_max / 4 long
UPLOAD_BUDGET = 1150  # updates: fewer than an asynchronous run sends in all, LAST_ROUND aggregations of R = 30
MODEL_BYTES = 4 * 199_210  # of McMahan's 2NN at 32 bits
MODEL_BUDGET = 2600  # models, both ways together: fewer than an asynchronous run sends, about 1,190 up and 1,620 down
LAST_AGGREGATIONS = 10
PERIODS = (1, 2, 3, 4)  # of T_max / 4 that a device takes to train
CYCLE = math.lcm(*PERIODS)  # aggregations, after which the same devices are ready again
# Virtual times are sums of many intervals: the round that ends exactly at a budget must not fall out of it.
ROUNDING = 1e-9


def list_rounds(run: RunRecord) -> pd.DataFrame:
    """A row a round: its number, accuracy (%) and, by its end, time (T_max), updates received, models both ways.

    The models are not numbers if the run says nothing of bytes.
    """
    rounds = pd.DataFrame.from_dict(run.rounds, orient="index").sort_index()
    return pd.DataFrame(
        {
            "aggregation": rounds.index,
            "accuracy": 100 * rounds[TEST_ACCURACY],
            "time": rounds[VIRTUAL_TIME_S] / run.flags["max_training_s"],
            "updates": rounds[NUM_CLIENTS].cumsum(),
            "models": [total / MODEL_BYTES for total in list_bytes(run)] or math.nan,
        }
    )


def find_last_within(rounds: pd.DataFrame, cost: str, budget: float) -> float:
    """The accuracy after the last round whose cost is within the budget, a step function; NaN if there is none."""
    within = rounds.accuracy[rounds[cost] <= budget + ROUNDING]
    return within.iloc[-1] if len(within) else math.nan


MEASURES: Mapping[str, Callable[[pd.DataFrame], float]] = {
    "final": lambda rounds: rounds.accuracy.iloc[-1],
    "mean_of_last": lambda rounds: compute_mean(rounds.accuracy.tail(LAST_AGGREGATIONS)),
    "mean_of_cycle": lambda rounds: compute_mean(rounds.accuracy.tail(CYCLE)),
    "at_equal_time": lambda rounds: find_last_within(rounds, "time", TIME_BUDGET),
    "at_equal_uploads": lambda rounds: find_last_within(rounds, "updates", UPLOAD_BUDGET),
    "at_equal_bytes": lambda rounds: find_last_within(rounds, "models", MODEL_BUDGET),
    # Sample deviation of the last changes from round to round, which a steady climb leaves at 0.
    "fluctuation": lambda rounds: rounds.accuracy.diff().tail(LAST_AGGREGATIONS).std(skipna=False),
    "time": lambda rounds: rounds.time.iloc[-1],
    "updates": lambda rounds: rounds.updates.iloc[-1],
}
MEASURED = (*Place._fields, "rounds", *MEASURES)  # the columns of the frame, beside experiment and seed


def measure(run: RunRecord) -> dict[str, Any]:
    """The place of a run, its rounds, and every measure, NaN if it is too short; nothing if it ended early.

    Nor is anything measured in a run that stands nowhere, or that was not evaluated after each round.
    """
    is_whole = len(run.rounds) == run.flags["rounds"] and all(TEST_ACCURACY in row for row in run.rounds.values())
    if run.experiment not in PLACES or not is_whole:
        return {}
    rounds = list_rounds(run)
    measured = {name: compute(rounds) for name, compute in MEASURES.items()}
    return {**PLACES[run.experiment]._asdict(), "rounds": rounds, **measured}


def build_async_report(paper: Paper, runs: Sequence[RunRecord]) -> Report:
    """The claims, one table of all combinations, and what of them differs."""
    frame = make_frame(runs, measure, MEASURED)
    tables = {"results": tabulate_results(frame), "levels": tabulate_levels(frame), "shares": tabulate_shares()}
    tables = {name: table for name, table in tables.items() if table.rows}
    numbers = {"last_round": LAST_ROUND, "last": LAST_AGGREGATIONS, "time": TIME_BUDGET, "uploads": UPLOAD_BUDGET}
    sections = describe("async_periodic", tables, margin=100 * MARGIN)
    results = list_results(frame, LAST_ROUND, (PRINTED,))
    return compose_report(paper, sections, runs, results, **numbers, models=MODEL_BUDGET)


SHOWN = ("final", "mean_of_last", "at_equal_time", "at_equal_uploads", "at_equal_bytes", "fluctuation")


def tabulate_results(frame: pd.DataFrame) -> Table:
    """A row for each place."""
    rows = []
    for _, case, policy, kind in PLACES.values():
        runs = select(frame, dataset=case, setting=policy, algo=kind)
        shown = [show(runs[metric], metric) for metric in SHOWN]
        costs = ((runs[metric].dropna(), digits) for metric, digits in (("time", 1), ("updates", 0)))
        shown += [f"{compute_mean(values):.{digits}f}" if len(values) else "" for values, digits in costs]
        rows.append([DATA[case], policy or "none", ALGOS[kind], str(len(runs) or ""), *shown])
    titles = [metric.replace("_", " ").replace("of last", f"of last {LAST_AGGREGATIONS}") for metric in SHOWN]
    return Table(["data", "scheduling", "weights", "seeds", *titles, "T_max", "updates"], rows)


def compare_printed(tables: Mapping[str, Table]) -> Table:
    """What the curves of Figures 3 and 4 come to in our runs: accuracy at equal time, a column a weighting."""
    names = {ALGOS[kind]: ALGOS[kind] for kind in WEIGHTINGS}
    names[ALGOS[FEDAVG]] = f"{ALGOS[FEDAVG]}, same scheduling"
    columns, rows = spread(tables["results"], ["data", "scheduling"], "weights", "at equal time", names)
    cases = [DATA[case] for case in CASES]
    shown = [[data, policy, "curves only", *cells] for data, policy, *cells in rows if data in cases]
    return Table([*columns[:2], "printed", *columns[2:]], [row for row in shown if any(row[3:])])


WORDS = {WIN: "higher", LOSS: "lower", TIE: "level"}
WINDOWS = {**METRICS, "mean_of_cycle": f"mean over the last {CYCLE} aggregations, a whole cycle"}
MEAN = "mean over the weightings"  # stands for a kind: the claims on scheduling compare it
Group = tuple[str, str]  # (policy, kind)


def list_pairs() -> Iterator[tuple[str, str, Group, Group]]:
    """(data, measure, two groups that differ in the policy or in the kind).

    Policies with each weighting and with all, weightings with each policy, FedAvg with and without Eq. (8); weightings
    at kept speeds.
    """
    for case in CASES:
        rivals = itertools.combinations(POLICIES, 2)
        for metric, kind, pair in itertools.product(("mean_of_last", "fluctuation"), (*WEIGHTINGS, MEAN), rivals):
            yield case, metric, *((policy, kind) for policy in pair)
        for policy, pair in itertools.product(POLICIES, itertools.combinations(WEIGHTINGS, 2)):
            yield case, "mean_of_last", *((policy, kind) for kind in pair)
        for metric, policy in itertools.product(("at_equal_time", "final"), POLICIES):
            yield case, metric, (policy, FEDAVG_PROXIMAL), (policy, FEDAVG)
    # Where slow devices have digits of their own, the window of the claims is not a whole cycle.
    own = [(metric, "equal", "fresh") for metric in ("mean_of_last", "mean_of_cycle", "at_equal_time")]
    own += itertools.product(("mean_of_last", "mean_of_cycle"), OLDER, ("equal", "fresh"))
    for metric, first, second in own:
        yield OWN_DIGITS, metric, ("random", first), ("random", second)


def tabulate_levels(frame: pd.DataFrame) -> Table:
    """A row for each pair that has runs. The mean over the weightings is of the seeds that have them all."""
    by_place, rows = frame.set_index(["dataset", "setting", "algo", SEED]).sort_index(), []

    def find(case: str, metric: str, policy: str, kind: str) -> pd.Series:
        kinds = WEIGHTINGS if kind == MEAN else (kind,)
        found = [by_place[metric].get((case, policy, each), pd.Series(dtype=float)) for each in kinds]
        return pd.concat(found, axis="columns").mean(axis=1, skipna=False).dropna() / 100

    for case, metric, *pair in list_pairs():
        difference, seeds, verdict = show_difference(*(find(case, metric, *group) for group in pair))
        if seeds:
            (policy, kind), (other_policy, other_kind) = pair
            titles = {**ALGOS, FEDAVG: "without", MEAN: MEAN, **(OLDER if case == OWN_DIGITS else {})}
            name = f"{policy}, {titles[kind]} minus {other_policy if kind == other_kind else titles[other_kind]}"
            words = ", ".join(WORDS.get(word, word) for word in verdict.split(", "))
            rows.append([DATA[case], WINDOWS[metric], name, difference, seeds, words])
    return Table(["data", "measure", "comparison", "difference", "seeds", "verdict"], rows)


def compute_shares(gamma: float, periods: Sequence[int] = PERIODS) -> np.ndarray:
    """How much groups of equally many devices that take so many periods each count in the model; the sum is 1.

    Where each device keeps its training time, u T_max with u in (0, 1], and the server aggregates every T_max / 4, a
    device is ready at every m-th aggregation, m = ceil(4 u), with an update of age m - 1. All start together, so who is
    ready repeats. Eq. (14) divides the weights of an aggregation by their sum: at aggregation t a device counts
    gamma^(m-1) / sum of gamma^(h-1) over the h that divide t, if m does. Random scheduling draws from all that are
    ready alike; that it draws 30 of them, so that the groups' numbers vary, is left out. One of the periods has to be
    1, so that somebody is always ready.
    """
    aggregations = 1 + np.arange(math.lcm(*periods))
    is_ready = aggregations[:, np.newaxis] % periods == 0
    weights = is_ready * gamma ** (np.array(periods) - 1.0)
    return (weights / weights.sum(axis=1, keepdims=True)).mean(axis=0)


def tabulate_shares() -> Table:
    """A row for each gamma, with the share of each quarter of the devices and the largest over the smallest."""
    rows = []
    for gamma in (0.5, 1.0, 1.25, 1.5, 2.0):
        shares = compute_shares(gamma)
        rows.append([f"{gamma:g}", *(f"{100 * share:.0f}" for share in shares), f"{shares.max() / shares.min():.1f}"])
    columns = [f"{m} period{'s' if m > 1 else ''} (%)" for m in PERIODS]
    return Table(["gamma", *columns, "largest over smallest"], rows)


KINDS = ("fresh", "old", "equal", FEDAVG, FEDAVG_PROXIMAL)  # of Figures 3 and 4, in this order
COLOR_OF_KIND = {
    **dict(zip(KINDS, COLORS, strict=False)),
    **dict.fromkeys((FEDAVG, FEDAVG_PROXIMAL), ALGORITHMS["fedavg"].color),
    **{algo: ALGORITHMS[algo].color for _, algo in OTHERS.values()},
}
STYLES = {
    kind: {"color": color, "linestyle": LINES[i % len(LINES)], "linewidth": 1.3, "alpha": 0.15}
    for i, (kind, color) in enumerate(COLOR_OF_KIND.items())
}
# The line of the fresh weights is solid, too: these must be told apart without their colours.
STYLES[FEDAVG_PROXIMAL]["linestyle"] = (0, (8, 1.5, 1, 1.5, 1, 1.5))
# Horizontal axes: what they say, and where they end.
AXES = {"aggregation": ("aggregation", LAST_ROUND), "time": ("virtual time (T_max)", TIME_BUDGET)}
LABEL_ROOM = 0.33  # right of the lines, of their width
ON_BANDS = "mean over seeds and one deviation either side"


def compute_accuracy_curve(runs: Sequence[pd.DataFrame], axis: str) -> Curve:
    """The curve of accuracies in per cent by aggregation or by virtual time in T_max, up to where panels end.

    Args:
      runs: the rounds of one or more runs, all with the same number of them; times are means over the runs.
      axis: one of AXES.
    """
    by_round = pd.concat(runs).groupby("aggregation")
    places = by_round[axis].mean()
    is_shown = places <= AXES[axis][1] + ROUNDING
    return compute_curve(places[is_shown], by_round.accuracy.apply(list)[is_shown])


def draw_async_figures(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    """Draws `async_tuned.png`, if tuned runs are there, and `async.png`, whose path it returns.

    The former has the methods by virtual time with settings that nobody tuned, and beside it tuned. The latter has rows
    by data case and horizontal axis, columns by policy.
    """
    frame = make_frame(runs, measure, MEASURED)
    if frame.algo.str.endswith(TUNED_SUFFIX).any():
        panels = []
        for suffix, words in {"": "not tuned", TUNED_SUFFIX: "tuned"}.items():
            groups = {name: (policy, kind + suffix) for name, (policy, kind) in TUNED.items()}
            panels.append(_make_panel(frame, "shards", groups, "time", words))
        title = f"Asynchronous FL and others on its clock, MNIST: {ON_BANDS}"
        _draw([panels], folder / "async_tuned.png", title, (4.7, 2.8))
    rows = []
    for case, figure in (("iid", " (Figure 3)"), ("shards", " (Figure 4)")):
        for axis, end in (("aggregation", figure), ("time", "")):
            panels = []
            for policy in POLICIES:
                groups = {ALGOS[kind]: (policy, kind) for kind in KINDS}
                panels.append(_make_panel(frame, case, groups, axis, policy + end))
            rows.append(panels)
    return _draw(rows, folder / "async.png", f"Asynchronous FL on MNIST: {ON_BANDS}", (4.5, 3.2))


def _make_panel(frame: pd.DataFrame, case: str, groups: Mapping[str, Group], axis: str, title: str) -> Panel:
    """A line for each group that has runs, by what it is called."""
    # A model serves until the next aggregation, so accuracy over time is a step function.
    step = "post" if axis == "time" else None
    lines = []
    for name, (policy, kind) in groups.items():
        rounds = list(select(frame, dataset=case, setting=policy, algo=kind).rounds)
        if rounds:
            style = STYLES[kind.removesuffix(TUNED_SUFFIX)] | {"step": step}
            lines.append(Line(name, compute_accuracy_curve(rounds, axis), style))
    label, end = AXES[axis]
    ticks = {"xlim": (0, end * (1 + LABEL_ROOM)), "xticks": np.linspace(0, end, 5)}
    return Panel(lines, axes={"title": f"{DATA[case]}, {title}", "xlabel": label, **ticks})


def _draw(rows: Sequence[Sequence[Panel]], path: pathlib.Path, title: str, size: tuple[float, float]) -> pathlib.Path:
    for row in rows:
        row[0].axes["ylabel"] = "test accuracy (%)"
    return draw_panels(rows, path, title, size, name_line_ends, sharey="row")


PAPER = Paper(
    "async",
    build_async_report,
    "async_periodic",
    {PRINTED: "ours"},
    CLAIMS,
    FURTHER,
    draw=draw_async_figures,
    beside=compare_printed,
)
