"""A TFF context that shares the clients of a call among several workers. Imports TFF: import this module lazily.

Like `tff.framework.MergeableCompExecutionContext`, and with the same compiler: a computation is cut at its aggregation
into `up_to_merge` (on each share of the clients), `merge` (two partial aggregates into one) and `after_merge`. The
context of TFF 0.87 itself returns values of clients in the order in which the workers finish, gives some clients out
twice and others not at all when a server value follows them in the argument, and lets the workers wait for each other.
"""

import asyncio
import concurrent.futures
import functools
import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow_federated as tff


def _is_client_values(type_spec: tff.Type) -> bool:
    """Whether a type has one value a client."""
    return isinstance(type_spec, tff.FederatedType) and type_spec.placement is tff.CLIENTS and not type_spec.all_equal


def _has_client_values(type_spec: tff.Type | None) -> bool:
    return type_spec is not None and tff.types.contains(type_spec, _is_client_values)


def count_clients(value: Any, type_spec: tff.Type | None) -> int:
    """Clients in a value; 0 if it has no values of clients."""
    if not _has_client_values(type_spec):
        return 0
    if _is_client_values(type_spec):
        return len(value)
    types = [element_type for _, element_type in tff.structure.iter_elements(type_spec)]
    return max(map(count_clients, tff.structure.from_container(value), types))


def take_clients(value: Any, type_spec: tff.Type, start: int, stop: int) -> Any:
    """The part of a value that belongs to clients start..stop-1; what belongs to no client is kept whole."""
    if not _has_client_values(type_spec):
        return value
    if _is_client_values(type_spec):
        return value[start:stop]
    elements = zip(tff.structure.iter_elements(type_spec), tff.structure.from_container(value), strict=True)
    return tff.structure.Struct([(name, take_clients(part, spec, start, stop)) for (name, spec), part in elements])


def join_clients(parts: Sequence[Any], type_spec: tff.Type) -> Any:
    """Puts results of shares of the clients together again, in the order given; undoes `take_clients`."""
    if not _has_client_values(type_spec):
        return parts[0]
    if _is_client_values(type_spec):
        return [value for part in parts for value in part]
    elements = zip(tff.structure.iter_elements(type_spec), *map(tff.structure.from_container, parts), strict=True)
    joined = tff.structure.Struct([(name, join_clients(values, spec)) for (name, spec), *values in elements])
    return tff.types.type_to_py_container(joined, type_spec)


def share_evenly(num_clients: int, num_workers: int) -> list[tuple[int, int]]:
    """(start, stop) of each share: in order, sizes differing by one at most, none empty."""
    num_shares = min(num_clients, num_workers)
    bounds = [num_clients * i // num_shares for i in range(num_shares + 1)]
    return list(itertools.pairwise(bounds))


class WorkerLoop:
    """Runs a context in an event loop and thread of its own, because it blocks its loop while its worker works."""

    def __init__(self, context: tff.framework.AsyncContext):
        self._context = context
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def submit(self, comp: Any, arg: Any) -> concurrent.futures.Future:
        return asyncio.run_coroutine_threadsafe(self._context.invoke(comp, arg), self._loop)


def compile_once(compile_computation: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Caches a compiler, and lets only one thread at a time into it."""
    cached, lock = functools.lru_cache(compile_computation), threading.Lock()

    def compile_locked(comp):
        with lock:
            return cached(comp)

    return compile_locked


class ShardedContext(tff.framework.SyncContext):
    """Shares the clients of a call evenly by count, in order; a call with fewer than two clients runs on one worker.

    A computation must have no aggregation that depends on another (TFF's compiler raises ValueError). If it both
    aggregates and returns values of clients, the work of clients runs twice.
    """

    def __init__(self, contexts: Sequence[tff.framework.AsyncContext]):
        self._workers = [WorkerLoop(context) for context in contexts]
        self._compile = compile_once(tff.backends.native.compile_to_mergeable_comp_form)

    def invoke(self, comp: Any, arg: Any) -> Any:
        parameter = comp.type_signature.parameter
        num_clients = count_clients(arg, parameter)
        if num_clients < 2:
            return self._workers[0].submit(comp, arg).result()
        parts = [take_clients(arg, parameter, *share) for share in share_evenly(num_clients, len(self._workers))]
        return self._invoke_parts(self._compile(comp), parts)

    def _invoke_parts(self, form: tff.framework.MergeableCompForm, parts: list[Any]) -> Any:
        pair = tff.structure.Struct.unnamed
        merged, *others = self._invoke_each(form.up_to_merge, parts)
        for other in others:  # in the order of the clients, so that float sums repeat exactly
            merged = self._workers[0].submit(form.merge, pair(merged, other)).result()
        result_type = form.after_merge.type_signature.result
        if not _has_client_values(result_type):
            parts = parts[:1]  # the result is the same for all
        return join_clients(self._invoke_each(form.after_merge, [pair(part, merged) for part in parts]), result_type)

    def _invoke_each(self, comp: Any, parts: list[Any]) -> list[Any]:
        """Results for all parts, one worker a part; raises the first error without waiting for the other workers."""
        futures = [worker.submit(comp, part) for worker, part in zip(self._workers, parts, strict=False)]
        finished, _ = concurrent.futures.wait(futures, return_when=concurrent.futures.FIRST_EXCEPTION)
        for future in finished:
            future.result()
        return [future.result() for future in futures]
