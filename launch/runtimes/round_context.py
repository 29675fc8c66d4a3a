"""A TFF context that runs computations as graphs, without TFF's executors. Imports TFF: import this module lazily.

Who runs the clients is left open: this process, or many.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from launch.runtimes import flat_values
from launch.runtimes.cached_graphs import CachedRound, GraphFolder
from launch.runtimes.content_digest import UnknownContent, describe_surroundings, digest_content
from launch.runtimes.flat_values import describe_type, read_type
from launch.runtimes.graph_sessions import GraphFunction, RoundGraphs, Tensors, explain_failure
from launch.runtimes.round_graphs import (
    export_graph,
    export_round,
    is_at_clients,
    is_graph,
    list_placed,
    type_of_values,
)
from launch.runtimes.runtime import ComputationError, WorkerError

MAX_COMPUTATIONS = 32  # cached at a time; an algorithm has a few

# (values of each client, what every client gets) -> totals, or each client's values
RunClients = Callable[[Sequence[Tensors], Tensors], Tensors | list[Tensors]]
# Makes the above for the graphs of a round, and ends with what it needs.
OpenClients = Callable[[RoundGraphs], contextlib.AbstractContextManager[RunClients]]


class _GraphCall:
    """A plain TensorFlow computation."""

    def __init__(self, comp: Any):
        self._type = comp.type_signature
        self._run = GraphFunction(export_graph(comp))
        self.close = self._run.close

    def __call__(self, arg: Any) -> Any:
        values = [] if self._type.parameter is None else flat_values.flatten(arg, self._type.parameter)
        return flat_values.unflatten(iter(self._run(*values)), self._type.result)


class _RoundCall:
    """A federated computation: the server's parts run here, the clients' where `open_clients` says."""

    def __init__(self, graphs: RoundGraphs, type_spec: tff.FunctionType, open_clients: OpenClients):
        self._type = type_spec
        placed = list_placed(self._type.parameter)
        self._server_types = [each for each in placed if not is_at_clients(each)]
        self._client_types = [each for each in placed if is_at_clients(each)]
        self._returns_client_values = graphs.returns_client_values
        self._prepare = GraphFunction(graphs.prepare)
        self._stack = contextlib.ExitStack()
        self._stack.callback(self._prepare.close)
        if not graphs.returns_client_values:
            self._report, self._update = GraphFunction(graphs.report), GraphFunction(graphs.update)
            self._stack.callback(self._report.close)
            self._stack.callback(self._update.close)
        self._run_clients = self._stack.enter_context(open_clients(graphs))

    def __call__(self, arg: Any) -> Any:
        # The tensors of the server, and those of each client
        values = [] if self._type.parameter is None else list(_list_values(arg, self._type.parameter))
        server = [value for value, placed in values if not is_at_clients(placed)]
        each = [value for value, placed in values if is_at_clients(placed)]
        if len({len(value) for value in each}) > 1:
            raise ValueError(f"values of {', '.join(str(len(value)) for value in each)} clients in one call")
        server_type, client_type = type_of_values(self._server_types), type_of_values(self._client_types)
        clients = [flat_values.flatten(list(client), client_type) for client in zip(*each, strict=True)]
        # Where the server has nothing, the graph still wants the number that nobody reads.
        server = flat_values.flatten(server or [0], server_type)
        outcome = self._run_clients(clients, self._prepare(*server))
        if self._returns_client_values:
            return flat_values.unflatten_clients(outcome, self._type.result)
        return flat_values.unflatten(iter(self._update(*server, *self._report(*outcome))), self._type.result)

    def close(self) -> None:
        self._stack.close()


def _list_values(value: Any, type_spec: tff.Type) -> Iterator[tuple[Any, tff.FederatedType]]:
    """The placed values in a value, in the order of `list_placed`, each with its type."""
    if isinstance(type_spec, tff.FederatedType):
        yield value, type_spec
        return
    types = [part for _, part in tff.structure.iter_elements(type_spec)]
    for part, spec in zip(tff.structure.from_container(value), types, strict=True):
        yield from _list_values(part, spec)


class RoundContext(tff.framework.SyncContext):
    """Runs each computation as graphs. What it needs for one is made at its first call and cached for the others.

    Args:
      open_clients: who runs the clients.
      graph_dir: the folder where graphs are cached for later runs; "" for none.
      device: what the clients compute on.
    """

    def __init__(self, open_clients: OpenClients, graph_dir: str = "", device: str = "cpu"):
        self._open_clients, self._folder = open_clients, GraphFolder(graph_dir)
        self._surroundings = describe_surroundings(device) if graph_dir else None
        self._calls: dict[int, tuple[Any, _GraphCall | _RoundCall]] = {}  # the one used last comes last

    def invoke(self, comp: Any, arg: Any) -> Any:
        """The computation's result, in the containers that its type names.

        Raises:
          WorkerError: an operation of a graph failed.
        """
        return self._call(comp, arg, lambda: None if is_graph(comp) else (export_round(comp), comp.type_signature))

    def call_late(self, late: Any, values: Sequence[Any]) -> Any:
        """The same of a `LateComputation` of clients, called with these values."""
        return self._call(late, values[0] if len(values) == 1 else values, lambda: self._find_or_make(late))

    def _find_or_make(self, late: Any) -> tuple[RoundGraphs, tff.FunctionType]:
        """The parts of a late computation, which is traced only if it was not cached, and its type."""
        try:
            digest = self._surroundings and digest_content(self._surroundings, late.build, late.arguments)
        except UnknownContent:
            digest = None
        if digest and (cached := self._folder.find(digest)):
            with contextlib.suppress(Exception):  # a type that this version does not know, or a foreign file
                return cached.graphs, read_type(cached.described_type)
        graphs, type_spec = export_round(late.made), late.made.type_signature
        if digest:
            with contextlib.suppress(ValueError):  # a type that cannot be cached
                self._folder.store(digest, CachedRound(graphs, describe_type(type_spec)))
        return graphs, type_spec

    def _call(self, comp: Any, arg: Any, take_apart: Callable[[], tuple[RoundGraphs, tff.FunctionType] | None]) -> Any:
        key = id(comp)  # stands for the computation as long as the entry holds it
        if key not in self._calls:
            parts = take_apart()
            self._calls[key] = comp, _RoundCall(*parts, self._open_clients) if parts else _GraphCall(comp)
        _, call = self._calls[key] = self._calls.pop(key)
        if len(self._calls) > MAX_COMPUTATIONS:
            self._calls.pop(next(iter(self._calls)))[1].close()
        try:
            return call(arg)
        except BaseException as error:  # Ctrl-C, too: what still runs is broken off
            self._calls.pop(key)[1].close()
            if isinstance(error, tf.errors.OpError):
                is_refused = isinstance(error, tf.errors.InvalidArgumentError)
                raise (ComputationError if is_refused else WorkerError)(explain_failure(error)) from error
            raise

    def close(self) -> None:
        """Frees everything; a call made later starts anew."""
        while self._calls:
            self._calls.popitem()[1][1].close()
