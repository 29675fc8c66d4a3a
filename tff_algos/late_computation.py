"""A computation that is made when it is first called, by what may have its graphs already.

Tracing takes most of a first round. A runtime that has cached the graphs of an earlier run calls those, if it can tell
from what the computation would be made of that they are the same (see `launch.runtimes.cached_graphs`).
"""

import functools
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import tensorflow_federated as tff

# Of a field of a dataclass whose value no graph is made of: a run with another one may use the same graphs.
OUTSIDE_GRAPHS = MappingProxyType({"outside_graphs": True})


class LateComputation:
    """Called like the TFF computation that `build(*arguments)` makes.

    Attributes:
      build: a function of a module that returns a federated computation; all that it makes it of are its arguments.
      arguments: plain values, TFF types, and functions and objects of such.
    """

    def __init__(self, build: Callable[..., Any], *arguments: Any):
        self.build, self.arguments = build, arguments

    @functools.cached_property
    def made(self) -> Any:
        """The computation of TFF."""
        return self.build(*self.arguments)

    def __call__(self, *values: Any) -> Any:
        """The result of the computation."""
        context = tff.framework.get_context_stack().current
        # Only this project's contexts know of late computations; TFF's own, as in tests, get the computation itself.
        call_late = getattr(context, "call_late", None)
        return call_late(self, values) if call_late else self.made(*values)
