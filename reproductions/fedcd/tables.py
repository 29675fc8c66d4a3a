"""The FedCD paper's Table 1 and its claims beside our runs, by size of the runs. Imports no TensorFlow."""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from launch.pages.comparison.seed_statistics import compute_deviation, compute_mean
from launch.runs.columns import EVENTS_FILE, TIMING_FILE
from launch.runs.run_records import RunRecord
from reproductions.engine.collection import Cell, Place, PrintedValue, SeedResults
from reproductions.engine.page import compose_report
from reproductions.engine.paper import Paper
from reproductions.engine.tables import (
    EXPERIMENT,
    SEED,
    Report,
    Section,
    Table,
    describe,
    list_results,
    make_frame,
    select,
    show,
    show_difference,
)
from reproductions.fedcd.claims import CLAIMS, FURTHER, SAME_RATES, WHERE_RUNS_END
from reproductions.fedcd.figure import draw_fedcd_figure
from reproductions.fedcd.measures import (
    AUTHORS,
    AUTHORS_SMALL,
    AXES,
    BASE,
    CIFAR10,
    COMPARED_ROUNDS,
    FEDAVG,
    FEDCD,
    HIERARCHICAL,
    NAMES,
    NUM_ARCHETYPES,
    SIZES,
    SMALL,
    TEXTS,
    choose_runs,
    describe_left_out,
    make_runs,
    measure,
    measure_rounds,
    read_authors_run,
)
from reproductions.fedcd.rivals import RIVALS, tabulate_rivals

LATER_EDITION = "fedcd_annotated.txt"
EDITIONS = {"fedcd.txt": "printed, edition of 8 figures", LATER_EDITION: "printed, edition of 9 figures"}
VARIANTS = {
    name: words for axis in ("bits", "bias", "further", "cause", "cohort") for name, words in AXES[axis].items()
}
TITLES = TEXTS["columns"] | TEXTS["further_columns"]
MAJORITY = "majority class"
# What counts until convergence: two clocks, and what travels. FedCD's is shown over FedAvg's, and some as it is.
RATIOS = {"real_s": "FedCD's time over FedAvg's, real", "virtual_s": "virtual", "megabytes": "bytes"}
COSTS = {"real_s": "s", "megabytes": "MB"}
PER_ROUND = ["mb_per_round", "last_mb_per_round", "s_per_round"]  # measures of which the overhead is
BY_ARCHETYPE = [f"{what}_{i}" for what in ("archetype", "majority") for i in range(max(NUM_ARCHETYPES.values()))]
SHOWN = (*TITLES, *BY_ARCHETYPE, *RATIOS, *PER_ROUND, "spent_until", "is_exact")  # measures that the tables look at
PAIRED = ["preset", "dataset", "setting", SEED]  # what FedCD's run and FedAvg's beside it have in common
# Causes that are one thing more than another cause.
BESIDE_OTHERS = {"steps_anew": "steps", "student_stratified": "student", "student_even": "student"}
LEAST_DEVIATIONS = 2.0
EXPECTED_MAJORITY = 65.0  # of the authors' run: biases are from U(0.6, 0.7), in per cent


def measure_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """The whole ones of runs that count: their places, seeds, rounds, data, variants in words, and every measure."""
    whole = runs[runs.whole]
    bits = whole.run.map(lambda run: f"{run.flags.get('compression_bits', 32)} bits")  # earlier versions know of none
    kept = whole[[EXPERIMENT, SEED, *Place._fields, "rounds", "data"]]
    kept = kept.assign(variant=whole.setting.map(VARIANTS).fillna(bits))
    return kept.merge(make_frame(whole.run, measure, SHOWN), on=[EXPERIMENT, SEED])


