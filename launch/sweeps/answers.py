"""What a sweep and a search say at their end: means with intervals, and whether two differ."""

from collections.abc import Mapping

from launch.console.shown_text import format_count
from launch.pages.comparison.seed_statistics import LEAST_SEEDS, Estimate, estimate_mean, subtract_by_seed
from launch.runs.task_columns import format_value

INDENT = " " * len("results  ")


def format_estimate(estimate: Estimate, is_signed: bool = False) -> str:
    """A mean with its interval, as "0.8378 [0.7850, 0.8906]"; of a difference with signs."""

    def write(value: float) -> str:
        return f"{'+' if is_signed and value >= 0 else ''}{format_value(value)}"

    ends = "" if estimate.low is None else f" [{write(estimate.low)}, {write(estimate.high)}]"
    return f"{write(estimate.mean)}{ends}"


def describe_difference(first: Mapping, second: Mapping, sign: int) -> str:
    """The first minus the second over the seeds that both have, and whether the first is better; "" without any.

    Args:
      first, second: {seed: result}.
      sign: 1 if a larger result is better, -1 if a lower one is.
    """
    differences = subtract_by_seed(first, second)
    if not differences:
        return ""
    found = estimate_mean(differences.values())
    low, high = sorted(sign * end for end in found.ends)
    verdict = "better" if low > 0 else "worse" if high < 0 else "undecided"
    if found.count < LEAST_SEEDS:
        verdict = f"undecided, {format_count(found.count, 'seed')} cannot tell"
    return f"{format_estimate(found, is_signed=True)}: {verdict}"
