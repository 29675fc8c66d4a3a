"""What we aim at ourselves, beside the papers' claims: a number of runs and the bounds that it is to keep to."""

import dataclasses
import math
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

REACHED, NOT_REACHED, NOT_RUN = "reached", "not reached", "not run"


@dataclasses.dataclass(frozen=True)
class Aim:
    """One aim.

    Attributes:
      text: the aim in words.
      measure: (what was measured in the runs of one seed) -> the number that counts; a KeyError if a run is missing.
      least: the least that the number may be.
      most: the most that it may be.
      of_mean: whether the mean over the seeds is to keep to the bounds, or the number of every seed.
      form: how a number is shown.
    """

    text: str
    measure: Callable[[Any], float]
    least: float = -math.inf
    most: float = math.inf
    of_mean: bool = False
    form: str = "{:+.2f}"

    def compute_numbers(self, seeds: Mapping[int, Any]) -> dict[int, float]:
        """The number of each seed that has all its runs."""
        numbers = {}
        for seed, measured in seeds.items():
            try:
                numbers[seed] = self.measure(measured)
            except KeyError:
                # A seed that lacks one of the runs compared says nothing about the aim.
                continue
        return numbers

    def find_worst(self, numbers: Iterable[float]) -> float:
        """The number that is nearest to the bound, or farthest past it: the largest if there is no lower bound."""
        return max(numbers) if math.isinf(self.least) else min(numbers)

    def decide(self, numbers: Collection[float]) -> str:
        """REACHED, NOT_REACHED, or NOT_RUN without a number."""
        if not numbers:
            return NOT_RUN
        judged = [statistics.fmean(numbers)] if self.of_mean else numbers
        return REACHED if all(self.least <= number <= self.most for number in judged) else NOT_REACHED
