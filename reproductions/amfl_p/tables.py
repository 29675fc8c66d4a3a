"""The tables of AMFL-P: the paper's two, and our comparisons beside it. Imports no TensorFlow."""

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

from launch.comparison.seed_statistics import compare_by_seed, compute_mean, subtract_by_seed
from launch.runs.columns import CLIENTS_FILE, FINE_TUNING_FILE
from launch.runs.run_records import RunRecord
from reproductions.amfl_p.claims import CLAIMS, FURTHER
from reproductions.amfl_p.figure import draw_amfl_p_figures
from reproductions.amfl_p.measures import (
    ACCURACY,
    ALGOS,
    AMFL_P,
    AXES,
    DATASET,
    FEDAVG,
    FINE_TUNING,
    LAST_ROUND,
    LEVELS,
    LOCAL_ONLY,
    OF_SENSORS,
    PLACES,
    STEPS,
    STRUCTURED,
    TABLE_1_LEVEL,
    TEXTS,
    TUNED_KINDS,
    TUNED_RUNS,
    counts,
    find,
    find_few_shot,
    leave_out_seen,
    make_cell,
    measure,
)
from reproductions.amfl_p.pooled_reference import read_pooled_accuracies
from reproductions.engine.collection import TUNED, Cell, PrintedValue, SeedResults
from reproductions.engine.markdown import Report, Table, format_rounds
from reproductions.engine.paper import Paper
from reproductions.engine.report import compose_report
from reproductions.engine.tables import (
    BySeed,
    Values,
    collect,
    count,
    cross,
    describe,
    locate,
    show,
    show_difference,
    show_range,
)

SOURCES = AXES["preset"]
# What the claims on weights and on limited local data are put to.
AMFL_P_TUNED = TUNED_RUNS[AMFL_P]
WEIGHTINGS = {"adaptive": AMFL_P_TUNED}
WEIGHTINGS |= {name: f"ablation_weighting_{name}" for name in ("examples", "equal")}
CLAIMED_STARTS, CLAIMED_READINGS, CLAIMED_STEPS = ("maml1", "fedavg", "random"), ("16", "32", "64"), 5
PAIRS, CHOICE = TEXTS["pairs"], TEXTS["choice"]
DIFFERENCES = ("factorial_starts", "factorial_rules", "factorial_methods")
START_COLUMNS = ("AMFL-P's start minus random weights, points", "it moved by at least")
NOT_RUN = "not run"


def list_printed_values(rows: Sequence[Mapping[str, str]]) -> list[PrintedValue]:
    """Table 1 of the paper."""
    cells = [make_cell(row["algorithm"], metric=row["metric"]) for row in rows]
    return [PrintedValue(row["table"], cell, float(row["value"])) for row, cell in zip(rows, cells, strict=True)]


def compute_results(values: Values, pooled: Mapping[str, BySeed], majority: Mapping[str, BySeed]) -> SeedResults:
    """What the paper's tables and the claims need, by preset, cell and seed.

    Pooled trees and majority, which have no settings, are in both presets; our own comparisons count as tuned.
    """
    results = locate(values, PLACES.get, LAST_ROUND)
    for cells in results.values():
        for name, accuracies in (("pooled_reference", pooled), ("majority", majority)):
            cells |= {make_cell(name, level): by_seed for level, by_seed in accuracies.items()}
    ours = {make_cell(f"weighting_{name}"): find(values, experiment) for name, experiment in WEIGHTINGS.items()}
    for start, readings in itertools.product(CLAIMED_STARTS, CLAIMED_READINGS):
        by_seed = find_few_shot(values, start, readings).get(CLAIMED_STEPS, {})
        ours[make_cell(f"few_shot_{start}", f"{readings} readings")] = by_seed
    results[TUNED] |= {cell: by_seed for cell, by_seed in ours.items() if by_seed}
    return results


def build_amfl_p_report(paper: Paper, runs: Sequence[RunRecord]) -> Report:
    """The claims and the tables."""
    values = collect(filter(counts, runs), measure)
    results = compute_results(values, read_pooled_accuracies(), read_pooled_accuracies(column="majority"))
    results[TUNED] = {cell: leave_out_seen(by_seed) for cell, by_seed in results[TUNED].items()}
    printed = list_printed_values(paper.read_printed_rows())
    tables = {
        "table_1": tabulate_table_1(printed, results),
        "table_2": tabulate_table_2(results),
        "pooled_reference": tabulate_gaps(results),
    }
    for kind, builders in OURS.items():
        if any(experiment.startswith(kind) for experiment, _ in values):
            tables |= {name: build(values) for name, build in builders.items()}
    rows = tables["few_shot_gains"].rows if "few_shot_gains" in tables else ()
    number = sum(cell != NOT_RUN for row in rows for cell in row[4:])
    sections = describe("amfl_p", tables, number=number, chance=round(number / 20), demand=say_demand(values))
    return compose_report(paper, sections, runs, results, printed)


