"""Points that lie evenly in a search space, however few are taken, and in which no two settings go together.

They come in blocks of eight. In each every setting has one value from each eighth of its range, and each choice its
share. Which of them meet is chosen so that settings are not correlated and points lie apart: else all trials with steps
at the end might have large learning rates, and what is due to the one would seem due to the other. SciPy's designs may
change from version to version, and a search that goes on must find the points that it began with.
"""

import functools
import itertools
import math
import operator
import random
from collections.abc import Iterator, Sequence

from launch.sweeps.tuning.search_space import INT, LOG, Choices, Range, SearchSpace, Settings

BLOCK = 8
PAIRS = tuple(itertools.combinations(range(BLOCK), 2))
NUM_STARTS = 2  # of the exchanges by which a block is made better
LEAST_TIED = 0.1  # so that points lie apart, too, where no settings are tied
TOLERANCE = 1e-9  # a block that is better by less is not: what is equal may differ by rounding
# A space is exhausted when, for each point that was found and this many beside, a hundred in turn were none new.
SPARE_POINTS, MISSES_A_POINT = 10, 100

Columns = Sequence[Sequence[float]]
Ranks = list[list[int]]  # by setting, in which eighth of its values each point of a block lies
Shape = tuple[int, ...]  # by setting, how many choices it has; 0: a range


def iterate_even_points(space: SearchSpace, seed: int = 0) -> Iterator[Settings]:
    """Different points of the space; it ends where there are no more. Of each eight, every part has its share."""
    found: set[tuple[str, ...]] = set()
    misses = 0
    for point in _iterate_all(space, seed):
        if (key := tuple(point.values())) not in found:
            misses = 0
            found.add(key)
            yield point
        elif (misses := misses + 1) >= MISSES_A_POINT * (len(found) + SPARE_POINTS):
            return


def _iterate_all(space: SearchSpace, seed: int) -> Iterator[Settings]:
    """Points that may come again: blocks, and from the first that has nothing new any points."""
    shape = tuple(0 if isinstance(searched, Range) else len(searched) for searched in space.values())
    rng = random.Random(f"{seed}/points")
    known: set[tuple[str, ...]] = set()
    for block in itertools.count():
        points = []
        for ranks in zip(*_arrange_block(shape, f"{seed}/{block}"), strict=True):
            # The first eight are the middles of their eighths.
            shares = [(rank + (rng.random() if block else 0.5)) / BLOCK for rank in ranks]
            points.append({name: _pick(space[name], share) for name, share in zip(space, shares, strict=True)})
        yield from points or [{}]
        keys = {tuple(point.values()) for point in points}
        if keys <= known:
            break
        known |= keys
    while True:
        yield {name: _pick(searched, rng.random()) for name, searched in space.items()}


@functools.lru_cache
def _arrange_block(shape: Shape, seed: str) -> Ranks:
    """The better of two blocks, each better than any in which two points have exchanged one setting's values.

    Only sums, products, quotients and roots decide, which are the same on every machine.
    """
    # Of `random`, this alone is promised to stay the same: numbers of a seed, and no shuffle.
    rng = random.Random(seed)
    found = []
    for _ in range(NUM_STARTS):
        ranks = [sorted(range(BLOCK), key=lambda _: rng.random()) for _ in shape]
        value, before = math.inf, None
        while shape and value != before:
            before = value
            for k in range(len(shape)):
                value = _exchange(shape, ranks, k)
        found.append((value, ranks))
    return _order(shape, min(found)[1])


def _order(shape: Shape, ranks: Ranks) -> Ranks:
    """The same points, each the farthest from those before, so that few of the first lie apart as well."""

    def part(i: int, j: int) -> float:
        return abs(math.prod(_part(*each, i, j) for each in zip(shape, ranks, strict=True)))

    order = [0]
    while len(order) < BLOCK:
        left = [i for i in range(BLOCK) if i not in order]
        order.append(max(left, key=lambda i: min(part(i, j) for j in order)))
    return [[own[i] for i in order] for own in ranks]


def _exchange(shape: Shape, ranks: Ranks, k: int) -> float:
    """Exchanges values of a setting where the block is better for it, and returns how it is judged: smaller is better.

    That is how much settings are tied, times how near points are in any of them.
    """
    number, own = shape[k], ranks[k]
    others = [(each, other) for i, (each, other) in enumerate(zip(shape, ranks, strict=True)) if i != k]
    columns = [_list_columns(*each) for each in others]
    tied = LEAST_TIED + sum(_tie(*pair) for pair in itertools.combinations(columns, 2))
    apart = {(i, j): math.prod(_part(*each, i, j) for each in others) for i, j in PAIRS}

    def judge() -> float:
        own_columns = _list_columns(number, own)
        crowded = sum(1 / (apart[i, j] * _part(number, own, i, j)) ** 2 for i, j in PAIRS)
        return (tied + sum(_tie(own_columns, each) for each in columns)) * crowded

    least = judge()
    for i, j in PAIRS:
        own[i], own[j] = own[j], own[i]
        if (value := judge()) < least * (1 - TOLERANCE):
            least = value
        else:
            own[i], own[j] = own[j], own[i]
    return least


def _list_columns(number: int, own: Sequence[int]) -> Columns:
    """The ranks with mean 0 and length 1; of a choice whether a point has it, for each but the last of two."""
    columns = [[2 * rank - BLOCK + 1 for rank in own]]
    if number:
        values = [rank * number // BLOCK for rank in own]
        columns = [[BLOCK * (value == each) - values.count(each) for value in values] for each in range(number)]
    lengths = [math.sqrt(sum(each * each for each in column)) or 1 for column in columns]
    unit = [[each / length for each in column] for column, length in zip(columns, lengths, strict=True)]
    return unit[:1] if number == 2 else unit


def _tie(first: Columns, second: Columns) -> float:
    """The squared correlation of two settings; with a choice, the mean over those of its values."""
    return sum(sum(map(operator.mul, a, b)) ** 2 for a in first for b in second) / (len(first) * len(second))


def _part(number: int, own: Sequence[int], i: int, j: int) -> float:
    """How far two points are apart in a setting, as the criterion MaxPro has it, that for several types of factors.

    Source: Joseph, Gul and Ba, "Designing computer experiments with multiple types of factors: the MaxPro approach"
    (Journal of Quality Technology 2020).
    """
    return (own[i] * number // BLOCK != own[j] * number // BLOCK) + 1 / number if number else own[i] - own[j]


def _pick(searched: Choices | Range, share: float) -> str:
    """The value that lies behind a share of all of them."""
    if not isinstance(searched, Range):
        return searched[int(share * len(searched))]
    low, high = searched.low, searched.high
    if searched.kind == INT:
        return searched.format_value(low + int(share * (high - low + 1)))
    if searched.kind == LOG:
        value = min(max(math.exp(math.log(low) + share * (math.log(high) - math.log(low))), low), high)
    else:
        value = low + share * (high - low)
    return searched.format_value(searched.shorten(value))
