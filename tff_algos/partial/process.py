"""Partial personalization: some layers are averaged over the clients, the others stay with the client.

One process for four papers, which differ in what is personal (`personal`) and in the order of training (`schedule`):

| paper | what is personal | order |
|---|---|---|
| FedPer: Arivazhagan et al. 2019, "Federated Learning with Personalization Layers" | `last` | `together` |
| FedRep: Collins et al. 2021, "Exploiting Shared Representations ...", Algorithm 1 | `last` | `head_first` |
| FedBN: Li et al. 2021, "... Non-IID Features via Local Batch Normalization" | `batch_norm` | `together` |
| LG-FedAvg: Liang et al. 2020, "Think Locally, Act Globally", Algorithm 1 | `all_but:last` | `together` |

A round:
1. The server sends the shared layers, and nothing else.
2. A client of the cohort joins them with its own, and trains all together; or its own for `head_epochs`, and then the
   shared ones, while the others are fixed.
3. It keeps its personal layers, and sends the change of the shared ones, which the server averages as in FedAvg.

| paper | here |
|---|---|
| W_B, phi, theta^g: what is shared | `ServerState.models`, which has no other layers |
| W_P, h_i, theta_i^l: what is personal | what a client keeps; the first model's before its first round |
| tau of FedRep | `head_epochs` |

BatchNorm's statistics belong to their layer: with `batch_norm` they stay with the client, as in FedBN; otherwise they
travel and are averaged. `*/moving_*` keeps them alone. Whoever has not taken part yet has the shared layers with the
first personal ones, and so has the model on the global test set: judge by the clients' own tests. Limit case: without
personal layers it is FedAvg.

Deviations from the papers:
- All clients begin with the same personal layers.
- FedRep's shared layers take one step in Algorithm 1, epochs in its experiments; here what `training` says.
- The statistics of a fixed BatchNorm move while other layers are trained, and are then put back.
- LG-FedAvg's auxiliary losses, and its ensemble for new clients, are left out.
- A client whose training is not finite keeps the personal layers it had. Adam is the default.
"""

import dataclasses
import functools
from collections.abc import Sequence

import tensorflow as tf

from tff_algos.client.client_data import read_split
from tff_algos.client.local_training import reject_unless, train_locally
from tff_algos.partial.config import HEAD_FIRST
from tff_algos.partial.personal_layers import choose_personal, join_layers, take_layers
from tff_algos.rounds.aggregation import ClientUpdate
from tff_algos.rounds.synchronous import SynchronousProcess, build_parts
from tff_algos.rounds.training_phase import Sent, Told
from tff_algos.weights import add_deltas, is_float, keep_finite, take_model

_SHARED_PHASE = 2**30  # keeps its seeds apart from those of the epochs before it


@dataclasses.dataclass(frozen=True, eq=False)
class PartialProcess(SynchronousProcess):
    """Partial personalization; `is_personal_weight` marks the weights that stay with the clients."""

    is_personal_weight: tuple[bool, ...] = ()

    is_personal, takes_new_clients = True, False
    released = "the shared layers of every round"

    def list_phases(self, state, cohort):
        (work,) = super().list_phases(state, cohort)
        epochs = self.config.head_epochs if self.config.schedule == HEAD_FIRST else 0
        return [work._replace(num_examples=work.num_examples + epochs * self.clients.num_train[cohort])]

    def get_models(self, state):
        shared = take_model(self.send(state), 0)
        return {"global": join_layers(self.is_personal_weight, shared, self.store.initial)}

    def personalize(self, state, clients):
        shared = take_model(self.send(state), 0)
        for client, own in self.iterate_kept(state, clients):
            yield client, join_layers(self.is_personal_weight, shared, own)


def build_partial_training(model_spec, config, is_personal: Sequence[bool]):
    """A client's work; `is_personal` marks the weights that it keeps, in the order of `keras_model.weights`."""
    is_shared = [not is_own for is_own in is_personal]
    head_training = dataclasses.replace(config.training, epochs=config.head_epochs, steps=0)

    def work(told: Told) -> Sent:
        client = told.client
        x, y = read_split(client.path, "train", model_spec)
        start = join_layers(is_personal, told.model, told.kept)

        def train(training, start, seed, chosen=None):
            result = train_locally(model_spec, training, start, x, y, seed, client.learning_rate, chosen=chosen)
            return result, add_deltas(start, result.weights_delta)

        if config.schedule == HEAD_FIRST:
            head, trained = train(head_training, start, client.seed, is_personal)
            start = join_layers(is_personal, take_layers(is_shared, start), take_layers(is_personal, trained))
            seed = tf.random.experimental.stateless_fold_in(client.seed, _SHARED_PHASE)
            body, _ = train(config.training, start, seed, is_shared)
            sums = body.loss_sum + head.loss_sum, body.num_trained + head.num_trained
            # A head that diverged comes back as it was, so that the body alone would look finite.
            result = reject_unless(head.is_finite, body._replace(loss_sum=sums[0], num_trained=sums[1]))
            kept = take_layers(is_personal, start)
        else:
            result, trained = train(config.training, start, client.seed)
            kept = take_layers(is_personal, trained)
        is_sent = [is_it for is_it, weight in zip(is_shared, start, strict=True) if is_float(weight)]
        deltas = take_layers(is_sent, result.weights_delta)
        # Clipping and drift go by what is sent, not by what stays with the client.
        norm = tf.add_n([tf.reduce_sum(tf.square(delta)) for delta in deltas])
        update = ClientUpdate(result._replace(weights_delta=deltas, squared_norm=norm), client.group, client.weight)
        return Sent(update, kept=keep_finite(result.is_finite, kept, told.kept))

    return work


def build_partial_process(model_spec, clients, config, seed):
    """Partial personalization as a process; the arguments are those of `build_fed_avg_process`.

    Raises:
      ConfigError: the pattern does not fit the model, see `choose_personal`.
    """
    is_personal = choose_personal(model_spec, config.personal, needs_trained=config.schedule == HEAD_FIRST)
    travels = [not is_own for is_own in is_personal]
    work = build_partial_training(model_spec, config, is_personal)
    kept = functools.partial(take_layers, is_personal)
    parts = build_parts(model_spec, clients, config, seed, work, kept=kept, travels=travels)
    return PartialProcess(**parts, is_personal_weight=is_personal)
