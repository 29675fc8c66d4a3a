"""The factorial of starts and finishes: what a start gains, and what the rule by resources loses, apart."""

from collections.abc import Mapping, Sequence

from launch.papers.amfl_p.costs import tabulate_costs
from launch.papers.amfl_p.experiments import (
    ALONE_RUNS,
    DEGREES,
    FACTORIAL_RUNS,
    FEDAVG,
    FINISH_TITLES,
    FINISHES,
    LOCAL_RUNS,
    MAML,
    RANDOM,
    RESOURCES,
    SAME,
    START_TITLES,
    STARTS,
    STRUCTURED,
    FinalResult,
    collect_majority,
    format_accuracy,
    group_by_name,
    read_curve,
    read_final,
    take_accuracies,
)
from launch.papers.engine.equivalence import compare_by_seed
from launch.papers.engine.markdown import Section, Table, format_table
from launch.runs.columns import MEMBERS
from launch.runs.run_records import RunRecord

Results = Mapping[tuple[str, ...], Mapping[int, FinalResult]]

EACH_ITS_OWN = """\
Each start with a finish, local training and FedAvg alone have the rates and the batch size that their own trials chose,
by validation accuracy at medium heterogeneity: all points of a grid, 36 each at first, and 12 for random weights, which
have no training to choose. A grid whose best rate was its smallest or largest got two more, that of local training a
number of steps, too. So cells with one finish share its rule: which devices take how many steps, and whether the rate
follows the resources. Rate and batch size are each cell's own, and so is the training of a start, which may differ
between its two finishes. Runs of one seed share the building, its splits, the first weights and the devices' resources,
and the order of a sensor's examples where the batch sizes are equal. Random: the weights before the first round.
"""
HOW_JUDGED = """\
The same rule of finishing, each with its own tuned rate and batch: what a start gains with what suits it. MAML stands
for AMFL-P's whole training, whose weights are adaptive and whose Adam is the server's; FedAvg weighs by examples, and
its clients have Adam. Differences are between runs of one seed. *Win* or *loss*: the paired 95 % interval excludes 0.
*Tie*: the 90 % interval lies within 1 point either side (two one-sided tests). Both: the difference is there, but below
a point. *Undecided*: neither. The intervals are those of each comparison alone. `structured` was made to have what a
start can use, and is counted for no claim.
"""
FIGURE = "amfl_p_factorial.png"
STARTS_COMPARED = ((MAML, FEDAVG), (MAML, RANDOM), (FEDAVG, RANDOM))
AMFL_P, FINE_TUNING = (MAML, RESOURCES), (FEDAVG, SAME)  # the methods as the paper has them


def tabulate_factorial(runs: Sequence[RunRecord]) -> dict[str, Section]:
    """Tables by name, none without runs: accuracies, gains of the starts, losses by the rule, whole methods, costs."""
    results = group_by_name(runs, FACTORIAL_RUNS, read_final)
    local, alone = (group_by_name(runs, pattern, read_final) for pattern in (LOCAL_RUNS, ALONE_RUNS))
    if not results:
        return {}
    gains, accuracies = tabulate_gains(results), tabulate_accuracies(results, local, alone)
    figure = f"\n\n![Start and finish: accuracy against steps]({FIGURE})" if collect_factorial_curves(runs) else ""
    return {
        "factorial": Section(
            "Start and finish, each with its own tuned rate and batch: accuracy (%) at the end",
            accuracies,
            f"{EACH_ITS_OWN}\n{format_table(accuracies)}{figure}",
        ),
        "factorial_starts": Section(
            "What a start gains, points: the same rule of finishing, each with its own tuned rate and batch",
            gains,
            f"{HOW_JUDGED}\n{format_table(gains)}",
        ),
        "factorial_rules": Section(
            "What the rule by resources changes, points: one kind of start, each with its own tuned rates and batch",
            tabulate_losses(results),
        ),
        "factorial_methods": Section(
            "AMFL-P as a whole, points: each method as tuned", tabulate_methods(results, local, alone)
        ),
        "factorial_costs": Section(
            "Energy of all devices together: steps times batch, in thousands of examples",
            tabulate_costs(runs),
        ),
    }


