"""Accuracy and loss of an algorithm's models: on the global test set, and on each client's own splits."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from datasets.federated_data import ClientShard, FederatedData
from launch.runs.archetype_metrics import compute_archetype_metrics
from launch.runs.columns import (
    CLIENT_ACCURACY_STD,
    CLIENT_ACCURACY_WORST_TENTH,
    CLIENT_TEST_ACCURACY,
    CLIENT_VALIDATION_ACCURACY,
    TEST_ACCURACY,
    TEST_LOSS,
    VALIDATION_ACCURACY,
)
from models.model_spec import ModelSpec
from tff_algos.protocol import FederatedProcess, State, Weights
from tff_algos.seeds import derive_generator


class Evaluation(NamedTuple):
    """A model's result on each of n examples: `correct`, bool (n,), and `loss`, float32 (n,)."""

    correct: np.ndarray
    loss: np.ndarray

    @property
    def accuracy(self) -> float:
        """Share of correct examples; NaN without examples."""
        return _mean(self.correct)

    @property
    def mean_loss(self) -> float:
        """Mean cross-entropy in nats; NaN without examples."""
        return _mean(self.loss)

    def split(self, sizes: Sequence[int]) -> list["Evaluation"]:
        """Parts of the given sizes, in order; the sizes sum to n."""
        ends = list(itertools.accumulate(sizes))
        return [
            Evaluation(self.correct[end - size : end], self.loss[end - size : end])
            for size, end in zip(sizes, ends, strict=True)
        ]


class ClientResults(NamedTuple):
    """One value a client, float64 (clients,), NaN for a client without the split: `accuracy` and mean `loss`."""

    accuracy: np.ndarray
    loss: np.ndarray


Evaluate = Callable[[Weights, np.ndarray, np.ndarray], Evaluation]
# (state, the state one round before, if that was evaluated, too, whether to evaluate the shared models) -> columns of
# metrics.csv
EvaluateState = Callable[[State, State | None, bool], dict[str, float | None]]


def build_evaluator(spec: ModelSpec, batch_size: int = 1000) -> Evaluate:
    """Builds the model once and returns `evaluate(weights, x, y) -> Evaluation`.

    `weights` are in the order of `keras_model.weights`, of a quantization-aware model or of its float model; `x` are
    stored examples, (n, *spec.input_shape) in `spec.input_dtype`; `y` are integer labels, (n,). The loss is the sparse
    categorical cross-entropy of the logits. The same arguments give the same bits.
    """
    evaluate_own = _build_evaluator_of_one(spec, batch_size)
    if spec.quantization is None:
        return evaluate_own
    evaluate_float = _build_evaluator_of_one(spec.quantization.float_spec, batch_size)

    def evaluate(weights: Weights, x: np.ndarray, y: np.ndarray) -> Evaluation:
        return (evaluate_own if spec.of_weights(weights) is spec else evaluate_float)(weights, x, y)

    return evaluate


def _build_evaluator_of_one(spec: ModelSpec, batch_size: int) -> Evaluate:
    model = spec.build()

    @tf.function(
        input_signature=[
            tf.TensorSpec((None, *spec.input_shape), spec.input_dtype),
            tf.TensorSpec((None,), tf.int32),
        ]
    )
    def evaluate_batch(x, y):
        logits = tf.cast(model(spec.preprocess(x), training=False), tf.float32)
        correct = tf.equal(tf.argmax(logits, axis=1, output_type=tf.int32), y)
        return correct, tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)

    # Traced at once: Keras refuses to call a model for the first time after another one was built in the graph of a TFF
    # computation.
    evaluate_traced = evaluate_batch.get_concrete_function()

    def evaluate(weights: Weights, x: np.ndarray, y: np.ndarray) -> Evaluation:
        for variable, value in zip(model.weights, weights, strict=True):
            variable.assign(value)
        labels = np.asarray(y, np.int32)
        starts = range(0, len(labels), batch_size)
        batches = [
            evaluate_traced(tf.constant(x[i : i + batch_size]), tf.constant(labels[i : i + batch_size])) for i in starts
        ]
        correct = np.concatenate([np.zeros(0, bool), *(correct.numpy() for correct, _ in batches)])
        loss = np.concatenate([np.zeros(0, np.float32), *(loss.numpy() for _, loss in batches)])
        return Evaluation(correct, loss)

    return evaluate


