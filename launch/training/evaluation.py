"""Loss and metrics of an algorithm's models: on the global test set, and on each client's own splits."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from datasets.federated_data import ClientFiles, FederatedData
from launch.runs.archetype_metrics import compute_archetype_metrics
from launch.runs.client_rounds import ClientResults
from launch.runs.columns import TEST_LOSS
from launch.runs.task_columns import TaskColumns, name_test
from models.model_spec import ModelSpec
from models.task_kinds import TaskKind
from tff_algos.protocol import FederatedProcess, State, Weights
from tff_algos.seeds import derive_generator

MOST_POOLED_CLIENTS = 5000  # whose examples are in memory at once


class Evaluation(NamedTuple):
    """A model's result on n examples.

    Attributes:
      kind: of the task.
      loss: of each example, float32 (n,); infinite where the outputs are no numbers.
      weights: how much each counts in the mean of the loss, float32 (n,); None where all count alike.
      sums: what the metrics are made of, float64 (num_sums,).
    """

    kind: TaskKind
    loss: np.ndarray
    weights: np.ndarray | None
    sums: np.ndarray

    @property
    def metrics(self) -> dict[str, float]:
        """The task's metrics by name; NaN where nothing is known of one, as of all without examples."""
        return self.kind.finish(self.sums)

    @property
    def metric(self) -> float:
        """The task's main metric: of classification the share of correct examples."""
        return self.metrics[self.kind.main_metric.name]

    @property
    def undefined(self) -> dict[str, str]:
        """Why a metric has no value, by its name, in words that go on after "its test examples"; {} without any."""
        if not len(self.loss):
            return {}
        metrics = self.metrics
        return {metric.name: metric.undefined for metric in self.kind.metrics if np.isnan(metrics[metric.name])}

    @property
    def mean_loss(self) -> float:
        """Mean loss, of classification the cross-entropy in nats; NaN without examples."""
        if self.weights is None:
            return _mean(self.loss)
        total = self.weights.sum(dtype=np.float64)
        return float(np.dot(self.weights.astype(np.float64), self.loss) / total) if total else float("nan")


# (state, the state one round before, if that was evaluated, too, whether to evaluate the shared models) -> columns of
# metrics.csv
EvaluateState = Callable[[State, State | None, bool], dict[str, float | None]]


# Gets the model of each client and their results by split, of each state that is evaluated.
NoteClients = Callable[[Sequence[str], Mapping[str, ClientResults]], None]


class Evaluate:
    """Evaluates weights of a specification or of one of its variants, such as a peer, always to the same bits.

    Attributes:
      kind: of its task.
    """

    def __init__(self, spec: ModelSpec, batch_size: int):
        self._spec, self._batch_size, self.kind = spec, batch_size, spec.task.kind
        self._label_dtype, self._num_sums = spec.task.label_dtype, spec.task.kind.num_sums(spec.task.num_outputs)
        # Traced at once: Keras refuses to call a model for the first time after another one was built in the graph of a
        # TFF computation.
        self._graphs = [_trace_evaluation(variant) for variant in spec.variants]

    def __call__(self, weights: Weights, x: np.ndarray, y: np.ndarray) -> Evaluation:
        """The result on these examples, joined.

        Args:
          weights: in the order of `keras_model.weights`.
          x: stored examples, (n, *spec.format.input_shape) in `spec.format.input_dtype`.
          y: labels as stored, (n, *label_shape).
        """
        return self.split(weights, x, y, (len(y),))[0]

    def split(self, weights: Weights, x: np.ndarray, y: np.ndarray, sizes: Sequence[int]) -> list[Evaluation]:
        """The result on each part of the given sizes, in order; the sizes sum to n. One pass, whatever the parts."""
        chosen = self._spec.of_weights(weights)
        model, evaluate_batch = next(
            graph for variant, graph in zip(self._spec.variants, self._graphs, strict=True) if variant is chosen
        )
        for variable, value in zip(model.weights, weights, strict=True):
            variable.assign(value)
        labels, groups = np.asarray(y, self._label_dtype), np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        # An empty part first, since without examples there is no batch to concatenate.
        loss, counts = [np.zeros(0, np.float32)], [np.zeros(0, np.float32)]
        sums = np.zeros((len(sizes), self._num_sums))
        for start in range(0, len(labels), self._batch_size):
            rows = slice(start, start + self._batch_size)
            # Only the parts that a batch has rows of, or each batch would cost as much as there are clients.
            first, last = int(groups[rows][0]), int(groups[rows][-1])
            batch = tf.constant(x[rows]), tf.constant(labels[rows]), tf.constant(groups[rows] - first)
            batch_loss, batch_weights, batch_sums = evaluate_batch(*batch, tf.constant(last - first + 1))
            loss.append(batch_loss.numpy())
            counts.append(batch_weights.numpy())
            sums[first : last + 1] += batch_sums.numpy()
        ends = np.cumsum(sizes)[:-1]
        parts = np.split(np.concatenate(loss), ends), np.split(np.concatenate(counts), ends), sums
        is_weighed = self.kind.weighs_examples
        return [
            Evaluation(self.kind, each, of_each if is_weighed else None, own)
            for each, of_each, own in zip(*parts, strict=True)
        ]


