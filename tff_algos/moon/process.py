"""MOON: Algorithm 1 of Li, He and Song 2021; the worked example of a loss of one's own (docs/adding.md).

"Model-Contrastive Federated Learning", CVPR 2021. A round is one of FedAvg in which a client of the cohort
1. computes the representations z_glob and z_prev of its examples by the model it received and by its own model of the
   last round it took part in;
2. trains on the task's loss plus mu times the model-contrastive loss (Eqs. 3 and 4), which draws its representations z
   to z_glob, and away from z_prev;
3. keeps the model that it has trained, and sends its change.

| paper | here |
|---|---|
| w^t, w_i^(t-1) | `ServerState.models`, what a client keeps; the first model before its first round |
| R_w(x) | what goes into the model's last layer (`models.embedding`) |
| mu, tau | `contrast_weight`, `temperature` |

Limit cases: mu = 0 is FedAvg. While w_i^(t-1) is w^t, as in the first round, the model-contrastive loss is log 2 and
its gradient 0, so that this is FedAvg, too. Deviations from the paper:
- No projection head is added: where the paper's networks have one, it is part of the model (two dense layers before the
  last), so that all algorithms can train the same network.
- z_glob and z_prev are computed once a round, not in each step, from the examples as stored: with `--augment` they are
  those of the plain images, where the authors' code shows all three models the same changed image. As in the
  authors' code, both models are in inference mode: BatchNorm has its moving statistics, and dropout does nothing.
- A forward pass counts as a third of an example that is trained on, in virtual time and in energy.
- A client whose training is not finite keeps the model it had. The optimizer can be Adam.

Beside its own model, a client needs memory for two representations of each of its examples.
"""

import tensorflow as tf

from models.embedding import expose_embedding, find_head, split_outputs
from tff_algos.client.client_data import read_split
from tff_algos.client.local_training import predict_logits, train_locally
from tff_algos.client.training_steps import Batch
from tff_algos.rounds.aggregation import ClientUpdate
from tff_algos.rounds.synchronous import SynchronousProcess, build_parts
from tff_algos.rounds.training_phase import Sent, Told
from tff_algos.weights import add_deltas, keep_finite


class MoonProcess(SynchronousProcess):
    """MOON; what is not here is FedAvg's."""

    def list_phases(self, state, cohort):
        """Each client also passes its examples through two models, forwards alone."""
        (work,) = super().list_phases(state, cohort)
        passes = 2 * self.clients.num_train[cohort] if self.config.contrast_weight else 0
        return [work._replace(num_examples=work.num_examples + passes / 3)]


def compute_contrastive_losses(z: tf.Tensor, z_glob: tf.Tensor, z_prev: tf.Tensor, temperature: float) -> tf.Tensor:
    """Eq. (3): -log(exp(sim(z, z_glob) / tau) / (exp(sim(z, z_glob) / tau) + exp(sim(z, z_prev) / tau))).

    That is log(1 + exp((sim(z, z_prev) - sim(z, z_glob)) / tau)); sim is the cosine. Where z_glob is z_prev, its
    gradient is exactly 0. In any graph.

    Args:
      z: representations of the examples by the model in training, float32, shape (examples, width).
      z_glob: those by the model received, likewise.
      z_prev: those by the client's own last model, likewise.
      temperature: tau > 0.

    Returns:
      float32, shape (examples,).
    """
    z, z_glob, z_prev = (tf.math.l2_normalize(each, axis=1) for each in (z, z_glob, z_prev))
    return tf.nn.softplus(tf.reduce_sum(z * (z_prev - z_glob), axis=1) / temperature)


def build_contrastive_training(model_spec, config):
    """A client's work.

    Raises:
      ModelError: the model has no representation, see `find_head`.
    """
    width, task = find_head(model_spec).width, model_spec.task
    exposed = expose_embedding(model_spec)

    @tf.autograph.experimental.do_not_convert
    def compute_losses(batch: Batch) -> tf.Tensor:
        """Eq. (4); `batch.targets` are z_glob and z_prev, shape (batch, 2, width)."""
        logits, z = split_outputs(batch.logits, task.num_outputs)
        contrast = compute_contrastive_losses(z, *tf.unstack(batch.targets, axis=1), config.temperature)
        return task.compute_training_losses(batch.labels, logits) + config.contrast_weight * contrast

    def embed(weights, x):
        outputs = predict_logits(exposed, weights, x, (task.num_outputs + width,))
        return split_outputs(outputs, task.num_outputs)[1]

    def work(told: Told) -> Sent:
        client, received = told.client, told.model
        x, y = read_split(client.path, "train", model_spec)
        spec, own = model_spec, {}
        if config.contrast_weight:  # decided while the graph is made: FedAvg needs no representations
            targets = tf.stack([embed(received, x), embed(told.kept, x)], axis=1)
            spec, own = exposed, {"loss_fn": compute_losses, "targets": targets}
        result = train_locally(spec, config.training, received, x, y, client.seed, client.learning_rate, **own)
        kept = keep_finite(result.is_finite, add_deltas(received, result.weights_delta), told.kept)
        return Sent(ClientUpdate(result, client.group, client.weight), kept=kept)

    return work


def build_moon_process(model_spec, clients, config, seed):
    """MOON as a process; the arguments are those of `build_fed_avg_process`.

    Raises:
      ModelError: see `build_contrastive_training`.
    """
    work = build_contrastive_training(model_spec, config)
    return MoonProcess(**build_parts(model_spec, clients, config, seed, work, kept=tuple))