def choose_evaluated_clients(data: FederatedData, most: int, seed: int) -> tuple[ClientShard, ...]:
    """The clients whose own splits are evaluated while a run goes on: the same ones in every round, ascending.

    Args:
      data: the federation; new clients are never among them.
      most: how many at most, 0 for all.
      seed: the run's, by which they are drawn if there are more.
    """
    if not 0 < most < len(data.clients):
        return data.clients
    drawn = derive_generator(seed, "evaluated clients").choice(len(data.clients), most, replace=False)
    return tuple(data.clients[place] for place in sorted(drawn.tolist()))


def evaluate_federation(
    process: FederatedProcess,
    state: State,
    data: FederatedData,
    evaluate: Evaluate,
    clients: Sequence[ClientShard] | None = None,
    with_spread: bool = False,
) -> dict[str, float]:
    """The evaluation columns of metrics.csv.

    `test_loss` and `test_accuracy` are means over the shared models on the global test set, weighted by the clients
    that use each. `validation_accuracy` is the same on the validation examples of `clients` (None: all), pooled.
    `client_test_accuracy` and `client_validation_accuracy` are means over `clients`, each with the weights that
    `process.personalize` gives it, on its own split; clients without that split are left out. Only the validation
    accuracies are for tuning: the clients' own for personal models, the pooled one for shared models, since a client's
    own few classes reward a model that knows nothing else. If the weights are personal, or if asked `with_spread`, the
    standard deviation and the worst tenth of the clients' test accuracies are added.
    """
    shared = _measure_shared_models(process, state, data, evaluate, clients)
    return shared | _measure_clients(process, state, data, evaluate, clients, with_spread)[0]


def build_state_evaluation(
    process: FederatedProcess,
    data: FederatedData,
    evaluate: Evaluate,
    clients: Sequence[ClientShard] | None = None,
    with_spread: bool = False,
) -> EvaluateState:
    """Returns a function that evaluates states: as `evaluate_federation`, and with archetypes their columns, too.

    It takes the state, the one before, if changes are to be measured, and whether the shared models are evaluated, too.
    The change of the clients' accuracies needs those of the previous state. They are kept from the last call if it had
    that very state; if not, as after a resume, the previous state is evaluated again.
    """
    last_state, last_accuracy = None, None

    def evaluate_state(state: State, previous: State | None, with_shared: bool = True) -> dict[str, float | None]:
        nonlocal last_state, last_accuracy
        shared = _measure_shared_models(process, state, data, evaluate, clients) if with_shared else {}
        own, accuracy = _measure_clients(process, state, data, evaluate, clients, with_spread)
        measured = shared | own
        if data.archetypes is None:
            return measured
        before = None
        if previous is not None:
            before = last_accuracy
            if previous is not last_state:
                before = evaluate_clients(process, previous, data, evaluate, clients=clients)["test"].accuracy
        last_state, last_accuracy = state, accuracy
        return measured | compute_archetype_metrics(data.archetypes, process.client_model(state), accuracy, before)

    return evaluate_state


def _measure_shared_models(
    process: FederatedProcess,
    state: State,
    data: FederatedData,
    evaluate: Evaluate,
    clients: Sequence[ClientShard] | None,
) -> dict[str, float]:
    """The columns on the global test set and on all validation examples: as dear as there are models in use."""
    models, names = process.get_models(state), process.client_model(state)
    used = sorted(set(names))
    results = [evaluate(models[name], data.test_x, data.test_y) for name in used]
    validation = data.read_pooled(data.clients if clients is None else clients, "validation")
    validated = [evaluate(models[name], *validation).accuracy for name in used]
    num_users = [names.count(name) for name in used]
    return {
        TEST_LOSS: float(np.average([result.mean_loss for result in results], weights=num_users)),
        TEST_ACCURACY: float(np.average([result.accuracy for result in results], weights=num_users)),
        VALIDATION_ACCURACY: float(np.average(validated, weights=num_users)),
    }


