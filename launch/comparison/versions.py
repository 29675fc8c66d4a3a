"""Runs of one name whose data or whose own code were others: what tells them apart, and what is said of them.

A version stands among a run's flags, so that all that goes by flags goes by it: groups, trivial rows, references, the
page. Runs of several versions are never in one group, and those of several data are not paired. Imports no TensorFlow.
"""

from collections.abc import Sequence

from launch.comparison.compared_run import ComparedRun
from launch.runs.data_versions import find_code_versions, find_data_versions

DATA_VERSION, CODE_VERSION = VERSIONS = ("data_version", "code_version")
MOST_NAMED = 3  # runs of each version, in a sentence


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
