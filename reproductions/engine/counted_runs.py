"""The runs that reports count: folders that are named after an experiment, and were made with its settings."""

import functools
from collections.abc import Iterable, Sequence
from typing import Any

from launch.runs.columns import METRICS_FILE, SUMMARY_FILE, TEST_ACCURACY
from launch.runs.data_versions import compare_like
from launch.runs.run_records import (
    RunPath,
    RunRecord,
    RunRecordError,
    find_run_dirs,
    list_other_settings,
    read_json,
    read_rounds,
    read_settings,
    resolve_experiment,
)
from launch.settings.experiments import Experiment, find_experiment
from launch.settings.run_config import flag_values

TUNED_SUFFIX = "_tuned"


def find_experiment_of(run_dir: RunPath) -> Experiment | None:
    """The experiment after which a run folder or the folder around it is named, None if there is none."""
    return find_experiment(run_dir.name) or find_experiment(run_dir.parent.name)


@functools.lru_cache(maxsize=4096)
def _find_other_settings(experiment: Experiment, flags: tuple[tuple[str, Any], ...]) -> list[str]:
    """`list_other_settings` of flags without the seed, which an experiment leaves open. Raises FlagError."""
    wanted = _resolve_once(experiment)
    return list_other_settings({**dict(flags), "seed": flag_values(wanted)["seed"]}, wanted)


_resolve_once = functools.cache(resolve_experiment)


def read_run(run_dir: RunPath, experiment: Experiment) -> RunRecord:
    """One run of an experiment.

    Raises:
      RunRecordError: its files cannot be read, or it was made with other settings than the experiment's.
      FlagError: the experiment itself is wrong.
    """
    settings = read_settings(run_dir)
    flags, data = settings.flags, settings.data
    # Runs of one experiment differ in the seed alone, so that most ask what another has asked.
    other = _find_other_settings(experiment, tuple((name, flags[name]) for name in sorted(flags.keys() - {"seed"})))
    if other:
        raise RunRecordError(f"{run_dir}: other settings than {experiment.full_name} ({'; '.join(other)})")
    try:
        rounds = read_rounds(run_dir / METRICS_FILE)
    except (OSError, ValueError, KeyError) as error:
        raise RunRecordError(f"{run_dir}: its metrics.csv cannot be read ({error})") from None
    if (run_dir / SUMMARY_FILE).exists():
        # Raises here, so that no report meets a damaged one.
        read_json(run_dir / SUMMARY_FILE)
    dataset = data.get("dataset") or flags["dataset"]
    return RunRecord(run_dir, flags, experiment.name, rounds, dataset, settings.revision, settings.digests)


def read_runs(runs_dir: RunPath) -> tuple[list[RunRecord], list[str]]:
    """The runs in `runs_dir` whose folder is named after an experiment, and a line for each that cannot be counted."""
    records, left_out = [], []
    for run_dir in find_run_dirs(runs_dir):
        try:
            if (experiment := find_experiment_of(run_dir)) is None:
                raise RunRecordError(f"{run_dir}: not named after an experiment, nor is the folder around it")
            records.append(read_run(run_dir, experiment))
        except RunRecordError as error:
            left_out.append(str(error))
    return records, left_out


def collect_runs(*runs_dirs: RunPath) -> tuple[list[RunRecord], list[str]]:
    """The runs in folders and archives, one for each experiment and seed, and a line for each that is not counted."""
    found = [read_runs(runs_dir) for runs_dir in runs_dirs]
    alike, others = leave_out_other_data([record for records, _ in found for record in records])
    chosen, duplicates = choose_runs(alike)
    return chosen, [line for _, left_out in found for line in left_out] + others + duplicates


def leave_out_other_data(runs: Sequence[RunRecord]) -> tuple[list[RunRecord], list[str]]:
    """The runs without those that got other data than most of the runs that asked for the same.

    Returns:
      The runs that may be compared with each other, and a line for each that may not.
    """
    others: dict[int, RunRecord] = {}
    for found in compare_like([({**run.flags, "dataset": run.dataset}, run.digests) for run in runs]):
        most = max(found, key=len)
        others.update({i: runs[most[0]] for members in found if members is not most for i in members})
    left_out = [f"{runs[i].path}: other data than {like.path}, with the same settings" for i, like in others.items()]
    return [run for i, run in enumerate(runs) if i not in others], left_out


def choose_runs(runs: Iterable[RunRecord]) -> tuple[list[RunRecord], list[str]]:
    """For each experiment and seed the run with the most rounds; and a line for each run left out."""
    chosen: dict[tuple[str, int], RunRecord] = {}
    left_out = []
    for run in runs:
        key = run.experiment, run.flags["seed"]
        rival = chosen.setdefault(key, run)
        if rival is run:
            continue
        # A run that was stopped and made again is the beginning of the longer one.
        longest, other = (rival, run) if len(rival.rounds) >= len(run.rounds) else (run, rival)
        same = all(
            longest.rounds.get(number, {}).get(TEST_ACCURACY) == row.get(TEST_ACCURACY)
            for number, row in other.rounds.items()
        )
        left_out.append(
            f"{other.path}: the same experiment and seed as {longest.path}, which has as many rounds or more"
            + ("" if same else " and other accuracies in those that both have")
        )
        chosen[key] = longest
    return list(chosen.values()), left_out
