"""Which runs belong together: those whose flags are alike, without versions of data or code that differ.

A version stands among a run's flags, so that all that goes by flags goes by it: groups, trivial rows, references, the
page, which groups anew by `groups.js`. Runs of several versions are never in one group, and those of several data are
not paired.

Trivial rows stand beside the groups, and no model was trained for them: what giving always the most frequent class
reaches. They follow from the runs' data alone, so each run has them in its summary.json. They belong to no group and
win against none. The page does the same in `trivial.js`. Imports no TensorFlow.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from datasets.catalog import DATASETS, DatasetOptions
from launch.pages.comparison.compared_run import EXPERIMENT, SEED, ComparedRun, list_fields
from launch.runs.columns import ROUND
from launch.runs.data_versions import DATA_FLAGS, find_code_versions, find_data_versions
from launch.settings.algorithms import ALGORITHMS
from launch.settings.run_config import shared_fields
from launch.settings.run_titles import TWIN

DATA_VERSION, CODE_VERSION = VERSIONS = ("data_version", "code_version")
MOST_NAMED = 3  # runs of each version, in a sentence
ALGO, DATASET, PARTITION = "algo", "dataset", "partition"
FEDAVG = "fedavg"  # what all are compared with
MOST_PLAIN_FLAGS = 3  # so many flags that differ are all grouped by
MISSING = "-"  # of a flag that a run has not
_OF_ALL = frozenset({EXPERIMENT, *VERSIONS, *(field.name for field in shared_fields())})  # the others are of algorithms


class Group(NamedTuple):
    """Runs with equal values of the flags that are grouped by.

    Attributes:
      label: what tells it from the other groups.
      runs: in the order of their names.
    """

    label: str
    runs: list[ComparedRun]


def find_differing_flags(runs: Sequence[ComparedRun]) -> list[str]:
    """The flags that have several values; a setting of algorithms, among the runs of one, since each has its own."""
    values: dict[tuple[str, Any], set] = {}
    for run in runs:
        for name, value in run.flags.items():
            whose = None if name in _OF_ALL else run.flags.get(ALGO)
            # In a set, False would be the same as 0, which is another value of a flag.
            values.setdefault((name, whose), set()).add((type(value) is bool, value))
    differing = list(dict.fromkeys(name for (name, _), found in values.items() if len(found) > 1))
    if EXPERIMENT in differing and ALGO in differing:
        pairs = {(run.flags.get(EXPERIMENT), run.flags.get(ALGO)) for run in runs}
        if len(pairs) == len({pair[0] for pair in pairs}) == len({pair[1] for pair in pairs}):
            # Folders that are called after their algorithm say nothing more.
            differing.remove(EXPERIMENT)
    return differing


def find_default_flags(runs: Sequence[ComparedRun]) -> list[str]:
    """Of the flags that differ, those that nobody has set: each run has what its algorithm and data set bring along."""
    defaults = [find_defaults(run.flags) for run in runs]
    return [
        name
        for name in find_differing_flags(runs)
        if all(
            name in default and run.flags[name] == default[name]
            for run, default in zip(runs, defaults, strict=True)
            if name in run.flags
        )
    ]


def find_defaults(flags: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the flags that a run has without being told, as far as they are known without a user's code."""
    algo, dataset = flags.get(ALGO), flags.get(DATASET)
    defaults = {field.name: field.default for field in list_fields(str(algo)) if field.name not in (ALGO, DATASET)}
    if algo in ALGORITHMS:
        defaults |= {name: value for name, value in ALGORITHMS[algo].shared_defaults.items() if name != DATASET}
    if dataset in DATASETS and (partition := DATASETS[dataset].find_partition(DatasetOptions())):
        defaults[PARTITION] = partition
    return defaults


def choose_grouping(runs: Sequence[ComparedRun]) -> list[str]:
    """The flags to group by: those that somebody has varied, if these are few, else the experiment or the algorithm.

    Versions, by which runs are always grouped, are not among them.
    """
    differing, unset = find_differing_flags(runs), find_default_flags(runs)
    named = [flag for flag in differing if flag not in (SEED, EXPERIMENT, *VERSIONS, *unset)]
    if 0 < len(named) <= MOST_PLAIN_FLAGS:
        return named
    first = [flag for flag in (EXPERIMENT, ALGO) if flag in differing]
    return (first or named)[:1]


def group_runs(runs: Sequence[ComparedRun], flags: Sequence[str]) -> list[Group]:
    """The runs by the values of `flags`, in the order in which they come."""
    groups: dict[tuple[str, ...], list[ComparedRun]] = {}
    for run in runs:
        groups.setdefault(tuple(_format_flag(run.flags.get(flag)) for flag in flags), []).append(run)
    return [Group(_name_group(flags, members[0]), members) for members in groups.values()]


