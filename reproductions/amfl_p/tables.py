"""The tables of AMFL-P: the paper's two, and our comparisons beside it. Imports no TensorFlow."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from launch.pages.comparison.seed_statistics import Difference, compare_by_seed, compute_mean
from launch.runs.columns import CLIENTS_FILE, FINE_TUNING_FILE, MEMBERS
from launch.runs.run_records import RunRecord
from reproductions.amfl_p import measures
from reproductions.amfl_p.claims import CLAIMS, FURTHER
from reproductions.amfl_p.figure import draw_amfl_p_figures
from reproductions.amfl_p.measures import ACCURACY, ALGOS, AXES, LEVELS, ROUNDS, STEPS, TABLE_1_LEVEL, TEXTS
from reproductions.amfl_p.pooled_reference import read_pooled
from reproductions.engine.collection import TUNED, Cell, PrintedValue
from reproductions.engine.page import compose_report
from reproductions.engine.paper import Paper
from reproductions.engine.tables import (
    SEED,
    Report,
    Table,
    count,
    cross,
    describe,
    format_rounds,
    list_results,
    show,
    show_difference,
    show_range,
    spread,
)

SOURCES, CHOICE = AXES["preset"], TEXTS["choice"]
START_COLUMNS = ("AMFL-P's start minus random weights, points", "it moved by at least")
NOT_RUN = "not run"
NO_CELLS = ("", NOT_RUN, NOT_RUN, NOT_RUN)  # a number of seeds, and three results


def build_amfl_p_report(paper: Paper, runs: Sequence[RunRecord]) -> Report:
    """The claims, the paper's tables, and those of our comparisons that have runs."""
    frame = measures.make_runs(runs)
    few_shot = measures.make_curves(frame, "few_shot_")
    placed = measures.place_runs(frame, few_shot, read_pooled())
    printed = list_printed_values(paper.read_printed_rows())
    differences = ("factorial_starts", "factorial_rules", "factorial_methods")
    ours = {  # by how the names of their experiments begin
        "start_": {
            "factorial": tabulate_factorial(frame),
            **{name: tabulate_differences(frame, name) for name in differences},
            "factorial_costs": tabulate_costs(frame),
        },
        "few_shot_": {
            "few_shot": tabulate_few_shot(frame, few_shot),
            "few_shot_gains": (gains := tabulate_few_shot_gains(few_shot)),
        },
        "ablation_": {"ablations": tabulate_ablations(frame)},
        "defaults_": {"defaults": tabulate_defaults(frame), "defaults_pairs": tabulate_default_pairs(frame)},
    }
    tables = {"table_1": tabulate_table_1(printed, placed), "table_2": tabulate_table_2(placed)}
    tables["pooled_reference"] = tabulate_gaps(placed)
    for kind, found in ours.items():
        if any(variant.startswith(kind) for variant in frame.index.unique("variant")):
            tables |= found
    number = sum(cell != NOT_RUN for row in gains.rows for cell in row[4:])
    sections = describe("amfl_p", tables, number=number, chance=round(number / 20), demand=say_demand(frame))
    results = list_results(placed, measures.LAST_ROUND)
    return compose_report(paper, sections, runs, results, printed)


def list_printed_values(rows: Sequence[Mapping[str, str]]) -> list[PrintedValue]:
    """Table 1 of the paper."""
    where = measures.DATASET, TABLE_1_LEVEL
    cells = [Cell(*where, row["algorithm"], measures.LAST_ROUND, row["metric"]) for row in rows]
    return [PrintedValue(row["table"], cell, float(row["value"])) for row, cell in zip(rows, cells, strict=True)]


