"""The protocol that every federated algorithm meets, and the driver relies on."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from datasets.federated_data import ClientShard

Weights = tuple[np.ndarray, ...]  # one array a variable, in the order of `keras_model.weights`
State = Any  # a nested structure of numpy arrays: models, clusters, clock, round number, everything a resume needs

COMMON_METRICS = ("virtual_time_s", "num_clients", "num_rejected", "bytes_down", "bytes_up", "train_loss")
VIRTUAL_TIME_S, NUM_CLIENTS, NUM_REJECTED, BYTES_DOWN, BYTES_UP, TRAIN_LOSS = COMMON_METRICS
# Further metrics, and columns of the clients, that an algorithm may give and that are drawn if it does.
WITHIN_CLUSTER_DRIFT, TOTAL_DRIFT = "within_cluster_drift", "total_drift"
CLUSTER, PLANE_X, PLANE_Y = "cluster", "plane_x", "plane_y"


class RoundOutput(NamedTuple):
    """What a round gives: the next state, and scalar metrics under the same names every round.

    The metrics hold at least `COMMON_METRICS`: `virtual_time_s` since the start, the clients that took part, the
    updates that were left out because they were not finite (a client that trains two models sends two), the bytes of
    this round, the mean loss over trained examples.
    """

    state: State
    metrics: dict[str, float]


@dataclasses.dataclass(frozen=True)
class FederatedProcess:
    """A federated algorithm, ready to run; every function is pure, so a round can be repeated from its state.

    Attributes:
      initialize: () -> state before the first round.
      next: (state) -> RoundOutput.
      get_models: (state) -> the shared models by name, for example {"global": weights}.
      client_model: (state) -> for each client the name of the shared model it uses.
      personalize: (state, clients) -> iterator of (client, weights that the client ends up with).
      is_personal: whether these weights are of the client alone, and not those of its shared model.
      get_teachers: (state) -> teacher models by name, built by `model_spec.teacher`; empty without teachers.
      summarize: (state) -> the algorithm's own object in summary.json, made of plain numbers, strings and lists.
      client_columns: (state) -> the algorithm's own columns of clients.csv, one value a client. The columns
        `cluster`, `plane_x` and `plane_y` (a cluster number, and two coordinates) are also drawn.
      get_events: (state) -> the events of the last round, rows of `events.csv` in order of time, each (virtual seconds,
        client, what, version or slot of the model); empty where rounds are all there is to know.
      map_models: (state, function) -> the state with the function applied to its trained models (not the teachers), one
        or several stacked along a first axis; None if the process cannot change its model on the way.
    """

    initialize: Callable[[], State]
    next: Callable[[State], RoundOutput]
    get_models: Callable[[State], dict[str, Weights]]
    client_model: Callable[[State], list[str]]
    personalize: Callable[[State, Sequence[ClientShard]], Iterator[tuple[ClientShard, Weights]]]
    is_personal: bool = False
    get_teachers: Callable[[State], dict[str, Weights]] = lambda state: {}
    summarize: Callable[[State], dict[str, Any]] = lambda state: {}
    client_columns: Callable[[State], dict[str, list]] = lambda state: {}
    get_events: Callable[[State], Sequence[tuple[float, int, str, int]]] = lambda state: ()
    map_models: Callable[[State, Callable[[Weights], Weights]], State] | None = None


def use_shared_model(
    get_models: Callable[[State], dict[str, Weights]], client_model: Callable[[State], list[str]]
) -> Callable[[State, Sequence[ClientShard]], Iterator[tuple[ClientShard, Weights]]]:
    """The default `personalize`: each client ends up with the shared model it uses."""

    def personalize(state, clients):
        models, names = get_models(state), client_model(state)
        for client in clients:
            yield client, models[names[client.index]]

    return personalize
