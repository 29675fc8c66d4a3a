"""Programs take turns, so that a slow minute of the machine slows all of them alike."""

from collections.abc import Callable, Mapping


def time_in_turns(
    runs: Mapping[str, Callable[[], float]], repeats: int, report: Callable[[str], None]
) -> dict[str, list[float]]:
    """Calls each function once to warm up, then all in turn, `repeats` times.

    Args:
      runs: by name; each runs its program once and returns the seconds.
      repeats: how many turns.
      report: gets a line on each turn.

    Returns:
      The seconds of the turns, by name.
    """
    for name, run in runs.items():
        report(f"warm-up: {name} {run():.2f} s")
    times_s: dict[str, list[float]] = {name: [] for name in runs}
    for repeat in range(1, repeats + 1):
        for name, run in runs.items():
            times_s[name].append(run())
        latest = ", ".join(f"{name} {given[-1]:.2f} s" for name, given in times_s.items())
        report(f"repeat {repeat}/{repeats}: {latest}")
    return times_s