def tabulate_table_1(printed: Sequence[PrintedValue], placed: pd.DataFrame) -> Table:
    """A row for each algorithm and source, with accuracy, rounds to the target and mean steps; of `place_runs`."""
    shows = {
        SEED: count,
        ACCURACY: show,
        ROUNDS: lambda rounds: format_rounds(list(rounds), measures.LAST_ROUND),
        STEPS: lambda steps: show(steps, STEPS),
    }
    ours = placed[placed.setting == TABLE_1_LEVEL].groupby(["algo", "preset"]).agg(shows).T
    paper = {(value.cell.algo, value.cell.metric): [value.value] for value in printed}
    rows = []
    for algo, title in ALGOS.items():
        if algo != "local_only":  # which is not in the paper
            cells = [show(paper.get((algo, metric), ()), metric, "") for metric in (ACCURACY, ROUNDS, STEPS)]
            rows.append([title, "printed", "", *cells])
        rows += [[title, source, *ours.get((algo, preset), NO_CELLS)] for preset, source in SOURCES.items()]
    seeds, majority, *_ = ours.get(("majority", TUNED), ("0", NOT_RUN))
    rows.append(["majority class", "data", seeds, majority, "", ""])
    return Table(["algorithm", "source", "seeds", "accuracy", "rounds to target", "mean fine-tuning steps"], rows)


def tabulate_table_2(placed: pd.DataFrame) -> Table:
    """A row for each algorithm and preset, a column a level; majority class and pooled reference last."""
    titles = dict(cross(ALGOS, SOURCES))
    titles["majority", TUNED] = ["majority class", "data"]
    titles["pooled_reference", TUNED] = ["pooled reference", "pooled trees"]
    shown = placed.groupby(["algo", "preset", "setting"])[ACCURACY].agg(show)
    rows = [[*titles[each], *(shown.get((*each, level), NOT_RUN) for level in LEVELS)] for each in titles]
    return Table(["algorithm", "source", *LEVELS], rows)


def compare_printed(tables: Mapping[str, Table]) -> Table:
    """Table 1 with a column for what is printed, and one for each kind of our runs."""
    shown = {
        "accuracy": "accuracy (%)",
        "rounds to target": "rounds to 75 %",
        "mean fine-tuning steps": "fine-tuning steps",
    }
    # The majority class is that of the tuned runs' buildings.
    sources = {"printed": "printed", **{name: name for name in reversed(SOURCES.values())}, "data": SOURCES[TUNED]}
    rows = []
    for column, title in shown.items():
        columns, found = spread(tables["table_1"], ["algorithm"], "source", column, sources)
        rows += [[title, *row] for row in found if any(cell.strip("0. ±") for cell in row[1:])]
    return Table(["measure", *columns], rows)


def tabulate_gaps(placed: pd.DataFrame) -> Table:
    """At each level: the gap from FedAvg to the pooled reference, what AMFL-P closes of it, its lead over Fine-Tuning.

    Differences are between runs of one seed; the share is of their means, since a single gap may be next to nothing.
    """
    rows = []
    for level in LEVELS:
        own = placed[(placed.preset == TUNED) & (placed.setting == level)]
        found = own.pivot(index=SEED, columns="algo", values=ACCURACY)
        found = found.reindex(columns=[*ALGOS, "pooled_reference", "majority"])
        gap, closed = (found.pooled_reference - found.fedavg).dropna(), (found.amfl_p - found.fedavg).dropna()
        share = f"{compute_mean(closed) / compute_mean(gap):.0%}" if len(gap) and len(closed) else NOT_RUN
        others = found.amfl_p - found.fine_tuning, found.local_only, found.majority
        rows.append([level, show(gap), share, *map(show, others)])
    names = ("pooled reference minus FedAvg, points", "of it closed by AMFL-P", "AMFL-P minus Fine-Tuning, points")
    return Table(["heterogeneity", *names, "local training (%)", "majority class (%)"], rows)


def find_majority(frame: pd.DataFrame, preset: str = TUNED, sensors: str = MEMBERS) -> pd.Series:
    """The majority class's accuracy by setting and seed; the data's and no algorithm's, so any run on them says it."""
    return frame[frame.preset == preset].groupby(["setting", SEED])[f"majority_of_{sensors}"].last().dropna()


def compare(numbers: pd.Series, first: tuple[Any, ...], second: tuple[Any, ...]) -> Difference:
    """The first minus the second, parts of a series by their place in its index, the last of which is the seed."""
    return compare_by_seed(*(numbers.get(place, {}) for place in (first, second)))


