"""The FedCD paper's Table 1, its claims and our aims beside our runs, by size of the runs. Imports no TensorFlow."""

import csv
import pathlib
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from launch.reports.claims import Cell
from launch.reports.fedcd.claims import (
    CONVERGENCE_RULE,
    FEDCD_CLAIMS,
    GAP_TO_32_BITS,
    LEAST_SEPARATION,
    MOST_ACTIVE,
    NAMES,
    make_cell,
)
from launch.reports.fedcd.measures import (
    BASE,
    COMPARED_ROUNDS,
    FEDAVG,
    FEDCD,
    HIERARCHICAL,
    LAST_ROUNDS,
    NUM_ARCHETYPES,
    SIZES,
    VARIANTS,
    Place,
    choose_longest,
    compute_time_ratios,
    find_convergence_of,
    find_place,
    measure,
)
from launch.reports.report_tables import (
    PRINTED_VALUES,
    Measured,
    PrintedValue,
    Report,
    format_claims,
    format_measured,
    judge,
    summarize,
    tabulate_claims,
)
from launch.runs.run_records import RunRecord

PRINTED_FILE = PRINTED_VALUES / "fedcd" / "table_1.csv"
LATER_EDITION = "fedcd_annotated.txt"
EDITIONS = {"fedcd.txt": "printed, edition of 8 figures", LATER_EDITION: "printed, edition of 9 figures"}
LEAST_LEAD, MOST_BIT_GAP = 15.0, 2.0  # points
TITLE = "# FedCD: Table 1, claims and aims"
LEGEND = (
    "Accuracy: of each device's best model on its own test split, the mean over the devices, in per cent; mean ± "
    "sample deviation over n seeds. FedAvg has the same split, model, local training and devices a round, all "
    "counting the same. Figures are numbered as in the edition that has nine. Rounds compared: "
    f"{', '.join(f'{rounds} ({name})' for name, rounds in COMPARED_ROUNDS.items())}. Last: mean over the last "
    f"{LAST_ROUNDS} of them. Change: mean size of the change of a device's accuracy from round 10 on, in points. A "
    f"run has {CONVERGENCE_RULE}. Level: the same by the devices' mean accuracy alone, in the rounds compared (one "
    "more than they are if it does not settle). Calmest: the smallest mean over 5 rounds of the size of the change of "
    "a device's accuracy, in points: how far a run is from the 5 points asked. Real times are of runs that may have "
    "shared their machine. A claim is reproduced if all comparisons of its rule hold for our means."
)

Table = tuple[list[str], list[list[str]]]


class Results(NamedTuple):
    """The runs of one size and what was measured in them.

    Attributes:
      runs: by place, one a seed.
      values: each measure of each run, by place and seed.
      cells: mean and deviation over the seeds.
    """

    runs: Mapping[Place, Sequence[RunRecord]]
    values: Mapping[Place, Mapping[int, Mapping[str, float]]]
    cells: Mapping[Cell, Measured]


