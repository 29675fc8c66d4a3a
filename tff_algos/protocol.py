"""The protocol between the algorithms and the driver: a process, its rounds, and what the driver may ask of it."""

import abc
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from datasets.federated_data import ClientFiles

if TYPE_CHECKING:  # every command imports this module, and `--help` needs no NumPy
    import numpy as np

Weights = tuple["np.ndarray", ...]  # one array a variable, in the order of `keras_model.weights`
State = Any  # a nested structure of numpy arrays: models, clusters, clock, round number, everything a resume needs

COMMON_METRICS = ("virtual_time_s", "num_clients", "num_rejected", "bytes_down", "bytes_up", "train_loss")
VIRTUAL_TIME_S, NUM_CLIENTS, NUM_REJECTED, BYTES_DOWN, BYTES_UP, TRAIN_LOSS = COMMON_METRICS
# Further metrics, and columns of the clients, that an algorithm may give and that are drawn if it does.
WITHIN_CLUSTER_DRIFT, TOTAL_DRIFT = "within_cluster_drift", "total_drift"
EPSILON_SPENT = "epsilon_spent"
NUM_ASKED, NUM_MISSING = "num_asked", "num_missing"  # of a round whose clients are asked over a network
NUM_ATTACKERS = "num_attackers"  # of a round; only where somebody attacks
CLUSTER, PLANE_X, PLANE_Y = "cluster", "plane_x", "plane_y"
ARCHITECTURE = "architecture"  # the name of a client's model specification, where the run's has peers
RESOURCE, CLIENT_STEPS = "resource", "fine_tuning_steps"  # R_i and N_i, where devices fine-tune by their resources
FINE_TUNING_S = "fine_tuning_virtual_s"  # in what a run says of its algorithm: of the steps at the end
# Of this round and since the start, all clients together; of a client, in its table. Only where energy is counted.
JOULES, JOULES_TOTAL = "joules", "joules_total"


class ClientStateError(ValueError):
    """A file of what a client keeps between rounds is gone or damaged; the message is one line for the user."""


class ClientWork(NamedTuple):
    """What some clients do in a part of a round; a client may be named in several parts, and twice in one.

    Attributes:
      clients: their indices, int64, shape (participants,).
      num_examples: that each trains on (examples x epochs x models trained), a number or shape (participants,).
      bytes_down: that each receives, likewise.
      bytes_up: that each sends, likewise.
    """

    clients: "np.ndarray"
    num_examples: "np.ndarray | float" = 0
    bytes_down: "np.ndarray | float" = 0
    bytes_up: "np.ndarray | float" = 0


class RoundOutput(NamedTuple):
    """The result of a round: the next state, and scalar metrics under the same names every round.

    The metrics hold at least `COMMON_METRICS`: `virtual_time_s` since the start, the number of clients that took part,
    the number of updates that were left out because they were not finite (a client that trains two models sends two),
    the bytes of this round, and the mean loss over trained examples.
    """

    state: State
    metrics: dict[str, float]


