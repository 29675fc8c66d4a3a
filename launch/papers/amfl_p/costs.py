"""What the cells of the factorial cost in energy, which the paper leaves open: steps times batch, so examples."""

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from launch.papers.amfl_p.claims import FINE_TUNING
from launch.papers.amfl_p.experiments import (
    DEGREES,
    FACTORIAL_RUNS,
    FINISH_TITLES,
    FINISHES,
    LOCAL_RUNS,
    START_TITLES,
    STARTS,
    group_by_name,
    read_final,
)
from launch.papers.engine.collection import summarize
from launch.papers.engine.markdown import Table
from launch.runs.columns import CLIENTS_FILE, NUM_CLIENTS, NUM_TRAIN
from launch.runs.run_records import RunRecord, read_columns, read_summary
from tff_algos.settings.fine_tuning import INITIAL

COLUMNS = ("before the finish", "in the finish", "both")


class Cost(NamedTuple):
    """Examples that all devices together trained on, before the finish and in it; one seen twice counts twice."""

    training: float
    finish: float


def read_cost(run: RunRecord) -> Cost | None:
    """The cost of a run; None if it ended early, or if its devices train for epochs, whose batches vary."""
    algo = run.flags["algo"]
    own = read_summary(run).get(algo, {})
    finish = own.get("energy_of_fine_tuning_examples", 0.0)
    if read_final(run) is None:
        return None
    if "energy_of_training_examples" in own:
        return Cost(own["energy_of_training_examples"], finish)
    is_fine_tuned = algo == FINE_TUNING
    if is_fine_tuned and run.flags.get("fine_tuning_start") == INITIAL:
        return Cost(0.0, finish)  # what was trained is not used
    steps = run.flags.get("fine_tuning_local_steps" if is_fine_tuned else f"{algo}_steps", 0)
    devices = sum(metrics.get(NUM_CLIENTS, 0.0) for metrics in run.rounds.values())
    return Cost(devices * steps * read_mean_batch(run), finish) if steps and devices else None


def read_mean_batch(run: RunRecord) -> float:
    """Examples in a step, the mean over the devices: a batch, or all that a device has, as the finish counts them.

    A whole batch if it is not kept how many a device has.
    """
    path, batch_size = run.path / CLIENTS_FILE, run.flags["batch_size"]
    counts = read_columns(path).get(NUM_TRAIN, ()) if path.is_file() else ()
    return statistics.fmean(min(batch_size, count) for count in counts) if len(counts) else float(batch_size)


def tabulate_costs(runs: Sequence[RunRecord]) -> Table:
    """A row for each degree, start and finish, and for local training."""
    costs = group_by_name(runs, FACTORIAL_RUNS, read_cost)
    local = group_by_name(runs, LOCAL_RUNS, read_cost)
    rows = []
    for degree in DEGREES:
        for start in STARTS:
            for finish in FINISHES:
                found = costs.get((start, finish, degree), {})
                rows.append([degree, START_TITLES[start], FINISH_TITLES[finish], *_format(found)])
        rows.append([degree, "local training", "", *_format(local.get((degree,), {}))])
    return Table(["heterogeneity", "start", "finish", "seeds", *COLUMNS], rows)


def _format(found: Mapping[int, Cost]) -> list[str]:
    """Number of seeds and the means over them, in thousands."""
    if not found:
        return ["", *["not run"] * len(COLUMNS)]
    parts = [[cost.training for cost in found.values()], [cost.finish for cost in found.values()]]
    parts.append([sum(cost) for cost in found.values()])
    return [str(len(found)), *(f"{summarize(part).mean / 1000:,.0f}" for part in parts)]
