"""Tables that the FedSiKD paper does not have: FL+HC's clusters, tuned against tuned, accuracy by epsilon."""

import itertools
from collections.abc import Iterable, Mapping, Sequence

from launch.papers.engine.claim_rows import load_claims
from launch.papers.engine.collection import (
    TUNED,
    Cell,
    Place,
    Results,
    SeedResults,
    summarize,
)
from launch.papers.engine.conditions import differs
from launch.papers.engine.intervals import LEAST_SEEDS, estimate_mean, is_constant
from launch.papers.engine.judge import ERROR_RATE, decide_further
from launch.papers.engine.markdown import Section, Table, format_measured, format_seeds, format_table
from launch.papers.engine.paper import FOLDER
from launch.papers.engine.verdicts import format_p_value
from launch.papers.fedsikd.measures import (
    ABLATIONS,
    BUDGET_ROUNDS,
    COMPARED_ALPHAS,
    CONTROL,
    DATA_NAMES,
    EPSILONS,
    EQUAL_BYTES_ACCURACY,
    FEDAVG,
    FEDSIKD,
    FEDSIKD_PRESETS,
    FL_HC,
    MEGABYTES_A_ROUND,
    MNIST,
    NAMES,
    NO_NOISE,
    PRIVACY,
    STATISTICS,
    make_cell,
    name_private,
)
from launch.runs.columns import CLIENT_TEST_ACCURACY, TEST_ACCURACY
from launch.runs.run_records import RunRecord, read_summary

TUNED_ROWS = {
    **NAMES,
    CONTROL: "control",
    **{algo: f"FedSiKD, {name}" for algo, name in ABLATIONS.items()},
}
ON_CLUSTERS = (
    f"Accuracy (%) after round {BUDGET_ROUNDS}. *Sizes* of FL+HC's clusters, by seed: `3 x 1` are three of one "
    "client. *Test set*: the common one. *Clients*: each with the model that it ends up with, on its own test split."
)
ON_TUNED = (
    "MNIST. *Equal bytes*: accuracy after the last round that fits into what FedSiKD moves in five rounds of the same "
    "seed, or exceeds it by 1 % at most; a run that is too short to spend as much has no number. *FedSiKD ahead*: "
    "FedSiKD less the other, in pairs of the same seed, in points, with the 95 % interval of the mean. *Control*: "
    "RandomCluster with every setting of tuned FedSiKD, sizes of the clusters included, so that only their members "
    "differ. *MB*: megabytes down and up, of all clients. *Seconds*: the least over the seeds, since the machine had "
    "other work to do.\n\n"
    "Each algorithm was tuned with eight trials on two seeds. FedAvg's grid has 18 points, FL+HC's 270, FedSiKD's and "
    "RandomCluster's 6,912: equal numbers of trials search FedAvg's more closely. FL+HC's trials at alpha 0.1 were "
    "drawn a second time, since the first eight had a single number of epochs; both draws are kept in "
    "docs/results/tuning/.\n\n"
    "At alpha 0.1, FedSiKD with w = 1 is tuned FedAvg: no teacher, the same epochs and rate, clients by their "
    "examples. The two differ by rounding alone, so that FedSiKD's lead over FedAvg, over ten seeds, says more of what "
    "the teacher adds. Both stand in the family of comparisons, as was planned; so do RandomCluster at equal rounds "
    "and at equal bytes, which are one comparison, since it moves as much as FedSiKD."
)
ON_PRIVACY = (
    f"FedSiKD on MNIST, alpha 0.1, test accuracy (%) after round {BUDGET_ROUNDS}, by the epsilon that is spent on what "
    "the clients release of their data: statistics *over all values* (scalar) or *per feature*, and sizes. Leaders and "
    "averages go by the noisy sizes, which are clipped at 1; averages by examples, so that sizes matter, which they do "
    "not in *ours*. How large the noise on a size is stands in the flagfiles. *Without noise ahead*: the same "
    "statistics and weights without noise, in pairs of the same seed, in points, with the 95 % interval of the mean; "
    f"the p-values of the {len(STATISTICS) * (len(EPSILONS) - 1)} comparisons are corrected by Holm."
)


def tabulate_clusters(by_place: Mapping[Place, Sequence[RunRecord]], results: Results) -> Section:
    """FL+HC's clusters, and its clients' own accuracy beside FedAvg's."""
    columns = ["runs", "data", "alpha", "sizes", "FL+HC, test set", "FL+HC, clients", "FedAvg, test set"]
    columns += ["FedAvg, clients"]
    rows = []
    for place, runs in by_place.items():
        sizes = {run.flags["seed"]: read_summary(run).get(FL_HC, {}).get("cluster_sizes") for run in runs}
        if place.algo != FL_HC or not any(sizes.values()):
            continue
        accuracies = [
            results[place.preset].get(place._replace(algo=algo).make_cell(metric, BUDGET_ROUNDS))
            for algo in (FL_HC, FEDAVG)
            for metric in (TEST_ACCURACY, CLIENT_TEST_ACCURACY)
        ]
        shown = [format_measured(TEST_ACCURACY, measured) for measured in accuracies]
        source, data = FEDSIKD_PRESETS[place.preset], DATA_NAMES[place.dataset]
        rows.append([source, data, place.setting, _format_sizes(sizes), *shown])
    table = Table(columns, rows)
    return Section("FL+HC's clusters", table, f"{ON_CLUSTERS}\n\n{format_table(table)}")


