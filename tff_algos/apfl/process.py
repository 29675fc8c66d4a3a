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

import numpy as np

from tff_algos.apfl.mixture import MixtureRule, mix
from tff_algos.client.client_data import read_split
from tff_algos.client.local_training import reject_if_not_finite, reject_unless, train_by_rule
from tff_algos.rounds.aggregation import ClientUpdate
from tff_algos.rounds.synchronous import SynchronousProcess, build_parts
from tff_algos.rounds.training_phase import Sent, Told
from tff_algos.weights import is_float, keep_finite, take_model


class APFLProcess(SynchronousProcess):
    """APFL; a client keeps v and alpha."""

    is_personal = takes_new_clients = True

    def list_phases(self, state, cohort):
        """Each client trains two models, and sends one."""
        (work,) = super().list_phases(state, cohort)
        return [work._replace(num_examples=2 * work.num_examples)]

    def describe(self, state, new_state, outcome, cohort):
        alphas = [kept[-1] for kept in outcome.kept]
        own = {"mean_alpha": float(np.mean(alphas)) if alphas else float("nan")}
        return {**super().describe(state, new_state, outcome, cohort), **own}

    def personalize(self, state, clients):
        took_part, shared = set(state.kept.clients.tolist()), take_model(self.send(state), 0)
        rows = self.store.iterate(state.kept, [client.index for client in clients])
        for client, (*own, alpha) in zip(clients, rows, strict=True):
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