def read_printed_rows(path: pathlib.Path = PRINTED_FILE) -> list[dict[str, str]]:
    """Table 1 of both editions, the columns of the file."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def list_printed_values(rows: Iterable[Mapping[str, str]]) -> list[PrintedValue]:
    """Table 1 of the later edition as cells; FedAvg "had not converged" within its 300 rounds."""
    values = []
    for row in rows:
        if row["edition"] == LATER_EDITION:
            partition, rounds = row["experiment"], float(row["fedavg_rounds"])
            numbers = {
                make_cell(partition, FEDCD, "convergence"): float(row["fedcd_rounds"]),
                make_cell(partition, FEDAVG, f"convergence_{rounds:.0f}"): rounds + 1,
                make_cell(partition, FEDCD, "real_ratio"): float(row["fedcd_to_fedavg_wall_clock"]),
            }
            values += [PrintedValue("1", cell, value) for cell, value in numbers.items()]
    return values


def compute_results(runs: Iterable[RunRecord], size: str) -> Results:
    """Measures the runs of one size; those that ended early or were not evaluated every round do not count."""
    chosen = {place: members for place, members in choose_longest(runs).items() if place.size == size}
    values = {place: {run.flags["seed"]: measure(run) for run in members} for place, members in chosen.items()}
    for place, members in chosen.items():
        rivals = {run.flags["seed"]: run for run in chosen.get(place._replace(algo=FEDAVG), ())}
        base = values.get(place._replace(variant=BASE), {})
        for run in members if place.algo == FEDCD else ():
            seed = run.flags["seed"]
            if seed in rivals:
                values[place][seed] |= compute_time_ratios(run, rivals[seed])
            if place.variant.endswith("bits") and seed in base:
                values[place][seed][GAP_TO_32_BITS] = values[place][seed]["mean_of_last"] - base[seed]["mean_of_last"]
    numbers: dict[Cell, list[float]] = {}
    for place, by_seed in values.items():
        for measures in by_seed.values():
            for metric, value in measures.items():
                cell = make_cell(place.partition, place.algo, metric, place.variant)
                numbers.setdefault(cell, []).append(value)
    return Results(chosen, values, {cell: summarize(each) for cell, each in numbers.items()})


def tabulate_table_1(printed: Sequence[Mapping[str, str]], results: Results, size: str) -> Table:
    """Printed rows of both editions, then ours: rounds by seed, and time ratios."""
    rows = []
    for partition in COMPARED_ROUNDS:
        for row in printed:
            if row["experiment"] == partition:
                ratio = f"{float(row['fedcd_to_fedavg_wall_clock']):.3f}"
                rounds = row["fedcd_rounds"], f"> {row['fedavg_rounds']}"
                rows.append([partition, EDITIONS[row["edition"]], "", *rounds, ratio, ""])
        members = {algo: results.runs.get(Place(size, partition, BASE, algo), ()) for algo in (FEDCD, FEDAVG)}
        ratios = [results.cells.get(make_cell(partition, FEDCD, metric)) for metric in ("real_ratio", "virtual_ratio")]
        seeds = ", ".join(str(run.flags["seed"]) for run in members[FEDCD])
        rounds = [format_convergence(runs) for runs in members.values()]
        texts = [format_measured("ratio", ratio) if ratio else "" for ratio in ratios]
        rows.append([partition, "ours", seeds, *rounds, *texts])
    columns = ["archetypes", "source", "seeds", "rounds to convergence, FedCD", "FedAvg"]
    return [*columns, "FedCD's time over FedAvg's, real", "virtual"], rows


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


def tabulate_results(results: Results, size: str) -> Table:
    """A row for each experiment, variant and algorithm, with what was measured after the rounds compared."""
    places = [Place(size, partition, BASE, algo) for partition in COMPARED_ROUNDS for algo in (FEDCD, FEDAVG)]
    places += [Place(size, HIERARCHICAL, variant, FEDCD) for variant in VARIANTS]
    rows = []
    for place in places:
        runs = results.runs.get(place, ())
        cells = [results.cells.get(make_cell(place.partition, place.algo, metric, place.variant)) for metric in COLUMNS]
        texts = [format_measured(metric, cell) if cell else "" for metric, cell in zip(COLUMNS, cells, strict=True)]
        rounds = ", ".join(dict.fromkeys(str(len(run.rounds)) for run in runs))
        row = [place.partition, place.variant or "32 bits", NAMES[place.algo], str(len(runs) or ""), rounds, *texts]
        rows.append(row if runs else [*row[:3], "not run", *[""] * (len(row) - 4)])
    return ["archetypes", "variant", "algorithm", "seeds", "rounds", *COLUMNS.values()], rows


def tabulate_archetypes(results: Results) -> Table:
    """Accuracy of each archetype: a row an experiment and algorithm."""
    most = max(NUM_ARCHETYPES.values())
    rows = []
    for partition, number in NUM_ARCHETYPES.items():
        for algo, name in NAMES.items():
            cells = [results.cells.get(make_cell(partition, algo, f"archetype_{i}")) for i in range(number)]
            texts = [format_measured("accuracy", cell) for cell in cells]
            rows.append([partition, name, *texts, *[""] * (most - number)])
    return ["archetypes", "algorithm", *(f"archetype {i}" for i in range(most))], rows


class Aim(NamedTuple):
    """What the runs should reach.

    Attributes:
      text: the aim.
      measure: from the measures of a seed's runs, by place; KeyError if one is missing.
      is_reached: from the numbers of all seeds.
      form: of a number.
    """

    text: str
    measure: Callable[[Mapping[str, Mapping[str, float]]], float]
    is_reached: Callable[[Sequence[float]], bool]
    form: str = "{:+.2f}"


def _mean_is(test: Callable[[float], bool]) -> Callable[[Sequence[float]], bool]:
    return lambda numbers: test(statistics.fmean(numbers))


def _each_is(test: Callable[[float], bool]) -> Callable[[Sequence[float]], bool]:
    return lambda numbers: all(map(test, numbers))


AIMS = (
    Aim(f"at round 45 FedCD is {LEAST_LEAD:g} points or more above FedAvg, mean over the seeds",
        lambda runs: runs[FEDCD]["final"] - runs[FEDAVG]["final"], _mean_is(lambda lead: lead >= LEAST_LEAD)),
    Aim(f"the same of the last {LAST_ROUNDS} rounds",
        lambda runs: runs[FEDCD]["mean_of_last"] - runs[FEDAVG]["mean_of_last"],
        _mean_is(lambda lead: lead >= LEAST_LEAD)),
    Aim("from round 10 on FedCD's accuracy changes less than FedAvg's from round to round: difference in points, every "
        "seed", lambda runs: runs[FEDCD]["change"] - runs[FEDAVG]["change"], _each_is(lambda excess: excess < 0)),
    Aim("after the first milestone two or more models are preferred, and none by devices of both meta-archetypes, in "
        f"{LEAST_SEPARATION:g} % or more of the rounds, every seed",
        lambda runs: runs[FEDCD]["separation"], _each_is(lambda share: share >= LEAST_SEPARATION), "{:.1f}"),
    Aim(f"at round 45 no device has more than {MOST_ACTIVE} active models, every seed",
        lambda runs: runs[FEDCD]["max_active_models"], _each_is(lambda number: number <= MOST_ACTIVE), "{:.0f}"),
    Aim(f"with 8 bits the accuracy at round 45 is within {MOST_BIT_GAP:g} points of that with 32, mean over the seeds",
        lambda runs: runs["8bits"]["final"] - runs[FEDCD]["final"], _mean_is(lambda gap: abs(gap) <= MOST_BIT_GAP)),
    Aim("the same, every seed", lambda runs: runs["8bits"]["final"] - runs[FEDCD]["final"],
        _each_is(lambda gap: abs(gap) <= MOST_BIT_GAP)),
    Aim(f"the same of the last {LAST_ROUNDS} rounds, mean over the seeds",
        lambda runs: runs["8bits"]["mean_of_last"] - runs[FEDCD]["mean_of_last"],
        _mean_is(lambda gap: abs(gap) <= MOST_BIT_GAP)),
)  # fmt: skip


def tabulate_aims(results: Results, size: str) -> Table:
    """A row an aim: its number by seed, of the seeds that have all its runs, and whether it is reached."""
    places = {
        FEDCD: Place(size, HIERARCHICAL, BASE, FEDCD),
        FEDAVG: Place(size, HIERARCHICAL, BASE, FEDAVG),
        "8bits": Place(size, HIERARCHICAL, "8bits", FEDCD),
    }
    seeds = sorted({seed for place in places.values() for seed in results.values.get(place, ())})
    rows = []
    for aim in AIMS:
        numbers: dict[int, float] = {}
        for seed in seeds:
            by_name = {name: results.values.get(place, {}).get(seed, {}) for name, place in places.items()}
            try:
                numbers[seed] = aim.measure(by_name)
            except KeyError:
                continue
        of_seeds = ", ".join(f"{aim.form.format(number)} (seed {seed})" for seed, number in numbers.items())
        mean = aim.form.format(statistics.fmean(numbers.values())) if numbers else ""
        verdict = ("reached" if aim.is_reached(list(numbers.values())) else "not reached") if numbers else "not run"
        rows.append([aim.text, of_seeds, mean, verdict])
    return ["aim", "by seed", "mean", "verdict"], rows


def format_table(table: Table) -> str:
    """A table as Markdown."""
    columns, rows = table
    return "\n".join("| " + " | ".join(line) + " |" for line in [columns, ["---"] * len(columns), *rows])


def build_fedcd_report(runs: Sequence[RunRecord]) -> Report:
    """For each size of the runs: Table 1, results, accuracies by archetype, aims and claims."""
    runs = [run for run in runs if find_place(run.experiment) is not None]
    printed = read_printed_rows()
    parts, tables = [TITLE, LEGEND], {}
    for size, described in SIZES.items():
        results = compute_results(runs, size)
        parts.append(f"## Runs {described} (`{size}`)")
        sections = {
            "table_1": ("Table 1", tabulate_table_1(printed, results, size)),
            "results": ("Results", tabulate_results(results, size)),
            "archetypes": (f"Accuracy by archetype, last {LAST_ROUNDS} rounds", tabulate_archetypes(results)),
            "aims": ("Aims, hierarchical archetypes", tabulate_aims(results, size)),
        }
        judgements = [
            judge(claim, list_printed_values(printed), {"printed": results.cells, "tuned": {}})
            for claim in FEDCD_CLAIMS
        ]
        for heading, table in sections.values():
            parts += [f"### {heading}", format_table(table)] if results.runs else []
        parts += ["### Claims", format_claims(judgements)] if results.runs else ["Not run."]
        tables |= {f"{size}_{name}": table for name, (_, table) in sections.items()}
        tables[f"{size}_claims"] = tabulate_claims(judgements)
    return Report("\n\n".join(parts), tables, runs)
