"""A phase of a round: clients work on what the server sends, and their updates become one for each group.

It is put together from three parts: what a client does (`LocalWork`, the algorithm's own), how things travel
(`Transport`), and the aggregator. There are two computations, since a computation either aggregates or returns what
single clients send, never both (TFF's compiler would run the clients' work twice):

  summed: (<models, told>@SERVER, {SlotInput, flat}@CLIENTS) -> <values, weight, totals, sums, counts>@SERVER
  listed: (<models, told>@SERVER, {SlotInput, flat}@CLIENTS) -> {Sent}@CLIENTS

The second is for clients that keep something, for aggregators that see single updates, and for attackers that forge
theirs. An aggregator that sums then does so on the host, by the same functions in the same order.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from datasets.own_objects import ContractError
from models.model_spec import ModelSpec
from tff_algos.client.client_data import read_split
from tff_algos.client.cohort import NOBODY, ClientInput, pad_cohort
from tff_algos.client.local_training import LocalResult, train_locally
from tff_algos.late_computation import OUTSIDE_GRAPHS, LateComputation
from tff_algos.rounds.aggregation import (
    ClientUpdate,
    RoundTotals,
    sum_by_group,
    sum_on_host,
    summarize_totals,
)
from tff_algos.rounds.aggregators import Aggregate, Aggregator, SumAggregator
from tff_algos.rounds.attacks import Attack
from tff_algos.rounds.transport import Transport
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.weights import build_type

# A call's result must stay well below the 2 GB that a message of the worker can carry.
_MAX_RESULT_BYTES = 2**28


class SlotInput(NamedTuple):
    """What a client gets from the host: the usual, what the algorithm adds to it, and what the client has kept."""

    client: ClientInput
    own: tuple = ()
    kept: tuple = ()


BLANK = SlotInput(NOBODY)  # an empty slot, where clients keep nothing and are told nothing of the algorithm's own


class Told(NamedTuple):
    """What a client's work begins with; `models` is what the server sent, as the algorithm nests it."""

    client: ClientInput
    models: Any
    own: tuple
    kept: tuple

    @property
    def model(self) -> tuple[tf.Tensor, ...]:
        """The row of the client's group, where `models` are stacked along axis 0."""
        return tuple(model[self.client.group] for model in self.models)


class Sent(NamedTuple):
    """What a client's work ends with.

    Attributes:
      update: for its group.
      sums: further tensors, float32, that the server gets summed over the clients; zeros where there are no examples.
      kept: what the client keeps until it is asked again, of the shapes that it had.
      counts: what the aggregator has summed, which it puts here itself with the update as it travels.
    """

    update: ClientUpdate
    sums: Any = ()
    kept: tuple = ()
    counts: Any = ()


LocalWork = Callable[[Told], Sent]  # called while a graph is traced


class PhaseOutcome(NamedTuple):
    """The aggregate of a phase, the usual scalars, the sums of what else was sent, and what each client keeps.

    `updates` are the clients' own, in their order, where they came as a list.
    """

    aggregate: Aggregate
    totals: RoundTotals
    sums: Any
    kept: list[tuple]
    updates: Sequence[ClientUpdate] = ()


def build_group_training(model_spec: ModelSpec, training: LocalTrainingConfig) -> LocalWork:
    """The usual work: train the model in the row of the client's group, from models stacked along axis 0."""

    def work(told: Told) -> Sent:
        client = told.client
        x, y = read_split(client.path, "train", model_spec)
        result = train_locally(model_spec, training, told.model, x, y, client.seed, client.learning_rate)
        return Sent(ClientUpdate(result, client.group, client.weight))

    return work