def show_cell(results: Mapping[Cell, BySeed], cell: Cell, absent: str = NOT_RUN) -> str:
    """A result of the paper's tables."""
    by_seed = results.get(cell, {})
    if cell.metric == "rounds_to_target" and by_seed:
        return format_rounds(by_seed.values(), LAST_ROUND)
    return show(by_seed, cell.metric, absent)


def tabulate_table_1(printed: Sequence[PrintedValue], results: SeedResults) -> Table:
    """A row for each algorithm and source, with accuracy, rounds to the target and mean steps."""
    paper = {value.cell: {0: value.value} for value in printed}
    rows = []
    for algo, title in ALGOS.items():
        cells = [make_cell(algo, metric=metric) for metric in (ACCURACY, "rounds_to_target", STEPS)]
        if algo != LOCAL_ONLY:  # which is not in the paper
            rows.append([title, "printed", "", *(show_cell(paper, cell, absent="") for cell in cells)])
        for preset, source in SOURCES.items():
            seeds = str(len(results[preset].get(cells[0], {})) or "")
            rows.append([title, source, seeds, *(show_cell(results[preset], cell) for cell in cells)])
    majority = results[TUNED].get(make_cell("majority"), {})
    rows.append(["majority class", "data", count(majority), show(majority), "", ""])
    return Table(["algorithm", "source", "seeds", "accuracy", "rounds to target", "mean fine-tuning steps"], rows)


def tabulate_table_2(results: SeedResults) -> Table:
    """A row for each algorithm and preset, a column a level; majority class and pooled reference last."""
    places = [(title, algo, *source) for algo, title in ALGOS.items() for source in SOURCES.items()]
    places += [
        ("majority class", "majority", TUNED, "data"),
        ("pooled reference", "pooled_reference", TUNED, "pooled trees"),
    ]
    rows = [
        [title, source, *(show_cell(results[preset], make_cell(algo, level)) for level in LEVELS)]
        for title, algo, preset, source in places
    ]
    return Table(["algorithm", "source", *LEVELS], rows)


def tabulate_gaps(results: SeedResults) -> Table:
    """At each level: the gap from FedAvg to the pooled reference, what AMFL-P closes of it, its lead over Fine-Tuning.

    Differences are between runs of one seed; the share is of their means, since a single gap may be next to nothing.
    """
    rows = []
    for level in LEVELS:
        found = {
            algo: results[TUNED].get(make_cell(algo, level), {}) for algo in (*ALGOS, "pooled_reference", "majority")
        }
        pairs = (("pooled_reference", FEDAVG), (AMFL_P, FEDAVG), (AMFL_P, FINE_TUNING))
        gap, closed, lead = (subtract_by_seed(found[first], found[second]) for first, second in pairs)
        is_known = gap and closed
        share = f"{compute_mean(closed.values()) / compute_mean(gap.values()):.0%}" if is_known else NOT_RUN
        rows.append([level, show(gap), share, show(lead), show(found[LOCAL_ONLY]), show(found["majority"])])
    names = ("pooled reference minus FedAvg, points", "of it closed by AMFL-P", "AMFL-P minus Fine-Tuning, points")
    return Table(["heterogeneity", *names, "local training (%)", "majority class (%)"], rows)


def find_majority(values: Values, place: str, number: str = "majority") -> BySeed:
    """The majority class's accuracy, which is the data's and no algorithm's: what any tuned run on them says."""
    runs = [(name, by_seed) for (name, each), by_seed in values.items() if each == number]
    found = [by_seed for name, by_seed in runs if name.startswith(TUNED_KINDS) and name.endswith(f"_{place}")]
    return {seed: value for by_seed in found for seed, value in by_seed.items()}


def _name_pair(titles: Mapping[str, str], pair: Sequence[str]) -> str:
    return " minus ".join(titles[name] for name in pair)


