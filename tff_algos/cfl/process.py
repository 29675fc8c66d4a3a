"""CFL: Sattler, Müller and Samek 2020, clusters that are cut into two again and again.

"Clustered Federated Learning: Model-Agnostic Distributed Multi-Task Optimization under Privacy Constraints". A round:
1. Every client trains the model of its cluster, all clients' one at first, and sends its update.
2. The server adds to each model the mean of its clients' updates: FedAvg inside each cluster.
3. Where that mean is short (below eps_1), training stands still. If some client's update is still long (above eps_2),
   the clients want different things. Then the cluster is cut into the two parts whose most similar updates have the
   least cosine, if that is low enough: sqrt((1 - alpha_cross^max) / 2) > gamma_max. Both go on from its model.

| paper | here |
|---|---|
| theta_c, Delta theta_i | a row of `ClusteredState.models`, `PhaseOutcome.updates` |
| eps_1, eps_2 | `eps_1`, `eps_2`, or multiples of the largest norm that the cluster's mean update has had |
| alpha_cross^max, the optimal bipartition, gamma_max | `Bipartition.cross_similarity`, `bipartition`, `gamma_max` |
| parameter tree | `ClusteredState.own`, a `ParameterTree` |

New clients descend the parameter tree: from each model at which their cluster was cut they train once, and follow the
part whose updates theirs is more like.

Limit case: a cluster that is never cut is FedAvg. Deviations from the paper:
- How long an update is depends on model, rate and epochs, so by default eps_1 and eps_2 are relative. The norm is that
  of what the server adds, whatever the aggregator.
- A cut takes effect in the next round: the mean that it is found by, a short one, still goes to the whole cluster.
- A new client is compared with the mean direction of each part, not with every client of it: the tree has three models
  a cut, not one a client. Its training is not counted in bytes and time, since it comes when the run is over.
- Clients whose update is not finite have no say; they go with the larger part.
"""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

from tff_algos.cfl.parameter_tree import ParameterTree, bipartition, compute_norms, plant
from tff_algos.client.cohort import tell_clients
from tff_algos.protocol import Weights
from tff_algos.rounds.aggregation import ClientUpdate
from tff_algos.rounds.aggregators import ListedMean
from tff_algos.rounds.clustered import ClusteredProcess, LastFound, count_clusters, stack_updates
from tff_algos.rounds.synchronous import build_parts
from tff_algos.rounds.training_phase import SlotInput
from tff_algos.weights import take_model


@dataclasses.dataclass(frozen=True, eq=False)
class CFLProcess(ClusteredProcess):
    """CFL."""

    last_found: LastFound = dataclasses.field(default_factory=LastFound)

    takes_new_clients = True
    map_models = None  # the tree has models, too

    def initialize(self):
        return super().initialize()._replace(own=plant(self.initial_weights))

    def finish(self, state, stepped, outcome, cohort):
        """Step 3."""
        means, longest = self.measure(state, outcome)
        largest, config = np.maximum(state.own.largest, means), self.config
        # Before the cuts: both parts inherit the largest norm of their cluster.
        stepped = stepped._replace(own=state.own._replace(largest=largest))
        is_still = means < (config.eps_1_multiple * largest if config.eps_1_multiple else config.eps_1)
        is_torn = longest > (config.eps_2_multiple * largest if config.eps_2_multiple else config.eps_2)
        for cluster in np.flatnonzero(is_still & is_torn):
            stepped = self.cut(stepped, cluster, take_model(state.models, cluster), outcome.updates)
        return stepped

    def measure(self, state, outcome) -> tuple[np.ndarray, np.ndarray]:
        """(norm of the mean update, largest norm of a client's) of each cluster, float64, shape (clusters,)."""
        means = compute_norms(outcome.aggregate.update)
        longest, norms = np.zeros(len(means)), [np.sqrt(each.result.squared_norm) for each in outcome.updates]
        np.maximum.at(longest, state.assignments, norms)
        return means, longest

    def cut(self, state, cluster: int, trained: Weights, updates: Sequence[ClientUpdate]):
        """The state with this cluster cut into two by the updates of the model `trained`; or as it is."""
        members = np.flatnonzero(state.assignments == cluster)
        members = members[[bool(updates[index].result.is_finite) for index in members]]
        if len(members) < 2:
            return state
        rows = stack_updates([updates[index].result for index in members])
        found = bipartition(rows, self.config.linkage)
        if found.gap <= self.config.gamma_max:
            return state
        num_clusters, assignments = count_clusters(state.assignments), state.assignments.copy()
        if found.is_second.mean() > 0.5:  # whoever has no say goes along
            assignments[state.assignments == cluster] = num_clusters
        assignments[members] = np.where(found.is_second, num_clusters, cluster)
        tree = state.own.grow(cluster, state.round_num, trained, rows, found.is_second)
        return self.continue_clusters(state, [*range(num_clusters), cluster], assignments)._replace(own=tree)

    def describe(self, state, new_state, outcome, cohort):
        """Of the norms, the largest of all clusters'."""
        means, longest = (float(norms.max()) for norms in self.measure(state, outcome))
        norms = {"mean_update_norm": means, "largest_update_norm": longest}
        return {**super().describe(state, new_state, outcome, cohort), **norms}

    def find_groups(self, state) -> np.ndarray:
        def find():
            train = functools.partial(self.train_new_clients, state.own)
            return np.append(state.assignments, state.own.descend(len(self.clients.new_clients), train))

        return self.last_found(state.assignments, find)

    def train_new_clients(self, tree: ParameterTree, cut: int, numbers: np.ndarray) -> np.ndarray:
        """Updates of new clients that train the model of a cut as in its round, shape (numbers, parameters)."""
        round_num, indices, config = int(tree.rounds[cut]), len(self.everyone) + numbers, self.config
        parts = self.clients, indices, np.zeros_like(indices), config.client_weighting, config.training
        inputs = [SlotInput(told) for told in tell_clients(*parts, self.seed, "descent", round_num)]
        # Rounded as for that round's clients: the state counts the rounds before it.
        model = self.transport.send(tuple(array[cut : cut + 1] for array in tree.models), round_num - 1)
        return stack_updates([each.update.result for each in self.phase.collect(model, inputs, ())])


def build_cfl_process(model_spec, clients, config, seed):
    """CFL as a process; the arguments are those of `build_fed_avg_process`."""
    aggregator = None if config.aggregation.is_listed else ListedMean()
    return CFLProcess(**build_parts(model_spec, clients, config, seed, aggregator=aggregator))
