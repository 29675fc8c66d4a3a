"""What a trained start is worth: how far training moved it, and what fine-tuning from it gains over random weights."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from datasets.federated_data import ClientFiles, FederatedData
from launch.runs.columns import (
    GAIN,
    MEMBERS,
    NEW,
    RELATIVE_CHANGE,
)
from launch.runs.task_columns import TaskColumns
from launch.training.evaluation import Evaluate, evaluate_pairs
from tff_algos.protocol import FederatedProcess, State, Weights
from tff_algos.settings.fine_tuning import INITIAL, TRAINED


def compute_relative_change(before: Mapping[str, Weights], after: Mapping[str, Weights]) -> float:
    """|after - before| / |before|, Euclidean norms over all floating-point weights of all models of these names."""

    def square(arrays: Sequence[np.ndarray]) -> float:
        return sum(float(np.square(array, dtype=np.float64).sum()) for array in arrays)

    pairs = [
        (first, second)
        for name in before
        for first, second in zip(before[name], after[name], strict=True)
        if np.issubdtype(first.dtype, np.floating)
    ]
    norm = square([first for first, _ in pairs]) ** 0.5
    return square([second - first for first, second in pairs]) ** 0.5 / norm if norm else float("inf")


def measure_start(
    process: FederatedProcess,
    state: State,
    data: FederatedData,
    members: Sequence[ClientFiles],
    evaluate: Evaluate,
    own: np.ndarray,
    task: TaskColumns,
) -> dict[str, Any]:
    """What is in summary.json of a process that fine-tunes; empty for others.

    The main metric is a mean over the clients' own test splits, after all their steps; None without any test split. The
    gain is how much better it is from the trained start.

    Args:
      process: the algorithm.
      state: its last.
      data: the federation.
      members: its clients that are evaluated, new ones not among them.
      evaluate: of its models.
      own: the main metric of every client as the process personalises them, NaN without a test split.
      task: which metric that is.
    """
    if not process.fine_tuning_start:
        return {}
    tested = own[: len(data.clients)]
    tested = tested[~np.isnan(tested)]
    trained, random = (
        tested if start == process.fine_tuning_start else _measure(process, state, data, evaluate, members, start)
        for start in (TRAINED, INITIAL)
    )
    known = trained.size > 0
    return {
        RELATIVE_CHANGE: compute_relative_change(process.get_models(process.initialize()), process.get_models(state)),
        task.starts[0]: trained.mean() if known else None,
        task.starts[1]: random.mean() if known else None,
        GAIN: task.sign * (trained.mean() - random.mean()) if known else None,
    }


def measure_curve(
    process: FederatedProcess,
    state: State,
    data: FederatedData,
    members: Sequence[ClientFiles],
    evaluate: Evaluate,
    task: TaskColumns,
) -> list[list[Any]]:
    """The rows of fine_tuning.csv, in the columns `task.fine_tuning_columns`; none unless the process has a curve.

    After k steps each client has taken at most k of its own steps, in the order of its whole training.
    """
    rows = []
    for group, clients in ((MEMBERS, members), (NEW, data.new_clients)):
        for steps in process.curve if clients else ():
            values = [_measure(process, state, data, evaluate, clients, start, steps) for start in (TRAINED, INITIAL)]
            if values[0].size:
                measured = [number for each in values for number in (each.mean(), task.compute_worst_tenth(each))]
                rows.append([group, steps, *measured])
    return rows


def _measure(
    process: FederatedProcess,
    state: State,
    data: FederatedData,
    evaluate: Evaluate,
    clients: Sequence[ClientFiles],
    start: str,
    most_steps: int | None = None,
) -> np.ndarray:
    """The main metric of those of the clients that have a test split."""
    tested = [client for client in clients if client.num_test]
    pairs = process.personalize_from(state, tested, start, most_steps)
    values = evaluate_pairs(pairs, data, evaluate, ("test",))["test"].metric
    return values[[client.index for client in tested]]
