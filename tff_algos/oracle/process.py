"""The oracle: FedAvg inside the groups of clients that the data know, one model a group.

It is the control of everything that looks for groups, such as FedCD, FL+HC and IFCA, which calls it "oracle": whoever
finds the groups exactly, at once and for nothing, has these models. It is no bound: with few examples a model of
several groups can be better, see `groups`.

A round:
1. The server draws a cohort (all clients by default). Each client gets the model of its group.
2. The client trains it on its own examples and sends the update.
3. The server adds to each model the mean of its group's updates. A model without an update stays.

The groups are those of `FederatedData.archetypes`: archetypes, or their meta-archetypes. All models begin alike.

Limit cases: one group is FedAvg; groups of one client are local training.
"""

import dataclasses

import numpy as np

from datasets.federated_data import FederatedData
from models.model_spec import ModelSpec
from tff_algos.oracle.config import META_ARCHETYPE, OracleConfig
from tff_algos.rounds.clustered import GroupedProcess
from tff_algos.rounds.synchronous import ServerState, build_parts
from tff_algos.weights import stack_models


@dataclasses.dataclass(frozen=True, eq=False)
class OracleProcess(GroupedProcess):
    """The oracle; what is not here is FedAvg's.

    Attributes:
      groups: of each client, the new ones last, int64, shape (clients,).
      num_groups: that there are, some of which may have no client.
    """

    groups: np.ndarray = dataclasses.field(kw_only=True)
    num_groups: int = dataclasses.field(kw_only=True)

    model_name = "group"

    def initialize(self) -> ServerState:
        models = stack_models([self.initial_weights] * self.num_groups)
        return ServerState(np.int32(0), np.float64(0.0), models, **self.initialize_parts(self.num_groups))

    def assign_groups(self, state: ServerState, cohort: np.ndarray) -> np.ndarray:
        return self.groups[cohort]

    def find_groups(self, state: ServerState) -> np.ndarray:
        return self.groups


def build_oracle_process(
    model_spec: ModelSpec, clients: FederatedData, config: OracleConfig, seed: int
) -> OracleProcess:
    """The oracle as a process; needs a TFF context (see `launch.runtimes.runtime`) when it runs.

    Args:
      model_spec: the model of each group.
      clients: the federation.
      config: settings.
      seed: of the first weights, the cohorts and the local training.

    Raises:
      ConfigError: the data know no groups.
    """
    config.check_archetypes(clients.archetypes)
    archetypes = clients.archetypes
    is_meta = config.groups == META_ARCHETYPE
    groups = np.array(archetypes.meta_of_clients if is_meta else archetypes.of_clients)
    num_groups = max(archetypes.meta_archetypes) + 1 if is_meta else len(archetypes.names)
    return OracleProcess(**build_parts(model_spec, clients, config, seed), groups=groups, num_groups=num_groups)
