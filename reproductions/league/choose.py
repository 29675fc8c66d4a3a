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
import pathlib
import sys
from collections.abc import Iterable, Mapping, Sequence

from launch.command_line import format_command_help, list_fields, parse_flags, run_main
from launch.console.progress import say
from launch.console.stop_signals import leave
from launch.pages.comparison.seed_statistics import compute_mean
from launch.runs.run_records import read_rows
from launch.runs.tables import write_table
from launch.settings.errors import FlagError
from launch.settings.experiments import list_searches
from launch.sweeps.jobs import JobsFlags, open_engine
from launch.sweeps.pool import run_tasks
from launch.sweeps.tuning.request import Request, parse_request
from launch.sweeps.tuning.scored_runs import build_tasks, list_trials
from launch.sweeps.tuning.search_space import format_settings
from launch.sweeps.tuning.trials import read_score
from reproductions.league.experiments import TABLE, split_name
from tff_algos.settings.config_fields import setting

COLUMNS = ("experiment", "trial", "settings", "scores", "mean", "chosen")
CHOSEN = "yes"

Trial = Mapping[str, str]  # a row of the table


def make_trials(requests: Mapping[str, Request], jobs: int | None) -> tuple[list[Trial], list[str]]:
    """Trains what is not finished; returns a row a trial, and a line for each run that failed.

    Args:
      requests: the searches by experiment, whose runs share the machine.
      jobs: runs at a time; None: what memory and cores allow.
    """
    tasks = {name: build_tasks(request) for name, request in requests.items()}
    everything = [task for each in tasks.values() for task in each.values()]
    failures = run_tasks(everything, open_engine(everything, jobs))
    rows = []
    for name, request in requests.items():
        scores = {key: read_score(task, request.objective) for key, task in tasks[name].items()}
        rows += rank_trials(name, request, scores)
    return rows, failures


def rank_trials(name: str, request: Request, scores: Mapping[tuple[int, str], float | None]) -> list[Trial]:
    """A row a trial; the one with the best mean over all seeds is chosen, the first of equals.

    Args:
      name: of the experiment.
      request: its search.
      scores: by trial and seed; None where a run failed.
    """
    rows = []
    for number, settings in list_trials(request):
        found = [scores[number, seed] for seed in request.seeds]
        mean = "" if None in found else f"{compute_mean(found):.6g}"
        shown = " ".join("" if score is None else f"{score:.6g}" for score in found)
        cells = (name, str(number), " ".join(format_settings(settings)), shown, mean, "")
        rows.append(dict(zip(COLUMNS, cells, strict=True)))
    known = [row for row in rows if row["mean"]]
    if known:
        max(known, key=lambda row: request.sign * float(row["mean"]))["chosen"] = CHOSEN
    return rows


def keep_trials(path: pathlib.Path, rows: Iterable[Trial]) -> None:
    """Writes the table, in which rows of the same experiments are replaced.

    Where all trials of an experiment have failed, what was known of it stays.
    """
    rows = list(rows)
    anew = {row["experiment"] for row in rows if row["chosen"]}
    rows = [row for row in rows if row["experiment"] in anew]
    before = [row for row in (read_rows(path) if path.is_file() else []) if row["experiment"] not in anew]
    ordered = sorted([*before, *rows], key=lambda row: (row["experiment"], int(row["trial"])))
    write_table(path, COLUMNS, [[row[column] for column in COLUMNS] for row in ordered])


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