def _format_sizes(sizes: Mapping[int, Sequence[int] | None]) -> str:
    """The sizes of each seed, seeds with the same together: "37, 3 x 1 (seeds 0, 2); 40 (seed 1)"."""
    seeds: dict[str, list[str]] = {}
    for seed, each in sizes.items():
        if each:
            seeds.setdefault(_shorten(sorted(each, reverse=True)), []).append(str(seed))
    return "; ".join(
        f"{text} (seed{'s' if len(which) > 1 else ''} {', '.join(which)})" for text, which in seeds.items()
    )


def _shorten(sizes: Sequence[int]) -> str:
    counts = {size: sizes.count(size) for size in dict.fromkeys(sizes)}
    return ", ".join(str(size) if count == 1 else f"{count} x {size}" for size, count in counts.items())


def tabulate_tuned(by_place: Mapping[Place, Sequence[RunRecord]], seed_results: SeedResults) -> Section:
    """Tuned against tuned, with control and ablations, at equal rounds and at equal bytes."""
    columns = ["algorithm", "alpha", "seeds", f"round {BUDGET_ROUNDS} (%)", "FedSiKD ahead"]
    columns += ["equal bytes (%)", "FedSiKD ahead", "MB a round", "seconds a round"]
    rows, values = [], seed_results[TUNED]
    for alpha in COMPARED_ALPHAS:
        at_five = make_cell(MNIST, alpha)
        for algo, name in TUNED_ROWS.items():
            cell = at_five._replace(algo=algo)
            if cell not in values:
                continue
            row = [name, alpha, _count_seeds(sorted(values[cell]))]
            for metric in (TEST_ACCURACY, EQUAL_BYTES_ACCURACY):
                mine, theirs = at_five._replace(metric=metric), cell._replace(metric=metric)
                row += [_show(metric, values.get(theirs)), "" if algo == FEDSIKD else _show_lead(mine, theirs, values)]
            runs = by_place[Place(TUNED, MNIST, alpha, algo)]
            seconds = [read_summary(run).get("seconds_per_round") for run in runs]
            moved = values.get(cell._replace(metric=MEGABYTES_A_ROUND))
            rows.append([*row, _show(MEGABYTES_A_ROUND, moved), _show_least(seconds)])
    table = Table(columns, rows)
    return Section("Tuned against tuned", table, f"{ON_TUNED}\n\n{format_table(table)}")


def _count_seeds(seeds: Sequence[int]) -> str:
    """How many seeds there are, and which: "3 (10 to 12)"."""
    return f"{len(seeds)} ({format_seeds(seeds)})"


def _show(metric: str, by_seed: Mapping[int, float] | None) -> str:
    return format_measured(metric, summarize(list(by_seed.values())) if by_seed else None, absent="")


def _show_lead(mine: Cell, theirs: Cell, values: Mapping[Cell, Mapping[int, float]]) -> str:
    condition = differs(mine, theirs, "")
    leads = [condition.factor * lead for lead in condition.compute_by_seed(lambda cell: values.get(cell, {})).values()]
    if not leads:
        return ""
    mean = f"{summarize(leads).mean:+.2f}"
    if len(leads) < LEAST_SEEDS or is_constant(leads):
        return f"{mean} (n = {len(leads)})"
    low, high = estimate_mean(leads, 1 - ERROR_RATE)
    return f"{mean} [{low:+.2f}, {high:+.2f}]"


def _show_least(numbers: Iterable[float | None]) -> str:
    known = [number for number in numbers if number is not None]
    return f"{min(known):.1f}" if known else ""


def tabulate_privacy(seed_results: SeedResults) -> Section:
    """Accuracy by statistics and epsilon, and by how much the same runs without noise are ahead."""
    values = seed_results[PRIVACY]
    decided = decide_further(load_claims(FOLDER / "fedsikd" / "claims.toml")["noise"], values)
    p_values = {each.claim.conditions[0].cells[1]: each.p_value for each in decided}  # by the cell with noise
    rows = []
    for kind, epsilon in itertools.product(STATISTICS, EPSILONS):
        cell, without = (make_cell(MNIST, "0.1", algo=name_private(kind, each)) for each in (epsilon, NO_NOISE))
        if cell in values:
            lead = "" if cell == without else _show_lead(without, cell, values)
            p_value = p_values.get(cell)
            row = [
                kind.replace("_", " "),
                epsilon,
                _count_seeds(sorted(values[cell])),
                _show(TEST_ACCURACY, values[cell]),
            ]
            rows.append([*row, lead, "" if p_value is None else format_p_value(p_value)])
    columns = ["statistics", "epsilon", "seeds", f"round {BUDGET_ROUNDS} (%)", "without noise ahead", "p (Holm)"]
    table = Table(columns, rows)
    return Section("Accuracy by epsilon", table, f"{ON_PRIVACY}\n\n{format_table(table)}")