def collect_factorial_curves(runs: Sequence[RunRecord]) -> dict[tuple[str, ...], dict[int, dict[int, float]]]:
    """{(start, finish, degree): {steps: {seed: accuracy}}} of the runs that measured it.

    A random start's accuracy is that from random weights: its run's model is of the one round that a run must have.
    """
    by_cell: dict[tuple[str, ...], dict[int, dict[int, float]]] = {}
    curves: dict = group_by_name(runs, FACTORIAL_RUNS, read_curve)
    for (start, finish, degree), by_seed in curves.items():
        by_step = by_cell.setdefault((start, finish, degree), {})
        for seed, rows in by_seed.items():
            for row in rows:
                if row.group == MEMBERS:
                    by_step.setdefault(row.steps, {})[seed] = row.random if start == RANDOM else row.trained
    return by_cell


def tabulate_accuracies(results: Results, local: Results, alone: Results) -> Table:
    """A row for each degree and start, a column a finish; FedAvg alone, local training and the majority class below."""
    rows = []
    for degree in DEGREES:
        for start in STARTS:
            by_finish = [take_accuracies(results.get((start, finish, degree), {})) for finish in FINISHES]
            counts = sorted({len(each) for each in by_finish})
            rows.append([degree, START_TITLES[start], " to ".join(map(str, counts)), *map(format_accuracy, by_finish)])
        here = [by_seed for key, by_seed in results.items() if key[-1] == degree]
        beside = {
            "FedAvg alone": take_accuracies(alone.get((degree,), {})),
            "local training": take_accuracies(local.get((degree,), {})),
            "majority class": collect_majority(here),
        }
        for name, by_seed in beside.items():
            rows.append([degree, name, str(len(by_seed)), format_accuracy(by_seed), ""])
    return Table(["heterogeneity", "start", "seeds", *(FINISH_TITLES[finish] for finish in FINISHES)], rows)


def tabulate_gains(results: Results) -> Table:
    """For each degree and finish, each pair of starts."""
    rows = []
    for degree in DEGREES:
        for finish in FINISHES:
            for first, second in STARTS_COMPARED:
                pair = (results.get((start, finish, degree), {}) for start in (first, second))
                names = f"{START_TITLES[first]} minus {START_TITLES[second]}"
                rows.append([degree, FINISH_TITLES[finish], names, *_compare(*pair, degree)])
    return Table(["heterogeneity", "finish", "starts", "difference", "seeds", "verdict"], rows)


def tabulate_losses(results: Results) -> Table:
    """For each degree and start, the finish by resources minus the same finish for all."""
    rows = []
    for degree in DEGREES:
        for start in STARTS:
            pair = (results.get((start, finish, degree), {}) for finish in (RESOURCES, SAME))
            rows.append([degree, START_TITLES[start], *_compare(*pair, degree)])
    return Table(["heterogeneity", "start", "by resources minus the same for all", "seeds", "verdict"], rows)


def tabulate_methods(results: Results, local: Results, alone: Results) -> Table:
    """For each degree: AMFL-P, which is MAML by resources, minus Fine-Tuning, FedAvg the same for all, and others."""
    rows = []
    for degree in DEGREES:
        amfl_p, fine_tuning = (results.get((*method, degree), {}) for method in (AMFL_P, FINE_TUNING))
        others = {
            "Fine-Tuning": fine_tuning,
            "FedAvg alone": alone.get((degree,), {}),
            "local training": local.get((degree,), {}),
        }
        for name, other in others.items():
            rows.append([degree, f"AMFL-P minus {name}", *_compare(amfl_p, other, degree)])
    return Table(["heterogeneity", "methods", "difference", "seeds", "verdict"], rows)


def _compare(first: Mapping[int, FinalResult], second: Mapping[int, FinalResult], degree: str) -> list[str]:
    """Difference, number of seeds, verdict."""
    difference = compare_by_seed(take_accuracies(first), take_accuracies(second))
    if not difference.count:
        return [difference.format(), "", ""]
    verdict = f"not judged ({difference.verdict})" if degree == STRUCTURED else difference.verdict
    return [difference.format(), str(difference.count), verdict]