def tabulate_factorial(values: Values) -> Table:
    """A row for each degree and start, a column a finish; FedAvg alone, local training and the majority class below."""
    rows = []
    for degree in AXES["degree"]:
        for start, title in AXES["start"].items():
            found = [find(values, f"start_{start}_{finish}", degree) for finish in AXES["finish"]]
            rows.append([degree, title, count(*found), *map(show, found)])
        beside = {title: find(values, name, degree) for name, title in AXES["beside"].items()}
        majority = find_majority(values, f"{DATASET}_{degree}")
        for title, by_seed in {**beside, "majority class": majority}.items():
            rows.append([degree, title, count(by_seed), show(by_seed), ""])
    return Table(["heterogeneity", "start", "seeds", *AXES["finish"].values()], rows)


def tabulate_differences(values: Values, name: str) -> Table:
    """For each place on the axes and each pair that `tables.toml` has for the table: the difference and its verdict."""
    table, rows = TEXTS[name], []
    for names, titles in cross(*(AXES[axis] for axis in table["axes"])):
        place = dict(zip(table["axes"], names, strict=True))
        for pair in table["pairs"]:
            experiments = [table["experiment"].format(**place, **{table["paired"]: each}) for each in pair]
            *cells, verdict = show_difference(*(find(values, each, place["degree"]) for each in experiments))
            if verdict and place["degree"] == STRUCTURED:
                verdict = f"not judged ({verdict})"
            named = [_name_pair(AXES[table["paired"]], pair)] if len(table["pairs"]) > 1 else []
            rows.append([*titles, *named, *cells, verdict])
    return Table([*table["columns"], "seeds", "verdict"], rows)


def tabulate_costs(values: Values) -> Table:
    """A row for each degree, start and finish, and for local training: the means over the seeds, in thousands."""
    cells = {f"start_{start}_{finish}": titles for (start, finish), titles in cross(AXES["start"], AXES["finish"])}
    cells["local_training"] = ["local training", ""]
    rows = []
    for degree, (name, titles) in itertools.product(AXES["degree"], cells.items()):
        training, finish = (find(values, name, degree, cost) for cost in ("examples_of_training", "examples_of_finish"))
        parts = [training, finish, {seed: cost + finish[seed] for seed, cost in training.items()}]
        shown = [f"{compute_mean(part.values()) / 1000:,.0f}" if part else NOT_RUN for part in parts]
        rows.append([degree, *titles, str(len(training) or ""), *shown])
    columns = ["before the finish", "in the finish", "both"]
    return Table(["heterogeneity", "start", "finish", "seeds", *columns], rows)


def _list_steps(values: Values) -> list[int]:
    """After how many steps few-shot runs are measured."""
    places = itertools.product(AXES["few_shot_start"], AXES["readings"], AXES["sensors"])
    return sorted({steps for place in places for steps in find_few_shot(values, *place)})


def _name_steps(steps: Iterable[int]) -> list[str]:
    return ["1 step" if each == 1 else f"{each} steps" for each in steps]


def tabulate_few_shot(values: Values) -> Table:
    """A row for each number of readings, group of sensors and start, a column a number of steps."""
    steps, rows = _list_steps(values), []
    for (readings, whose), (_, title) in cross(AXES["readings"], AXES["sensors"]):
        for start, start_title in AXES["few_shot_start"].items():
            if line := find_few_shot(values, start, readings, whose):
                found = [line.get(each, {}) for each in steps]
                rows.append([readings, title, start_title, count(*found), *map(show, found)])
        local, majority = OF_SENSORS[whose]
        beside = {"local training": find(values, "few_shot_local", readings, local)}
        beside["majority class"] = find_majority(values, f"{DATASET}_{readings}", majority)
        for name, by_seed in beside.items():
            blank = [""] * (len(steps) - 1)
            rows.append([readings, title, name, count(by_seed), *blank, show(by_seed)])
    return Table(["readings", "sensors", "start", "seeds", *_name_steps(steps)], rows)


def tabulate_few_shot_gains(values: Values) -> Table:
    """For each number of readings, group of sensors and pair of starts: the differences by steps and their verdicts."""
    steps, rows = _list_steps(values), []
    for (readings, whose), (_, title) in cross(AXES["readings"], AXES["sensors"]):
        lines = {start: find_few_shot(values, start, readings, whose) for start in AXES["few_shot_start"]}
        for pair in PAIRS["few_shot_start"]:
            found = [compare_by_seed(*(lines[start].get(each, {}) for start in pair)) for each in steps]
            place = [readings, title, _name_pair(AXES["few_shot_start"], pair)]
            rows.append([*place, show_range(each.count for each in found), *(each.describe() for each in found)])
    return Table(["readings", "sensors", "starts", "seeds", *_name_steps(steps)], rows)


