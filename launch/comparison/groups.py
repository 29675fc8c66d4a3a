"""Which runs belong together, and what a group of them is called.

The page groups anew, by `groups.js`, as its reader asks. Imports no TensorFlow.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from datasets.catalog import DATASETS, DatasetOptions
from launch.comparison.compared_run import EXPERIMENT, SEED, ComparedRun, list_fields
from launch.comparison.versions import VERSIONS
from launch.settings.algorithms import ALGORITHMS
from launch.settings.run_config import shared_fields

ALGO, DATASET, PARTITION = "algo", "dataset", "partition"
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
            values.setdefault((name, whose), set()).add((type(value) is bool, value))
    differing = list(dict.fromkeys(name for (name, _), found in values.items() if len(found) > 1))
    if EXPERIMENT in differing and ALGO in differing and _are_same_split(runs, EXPERIMENT, ALGO):
        differing.remove(EXPERIMENT)  # folders that are called after their algorithm say nothing more
    return differing


def _are_same_split(runs: Sequence[ComparedRun], one: str, other: str) -> bool:
    """Whether two flags make the same groups."""
    pairs = {(run.flags.get(one), run.flags.get(other)) for run in runs}
    return len(pairs) == len({pair[0] for pair in pairs}) == len({pair[1] for pair in pairs})


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