def _trace_evaluation(spec: ModelSpec) -> tuple[tf.keras.Model, Callable]:
    """A model, and a function (x, y, group of each, number of groups) to losses, weights and sums by group."""
    model, task = spec.build(), spec.task

    @tf.function(
        input_signature=[
            tf.TensorSpec((None, *spec.format.input_shape), spec.format.input_dtype),
            tf.TensorSpec((None, *task.label_shape), task.label_dtype),
            tf.TensorSpec((None,), tf.int32),
            tf.TensorSpec((), tf.int32),
        ]
    )
    def evaluate_batch(x, y, groups, num_groups):
        # Logits of a model in bfloat16 would lose digits in the loss.
        outputs = tf.cast(model(spec.preprocess(x), training=False), tf.float32)
        sums = task.compute_sums_by_group(y, outputs, groups, num_groups)
        losses = task.compute_losses(y, outputs)
        # NaN means that nothing is known; a model that has diverged is as wrong as can be.
        return tf.where(tf.math.is_nan(losses), math.inf, losses), task.compute_weights(y), sums

    return model, evaluate_batch.get_concrete_function()


def build_evaluator(spec: ModelSpec, batch_size: int = 1000) -> Evaluate:
    """What evaluates weights of this specification, or of another of its variants: `evaluate(weights, x, y)`."""
    return Evaluate(spec, batch_size)


def choose_evaluated_clients(
    data: FederatedData, most: int, seed: int, attackers: Collection[int] = ()
) -> tuple[ClientFiles, ...]:
    """The clients whose own splits are evaluated while a run goes on: the same ones in every round, ascending.

    Args:
      data: the federation; new clients are never among them.
      most: how many at most, 0 for all.
      seed: the run's, by which they are drawn if there are more.
      attackers: indices of those that are never among them.
    """
    honest = tuple(client for client in data.clients if client.index not in attackers)
    if not 0 < most < len(honest):
        return honest
    drawn = derive_generator(seed, "evaluated clients").choice(len(honest), most, replace=False)
    return tuple(honest[index] for index in sorted(drawn.tolist()))


def choose_finally_evaluated(
    data: FederatedData, most: int, seed: int, attackers: Collection[int] = ()
) -> tuple[ClientFiles, ...]:
    """The clients that are evaluated when a run is over: all new ones, and as many members as `most`, 0 for all."""
    return (*choose_evaluated_clients(data, most, seed, attackers), *data.new_clients)


class StateEvaluation:
    """Evaluates states: gives the evaluation columns of metrics.csv, called as `EvaluateState` says.

    It takes the state, the one before, if changes are to be measured, and whether the shared models are evaluated, too.
    The names are those of classification; other tasks have their own, see `launch.runs.task_columns`.

    `test_loss` and `test_accuracy` are means over the shared models on the global test set, weighted by the clients
    that use each; a task's further metrics have a column each. `validation_accuracy` is the same on the validation
    examples of `clients` (None: all), joined. `client_test_accuracy` and `client_validation_accuracy` are means over
    `clients`, each with the weights that `process.personalize` gives it, on its own split; clients without that split,
    or whose split tells nothing, are left out. Only the validation accuracies are for tuning: the clients' own for
    personal models, the joined one for shared models, since a client's own few classes reward a model that knows
    nothing else. If the weights are personal, or if asked `with_spread`, the standard deviation and the worst tenth of
    the clients' test accuracies are added, and with archetypes their columns. `note_clients` gets what each client
    reaches.

    The change of the clients' accuracies needs those of the previous state. They are remembered from the last call if
    it had that very state; if not, as after a resume, the previous state is evaluated again.
    """

    def __init__(
        self,
        process: FederatedProcess,
        data: FederatedData,
        evaluate: Evaluate,
        clients: Sequence[ClientFiles] | None = None,
        with_spread: bool = False,
        note_clients: NoteClients | None = None,
    ):
        self._process, self._data, self._evaluate = process, data, evaluate
        self._clients = data.clients if clients is None else clients
        self._with_spread, self._note_clients = with_spread, note_clients
        self._last_state: State = None
        self._last: dict[str, ClientResults] = {}

    def __call__(self, state: State, previous: State | None, with_shared: bool = True) -> dict[str, float | None]:
        process, data, evaluate, clients = self._process, self._data, self._evaluate, self._clients
        shared = _measure_shared_models(process, state, data, evaluate, clients) if with_shared else {}
        by_split = evaluate_clients(process, state, data, evaluate, ("test", "validation"), clients=clients)
        if self._note_clients is not None:
            self._note_clients(process.client_model(state), by_split)
        is_spread = process.is_personal or self._with_spread
        measured = shared | _summarize_clients(by_split, TaskColumns(evaluate.kind), is_spread)
        if data.archetypes is not None:
            before, values = None, by_split["test"].metric
            if previous is not None:
                before = self.test_clients(previous, clients, previous is self._last_state).metric
            measured |= compute_archetype_metrics(data.archetypes, process.client_model(state), values, before)
            # Only here: without another round's evaluation soon, it would be one more state in memory.
            self._last_state = state
        self._last = by_split
        return measured

    def test_clients(self, state: State, clients: Sequence[ClientFiles], is_last: bool) -> ClientResults:
        """What clients reach on their test examples in a state.

        Args:
          state: which.
          clients: which.
          is_last: whether that state was evaluated last. What its clients reach is known then; at the end of a run they
            would otherwise be fine-tuned a second time.
        """
        if is_last and self._last and list(clients) == list(self._clients):
            return self._last["test"]
        return evaluate_clients(self._process, state, self._data, self._evaluate, clients=clients)["test"]


