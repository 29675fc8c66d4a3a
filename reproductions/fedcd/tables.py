"""The FedCD paper's Table 1 and its claims beside our runs, by size of the runs. Imports no TensorFlow."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from launch.runs.columns import EVENTS_FILE, TIMING_FILE
from launch.runs.run_records import RunRecord
from reproductions.engine.collection import Place, PrintedValue, SeedResults
from reproductions.engine.markdown import Report, Section, Table
from reproductions.engine.paper import Paper
from reproductions.engine.report import compose_report
from reproductions.engine.tables import BySeed, collect, describe, locate, show, show_difference
from reproductions.fedcd.authors_run import tabulate_authors_run
from reproductions.fedcd.causes import tabulate_causes
from reproductions.fedcd.claims import CLAIMS, FURTHER, SAME_RATES, WHERE_RUNS_END
from reproductions.fedcd.costs import CLOCKS, compare_costs, compute_ratios, format_costs, format_ratios, pair_runs
from reproductions.fedcd.figure import draw_fedcd_figure
from reproductions.fedcd.measures import (
    AXES,
    BASE,
    COMPARED_ROUNDS,
    FEDAVG,
    FEDCD,
    HIERARCHICAL,
    NAMES,
    NUM_ARCHETYPES,
    SIZES,
    TEXTS,
    RunsByPlace,
    describe_left_out,
    find_place,
    group_whole_runs,
    keep_one_data_set,
    make_cell,
    measure,
)

LATER_EDITION = "fedcd_annotated.txt"
EDITIONS = {"fedcd.txt": "printed, edition of 8 figures", LATER_EDITION: "printed, edition of 9 figures"}
VARIANTS = AXES["bits"] | AXES["bias"] | AXES["further"]
ROUNDS = ("convergence", "level")  # measures that are shown by seed
MAJORITY = "majority class"
RATIOS = dict(zip(CLOCKS, ("FedCD's time over FedAvg's, real", "virtual", "bytes"), strict=True))
COSTS = {"real_s": "s", "megabytes": "MB"}


class Findings(NamedTuple):
    """The whole runs by place, one a seed, and each measure by size, cell and seed."""

    runs: RunsByPlace
    results: SeedResults

    def find(self, place: Place, metric: str) -> BySeed:
        """A measure of a place's runs."""
        return self.results[place.preset].get(place.make_cell(metric, 0), {})


def compute_findings(runs: Iterable[RunRecord]) -> Findings:
    """Measures the runs; those of other data, that ended early or were not evaluated every round do not count."""
    by_place = group_whole_runs(runs)
    values = collect((run for members in by_place.values() for run in members), measure)
    for pair in (pair for place in by_place if place.algo == FEDCD for pair in pair_runs(by_place, place)):
        for run, clock, amount in compare_costs(pair):
            values[run.experiment, clock][run.flags["seed"]] = amount
        for name, ratio in compute_ratios(pair, lambda run, name: values[run.experiment, name].get(run.flags["seed"])):
            values[pair[0].experiment, name][pair[0].flags["seed"]] = ratio
    return Findings(by_place, locate(values, find_place, 0, SIZES))


def list_printed_values(rows: Iterable[Mapping[str, str]]) -> list[PrintedValue]:
    """Table 1 of the later edition as cells; FedAvg "had not converged" when its rounds were over.

    Its times are printed as a ratio, so they stand here in units of FedCD's.
    """
    values = []
    for row in rows:
        if row["edition"] == LATER_EDITION:
            numbers = {
                (FEDCD, "convergence"): float(row["fedcd_rounds"]),
                (FEDCD, "convergence_or_end"): float(row["fedcd_rounds"]),
                (FEDAVG, "convergence_or_end"): float(row["fedavg_rounds"]) + 1,
                (FEDAVG, f"convergence_{row['fedavg_rounds']}"): math.inf,
                (FEDCD, "real_s"): 1.0,
                (FEDAVG, "real_s"): 1 / float(row["fedcd_to_fedavg_wall_clock"]),
            }
            cells = {make_cell(row["experiment"], *name): value for name, value in numbers.items()}
            values += [PrintedValue("1", cell, value) for cell, value in cells.items()]
    return values


