"""Keeps what a contest gave: its trials in the table that the experiments are read from, and its runs in an archive."""

import pathlib
from collections.abc import Mapping, Sequence

from launch.contests.contest import Outcome
from launch.contests.contest_runs import END
from launch.contests.outcome import Entered
from launch.runs.columns import METRICS_FILE
from launch.runs.run_archive import Kept, archive_runs, open_runs
from launch.runs.run_records import RunPath, RunRecord, find_run_dirs, read_rounds, read_settings
from launch.runs.tables import write_table
from launch.settings.flags import parse_config
from launch.settings.run_config import find_algorithm, find_idle, flag_values
from launch.sweeps.tuning.search_space import Settings, format_search, format_settings
from reproductions.contests.contests import title_methods
from reproductions.contests.experiments import CHOSEN, COLUMNS, name_experiment, read_trials, split_argument, split_name
from reproductions.engine.collection import FOLDER
from reproductions.engine.paper import ALWAYS_KEPT
from tff_algos.settings.config_fields import format_value

# What the tables read beside what all do: other tasks' metrics.
KEPT = Kept("|".join([*ALWAYS_KEPT, "(client_)?(test|validation)_.*"]))
ARCHIVE = FOLDER.parent / "docs" / "results" / "contests.zip"


def keep_trials(outcome: Outcome, equal: str, path: pathlib.Path) -> None:
    """Writes the table, in which the rows of this contest are replaced."""
    titles = title_methods(outcome)
    rows = [row for each in outcome.entered for row in _list_trials(each, outcome, equal, titles)]
    contest = (equal, outcome.problem.name)
    before = [row for row in read_trials(path) if split_name(row["experiment"])[1:] != contest]
    ordered = sorted([*before, *rows], key=lambda row: (row["experiment"], int(row["trial"])))
    write_table(path, COLUMNS, [[row[column] for column in COLUMNS] for row in ordered])


def _list_trials(entered: Entered, outcome: Outcome, equal: str, titles: Mapping[str, str]) -> list[dict[str, str]]:
    method, rows = entered.method, []
    for trial in entered.trials:
        # What no run was finished with is no experiment; the table says why.
        is_chosen = bool(entered.runs) and trial.settings == entered.chosen
        arguments = (f"--algo={method.algo}", *END, *outcome.problem.arguments, *method.fixed)
        cells = (
            name_experiment(method.name, equal, outcome.problem.name),
            titles[method.name],
            str(trial.number),
            " ".join(format_settings(trial.settings)),
            *(" ".join(f"{seed}:{score:.6g}" for seed, score in sorted(rung.items())) for rung in trial.scores),
            CHOSEN if is_chosen else "",
            format_search(method.space) if is_chosen else "",
            " ".join(_list_settings(method.algo, arguments, trial.settings)) if is_chosen else "",
            " ".join(outcome.limits[method.name].arguments) if is_chosen else "",
            "" if entered.runs else entered.why_out or trial.why_out,
        )
        rows.append(dict(zip(COLUMNS, cells, strict=True)))
    return rows


def _list_settings(algo: str, arguments: Sequence[str], chosen: Settings) -> list[str]:
    """The arguments, and all other settings of the algorithm, so that defaults of a later version change nothing."""
    config = parse_config([*arguments, *format_settings(chosen)])
    given = {*chosen, *(name for name, _ in map(split_argument, arguments))}
    values, known = flag_values(config), {*given, *find_idle(config)}
    further = [name for name in sorted(find_algorithm(algo).names) if name not in known]
    return [*arguments, *(f"--{name}={format_value(values[name])}" for name in further)]


def keep_runs(outcome: Outcome, equal: str, path: pathlib.Path) -> None:
    """Writes the archive, in which the runs of this contest are replaced.

    Raises:
      OSError: a file cannot be read or written.
      RunRecordError: a run cannot be read.
    """
    names = {
        each.method.name: name_experiment(each.method.name, equal, outcome.problem.name) for each in outcome.entered
    }
    before, contest = [], (equal, outcome.problem.name)
    if path.is_file():
        there = ((run_dir, run_dir.parent.name) for run_dir in find_run_dirs(open_runs(path)))
        before = [_read(run_dir, name) for run_dir, name in there if split_name(name)[1:] != contest]
    own = [_read(run, names[each.method.name]) for each in outcome.entered for run in each.runs.values()]
    archive_runs([*before, *own], path, KEPT)


def _read(run_dir: RunPath, experiment: str) -> RunRecord:
    settings = read_settings(run_dir)
    rounds = read_rounds(run_dir / METRICS_FILE)
    return RunRecord(run_dir, settings.flags, experiment, rounds, revision=settings.revision, digests=settings.digests)
