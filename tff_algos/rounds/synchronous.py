"""The synchronous server: in each round it asks a cohort, waits for all of it, and takes one step.

`SynchronousProcess` is FedAvg, put together from parts: how models travel, what a client does, what becomes of the
updates, the server's step, and what a client keeps. An algorithm hands it other parts, or overrides the methods that
say what differs; `next` is the same for all.
"""

import dataclasses
import functools
import itertools
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from datasets.federated_data import ClientFiles, FederatedData
from datasets.own_objects import ContractError
from models.model_spec import ModelSpec
from tff_algos.client.cohort import (
    NOBODY,
    ClientInput,
    choose_cohort,
    compute_padded_size,
    compute_usual_slots,
    tell_clients,
)
from tff_algos.client.local_training import count_examples_trained
from tff_algos.protocol import (
    NUM_ATTACKERS,
    NUM_REJECTED,
    TOTAL_DRIFT,
    ClientWork,
    FederatedProcess,
    RoundOutput,
    State,
    Weights,
)
from tff_algos.rounds.aggregation import build_common_metrics, sum_bytes
from tff_algos.rounds.aggregators import Aggregator
from tff_algos.rounds.asked_rounds import NOT_PLAIN, AskedProcess
from tff_algos.rounds.attacks import build_attack
from tff_algos.rounds.build_aggregator import build_aggregator
from tff_algos.rounds.client_store import ClientStore
from tff_algos.rounds.partners import AskedBy, RepeatedFrom
from tff_algos.rounds.private_aggregation import PrivateAggregator
from tff_algos.rounds.server_step import ServerStep, build_server_step
from tff_algos.rounds.training_phase import (
    LocalWork,
    PhaseOutcome,
    SlotInput,
    TrainingPhase,
    build_group_training,
)
from tff_algos.rounds.transport import Transport, build_transport
from tff_algos.settings.aggregation import COMPRESSION, DP_TREE, QUANTIZATION, SECURE, AggregationConfig
from tff_algos.simulation.virtual_clock import compute_phases_s
from tff_algos.weights import initialize_weights, is_float, stack_models, take_model

COMPRESSED, PRIVATE = "its updates are compressed", "its updates are private"
# Of aggregators by what they do to updates on their way, in simulation: clients of a network send theirs as they are.
_OBSTACLES = {
    COMPRESSION: COMPRESSED,
    QUANTIZATION: COMPRESSED,
    DP_TREE: PRIVATE,
    SECURE: "the server sees only sums of its updates",
}


class ServerState(NamedTuple):
    """Everything that a resume needs. A part without a state has `()`, so that its leaves are those of older runs.

    Attributes:
      round_num: rounds done, int32.
      virtual_time_s: since the start, float64.
      models: stacked along axis 0, a row a group.
      aggregator: of the aggregator.
      server: of the server's step.
      kept: what the clients keep, see `ClientStore`.
      own: what else the algorithm has at the server.
    """

    round_num: np.int32
    virtual_time_s: np.float64
    models: Weights
    aggregator: Any = ()
    server: Any = ()
    kept: Any = ()
    own: Any = ()


class Participant(NamedTuple):
    """A client that is asked: its index, what it is told, and what the algorithm adds to that, nested arrays."""

    index: int  # type: ignore[assignment]  # hides the method of tuples, which nobody calls
    told: ClientInput
    own: tuple = ()