def tabulate_ablations(values: Values) -> Table:
    """A row for each change, the accuracy and what it changes."""
    base = find(values, AMFL_P_TUNED)
    rows = [["AMFL-P", count(base), show(base), "", ""]]
    for name, title in AXES["ablation"].items():
        found = find(values, f"ablation_{name}")
        difference, _, verdict = show_difference(found, base)
        rows.append([title, count(found), show(found), difference, verdict])
    majority = find_majority(values, f"{DATASET}_{TABLE_1_LEVEL}")
    for title, found in (("local training", find(values, "local_training")), ("majority class", majority)):
        rows.append([title, count(found), show(found), "", ""])
    return Table(["AMFL-P with", "seeds", "accuracy (%)", "minus AMFL-P, points", "verdict"], rows)


def _find_default(values: Values, algo: str, place: str, number: str = ACCURACY) -> BySeed:
    return values.get((f"defaults_{algo}_{place}", number), {})


def tabulate_defaults(values: Values) -> Table:
    """A row for each data set: the algorithms' accuracies, and what AMFL-P's start gains on random weights."""
    rows = []
    for place, title in AXES["data"].items():
        found = [_find_default(values, algo, place) for algo in AXES["default"]]
        found_in = (_find_default(values, algo, place, "majority") for algo in AXES["default"])
        majority = {seed: accuracy for by_seed in found_in for seed, accuracy in by_seed.items()}
        gain, change = (_find_default(values, AMFL_P, place, number) for number in ("start_gain", "start_change"))
        start = [compare_by_seed(gain, dict.fromkeys(gain, 0.0)).describe()]
        start.append(f"{min(change.values()):.1%}" if change else NOT_RUN)
        used = "yes" if place in CHOICE["chosen_on"] else "no"
        rows.append([title, used, count(*found), *map(show, (*found, majority)), *start])
    return Table(["data", "chosen on it", "seeds", *AXES["default"].values(), "majority class", *START_COLUMNS], rows)


def tabulate_default_pairs(values: Values) -> Table:
    """A row for each data set: AMFL-P with each of the others, and whether the simpler fine-tuner meets the demand."""
    rows = []
    for place, title in AXES["data"].items():
        pairs = [[_find_default(values, algo, place) for algo in pair] for pair in PAIRS["default"]]
        rows.append([title, *(compare_by_seed(*pair).describe() for pair in pairs)])
    return Table(["data", *(f"{_name_pair(AXES['default'], pair)}, points" for pair in PAIRS["default"])], rows)


def say_demand(values: Values) -> str:
    """Whether AMFL-P's defaults have local training's mean accuracy everywhere they are to; if not, where and by what.

    Over the seeds that both have.
    """
    algos = (AMFL_P, LOCAL_ONLY)
    pairs = {place: [_find_default(values, algo, place) for algo in algos] for place in CHOICE["demanded"]}
    leads = {AXES["data"][place]: compare_by_seed(*pair).mean for place, pair in pairs.items()}
    missed = [f"{-100 * lead:.2f} points on {place}" for place, lead in leads.items() if lead and lead < 0]
    absent = [place for place, lead in leads.items() if lead is None]
    verdict = f"not met: it is missed by {'; '.join(missed)}" if missed else "met in the means of these runs"
    left = f" Not run: {'; '.join(absent)}." if absent else ""
    return f"At least local training's accuracy everywhere: {verdict}.{left}"


# Our comparisons beside the paper, by how the names of their experiments begin.
OURS: Mapping[str, Mapping[str, Callable[[Values], Table]]] = {
    "start_": {
        "factorial": tabulate_factorial,
        **{name: functools.partial(tabulate_differences, name=name) for name in DIFFERENCES},
        "factorial_costs": tabulate_costs,
    },
    "few_shot_": {"few_shot": tabulate_few_shot, "few_shot_gains": tabulate_few_shot_gains},
    "ablation_": {"ablations": tabulate_ablations},
    "defaults_": {"defaults": tabulate_defaults, "defaults_pairs": tabulate_default_pairs},
}

PAPER = Paper(
    "amfl_p",
    build_amfl_p_report,
    presets=SOURCES,
    claims=CLAIMS,
    further=FURTHER,
    draw=draw_amfl_p_figures,
    further_metrics=STEPS,
    kept_files=(CLIENTS_FILE, FINE_TUNING_FILE),
)
