"""What a reader can run again: the experiments behind a row of a table, their data, and how long a seed takes."""

import shlex
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from launch.console.progress import format_duration
from launch.runs.run_records import RunRecord, read_summary
from launch.settings.experiments import list_experiments, match_experiments
from reproductions.engine.tables import Table

EXPERIMENTS = "experiments"  # the name of the table
ABSENT = "not run"
PLANNED = "planned rounds"
COLUMNS = ("experiment", "data", "seeds", "rounds", PLANNED, "seconds")
TRAIN_SECONDS = "train_seconds"  # of a run's summary


def tabulate_experiments(runs: Iterable[RunRecord]) -> Table:
    """A row an experiment: its kept runs' data, seeds and rounds, those planned, and the mean seconds of a seed."""
    by_experiment: dict[str, list[RunRecord]] = defaultdict(list)
    for run in runs:
        by_experiment[run.experiment].append(run)
    known, rows = list_experiments(), []
    for name, own in sorted(by_experiment.items()):
        seconds = [found[TRAIN_SECONDS] for found in map(read_summary, own) if TRAIN_SECONDS in found]
        data = ", ".join(sorted({run.dataset or str(run.flags["dataset"]) for run in own}))
        seeds = ", ".join(map(str, sorted(run.flags["seed"] for run in own)))
        rounds = str(max(max(run.rounds, default=0) for run in own))
        full_name = known[name].full_name if name in known else name
        planned = str(max((run.flags["rounds"] for run in own if "rounds" in run.flags), default=""))
        rows.append([full_name, data, seeds, rounds, planned, f"{statistics.fmean(seconds):.1f}" if seconds else ""])
    return Table(COLUMNS, rows)


def tabulate_commands(entries: Sequence[Mapping[str, Any]], experiments: Table, archive: str) -> Table:
    """A row each: what it makes, the command, its data, and what one seed takes in the mean over the kept runs.

    Args:
      entries: `row`, what a command makes, and `experiments`, the pattern of their names.
      experiments: as from `tabulate_experiments`; where one of a row is missing, its duration is not known.
      archive: of the kept runs, whose data the command demands.

    Raises:
      FlagError: there are no experiments of such a name.
    """
    kept = {record["experiment"]: record for record in experiments.records}
    rows = []
    for entry in entries:
        matched = match_experiments(entry["experiments"])
        names = [each.full_name for each in matched]
        found = [kept[name] for name in names if name in kept]
        seeds = [set(map(int, record["seeds"].split(", "))) for record in found]
        # The last that all have: the first ones were looked at before some claims were put.
        seed = max(set.intersection(*seeds), default=0) if seeds else 0
        data = ", ".join(dict.fromkeys(record["data"] for record in found))
        seconds = [float(record["seconds"]) for record in found if record["seconds"]]
        takes = format_duration(sum(seconds)) if len(seconds) == len(names) else ABSENT
        flags = [f"--experiments={shlex.quote(entry['experiments'])}", f"--seeds={seed}"]
        # Runs that were planned for fewer rounds than their experiment has.
        planned = {record["experiment"]: int(record[PLANNED]) for record in found if record[PLANNED]}
        whole = {each.full_name: int(each.flags["rounds"]) for each in matched if "rounds" in each.flags}
        if any(planned[name] != whole[name] for name in planned.keys() & whole.keys()):
            flags.append(f"--rounds={max(planned.values())}")
        command = f"python -m launch.sweep {' '.join(flags)} --same_data_as={archive}"
        rows.append([entry["row"], f"`{command}`", data or ABSENT, str(len(names)), takes])
    return Table(["row", "command", "data", "runs", "takes here"], rows)
