"""Draws the runs as a paper prints them: curves with bands over seeds, and the differences to a baseline.

matplotlib is imported inside the functions, so that `--help` stays quick. Imports no TensorFlow.
"""

import csv
import functools
import io
import pathlib
import re
import textwrap
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from files.writing import write_text
from launch.console.shown_text import encode_cell, escape_hidden, escape_markdown, format_markdown_table
from launch.pages.comparison.compared_run import SECONDS, TOTAL_BYTES, TRIVIAL
from launch.pages.comparison.results import (
    AXIS_TITLES,
    CurvePoint,
    GroupResult,
    Ranking,
    compute_curve,
    describe_time,
    list_decided,
    read_seed_results,
)
from launch.pages.comparison.seed_statistics import LEAST_SEEDS, LEVEL, Difference, Estimate, subtract_by_seed
from launch.pages.plots.style import (
    COLORS,
    LINES,
    MARKERS,
    SIZES,
    STYLE,
    TIMES,
    count_rounds,
    count_values,
    label_names,
    new_figure,
    pick_unit,
    save_figure,
    settle_ticks,
    smooth,
    span_values,
)
from launch.runs.columns import ROUND, VIRTUAL_TIME_S
from launch.runs.tables import format_cell
from launch.runs.task_columns import format_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAKER = "launch.compare"  # by which a file of ours is known
COLUMN, PAGE = "column", "page"
WIDTHS = {COLUMN: 3.4, PAGE: 7.0}  # inches, of two-column papers
AXES = {"round": ROUND, "virtual_time": VIRTUAL_TIME_S, "bytes": TOTAL_BYTES, "seconds": SECONDS}
MOST_GROUPS = 8  # more curves cannot be told apart
MOST_MARKED_POINTS = 12
LONGEST_NAME = 44  # letters that fit into a column's width
LONGEST_TICK = 14  # letters of a name beside a row of differences; rows of longer names are known by their marks
ROW_LETTERS = 44  # of the text below the differences
LEVEL_COLOR, LEVEL_LINES = "#777777", ("--", ":")  # of trivial rows
LETTER = 0.065  # inches that a letter of the legend takes on average
SEED_STYLE = {"linewidth": 0.6, "alpha": 0.7, "markersize": 3.5, "markerfacecolor": "none"}  # of one seed
SEED_NOTE = " (thin lines, open marks: single seeds)"
PAPER_STYLE = {
    **STYLE,
    "font.size": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.linewidth": 0.6,
    "grid.linewidth": 0.4,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "savefig.dpi": 160,  # of PNG, for slides and web pages; papers take the other formats
    "pdf.fonttype": 42,  # fonts that publishers accept
}


class Drawing(NamedTuple):
    """What is asked of a figure.

    Attributes:
      width: COLUMN or PAGE.
      axis: the column that curves are drawn against, a value of `AXES`.
      window: rounds that a curve is smoothed over; 0: none.
    """

    width: str = COLUMN
    axis: str = ROUND
    window: int = 0


class _Curve(NamedTuple):
    """A group's curve with the look that it has in both panels."""

    label: str
    color: str
    line: str
    marker: str
    points: list[CurvePoint]
    runs: list[list[CurvePoint]]  # those of single runs, in place of a band of too few seeds


def write_figure(ranking: Ranking, drawing: Drawing, path: pathlib.Path) -> None:
    """Writes the figure; its ending says in which format.

    Raises:
      OSError: it cannot be written.
    """
    import matplotlib

    with matplotlib.rc_context(PAPER_STYLE):
        figure = draw_comparison(ranking, drawing)
        # Long names beside the axes change their sizes, and by these the ticks.
        settle_ticks(figure)
        save_figure(figure, path, MAKER)


def is_our_figure(path: pathlib.Path) -> bool:
    """Whether a file is a figure that this module wrote. Raises OSError if it cannot be read."""
    return MAKER.encode() in path.read_bytes()


