"""APFL: Algorithm 1 of Deng, Kamani and Mahdavi 2020.

"Adaptive Personalized Federated Learning", 2020. A client's personal model is the mixture alpha v + (1 - alpha) w of a
model of its own and the global one. A round is one of FedAvg, in which each client of the cohort, on each batch,
- moves its copy of w down the gradient of its loss at w;
- moves v, which it keeps, down the gradient by v of its loss at the mixture: alpha times that by the mixture;
- on the first batch of a round, if `adaptive`, moves alpha down its gradient, <v - w, gradient at the mixture>.

| paper | here |
|---|---|
| w, v_i, alpha_i | `ServerState.models`, what a client keeps |
| tau, eta | steps or epochs, and rate of `training` |

Limit cases: with alpha = 0, held, the personal models are FedAvg's, with alpha = 1 those of local training. Whatever
alpha, w is the model of FedAvg. Deviations from the paper:
- alpha moves once a round, as in the authors' code, and stays between 0 and 1. The paper gives the step, not when.
- The gradients of a batch are all taken before any step, as in the algorithm; the authors' code moves w first, and
  mixes outputs, not weights.
- A client is tested with alpha v + (1 - alpha) w for the newest w. Who has not taken part yet has w.
- BatchNorm's statistics are mixed as weights are; v's are those of the mixture.
- Clients weigh by their examples by default. If one of v and w is not finite, neither counts.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tff_algos.client.client_data import read_split
from tff_algos.client.joined_optimizer import Carried, JoinedOptimizer, as_written
from tff_algos.client.local_training import reject_if_not_finite, reject_unless, train_by_rule
from tff_algos.client.training_steps import Measure, list_values
from tff_algos.rounds.aggregation import ClientUpdate
from tff_algos.rounds.synchronous import SynchronousProcess, build_parts
from tff_algos.rounds.training_phase import Sent, Told
from tff_algos.weights import is_float, keep_finite, take_model


class Carry(NamedTuple):
    """What goes from batch to batch.

    Attributes:
      w: the optimizer's part of w.
      v: the optimizer's part of v.
      statistics: what is not trained, such as BatchNorm's statistics, as the mixture sees it.
      alpha: float32 scalar.
      is_first: whether no step has been taken, bool.
    """

    w: Carried
    v: Carried
    statistics: tuple[tf.Tensor, ...]
    alpha: tf.Tensor
    is_first: tf.Tensor


@as_written
def mix(alpha, own: Sequence, shared: Sequence) -> tuple:
    """alpha v + (1 - alpha) w for each weight, in any graph or in NumPy."""
    return tuple(alpha * v + (1 - alpha) * w for v, w in zip(own, shared, strict=True))


@as_written
def step_alpha(alpha, own: Sequence, shared: Sequence, gradients: Sequence, rate) -> tf.Tensor:
    """alpha - rate <v - w, gradient at the mixture>, held between 0 and 1."""
    products = [tf.reduce_sum((v - w) * g) for v, w, g in zip(own, shared, gradients, strict=True)]
    return tf.clip_by_value(alpha - rate * tf.add_n(products), 0.0, 1.0)


class MixtureRule:
    """Between steps the variables are w, and what is not trained is as w sees it.

    Args:
      optimizer: takes the steps of w, and those of v.
      model: whose variables they are.
      own: v before the first step, in the order of `model.weights`.
      alpha: before the first step, float32 scalar.
      rate: of alpha, which moves in the first step alone; 0 holds it.
    """

    def __init__(self, optimizer: JoinedOptimizer, model: tf.keras.Model, own: Sequence[tf.Tensor], alpha, rate):
        self._optimizer, self._model, self._alpha, self._rate = optimizer, model, alpha, rate
        own_of = {variable.ref(): value for variable, value in zip(model.weights, own, strict=True)}
        trained = {variable.ref() for variable in optimizer.variables}
        self._others = [variable for variable in model.weights if variable.ref() not in trained]
        self._own, self._statistics = (
            tuple(own_of[variable.ref()] for variable in part) for part in (optimizer.variables, self._others)
        )

    @as_written
    def start(self) -> Carry:
        variables = self._optimizer.variables
        # The optimizer starts from what its variables hold, so they are v for a moment.
        w, shared = self._optimizer.start(), _read(variables)
        _assign(variables, self._own)
        v = self._optimizer.start()
        _assign(variables, shared)
        return Carry(w, v, self._statistics, self._alpha, tf.constant(True))

    def take(self, carried: Carry, measure: Measure) -> tuple[Carry, tf.Tensor]:
        """The loss is that of w."""
        variables, alpha = self._optimizer.variables, carried.alpha
        shared, own = _read(variables), self._optimizer.split(carried.v)
        loss, gradients = measure(None)
        # A forward pass in training moves BatchNorm's statistics: those of w are put back at the end.
        of_shared = _read(self._others)
        _assign(variables, mix(alpha, own, shared))
        _assign(self._others, carried.statistics)
        _, of_mixture = measure(None)
        of_own = _read(self._others)
        # The gradient of the mixture's loss by v is alpha times that by the mixture.
        v = self._optimizer.step(carried.v, [alpha * gradient for gradient in of_mixture])
        moved = step_alpha(alpha, own, shared, of_mixture, self._rate)
        w = self._optimizer.step(carried.w, gradients)
        _assign(self._others, of_shared)
        return Carry(w, v, of_own, tf.where(carried.is_first, moved, alpha), tf.constant(False)), loss

    @as_written
    def finish(self, carried: Carry) -> tuple[tuple[tf.Tensor, ...], tf.Tensor]:
        """v as the weights of a model, in their order, and alpha."""
        values = *self._optimizer.split(carried.v), *carried.statistics
        return list_values(self._model.weights, [*self._optimizer.variables, *self._others], values), carried.alpha


@as_written
def _read(variables: Sequence[tf.Variable]) -> tuple[tf.Tensor, ...]:
    return tuple(variable.read_value() for variable in variables)


@as_written
def _assign(variables: Sequence[tf.Variable], values: Sequence[tf.Tensor]) -> None:
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


class APFLProcess(SynchronousProcess):
    """APFL; a client keeps v and alpha."""

    is_personal = takes_new_clients = True
    models_trained = 2

    def describe(self, state, new_state, outcome, cohort):
        alphas = [kept[-1] for kept in outcome.kept]
        own = {"mean_alpha": float(np.mean(alphas)) if alphas else float("nan")}
        return {**super().describe(state, new_state, outcome, cohort), **own}

    def personalize(self, state, clients):
        took_part, shared = set(state.kept.clients.tolist()), take_model(self.send(state), 0)
        for client, (*own, alpha) in self.iterate_kept(state, clients):
            yield client, mix_models(alpha, own, shared) if client.index in took_part else shared


def mix_models(alpha, own, shared) -> tuple:
    """The mixture of two models; of what is no floating-point weight, the shared one's."""
    mixed = mix(alpha, own, shared)
    return tuple(np.asarray(new, old.dtype) if is_float(old) else old for new, old in zip(mixed, shared, strict=True))


