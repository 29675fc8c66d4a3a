"""A TFF context that runs computations as graphs, without TFF's executors. Imports TFF: import this module lazily.

Who runs the clients is left open: this process, or many.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from launch.runtimes import flat_values
from launch.runtimes.graph_sessions import GraphFunction, RoundForm, Tensors, explain_failure
from launch.runtimes.round_form import (
    export_graph,
    export_round,
    is_at_clients,
    is_graph,
    list_placed,
    type_of_values,
)
from launch.runtimes.runtime import WorkerError

MAX_COMPUTATIONS = 32  # kept at a time; an algorithm has a few

# (values of each client, what every client gets) -> totals, or each client's values
RunClients = Callable[[Sequence[Tensors], Tensors], Tensors | list[Tensors]]
# Makes the above for a form, and ends with what it needs.
OpenClients = Callable[[RoundForm], contextlib.AbstractContextManager[RunClients]]


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

    def __init__(self, comp: Any, open_clients: OpenClients):
        self._type = comp.type_signature
        placed = list_placed(self._type.parameter)
        self._server_types = [each for each in placed if not is_at_clients(each)]
        self._client_types = [each for each in placed if is_at_clients(each)]
        form = export_round(comp)
        self._returns_client_values = form.returns_client_values
        self._prepare = GraphFunction(form.prepare)
        self._stack = contextlib.ExitStack()
        self._stack.callback(self._prepare.close)
        if not form.returns_client_values:
            self._report, self._update = GraphFunction(form.report), GraphFunction(form.update)
            self._stack.callback(self._report.close)
            self._stack.callback(self._update.close)
        self._run_clients = self._stack.enter_context(open_clients(form))

    def __call__(self, arg: Any) -> Any:
        server, clients = self._flatten(arg)
        outcome = self._run_clients(clients, self._prepare(*server))
        if self._returns_client_values:
            return flat_values.unflatten_clients(outcome, self._type.result)
        return flat_values.unflatten_server(self._update(*server, *self._report(*outcome)), self._type.result)

    def _flatten(self, arg: Any) -> tuple[Tensors, list[Tensors]]:
        """The tensors of the server, and those of each client. Raises ValueError if clients are counted differently."""
        values = [] if self._type.parameter is None else list(_list_values(arg, self._type.parameter))
        server = [value for value, placed in values if not is_at_clients(placed)]
        each = [value for value, placed in values if is_at_clients(placed)]
        if len({len(value) for value in each}) > 1:
            raise ValueError(f"values of {', '.join(str(len(value)) for value in each)} clients in one call")
        server_type, client_type = type_of_values(self._server_types), type_of_values(self._client_types)
        clients = [flat_values.flatten(list(client), client_type) for client in zip(*each, strict=True)]
        return flat_values.flatten(server or [0], server_type), clients

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
    """Runs each computation as graphs. What it needs for one is made at its first call and kept for the others."""

    def __init__(self, open_clients: OpenClients):
        self._open_clients = open_clients
        self._calls: dict[int, tuple[Any, _GraphCall | _RoundCall]] = {}  # the one used last comes last

    def invoke(self, comp: Any, arg: Any) -> Any:
        """The computation's result, in the containers that its type names.

        Raises:
          WorkerError: an operation of a graph failed.
        """
        key = id(comp)  # stands for the computation as long as the entry holds it
        _, call = entry = self._calls.pop(key, None) or (comp, self._load(comp))
        self._calls[key] = entry
        if len(self._calls) > MAX_COMPUTATIONS:
            self._calls.pop(next(iter(self._calls)))[1].close()
        try:
            return call(arg)
        except tf.errors.OpError as error:
            self._forget(key)
            raise WorkerError(explain_failure(error)) from error
        except BaseException:  # Ctrl-C: what still runs is broken off
            self._forget(key)
            raise

    def _load(self, comp: Any) -> _GraphCall | _RoundCall:
        return _GraphCall(comp) if is_graph(comp) else _RoundCall(comp, self._open_clients)

    def _forget(self, key: int) -> None:
        self._calls.pop(key)[1].close()

    def close(self) -> None:
        """Frees everything; a call made later starts anew."""
        while self._calls:
            self._forget(next(iter(self._calls)))