def _name_group(flags: Sequence[str], run: ComparedRun) -> str:
    """Text speaks for itself; numbers stand behind the name of their flag."""
    if not flags:
        return "all runs"
    parts = []
    for flag in flags:
        value = run.flags.get(flag)
        if flag == ALGO:
            parts.append(run.title)
        elif isinstance(value, str) and value:
            parts.append(value)
        elif flag in run.flags:
            parts.append(f"{flag.replace('_', ' ')} {_format_flag(value)}")
    return ", ".join(parts) or MISSING


def _format_flag(value: Any) -> str:
    if value is None:
        return MISSING
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def find_mixed_flags(runs: Sequence[ComparedRun], flags: Sequence[str]) -> list[str]:
    """The flags, but for the seed, that vary inside a group of `flags`, and not by default alone."""
    skipped = {SEED, EXPERIMENT, *VERSIONS, *find_default_flags(runs)}
    found = [flag for group in group_runs(runs, flags) for flag in find_differing_flags(group.runs)]
    return [flag for flag in dict.fromkeys(found) if flag not in skipped]


def mark_versions(runs: Sequence[ComparedRun]) -> list[ComparedRun]:
    """The runs, with their versions among their flags where others of the same flags have others."""
    data = find_data_versions([(run.asked, run.digests) for run in runs])
    code = find_code_versions([run.modules for run in runs])
    found = [dict(zip(VERSIONS, versions, strict=True)) for versions in zip(data, code, strict=True)]
    return [
        run._replace(flags={**run.flags, **{name: version for name, version in own.items() if version}})
        for run, own in zip(runs, found, strict=True)
    ]


def find_versions(runs: Sequence[ComparedRun]) -> list[str]:
    """Which of `VERSIONS` any of these runs has."""
    return [name for name in VERSIONS if any(name in run.flags for run in runs)]


def are_of_one_data(runs: Sequence[ComparedRun]) -> bool:
    """Whether these runs may be paired: their data are the same as far as is known."""
    return len({run.flags.get(DATA_VERSION) for run in runs}) <= 1


def describe_versions(runs: Sequence[ComparedRun]) -> list[str]:
    """A sentence for what has changed between runs of the same flags; none where nothing has."""
    ends = {
        DATA_VERSION: ("Different data under one name", "neither paired nor averaged"),
        CODE_VERSION: ("Your code changed between runs", "not averaged"),
    }
    return [
        f"{ends[version][0]}: {_list_runs(runs, version)}; runs of different {version.partition('_')[0]} are "
        f"{ends[version][1]}."
        for version in find_versions(runs)
    ]


def describe_twins(runs: Sequence[ComparedRun]) -> list[str]:
    """A sentence if a run repeats a live one: how far it tells of that one."""
    twins = [run for run in runs if run.devices.startswith(TWIN)]
    names = ", ".join(run.name for run in twins[:MOST_NAMED]) + (" and more" if twins[MOST_NAMED:] else "")
    return twins and [
        f"Who took part in {names}, and when, is read from the record of a live run: seconds and bytes are that run's, "
        "and no second measurement of them."
    ]


def _list_runs(runs: Sequence[ComparedRun], version: str) -> str:
    """For example "fedavg/seed_0 (data 1a2b3c4d), ditto/seed_0 and 3 more (data 5e6f7a8b)"."""
    names: dict[str, list[str]] = {}
    for run in runs:
        if version in run.flags:
            names.setdefault(run.flags[version], []).append(run.name)
    parts = []
    for value, members in names.items():
        more = f" and {len(members) - MOST_NAMED} more" if members[MOST_NAMED:] else ""
        parts.append(f"{', '.join(members[:MOST_NAMED])}{more} ({value})")
    return ", ".join(parts)


def find_differing_data(runs: Sequence[ComparedRun]) -> list[str]:
    """The flags of data, the seed aside, that have several values among the runs that have them."""
    return sorted({*DATA_FLAGS, DATA_VERSION}.intersection(find_differing_flags(runs)))


def list_trivial_groups(runs: Sequence[ComparedRun], column: str) -> list[Group]:
    """The rows of a column, as groups of runs whose every round has the row's result; for each data a row of its own.

    Without them where no run knows such results of this column.
    """
    splits = group_runs(runs, find_differing_data(runs))
    groups = []
    for split in splits:
        for title in dict.fromkeys(title for run in split.runs for title in run.trivial.get(column, ())):
            members = []
            for run in (run for run in split.runs if title in run.trivial.get(column, ())):
                rounds = run.columns[ROUND]
                values = np.full(len(rounds), run.trivial[column][title])
                members.append(run._replace(columns={ROUND: rounds, column: values}))
            groups.append(Group(title if len(splits) == 1 else f"{title}, {split.label}", members))
    return groups
