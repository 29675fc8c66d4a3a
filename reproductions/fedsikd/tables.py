"""Tables V to IX of the FedSiKD paper beside our runs, and tables that it does not have. Imports no TensorFlow."""

import functools
import itertools
from collections.abc import Mapping, Sequence

from launch.comparison.seed_statistics import compare_by_seed, compute_deviation, compute_mean
from launch.runs.columns import CLIENT_TEST_ACCURACY, TEST_ACCURACY, TOTAL_DRIFT, WITHIN_CLUSTER_DRIFT
from launch.runs.run_records import RunRecord, read_summary
from reproductions.engine.claims import Claim
from reproductions.engine.collection import (
    PERCENT_METRICS,
    PRINTED,
    TUNED,
    Cell,
    Place,
    PrintedValue,
    SeedResults,
    group_runs,
)
from reproductions.engine.judge import decide_further
from reproductions.engine.markdown import Report, Table
from reproductions.engine.paper import Paper
from reproductions.engine.report import compose_report, format_p_value
from reproductions.engine.tables import BySeed, describe, show
from reproductions.fedsikd.claims import CLAIMS, FURTHER, NOISE, OWN
from reproductions.fedsikd.figure import draw_fedsikd_figure
from reproductions.fedsikd.measures import (
    ALPHAS,
    AXES,
    BUDGET_ROUNDS,
    COMPARED_ALPHAS,
    CONTROL,
    EPSILONS,
    FEDAVG,
    FEDSIKD,
    FL_HC,
    MNIST,
    NAMES,
    NO_NOISE,
    PRIVACY,
    RunsByPlace,
    find_majorities,
    find_place,
    list_printed_values,
    make_cell,
    measure_by_seed,
    measure_printed,
    share_baselines,
)

PRESETS = AXES["preset"]
COMPARED_ON_OWN = {**NAMES, CONTROL: AXES["further"][CONTROL]}


def build_fedsikd_report(paper: Paper, runs: Sequence[RunRecord]) -> Report:
    """The printed tables with our numbers, further tables, and the claims."""
    by_place = group_runs(runs, find_place)
    printed = list_printed_values(paper.read_printed_rows())
    own = measure_by_seed(by_place, printed)
    tables = {
        "tables": tabulate_values(printed, own),
        "clusters": tabulate_clusters(by_place, own),
        "own_splits": tabulate_own_splits(by_place, OWN, own),
        "tuned": tabulate_tuned(by_place, own[TUNED]),
        "privacy": tabulate_privacy(NOISE, own[PRIVACY]),
    }
    sections = describe("fedsikd", {name: table for name, table in tables.items() if table.rows})
    judged = measure_by_seed(share_baselines(by_place), printed)
    judged = {preset: judged[preset] for preset in paper.presets}
    return compose_report(paper, sections, runs, judged, [*printed, *measure_printed(printed)])


def tabulate_values(printed: Sequence[PrintedValue], results: SeedResults) -> Table:
    """A row a printed value, those of HAR once for each input; empty where not run."""
    columns = ["table", "dataset", "dirichlet_alpha", "algo", "round", "metric", "printed"]
    sources = ["ours" if preset == PRINTED else preset for preset in PRESETS]
    columns += [f"{source}_{part}" for source in sources for part in ("mean", "deviation", "seeds")]
    columns += [f"{source}_own_splits_{part}" for source in sources for part in ("mean", "deviation")]
    rows = []
    for table, cell, value in printed:
        row = [table, cell.dataset, cell.setting, cell.algo, str(cell.round_num), cell.metric, f"{value:g}"]
        for preset in PRESETS:
            row += _spell_measured(results[preset].get(cell))
        own = cell._replace(metric=CLIENT_TEST_ACCURACY) if cell.metric == TEST_ACCURACY else None
        for preset in PRESETS:
            row += _spell_measured(results[preset].get(own))[:2]
        rows.append(row)
    return Table(columns, rows)


def _spell_measured(by_seed: BySeed | None) -> list[str]:
    """Mean, deviation and how many seeds; empty where not run."""
    if not by_seed:
        return ["", "", ""]
    numbers = (compute_mean(by_seed.values()), compute_deviation(by_seed.values()), len(by_seed))
    return ["" if number is None else f"{number:.8g}" for number in numbers]