def tabulate_factorial(frame: pd.DataFrame) -> Table:
    """A row for each degree and start, a column a finish; FedAvg alone, local training and the majority class below."""
    rows, accuracy, majority = [], frame[ACCURACY], find_majority(frame)
    for degree in AXES["degree"]:
        for start, title in AXES["start"].items():
            found = [accuracy.get((f"start_{start}_{finish}", degree), ()) for finish in AXES["finish"]]
            rows.append([degree, title, count(*found), *map(show, found)])
        beside = {AXES["method"][each]: accuracy.get((each, degree), ()) for each in ("fedavg_alone", "local_training")}
        beside["majority class"] = majority.get(degree, ())
        rows += [[degree, title, count(found), show(found), ""] for title, found in beside.items()]
    return Table(["heterogeneity", "start", "seeds", *AXES["finish"].values()], rows)


def tabulate_differences(frame: pd.DataFrame, name: str) -> Table:
    """For each place on the axes and each pair that `tables.toml` has for the table: the difference and its verdict."""
    table, rows = TEXTS[name], []
    titles_of = AXES[table["paired"]]
    for names, titles in cross(*(AXES[axis] for axis in table["axes"])):
        place = dict(zip(table["axes"], names, strict=True))
        for pair in table["pairs"]:
            variants = [table["experiment"].format(**place, **{table["paired"]: each}) for each in pair]
            found = (frame[ACCURACY].get((variant, place["degree"]), {}) for variant in variants)
            *cells, verdict = show_difference(*found)
            if verdict and place["degree"] == measures.STRUCTURED:
                verdict = f"not judged ({verdict})"
            named = [" minus ".join(map(titles_of.get, pair))] if len(table["pairs"]) > 1 else []
            rows.append([*titles, *named, *cells, verdict])
    return Table([*table["columns"], "seeds", "verdict"], rows)


def tabulate_costs(frame: pd.DataFrame) -> Table:
    """A row for each degree, start and finish, and for local training: the means over the seeds, in thousands."""
    costs = frame[["examples_of_training", "examples_of_finish"]].dropna().astype(float)
    found = costs.assign(both=costs.sum(axis=1)).groupby(["setting", "variant"])
    shown = (found.agg(compute_mean) / 1000).map("{:,.0f}".format)
    shown.insert(0, "seeds", found.size().astype(str))
    variants = {f"start_{start}_{finish}": titles for (start, finish), titles in cross(AXES["start"], AXES["finish"])}
    variants["local_training"] = ["local training", ""]
    rows = [
        [degree, *titles, *shown.T.get((degree, variant), NO_CELLS)]
        for degree in AXES["degree"]
        for variant, titles in variants.items()
    ]
    columns = ["before the finish", "in the finish", "both"]
    return Table(["heterogeneity", "start", "finish", "seeds", *columns], rows)


def name_steps(few_shot: pd.Series) -> dict[int, str]:
    """After how many steps runs are measured, and the titles of the columns."""
    return {each: "1 step" if each == 1 else f"{each} steps" for each in sorted(few_shot.index.unique("steps"))}


def tabulate_few_shot(frame: pd.DataFrame, few_shot: pd.Series) -> Table:
    """A row for each number of readings, group of sensors and start, a column a number of steps."""
    rows, steps = [], name_steps(few_shot)
    for (readings, sensors), (_, title) in cross(AXES["readings"], AXES["sensors"]):
        for start, start_title in AXES["few_shot_start"].items():
            found = [few_shot.get((f"few_shot_{start}", readings, sensors, each), ()) for each in steps]
            if any(map(len, found)):
                rows.append([readings, title, start_title, count(*found), *map(show, found)])
        beside = {"local training": frame[f"accuracy_of_{sensors}"].dropna().get(("few_shot_local", readings), ())}
        beside["majority class"] = find_majority(frame, sensors=sensors).get(readings, ())
        blank = [""] * (len(steps) - 1)
        rows += [[readings, title, name, count(found), *blank, show(found)] for name, found in beside.items()]
    return Table(["readings", "sensors", "start", "seeds", *steps.values()], rows)


def tabulate_few_shot_gains(few_shot: pd.Series) -> Table:
    """For each number of readings, group of sensors and pair of starts: the differences by steps and their verdicts."""
    rows, steps = [], name_steps(few_shot)
    for (readings, sensors), (_, title) in cross(AXES["readings"], AXES["sensors"]):
        for pair in TEXTS["pairs"]["few_shot_start"]:
            places = ([(f"few_shot_{start}", readings, sensors, each) for start in pair] for each in steps)
            found = [compare(few_shot, *place) for place in places]
            starts = " minus ".join(map(AXES["few_shot_start"].get, pair))
            seeds = show_range(each.count for each in found)
            rows.append([readings, title, starts, seeds, *(each.describe() for each in found)])
    return Table(["readings", "sensors", "starts", "seeds", *steps.values()], rows)