def draw_comparison(ranking: Ranking, drawing: Drawing) -> "Figure":
    """The figure: the best groups' curves, and where there is more than one, their differences to the baseline.

    Trivial rows, if there are no more than two, are grey levels, with their values in the legend.
    """
    ranking = keep_best(ranking)
    curves = _list_curves(ranking, drawing.axis)
    others = [result for result in ranking.results if result.difference.count]
    width = WIDTHS[drawing.width]
    # Many trivial rows, as of runs with many kinds of data, are not drawn.
    trivial = ranking.trivial if len(ranking.trivial) <= len(LEVEL_LINES) else ()
    means = {row.group.label: row.estimate.mean for row in trivial}
    levels = {f"{name.replace(TRIVIAL, '')}: {format_value(mean)}": mean for name, mean in means.items()}
    names = [curve.label for curve in curves] + list(levels)
    entry = 0.55 + LETTER * max(map(len, names))  # inches of a name in the legend
    num_rows = -(-len(names) // max(1, int((width - 0.2) // entry)))
    heights = (2.0, 0.45 + 0.2 * len(others)) if others else (2.0,)
    legend = 0.18 * num_rows if len(names) > 1 else 0
    if drawing.width == PAGE:
        figure = new_figure(width, 2.4 + legend)
        panels = figure.subplots(1, len(heights), width_ratios=(3, 2)[: len(heights)], squeeze=False)[0]
    else:
        figure = new_figure(width, sum(heights) + legend + 0.1)
        panels = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    _draw_curves(panels[0], curves, ranking, drawing, levels.values())
    for (label, value), line in zip(levels.items(), LEVEL_LINES, strict=False):
        panels[0].axhline(value, color=LEVEL_COLOR, linewidth=0.8, linestyle=line, label=label)
    if others:
        _draw_differences(panels[1], others, {curve.label: curve for curve in curves}, ranking)
    if len(names) > 1:
        figure.legend(
            *panels[0].get_legend_handles_labels(),
            loc="outside upper center",
            ncols=-(-len(names) // num_rows),
            handlelength=2.2,
            columnspacing=1.2,
        )
    return figure


def keep_best(ranking: Ranking) -> Ranking:
    """The best `MOST_GROUPS` groups, the baseline among them."""
    baseline = [each for each in ranking.results if each.group.label == ranking.baseline]
    others = [each for each in ranking.results if each.group.label != ranking.baseline][: MOST_GROUPS - 1]
    return ranking._replace(results=[each for each in ranking.results if each in baseline or each in others])


def _list_curves(ranking: Ranking, axis: str) -> list[_Curve]:
    """The curves, the best first; algorithms have the colours of all plots if no two are alike."""
    own = []
    for result in ranking.results:
        colors = {run.flags.get("algo"): run.color for run in result.group.runs}
        own.append(colors.popitem()[1] if len(colors) == 1 else None)
    are_own = None not in own and len(set(own)) == len(own)
    curves = []
    # Looks go by name, so that a group keeps its own when another metric ranks the groups otherwise.
    places = {name: i for i, name in enumerate(sorted(result.group.label for result in ranking.results))}
    names = label_names((result.group.label for result in ranking.results), LONGEST_NAME)
    for i, (result, name) in enumerate(zip(ranking.results, names, strict=True)):
        place = places[result.group.label]
        draw = functools.partial(compute_curve, metric=ranking.metric.column, axis=axis, bounds=ranking.metric.bounds)
        points = draw(result.group.runs)
        # Two seeds' interval is 12.7 standard errors either side; runs that ended at different rounds have no mean.
        is_shown = result.estimate.count < LEAST_SEEDS or not points
        runs = [draw([run]) for run in result.group.runs] if is_shown and len(result.group.runs) > 1 else []
        color = own[i] if are_own else COLORS[place % len(COLORS)]
        line = LINES[(place if are_own else place // len(COLORS)) % len(LINES)]
        curves.append(_Curve(name, color, line, MARKERS[place % len(MARKERS)], points, runs))
    return curves


def _draw_curves(
    ax: "Axes", curves: Sequence[_Curve], ranking: Ranking, drawing: Drawing, levels: Collection[float]
) -> None:
    label, size = "Round", 1.0
    if drawing.axis != ROUND:
        drawn = np.array([point.x for curve in curves for point in curve.points])
        unit, size = pick_unit(drawn, SIZES if drawing.axis == TOTAL_BYTES else TIMES)
        title = {VIRTUAL_TIME_S: "Virtual time", SECONDS: "Training"}.get(drawing.axis) or AXIS_TITLES[drawing.axis]
        label = f"{title} ({unit})"
    seen: list[float] = []
    for curve in curves:
        lines = [line for line in curve.runs if line]
        for line in lines:
            xs, ys = [point.x / size for point in line], [point.mean for point in line]
            ax.plot(xs, ys, curve.marker, linestyle=curve.line, markevery=[-1], **SEED_STYLE, color=curve.color)
            seen += ys
        if not curve.points:
            if lines:
                ax.plot([], [], curve.line, color=curve.color, label=curve.label, marker=curve.marker)
            continue
        places = np.array([point.x for point in curve.points]) / size
        means = np.array([point.mean for point in curve.points])
        marks = {"marker": curve.marker, "markevery": -(-len(places) // MOST_MARKED_POINTS)}
        if drawing.window > 1:
            ax.plot(places, means, color=curve.color, linewidth=0.6, alpha=0.4)
        shown = smooth(means, drawing.window) if drawing.window > 1 else means
        ax.plot(places, shown, curve.line, color=curve.color, label=curve.label, **marks)
        known = [point for point in curve.points if point.low is not None]
        if known and not lines:
            low, high = [point.low for point in known], [point.high for point in known]
            ax.fill_between([point.x / size for point in known], low, high, color=curve.color, alpha=0.15, linewidth=0)
        seen += [end for point in curve.points for end in point.find_ends()]
    ax.set_xlabel(f"{label}{SEED_NOTE}" if any(curve.runs for curve in curves) else label)
    ax.set_ylabel(ranking.metric.title)
    if seen:
        # A near level lies inside, not on the axis's end; one that is far away would press the curves together.
        reach = (max(seen) - min(seen)) / 5
        seen += [level for level in levels if min(seen) - reach <= level <= max(seen) + reach]
    # What was measured, with a margin: an interval can be so wide that nothing else would be seen.
    ax.set_ylim(span_values(np.array(seen), ranking.metric.bounds))
    if seen and max(seen) - min(seen) >= 1 and _are_counts(ranking):
        count_values(ax)
    if drawing.axis == ROUND:
        count_rounds(ax)
    else:
        ax.set_xlim(left=0)


def _are_counts(ranking: Ranking) -> bool:
    """Whether all that was measured are whole numbers."""
    columns = [run.columns.get(ranking.metric.column) for result in ranking.results for run in result.group.runs]
    known = [column[~np.isnan(column)] for column in columns if column is not None]
    return all((values == np.round(values)).all() for values in known)


def _draw_differences(ax: "Axes", others: Sequence[GroupResult], curves: dict[str, _Curve], ranking: Ranking) -> None:
    """A dot a group with its interval, the best at the top, and a line at no difference."""
    names = label_names((result.group.label for result in others), LONGEST_NAME)
    for row, (result, name) in enumerate(zip(others, names, strict=True)):
        found, curve = result.difference, curves[name]
        if found.count < LEAST_SEEDS:
            by_seed = list(_subtract(result, ranking).values())
            ax.plot(by_seed, [row] * len(by_seed), curve.marker, **SEED_STYLE, color=curve.color)
        elif found.low is not None:
            ax.plot([found.low, found.high], [row, row], color=curve.color, linewidth=1.6)
        ax.plot(found.mean, row, curve.marker, color=curve.color, markersize=5)
    ax.axvline(0, color="#555555", linewidth=0.8, linestyle=":")
    are_short = max(map(len, names)) <= LONGEST_TICK
    ax.set_yticks(range(len(others)), names if are_short else [""] * len(others))
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(others) - 0.5, -0.5)
    ax.grid(visible=False, axis="y")
    ax.locator_params(axis="x", nbins=5)
    ax.margins(x=0.1)
    found = [result.difference for result in others]
    shown = ""
    if any(each.count >= LEAST_SEEDS and each.low is not None for each in found):
        shown += f", with {100 * LEVEL:.0f}\N{NO-BREAK SPACE}% intervals"
    if any(each.count < LEAST_SEEDS for each in found):
        shown += ", each seed a point"
    text = f"{ranking.metric.title} {describe_time(ranking.at)}, minus {ranking.baseline} (by seed{shown})"
    ax.set_xlabel(textwrap.fill(text, ROW_LETTERS))


def _subtract(result: GroupResult, ranking: Ranking) -> dict[int, float]:
    """A group's results minus the baseline's, by seed."""
    baseline = next(each.group for each in ranking.results if each.group.label == ranking.baseline)
    ours, theirs = (
        read_seed_results(group.runs, ranking.metric.column, ranking.at, ranking.metric.is_low_better)
        for group in (result.group, baseline)
    )
    return subtract_by_seed(ours, theirs)


# Writes the groups' results as a table for a paper: LaTeX with booktabs, Markdown, or CSV. Imports no TensorFlow.

CSV_COLUMNS = (
    *("group", "metric", "at", "seeds", "mean", "low", "high"),
    *("baseline", "pairs", "difference", "difference_low", "difference_high"),
)
BOLD = "Bold: better than the baseline, which at least three seeds decide; or the baseline, if it is better than all."
ON_TRIVIAL = "Trivial rows always answer with the most frequent class, without a model."
_LATEX = {letter: f"\\{letter}" for letter in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",  # the upright one needs another encoding of fonts
    "\u2013": "--",
    "\u2212": "$-$",
}


def write_paper_table(rankings: Sequence[Ranking], path: pathlib.Path) -> None:
    """Writes the table; its ending says in which format. A row a group, in the order of the first metric.

    Trivial rows come last; none of them is bold.

    Raises:
      OSError: it cannot be written.
    """
    write_text(path, FORMATS[path.suffix](rankings))


def is_our_table(text: str) -> bool:
    """Whether a file's text is a table that this module wrote."""
    return text.startswith(",".join(CSV_COLUMNS)) or MAKER in text.partition("\n")[0]


def format_latex(rankings: Sequence[Ranking]) -> str:
    """A tabular with the lines of booktabs; what is better than the baseline, and decided, is bold."""
    head, *rows = _list_cells(rankings, escape_latex, lambda text: rf"\textbf{{{text}}}", "$-$", "--")
    body = [f"{' & '.join(cells)} \\\\" for cells in (head, *rows)]
    if len(rows) > (num_groups := len(rankings[0].results)):
        body.insert(1 + num_groups, r"\midrule")
    return "\n".join(
        [
            f"% Written by {MAKER}; it needs \\usepackage{{booktabs}}.",
            *(f"% {line}" for line in _describe(rankings)),
            rf"\begin{{tabular}}{{lr{'rr' * len(rankings)}}}",
            r"\toprule",
            body[0],
            r"\midrule",
            *body[1:],
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def format_markdown(rankings: Sequence[Ranking]) -> str:
    """A table of Markdown; what is better than the baseline, and decided, is bold."""
    cells = _list_cells(rankings, escape_markdown, lambda text: f"**{text}**", "-", "-")
    notes = " ".join(map(escape_markdown, _describe(rankings)))
    return f"<!-- Written by {MAKER}. -->\n{format_markdown_table(cells, 1)}\n\n{notes}\n"


def format_csv(rankings: Sequence[Ranking]) -> str:
    """A row a group and metric, with all digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for ranking in rankings:
        for result in (*ranking.results, *ranking.trivial):
            found, difference = result.estimate, result.difference
            cells = [result.group.label, ranking.metric.column, ranking.at, found.count, *found[:3]]
            cells += [ranking.baseline, difference.count, *difference[:3]]
            writer.writerow([encode_cell(cell) if isinstance(cell, str) else format_cell(cell) for cell in cells])
    return text.getvalue()


FORMATS: dict[str, Callable[[Sequence[Ranking]], str]] = {
    ".tex": format_latex,
    ".csv": format_csv,
    ".md": format_markdown,
}


def _list_cells(
    rankings: Sequence[Ranking], escape: Callable[[str], str], mark: Callable[[str], str], minus: str, none: str
) -> list[list[str]]:
    """The cells of the head and of the rows: group, seeds, then a metric's mean and its difference to the baseline."""
    head = ["", "Seeds"]
    for ranking in rankings:
        head += [escape(ranking.metric.title), escape(f"minus {ranking.baseline}")]
    rows = []
    decided = [result for ranking in rankings for result in list_decided(ranking)]
    trivial = {row.group.label: row for ranking in rankings for row in ranking.trivial}
    for first in (*rankings[0].results, *trivial.values()):
        cells = [escape(first.group.label), str(first.estimate.count)]
        for ranking in rankings:
            listed = (*ranking.results, *ranking.trivial)
            result = next((each for each in listed if each.group.label == first.group.label), None)
            if result is None:
                cells += [none, none]
                continue
            estimate, difference = _format_estimate(result.estimate, minus, is_signed=False), result.difference
            cells.append(mark(estimate) if any(result is each for each in decided) else estimate)
            cells.append(_format_estimate(difference, minus, is_signed=True) if difference.count else none)
        rows.append(cells)
    return [head, *rows]


def _format_estimate(estimate: Estimate | Difference, minus: str, is_signed: bool) -> str:
    """For example "0.9512 [0.9400, 0.9624]", a difference with its sign."""

    def write(value: float) -> str:
        text = format_value(abs(value))
        is_zero = not re.search("[1-9]", text)
        sign = "" if is_zero else minus if value < 0 else "+" if is_signed else ""
        return f"{sign}{text}"

    if estimate.low is None:
        return write(estimate.mean)
    return f"{write(estimate.mean)} [{write(estimate.low)}, {write(estimate.high)}]"


def _describe(rankings: Sequence[Ranking]) -> list[str]:
    """What the numbers are, in sentences."""
    first = rankings[0]
    return [
        f"Mean over the seeds {describe_time(first.at)}, in brackets its {100 * LEVEL:.0f} % interval (Student's t).",
        f"Differences are to the baseline, {escape_hidden(first.baseline)}, by seed.",
        *([BOLD] if any(len(ranking.results) > 1 for ranking in rankings) else []),
        *([ON_TRIVIAL] if any(ranking.trivial for ranking in rankings) else []),
    ]


def escape_latex(text: str) -> str:
    """`text` as LaTeX shows it."""
    return "".join(_LATEX.get(letter, letter) for letter in escape_hidden(text))
