"""FedProto: Algorithm 1 of Tan, Long, Liu, Zhou, Lu, Jiang and Zhang 2022; for clients of different architectures.

"FedProto: Federated Prototype Learning across Heterogeneous Clients", AAAI 2022. Each client has a model of its own,
of its own architecture. What travels are prototypes: of each class, the mean embedding. A round:
1. The server sends the global prototypes to a cohort (all clients by default).
2. Each client trains its model on its examples, and pulls their embeddings to the global prototypes of their classes
   (Eq. 7). It sends the prototypes of its classes (Eq. 3) and of how many examples they are.
3. The server averages the prototypes of a class by these numbers (Eq. 6).

The embedding is what goes into the last layer; it has the same width in all models. The nearest prototype predicts
(Eq. 4), which is a last layer of other weights: so the model that is evaluated and exported has these, and its loss is
that of the logits 2 z c - |c|^2 of an embedding z.

| paper | here |
|---|---|
| f_i, g_i | a model without its last layer, and that layer (`models.embedding`) |
| C^(j) bar, N_j | `ServerState.own` |
| phi_i, nu_i | what a client keeps |
| lambda, d | `prototype_weight`, the squared distance divided by the width |

Why not FedDF (Lin et al. 2020), which is for such clients too? It distils on unlabelled data of the server, which no
data set here has; its clients of one architecture must share a model; and it sends models.

Limit case: a weight of 0 and `prediction` = head are local training. Deviations from the paper:
- Eq. (8) is a distance between means, which a batch hardly has. Here each example is pulled, as in the paper's analysis
  (Appendix B) and in the published code, whose division by the width its lambda belongs to.
- Eq. (6) is printed with a further factor 1 / |N_j|, which would shrink the prototypes; the analysis has none.
- The paper asks all clients. With a cohort, a class that none of it has keeps its prototype. A client is pulled to, and
  may predict, any class with a prototype, whether it has examples of it or not.
- A client's prototypes are those of its trained model. This forward pass takes no virtual time.
- All clients of an architecture start from the same model. One whose result is not finite keeps its model and sends
  nothing. The optimizer can be Adam.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from models.embedding import Head, expose_embedding, find_head, split_outputs
from models.model_spec import ModelSpec
from tff_algos.client.client_data import read_split, split_labels
from tff_algos.client.cohort import NOBODY
from tff_algos.client.local_training import train_locally
from tff_algos.client.training_steps import Batch, LossFn
from tff_algos.fed_proto.config import PROTOTYPES, SPEED
from tff_algos.protocol import ARCHITECTURE, ClientWork
from tff_algos.rounds.aggregation import ClientUpdate, RoundTotals
from tff_algos.rounds.aggregators import Aggregate, SumAggregator
from tff_algos.rounds.client_store import GroupedStore
from tff_algos.rounds.synchronous import ServerState, SynchronousProcess
from tff_algos.rounds.training_phase import LocalWork, PhaseOutcome, Sent, SlotInput, Told, TrainingPhase
from tff_algos.rounds.transport import build_transport
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.weights import add_deltas, initialize_weights, keep_finite

_BATCH_SIZE = 500  # bounds the memory of the activations


class Prototypes(NamedTuple):
    """Of each class the mean embedding, float32 (classes, width), and of how many examples, float32 (classes,).

    A class without examples has no prototype: its row is zeros.
    """

    means: np.ndarray | tf.Tensor
    counts: np.ndarray | tf.Tensor


def compute_prototypes(spec: ModelSpec, weights: Sequence[tf.Tensor], x: tf.Tensor, y: tf.Tensor) -> Prototypes:
    """Eq. (3): C_i^(j) = 1 / |D_ij| sum of f_i(x) over the examples of class j; call it while a graph is traced.

    Args:
      spec: of `expose_embedding`.
      weights: of the model.
      x: examples as stored, shape (examples, *input_shape).
      y: labels, int32, shape (examples,).
    """
    model, num_classes = spec.build(), spec.task.num_outputs
    width = model.output_shape[1] - num_classes

    # Keras layers hold variables, which take the weights here, inside a graph of their own.
    @tf.function
    def add_up(x, y):
        for variable, value in zip(model.weights, weights, strict=True):
            variable.assign(value)
        sums, counts = tf.zeros((num_classes, width)), tf.zeros(num_classes)
        for start in tf.range(0, tf.shape(y)[0], _BATCH_SIZE):
            labels = y[start : start + _BATCH_SIZE]
            outputs = model(spec.preprocess(x[start : start + _BATCH_SIZE]), training=False)
            _, embedding = split_outputs(outputs, num_classes)
            sums += tf.math.unsorted_segment_sum(embedding, labels, num_classes)
            counts += tf.math.unsorted_segment_sum(tf.ones_like(labels, tf.float32), labels, num_classes)
        return Prototypes(tf.math.divide_no_nan(sums, counts[:, tf.newaxis]), counts)

    return add_up(x, y)


def aggregate_prototypes(before: Prototypes, sent: Sequence[Prototypes]) -> Prototypes:
    """Eq. (6): the mean over the clients of a round, by their examples of the class; in float64, on the host.

    A class that no client of the round has keeps its prototype.
    """
    # Sums over many clients lose digits in float32.
    counts = sum((each.counts.astype(np.float64) for each in sent), np.zeros(before.counts.shape))
    sums = sum(
        (each.means.astype(np.float64) * each.counts[:, np.newaxis] for each in sent), np.zeros_like(before.means)
    )
    is_new = counts > 0
    means = np.where(is_new[:, np.newaxis], sums / np.maximum(counts, 1)[:, np.newaxis], before.means)
    return Prototypes(means.astype(np.float32), np.where(is_new, counts, before.counts).astype(np.float32))


def compute_spread(prototypes: Prototypes, sent: Sequence[Prototypes]) -> float:
    """The second sum of Eq. (5): how far the clients' prototypes lie from the global ones, by examples.

    The distance is that of `build_loss`; the mean is over all examples, NaN without any.
    """
    distances = [np.square(each.means - prototypes.means, dtype=np.float64).mean(axis=1) for each in sent]
    total = sum(float(each.counts.sum()) for each in sent)
    pulled = sum(float(each.counts @ distance) for each, distance in zip(sent, distances, strict=True))
    return pulled / total if total else float("nan")


def build_loss(spec: ModelSpec, weight: float, prototypes: Prototypes) -> LossFn:
    """Eq. (7): the task's loss plus lambda times the distance of the embedding to the global prototype of its class.

    The distance is the squared one, divided by the width; 0 where a class has no prototype. Class weights multiply the
    task's loss alone.
    """

    @tf.autograph.experimental.do_not_convert
    def compute_losses(batch: Batch) -> tf.Tensor:
        logits, embedding = split_outputs(batch.logits, spec.task.num_outputs)
        losses = spec.task.compute_training_losses(batch.labels, logits)
        if not weight:  # decided while the graph is made: local training has no such term
            return losses
        distances = tf.reduce_mean(tf.square(embedding - tf.gather(prototypes.means, batch.labels)), axis=1)
        is_known = tf.gather(prototypes.counts, batch.labels) > 0
        return losses + weight * tf.where(is_known, distances, 0.0)

    return compute_losses


def build_nearest_head(prototypes: Prototypes) -> tuple[np.ndarray, np.ndarray]:
    """Eq. (4) as a dense layer, (kernel (width, classes), bias (classes,)): its largest logit is the nearest prototype.

    |z - c|^2 = |z|^2 - (2 z c - |c|^2), and |z|^2 is the same for all classes. A class without a prototype gets the
    logit of one that has one, less 1, so that it is never predicted. There must be one.
    """
    means = prototypes.means
    bias = -np.square(means).sum(axis=1)
    known = np.flatnonzero(prototypes.counts > 0)
    source = np.where(prototypes.counts > 0, np.arange(len(means)), known[0])
    return 2 * means[source].T, (bias[source] - (prototypes.counts == 0)).astype(np.float32)


NO_MODEL = Aggregate((), np.zeros(1, bool), np.zeros(1, np.float32), 1, (), {})
_MOST_BYTES = 2**28  # of the models of one call: a message of the worker carries at most 2 GB


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class FedProtoProcess(SynchronousProcess):
    """FedProto. `names`, `heads` and `phases` are of each architecture; there is no shared model."""

    names: tuple[str, ...]
    heads: tuple[Head, ...]
    phases: tuple[TrainingPhase, ...]
    num_classes: int

    takes_new_clients = shares_models = False

    def initialize(self):
        shape = self.num_classes, self.heads[0].width
        own = Prototypes(np.zeros(shape, np.float32), np.zeros(shape[0], np.float32))
        return ServerState(np.int32(0), np.float64(0.0), (), kept=self.store.initialize(), own=own)

    def assign_groups(self, state, cohort):
        return self.store.group_of[cohort].astype(np.int32)

    def train(self, state, invited, round_num):
        """Step 2, one architecture after another; `PhaseOutcome.sums` are the prototypes of each client."""
        del round_num
        rows = self.store.read(state.kept, [each.index for each in invited])
        inputs = [SlotInput(each.told, kept=row) for each, row in zip(invited, rows, strict=True)]
        sent = {}
        for group, (phase, store) in enumerate(zip(self.phases, self.store.stores, strict=True)):
            positions = [position for position, each in enumerate(inputs) if each.client.group == group]
            size, blank = max(_MOST_BYTES // store.row_bytes, 1), SlotInput(NOBODY, kept=store.initial)
            for part in (positions[start : start + size] for start in range(0, len(positions), size)):
                collected = phase.collect(state.own, [inputs[position] for position in part], (), 1, blank)
                sent.update(zip(part, collected, strict=True))
        # Back in the order of the cohort, by which the store writes.
        sent = [sent[position] for position in range(len(inputs))]
        results = [each.update.result for each in sent]
        loss_sum, num_trained = sum(each.loss_sum for each in results), sum(each.num_trained for each in results)
        totals = RoundTotals(loss_sum, num_trained, sum(not each.is_finite for each in results), 0.0, 0.0)
        return PhaseOutcome(NO_MODEL, totals, [each.sums for each in sent], [each.kept for each in sent])

    def apply(self, state, outcome):
        return state._replace(own=aggregate_prototypes(state.own, outcome.sums))

    def list_phases(self, state, cohort):
        """Prototypes alone travel, those of classes that have one, and the numbers of examples of all classes."""
        row_bytes, counts_bytes = 4 * self.heads[0].width, 4 * self.num_classes
        down = counts_bytes + row_bytes * int(np.sum(state.own.counts > 0))
        up = counts_bytes + row_bytes * np.array([self.count_own_classes(client) for client in cohort])
        return [ClientWork(cohort, self.examples_trained[cohort], down, up)]

    def count_own_classes(self, index):
        """Of how many classes a client has train examples; only of many clients its labels must be read for that."""
        if self.clients.label_counts.shape[1]:
            return int(np.sum(self.clients.label_counts[index] > 0))
        return len(np.unique(self.clients.read_labels(self.clients.clients[index], "train")))

    def describe(self, state, new_state, outcome, cohort):
        known, spread = int(np.sum(new_state.own.counts > 0)), compute_spread(new_state.own, outcome.sums)
        return {"num_prototypes": known, "prototype_spread": spread}

    def personalize(self, state, clients):
        is_nearest = self.config.prediction == PROTOTYPES
        nearest = build_nearest_head(state.own) if is_nearest and np.any(state.own.counts > 0) else None
        for client, row in self.iterate_kept(state, clients):
            head = self.heads[self.store.group_of[client.index]]
            yield client, tuple(row) if nearest is None else head.replace(row, *nearest)

    def get_models(self, state):
        return {client.name: weights for client, weights in self.personalize(state, self.clients.clients)}

    def client_model(self, state):
        return [client.name for client in self.clients.clients]

    def client_columns(self, state):
        return {ARCHITECTURE: [self.names[group] for group in self.store.group_of]}


def build_prototype_training(model_spec: ModelSpec, training: LocalTrainingConfig, weight: float) -> LocalWork:
    """A client's work: it trains its own model by Eq. (7), keeps it, and sends the prototypes that it makes (Eq. 3).

    The update has no weights, since no model travels; `Sent.sums` are the client's `Prototypes`.
    """
    exposed = expose_embedding(model_spec)

    def work(told: Told) -> Sent:
        client, loss = told.client, build_loss(exposed, weight, told.models)
        x, y = read_split(client.path, "train", exposed)
        result = train_locally(exposed, training, told.kept, x, y, client.seed, client.learning_rate, loss)
        trained = add_deltas(told.kept, result.weights_delta)
        made = compute_prototypes(exposed, trained, x, split_labels(y, exposed.task)[0])
        # Finite weights can still have embeddings that are not.
        is_finite = result.is_finite & tf.reduce_all(tf.math.is_finite(made.means))
        sent = Prototypes(*(tf.where(is_finite, each, 0.0) for each in made))
        update = ClientUpdate(result._replace(weights_delta=(), is_finite=is_finite), client.group, client.weight)
        return Sent(update, sent, keep_finite(is_finite, trained, told.kept))

    return work


def find_heads(specs: tuple[ModelSpec, ...], models: str) -> tuple[Head, ...]:
    """The last layer of each architecture.

    Args:
      specs: of the architectures, of one task.
      models: the setting that names them.

    Raises:
      ConfigError: labels are no classes, or the architectures do not go together.
      ModelError: see `find_head`.
    """
    task, names = specs[0].task.kind.name, [spec.name for spec in specs]
    if task != "classification":
        raise ConfigError(
            "--algo", "fedproto", f"classes as labels, since a prototype is of a class; the task is {task}"
        )
    heads = tuple(map(find_head, specs))
    if len({head.width for head in heads}) > 1:
        found = ", ".join(f"{head.width} of {name}" for name, head in zip(names, heads, strict=True))
        raise ConfigError("models", models, f"models of one width before their last layer, found {found}")
    if len({spec.weight_shapes for spec in specs}) < len(specs):
        raise ConfigError("models", models, "models whose weights differ in shape, by which they are told apart")
    return heads


def assign_models(num_clients: int, num_models: int, assignment: str, examples_per_s: np.ndarray) -> np.ndarray:
    """The architecture of each client, int64, shape (clients,).

    Args:
      num_clients: clients that train.
      num_models: architectures.
      assignment: "turns": one after another; "speed": equal shares of the devices, the slowest the first architecture.
      examples_per_s: of each device, shape (at least clients,).
    """
    if assignment != SPEED:
        return np.arange(num_clients) % num_models
    ranks = np.argsort(np.argsort(examples_per_s[:num_clients], kind="stable"), kind="stable")
    return ranks * num_models // num_clients


def build_fed_proto_process(model_spec, clients, config, seed):
    """FedProto as a process, over `model_spec` and its peers; the arguments are those of `build_fed_avg_process`.

    Raises:
      ConfigError, ModelError: see `find_heads`.
    """
    specs = model_spec.variants
    heads, weights = find_heads(specs, config.models), [initialize_weights(spec, seed) for spec in specs]
    transport = build_transport(model_spec, (), seed)
    works = [build_prototype_training(spec, config.training, config.prototype_weight) for spec in specs]
    phases = tuple(TrainingPhase(work, transport, SumAggregator(), ()) for work in works)
    group_of = assign_models(len(clients.clients), len(specs), config.assignment, clients.profiles.examples_per_s)
    return FedProtoProcess(
        clients,
        config,
        seed,
        initial_weights=(),
        phase=phases[0],
        server_step=None,
        store=GroupedStore(weights, group_of),
        names=tuple(spec.name for spec in specs),
        heads=heads,
        phases=phases,
        num_classes=model_spec.task.num_outputs,
    )
