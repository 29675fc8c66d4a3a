"""Points that lie evenly in a search space, however few are taken: Halton's sequence with its digits exchanged.

SciPy has this sequence, too, but its numbers may change from version to version, and a search that goes on must find
the points that it began with.
"""

import math
import random
from collections.abc import Iterator

from launch.sweeps.tuning.search_space import INT, LOG, Choices, Range, SearchSpace, Settings

NUM_DIGITS = 32  # of a coordinate: in the base 2 they are worth 2e-10
# A space is exhausted when, for each point that was found and this many beside, a hundred in turn were none new.
SPARE_POINTS, MISSES_A_POINT = 10, 100


def iterate_even_points(space: SearchSpace, seed: int = 0) -> Iterator[Settings]:
    """Different points of the space; it ends where there are no more. Of any few of the first, each part has its share.

    What has fewer values gets the smaller base, whose turns are the shortest: of two choices each comes in every second
    point, or in every second of three.
    """
    names = sorted(space, key=lambda name: _count_values(space[name]))
    exchanges = {name: _draw_exchanges(base, seed) for name, base in zip(names, _iterate_primes(), strict=False)}
    found: set[tuple[str, ...]] = set()
    index = misses = 0
    while misses < MISSES_A_POINT * (len(found) + SPARE_POINTS):
        point = {name: _pick(searched, _compute_share(index, exchanges[name])) for name, searched in space.items()}
        index += 1
        if (key := tuple(point.values())) in found:
            misses += 1
            continue
        misses = 0
        found.add(key)
        yield point


def _count_values(searched: Choices | Range) -> float:
    if not isinstance(searched, Range):
        return len(searched)
    return searched.high - searched.low + 1 if searched.kind == INT else math.inf


def _iterate_primes() -> Iterator[int]:
    primes: list[int] = []
    number = 2
    while True:
        if all(number % prime for prime in primes):
            primes.append(number)
            yield number
        number += 1


def _draw_exchanges(base: int, seed: int) -> list[list[int]]:
    """For each digit behind the point, the digits by which 0 to base - 1 are replaced.

    Without that the first points of two large bases would lie on a line.
    """
    # Of `random`, this alone is promised to stay the same: numbers of a seed, and no shuffle.
    rng = random.Random(f"{seed}/{base}")
    return [sorted(range(base), key=lambda _: rng.random()) for _ in range(NUM_DIGITS)]


def _compute_share(index: int, exchanges: list[list[int]]) -> float:
    """The number in [0, 1) whose digits behind the point are those of the index, the last one first, exchanged."""
    share, unit = 0.0, 1.0
    for exchanged in exchanges:
        index, digit = divmod(index, len(exchanged))
        unit /= len(exchanged)
        share += exchanged[digit] * unit
    return min(share, math.nextafter(1, 0))


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
