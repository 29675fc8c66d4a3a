"""What a client of FedProto does in a round."""

import tensorflow as tf

from models.embedding import expose_embedding
from models.model_spec import ModelSpec
from tff_algos.client.client_data import read_split, split_labels
from tff_algos.client.local_training import train_locally
from tff_algos.fed_proto.prototypes import Prototypes, build_loss, compute_prototypes
from tff_algos.rounds.aggregation import ClientUpdate
from tff_algos.rounds.training_phase import LocalWork, Sent, Told
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.weights import add_deltas


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
        kept = tuple(tf.where(is_finite, new, old) for new, old in zip(trained, told.kept, strict=True))
        update = ClientUpdate(result._replace(weights_delta=(), is_finite=is_finite), client.group, client.weight)
        return Sent(update, sent, kept)

    return work
