"""The league at equal costs: what each method's trials have chosen on each problem, as they were kept.

An experiment is called `<method>_<equal>_<problem>`, for example `ditto_seconds_har`. All of it comes from the table of
trials, which `python -m reproductions.contests.run --keep` writes when a contest has ended.

Expected: no paper has this comparison; what was expected before the first run stands in predictions.toml.
Command: `python -m reproductions.contests.run --problems=<problem> --equal=<seconds|bytes|rounds> --keep`.
"""

import pathlib
from collections import Counter
from collections.abc import Iterable

from launch.runs.tables import iterate_records
from launch.settings.experiments import Experiment, make_experiment, ours
from reproductions.engine.collection import FOLDER

TRIALS = "docs/results/tuning/contests.csv"  # as texts name the table
TABLE = FOLDER.parent / TRIALS
COLUMNS = (
    *("experiment", "title", "trial", "settings", "short runs", "whole runs"),
    *("chosen", "searched", "arguments", "limits", "why out"),
)
CHOSEN = "yes"
EQUAL = ("seconds", "bytes", "rounds")
_PER_SEED = "the mean of what FedAvg takes; each run has what FedAvg took on its seed"
_LIMITS = {
    "seconds": _PER_SEED,
    "bytes": f"{_PER_SEED}; of device seconds ten times that, where they are limited as well",
    "rounds": "as many as FedAvg has",
}


def name_experiment(method: str, equal: str, problem: str) -> str:
    """The experiment of a method in a contest."""
    return f"{method}_{equal}_{problem}"


def split_name(experiment: str) -> tuple[str, str, str]:
    """(method, equal, problem) of an experiment; ValueError for another name."""
    for equal in EQUAL:
        method, found, problem = experiment.partition(f"_{equal}_")
        if found:
            return method, equal, problem
    raise ValueError(f"{experiment}: expected <method>_<{'|'.join(EQUAL)}>_<problem>")


def split_argument(argument: str) -> tuple[str, str]:
    """(name, value) of a flag as it is typed; one without a value is true."""
    name, given, value = argument.removeprefix("--").partition("=")
    return name, value if given else "True"


def read_trials(path: pathlib.Path) -> list[dict[str, str]]:
    """The rows of the table; none where there is no such file."""
    return list(iterate_records(path.read_text(encoding="utf-8").splitlines(keepends=True))) if path.is_file() else []


def list_rows(trials: Iterable[dict[str, str]]) -> list[Experiment]:
    """An experiment for each method that has a result in a contest."""
    trials = list(trials)
    counts = Counter(row["experiment"] for row in trials)
    found = []
    for row in (row for row in trials if row["chosen"]):
        _, equal, problem = split_name(row["experiment"])
        chosen, arguments, limits = (
            dict(map(split_argument, row[name].split())) for name in ("settings", "arguments", "limits")
        )
        found.append(
            make_experiment(
                row["experiment"],
                f"{row['title']} in the league at equal {equal}, on {problem}.",
                ours("the problem, and what all methods have alike (contests.toml)", **arguments),
                ours(_LIMITS[equal], **limits),
                ours(f"the best of {counts[row['experiment']]} trials on validation examples ({TRIALS})", **chosen),
                printed="nothing; no paper has this comparison.",
            )
        )
    return found


EXPERIMENTS = list_rows(read_trials(TABLE))
