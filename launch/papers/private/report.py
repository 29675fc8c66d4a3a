"""What private updates cost: accuracy against epsilon, over the seeds. Imports no TensorFlow."""

import pathlib
import re
from collections.abc import Mapping, Sequence

from launch.papers.engine.collection import Measured, summarize
from launch.papers.engine.markdown import Report, Section, Table, format_measured, format_table
from launch.papers.engine.paper import Paper
from launch.plots.style import COLORS, STYLE, new_figure, save_figure
from launch.runs.columns import EPSILON_SPENT, TEST_ACCURACY
from launch.runs.run_records import RunRecord

NONE = "_none"
PRIVATE_RUNS = rf"fedavg_mnist_1000clients_budget(?P<budget>[0-9.]+|{NONE})"
FIGURE = "private.png"
LEGEND = (
    "FedAvg on MNIST with 1,000 clients of 50 examples, a tenth of them a round by chance. Accuracy: on the global "
    "test set at the last round, mean and sample deviation over the seeds. Epsilon hides a client more or less, at "
    "delta 1e-5; spent: at the last round, as the accountant has it."
)
COLUMNS = ("budget", "seeds", "rounds", EPSILON_SPENT, "clip_norm", TEST_ACCURACY)


def find_budget(experiment: str) -> float | None:
    """The epsilon of an experiment of PRIVATE_RUNS; None for the one without privacy."""
    budget = re.fullmatch(PRIVATE_RUNS, experiment)["budget"]
    return None if budget == NONE else float(budget)


def list_evaluated(run: RunRecord) -> list[int]:
    """The rounds in which a run was evaluated, ascending; the last one ends it, unless it is still going on."""
    return sorted(round_num for round_num, row in run.rounds.items() if TEST_ACCURACY in row)


def group_by_budget(runs: Sequence[RunRecord]) -> dict[float | None, list[RunRecord]]:
    """The runs of each epsilon, ascending, those without privacy last; runs that were never evaluated are left out."""
    groups: dict[float | None, list[RunRecord]] = {}
    evaluated = [run for run in runs if list_evaluated(run)]
    for run in sorted(evaluated, key=lambda run: run.flags["seed"]):
        groups.setdefault(find_budget(run.experiment), []).append(run)
    return dict(sorted(groups.items(), key=lambda item: (item[0] is None, item[0] or 0.0)))


def measure_accuracy(runs: Sequence[RunRecord]) -> Measured:
    """Accuracy at the last round, in per cent."""
    return summarize([100 * run.rounds[list_evaluated(run)[-1]][TEST_ACCURACY] for run in runs])


def tabulate(groups: Mapping[float | None, Sequence[RunRecord]]) -> list[list[str]]:
    """A row for each epsilon, the columns of COLUMNS."""
    rows = []
    for budget, runs in groups.items():
        last = [run.rounds[list_evaluated(run)[-1]] for run in runs]
        is_private = budget is not None
        rows.append(
            [
                f"{budget:g}" if is_private else "none",
                str(len(runs)),
                " to ".join(map(str, sorted({list_evaluated(run)[-1] for run in runs}))),
                f"{max(row[EPSILON_SPENT] for row in last):.4f}" if is_private else "",
                f"{runs[0].flags['fedavg_dp_clip_norm']:g}" if is_private else "",
                format_measured("percent", measure_accuracy(runs)),
            ]
        )
    return rows


def build_private_report(paper: Paper, runs: Sequence[RunRecord]) -> Report:
    """The table of accuracy against epsilon, and the figure."""
    rows = tabulate(group_by_budget(runs))
    lines = [[cell.replace("_", " ") for cell in line] for line in (COLUMNS, *rows)]
    text = format_table(Table(lines[0], lines[1:])) if rows else "not run"
    tables = {"results": Section("Accuracy against epsilon", Table(COLUMNS, rows), text)}
    return paper.compose_report(LEGEND, tables, [], {}, [run for run in runs if list_evaluated(run)])


def draw_private_figure(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    """Draws `private.png`: the accuracy at the last round against the budget, and each seed's way there."""
    import matplotlib
    from matplotlib.ticker import NullFormatter

    groups = group_by_budget(runs)
    with matplotlib.rc_context(STYLE):
        figure = new_figure(6.4, 4)
        ax = figure.subplots()
        budgets = [budget for budget in groups if budget is not None]
        for i, budget in enumerate(budgets):
            for run in groups[budget]:
                rows = [run.rounds[round_num] for round_num in list_evaluated(run)]
                style = {"color": COLORS[i], "linewidth": 0.9, "alpha": 0.7}
                ax.plot([row[EPSILON_SPENT] for row in rows], [100 * row[TEST_ACCURACY] for row in rows], **style)
        measured = [measure_accuracy(groups[budget]) for budget in budgets]
        errors = [each.deviation or 0.0 for each in measured]
        means = [each.mean for each in measured]
        if budgets:
            ax.errorbar(budgets, means, errors, fmt="o", color="#000000", capsize=3, label="at the last round")
            ax.set_xscale("log", base=2)
            ax.set_xticks(budgets, [f"{budget:g}" for budget in budgets])
            ax.xaxis.set_minor_formatter(NullFormatter())  # the default one writes formulas
        if None in groups:
            ax.axhline(measure_accuracy(groups[None]).mean, color=COLORS[1], linestyle="--", label="without privacy")
        if ax.lines:
            ax.legend(loc="lower right")
        ax.set(xlabel="epsilon spent (delta 1e-5, a client more or less)", ylabel="test accuracy (%)")
        ax.set_title("FedAvg on MNIST, 1,000 clients\nThin lines: runs as they spend their budget")
        return save_figure(figure, folder / FIGURE)
