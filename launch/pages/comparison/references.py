"""What runs should be compared with on the same data, and how to train what is missing: all with FedAvg.

Personal and clustered methods also with local training, FedAvg with fine-tuning, and a model for each known kind of
client, where the kinds are known. Imports no TensorFlow.
"""

import itertools
import os
import pathlib
import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from launch.pages.comparison.compared_run import SEED, ComparedRun, is_on_disk
from launch.pages.comparison.groups import ALGO, DATASET, FEDAVG, find_defaults, find_differing_data, group_runs
from launch.pages.comparison.seed_statistics import LEAST_SEEDS
from launch.runs.columns import ARCHETYPE
from launch.runs.run_records import read_settings
from launch.settings.algorithms import ALGORITHMS
from launch.settings.resuming import INTERVALS, MEANS_OF_COMPUTING, PLACES, REQUESTS
from launch.settings.run_config import shared_fields
from launch.settings.run_titles import OWN_FILES

LOCAL_ONLY, FINE_TUNING, ORACLE = REFERENCES = ("local_only", "fine_tuning", "oracle")
BOUNDS = ("pooled",)  # marked as references are, and never missing
SWEEP = "python -m launch.sweep"
RUNS = "runs"
FOLDER = "references"  # of the runs, beside those that they are compared with
LEFT_OUT = PLACES | REQUESTS | MEANS_OF_COMPUTING | INTERVALS | {ALGO, SEED, DATASET, "rounds_per_evaluation"}
MOST_COMMANDS = 4


class Missing(NamedTuple):
    """What some runs lack beside them: in words, and the command that trains it."""

    text: str
    command: str


def find_missing(runs: Sequence[ComparedRun]) -> list[Missing]:
    """For each data on which clients got models of their own or of their cluster: the references that are missing.

    None of smoke runs, whose data are random.
    """
    splits = group_runs(runs, find_differing_data(runs))
    found = [(split, _name_missing(split.runs)) for split in splits]
    found = [(split, missing) for split, missing in found if missing]
    described = []
    for number, (split, missing) in enumerate(found[:MOST_COMMANDS]):
        where = "" if len(splits) == 1 else f" ({split.label})"
        titles = ", ".join(ALGORITHMS[name].title for name in missing)
        # Where the references go: beside the runs, but no folder outside of the working directory is named
        ending = "" if len(found) == 1 else f"_{number}"
        if len(runs) == 1:
            ending = f"_of_{pathlib.PurePath(runs[0].name).name}{ending}"
        folders = [os.path.relpath(run.path.parent) for run in runs if is_on_disk(run)]
        common = os.path.commonpath(folders) if folders else RUNS
        is_inside = not common.startswith(os.pardir)
        folder = pathlib.PurePath(common if is_inside else RUNS, f"{FOLDER}{ending}").as_posix()
        command = _spell_command(_list_fitted(split.runs), missing, folder)
        described.append(Missing(f"Missing to compare with, on the same data{where} and seeds: {titles}.", command))
    return described


def spell_baseline(runs: Sequence[ComparedRun]) -> str:
    """The sweep that trains FedAvg on the data of these runs, with their seeds and at least three.

    "" if FedAvg is among them, or their data are several.
    """
    if find_differing_data(runs) or any(FEDAVG in (run.flags.get(ALGO), run.asked.get(ALGO)) for run in runs):
        return ""
    seeds = {int(run.flags[SEED]) for run in runs}
    further = (seed for seed in itertools.count() if seed not in seeds)
    seeds |= set(itertools.islice(further, max(0, LEAST_SEEDS - len(seeds))))
    return _spell_command(runs, {FEDAVG: sorted(seeds)}, RUNS)


def _list_fitted(runs: Sequence[ComparedRun]) -> list[ComparedRun]:
    return [run for run in runs if run.is_fitted and run.flags.get(ALGO) not in (*REFERENCES, *BOUNDS)]


def _name_missing(runs: Sequence[ComparedRun]) -> dict[str, list[int]]:
    """{algorithm: seeds} that the personal and clustered runs among these have and that it has not."""
    fitted = _list_fitted(runs)
    if not fitted or any(run.flags.get("smoke") for run in fitted):
        return {}
    has_kinds = all(ARCHETYPE in run.clients for run in fitted)
    # Local training has nothing for clients that did not train.
    has_new = any(run.flags.get("new_clients") for run in fitted)
    possible = {LOCAL_ONLY: not has_new, FINE_TUNING: True, ORACLE: has_kinds}
    seeds = {int(run.flags[SEED]) for run in fitted}
    missing = {}
    for name in REFERENCES:
        there = {int(run.flags[SEED]) for run in runs if run.flags.get(ALGO) == name}
        if name in ALGORITHMS and possible[name] and seeds - there:
            missing[name] = sorted(seeds - there)
    return missing


def _spell_command(runs: Sequence[ComparedRun], missing: Mapping[str, Sequence[int]], folder: str) -> str:
    """The sweep of the missing references, with the shared flags that all runs have and the references have not."""
    stored = read_settings(runs[0].path).flags
    flags = {
        DATASET: stored.get(DATASET, ""),
        **{name: stored[name] for name in OWN_FILES.values() if stored.get(name)},
    }
    defaults = [find_defaults({**flags, ALGO: name}) for name in missing]
    for name in (field.name for field in shared_fields() if field.name not in LEFT_OUT):
        values = {run.flags.get(name) for run in runs}
        if len(values) == 1 and (value := values.pop()) is not None and any(each[name] != value for each in defaults):
            flags[name] = value
    seeds = sorted({seed for each in missing.values() for seed in each})
    is_range = len(seeds) > 2 and seeds[-1] - seeds[0] == len(seeds) - 1
    spelled = f"{seeds[0]}-{seeds[-1]}" if is_range else ",".join(map(str, seeds))
    asked = [f"--algos={','.join(missing)}", f"--seeds={spelled}", f"--runs_dir={folder}", "--"]
    for name, value in flags.items():
        asked.append(f"--{'' if value else 'no'}{name}" if isinstance(value, bool) else f"--{name}={value}")
    return shlex.join([*SWEEP.split(), *asked])
