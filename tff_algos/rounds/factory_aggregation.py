"""Any aggregator of `tff.aggregators`, or of a user, as one that sees single updates.

TFF's aggregators are made for a round in which every client counts. Ours has empty slots and rejected updates, which
must not move a clipping quantile. So the updates that count come to the server first, and TFF's aggregation then runs
over exactly these as its clients. The bytes of a round stay those of whole updates: that an aggregator compresses is
felt in its values alone. Secure sums are simulated: plain sums with the rounding and the limits of secure ones.

The number of clients may differ from round to round; TFF's worker keeps an executor for each of the numbers used last.

A user's own aggregator, named as "my_module:NAME"; whatever it does wrong is one line that names it.

It may be an aggregation factory of TFF, a function (updates, weights) -> update of NumPy arrays, or a `ListAggregator`;
of the first and the last also the class, which is then called without arguments.
"""

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from datasets.own_objects import describe_failure, import_object
from tff_algos.rounds.list_aggregator import ListAggregator, cut_updates, join_update, make_trial
from tff_algos.settings.aggregation import (
    CLIPPING,
    COMPRESSION,
    DP_TREE,
    QUANTIZATION,
    ROBUST,
    SECURE,
    ZEROING,
    AggregationConfig,
)
from tff_algos.settings.config_fields import ConfigError

Shapes = Sequence[tuple[int, ...]]
Factory: TypeAlias = tff.aggregators.WeightedAggregationFactory | tff.aggregators.UnweightedAggregationFactory
COLUMN_PREFIX = "aggregator"


class FactoryAggregator(ListAggregator):
    """The aggregation of a factory over the model's weights, a tuple of float32 tensors.

    The clients' weights are used if the factory is a `WeightedAggregationFactory`. Its state is a tuple of the leaves
    of the process's state, texts as their bytes, uint8. Columns are its measurements that are single numbers, as
    `aggregator_<path>`. Computations need a TFF context when they run (`initialize`, `combine`).

    Args:
      factory: makes the aggregation.
      shapes: of the floating-point weights.
      name: what errors call the aggregator, as the user has given it.
      needs_one_group: whether a second group must be refused.

    Raises:
      ConfigError: the factory makes no aggregation for these weights.
    """

    def __init__(self, factory: Factory, shapes: Shapes, name: str, needs_one_group: bool = False):
        self.shapes, self.name = [tuple(shape) for shape in shapes], name
        self.needs_one_group = needs_one_group
        self._is_weighted = isinstance(factory, tff.aggregators.WeightedAggregationFactory)
        tensors = [tff.TensorType(np.float32, shape) for shape in self.shapes]
        value_type = tff.StructWithPythonType(tensors, tuple)
        types = (value_type, tff.TensorType(np.float32)) if self._is_weighted else (value_type,)
        simulate = tff.backends.test.replace_secure_intrinsics_with_bodies
        try:
            with _without_warnings():
                process = factory.create(*types)
                self._initialize, self._next = simulate(process.initialize), simulate(process.next)
        except (Exception, SystemExit) as error:  # a user's factory may raise anything
            raise _complain(name, f"makes no aggregation for this model: {describe_failure(error)}") from error
        # Replaced computations have lost the names of their results, the process has not.
        self._state_type = process.initialize.type_signature.result.member
        outcome = dict(tff.structure.iter_elements(process.next.type_signature.result))
        self._measurements_type = outcome["measurements"].member
        if outcome["result"].member.compact_representation() != value_type.compact_representation():
            raise ConfigError("aggregator", name, f"a result of the types {value_type}, got {outcome['result'].member}")

    def initialize(self, shapes: Shapes, num_groups: int) -> tuple:
        """A state for each group, each begun anew.

        One zero update is aggregated and forgotten, so that what the runtime cannot do fails here, not after a round.

        Raises:
          ConfigError: the computation fails, the runtime cannot run it, or there are more groups than there may be.
        """
        if self.needs_one_group and num_groups > 1:
            expected = "another one with an algorithm that trains several models: all would get the same noise"
            raise ConfigError("aggregator", self.name, expected)
        try:
            states = tuple(_flatten(self._initialize(), self._state_type) for _ in range(num_groups))
            self.combine(*make_trial(self.shapes), states[0])
        except ConfigError:
            raise
        except (Exception, SystemExit) as error:
            problem = f"cannot be run in this runtime (--runtime=tff may): {describe_failure(error)}"
            raise _complain(self.name, problem) from error
        return states

    def combine(self, updates, weights, state):
        # Only the updates that count are TFF's clients; their number may change from round to round.
        values = [cut_updates(update, self.shapes) for update in updates]
        arguments = [_rebuild(iter(state), self._state_type), values]
        if self._is_weighted:
            arguments.append([np.float32(weight) for weight in weights])
        next_state, result, measurements = tff.structure.from_container(self._next(*arguments))
        update = join_update(list(tff.structure.from_container(result)))
        if not np.isfinite(update).all():
            raise ConfigError("aggregator", self.name, "an aggregate of finite numbers, got one that is not")
        leaves = _flatten(next_state, self._state_type)
        return update.astype(np.float32), leaves, _name_columns(measurements, self._measurements_type)


