"""The FedCD paper's Table 1 and its claims beside our runs, by size of the runs. Imports no TensorFlow."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from launch.papers.engine.claim_rows import load_words
from launch.papers.engine.collection import (
    Cell,
    Place,
    PrintedValue,
    Results,
    SeedResults,
    collect_by_seed,
    summarize_results,
)
from launch.papers.engine.markdown import Report, Section, Table, format_measured
from launch.papers.engine.paper import FOLDER, Paper
from launch.papers.fedcd.authors_run import tabulate_authors_run
from launch.papers.fedcd.causes import build_causes
from launch.papers.fedcd.costs import CLOCKS, format_costs, format_ratios, measure_all, pair_runs
from launch.papers.fedcd.measures import (
    BASE,
    BITS,
    CALM_FROM,
    COMPARED_ROUNDS,
    FEDAVG,
    FEDCD,
    FULL_ROUNDS,
    FURTHER_VARIANTS,
    HIERARCHICAL,
    LAST_ROUNDS,
    LATE,
    MILESTONES,
    MOST_BEHIND,
    MOST_CHANGE,
    NAMES,
    NUM_ARCHETYPES,
    SHOWN_VARIANTS,
    SIZES,
    WINDOW,
    describe_left_out,
    group_whole_runs,
    has_its_data,
    make_cell,
)
from launch.runs.run_records import RunRecord

LATER_EDITION = "fedcd_annotated.txt"
EDITIONS = {"fedcd.txt": "printed, edition of 8 figures", LATER_EDITION: "printed, edition of 9 figures"}
CONVERGENCE, LEVEL = "convergence", "level"
RATIOS = dict(zip(CLOCKS, ("FedCD's time over FedAvg's, real", "virtual", "bytes"), strict=True))
ON_SIZES = (
    "- *Small (2 cores)*: the flagfiles `..._cpu.flags`, with 200 train images a device, a quarter of the filters and "
    "fewer epochs.\n"
    "- *Small, authors' training*: `..._authors_small.flags`, as small, with the optimizer, schedule, augmentation and "
    "rules of the authors' code, one schedule for all models.\n"
    "- *Medium, authors' training*: `..._authors.flags`, with 1,000 or 2,000 train images a device; a clone begins the "
    "schedule anew.\n"
    "- *Full, authors' training*: `..._authors_full.flags`, with 5,000 train images, all filters and 8 bits. Of "
    "`..._authors_full_9rounds.flags`, its first nine rounds and first milestone for 2 cores, there are only curves.\n"
    "- *As large as in the paper*: `..._paper.flags`.\n\n"
    f"Models are cloned after rounds {', '.join(map(str, MILESTONES))} in all sizes, as printed. In commit cea256a of "
    "the authors' code, which prints their run, it is after rounds 2, 15, 25 and 30."
)
WORDS = load_words(FOLDER / "fedcd" / "claims.toml")
END = COMPARED_ROUNDS[HIERARCHICAL]
LEGEND = "\n".join((
    "Accuracies are those of each device's best model on its own test split, the mean over the devices, in per cent. "
    "Numbers are the mean ± the sample deviation over the seeds. FedAvg has the same split, model and local training, "
    "and as many devices a round, which all count the same. Figures are numbered as in the edition that has nine. In "
    "the small size and in that of the paper, how devices train is ours for the most part: unlike in the authors' "
    "code, the learning rate is constant and images are not augmented (see where the settings come from). A constant "
    "rate leaves both algorithms restless: that FedAvg does not converge then means nothing, unless FedCD does with "
    "the same settings. Runs with 8 or 4 bits are evaluated with the models that devices hold; those of the small size "
    "were with the server's, in float32. Real times of the small and the medium size are of runs made two at a time, "
    "each on one of 2 cores; those of the small size with the authors' training are too long in places, above all of "
    "seed 0, since other work went on beside them. Runs count with all the rounds that their size has, and in the "
    "medium, the full and the paper's size on the whole of CIFAR-10 alone; those of a size are all on the same data. "
    "Three rules were changed "
    "after the first runs of the small size, whose verdicts stayed the same, and before all others: FedCD's "
    "convergence is weighed against FedAvg's, late swings are of the same rounds in long runs, and what a run spends "
    "without convergence counts as a bound. A fourth, of Figure 5, was changed after one hypergeometric seed of the "
    "small size and before all others: it counts archetypes that converge, and not only how much they change.",
    "",
    "A run has converged from the first round on since which two things hold to its end, for "
    f"{LAST_ROUNDS} rounds or more, so that a run of {END} rounds can show convergence up to round "
    f"{END - LAST_ROUNDS + 1}. A device's accuracy changes by at most {MOST_CHANGE:g} points a round, in the mean over "
    f"the devices and {WINDOW} rounds. And the devices' mean accuracy, over {WINDOW} rounds, is at most "
    f"{MOST_BEHIND:g} points from where it ends. A run in which this never happens has infinitely many rounds to "
    "convergence.",
    "",
    f"FedAvg beside FedCD has the same schedule of learning rates: {WORDS['same_rates']}. A model counts the rounds in "
    f"which a device of the cohort has it. So no clone of round {MILESTONES[-1]} has its first step down before round "
    f"55, and one that few devices have comes to it after {LATE} rounds: a run of {LATE} rounds, which can show "
    f"convergence up to round {LATE - LAST_ROUNDS + 1}, must be calm while such clones still train at the first rate. "
    f"The changes of its rounds {LATE - LAST_ROUNDS + 1} to {LATE} mix both rates, and the mean rate beside "
    "them says how far.",
    "",
    'Costs to convergence, by seed: "> n" is what a run spends in all its rounds without it. '
    f"{WORDS['where_runs_end']}. A "
    'ratio is exact or a bound: "< 0.4" means that FedAvg stopped before it had converged.',
    "",
    f"- *Last*: mean over the last {LAST_ROUNDS} of the rounds compared, which are "
    f"{' and '.join(f'{rounds} ({name})' for name, rounds in COMPARED_ROUNDS.items())}.",
    "- *Change*: mean size of the change of a device's accuracy from round to round, from round "
    f"{CALM_FROM} on, in points.",
    f"- *Last change*: the same over the last {LAST_ROUNDS} of the rounds compared.",
    f"- *Calmest*: the smallest mean of that change over {WINDOW} rounds; convergence asks for {MOST_CHANGE:g} points.",
    "- *Converges at round*: of each seed, by all rounds of its run.",
    "- *Level*: the round, of each seed, from which the devices' mean accuracy stays near its end, however much single "
    "devices change.",
    "- *Models left, preferred*: at the end of the rounds compared; *at the end*: after the rounds that the flagfiles "
    f"ask for, which are {LATE} in the medium size of the hierarchical archetypes and {FULL_ROUNDS} in the full one.",
    "- *Mean rate*: the learning rate in per cent of the first round's, mean over FedCD's pairs of device and model "
    "that train in a round, and over the rounds.",
    "- *MB a round, s a round*: what travels in both directions, and real seconds of training, mean over the rounds "
    "compared.",
    "- *Evaluation*: the share of evaluating on the test splits in the real time of training and evaluation together. "
    "FedCD's validation of its models is part of a round.",
))  # fmt: skip


class Findings(NamedTuple):
    """The whole runs and what was measured in them.

    Attributes:
      runs: by place, one a seed.
      results: each measure by size, cell and seed.
      means: the same over the seeds.
    """

    runs: Mapping[Place, Sequence[RunRecord]]
    results: SeedResults
    means: Results


def list_printed_values(rows: Iterable[Mapping[str, str]]) -> list[PrintedValue]:
    """Table 1 of the later edition as cells; FedAvg "had not converged" when its rounds were over.

    Its times are printed as a ratio, so they stand here in units of FedCD's.
    """
    values = []
    for row in rows:
        if row["edition"] == LATER_EDITION:
            partition = row["experiment"]
            numbers = {
                make_cell(partition, FEDCD, "convergence"): float(row["fedcd_rounds"]),
                make_cell(partition, FEDCD, "convergence_or_end"): float(row["fedcd_rounds"]),
                make_cell(partition, FEDAVG, "convergence_or_end"): float(row["fedavg_rounds"]) + 1,
                make_cell(partition, FEDAVG, f"convergence_{row['fedavg_rounds']}"): math.inf,
                make_cell(partition, FEDCD, "real_s"): 1.0,
                make_cell(partition, FEDAVG, "real_s"): 1 / float(row["fedcd_to_fedavg_wall_clock"]),
            }
            values += [PrintedValue("1", cell, value) for cell, value in numbers.items()]
    return values


def compute_findings(runs: Iterable[RunRecord]) -> Findings:
    """Measures the runs; those of other data, that ended early or were not evaluated every round do not count."""
    by_place = group_whole_runs(runs)
    results = collect_by_seed(measure_all(by_place), tuple(SIZES))
    return Findings(by_place, results, summarize_results(results))


def tabulate_table_1(printed: Sequence[Mapping[str, str]], findings: Findings, size: str) -> Table:
    """Printed rows of both editions, then ours: rounds by seed, and time ratios."""
    rows = []
    for partition in COMPARED_ROUNDS:
        for row in printed:
            if row["experiment"] == partition:
                ratio = f"{float(row['fedcd_to_fedavg_wall_clock']):.3f}"
                rounds = row["fedcd_rounds"], f"> {row['fedavg_rounds']}"
                rows.append([partition, EDITIONS[row["edition"]], "", *rounds, ratio, *[""] * (len(RATIOS) - 1 + 4)])
        places = [Place(size, partition, BASE, algo) for algo in (FEDCD, FEDAVG)]
        seeds = ", ".join(str(run.flags["seed"]) for run in findings.runs.get(places[0], ()))
        rounds = [format_rounds(findings, place, CONVERGENCE) or "not run" for place in places]
        pairs = pair_runs(findings.runs, places[0]).values()
        ratios = [format_ratios(pairs, clock) for clock in CLOCKS]
        costs = [
            format_costs(findings.runs.get(place, ()), clock) for clock in ("real_s", "megabytes") for place in places
        ]
        rows.append([partition, "ours", seeds, *rounds, *ratios, *costs])
    columns = ["archetypes", "source", "seeds", "rounds to convergence, FedCD", "FedAvg", *RATIOS.values()]
    costs = [f"{what} to convergence, {name}" for what in ("s", "MB") for name in NAMES.values()]
    return Table([*columns, *costs], rows)


def format_rounds(findings: Findings, place: Place, metric: str) -> str:
    """Rounds until something is reached, of each seed; "> n" if it is not within the n rounds that are looked at."""
    by_seed = findings.results[place.preset].get(place.make_cell(metric, 0), {})
    texts = []
    for run in findings.runs.get(place, ()):
        reached = by_seed[run.flags["seed"]]
        length = COMPARED_ROUNDS[place.dataset] if metric == LEVEL else len(run.rounds)
        texts.append(f"{reached:.0f}" if math.isfinite(reached) else f"> {length}")
    return ", ".join(texts)


COLUMNS = {
    "final": "final accuracy",
    "mean_of_last": "last",
    "change": "change",
    "last_change": "last change",
    "calmest": "calmest",
    CONVERGENCE: "converges at round",
    LEVEL: "level",
    "live_models": "models left",
    "end_live_models": "left at the end",
    "preferred_models": "preferred",
    "end_preferred_models": "preferred at the end",
    "active_models": "active on all devices",
    "max_active_models": "most on a device",
    "score_deviation": "score deviation",
    "separation": "rounds apart (%)",
    "late_change": f"change, rounds {LATE - LAST_ROUNDS + 1} to {LATE}",
    "late_rate": f"mean rate (% of the first), rounds {LATE - LAST_ROUNDS + 1} to {LATE}",
    "mb_per_round": "MB a round",
    "s_per_round": "s a round",
    "evaluation_share": "evaluation (% of the time)",
}


def tabulate_results(findings: Findings, size: str) -> Table:
    """A row for each experiment, variant and algorithm, with what was measured after the rounds compared."""
    places = [Place(size, partition, BASE, algo) for partition in COMPARED_ROUNDS for algo in (FEDCD, FEDAVG)]
    places += [Place(size, HIERARCHICAL, variant, FEDCD) for variant in SHOWN_VARIANTS]
    # Of what the paper shows nothing there is a row only where it was run.
    further = [Place(size, HIERARCHICAL, variant, FEDCD) for variant in FURTHER_VARIANTS]
    further += [Place(size, HIERARCHICAL, f"{bits}bits", FEDAVG) for bits in BITS]
    places += [place for place in further if place in findings.runs]
    variants = SHOWN_VARIANTS | FURTHER_VARIANTS
    rows = []
    for place in places:
        runs = findings.runs.get(place, ())
        row = [place.dataset, variants.get(place.setting) or name_bits(runs, place.algo), NAMES[place.algo]]
        if runs:
            row += [str(len(runs)), ", ".join(dict.fromkeys(str(len(run.rounds)) for run in runs))]
            row += [
                format_rounds(findings, place, metric)
                if metric in (CONVERGENCE, LEVEL)
                else _format(findings, size, place.make_cell(metric, 0), absent="")
                for metric in COLUMNS
            ]
        else:
            row += ["not run", *[""] * (1 + len(COLUMNS))]
        rows.append(row)
    return Table(["archetypes", "variant", "algorithm", "seeds", "rounds", *COLUMNS.values()], rows)


def name_bits(runs: Sequence[RunRecord], algo: str) -> str:
    """With how many bits models travel in these runs; "" without any. Runs of earlier versions know of no bits."""
    numbers = {run.flags.get(f"{algo}_compression_bits", 32) for run in runs}
    return ", ".join(f"{number} bits" for number in sorted(numbers))


def tabulate_archetypes(findings: Findings, size: str) -> Table:
    """Accuracy of each archetype: a row an experiment and algorithm."""
    most = max(NUM_ARCHETYPES.values())
    rows = []
    for partition, number in NUM_ARCHETYPES.items():
        for algo, name in NAMES.items():
            cells = [make_cell(partition, algo, f"archetype_{archetype}") for archetype in range(number)]
            texts = [_format(findings, size, cell) for cell in cells]
            rows.append([partition, name, *texts, *[""] * (most - number)])
    return Table(["archetypes", "algorithm", *(f"archetype {i}" for i in range(most))], rows)


def _format(findings: Findings, size: str, cell: Cell, absent: str = "not run") -> str:
    return format_measured(cell.metric, findings.means[size].get(cell), absent)


def build_fedcd_report(paper: Paper, runs: Sequence[RunRecord]) -> Report:
    """The claims for all sizes of the runs, and for each size Table 1, results, and accuracies by archetype."""
    printed, findings = paper.read_printed_rows(), compute_findings(runs)
    tables = {"authors_run": Section("The authors' printed run, by the rules of this report", tabulate_authors_run())}
    # Rows and rows of "not run" say no more than the verdicts.
    run = [size for size in SIZES if any(place.preset == size for place in findings.runs)] or list(SIZES)[:1]
    for size in run:
        label = SIZES[size]
        tables |= {
            f"{size}_table_1": Section(f"Table 1, {label}", tabulate_table_1(printed, findings, size)),
            f"{size}_results": Section(f"Results, {label}", tabulate_results(findings, size)),
            f"{size}_archetypes": Section(
                f"Accuracy by archetype, mean over the last {LAST_ROUNDS} rounds, {label}",
                tabulate_archetypes(findings, size),
            ),
        }
    if causes := build_causes(runs):
        tables["causes"] = causes
    counted = [run for run in runs if has_its_data(run)]
    report = paper.compose_report(LEGEND, tables, list_printed_values(printed), findings.results, counted)
    return report._replace(left_out=describe_left_out(runs))
