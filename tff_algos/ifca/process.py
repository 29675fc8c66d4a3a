"""IFCA: Algorithm 1 of Ghosh, Chung, Yin and Ramchandran 2020, with both options; and HypCluster.

"An Efficient Framework for Clustered Federated Learning", NeurIPS 2020. A round:
1. The server sends all k models to a cohort.
2. Each client finds the model with the least loss on its train examples, its estimate of the cluster it belongs to.
3. It trains that model and sends the update (`averaging="models"`, option II), or takes one step along the gradient of
   a batch (`"gradients"`, option I; of all its examples if the batch is that large).
4. The server adds to each model the mean of its clients' updates (option II), or their sum over the number of clients
   in the cohort, so that a model of few clients takes a small step (option I).

| paper | here |
|---|---|
| k, theta_j | `num_models`, the rows of `ServerState.models` |
| j-hat of client i, s_i | `find_best`, in `ServerState.own`; -1 for who has not taken part yet |
| M_t, m | the cohort, the sum of its weights |
| tau, gamma | `training.epochs` or `steps`, `training.learning_rate` (times `server.learning_rate`) |

HypCluster (Algorithm 2 of Mansour, Mohri, Ro and Suresh 2020, "Three Approaches for Personalization with Applications
to Federated Learning") is the same alternation with option II. It weighs clients by their examples, as is the default
here, where IFCA's means are plain (`client_weighting="equal"`). It ends with a choice of all clients; so does this,
since whoever is evaluated, new clients too, chooses by the models of that moment. So one row stands for both.

Limit case: one model is FedAvg. Deviations from the papers:
- The models begin as k random ones, with no start near their clusters and no restarts: some may stay without clients.
  With `dealt_rounds`, clients first train models dealt to them, so that all are trained before any is chosen.
- IFCA's shared layers are not here. A model whose loss is not finite is nobody's choice.
- To choose costs no virtual time, and to say which model was chosen no bytes.
"""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from datasets.federated_data import ClientFiles
from tff_algos.client.client_evaluation import LOSSES, build_client_evaluation
from tff_algos.ifca.config import GRADIENTS
from tff_algos.protocol import CLUSTER, Weights
from tff_algos.rounds.clustered import GroupedProcess, LastFound
from tff_algos.rounds.synchronous import build_parts
from tff_algos.seeds import derive_generator
from tff_algos.weights import initialize_weights, stack_models

NOT_YET = -1  # the choice of a client that has not taken part


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class IFCAProcess(GroupedProcess):
    """IFCA; `first_models` are stacked, `evaluate` gives losses on train splits (see `build_client_evaluation`)."""

    first_models: Weights
    evaluate: Callable
    last_found: LastFound = dataclasses.field(default_factory=LastFound)

    model_name = "model"

    def initialize(self):
        choices, parts = np.full(len(self.everyone), NOT_YET, np.int32), self.initialize_parts(self.config.num_models)
        return super().initialize()._replace(models=self.first_models, own=choices, **parts)

    def find_best(self, state, clients: Sequence[ClientFiles]) -> np.ndarray:
        """Step 2: the model with the least train loss, as each client got it, int32, shape (clients,)."""
        losses = self.evaluate(self.send(state), clients, np.ones((len(clients), self.config.num_models), bool))
        # Of a diverged model the loss is NaN, which `argmin` would choose.
        return np.where(np.isfinite(losses), losses, np.inf).argmin(axis=1).astype(np.int32)

    def prepare(self, state, cohort):
        if state.round_num < self.config.dealt_rounds:
            shuffled = derive_generator(self.seed, "dealt models", int(state.round_num) + 1).permutation(len(cohort))
            found = shuffled % self.config.num_models
        else:
            found = self.find_best(state, [self.clients.clients[index] for index in cohort])
        # A state is never changed, so that its round can be repeated.
        choices = state.own.copy()
        choices[cohort] = found
        return state._replace(own=choices), 0

    def assign_groups(self, state, cohort):
        return state.own[cohort]

    def apply(self, state, outcome):
        """Step 4; option I turns each mean into a sum over the weight of all."""
        aggregate = outcome.aggregate
        if self.config.averaging == GRADIENTS:
            # If all updates are rejected, all weights are 0, and so are the means.
            share = aggregate.weight / max(aggregate.weight.sum(), np.finfo(np.float32).tiny)
            update = (np.asarray(rows) for rows in aggregate.update)
            update = tuple(rows * share.reshape(-1, *[1] * (rows.ndim - 1)) for rows in update)
            outcome = outcome._replace(aggregate=aggregate._replace(update=update))
        return super().apply(state, outcome)

    def list_phases(self, state, cohort):
        (work,) = super().list_phases(state, cohort)
        return [work._replace(bytes_down=self.config.num_models * work.bytes_down)]

    def describe(self, state, new_state, outcome, cohort):
        """Models that are some client's choice, and clients of the cohort whose choice is not that of their last."""
        before, now = state.own[cohort], new_state.own[cohort]
        return {
            "num_clusters": len(np.unique(new_state.own[new_state.own != NOT_YET])),
            "num_changed": int(np.sum((before != NOT_YET) & (before != now))),
            **super().describe(state, new_state, outcome, cohort),
        }

    def client_columns(self, state):
        return {CLUSTER: self.find_groups(state).tolist()}

    def summarize(self, state):
        sizes = np.bincount(self.find_groups(state), minlength=self.config.num_models).tolist()
        return {"cluster_sizes": sizes, **super().summarize(state)}

    def find_groups(self, state) -> np.ndarray:
        """The best model of every client, new ones last, whatever it has trained."""
        return self.last_found(state.models, lambda: self.find_best(state, self.clients.everyone))


def build_ifca_process(model_spec, clients, config, seed):
    """IFCA as a process; the arguments are those of `build_fed_avg_process`."""
    parts = build_parts(model_spec, clients, config, seed)
    others = [initialize_weights(model_spec, seed, f"model {index}") for index in range(1, config.num_models)]
    evaluate = build_client_evaluation(model_spec, parts["initial_weights"], config.num_models, "train", LOSSES)
    return IFCAProcess(**parts, first_models=stack_models([parts["initial_weights"], *others]), evaluate=evaluate)