def tabulate_clusters(by_place: RunsByPlace, results: SeedResults) -> Table:
    """FL+HC's clusters, and its clients' own accuracy beside FedAvg's."""
    columns = ["runs", "data", "alpha", "sizes", "FL+HC, test set", "FL+HC, clients", "FedAvg, test set"]
    rows = []
    for place, runs in by_place.items():
        sizes = {run.flags["seed"]: read_summary(run).get(FL_HC, {}).get("cluster_sizes") for run in runs}
        if place.algo == FL_HC and any(sizes.values()):
            cells = [
                place._replace(algo=algo).make_cell(metric, BUDGET_ROUNDS)
                for algo in (FL_HC, FEDAVG)
                for metric in (TEST_ACCURACY, CLIENT_TEST_ACCURACY)
            ]
            names = [PRESETS[place.preset], AXES["data"][place.dataset], place.setting, _format_sizes(sizes)]
            rows.append([*names, *(show(results[place.preset].get(cell, {})) for cell in cells)])
    return Table([*columns, "FedAvg, clients"], rows)


def tabulate_own_splits(by_place: RunsByPlace, claims: Sequence[Claim], results: SeedResults) -> Table:
    """Every algorithm on the common test set and on the clients' own splits, by how much FedSiKD is ahead on each.

    Args:
      by_place: the runs.
      claims: the comparisons on the clients' own splits, a family of tuned runs.
      results: every measure.
    """
    majorities, decided = find_majorities(by_place), decide_further(claims, results[TUNED])
    p_values = {each.claim.conditions[0].cells[1]: each.p_value for each in decided}  # by FedSiKD's rival
    columns = ["runs", "data", "alpha", "algorithm", "seeds", "test set", "clients' own"]
    columns += ["FedSiKD ahead, test set", "FedSiKD ahead, clients' own", "p (Holm)"]
    rows = []
    for preset, (dataset, data), alpha in itertools.product((PRINTED, TUNED), AXES["data"].items(), ALPHAS):
        place = Place(preset, dataset, alpha, FEDSIKD)
        mine = [_find_after_budget(results, place, metric) for metric in (TEST_ACCURACY, CLIENT_TEST_ACCURACY)]
        lines = {name: place._replace(algo=algo) for algo, name in COMPARED_ON_OWN.items()}
        for name, other in lines.items() if mine[1] else ():
            theirs = [_find_after_budget(results, other, metric) for metric in (TEST_ACCURACY, CLIENT_TEST_ACCURACY)]
            if theirs[1] and (preset == TUNED or other.algo != CONTROL):
                leads = ["", ""] if other == place else map(_show_lead, (TEST_ACCURACY,) * 2, mine, theirs)
                p_value = (
                    p_values.get(other.make_cell(CLIENT_TEST_ACCURACY, BUDGET_ROUNDS)) if preset == TUNED else None
                )
                cells = [*map(show, theirs), *leads, format_p_value(p_value)]
                rows.append([PRESETS[preset], data, alpha, name, _count_seeds(theirs[1]), *cells])
        usual = {seed: value for seed, value in majorities.get((dataset, alpha), {}).items() if seed in mine[1]}
        if usual:
            cells = ["", show(usual), "", _show_lead(TEST_ACCURACY, mine[1], usual), ""]
            rows.append([PRESETS[preset], data, alpha, "majority class", _count_seeds(usual), *cells])
    return Table(columns, rows)


def _find_after_budget(results: SeedResults, place: Place, metric: str) -> BySeed:
    return results[place.preset].get(place.make_cell(metric, BUDGET_ROUNDS), {})


def _format_sizes(sizes: Mapping[int, Sequence[int] | None]) -> str:
    """The sizes of each seed, seeds with the same together: "37, 3 x 1 (seeds 0, 2); 40 (seed 1)"."""
    seeds: dict[str, list[str]] = {}
    for seed, each in sizes.items():
        if each:
            counts = {size: each.count(size) for size in sorted(each, reverse=True)}
            text = ", ".join(str(size) if count == 1 else f"{count} x {size}" for size, count in counts.items())
            seeds.setdefault(text, []).append(str(seed))
    return "; ".join(
        f"{text} (seed{'s' if len(which) > 1 else ''} {', '.join(which)})" for text, which in seeds.items()
    )


