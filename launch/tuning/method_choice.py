"""A choice between several methods: the trials of their searches are made together, and stand in one table.

Each search is of choices alone, so that all its runs are known beforehand. The trial with the best mean over all seeds
is chosen, of each method. Imports no TensorFlow.
"""

import pathlib
from collections.abc import Iterable, Mapping

from launch.comparison.seed_statistics import compute_mean
from launch.runs.run_records import read_rows
from launch.runs.tables import write_table
from launch.sweeps.jobs import open_engine
from launch.sweeps.pool import run_tasks
from launch.tuning.request import Request
from launch.tuning.scored_runs import build_tasks, draw_trials
from launch.tuning.search_space import format_settings
from launch.tuning.trials import read_score

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
    for number, settings in enumerate(draw_trials(request.space, request.num_trials), 1):
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