def _measure_shared_models(
    process: FederatedProcess,
    state: State,
    data: FederatedData,
    evaluate: Evaluate,
    clients: Sequence[ClientFiles],
) -> dict[str, float]:
    """The columns on the global test set and on all validation examples. The cost grows with the number of models."""
    models, names = process.get_models(state), process.client_model(state)
    # A model that nobody uses says nothing of the run.
    used = sorted(set(names))
    results = [evaluate(models[name], data.test_x, data.test_y) for name in used]
    validation = data.read_pooled(clients, "validation")
    validated = [evaluate(models[name], *validation).metric for name in used]
    num_users = [names.count(name) for name in used]
    task, metrics = TaskColumns(results[0].kind), [result.metrics for result in results]
    of_tests = {
        name_test(metric): float(np.average([each[metric.name] for each in metrics], weights=num_users))
        for metric in task.kind.metrics
    }
    return {
        TEST_LOSS: float(np.average([result.mean_loss for result in results], weights=num_users)),
        **of_tests,
        task.validation: float(np.average(validated, weights=num_users)),
    }


def _summarize_clients(by_split: Mapping[str, ClientResults], task: TaskColumns, with_spread: bool) -> dict[str, float]:
    """The columns on the clients' own splits, over those that were evaluated."""
    own = {split: results.metric[~np.isnan(results.metric)] for split, results in by_split.items()}
    measured = {task.client_test: _mean(own["test"]), task.client_validation: _mean(own["validation"])}
    if with_spread:
        with np.errstate(invalid="ignore"):  # that of infinite errors is unknown
            measured[task.std] = float(own["test"].std()) if own["test"].size else float("nan")
        measured[task.worst_tenth] = task.compute_worst_tenth(own["test"])
    return measured


def evaluate_clients(
    process: FederatedProcess,
    state: State,
    data: FederatedData,
    evaluate: Evaluate,
    splits: Sequence[str] = ("test",),
    clients: Sequence[ClientFiles] | None = None,
) -> dict[str, ClientResults]:
    """Each client's main metric and loss on its own splits, with the weights that `process.personalize` gives it.

    There is a value for every client, new ones last, but it is NaN for those that are not among `clients`; None is all
    but the new ones.
    """
    names = process.client_model(state)
    asked = data.clients if clients is None else clients
    clients = [client for client in asked if any(data.count(client, split) for split in splits)]
    clients.sort(key=lambda client: names[client.index])  # those of one model side by side, to be joined
    return evaluate_pairs(process.personalize(state, clients), data, evaluate, splits)


def evaluate_pairs(
    pairs: Iterable[tuple[ClientFiles, Weights]], data: FederatedData, evaluate: Evaluate, splits: Sequence[str]
) -> dict[str, ClientResults]:
    """Results of (client, weights) pairs; neighbours that share one weights object are joined into one pass.

    A pass costs more than its examples while clients are small.
    """
    names = [metric.name for metric in evaluate.kind.metrics[1:]]
    results = {}
    for split in splits:
        main, loss, *further = np.full((2 + len(names), len(data.everyone)), np.nan)
        results[split] = ClientResults(main, loss, dict(zip(names, further, strict=True)), {})
    for clients, weights in _pool_neighbours(pairs):
        for split in splits:
            sizes = [data.count(client, split) for client in clients]
            parts = evaluate.split(weights, *data.read_pooled(clients, split), sizes)
            for client, part in zip(clients, parts, strict=True):
                of_split, metrics = results[split], part.metrics
                of_split.metric[client.index] = part.metric
                of_split.loss[client.index] = part.mean_loss
                for name in names:
                    of_split.further[name][client.index] = metrics[name]
                if undefined := part.undefined:
                    of_split.undefined[client.index] = undefined
    return results


def _pool_neighbours(pairs):
    """(client, weights) pairs to (clients, weights). Holds one set of weights at a time: personal models are many."""
    joined, joined_weights = [], None
    for client, weights in pairs:
        if joined and (weights is not joined_weights or len(joined) == MOST_POOLED_CLIENTS):
            yield joined, joined_weights
            joined = []
        joined.append(client)
        joined_weights = weights
    if joined:
        yield joined, joined_weights


def _mean(values: np.ndarray) -> float:
    return float(values.mean(dtype=np.float64)) if len(values) else float("nan")
