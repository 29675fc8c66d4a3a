"""What a finished run leaves behind: the tables, `summary.json` and the saved models.

Of a process that fine-tunes also what its trained start is worth: how far training moved it, and what clients gain by
it over random weights.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from datasets.baselines import MajorityAccuracies, compute_majority_accuracies, compute_token_baselines
from datasets.example_format import NEXT_TOKEN
from datasets.federated_data import ClientFiles, FederatedData
from launch.runs import columns
from launch.runs.checksums import write_checksums
from launch.runs.columns import (
    GAIN,
    MEMBERS,
    NEW,
    RELATIVE_CHANGE,
)
from launch.runs.round_table import RoundTable
from launch.runs.run_folder import RunFolder
from launch.runs.tables import blank_nan, format_cell, write_json, write_table
from launch.runs.task_columns import TASK, TaskColumns, count_reasons
from launch.settings.run_config import RunConfig, find_algorithm
from launch.training.evaluation import (
    ClientResults,
    Evaluate,
    build_evaluator,
    choose_evaluated_clients,
    choose_finally_evaluated,
    evaluate_pairs,
)
from launch.training.federation import find_attackers, find_attacks
from launch.training.run_end import ValidatedRounds, list_limits
from launch.training.run_models import save_models
from models.model_spec import ModelSpec
from tff_algos.protocol import FederatedProcess, State, Weights
from tff_algos.settings.fine_tuning import INITIAL, TRAINED

# Whose text the baselines are counted from.
MOST_READ_CLIENTS = 1000


def write_results(
    folder: RunFolder,
    config: RunConfig,
    data: FederatedData,
    spec: ModelSpec,
    process: FederatedProcess,
    state: State,
    evaluate: Evaluate,
    metrics: RoundTable,
    timing: RoundTable,
    task: TaskColumns,
    test_clients: Callable[[State, Sequence[ClientFiles]], ClientResults],
) -> dict[str, Any]:
    """Writes the clients' table, the models and the summary of a run, and returns the summary.

    `test_clients` says what clients reach on their test examples in a state.
    """
    attackers = find_attackers(config, data)
    asked = choose_finally_evaluated(data, config.finally_evaluated_clients, config.seed, attackers)
    members = asked[: len(asked) - len(data.new_clients)]
    results = test_clients(state, asked)
    curve = measure_curve(process, state, data, members, evaluate, task)
    if curve:
        write_table(
            folder.fine_tuning_curve, task.fine_tuning_columns, [[format_cell(cell) for cell in row] for row in curve]
        )
    write_clients(folder, data, results, process, state, task, attackers)
    save_models(folder.models, spec, process, state)
    own = dict(process.summarize(state))
    teachers = process.get_teachers(state)
    if teachers:
        of_teacher = build_evaluator(spec.teacher)
        tested = {name: of_teacher(weights, data.test_x, data.test_y) for name, weights in teachers.items()}
        own[task.teachers] = {name: result.metric for name, result in tested.items()}
    summary = build_summary(config, metrics, timing, task)
    # A subset has a name of its own.
    summary["dataset"] = data.dataset
    num_members = len(data.clients)
    summary |= _describe_clients(data, asked, results, task)
    # The tables have that of a sample.
    if 0 < config.evaluated_clients < len(data.clients):
        summary["final"][task.client_test] = summary["clients"][task.statistics[0]]
    # What a model should beat: a table of two tokens needs few clients.
    if data.format.labels.task == NEXT_TOKEN:
        readers = choose_evaluated_clients(data, MOST_READ_CLIENTS, config.seed)
        train = (data.read_split(client, "train") for client in readers)
        baselines = compute_token_baselines(train, (data.test_x, data.test_y), data.format.labels)
        summary[columns.TOKEN_BASELINES] = baselines
    summary |= _describe_end(config, process, state, metrics, task)
    if names := [data.clients[index].name for index in attackers]:
        summary[columns.ATTACK] = {columns.ATTACK: find_attacks(config).attack, columns.ATTACKERS: names}
    summary[columns.IS_PERSONAL] = process.is_personal
    if columns.JOULES in (table := process.client_columns(state)):
        # Spent in training by each client; new ones have spent none.
        joules = np.array(table[columns.JOULES])[:num_members]
        summary[columns.JOULES] = {"total": joules.sum(), "mean": joules.mean(), "most": joules.max()}
    if start := measure_start(process, state, data, members, evaluate, results.metric, task):
        summary[columns.START] = start
    summary[find_algorithm(config.algo).name] = own
    write_json(folder.summary, summary)
    # Last, since it sums up all that was written before.
    write_checksums(folder)
    return summary


def _describe_clients(
    data: FederatedData, asked: Sequence[ClientFiles], results: ClientResults, task: TaskColumns
) -> dict[str, Any]:
    """What the clients reach on their own test splits, new ones apart, and what the majority classes do."""
    majority = compute_majority_accuracies(data, asked) if task.kind.is_labelled_by_class else None
    num_members, described = len(data.clients), {}
    for key, part in (("clients", slice(num_members)), (columns.NEW_CLIENTS, slice(num_members, None))):
        if key != columns.NEW_CLIENTS or data.new_clients:
            described[key] = compute_client_statistics(results.metric[part], task)
            indices = [client.index for client in asked if client.index in range(len(data.everyone))[part]]
            described[key] |= count_undefined(results, indices)
            described[key] |= describe_majority(majority, part, task) if majority else {}
    if majority:
        is_known = not np.isnan(majority.on_test_set)
        described[columns.OVERALL_MAJORITY_TEST_ACCURACY] = majority.on_test_set if is_known else None
    return described


def _describe_end(
    config: RunConfig, process: FederatedProcess, state: State, metrics: RoundTable, task: TaskColumns
) -> dict[str, Any]:
    """Why the run ended before its last round, if it did, and which round is the best, if its models are saved."""
    ended: dict[str, Any] = {columns.BUDGET_SPENT: True} if process.is_spent(state) else {}
    validated = ValidatedRounds(metrics, task)
    if validated.has_stopped_early(config):
        ended[columns.STOPPED_EARLY] = {columns.PATIENCE: config.patience, columns.BEST_ROUND: validated.find_best()}
    limits = list_limits(config)
    has_reached_target = task.has_reached_target(config, metrics.last(task.test))
    if any(limits.values()) and metrics.num_rounds < config.rounds and not ended and not has_reached_target:
        ended[columns.REACHED_LIMITS] = limits
    if config.keep_best and (best := validated.find_best()) is not None:
        value = metrics.column(task.client_validation)[best - 1]
        ended[columns.KEPT_BEST] = {columns.ROUND: best, task.client_validation: value}
    return ended


def write_clients(
    folder: RunFolder,
    data: FederatedData,
    results: ClientResults,
    process: FederatedProcess,
    state: State,
    task: TaskColumns,
    attackers: Collection[int] = (),
) -> None:
    """Writes `clients.csv`: a row a client, new ones last; the algorithm's own columns last.

    A client without a test split has empty cells for the metrics and the loss; a column of its own says so of metrics
    that the examples of a client leave undefined, such as the AUC of one class. There are columns of archetypes only
    if the partition is by archetype, one of who took part only if there are new clients, and the devices' names only if
    they come from a file. Of attackers, which have a column if there are any, nothing is measured.
    """
    reasons = [task.describe_undefined(results.undefined.get(client.index, {})) for client in data.everyone]
    kinds = data.archetypes.of_clients if data.archetypes else ()
    table = {
        columns.CLIENT: [client.name for client in data.everyone],
        columns.NUM_TRAIN: [client.num_train for client in data.everyone],
        columns.NUM_VALIDATION: [client.num_validation for client in data.everyone],
        columns.NUM_TEST: [client.num_test for client in data.everyone],
        columns.EXAMPLES_PER_S: data.profiles.examples_per_s,
        columns.DOWNLINK_BYTES_PER_S: data.profiles.downlink_bytes_per_s,
        columns.UPLINK_BYTES_PER_S: data.profiles.uplink_bytes_per_s,
        columns.AVAILABILITY: data.profiles.availability,
        **({columns.DEVICE_NAME: data.profiles.names} if data.profiles.names else {}),
        columns.MODEL: process.client_model(state),
        task.of_client: blank_nan(results.metric),
        columns.LOSS: blank_nan(results.loss),
        **{name: blank_nan(results.further[name]) for name in task.further_of_client},
        **({columns.UNDEFINED: reasons} if results.undefined else {}),
        **({columns.TOOK_PART: [1] * len(data.clients) + [0] * len(data.new_clients)} if data.new_clients else {}),
        **({columns.ATTACKER: [int(c.index in attackers) for c in data.everyone]} if len(attackers) else {}),
        **({columns.ARCHETYPE: list(kinds)} if data.archetypes else {}),
        **({columns.ARCHETYPE_NAME: [data.archetypes.names[kind] for kind in kinds]} if data.archetypes else {}),
        **({columns.META_ARCHETYPE: list(data.archetypes.meta_of_clients)} if data.archetypes else {}),
        **process.client_columns(state),
    }
    rows = zip(*table.values(), strict=True)
    write_table(folder.clients, list(table), [[format_cell(value) for value in row] for row in rows])


def compute_client_statistics(values: np.ndarray, task: TaskColumns) -> dict[str, float | None]:
    """Of the clients' main metric: mean, deviation, 10th percentile, worst tenth (its mean, rounded up to clients).

    Where lower is better, it is the 90th percentile. Over the clients that have a test split; the others are NaN.
    """
    known = values[~np.isnan(values)]
    if not known.size:
        return dict.fromkeys(task.statistics)
    # The deviation of infinite errors is unknown.
    with np.errstate(invalid="ignore"):
        measured = (known.mean(), known.std(), task.compute_worst_percentile(known), task.compute_worst_tenth(known))
    return dict(zip(task.statistics, measured, strict=True))


def count_undefined(results: ClientResults, clients: Sequence[int]) -> dict[str, Any]:
    """How many clients lack a metric, {name: {why: clients}} under its key, and how many were evaluated; {} if none.

    Args:
      results: on the clients' own test splits.
      clients: the indices of those that were to be evaluated.
    """
    counts = count_reasons(results.undefined.get(index, {}) for index in clients)
    return {columns.UNDEFINED: counts, columns.NUM_EVALUATED: len(clients)} if counts else {}


def describe_majority(majority: MajorityAccuracies, part: slice, task: TaskColumns) -> dict[str, float | None]:
    """What the majority classes reach on some clients' own test splits: mean and worst tenth; None without any."""
    described = {}
    for mean, worst_tenth, values in (
        (columns.MAJORITY_ACCURACY, columns.MAJORITY_WORST_TENTH, majority.own[part]),
        (columns.OVERALL_MAJORITY_ACCURACY, columns.OVERALL_MAJORITY_WORST_TENTH, majority.overall[part]),
    ):
        known = values[~np.isnan(values)]
        described |= {mean: None, worst_tenth: None}
        if known.size:
            described |= {mean: known.mean(), worst_tenth: task.compute_worst_tenth(known)}
    return described