def build_mixture_training(model_spec, config):
    """A client's work: w, whose change it sends, and v and alpha, which it keeps."""

    def work(told: Told) -> Sent:
        client, (*own, alpha) = told.client, told.kept
        x, y = read_split(client.path, "train", model_spec)
        start, rate = told.model, client.learning_rate
        make_rule = functools.partial(MixtureRule, own=own, alpha=alpha, rate=rate if config.adaptive else 0.0)
        result, (trained, moved) = train_by_rule(model_spec, config.training, start, x, y, client.seed, rate, make_rule)
        # The update of w says nothing of v and alpha, and what is kept must be finite, too.
        change = [new - old for new, old in zip((*trained, moved), told.kept, strict=True) if is_float(old)]
        kept_is_finite = reject_if_not_finite(change, result.loss_sum, result.num_trained).is_finite
        sent = reject_unless(kept_is_finite, result)
        kept = keep_finite(sent.is_finite, (*trained, moved), told.kept)
        return Sent(ClientUpdate(sent, client.group, client.weight), kept=kept)

    return work


def build_apfl_process(model_spec, clients, config, seed):
    """APFL as a process; the arguments are those of `build_fed_avg_process`."""
    work = build_mixture_training(model_spec, config)

    def keep_first(weights):
        return (*weights, np.array(config.alpha, np.float32))

    return APFLProcess(**build_parts(model_spec, clients, config, seed, work, kept=keep_first))