class FederatedProcess(abc.ABC):
    """A federated algorithm, ready to run.

    An algorithm extends this class and implements the abstract methods; it overrides the others where their defaults do
    not fit. Every method is a pure function of its arguments and of the settings that the process was built with, so
    any round can be repeated from its state. What the clients keep between rounds may lie in files beside the state, if
    it is large; a file that is written again has the same bytes then, and the last three methods are about these files.

    Attributes:
      is_personal: whether `personalize` gives each client weights of its own, not those of its shared model.
      fine_tuning_start: where fine-tuning at the end begins, "trained" or "initial"; "" without fine-tuning. Only then
        `personalize_from` is there.
      takes_new_clients: whether `personalize` has weights for clients that take no part in training.
      shares_models: whether clients use models of `get_models` together; if not, each has one there under its own name.
      curve: numbers of steps after which the driver measures fine-tuned models when the run ends.
      map_models: a method (state, function) -> the state with `function` applied to the models in training (not the
        teachers). The function takes and returns `Weights`, of one model or of several stacked along a first axis. None
        if the process cannot change its models between two rounds; quantization can then not start later. What a
        `ClientStore` keeps is not mapped, since that would write all its files anew each round: a process whose clients
        keep models, or anything of a model's shapes, leaves it at None.
      list_work: a method (state, next state) -> the `ClientWork` of the round between them, which the bytes of its
        metrics are the sum of. None if the process does not say; the energy of its clients can then not be counted.
      ask: a method (partners) -> the process, whose clients are asked over a network, or read from a record of it, in
        place of those that it draws (`tff_algos.rounds.partners`). None if the process cannot.
    """

    is_personal: bool = False
    fine_tuning_start: str = ""
    curve: tuple[int, ...] = ()
    takes_new_clients: bool = False
    shares_models: bool = True
    map_models: Callable[[State, Callable[[Weights], Weights]], State] | None = None
    list_work: Callable[[State, State], Sequence[ClientWork]] | None = None
    ask: "Callable[[Any], FederatedProcess] | None" = None

    @abc.abstractmethod
    def initialize(self) -> State:
        """The state before the first round."""

    @abc.abstractmethod
    def next(self, state: State) -> RoundOutput:
        """One round."""

    @abc.abstractmethod
    def get_models(self, state: State) -> dict[str, Weights]:
        """The shared models by name, for example {"global": weights}."""

    @abc.abstractmethod
    def client_model(self, state: State) -> list[str]:
        """The name of the shared model that each client uses, by client index."""

    def personalize(self, state: State, clients: Sequence[ClientFiles]) -> Iterator[tuple[ClientFiles, Weights]]:
        """Each client with the weights it ends up with, in the order given; by default those of its shared model."""
        models, names = self.get_models(state), self.client_model(state)
        for client in clients:
            yield client, models[names[client.index]]

    def personalize_from(
        self, state: State, clients: Sequence[ClientFiles], start: str, most_steps: int | None = None
    ) -> Iterator[tuple[ClientFiles, Weights]]:
        """As `personalize`, but fine-tuned from that start, and each client by at most so many of its own steps."""
        raise NotImplementedError

    def get_teachers(self, state: State) -> dict[str, Weights]:
        """Teacher models by name, of the architecture `model_spec.teacher`; by default none."""
        return {}

    def summarize(self, state: State) -> dict[str, Any]:
        """The algorithm's own object in summary.json: plain numbers, strings, lists and dicts; by default empty."""
        return {}

    def client_columns(self, state: State) -> dict[str, list]:
        """The algorithm's own columns of clients.csv, one value a client; by default none.

        The columns `cluster` (a number), `plane_x` and `plane_y` (coordinates) are also drawn.
        """
        return {}

    def is_spent(self, state: State) -> bool:
        """Whether the run must end after this state, since a budget allows no further round; by default never."""
        return False

    def compute_final_s(self, state: State) -> float:
        """Virtual seconds of what clients do after the last round, if that was this one; by default nothing."""
        return 0.0

    def get_notes(self, state: State) -> Sequence[str]:
        """Lines that a run says before its first round; by default none."""
        return ()

    def get_events(self, state: State) -> Sequence[tuple[float, int, str, int]]:
        """The events of the last round, rows of `events.csv` in order of time; by default none.

        An event is (virtual seconds, client, what happened, version or slot of the model).
        """
        return ()

    def keep_in(self, folder: pathlib.Path) -> None:
        """Has what clients keep lie in this folder if it is too large for the state; by default nothing is.

        Called before `initialize`, or never: then such files are temporary and go with the process. The folder need not
        exist, and may hold what the same run has written before.
        """
        del folder

    def find_kept(self, state: State) -> Any:
        """What `forget` must be told of a retained state, small arrays; by default None, no state needs a file."""
        return None

    def forget(self, needed: Sequence[Any]) -> None:
        """Removes the files that no state needs any more; by default there are none.

        Args:
          needed: what `find_kept` says of all retained states, the newest last.
        """
        del needed