def tabulate_table_1(printed: Sequence[Mapping[str, str]], findings: Findings, size: str) -> Table:
    """Printed rows of both editions, then ours: rounds by seed, and time ratios."""
    columns = ["archetypes", "source", "seeds", "rounds to convergence, FedCD", "FedAvg", *RATIOS.values()]
    columns += [f"{unit} to convergence, {name}" for unit in COSTS.values() for name in NAMES.values()]
    rows = []
    for partition in COMPARED_ROUNDS:
        for row in printed:
            if row["experiment"] == partition:
                ratio = f"{float(row['fedcd_to_fedavg_wall_clock']):.3f}"
                shown = [EDITIONS[row["edition"]], "", row["fedcd_rounds"], f"> {row['fedavg_rounds']}", ratio]
                rows.append([partition, *shown, *[""] * (len(columns) - 1 - len(shown))])
        places = [Place(size, partition, BASE, algo) for algo in NAMES]
        seeds = ", ".join(str(run.flags["seed"]) for run in findings.runs.get(places[0], ()))
        rounds = [format_rounds(findings, place, "convergence") or "not run" for place in places]
        pairs = pair_runs(findings.runs, places[0])
        ratios = [format_ratios(pairs, clock) for clock in CLOCKS]
        costs = [format_costs(findings.runs.get(place, ()), clock) for clock in COSTS for place in places]
        rows.append([partition, "ours", seeds, *rounds, *ratios, *costs])
    return Table(columns, rows)


def format_rounds(findings: Findings, place: Place, metric: str) -> str:
    """Rounds until something is reached, of each seed; "> n" if it is not within the n rounds that are looked at."""
    by_seed = findings.find(place, metric)
    texts = []
    for run in findings.runs.get(place, ()):
        reached = by_seed[run.flags["seed"]]
        length = COMPARED_ROUNDS[place.dataset] if metric == "level" else len(run.rounds)
        texts.append(f"{reached:.0f}" if math.isfinite(reached) else f"> {length}")
    return ", ".join(texts)


def tabulate_results(findings: Findings, size: str) -> Table:
    """A row for each experiment, variant and algorithm, with what was measured after the rounds compared."""
    places = [Place(size, partition, BASE, algo) for partition in COMPARED_ROUNDS for algo in NAMES]
    places += [Place(size, HIERARCHICAL, variant, FEDCD) for variant in AXES["bits"] | AXES["bias"]]
    # Of what the paper shows nothing there is a row only where it was run.
    further = [Place(size, HIERARCHICAL, variant, FEDCD) for variant in AXES["further"]]
    further += [Place(size, HIERARCHICAL, bits, FEDAVG) for bits in AXES["bits"]]
    places += [place for place in further if place in findings.runs]
    columns = TEXTS["columns"]
    rows = []
    for place in places:
        runs = findings.runs.get(place, ())
        variant = VARIANTS.get(place.setting) or name_bits(runs, place.algo)
        row = [place.dataset, variant, NAMES[place.algo]]
        if runs:
            row += [str(len(runs)), ", ".join(dict.fromkeys(str(len(run.rounds)) for run in runs))]
            row += [
                format_rounds(findings, place, metric)
                if metric in ROUNDS
                else show(findings.find(place, metric), "", "")
                for metric in columns
            ]
        else:
            row += ["not run", *[""] * (1 + len(columns))]
        rows.append(row)
    return Table(["archetypes", "variant", "algorithm", "seeds", "rounds", *columns.values()], rows)


def name_bits(runs: Sequence[RunRecord], algo: str) -> str:
    """With how many bits models travel in these runs; "" without any. Runs of earlier versions know of no bits."""
    numbers = {run.flags.get("compression_bits", 32) for run in runs}
    return ", ".join(f"{number} bits" for number in sorted(numbers))


