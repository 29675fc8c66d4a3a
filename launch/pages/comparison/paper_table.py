"""Writes the groups' results as a table for a paper: LaTeX with booktabs, Markdown, or CSV. Imports no TensorFlow."""

import csv
import io
import pathlib
import re
from collections.abc import Callable, Sequence

from files.writing import write_text
from launch.console.shown_text import encode_cell, escape_hidden, escape_markdown, format_markdown_table
from launch.pages.comparison.results import Ranking, describe_time
from launch.pages.comparison.seed_statistics import LEVEL, Difference, Estimate
from launch.runs.tables import format_cell
from launch.runs.task_columns import format_value

MAKER = "launch.compare"
CSV_COLUMNS = (
    *("group", "metric", "at", "seeds", "mean", "low", "high"),
    *("baseline", "pairs", "difference", "difference_low", "difference_high"),
)
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

    Trivial rows come last; none of them is the best.

    Raises:
      OSError: it cannot be written.
    """
    write_text(path, FORMATS[path.suffix](rankings))


def is_our_table(text: str) -> bool:
    """Whether a file's text is a table that this module wrote."""
    return text.startswith(",".join(CSV_COLUMNS)) or MAKER in text.partition("\n")[0]


def format_latex(rankings: Sequence[Ranking]) -> str:
    """A tabular with the lines of booktabs; the best mean of each metric is bold."""
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
    """A table of Markdown; the best mean of each metric is bold."""
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
            is_best = result is ranking.results[0] and len(ranking.results) > 1
            cells.append(mark(estimate) if is_best else estimate)
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
        f"Differences are to {escape_hidden(first.baseline)}, by seed.",
        *([ON_TRIVIAL] if any(ranking.trivial for ranking in rankings) else []),
    ]


def escape_latex(text: str) -> str:
    """`text` as LaTeX shows it."""
    return "".join(_LATEX.get(letter, letter) for letter in escape_hidden(text))
