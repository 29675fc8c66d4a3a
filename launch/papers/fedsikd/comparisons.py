"""The comparisons of which FedSiKD's claims are made: the conditions with their texts, and the margins.

"Per cent" of an accuracy or a loss means points in the paper. Where one of its sentences is vague ("similar",
"minimal"), the margin is ours and stands in the rule.
"""

import math
from collections.abc import Iterable, Sequence

from launch.papers.engine.collection import Cell
from launch.papers.engine.conditions import Condition, differs, exceeds, gains_more, near
from launch.papers.fedsikd.measures import (
    CONTROL,
    DATA_NAMES,
    FEDAVG,
    FEDSIKD,
    FIRST_ROUNDS,
    FL_HC,
    LAST_ROUND,
    NAMES,
    RANDOM_CLUSTER,
)
from launch.runs.columns import TEST_ACCURACY, TEST_LOSS

OTHERS = (FL_HC, RANDOM_CLUSTER, FEDAVG)
TITLES = {**NAMES, CONTROL: "random clusters of the same sizes"}
ACCURACY, LOSS = TEST_ACCURACY, TEST_LOSS
ACCURACY_TOLERANCE = 0.05
LOSS_TOLERANCE = 0.25
SMALL_LOSS_CHANGE = 0.1
EARLY = f"rounds {FIRST_ROUNDS[0]} to {FIRST_ROUNDS[-1]}"
CLOSE = f"within {100 * ACCURACY_TOLERANCE:g} points of those"
CLOSE_LOSS = f"within {LOSS_TOLERANCE:g} of those"
HARDLY_FALLS = f"from round {FIRST_ROUNDS[0]} to {FIRST_ROUNDS[-1]} it falls by less than {SMALL_LOSS_CHANGE:g}"


def cell_of(dataset: str, alpha: str, round_num: int, metric: str = ACCURACY, algo: str = FEDSIKD) -> Cell:
    """A result, by default FedSiKD's accuracy."""
    return Cell(dataset, alpha, algo, round_num, metric)


def last_of(dataset: str, alpha: str, metric: str = ACCURACY, algo: str = FEDSIKD) -> Cell:
    """The same after the last round of the full length."""
    return cell_of(dataset, alpha, LAST_ROUND[dataset], metric, algo)


def say_setting(cell: Cell) -> str:
    """For example "MNIST, alpha 0.1"."""
    return f"{DATA_NAMES[cell.dataset]}, alpha {cell.setting}"


def say_place(cell: Cell) -> str:
    """For example "MNIST, alpha 0.1, round 5"."""
    return f"{say_setting(cell)}, round {cell.round_num}"


def is_near(cell: Cell, value: float) -> Condition:
    """The result is about what the paper's sentence says."""
    tolerance = ACCURACY_TOLERANCE if cell.metric == ACCURACY else LOSS_TOLERANCE
    return near(cell, f"{NAMES[cell.algo]} {{0}} ({say_place(cell)})", value, tolerance)


def beats(cell: Cell, other: str, by: float = 0.0) -> Condition:
    """More accuracy, or less of anything else, than another in the same place, by more than `by`."""
    rival = cell._replace(algo=other)
    is_more = cell.metric == ACCURACY
    mine, theirs = ("{0}", "{1}") if is_more else ("{1}", "{0}")
    text = f"{TITLES[cell.algo]} {mine}, {TITLES[other]} {theirs} ({say_place(cell)})"
    return exceeds(*((cell, rival) if is_more else (rival, cell)), text, by)


def beat(cells: Iterable[Cell], others: Iterable[str], by: float = 0.0) -> tuple[Condition, ...]:
    """Each cell beats each of the others."""
    others = tuple(others)
    return tuple(beats(cell, other, by) for cell in cells for other in others)


def lead_early(dataset: str, alphas: Iterable[str], others: Sequence[str] = OTHERS) -> tuple[Condition, ...]:
    """FedSiKD is more accurate than each of the others in each of the first five rounds."""
    return beat((cell_of(dataset, alpha, round_num) for alpha in alphas for round_num in FIRST_ROUNDS), others)


def is_ahead(other: str, cell: Cell, above: float, below: float) -> Condition:
    """What `other` has more than the cell lies between the bounds."""
    text = f"{NAMES[cell.algo]} {{1}}, {NAMES[other]} {{0}} ({say_place(cell)})"
    return differs(cell._replace(algo=other), cell, text, above, below)


def changes(cell: Cell, first: int, above: float = 0.0, below: float = math.inf) -> Condition:
    """The result at the cell's round minus that at round `first` lies between the bounds."""
    where = f"{say_setting(cell)}, rounds {first} and {cell.round_num}"
    text = f"{NAMES[cell.algo]} {{1}}, then {{0}} ({where})"
    return differs(cell, cell._replace(round_num=first), text, above, below)


def falls(cell: Cell, first: int) -> Condition:
    """The result at the cell's round is smaller than that at round `first`."""
    return changes(cell, first, above=-math.inf, below=0)


def grows_more(cell: Cell, first: int, other: str) -> Condition:
    """The result rises more from round `first` on than another's."""
    where = f"{say_setting(cell)}, rounds {first} to {cell.round_num}"
    pairs = [(each._replace(round_num=first), each) for each in (cell, cell._replace(algo=other))]
    text = f"{NAMES[cell.algo]} {{0}} to {{1}}, {NAMES[other]} {{2}} to {{3}} ({where})"
    return gains_more(*pairs, text)


def others_lose_ground(dataset: str, alpha: str, allowed: float) -> tuple[Condition, ...]:
    """The loss of the other algorithms does not fall by `allowed` or more over the first five rounds."""
    fifth = FIRST_ROUNDS[-1]
    return tuple(changes(cell_of(dataset, alpha, fifth, LOSS, other), 1, above=-allowed) for other in OTHERS)
