"""An optimizer's steps on variables that are joined into a few vectors. Imports TFF.

Its users call what is here from a `tf.function`. AutoGraph is told not to rewrite it (`as_written`).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf
import tensorflow_federated as tff

from models.training_terms import constrain, has_constraints

# Marks what a traced function calls and what has no loop or branch that depends on a tensor. AutoGraph would otherwise
# parse and rewrite it as well, which took 1 s a run, most of it for the optimizer.
as_written = tf.autograph.experimental.do_not_convert

_JOINED_SIZE = 2**16


class FlatLayout:
    """Joins tensors of the shapes of some variables into vectors, and splits these again.

    An optimizer computes each number by itself, so its step on one vector is that on the tensors. It takes fewer ops: a
    tenth of a small model's graph, and of the time that it takes to make and to load it. Variables above `_JOINED_SIZE`
    numbers keep a vector of their own, as copying them would take longer than their ops.
    """

    def __init__(self, variables: Sequence[tf.Variable]):
        self._shapes = [variable.shape for variable in variables]
        parts: dict[Any, list[int]] = {}
        for i, variable in enumerate(variables):
            # Large ones would be copied at each step, which takes longer than their ops.
            is_small = variable.shape.num_elements() < _JOINED_SIZE
            parts.setdefault((variable.dtype, None if is_small else i), []).append(i)
        self._parts = list(parts.values())

    @as_written
    def join(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The vectors, each of one dtype."""
        return [tf.concat([tf.reshape(tensors[i], [-1]) for i in part], axis=0) for part in self._parts]

    @as_written
    def split(self, vectors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The tensors in the order of the variables."""
        tensors = [None] * len(self._shapes)
        for part, vector in zip(self._parts, vectors, strict=True):
            sizes = [self._shapes[i].num_elements() for i in part]
            for i, values in zip(part, tf.split(vector, sizes), strict=True):
                tensors[i] = tf.reshape(values, self._shapes[i])
        return tensors


class Carried(NamedTuple):
    """What a loop carries from step to step: the optimizer's state, and the variables' values as vectors."""

    state: Any
    values: list[tf.Tensor]


class JoinedOptimizer:
    """Steps of a TFF optimizer, which is a pure function of its state; Keras's would create variables."""

    def __init__(self, optimizer: tff.learning.optimizers.Optimizer, variables: Sequence[tf.Variable]):
        self._optimizer, self.variables, self._layout = optimizer, variables, FlatLayout(variables)

    @as_written
    def start(self) -> Carried:
        """A new state, and the variables as they are."""
        values = self._layout.join([variable.read_value() for variable in self.variables])
        return Carried(self._optimizer.initialize([tf.TensorSpec(v.shape, v.dtype) for v in values]), values)

    @as_written
    def split(self, carried: Carried) -> list[tf.Tensor]:
        """The carried values, one for each variable."""
        return self._layout.split(carried.values)

    @as_written
    def step(self, carried: Carried, gradients: Sequence[tf.Tensor]) -> Carried:
        """Takes a step from `carried` by a gradient for each variable, and gives the variables their new values.

        Variables with a constraint (see `models.training_terms`) keep to it.
        """
        carried = Carried(*self._optimizer.next(carried.state, carried.values, self._layout.join(gradients)))
        values = self.split(carried)
        if has_constraints(self.variables):  # decided while the graph is made
            values = constrain(self.variables, values)
            carried = carried._replace(values=self._layout.join(values))
        for variable, value in zip(self.variables, values, strict=True):
            variable.assign(value)
        return carried