def build_summary(config: RunConfig, metrics: RoundTable, timing: RoundTable, task: TaskColumns) -> dict[str, Any]:
    """The summary of the tables; the clients' statistics and the algorithm's own part are still missing."""
    reached = metrics.column(task.test)
    best = task.find_best(reached) or 0
    train_seconds = sum(timing.column(columns.ROUND_S))
    rounds = metrics.num_rounds
    final = (task.test, *task.further_tests, columns.TEST_LOSS, task.client_test)
    return {
        **({} if task.is_classification else {TASK: task.kind.name}),
        "algo": config.algo,
        "dataset": config.dataset,
        "seed": config.seed,
        "rounds": rounds,
        "final": {name: metrics.last(name) for name in final},
        columns.BEST: {columns.ROUND: best + 1, task.test: reached[best]},
        "clients": {},
        columns.BYTES_UP: int(sum(metrics.column(columns.BYTES_UP))),
        columns.BYTES_DOWN: int(sum(metrics.column(columns.BYTES_DOWN))),
        columns.VIRTUAL_TIME_S: metrics.last(columns.VIRTUAL_TIME_S),
        "train_seconds": train_seconds,
        "seconds_per_round": train_seconds / rounds,
    }


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
    # In float64: the squares of many float32 weights would lose the small ones.
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
    """The rows of the table of fine-tuning, in `task.fine_tuning_columns`; none unless the process has a curve.

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
    tested = [client for client in clients if data.count(client, "test")]
    pairs = process.personalize_from(state, tested, start, most_steps)
    values = evaluate_pairs(pairs, data, evaluate, ("test",))["test"].metric
    return values[[client.index for client in tested]]