def pair(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The runs that have one of the other algorithm beside them, and these, by the same index."""
    own = frame[frame.duplicated(PAIRED, keep=False)].sort_values(PAIRED)
    return own, own.iloc[np.arange(len(own)) ^ 1].set_index(own.index)  # of two neighbours each gets the other


def is_decided(first: pd.DataFrame, second: pd.DataFrame, cost: str) -> pd.Series:
    """Whether the costs of runs and of those beside them say which of both spends less to convergence.

    If one run alone converges, it must do so within the rounds of the other, and for less than these cost.
    """
    decided = first.is_exact & second.is_exact
    for exact, bound in ((first, second), (second, first)):
        decided |= exact.is_exact & (exact.spent_until <= bound.spent_until) & (exact[cost] < bound[cost])
    return decided & ((first.convergence < math.inf) | (second.convergence < math.inf))


def list_findings(frame: pd.DataFrame) -> SeedResults:
    """Each measure by size, cell and seed; costs to convergence and what a round takes beside FedAvg's are of pairs.

    What a run spends that does not converge stands for convergence, which costs more; it is infinite, a tie, where that
    does not decide who spends less.
    """
    own, others = pair(frame)
    ratios = own[PER_ROUND] / others[PER_ROUND].replace(0, math.nan)
    spent = {
        cost: own[cost].where(is_decided(own, others, cost), math.inf).where(own[cost].notna() & others[cost].notna())
        for cost in RATIOS
    }
    paired = [ratios[own.algo == FEDCD].add_suffix("_ratio"), pd.DataFrame(spent)]
    return list_results(frame.drop(columns=[*RATIOS]).join(paired), 0, SIZES)


def list_printed_values(printed: Sequence[Mapping[str, str]]) -> list[PrintedValue]:
    """Table 1 of the later edition as cells; FedAvg "had not converged" when its rounds were over.

    Its times are printed as a ratio, so they stand here in units of FedCD's.
    """
    values = []
    for row in printed:
        if row["edition"] == LATER_EDITION:
            fedcd, fedavg = float(row["fedcd_rounds"]), float(row["fedavg_rounds"])
            numbers = (
                (FEDCD, "convergence", fedcd),
                (FEDCD, "convergence_or_end", fedcd),
                (FEDAVG, "convergence_or_end", fedavg + 1),
                (FEDAVG, f"convergence_{fedavg:.0f}", math.inf),
                (FEDCD, "real_s", 1.0),
                (FEDAVG, "real_s", 1 / float(row["fedcd_to_fedavg_wall_clock"])),
            )
            values += [PrintedValue("1", Cell(row["experiment"], BASE, algo, 0, name), n) for algo, name, n in numbers]
    return values


def tabulate_authors_run() -> Table:
    """One row: what the run that the authors print has by our rules."""
    run, columns = read_authors_run(), TEXTS["authors_columns"]
    measured = measure_rounds(run) | {"majority": EXPECTED_MAJORITY}
    row = [str(len(run.rounds)), *(f"{measured[name]:.2f}" for name in columns), f"{measured['convergence']:.0f}"]
    return Table(["rounds", *columns.values(), "converges at round"], [row])


def tabulate_table_1(printed: Sequence[Mapping[str, str]], frame: pd.DataFrame) -> Table:
    """Printed rows of both editions, then those of a size: rounds by seed, time ratios, and costs by seed."""
    columns = ["archetypes", "source", "seeds", "rounds to convergence, FedCD", "FedAvg", *RATIOS.values()]
    columns += [f"{unit} to convergence, {name}" for unit in COSTS.values() for name in NAMES.values()]
    rows = []
    for partition in COMPARED_ROUNDS:
        for row in printed:
            if row["experiment"] == partition:
                ratio = f"{float(row['fedcd_to_fedavg_wall_clock']):.3f}"
                shown = [EDITIONS[row["edition"]], "", row["fedcd_rounds"], f"> {row['fedavg_rounds']}", ratio]
                rows.append([partition, *shown, *[""] * (len(columns) - 1 - len(shown))])
        runs = select(frame, dataset=partition, setting=BASE)
        by_algo = [runs[runs.algo == algo] for algo in NAMES]
        rounds = [show_each(own.convergence.clip(upper=own.rounds), own.convergence) or "not run" for own in by_algo]
        own, others = (each[each.algo == algo] for algo, each in zip(NAMES, pair(runs), strict=True))
        ratios = [show_ratios(own, others, cost) for cost in RATIOS]
        costs = [show_each(own[cost], own.convergence) for cost in COSTS for own in by_algo]
        rows.append([partition, "ours", ", ".join(map(str, by_algo[0].seed)), *rounds, *ratios, *costs])
    return Table(columns, rows)


def compare_printed(tables: Mapping[str, Table]) -> Table:
    """Table 1 with a column for what is printed, and one for each size that was trained as the authors do."""
    shown = {
        "rounds to convergence, FedCD": "rounds to convergence, FedCD",
        "FedAvg": "rounds to convergence, FedAvg",
        RATIOS["real_s"]: RATIOS["real_s"],
    }
    sizes = {size: tables.get(f"{size}_table_1", Table([], [])).records for size in (AUTHORS, AUTHORS_SMALL)}
    printed = [row for row in next(iter(sizes.values())) if row["source"] == EDITIONS[LATER_EDITION]]
    rows = []
    for partition, column in itertools.product(COMPARED_ROUNDS, shown):
        found = [[row for row in printed if row["archetypes"] == partition]]
        found += [
            [row for row in own if (row["archetypes"], row["source"]) == (partition, "ours")] for own in sizes.values()
        ]
        rows.append([partition, shown[column], *(each[0][column] if each else "" for each in found)])
    return Table(["archetypes", "measure", "printed", *(SIZES[size] for size in sizes)], rows)


def show_each(amounts: pd.Series, reached: pd.Series) -> str:
    """The amount of each seed, "> n" where what it stands for is not reached, which is at infinity; "" for NaN."""
    return ", ".join(
        "" if math.isnan(amount) else f"{'> ' if math.isinf(end) else ''}{amount:.0f}"
        for amount, end in zip(amounts, reached, strict=True)
    )


def show_ratios(fedcd: pd.DataFrame, fedavg: pd.DataFrame, cost: str) -> str:
    """FedCD's costs over FedAvg's: mean and deviation, or one by one where runs end before they converge.

    "< 0.57" is a bound: FedAvg's run ended, after rounds that stand beside it, before it had converged.
    """
    ratios = (fedcd[cost] / fedavg[cost]).dropna()
    fedcd, fedavg = fedcd.loc[ratios.index], fedavg.loc[ratios.index]
    if (fedcd.is_exact & fedavg.is_exact).all():
        return show(ratios, "ratio", absent="")
    texts = []
    for ratio, own, other in zip(ratios, fedcd.itertuples(), fedavg.itertuples(), strict=True):
        if math.isinf(own.convergence) and math.isinf(other.convergence):
            texts.append("neither converges")
        else:
            sign = "" if own.is_exact and other.is_exact else "< " if own.is_exact else "> "
            texts.append(f"{sign}{ratio:.2f}")
    return texts[0] if len(set(texts)) == 1 else ", ".join(texts)


def tabulate_results(frame: pd.DataFrame) -> Table:
    """Of a size a row for each experiment, variant and algorithm, with what was measured after the rounds compared."""
    places = [(partition, BASE, algo) for partition in COMPARED_ROUNDS for algo in NAMES]
    places += [(HIERARCHICAL, variant, FEDCD) for variant in AXES["bits"] | AXES["bias"]]
    # Of what the paper shows nothing there is a row only where it was run.
    further = [(HIERARCHICAL, variant, FEDCD) for variant in AXES["further"]]
    further += [(HIERARCHICAL, bits, FEDAVG) for bits in AXES["bits"]]
    columns = TEXTS["columns"]
    rows = []
    for partition, setting, algo in places + further:
        runs = select(frame, dataset=partition, setting=setting, algo=algo)
        if len(runs):
            cells = {name: show(runs[name], "", "") for name in columns}
            for name, end in {"convergence": runs.rounds, "level": COMPARED_ROUNDS[partition]}.items():
                cells[name] = show_each(runs[name].clip(upper=end), runs[name])
            lengths = ", ".join(runs.rounds.astype(str).unique())
            rows.append([partition, runs.variant.iloc[0], NAMES[algo], str(len(runs)), lengths, *cells.values()])
        elif (partition, setting, algo) in places:
            rows.append([partition, VARIANTS.get(setting, ""), NAMES[algo], "not run", *[""] * (1 + len(columns))])
    return Table(["archetypes", "variant", "algorithm", "seeds", "rounds", *columns.values()], rows)


def tabulate_archetypes(frame: pd.DataFrame) -> Table:
    """Of a size the accuracy of each archetype, by algorithm, and what its devices' majority class gets."""
    most = max(NUM_ARCHETYPES.values())
    rows = []
    for partition, number in NUM_ARCHETYPES.items():
        runs = select(frame, dataset=partition, setting=BASE)
        by_algo = {name: runs[runs.algo == algo] for algo, name in NAMES.items()}
        lines = [(name, "archetype", own) for name, own in by_algo.items()]
        # Runs of a seed have the same split, whatever the algorithm.
        for name, what, own in [*lines, (MAJORITY, "majority", max(by_algo.values(), key=len))]:
            texts = [show(own[f"{what}_{archetype}"], "") for archetype in range(number)]
            rows.append([partition, name, *texts, *[""] * (most - number)])
    return Table(["archetypes", "algorithm", *(f"archetype {i}" for i in range(most))], rows)


def tabulate_majority(frame: pd.DataFrame) -> Table:
    """Accuracy in the last rounds beside that of a device's most frequent class, a row a place."""
    rows = []
    for (size, partition, _, algo), runs in frame.groupby(list(Place._fields)):
        by_seed = runs.set_index(SEED)
        ahead, _, verdict = show_difference(by_seed.mean_of_last / 100, by_seed.majority / 100)
        names = [SIZES[size], partition, runs.variant.iloc[0], NAMES[algo], str(len(runs))]
        rows.append([*names, show(runs.mean_of_last, ""), show(runs.majority, ""), ahead, verdict])
    columns = ["runs", "archetypes", "variant", "algorithm", "seeds", "last 10 rounds", MAJORITY, "ahead", "verdict"]
    return Table(columns, rows)


def tabulate_causes(frame: pd.DataFrame, axis: str, algo: str) -> Table:
    """What moves swings: runs of the small size with one thing changed, below those as they are; no rows without any.

    Of FedCD (`cause`) with one thing of the authors' code, exploratory, a seed or two each; of FedAvg (`cohort`) with
    other cohorts or another normalization.
    """
    causes, columns = AXES[axis], TEXTS[f"{axis}_columns"]
    small = select(frame, preset=SMALL, dataset=HIERARCHICAL, algo=algo).set_index(SEED)
    lines = [("as it is", BASE, None)]
    for cause, text in causes.items():
        lines.append((text, cause, BASE))
        if (other := BESIDE_OTHERS.get(cause)) in set(small.setting):
            lines.append((f"{text}, beside: {causes[other]}", cause, other))
    rows = []
    for text, *settings in lines:
        runs, base, usual = (small[small.setting == setting] for setting in (*settings, BASE))
        if len(runs):
            cells = [compare_with_base(*(each[name].dropna() for each in (runs, base, usual))) for name in columns]
            rows.append([text, ", ".join(map(str, runs.index)), *cells, runs.data.iloc[0]])
    titles = ["what differs", "seeds", *(TITLES[name] for name in columns), "data"]
    return Table(titles, rows if small.setting.isin([*causes]).any() else [])


def compare_with_base(values: pd.Series, base: pd.Series, usual: pd.Series) -> str:
    """A measure of a cause's runs, its mean difference from the base's runs of the same seeds, and whether it counts.

    A star marks a difference of more than twice the sample deviation that runs have over their seeds.

    Args:
      values: by seed, infinite where a run never gets there; none where the runs do not have it.
      base: the same without the cause.
      usual: whose deviation a difference is held against, of two seeds or more to count.
    """
    if values.empty:
        return ""
    text, never = f"{compute_mean(values):.2f}", sum(map(math.isinf, values))
    if never:
        text = "never" if never == len(values) else f"never in {never} of {len(values)}"
    values, base = values.align(base, join="inner")
    differences = values - base
    if differences.empty or not np.isfinite([*differences, *usual]).all():
        return text
    mean, deviation = compute_mean(differences), compute_deviation(usual)
    counts = deviation is not None and abs(mean) > LEAST_DEVIATIONS * deviation
    return f"{text} ({mean:+.2f}{'*' if counts else ''})"


def build_fedcd_report(paper: Paper, runs: Sequence[RunRecord]) -> Report:
    """The claims for all sizes of the runs, and for each size Table 1, results, and accuracies by archetype."""
    printed, found = paper.read_printed_rows(), make_runs(run for run in runs if run.experiment not in RIVALS)
    frame = measure_runs(choose_runs(found))
    sections = describe("fedcd", {"authors_run": tabulate_authors_run()})
    # Rows and rows of "not run" say no more than the verdicts.
    for size in [size for size in SIZES if size in set(frame.preset)] or [SMALL]:
        own = select(frame, preset=size)
        tables = {
            "table_1": tabulate_table_1(printed, own),
            "results": tabulate_results(own),
            "archetypes": tabulate_archetypes(own),
        }
        for name, table in tables.items():
            sections[f"{size}_{name}"] = Section(f"{TEXTS[name]['heading']}, {SIZES[size]}", table)
    of_all = {
        "majority": tabulate_majority(frame),
        "causes": tabulate_causes(frame, "cause", FEDCD),
        "cohorts": tabulate_causes(frame, "cohort", FEDAVG),
        "rivals": tabulate_rivals(runs),
    }
    sections |= describe("fedcd", {name: table for name, table in of_all.items() if table.rows})
    words = {"same_rates": SAME_RATES, "where_runs_end": WHERE_RUNS_END}
    counted = found.run[found.data == found.counted].tolist()
    counted += [run for run in runs if run.experiment in RIVALS and run.dataset == CIFAR10]
    report = compose_report(paper, sections, counted, list_findings(frame), list_printed_values(printed), **words)
    return report._replace(left_out=describe_left_out(found))


PAPER = Paper(
    "fedcd",
    build_fedcd_report,
    presets=SIZES,
    claims=CLAIMS,
    further=FURTHER,
    draw=draw_fedcd_figure,
    beside=compare_printed,
    further_metrics=".*_models|archetype_.*|client_accuracy_change|score_deviation|learning_rate_mean",
    kept_files=(TIMING_FILE, EVENTS_FILE),
)