@dataclasses.dataclass(frozen=True, eq=False)
class SynchronousProcess(FederatedProcess):
    """FedAvg, and what every synchronous algorithm shares with it.

    The state of an algorithm has at least the fields of `ServerState`, but for `own`, and for `models` if it says
    itself what the server sends (`distribute`) and what a step changes (`apply`).

    Attributes:
      clients: the federation.
      config: the algorithm's, with `cohort_size`, `participation`, `client_weighting` and `training` unless the
        methods that read them are overridden.
      seed: the run's.
      initial_weights: the model before the first round.
      phase: what the clients do, and what becomes of their updates.
      server_step: what the server does with that.
      store: what the clients keep; None if they keep nothing.
      released: what the algorithm gives out, in words, for what a private run says.
      own_blank: what `Participant.own` is in an empty slot.
      models_trained: by a client in a round, each on all the examples of its training.
    """

    clients: FederatedData
    config: Any
    seed: int
    initial_weights: Weights
    phase: TrainingPhase
    server_step: ServerStep
    store: ClientStore | None = None

    takes_new_clients = True
    released = "the global model of every round"
    own_blank = ()
    models_trained = 1

    @property
    def transport(self) -> Transport:
        return self.phase.transport

    @property
    def aggregator(self) -> Aggregator:
        return self.phase.aggregator

    @property
    def everyone(self) -> np.ndarray:
        """Indices of all clients that train."""
        return np.arange(len(self.clients.clients))

    @functools.cached_property
    def examples_trained(self) -> np.ndarray:
        """That each client trains one model on in a round, int64, shape (clients,)."""
        return np.array([count_examples_trained(self.config.training, n) for n in self.clients.num_train])

    def initialize(self) -> State:
        return ServerState(
            np.int32(0), np.float64(0.0), stack_models([self.initial_weights]), **self.initialize_parts(1)
        )

    def initialize_parts(self, num_groups: int) -> dict[str, Any]:
        """The first states of the parts, for so many rows of the aggregate and of the models."""
        return {
            "aggregator": self.aggregator.initialize(num_groups),
            "server": self.server_step.initialize(num_groups),
            "kept": self.store.initialize() if self.store else (),
        }

    # What an algorithm may say otherwise, in the order of a round.

    def choose_cohort(self, state: State) -> tuple[float, np.ndarray]:
        """The cohort of the next round, ascending, after the virtual seconds until enough devices are available."""
        now_s, round_num = float(state.virtual_time_s), int(state.round_num) + 1
        able = self.find_able(state)
        return choose_cohort(self.config, self.clients, able, now_s, self.seed, round_num)

    def find_able(self, state: State) -> np.ndarray:
        """Indices of the clients that may be asked, ascending; by default all."""
        return self.everyone

    def prepare(self, state: State, cohort: np.ndarray) -> tuple[State, int]:
        """What comes before the clients' work: the state that they work with, and how many updates were rejected."""
        return state, 0

    def distribute(self, state: State) -> Any:
        """What the server sends, nested arrays; by default the models as they travel."""
        return self.send(state)

    def send(self, state: State) -> Weights:
        """The models, stacked, as the clients have them."""
        return self.transport.send(state.models, int(state.round_num))

    def invite(self, state: State, cohort: np.ndarray, purpose: str = "training") -> list[Participant]:
        """What each client of the cohort is told; a client may be asked for several groups.

        The seeds of the clients are derived from `purpose`.
        """
        groups, round_num = self.assign_groups(state, cohort), int(state.round_num) + 1
        weighting, training = self.config.client_weighting, self.config.training
        told = tell_clients(self.clients, cohort, groups, weighting, training, self.seed, purpose, round_num)
        return [Participant(int(index), each) for index, each in zip(cohort, told, strict=True)]

    def assign_groups(self, state: State, cohort: np.ndarray) -> np.ndarray:
        """The row that each client of the cohort trains and adds to; by default the only one."""
        return np.zeros_like(cohort)

    def count_groups(self, state: State) -> int:
        """Rows of the aggregate."""
        return len(state.models[0])

    def count_slots(self, num_invited: int) -> int:
        """Slots of a round at least, see `cohort.pad_cohort`; the same in every round, or nearly so."""
        num_clients = len(self.everyone)
        # 0 means all, and so does a number above them.
        size = min(self.config.cohort_size or num_clients, num_clients)
        # Cohorts of every size would each make an executor in the worker.
        is_by_chance = self.config.participation == "bernoulli"
        return compute_usual_slots(num_clients, size) if is_by_chance else compute_padded_size(size)

    def apply(self, state: State, outcome: PhaseOutcome) -> State:
        """The server's step along what became of the clients' updates."""
        aggregate = outcome.aggregate
        update, has_update, divisor = aggregate.update, aggregate.has_update, aggregate.divisor
        models, server = self.server_step.step(state.models, update, state.server, has_update, divisor)
        return state._replace(models=models, server=server)

    def finish(self, state: State, stepped: State, outcome: PhaseOutcome, cohort: np.ndarray) -> State:
        """What comes after the server's step, which made `stepped`; by default nothing."""
        return stepped

    def list_phases(self, state: State, cohort: np.ndarray) -> Sequence[ClientWork]:
        """What the cohort does in the round that begins with this state, one phase after another.

        By default each client receives and sends one model, and trains `models_trained`.
        """
        model_bytes = self.transport.model_bytes
        return [ClientWork(cohort, self.models_trained * self.examples_trained[cohort], model_bytes, model_bytes)]

    def list_untimed(self, state: State, cohort: np.ndarray) -> Sequence[ClientWork]:
        """What costs bytes or energy and takes no virtual time; by default nothing."""
        return []

    def describe(self, state: State, new_state: State, outcome: PhaseOutcome, cohort: np.ndarray) -> dict[str, float]:
        """The algorithm's own columns of the round between the two states."""
        return {TOTAL_DRIFT: float(outcome.totals.total_drift)}

    # What is the same for all.

    def next(self, state: State) -> RoundOutput:
        round_num = int(state.round_num) + 1
        wait_s, cohort = _expect(self.choose_cohort, self.choose_cohort(state), 2, "(seconds waited, indices)")
        prepared, num_rejected = _expect(self.prepare, self.prepare(state, cohort), 2, "(state, number rejected)")
        # From the prepared state, since `prepare` may move clients to other groups.
        invited = self.invite(prepared, cohort)
        outcome = self.train(prepared, invited, round_num)
        phases = _expect(self.list_phases, self.list_phases(state, cohort), (list, tuple), "a list of ClientWork")
        start_s = state.virtual_time_s + wait_s
        end_s = start_s + compute_phases_s(self.clients.profiles, phases, float(start_s))
        # Of the state before: what clients were asked to do follows from it alone, as in `list_work`.
        sent = sum_bytes([*phases, *self.list_untimed(state, cohort)])
        return self.conclude(state, prepared, cohort, invited, outcome, end_s, sent, num_rejected)

    def conclude(
        self,
        state: State,
        prepared: State,
        cohort: np.ndarray,
        invited: Sequence[Participant],
        outcome: PhaseOutcome,
        end_s: float,
        sent: tuple[int, int],
        num_rejected: int,
    ) -> RoundOutput:
        """What follows the clients' work.

        Args:
          state: from before the round.
          prepared: what `prepare` made of it.
          cohort: indices of those whose work it is.
          invited: what they were told.
          outcome: of their work.
          end_s: virtual time at the end of the round.
          sent: bytes (down, up) of the round.
          num_rejected: updates that were left out before.
        """
        round_num = int(state.round_num) + 1
        stepped = _expect(self.apply, self.apply(prepared, outcome), type(state), "the state")
        stepped = stepped._replace(
            round_num=np.int32(round_num), virtual_time_s=np.float64(end_s), aggregator=outcome.aggregate.state
        )
        if self.store:
            indices = np.array([each.index for each in invited], np.int64)
            # Written before `finish`, which may read what clients hold now.
            stepped = stepped._replace(kept=self.store.write(state.kept, indices, outcome.kept, round_num))
        finished, expected = self.finish(state, stepped, outcome, cohort), "stepped._replace(...)"
        new_state = _expect(self.finish, finished, type(state), expected)
        # The round before would be done again and again, and nothing else would tell.
        if new_state.round_num != round_num:
            raise ContractError(f"finish gave the state of the round before, expected {expected}", self.finish)
        metrics = build_common_metrics(outcome.totals, new_state.virtual_time_s, len(cohort), *sent)
        metrics[NUM_REJECTED] += num_rejected
        own = _expect(self.describe, self.describe(state, new_state, outcome, cohort), dict, "a dict of columns")
        if taken := (own.keys() & metrics.keys()) - {NUM_REJECTED}:
            raise ContractError(
                f"describe gave {min(taken)}, which every run has; expected another name", self.describe
            )
        if self.phase.attack:
            own[NUM_ATTACKERS] = len(np.intersect1d([each.index for each in invited], self.phase.attack.clients))
        return RoundOutput(new_state, {**metrics, **own, **outcome.aggregate.metrics})

    def train(self, state: State, invited: Sequence[Participant], round_num: int) -> PhaseOutcome:
        """The clients' work, and what becomes of it."""
        kept: Sequence[Weights] = [()] * len(invited)
        if self.store:
            kept = self.store.read(state.kept, np.array([each.index for each in invited], np.int64))
        inputs = [SlotInput(each.told, each.own, tuple(row)) for each, row in zip(invited, kept, strict=True)]
        blank = SlotInput(NOBODY, self.own_blank, self.store.initial if self.store else ())
        slots = self.count_slots(len(inputs))
        models, groups = self.distribute(state), self.count_groups(state)
        return self.phase.run(models, inputs, groups, state.aggregator, round_num, slots, blank)

    def iterate_kept(self, state: State, clients: Sequence[ClientFiles]) -> Iterator[tuple[ClientFiles, Weights]]:
        """Each client with what it keeps; before its first round with what all kept at first."""
        assert self.store is not None, "only of algorithms whose clients keep something"
        rows = self.store.iterate(state.kept, [client.index for client in clients])
        return zip(clients, rows, strict=True)

    def list_work(self, state: State, next_state: State) -> list[ClientWork]:
        cohort = self.choose_cohort(state)[1]
        return [*self.list_phases(state, cohort), *self.list_untimed(state, cohort)]

    def get_models(self, state: State) -> dict[str, Weights]:
        return {"global": take_model(self.send(state), 0)}

    def client_model(self, state: State) -> list[str]:
        return ["global"] * len(self.clients.everyone)

    def summarize(self, state: State) -> dict[str, Any]:
        return self.aggregator.summarize(state.aggregator, int(state.round_num))

    def is_spent(self, state: State) -> bool:
        return self.aggregator.is_spent(state.aggregator, int(state.round_num))

    def get_notes(self, state: State) -> Sequence[str]:
        notes = self.aggregator.list_notes(state.aggregator, self.released)
        return (*notes, self.phase.attack.describe(self.clients)) if self.phase.attack else notes

    def keep_in(self, folder: pathlib.Path) -> None:
        if self.store:
            self.store.keep_in(folder)

    def find_kept(self, state: State) -> Any:
        return self.store.find_files(state.kept) if self.store else None

    def forget(self, needed: Sequence[Any]) -> None:
        if self.store:
            self.store.forget(needed)

    @property
    def ask(  # type: ignore[override]  # it is read only everywhere
        self,
    ) -> Callable[[AskedBy | RepeatedFrom], FederatedProcess] | None:
        """See `FederatedProcess`; None where clients do more than train, or send more than a plain update."""
        return None if self.obstacle else functools.partial(AskedProcess, self)

    @property
    def obstacle(self) -> str:
        """Why its clients cannot be asked over a network, in words; "" if they can."""
        # What extends the class changes what clients or the server do.
        if type(self) is not SynchronousProcess or not self.phase.is_plain or self.store:
            return NOT_PLAIN
        if self.transport.config.is_active:
            return COMPRESSED
        # Noise from a seed hides nothing from those who have it; a simulation has no other.
        if isinstance(self.aggregator, PrivateAggregator) and self.aggregator.noise.is_seeded:
            return PRIVATE
        return _OBSTACLES.get(getattr(self.config, "aggregation", AggregationConfig()).aggregator, "")

    @property
    def map_models(  # type: ignore[override]  # it is read only everywhere
        self,
    ) -> Callable[[State, Callable[[Weights], Weights]], State] | None:
        """See `FederatedProcess`; None where a part keeps arrays of the model's shapes, which would fit no more."""
        is_bound = self.store is not None or self.aggregator.is_bound_to_shapes or not self.server_step.is_plain
        return None if is_bound else self._map_models

    def _map_models(self, state: State, function: Callable[[Weights], Weights]) -> State:
        return state._replace(models=function(state.models))