def tabulate_tuned(by_place: RunsByPlace, values: Mapping[Cell, BySeed]) -> Table:
    """Tuned against tuned, with control and ablations, at equal rounds and at equal bytes."""
    columns = ["algorithm", "alpha", "seeds", f"round {BUDGET_ROUNDS} (%)", "FedSiKD ahead"]
    columns += ["equal bytes (%)", "FedSiKD ahead", "clients' own (%)", "FedSiKD ahead"]
    columns += ["MB a round", "seconds a round"]
    rows = []
    for alpha, (algo, name) in itertools.product(COMPARED_ALPHAS, (NAMES | AXES["further"]).items()):
        found = functools.partial(_find, values, alpha)
        if not (accuracies := found(TEST_ACCURACY, algo)):
            continue
        row = [name, alpha, _count_seeds(accuracies)]
        for metric in (TEST_ACCURACY, "equal_bytes_accuracy", CLIENT_TEST_ACCURACY):
            lead = "" if algo == FEDSIKD else _show_lead(metric, found(metric, FEDSIKD), found(metric, algo))
            row += [show(found(metric, algo), metric, absent=""), lead]
        summaries = [read_summary(run) for run in by_place[Place(TUNED, MNIST, alpha, algo)]]
        known = [each["seconds_per_round"] for each in summaries if "seconds_per_round" in each]
        row.append(show(found("megabytes_a_round", algo), "megabytes_a_round", absent=""))
        rows.append([*row, f"{min(known):.1f}" if known else ""])
    return Table(columns, rows)


def _find(values: Mapping[Cell, BySeed], alpha: str, metric: str, algo: str) -> BySeed:
    return values.get(make_cell(MNIST, alpha, metric, algo), {})


def _count_seeds(by_seed: BySeed) -> str:
    """How many seeds there are, and which: "3 (10 to 12)"."""
    seeds = sorted(by_seed)
    is_row = len(seeds) > 1 and seeds == list(range(seeds[0], seeds[-1] + 1))
    return f"{len(seeds)} ({f'{seeds[0]} to {seeds[-1]}' if is_row else ', '.join(map(str, seeds))})"


def _show_lead(metric: str, mine: BySeed, theirs: BySeed) -> str:
    """Mine less theirs in pairs of a seed, in points: mean and 95 % interval; "" without any pair."""
    scale = 1 if metric in PERCENT_METRICS else 100
    shares = ({seed: value / scale for seed, value in each.items()} for each in (mine, theirs))
    lead = compare_by_seed(*shares)
    return lead.format() if lead.count else ""


def tabulate_privacy(claims: Sequence[Claim], values: Mapping[Cell, BySeed]) -> Table:
    """Accuracy by statistics and epsilon, and by how much the same runs without noise are ahead."""
    decided = decide_further(claims, values)
    p_values = {each.claim.conditions[0].cells[1].algo: each.p_value for each in decided}  # by the one with noise
    rows = []
    for kind, epsilon in itertools.product(AXES["statistics"], EPSILONS):
        noisy, without = (_find(values, "0.1", TEST_ACCURACY, f"{kind}_{each}") for each in (epsilon, NO_NOISE))
        if noisy:
            lead = "" if epsilon == NO_NOISE else _show_lead(TEST_ACCURACY, without, noisy)
            shown = format_p_value(p_values.get(f"{kind}_{epsilon}"))
            rows.append([AXES["statistics"][kind], epsilon, _count_seeds(noisy), show(noisy), lead, shown])
    columns = ["statistics", "epsilon", "seeds", f"round {BUDGET_ROUNDS} (%)", "without noise ahead", "p (Holm)"]
    return Table(columns, rows)


PAPER = Paper(
    "fedsikd",
    build_fedsikd_report,
    presets=PRESETS,
    claims=CLAIMS,
    further=FURTHER,
    further_presets=(TUNED,),
    draw=draw_fedsikd_figure,
    further_metrics=f"{WITHIN_CLUSTER_DRIFT}|{TOTAL_DRIFT}|num_clusters",
)
