"""The FedCD paper's Table 1, its claims and our aims beside our runs, by size of the runs. Imports no TensorFlow."""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from launch.reports.aims import Aim
from launch.reports.collection import Measure, Place, PrintedValue, Results, collect_results
from launch.reports.fedcd.claims import (
    CONVERGENCE_RULE,
    END,
    GAP_TO_32_BITS,
    LEAST_SEPARATION,
    MOST_ACTIVE,
    NAMES,
    make_cell,
)
from launch.reports.fedcd.measures import (
    BASE,
    CALM_FROM,
    COMPARED_ROUNDS,
    FEDAVG,
    FEDCD,
    HIERARCHICAL,
    LAST_ROUNDS,
    MOST_CHANGE,
    NUM_ARCHETYPES,
    SIZES,
    VARIANTS,
    WINDOW,
    compute_time_ratios,
    find_convergence_of,
    group_whole_runs,
    measure,
)
from launch.reports.markdown import Report, Section, Table, format_measured, format_sections, join_blocks
from launch.reports.paper import Paper
from launch.runs.run_records import RunRecord

LATER_EDITION = "fedcd_annotated.txt"
EDITIONS = {"fedcd.txt": "printed, edition of 8 figures", LATER_EDITION: "printed, edition of 9 figures"}
EIGHT_BITS = "8bits"
LEAST_LEAD, MOST_BIT_GAP = 15.0, 2.0  # points
BELOW_ZERO = math.nextafter(0, -1)  # the largest number that is less than 0
LEGEND = (
    "Accuracy: of each device's best model on its own test split, the mean over the devices, in per cent; mean ± "
    "sample deviation over n seeds. FedAvg has the same split, model, local training and devices a round, all "
    "counting the same. Figures are numbered as in the edition that has nine. Rounds compared: "
    f"{', '.join(f'{rounds} ({name})' for name, rounds in COMPARED_ROUNDS.items())}. Last: mean over the last "
    f"{LAST_ROUNDS} of them. Change: mean size of the change of a device's accuracy from round {CALM_FROM} on, in "
    f"points. A run has {CONVERGENCE_RULE}. Level: the same by the devices' mean accuracy alone, in the rounds "
    f"compared (one more than they are if it does not settle). Calmest: the smallest mean over {WINDOW} rounds of the "
    f"size of the change of a device's accuracy, in points: how far a run is from the {MOST_CHANGE:g} points asked. "
    "Real times are of runs that may have shared their machine. A claim is reproduced if all comparisons of its rule "
    "hold for our means."
)


class Findings(NamedTuple):
    """The whole runs and what was measured in them.

    Attributes:
      runs: by place, one a seed.
      values: each measure of each run, by place and seed.
      results: mean and deviation over the seeds, by size.
    """

    runs: Mapping[Place, Sequence[RunRecord]]
    values: Mapping[Place, Mapping[int, Mapping[str, float]]]
    results: Results


def list_printed_values(rows: Iterable[Mapping[str, str]]) -> list[PrintedValue]:
    """Table 1 of the later edition as cells; FedAvg "had not converged" when its rounds were over."""
    values = []
    for row in rows:
        if row["edition"] == LATER_EDITION:
            partition, rounds = row["experiment"], float(row["fedavg_rounds"])
            numbers = {
                make_cell(partition, FEDCD, "convergence"): float(row["fedcd_rounds"]),
                # "Had not converged": the paper says no more than that it took longer.
                make_cell(partition, FEDAVG, f"convergence_{rounds:.0f}"): rounds + 1,
                make_cell(partition, FEDCD, "real_ratio"): float(row["fedcd_to_fedavg_wall_clock"]),
            }
            values += [PrintedValue("1", cell, value) for cell, value in numbers.items()]
    return values


def compute_findings(runs: Iterable[RunRecord]) -> Findings:
    """Measures the runs; those that ended early or were not evaluated every round do not count."""
    by_place = group_whole_runs(runs)
    values = {place: {run.flags["seed"]: measure(run) for run in members} for place, members in by_place.items()}
    for place, members in by_place.items():
        rivals = {run.flags["seed"]: run for run in by_place.get(place._replace(algo=FEDAVG), ())}
        base = values.get(place._replace(setting=BASE), {})
        for run in members if place.algo == FEDCD else ():
            seed = run.flags["seed"]
            if seed in rivals:
                values[place][seed] |= compute_time_ratios(run, rivals[seed])
            # Compared within a seed, since seeds differ by more than bits do.
            if place.setting.endswith("bits") and seed in base:
                values[place][seed][GAP_TO_32_BITS] = values[place][seed]["mean_of_last"] - base[seed]["mean_of_last"]
    numbers = {
        place: {seed: {Measure(name, 0): value for name, value in each.items()} for seed, each in by_seed.items()}
        for place, by_seed in values.items()
    }
    return Findings(by_place, values, collect_results(numbers, tuple(SIZES)))


