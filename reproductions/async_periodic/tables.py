"""The tables of asynchronous FL: all combinations, which of them differ, and what devices count. No TensorFlow."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from launch.comparison.seed_statistics import LOSS, MARGIN, TIE, WIN, compare_by_seed, compute_mean
from launch.runs.run_records import RunRecord
from reproductions.async_periodic.claims import CLAIMS, FURTHER
from reproductions.async_periodic.figure import draw_async_figures
from reproductions.async_periodic.measures import (
    AXES,
    COMPARED_CASES,
    FEDAVG,
    FEDAVG_PROXIMAL,
    LAST_AGGREGATIONS,
    LAST_ROUND,
    MODEL_BUDGET,
    OWN_DIGITS,
    PERIODS,
    PLACES,
    TIME_BUDGET,
    UPLOAD_BUDGET,
    list_places,
    make_cell,
    measure,
)
from reproductions.engine.collection import PRINTED, Cell
from reproductions.engine.markdown import Report, Table
from reproductions.engine.paper import Paper
from reproductions.engine.report import compose_report
from reproductions.engine.tables import BySeed, collect, describe, locate, show

SHOWN = ("final", "mean_of_last", "at_equal_time", "at_equal_uploads", "at_equal_bytes", "fluctuation")
COST_DIGITS = {"time": 1, "updates": 0}
COLUMNS = (
    *("data", "scheduling", "weights", "seeds", "final", f"mean of last {LAST_AGGREGATIONS}", "at equal time"),
    *("at equal uploads", "at equal bytes", "fluctuation", "T_max", "updates"),
)
# Of weightings, with which policies are compared; the claims on scheduling compare the mean.
GROUPS = {(kind,): title for kind, title in AXES["weighting"].items()}
GROUPS[tuple(AXES["weighting"])] = "mean over the weightings"
WORDS = {WIN: "higher", LOSS: "lower", TIE: "level"}
GAMMAS = (0.5, 1.0, 1.25, 1.5, 2.0)

Results = Mapping[Cell, BySeed]
Group = tuple[str, Sequence[str]]  # a policy, and kinds whose mean counts


def build_async_report(paper: Paper, runs: Sequence[RunRecord]) -> Report:
    """The claims, one table of all combinations, and what of them differs."""
    results = locate(collect(runs, measure), PLACES.get, LAST_ROUND, (PRINTED,))
    tables = {"results": tabulate_results(results[PRINTED]), "levels": tabulate_levels(results[PRINTED])}
    tables = {name: table for name, table in tables.items() if table.rows} | {"shares": tabulate_shares()}
    numbers = {"last_round": LAST_ROUND, "last": LAST_AGGREGATIONS, "time": TIME_BUDGET, "uploads": UPLOAD_BUDGET}
    sections = describe("async_periodic", tables, margin=100 * MARGIN)
    return compose_report(paper, sections, runs, results, **numbers, models=MODEL_BUDGET)


def tabulate_results(results: Results) -> Table:
    """A row for each place."""
    rows = []
    for (_, case, policy, kind), title in list_places():
        found = {metric: results.get(make_cell(case, policy, kind, metric), {}) for metric in (*SHOWN, *COST_DIGITS)}
        costs = [_show_mean(found[metric], digits) for metric, digits in COST_DIGITS.items()]
        place = [AXES["case"][case], policy or "none", title, str(len(found["final"]) or "")]
        rows.append([*place, *(show(found[metric], metric) for metric in SHOWN), *costs])
    return Table(COLUMNS, rows)


def _show_mean(by_seed: BySeed, digits: int) -> str:
    return f"{compute_mean(by_seed.values()):.{digits}f}" if by_seed else ""


def list_pairs() -> Iterator[tuple[str, str, Group, Group, str]]:
    """(data, measure, two groups that differ in one thing, what the pair is called).

    Policies by GROUPS, weightings with each policy, FedAvg with and without Eq. (8); weightings at kept speeds.
    """
    policies, weightings = AXES["policy"], AXES["weighting"]
    for case in COMPARED_CASES:
        for metric, (kinds, title) in itertools.product(("mean_of_last", "fluctuation"), GROUPS.items()):
            for first, second in itertools.combinations(policies, 2):
                yield case, metric, (first, kinds), (second, kinds), f"{first}, {title} minus {second}"
        for policy, (first, second) in itertools.product(policies, itertools.combinations(weightings, 2)):
            name = f"{policy}, {weightings[first]} minus {weightings[second]}"
            yield case, "mean_of_last", (policy, [first]), (policy, [second]), name
        for metric, policy in itertools.product(("at_equal_time", "final"), policies):
            name = f"{policy}, {AXES['fedavg'][FEDAVG_PROXIMAL]} minus without"
            yield case, metric, (policy, [FEDAVG_PROXIMAL]), (policy, [FEDAVG]), name
    # Where slow devices have digits of their own, the window of the claims is not a whole cycle.
    pairs = [(metric, "equal", "fresh") for metric in ("mean_of_last", "mean_of_cycle", "at_equal_time")]
    pairs += itertools.product(("mean_of_last", "mean_of_cycle"), AXES["older"], ("equal", "fresh"))
    titles = weightings | AXES["older"]
    for metric, first, second in pairs:
        name = f"random, {titles[first]} minus {titles[second]}"
        yield OWN_DIGITS, metric, ("random", [first]), ("random", [second]), name


def average_by_seed(results: Iterable[BySeed]) -> dict[int, float]:
    """The mean over the results, of each seed that all of them have."""
    values = list(results)
    seeds = set.intersection(*map(set, values))
    return {seed: compute_mean(each[seed] for each in values) for seed in seeds}


def tabulate_levels(results: Results) -> Table:
    """A row for each pair that has runs."""
    rows = []
    for case, metric, *groups, name in list_pairs():
        means = (
            average_by_seed(results.get(make_cell(case, policy, kind, metric), {}) for kind in kinds)
            for policy, kinds in groups
        )
        difference = compare_by_seed(*({seed: value / 100 for seed, value in each.items()} for each in means))
        if difference.count:
            words = ", ".join(WORDS.get(word, word) for word in difference.verdict.split(", "))
            place = [AXES["case"][case], AXES["window"][metric], name]
            rows.append([*place, difference.format(), str(difference.count), words])
    return Table(["data", "measure", "comparison", "difference", "seeds", "verdict"], rows)


def compute_shares(gamma: float, periods: Sequence[int] = PERIODS) -> list[float]:
    """How much groups of equally many devices that take so many periods each count in the model; the sum is 1.

    Where each device keeps its training time, u T_max with u in (0, 1], and the server aggregates every T_max / 4, a
    device is ready at every m-th aggregation, m = ceil(4 u), with an update of age m - 1. All start together, so who is
    ready repeats. Eq. (14) divides the weights of an aggregation by their sum: at aggregation t a device counts
    gamma^(m-1) / sum of gamma^(h-1) over the h that divide t, if m does. Random scheduling draws from all that are
    ready alike; that it draws 30 of them, so that the groups' numbers vary, is left out.
    """
    shares = dict.fromkeys(periods, 0.0)
    for aggregation in range(1, math.lcm(*periods) + 1):
        weights = {m: gamma ** (m - 1) for m in periods if aggregation % m == 0}
        for m, weight in weights.items():
            shares[m] += weight / sum(weights.values())
    return [share / sum(shares.values()) for share in shares.values()]


def tabulate_shares() -> Table:
    """A row for each gamma, with the share of each quarter of the devices and the largest over the smallest."""
    rows = []
    for gamma in GAMMAS:
        shares = compute_shares(gamma)
        cells = [f"{100 * share:.0f}" for share in shares]
        rows.append([f"{gamma:g}", *cells, f"{max(shares) / min(shares):.1f}"])
    columns = [f"{m} period{'s' if m > 1 else ''} (%)" for m in PERIODS]
    return Table(["gamma", *columns, "largest over smallest"], rows)


PAPER = Paper(
    "async", build_async_report, "async_periodic", {PRINTED: "ours"}, CLAIMS, FURTHER, draw=draw_async_figures
)