def tabulate_archetypes(findings: Findings, size: str) -> Table:
    """Accuracy of each archetype: a row an experiment and algorithm, and what its devices' majority class gets."""
    most = max(NUM_ARCHETYPES.values())
    rows = []
    for partition, number in NUM_ARCHETYPES.items():
        places = {algo: Place(size, partition, BASE, algo) for algo in NAMES}
        lines = [(NAMES[algo], place, "archetype") for algo, place in places.items()]
        # Runs of a seed have the same split, whatever the algorithm.
        lines.append(
            (MAJORITY, max(places.values(), key=lambda place: len(findings.find(place, "majority"))), "majority")
        )
        for name, place, metric in lines:
            texts = [show(findings.find(place, f"{metric}_{archetype}"), "") for archetype in range(number)]
            rows.append([partition, name, *texts, *[""] * (most - number)])
    return Table(["archetypes", "algorithm", *(f"archetype {i}" for i in range(most))], rows)


def tabulate_majority(findings: Findings) -> Table:
    """Accuracy in the last rounds beside that of a device's most frequent class, a row a place."""
    rows = []
    for place, runs in findings.runs.items():
        last, majority = (findings.find(place, metric) for metric in ("mean_of_last", "majority"))
        shares = ({seed: value / 100 for seed, value in by_seed.items()} for by_seed in (last, majority))
        ahead, _, verdict = show_difference(*shares)
        variant = (VARIANTS | AXES["cause"] | AXES["cohort"]).get(place.setting) or name_bits(runs, place.algo)
        names = [SIZES[place.preset], place.dataset, variant, NAMES[place.algo], str(len(last))]
        rows.append([*names, show(last, ""), show(majority, ""), ahead, verdict])
    columns = ["runs", "archetypes", "variant", "algorithm", "seeds", "last 10 rounds", MAJORITY, "ahead", "verdict"]
    return Table(columns, rows)


def build_fedcd_report(paper: Paper, runs: Sequence[RunRecord]) -> Report:
    """The claims for all sizes of the runs, and for each size Table 1, results, and accuracies by archetype."""
    printed, findings = paper.read_printed_rows(), compute_findings(runs)
    sections = describe("fedcd", {"authors_run": tabulate_authors_run()})
    # Rows and rows of "not run" say no more than the verdicts.
    for size in [size for size in SIZES if any(place.preset == size for place in findings.runs)] or list(SIZES)[:1]:
        tables = {
            "table_1": tabulate_table_1(printed, findings, size),
            "results": tabulate_results(findings, size),
            "archetypes": tabulate_archetypes(findings, size),
        }
        sections |= {
            f"{size}_{name}": Section(f"{TEXTS[name]['heading']}, {SIZES[size]}", table)
            for name, table in tables.items()
        }
    if findings.runs:
        sections |= describe("fedcd", {"majority": tabulate_majority(findings)})
    if (causes := tabulate_causes(findings.runs, findings.find)).rows:
        sections |= describe("fedcd", {"causes": causes})
    if (cohorts := tabulate_causes(findings.runs, findings.find, FEDAVG)).rows:
        sections |= describe("fedcd", {"cohorts": cohorts})
    words = {"same_rates": SAME_RATES, "where_runs_end": WHERE_RUNS_END}
    values, counted = list_printed_values(printed), keep_one_data_set(runs)
    report = compose_report(paper, sections, counted, findings.results, values, **words)
    return report._replace(left_out=describe_left_out(runs))


PAPER = Paper(
    "fedcd",
    build_fedcd_report,
    presets=SIZES,
    claims=CLAIMS,
    further=FURTHER,
    draw=draw_fedcd_figure,
    further_metrics=".*_models|archetype_.*|client_accuracy_change|score_deviation|learning_rate_mean",
    kept_files=(TIMING_FILE, EVENTS_FILE),
)