def tabulate_table_1(printed: Sequence[Mapping[str, str]], findings: Findings, size: str) -> Table:
    """Printed rows of both editions, then ours: rounds by seed, and time ratios."""
    rows = []
    for partition in COMPARED_ROUNDS:
        for row in printed:
            if row["experiment"] == partition:
                ratio = f"{float(row['fedcd_to_fedavg_wall_clock']):.3f}"
                rounds = row["fedcd_rounds"], f"> {row['fedavg_rounds']}"
                rows.append([partition, EDITIONS[row["edition"]], "", *rounds, ratio, ""])
        members = {algo: findings.runs.get(Place(size, partition, BASE, algo), ()) for algo in (FEDCD, FEDAVG)}
        ratios = [
            findings.results[size].get(make_cell(partition, FEDCD, metric))
            for metric in ("real_ratio", "virtual_ratio")
        ]
        seeds = ", ".join(str(run.flags["seed"]) for run in members[FEDCD])
        rounds = [format_convergence(runs) for runs in members.values()]
        texts = [format_measured("ratio", ratio) if ratio else "" for ratio in ratios]
        rows.append([partition, "ours", seeds, *rounds, *texts])
    columns = ["archetypes", "source", "seeds", "rounds to convergence, FedCD", "FedAvg"]
    return Table([*columns, "FedCD's time over FedAvg's, real", "virtual"], rows)


def format_convergence(runs: Sequence[RunRecord]) -> str:
    """Rounds to convergence of each seed; "> n" for a run of n rounds that does not converge."""
    rounds = [(find_convergence_of(run), len(run.rounds)) for run in runs]
    return ", ".join(str(reached or f"> {length}") for reached, length in rounds) or "not run"


COLUMNS = {
    "final": "final accuracy",
    "mean_of_last": "last",
    "change": "change",
    "calmest": "calmest",
    "level": "level",
    "live_models": "models left",
    "preferred_models": "preferred",
    "active_models": "active on all devices",
    "max_active_models": "most on a device",
    "score_deviation": "score deviation",
    "separation": "rounds apart (%)",
}


def tabulate_results(findings: Findings, size: str) -> Table:
    """A row for each experiment, variant and algorithm, with what was measured after the rounds compared."""
    places = [Place(size, partition, BASE, algo) for partition in COMPARED_ROUNDS for algo in (FEDCD, FEDAVG)]
    places += [Place(size, HIERARCHICAL, variant, FEDCD) for variant in VARIANTS]
    rows = []
    for place in places:
        runs = findings.runs.get(place, ())
        cells = [findings.results[size].get(place.make_cell(metric, 0)) for metric in COLUMNS]
        texts = [format_measured(metric, cell) if cell else "" for metric, cell in zip(COLUMNS, cells, strict=True)]
        rounds = ", ".join(dict.fromkeys(str(len(run.rounds)) for run in runs))
        row = [place.dataset, place.setting or "32 bits", NAMES[place.algo], str(len(runs) or ""), rounds, *texts]
        rows.append(row if runs else [*row[:3], "not run", *[""] * (len(row) - 4)])
    return Table(["archetypes", "variant", "algorithm", "seeds", "rounds", *COLUMNS.values()], rows)


def tabulate_archetypes(findings: Findings, size: str) -> Table:
    """Accuracy of each archetype: a row an experiment and algorithm."""
    most = max(NUM_ARCHETYPES.values())
    rows = []
    for partition, number in NUM_ARCHETYPES.items():
        for algo, name in NAMES.items():
            cells = [
                findings.results[size].get(make_cell(partition, algo, f"archetype_{archetype}"))
                for archetype in range(number)
            ]
            texts = [format_measured("accuracy", cell) for cell in cells]
            rows.append([partition, name, *texts, *[""] * (most - number)])
    return Table(["archetypes", "algorithm", *(f"archetype {i}" for i in range(most))], rows)


Runs = Mapping[str, Mapping[str, float]]  # the measures of one seed's runs: of FEDCD, FEDAVG and EIGHT_BITS