def build_parts(
    model_spec: ModelSpec,
    clients: FederatedData,
    config: Any,
    seed: int,
    work: LocalWork | None = None,
    aggregator: Aggregator | None = None,
    kept: Callable[[Weights], Weights] | None = None,
    always_by_optimizer: bool = False,
    travels: Sequence[bool] | None = None,
) -> dict[str, Any]:
    """The fields of a `SynchronousProcess`, each part by its settings.

    Args:
      model_spec: the model.
      clients: the federation.
      config: the algorithm's; of its fields `compression`, `server`, `privacy` and `aggregation` those that it has.
      seed: of the first weights, the cohorts, the noise and the local training.
      work: what a client does; None: it trains the model of its group.
      aggregator: None: by the settings.
      kept: (first weights) -> what a client keeps before its first round; None: clients keep nothing.
      always_by_optimizer: see `build_server_step`.
      travels: which weights the server and the clients send each other, in the order of `keras_model.weights`, so that
        the server's models have these alone; None: all.

    Raises:
      ConfigError: updates are to be private, and the model or the budget does not allow it; or single updates are to be
        seen, and the memory for them is not there.
    """
    first = initialize_weights(model_spec, seed)
    # Drawn whole first, so that what travels begins as it does where everything travels.
    weights = first if travels is None else tuple(itertools.compress(first, travels))
    transport = build_transport(model_spec, weights, seed, getattr(config, "compression", None), travels)
    aggregator = aggregator or build_aggregator(model_spec, weights, clients, config, seed)
    shapes = tuple(array.shape for array in weights if is_float(array))
    is_plain = work is None
    work = work or build_group_training(model_spec, config.training)
    attacks = getattr(config, "aggregation", AggregationConfig()).attacks
    store = None
    if kept:
        initial = _expect(kept, kept(first), Sequence, "a tuple of arrays, what a client keeps at first")
        store = ClientStore(initial, len(clients.clients))
    return {
        "clients": clients,
        "config": config,
        "seed": seed,
        "initial_weights": weights,
        "phase": TrainingPhase(work, transport, aggregator, shapes, build_attack(attacks, clients, seed), is_plain),
        "server_step": build_server_step(config.server, weights, always_by_optimizer),
        "store": store,
    }


def _expect(method: Callable, given: Any, kind: type | tuple[type, ...] | int, expected: str) -> Any:
    """What a method gave, if it is of this class, or a plain tuple of so many.

    Raises:
      ContractError: it is something else.
    """
    if type(given) is not tuple or len(given) != kind if isinstance(kind, int) else not isinstance(given, kind):
        name = getattr(method, "__name__", repr(method))
        raise ContractError(f"{name} gave {type(given).__name__}, expected {expected}", method)
    return given
