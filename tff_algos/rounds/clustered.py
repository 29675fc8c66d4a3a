"""What algorithms share whose clients have a model a group, and of these the ones whose server finds the groups."""

import abc
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tff_algos.protocol import CLUSTER, TOTAL_DRIFT, WITHIN_CLUSTER_DRIFT, Weights
from tff_algos.rounds.list_aggregator import join_update
from tff_algos.rounds.synchronous import SynchronousProcess
from tff_algos.rounds.training_phase import PhaseOutcome
from tff_algos.weights import stack_models, take_model


def number_by_first_appearance(labels: np.ndarray) -> np.ndarray:
    """Renames cluster labels to 0, 1, ... in the order of first appearance, int32, same shape."""
    # Clustering numbers clusters as it likes; by first appearance a repeated run has the same names.
    _, first_clients, positions = np.unique(labels, return_index=True, return_inverse=True)
    return first_clients.argsort().argsort()[positions].astype(np.int32)


def count_clusters(assignments: np.ndarray) -> int:
    """How many clusters there are, given that they are numbered from 0 without gaps."""
    return int(assignments.max()) + 1


class LastFound:
    """Remembers one result: that of the object that was asked for last, which is told by its identity.

    A run asks for what is found for a state again and again: for its tables, plots and models.
    """

    def __init__(self):
        self._of, self._found = None, None

    def __call__(self, of: Any, find: Callable[[], Any]) -> Any:
        """What `find()` gives for an object, such as the models of a state, that nobody changes."""
        if self._of is not of:
            self._of, self._found = of, find()
        return self._found


class GroupedProcess(SynchronousProcess):
    """FedAvg inside groups: a model a group, named `<model_name>_<row>`. Who belongs to which is the algorithm's."""

    model_name = "cluster"

    @abc.abstractmethod
    def find_groups(self, state: Any) -> np.ndarray:
        """The group of every client, new ones last where they have one, int, shape (clients,)."""

    def describe(self, state: Any, new_state: Any, outcome: PhaseOutcome, cohort: np.ndarray) -> dict[str, float]:
        totals = outcome.totals
        return {WITHIN_CLUSTER_DRIFT: float(totals.within_group_drift), TOTAL_DRIFT: float(totals.total_drift)}

    def get_models(self, state: Any) -> dict[str, Weights]:
        sent = self.send(state)
        return {f"{self.model_name}_{row}": take_model(sent, row) for row in range(len(sent[0]))}

    def client_model(self, state: Any) -> list[str]:
        return [f"{self.model_name}_{group}" for group in self.find_groups(state)]


class ClusteredState(NamedTuple):
    """Everything that a resume needs.

    Attributes:
      round_num: rounds done, int32.
      virtual_time_s: since the start, float64.
      models: the cluster models, stacked along axis 0.
      assignments: the cluster of each client, int32, shape (clients,).
      aggregator, server, kept: of these parts.
      own: what else the algorithm has at the server.
    """

    round_num: np.int32
    virtual_time_s: np.float64
    models: Weights
    assignments: np.ndarray
    aggregator: Any = ()
    server: Any = ()
    kept: Any = ()
    own: Any = ()


class ClusteredProcess(GroupedProcess):
    """FedAvg inside clusters that the server finds; when and how is left to the algorithm.

    All clients take part in every round. Before any clusters are found, all belong to cluster 0, and there is one
    model.
    """

    takes_new_clients = False

    def initialize(self) -> ClusteredState:
        models, assignments = stack_models([self.initial_weights]), np.zeros(len(self.everyone), np.int32)
        return ClusteredState(np.int32(0), np.float64(0.0), models, assignments, **self.initialize_parts(1))

    def continue_clusters(
        self, state: ClusteredState, sources: Sequence[int], assignments: np.ndarray
    ) -> ClusteredState:
        """The state with new clusters, the i-th of which goes on from where the cluster `sources[i]` is."""
        rows = np.asarray(sources, int)
        return state._replace(
            models=tuple(array[rows] for array in state.models),
            assignments=assignments,
            aggregator=self.aggregator.copy_groups(state.aggregator, rows),
            server=self.server_step.copy_rows(state.server, rows),
        )

    def choose_cohort(self, state: ClusteredState) -> tuple[float, np.ndarray]:
        # Nobody is left out, so nobody is waited for; devices that are away get the model when they are back.
        return 0.0, self.everyone

    def count_slots(self, num_invited: int) -> int:
        return 1

    def assign_groups(self, state: ClusteredState, cohort: np.ndarray) -> np.ndarray:
        return state.assignments[cohort]

    def describe(
        self, state: ClusteredState, new_state: ClusteredState, outcome: PhaseOutcome, cohort: np.ndarray
    ) -> dict[str, float]:
        drifts = super().describe(state, new_state, outcome, cohort)
        return {"num_clusters": count_clusters(new_state.assignments), **drifts}

    def find_groups(self, state: ClusteredState) -> np.ndarray:
        return state.assignments

    def client_columns(self, state: ClusteredState) -> dict[str, list]:
        return {CLUSTER: self.find_groups(state).tolist()}

    def summarize(self, state: ClusteredState) -> dict:
        sizes = np.bincount(state.assignments).tolist()
        return {"num_clusters": len(sizes), "cluster_sizes": sizes, **super().summarize(state)}


def stack_updates(results: Sequence) -> np.ndarray:
    """Updates as rows: the `LocalResult`s of clients, at least one, as float32, shape (clients, parameters)."""
    return np.stack([join_update(result.weights_delta) for result in results])
