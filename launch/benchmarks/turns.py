"""Programs take turns, so that a slow minute of the machine slows all of them alike."""

from collections.abc import Callable, Mapping
from typing import TypeVar

T = TypeVar("T")


def time_in_turns(
    runs: Mapping[str, Callable[[], T]],
    repeats: int,
    report: Callable[[str], None],
    get_seconds: Callable[[T], float] = float,
    warm_ups: Mapping[str, Callable[[], T]] | None = None,
) -> dict[str, list[T]]:
    """Calls each function once to warm up, then all in turn, `repeats` times; returns what they return in the turns.

    Args:
      runs: by name; each runs its program once and returns the seconds, or what `get_seconds` gets them from.
      repeats: how many turns.
      report: gets a line on each turn.
      get_seconds: from what the functions return.
      warm_ups: what to call to warm up, by name; None for the functions themselves.
    """
    for name, warm_up in (warm_ups or runs).items():
        report(f"warm-up: {name} {get_seconds(warm_up()):.2f} s")
    results: dict[str, list[T]] = {name: [] for name in runs}
    for repeat in range(1, repeats + 1):
        for name, run in runs.items():
            results[name].append(run())
        latest = ", ".join(f"{name} {get_seconds(given[-1]):.2f} s" for name, given in results.items())
        report(f"repeat {repeat}/{repeats}: {latest}")
    return results