def _lead(measure_name: str) -> Callable[[Runs], float]:
    return lambda runs: runs[FEDCD][measure_name] - runs[FEDAVG][measure_name]


def _bit_gap(measure_name: str) -> Callable[[Runs], float]:
    return lambda runs: runs[EIGHT_BITS][measure_name] - runs[FEDCD][measure_name]


AIMS = (
    Aim(f"at round {END} FedCD is {LEAST_LEAD:g} points or more above FedAvg, mean over the seeds", _lead("final"),
        least=LEAST_LEAD, of_mean=True),
    Aim(f"the same of the last {LAST_ROUNDS} rounds", _lead("mean_of_last"), least=LEAST_LEAD, of_mean=True),
    Aim(f"from round {CALM_FROM} on FedCD's accuracy changes less than FedAvg's from round to round: difference in "
        "points, every seed", _lead("change"), most=BELOW_ZERO),
    Aim("after the first milestone two or more models are preferred, and none by devices of both meta-archetypes, in "
        f"{LEAST_SEPARATION:g} % or more of the rounds, every seed",
        lambda runs: runs[FEDCD]["separation"], least=LEAST_SEPARATION, form="{:.1f}"),
    Aim(f"at round {END} no device has more than {MOST_ACTIVE} active models, every seed",
        lambda runs: runs[FEDCD]["max_active_models"], most=MOST_ACTIVE, form="{:.0f}"),
    Aim(f"with 8 bits the accuracy at round {END} is within {MOST_BIT_GAP:g} points of that with 32, mean over the "
        "seeds", _bit_gap("final"), -MOST_BIT_GAP, MOST_BIT_GAP, of_mean=True),
    Aim("the same, every seed", _bit_gap("final"), -MOST_BIT_GAP, MOST_BIT_GAP),
    Aim(f"the same of the last {LAST_ROUNDS} rounds, mean over the seeds", _bit_gap("mean_of_last"), -MOST_BIT_GAP,
        MOST_BIT_GAP, of_mean=True),
)  # fmt: skip


def tabulate_aims(findings: Findings, size: str) -> Table:
    """A row an aim: its number by seed, of the seeds that have all its runs, and whether it is reached."""
    places = {
        FEDCD: Place(size, HIERARCHICAL, BASE, FEDCD),
        FEDAVG: Place(size, HIERARCHICAL, BASE, FEDAVG),
        EIGHT_BITS: Place(size, HIERARCHICAL, EIGHT_BITS, FEDCD),
    }
    seeds = sorted({seed for place in places.values() for seed in findings.values.get(place, ())})
    by_seed = {
        seed: {name: findings.values.get(place, {}).get(seed, {}) for name, place in places.items()} for seed in seeds
    }
    rows = []
    for aim in AIMS:
        numbers = aim.compute_numbers(by_seed)
        of_seeds = ", ".join(f"{aim.form.format(number)} (seed {seed})" for seed, number in numbers.items())
        mean = aim.form.format(statistics.fmean(numbers.values())) if numbers else ""
        rows.append([aim.text, of_seeds, mean, aim.decide(numbers.values())])
    return Table(["aim", "by seed", "mean", "verdict"], rows)


def build_fedcd_report(paper: Paper, runs: Sequence[RunRecord]) -> Report:
    """For each size of the runs: Table 1, results, accuracies by archetype, aims and claims."""
    printed, findings = paper.read_printed_rows(), compute_findings(runs)
    printed_values = list_printed_values(printed)
    parts, tables = [f"# {paper.title}", LEGEND], {}
    for size, described in SIZES.items():
        sections = {
            "table_1": Section("Table 1", tabulate_table_1(printed, findings, size)),
            "results": Section("Results", tabulate_results(findings, size)),
            "archetypes": Section(
                f"Accuracy by archetype, last {LAST_ROUNDS} rounds", tabulate_archetypes(findings, size)
            ),
            "aims": Section("Aims, hierarchical archetypes", tabulate_aims(findings, size)),
            "claims": paper.judge_claims(printed_values, findings.results, size),
        }
        has_runs = any(place.preset == size for place in findings.runs)
        parts += [f"## Runs {described} (`{size}`)"]
        parts += format_sections(sections.values(), level=3) if has_runs else ["Not run."]
        tables |= {f"{size}_{name}": section.table for name, section in sections.items()}
    return Report(join_blocks(parts), tables, runs)