def tabulate_ablations(frame: pd.DataFrame) -> Table:
    """A row for each change, the accuracy and what it changes."""
    accuracy = frame[ACCURACY]
    base = accuracy.get(("start_maml_resources", TABLE_1_LEVEL), {})
    rows = [["AMFL-P", count(base), show(base), "", ""]]
    for name, title in AXES["ablation"].items():
        found = accuracy.get((f"ablation_{name}", TABLE_1_LEVEL), {})
        difference, _, verdict = show_difference(found, base)
        rows.append([title, count(found), show(found), difference, verdict])
    beside = {"local training": accuracy.get(("local_training", TABLE_1_LEVEL), ())}
    beside["majority class"] = find_majority(frame).get(TABLE_1_LEVEL, ())
    rows += [[title, count(found), show(found), "", ""] for title, found in beside.items()]
    return Table(["AMFL-P with", "seeds", "accuracy (%)", "minus AMFL-P, points", "verdict"], rows)


def tabulate_defaults(frame: pd.DataFrame) -> Table:
    """A row for each data set: the algorithms' accuracies, and what AMFL-P's start gains on random weights."""
    rows, majority = [], find_majority(frame, measures.DEFAULTS)
    starts = frame[["start_gain", "start_change"]].dropna()
    for data, title in AXES["data"].items():
        found = [frame[ACCURACY].get((f"defaults_{algo}", data), ()) for algo in AXES["default"]]
        gain, change = (starts[each].get(("defaults_amfl_p", data), {}) for each in starts)
        start = [compare_by_seed(gain, dict.fromkeys(gain.keys(), 0)).describe()]
        start.append(f"{min(change):.1%}" if len(change) else NOT_RUN)
        used = "yes" if data in CHOICE["chosen_on"] else "no"
        rows.append([title, used, count(*found), *map(show, (*found, majority.get(data, ()))), *start])
    return Table(["data", "chosen on it", "seeds", *AXES["default"].values(), "majority class", *START_COLUMNS], rows)


def tabulate_default_pairs(frame: pd.DataFrame) -> Table:
    """A row for each data set: AMFL-P with each of the others, and whether the simpler fine-tuner meets the demand."""
    rows, pairs = [], TEXTS["pairs"]["default"]
    for data, title in AXES["data"].items():
        places = ([(f"defaults_{algo}", data) for algo in pair] for pair in pairs)
        rows.append([title, *(compare(frame[ACCURACY], *place).describe() for place in places)])
    return Table(["data", *(f"{' minus '.join(map(AXES['default'].get, pair))}, points" for pair in pairs)], rows)


def say_demand(frame: pd.DataFrame) -> str:
    """Whether AMFL-P's defaults have local training's mean accuracy everywhere they are to; if not, where and by what.

    Over the seeds that both have.
    """
    pairs = {data: [(f"defaults_{algo}", data) for algo in ("amfl_p", "local_only")] for data in CHOICE["demanded"]}
    leads = {AXES["data"][data]: compare(frame[ACCURACY], *pair).mean for data, pair in pairs.items()}
    missed = [f"{-100 * lead:.2f} points on {data}" for data, lead in leads.items() if lead and lead < 0]
    absent = [data for data, lead in leads.items() if lead is None]
    verdict = f"not met: it is missed by {'; '.join(missed)}" if missed else "met in the means of these runs"
    left = f" Not run: {'; '.join(absent)}." if absent else ""
    return f"At least local training's accuracy everywhere: {verdict}.{left}"


PAPER = Paper(
    "amfl_p",
    build_amfl_p_report,
    presets=SOURCES,
    claims=CLAIMS,
    further=FURTHER,
    draw=draw_amfl_p_figures,
    beside=compare_printed,
    further_metrics=STEPS,
    kept_files=(CLIENTS_FILE, FINE_TUNING_FILE),
)
