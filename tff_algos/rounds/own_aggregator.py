"""A user's own aggregator, named as "my_module:NAME"; whatever it does wrong is one line that names it.

It may be an aggregation factory of TFF, a function (updates, weights) -> update of NumPy arrays, or a `ListAggregator`;
of the first and the last also the class, which is then called without arguments.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from datasets.own_objects import describe_failure, import_object
from tff_algos.rounds.factory_aggregation import COLUMN_PREFIX, FactoryAggregator
from tff_algos.rounds.list_aggregator import ListAggregator
from tff_algos.settings.config_fields import ConfigError

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
    aggregator = CheckedAggregator(own, spelling)
    try:  # before a run touches any folder
        aggregator.initialize(shapes, 1)
    except ConfigError:
        raise
    except (Exception, SystemExit) as error:
        raise aggregator.complain(f"failed: {describe_failure(error)}") from error
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

    uses_weights = True  # whether the function looks at them is its own affair

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
        self.uses_weights = bool(own.uses_weights)

    def initialize(self, shapes, num_groups):
        """See `ListAggregator`; raises ConfigError if the states are not what they must be.

        One zero update is aggregated and forgotten, so that what is wrong shows before the first round.
        """
        states = self.own.initialize(list(shapes), num_groups)
        if not isinstance(states, tuple) or len(states) not in (0, num_groups):
            raise self.complain(f"initialize gave {_describe(states)}, not a tuple with a state for each group, or ()")
        for state in states:
            self._check_state(state, "initialize")
        num_weights = sum(int(np.prod(shape)) for shape in shapes)
        state = states[0] if states else ()
        self.combine(np.zeros((1, num_weights), np.float32), np.ones(1, np.float32), state)
        return states

    def combine(self, updates, weights, state):
        outcome = self.own.combine(_freeze(updates), _freeze(weights), state)
        if not isinstance(outcome, tuple) or len(outcome) != 3:
            raise self.complain(f"combine gave {_describe(outcome)}, not (update, state, columns)")
        update, next_state, columns = outcome
        update = self._check_update(update, updates.shape[1])
        self._check_state(next_state, "combine")
        nested, before = (tf.nest.map_structure(lambda leaf: None, each) for each in (next_state, state))
        if nested != before:
            raise self.complain("combine changed the structure of the state")
        return update, next_state, self._check_columns(columns)

    def _check_update(self, update: Any, num_weights: int) -> np.ndarray:
        try:
            array = np.asarray(update, np.float32)
        except (TypeError, ValueError) as error:
            raise self.complain(f"gave {_describe(update)}, not an array of numbers") from error
        if array.shape != (num_weights,):
            raise self.complain(f"gave an update of shape {array.shape}, not ({num_weights},)")
        if not np.isfinite(array).all():
            raise self.complain("gave an update that is not finite")
        return array

    def _check_state(self, state: Any, method: str) -> None:
        for leaf in tf.nest.flatten(state):
            if np.asarray(leaf).dtype.kind not in "biufc":
                raise self.complain(f"{method} gave a state with {_describe(leaf)}, not arrays of numbers alone")

    def _check_columns(self, columns: Any) -> dict[str, float]:
        if not isinstance(columns, Mapping):
            raise self.complain(f"combine gave {_describe(columns)} as columns, not a dict")
        for name, value in columns.items():
            is_number = np.ndim(value) == 0 and np.asarray(value).dtype.kind in "biuf"
            if not (isinstance(name, str) and name.isidentifier() and is_number):
                raise self.complain(f"gave the column {name!r} = {_describe(value)}, not a name with a number")
        return {f"{COLUMN_PREFIX}_{name}": np.asarray(value).item() for name, value in columns.items()}

    def complain(self, what: str) -> ConfigError:
        """The error that says what is wrong with it."""
        return ConfigError("aggregator", self.name, f"an aggregator that can be used; this one {what}")


def _freeze(array: np.ndarray) -> np.ndarray:
    """The same numbers, which cannot be written to: a round's updates must stay as they are."""
    view = array.view()
    view.flags.writeable = False
    return view


def _describe(value: Any) -> str:
    return "None" if value is None else type(value).__name__