def _measure_clients(
    process: FederatedProcess,
    state: State,
    data: FederatedData,
    evaluate: Evaluate,
    clients: Sequence[ClientShard] | None,
    with_spread: bool,
) -> tuple[dict[str, float], np.ndarray]:
    """The columns on the clients' own splits, and each client's test accuracy, NaN where it was not evaluated."""
    by_split = evaluate_clients(process, state, data, evaluate, ("test", "validation"), clients=clients)
    own = {split: accuracy[~np.isnan(accuracy)] for split, (accuracy, _) in by_split.items()}
    measured = {CLIENT_TEST_ACCURACY: _mean(own["test"]), CLIENT_VALIDATION_ACCURACY: _mean(own["validation"])}
    if process.is_personal or with_spread:
        measured[CLIENT_ACCURACY_STD] = float(own["test"].std()) if own["test"].size else float("nan")
        measured[CLIENT_ACCURACY_WORST_TENTH] = compute_worst_tenth(own["test"])
    return measured, by_split["test"].accuracy


def compute_worst_tenth(accuracy: np.ndarray) -> float:
    """Mean of the lowest tenth of the values, rounded up to whole values; NaN without any."""
    return _mean(np.sort(accuracy)[: -(-len(accuracy) // 10)])


def evaluate_clients(
    process: FederatedProcess,
    state: State,
    data: FederatedData,
    evaluate: Evaluate,
    splits: Sequence[str] = ("test",),
    with_new: bool = False,
    clients: Sequence[ClientShard] | None = None,
) -> dict[str, ClientResults]:
    """Each client's accuracy and loss on its own splits, with the weights that `process.personalize` gives it.

    There is a value for every client, new ones last, but it is NaN for those that are not asked for: new ones, unless
    `with_new`, and those that are not among `clients`, if these are given.
    """
    names = process.client_model(state)
    asked = clients if clients is not None else data.everyone if with_new else data.clients
    clients = [client for client in asked if any(_count_examples(client, split) for split in splits)]
    clients.sort(key=lambda client: names[client.index])  # those of one model side by side, to be pooled
    return evaluate_pairs(process.personalize(state, clients), data, evaluate, splits)


def _count_examples(client: ClientShard, split: str) -> int:
    return {"train": client.num_train, "validation": client.num_validation, "test": client.num_test}[split]


def evaluate_pairs(
    pairs: Iterable[tuple[ClientShard, Weights]], data: FederatedData, evaluate: Evaluate, splits: Sequence[str]
) -> dict[str, ClientResults]:
    """Results of (client, weights) pairs; neighbours that share one weights object are pooled into one pass.

    A pass costs more than its examples while clients are small.
    """
    shape = len(data.everyone)
    results = {split: ClientResults(np.full(shape, np.nan), np.full(shape, np.nan)) for split in splits}
    for clients, weights in _pool_neighbours(pairs):
        for split in splits:
            sizes = [_count_examples(client, split) for client in clients]
            evaluation = evaluate(weights, *data.read_pooled(clients, split))
            for client, part in zip(clients, evaluation.split(sizes), strict=True):
                results[split].accuracy[client.index] = part.accuracy
                results[split].loss[client.index] = part.mean_loss
    return results


def _pool_neighbours(pairs):
    """(client, weights) pairs to (clients, weights). Holds one set of weights at a time: personal models are many."""
    pooled, pooled_weights = [], None
    for client, weights in pairs:
        if pooled and weights is not pooled_weights:
            yield pooled, pooled_weights
            pooled = []
        pooled.append(client)
        pooled_weights = weights
    if pooled:
        yield pooled, pooled_weights


def _mean(values: np.ndarray) -> float:
    return float(values.mean(dtype=np.float64)) if len(values) else float("nan")
