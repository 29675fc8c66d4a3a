"""The points of a search space that trials take: the settings as they are, then others that lie evenly."""

import itertools
from collections.abc import Callable

from launch.sweeps.tuning.even_points import iterate_even_points
from launch.sweeps.tuning.search_space import SearchSpace, Settings


def draw_points(
    space: SearchSpace,
    number: int,
    seed: int = 0,
    first: Settings | None = None,
    simplify: Callable[[Settings], Settings] = dict,
) -> tuple[Settings, ...]:
    """Different points of a space of choices and ranges, spread evenly; all of them if it has no more than `number`.

    The first are the same for any larger number, and on every machine.

    Args:
      space: a space without settings has one point, which has none either.
      number: how many points, at least 1.
      seed: other seeds give other points.
      first: the first point, as `find_nearest_point` finds that of the settings which a run has anyway; None: any.
      simplify: (point) -> the same without what does nothing there; points that are the same then are one.
    """
    own = () if first is None else (first,)
    found: list[Settings] = []
    for point in map(simplify, itertools.chain(own, iterate_even_points(space, seed))):
        if point not in found:
            found.append(point)
        if len(found) == number:
            break
    return tuple(found)
