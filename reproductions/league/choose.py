"""`python -m reproductions.league.choose` makes the trials of the league's methods and keeps the best of each.

It makes every search of `reproductions/league/searches.py`, those of one problem together: each method has as many
trials, on the same seeds, which are not reported. The trial with the highest mean of the clients' own validation
accuracy gives the experiment its settings. All trials go into docs/results/tuning/league.csv, which
`reproductions/league/experiments.py` reads; it is written after each problem, and what is known of others stays.
Finished runs are skipped, so the same command goes on where it was stopped.
`launch.sweep --experiments='league/*_league_*'` then makes the reported runs.

Exit codes: 0 done, 1 some runs failed, 2 the request was wrong, 130 stopped by Ctrl-C.
"""

import dataclasses
import fnmatch
import sys
from collections.abc import Sequence

from launch.command_line import format_command_help, list_fields, parse_flags, run_main
from launch.progress import say
from launch.settings.errors import FlagError
from launch.settings.experiments import list_searches
from launch.stop_signals import leave
from launch.sweeps.jobs import JobsFlags
from launch.tuning.method_choice import keep_trials, make_trials
from launch.tuning.request import Request, parse_request
from reproductions.league.experiments import TABLE, split_name
from tff_algos.settings.config_fields import setting

USAGE = "python -m reproductions.league.choose [--searches=<pattern>] [--flag=value ...]"


@dataclasses.dataclass(frozen=True)
class Flags(JobsFlags):
    """The flags of this command."""

    searches: str = setting("*", "Which searches, a pattern of their names.")
    runs_dir: str = setting("runs/league_trials", "Folder for the run folders.")


def find_requests(pattern: str, runs_dir: str) -> dict[str, dict[str, Request]]:
    """What the league's searches ask for, by problem and experiment.

    Raises:
      FlagError: none is like the pattern, or one cannot be made.
    """
    found: dict[str, dict[str, Request]] = {}
    for search in list_searches().values():
        if search.paper == "league" and fnmatch.fnmatchcase(search.name, pattern):
            arguments = [f"--search={search.full_name}", f"--runs_dir={runs_dir}", f"--output={runs_dir}/trials.csv"]
            found.setdefault(split_name(search.name)[1], {})[search.name] = parse_request(arguments)
    if not found:
        raise FlagError(f"--searches={pattern}: like no search of the league, such as ditto_league_rotated")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    return run_main(_run, lambda: format_command_help(USAGE, list_fields(Flags)), argv)


def _run(arguments: Sequence[str]) -> int:
    values = parse_flags(Flags, arguments)
    failures = []
    for problem, requests in find_requests(values.searches, values.runs_dir).items():
        say(f"problem  {problem}: {len(requests)} methods")
        rows, failed = make_trials(requests, values.jobs)
        keep_trials(TABLE, rows)
        failures += failed
    if failures:
        print(f"{len(failures)} runs failed:", *failures, sep="\n  ", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    leave(main())