def _complain(name: str, what: str) -> ConfigError:
    """The error that says what is wrong with an aggregator."""
    return ConfigError("aggregator", name, f"an aggregator that can be used, but it {what}")


@contextlib.contextmanager
def _without_warnings() -> Iterator[None]:
    """Inside, TensorFlow logs nothing: TFF's simulated secure sums have checks that TensorFlow believes forgotten."""
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel("CRITICAL")
    try:
        yield
    finally:
        logger.setLevel(level)


def _flatten(value: Any, type_spec: tff.Type) -> tuple[np.ndarray, ...]:
    """The tensors of a value in the order of its type; texts as their bytes, uint8."""
    if isinstance(type_spec, tff.StructType):
        parts, types = tff.structure.from_container(value), tff.structure.iter_elements(type_spec)
        return tuple(leaf for part, (_, spec) in zip(parts, types, strict=True) for leaf in _flatten(part, spec))
    if type_spec.dtype.type is np.str_:
        # TFF returns a text as bytes, in an array or not, by the runtime.
        text = value.item() if isinstance(value, np.ndarray) else value
        return (np.frombuffer(text.encode() if isinstance(text, str) else text, np.uint8),)
    return (np.asarray(value),)


def _rebuild(leaves: Iterator[np.ndarray], type_spec: tff.Type) -> Any:
    """The inverse of `_flatten`, in TFF's own containers."""
    if isinstance(type_spec, tff.StructType):
        parts = [(name, _rebuild(leaves, spec)) for name, spec in tff.structure.iter_elements(type_spec)]
        return tff.structure.Struct(parts)
    leaf = next(leaves)
    return bytes(leaf) if type_spec.dtype.type is np.str_ else np.asarray(leaf, type_spec.dtype)[()]


def _name_columns(value: Any, type_spec: tff.Type, path: str = COLUMN_PREFIX) -> dict[str, float]:
    """The single numbers in measurements, each under its path."""
    if isinstance(type_spec, tff.StructType):
        parts, types = tff.structure.from_container(value), tff.structure.iter_elements(type_spec)
        columns = {}
        for index, (part, (name, spec)) in enumerate(zip(parts, types, strict=True)):
            columns.update(_name_columns(part, spec, f"{path}_{index if name is None else name}"))
        return columns
    # metrics.csv has a number a column; arrays among the measurements have no column.
    is_number = type_spec.shape == () and np.dtype(type_spec.dtype).kind in "biuf"
    return {path: np.asarray(value).item()} if is_number else {}


def build_factory(config: AggregationConfig, shapes: Shapes, cohort_size: int, seed: int) -> Factory:
    """The factory that has a name here.

    All are repeatable: rounding is to the nearest level, and DP-FTRL's noise is drawn from the seed.

    Args:
      config: names it, with its parameters.
      shapes: of the floating-point weights.
      cohort_size: expected clients a round, by which DP-FTRL divides its sums.
      seed: of the noise, at least 0, below 2**31.
    """
    aggregators, learning = tff.aggregators, tff.learning
    builders: dict[str, Callable[[], Factory]] = {
        ZEROING: lambda: learning.robust_aggregator(zeroing=True, clipping=False),
        CLIPPING: lambda: learning.robust_aggregator(zeroing=False, clipping=True),
        ROBUST: learning.robust_aggregator,
        COMPRESSION: lambda: learning.compression_aggregator(stochastic=False),
        QUANTIZATION: lambda: aggregators.MeanFactory(
            aggregators.EncodedSumFactory.quantize_above_threshold(config.aggregator_bits, 0, stochastic=False)
        ),
        SECURE: learning.secure_aggregator,
        # With a fixed clip norm, as in the paper (Kairouz et al. 2021). The noise of adaptive clipping has no seed.
        DP_TREE: lambda: aggregators.DifferentiallyPrivateFactory.tree_aggregation(
            noise_multiplier=config.aggregator_noise_multiplier,
            clients_per_round=float(cohort_size),
            l2_norm_clip=config.aggregator_clip_norm,
            record_specs=tuple(tf.TensorSpec(shape, tf.float32) for shape in shapes),
            noise_seed=seed,
        ),
    }
    with _without_warnings():
        return builders[config.aggregator]()


EXPECTED = "an aggregation factory of TFF, a function of (updates, weights) or a ListAggregator"
FACTORIES = (tff.aggregators.WeightedAggregationFactory, tff.aggregators.UnweightedAggregationFactory)