@dataclasses.dataclass(frozen=True, eq=False)
class TrainingPhase:
    """A phase, ready to run; a computation is made for each number of groups, and each size of what the server sends.

    Attributes:
      work: what a client does.
      transport: how updates travel. What goes down is sent by the caller.
      aggregator: what becomes of them.
      shapes: of an update, one for each floating-point weight.
      attack: what attackers send in place of their updates; None if nobody attacks.
      is_plain: whether the work is `build_group_training`'s, which a file that trains can do, too.
    """

    work: LocalWork
    transport: Transport
    aggregator: Aggregator
    shapes: tuple[tuple[int, ...], ...]
    attack: Attack | None = dataclasses.field(default=None, metadata=OUTSIDE_GRAPHS)
    is_plain: bool = dataclasses.field(default=False, metadata=OUTSIDE_GRAPHS)

    def run(
        self,
        models: Any,
        inputs: Sequence[SlotInput],
        num_groups: int,
        state: Any,
        round_num: int,
        min_slots: int = 1,
        blank: SlotInput = BLANK,
    ) -> PhaseOutcome:
        """Runs the phase.

        Args:
          models: what the server sends, nested arrays.
          inputs: of the clients in ascending order, without empty slots.
          num_groups: rows of the aggregate.
          state: the aggregator's.
          round_num: 1-based.
          min_slots: see `pad_cohort`.
          blank: the input of an empty slot.
        """
        # Clients that were asked, not those that count: a private sum must not tell whose update was rejected.
        sizes = np.bincount(np.array([each.client.group for each in inputs], np.int64), minlength=num_groups)
        if isinstance(self.aggregator, SumAggregator) and self.aggregator.is_sum and not (blank.kept or self.is_forged):
            values, weight, totals, sums, counts = self._call(
                _build_summed, models, inputs, state, min_slots, blank, self.aggregator, num_groups
            )
            aggregate = self.aggregator.finish(
                tuple(map(np.asarray, values)), np.asarray(weight), counts, sizes, state, round_num
            )
            return PhaseOutcome(aggregate, totals, sums, [])
        sent, empty = self._list(models, inputs, state, min_slots, blank)
        return self._conclude(sent, empty, inputs, sizes, state, round_num)

    def receive(
        self, results: Sequence[LocalResult], inputs: Sequence[SlotInput], num_groups: int, state: Any, round_num: int
    ) -> PhaseOutcome:
        """What becomes of results that came over a network, at least one: encoded here, since no client is trusted to.

        Args:
          results: in the order of the inputs, NumPy arrays.
          inputs, num_groups, state, round_num: as in `run`.
        """
        sizes = np.bincount(np.array([each.client.group for each in inputs], np.int64), minlength=num_groups)
        told, sent = self.aggregator.tell(state), []
        for result, each in zip(results, inputs, strict=True):
            encoded = self._encode(ClientUpdate(result, each.client.group, each.client.weight), each.client.seed, told)
            sent.append(Sent(_take_to_host(encoded[0]), counts=encoded[1]))
        return self._conclude(sent, [], inputs, sizes, state, round_num)

    def _conclude(
        self,
        sent: Sequence[Sent],
        empty: Sequence[Sent],
        inputs: Sequence[SlotInput],
        sizes: np.ndarray,
        state: Any,
        round_num: int,
    ) -> PhaseOutcome:
        """What becomes of updates that came one by one; `sizes` are the groups'."""
        # As in a sum in the graph, empty slots add their zeros: a round of nobody has sums, too.
        sums, counts = (_add_up([getattr(each, name) for each in (*sent, *empty)]) for name in ("sums", "counts"))
        # Before the sum, so that forged updates reach the mean as they reach a robust rule.
        updates = self.forge([each.update for each in sent], inputs)
        totals = sum_on_host(updates, self.shapes, len(sizes))
        aggregate = self.aggregator.aggregate(updates, totals, counts, sizes, state, round_num)
        return PhaseOutcome(aggregate, summarize_totals(totals), sums, [each.kept for each in sent], updates)

    def collect(
        self,
        models: Any,
        inputs: Sequence[SlotInput],
        state: Any,
        min_slots: int = 1,
        blank: SlotInput = BLANK,
    ) -> list[Sent]:
        """What each client sends, in the order of the inputs; the arguments are those of `run`."""
        # What empty slots do is dropped: here nothing is summed.
        return self._list(models, inputs, state, min_slots, blank)[0]

    def _list(self, models, inputs, state, min_slots, blank) -> tuple[list[Sent], list[Sent]]:
        """What the clients send, and what the empty slots do; in several calls if one result could be too large."""
        # By the update alone: what else comes back is about as large at most, and the bound lies far below the limit.
        update_bytes = 4 * sum(math.prod(shape) for shape in self.shapes)
        size = max(_MAX_RESULT_BYTES // max(update_bytes, 1), 1)
        parts = [inputs[start : start + size] for start in range(0, len(inputs), size)] or [inputs]
        sent, empty = [], []
        for part in parts:
            found = self._call(_build_listed, models, part, state, min(min_slots, size), blank)
            sent += found[: len(part)]
            empty += found[len(part) :]
        return sent, empty

    @property
    def is_forged(self) -> bool:
        """Whether somebody sends another update than it has trained."""
        return self.attack is not None and self.attack.config.forges_updates

    def forge(self, updates: Sequence[ClientUpdate], inputs: Sequence[SlotInput]) -> list[ClientUpdate]:
        """What the server gets of these updates, which are in the order of the inputs."""
        return self.attack.forge(updates, [each.client for each in inputs]) if self.attack else list(updates)

    def _call(self, build, models, inputs, state, min_slots, blank, *arguments) -> Any:
        own, empty = (
            [(np.shape(each), np.asarray(each).dtype) for each in tf.nest.flatten(given.own)]
            for given in (*inputs[:1], blank, blank)[:2]
        )
        # Else TFF would complain of types, which names neither the algorithm nor `own_blank`.
        if own != empty:
            raise ContractError(f"own_blank, for an empty slot, has {empty}, clients are told {own}; expected the same")
        server, placed = (models, self.aggregator.tell(state)), pad_cohort(inputs, min_slots, blank)
        # The caches of TFF and of the runtimes go by identity, so the same computation must serve every round.
        key = build, build_type(server), build_type(blank), *arguments
        if key not in self._computations:
            self._computations[key] = LateComputation(build, self, key[1], blank, *arguments)
        # Flat, since the worker makes every structure in an input of a client apart: with 100 clients, a fifth of the
        # time of a round of AMFL-P.
        return self._computations[key](server, [tuple(tf.nest.flatten(each)) for each in placed])

    @functools.cached_property
    def _computations(self) -> dict[tuple, Callable]:
        return {}

    def do_client_work(self, server: tuple, given: SlotInput) -> Sent:
        """What a client does and sends, in any graph."""
        models, told = server
        try:
            sent = self.work(Told(given.client, models, given.own, given.kept))
            self._check_sent(sent, given.kept)
        except Exception as error:
            if given.kept or "kept" not in getattr(getattr(self.work, "__code__", None), "co_names", ()):
                raise
            # An index into an empty tuple is how it shows: the author's own traceback would not name the cause.
            problem = "the work reads told.kept, but build_parts was given no kept=, what clients keep at first"
            raise ContractError(problem, self.work) from error
        update, counts = self._encode(sent.update, given.client.seed, told)
        return sent._replace(update=update, counts=counts)

    def _encode(self, update: ClientUpdate, seed: Any, told: tuple) -> tuple[ClientUpdate, Any]:
        """The update as the server has it, and its counts, in any graph."""
        # The norm and the loss are those of the update before it was rounded.
        received = self.transport.receive(update.result.weights_delta, seed)
        result = update.result._replace(weights_delta=received)
        return self.aggregator.encode(update._replace(result=result), told)

    def _check_sent(self, sent: Any, kept: tuple) -> None:
        """Raises ContractError unless the work gives an update of the model, and keeps what clients keep."""
        if not isinstance(sent, Sent) or not isinstance(sent.update, ClientUpdate):
            found = f"Sent({type(sent.update).__name__})" if isinstance(sent, Sent) else type(sent).__name__
            expected = "Sent(ClientUpdate(result, client.group, client.weight), ...)"
            raise ContractError(f"the work gave {found}, expected {expected}", self.work)
        if bool(kept) != bool(sent.kept):
            problem = (
                "sends kept=, but build_parts was given no kept=, what clients keep at first"
                if sent.kept
                else "sends no kept=, but build_parts was given kept="
            )
            raise ContractError(f"the work {problem}; give both, or neither", self.work)
        # In a graph a shape may be unknown, so it is compared for compatibility alone.
        deltas = [(shape, tf.float32) for shape in self.shapes]
        before = [(each.shape, each.dtype) for each in tf.nest.flatten(kept)]
        pairs: dict[str, tuple[Any, list]] = {
            "update": (sent.update.result.weights_delta, deltas),
            "kept": (sent.kept, before),
        }
        for name, (values, wanted) in pairs.items():
            arrays = [(each.shape, tf.as_dtype(each.dtype)) for each in tf.nest.flatten(values)]
            if len(arrays) != len(wanted):
                raise ContractError(f"{name} has {len(arrays)} arrays, expected {len(wanted)}", self.work)
            for index, ((shape, dtype), (a, b)) in enumerate(zip(arrays, wanted, strict=True)):
                if dtype != b or not tf.TensorShape(a).is_compatible_with(shape):
                    what = f"{dtype.name} of shape {tuple(shape)}, expected {b.name} of shape {tuple(a)}"
                    raise ContractError(f"{name}[{index}] of the work is {what}", self.work)


def _take_to_host(update: ClientUpdate) -> ClientUpdate:
    """The same in NumPy's arrays."""
    # Not by TensorFlow's `nest`: for a thousand clients it took longer than their sum.
    result = LocalResult(tuple(map(np.asarray, update.result.weights_delta)), *map(np.asarray, update.result[1:]))
    return ClientUpdate(result, np.asarray(update.group), np.asarray(update.weight))


def _add_up(values: Sequence[Any]) -> Any:
    """The sum of nested arrays, at least one, one after another as a federated sum adds them."""
    if not tf.nest.flatten(values[0]):
        return values[0]
    # Not NumPy's sum, which adds pairwise and so rounds otherwise than the graph does.
    return functools.reduce(functools.partial(tf.nest.map_structure, np.add), values)


def _build_work(phase: TrainingPhase, server_type: tff.Type, blank: SlotInput) -> tff.Computation:
    """A client's work as a computation of what the server sends, and of the flat input of the client."""

    @tff.tensorflow.computation(server_type, build_type(tuple(tf.nest.flatten(blank))))
    def client_work(server, given):
        return phase.do_client_work(server, tf.nest.pack_sequence_as(blank, list(given)))

    return client_work


def _place(client_work: tff.Computation) -> tuple[tff.FederatedType, tff.FederatedType]:
    server_type, given_type = client_work.type_signature.parameter
    return tff.FederatedType(server_type, tff.SERVER), tff.FederatedType(given_type, tff.CLIENTS)


def _build_summed(
    phase: TrainingPhase, server_type: tff.Type, blank: SlotInput, aggregator: SumAggregator, num_groups: int
) -> Callable:
    client_work = _build_work(phase, server_type, blank)
    # Nothing is summed of what is empty: a graph without an output makes TensorFlow complain.
    sent_type = client_work.type_signature.result
    summed = [name for name in ("sums", "counts") if not _is_empty(getattr(sent_type, name))]

    def describe(totals, further):
        sums, counts = (further[summed.index(name)] if name in summed else () for name in ("sums", "counts"))
        return aggregator.reduce(totals), totals.weight, summarize_totals(totals), sums, counts

    @tff.federated_computation(*_place(client_work))
    def run_summed(server, clients):
        sent = tff.federated_map(client_work, (tff.federated_broadcast(server), clients))
        totals, further = sum_by_group(sent.update, num_groups), [tff.federated_sum(getattr(sent, n)) for n in summed]
        summarize = tff.tensorflow.computation(describe if summed else lambda totals: describe(totals, ()))
        return tff.federated_map(summarize, (totals, tuple(further)) if summed else totals)

    return run_summed


def _is_empty(type_spec: tff.Type) -> bool:
    return isinstance(type_spec, tff.StructType) and not len(type_spec)


def _build_listed(phase: TrainingPhase, server_type: tff.Type, blank: SlotInput) -> Callable:
    client_work = _build_work(phase, server_type, blank)

    @tff.federated_computation(*_place(client_work))
    def run_listed(server, clients):
        return tff.federated_map(client_work, (tff.federated_broadcast(server), clients))

    return run_listed