def load_own_aggregator(spelling: str, shapes: Sequence[tuple[int, ...]]) -> ListAggregator:
    """Imports a user's aggregator; the caller has seen to it that the module may be imported.

    Args:
      spelling: "module:NAME".
      shapes: of the floating-point weights.

    Raises:
      ConfigError: there is no such object, or it is nothing that aggregates.
    """

    def make_error(text: str) -> ConfigError:
        return ConfigError("aggregator", spelling, text)

    own = import_object(spelling, "an object that can be imported", make_error)
    if isinstance(own, type) and issubclass(own, (ListAggregator, *FACTORIES)):
        try:
            own = own()
        except (Exception, SystemExit) as error:
            raise make_error(f"a class that takes no arguments: {describe_failure(error)}") from error
    if isinstance(own, FACTORIES):
        return FactoryAggregator(own, shapes, spelling)
    if not isinstance(own, ListAggregator):
        if isinstance(own, type) or not callable(own):
            kind = f"the class {own.__name__}" if isinstance(own, type) else type(own).__name__
            raise make_error(f"{EXPECTED}, got {kind}")
        _check_arguments(own, make_error)
        own = FunctionAggregator(own)
    # TFF checks its own factories by types; anything else is checked at every call.
    aggregator = CheckedAggregator(own, spelling)
    try:  # before a run touches any folder
        aggregator.initialize(shapes, 1)
    except ConfigError:
        raise
    except (Exception, SystemExit) as error:
        raise _complain(spelling, f"failed: {describe_failure(error)}") from error
    return aggregator


def _check_arguments(function: Callable, make_error: Callable[[str], ConfigError]) -> None:
    try:
        inspect.signature(function).bind(None, None)
    except ValueError:  # what is written in C need not say what it takes
        return
    except TypeError as error:
        raise make_error(f"a function of (updates, weights): {error}") from error


class FunctionAggregator(ListAggregator):
    """A function of (updates, weights), float32 of shapes (clients, num_weights) and (clients,), to (num_weights,)."""

    def __init__(self, function: Callable[[np.ndarray, np.ndarray], np.ndarray]):
        self.function = function

    def combine(self, updates, weights, state):
        return self.function(updates, weights), state, {}


class CheckedAggregator(ListAggregator):
    """A user's aggregator, held to the interface. Its columns get the prefix `aggregator_`.

    Args:
      own: the aggregator.
      name: what errors call it, as the user has given it.
    """

    def __init__(self, own: ListAggregator, name: str):
        self.own, self.name = own, name

    def initialize(self, shapes, num_groups):
        """See `ListAggregator`; raises ConfigError if the states are not what they must be.

        One zero update is aggregated and forgotten, so that what is wrong shows before the first round.
        """
        states = self.own.initialize(list(shapes), num_groups)
        if not isinstance(states, tuple) or len(states) not in (0, num_groups):
            raise _complain(
                self.name, f"initialize gave {_describe(states)}, not a tuple with a state for each group, or ()"
            )
        for state in states:
            self._check_state(state, "initialize")
        self.combine(*make_trial(shapes), states[0] if states else ())
        return states

    def combine(self, updates, weights, state):
        # Frozen: the updates are the runtime's own memory, and later groups and metrics read them.
        outcome = self.own.combine(_freeze(updates), _freeze(weights), state)
        if not isinstance(outcome, tuple) or len(outcome) != 3:
            raise _complain(self.name, f"combine gave {_describe(outcome)}, not (update, state, columns)")
        update, next_state, columns = outcome
        update = self._check_update(update, updates.shape[1])
        self._check_state(next_state, "combine")
        # A checkpoint is read back into the first state's structure.
        nested, before = (tf.nest.map_structure(lambda leaf: None, each) for each in (next_state, state))
        if nested != before:
            raise _complain(self.name, "combine changed the structure of the state")
        return update, next_state, self._check_columns(columns)

    def _check_update(self, update: Any, num_weights: int) -> np.ndarray:
        try:
            array = np.asarray(update, np.float32)
        except (TypeError, ValueError) as error:
            raise _complain(self.name, f"gave {_describe(update)}, not an array of numbers") from error
        if array.shape != (num_weights,):
            raise _complain(self.name, f"gave an update of shape {array.shape}, not ({num_weights},)")
        if not np.isfinite(array).all():
            raise _complain(self.name, "gave an update that is not finite")
        return array

    def _check_state(self, state: Any, method: str) -> None:
        for leaf in tf.nest.flatten(state):
            if np.asarray(leaf).dtype.kind not in "biufc":
                raise _complain(self.name, f"{method} gave a state with {_describe(leaf)}, not arrays of numbers alone")

    def _check_columns(self, columns: Any) -> dict[str, float]:
        if not isinstance(columns, Mapping):
            raise _complain(self.name, f"combine gave {_describe(columns)} as columns, not a dict")
        for name, value in columns.items():
            is_number = np.ndim(value) == 0 and np.asarray(value).dtype.kind in "biuf"
            if not (isinstance(name, str) and name.isidentifier() and is_number):
                raise _complain(self.name, f"gave the column {name!r} = {_describe(value)}, not a name with a number")
        return {f"{COLUMN_PREFIX}_{name}": np.asarray(value).item() for name, value in columns.items()}


def _freeze(array: np.ndarray) -> np.ndarray:
    """The same numbers, which cannot be written to: a round's updates must stay as they are."""
    view = array.view()
    view.flags.writeable = False
    return view


def _describe(value: Any) -> str:
    return "None" if value is None else type(value).__name__
