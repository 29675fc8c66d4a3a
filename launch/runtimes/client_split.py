"""A TFF context that splits the clients of a call among several workers. Imports TFF: import this module lazily.

A part of the clients, one worker's, is a *share*. As in `tff.framework.MergeableCompExecutionContext`, and by the same
compiler, a computation is cut at its aggregation into `up_to_merge` (run on each share), `merge` (makes one partial
aggregate of two) and `after_merge`.

TFF 0.87's own context is not used, for three faults:
- It returns values of clients in the order in which the workers finish.
- If a value of the server follows the clients' in the argument, it gives some clients out twice and others never.
- It lets the workers wait for each other.
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
    """How many clients a value has values of; 0 if of none."""
    if not _has_client_values(type_spec):
        return 0
    if _is_client_values(type_spec):
        return len(value)
    types = [element_type for _, element_type in tff.structure.iter_elements(type_spec)]
    return max(map(count_clients, tff.structure.from_container(value), types))


def take_clients(value: Any, type_spec: tff.Type, start: int, stop: int) -> Any:
    """The share of a value that belongs to the clients start..stop-1; what belongs to no client is kept whole."""
    if not _has_client_values(type_spec):
        return value
    if _is_client_values(type_spec):
        return value[start:stop]
    elements = zip(tff.structure.iter_elements(type_spec), tff.structure.from_container(value), strict=True)
    return tff.structure.Struct([(name, take_clients(part, spec, start, stop)) for (name, spec), part in elements])


def join_clients(shares: Sequence[Any], type_spec: tff.Type) -> Any:
    """Joins the results of shares in the order given; undoes `take_clients`."""
    if not _has_client_values(type_spec):
        return shares[0]
    if _is_client_values(type_spec):
        return [value for share in shares for value in share]
    elements = zip(tff.structure.iter_elements(type_spec), *map(tff.structure.from_container, shares), strict=True)
    joined = tff.structure.Struct([(name, join_clients(values, spec)) for (name, spec), *values in elements])
    return tff.types.type_to_py_container(joined, type_spec)


def split_evenly(num_clients: int, num_workers: int) -> list[tuple[int, int]]:
    """(start, stop) of each share, in order. Sizes differ by at most one, and no share is empty."""
    num_shares = min(num_clients, num_workers)
    bounds = [num_clients * i // num_shares for i in range(num_shares + 1)]
    return list(itertools.pairwise(bounds))


class WorkerLoop:
    """Runs one worker's context in an event loop and a thread of its own.

    TFF's asynchronous contexts block their loop while their worker computes. In one common loop the workers would
    compute one after the other.
    """

    def __init__(self, context: tff.framework.AsyncContext):
        self._context = context
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def submit(self, comp: Any, arg: Any) -> concurrent.futures.Future:
        """Starts a computation; returns at once."""
        return asyncio.run_coroutine_threadsafe(self._context.invoke(comp, arg), self._loop)


def compile_once(compile_computation: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Caches a compiler, and lets only one thread at a time into it.

    TFF's own cache belongs to one context, so that the contexts of several workers would each compile what all of them
    run. They do so in threads, and two threads that miss `lru_cache` at the same time would both compile.
    """
    cached, lock = functools.lru_cache(compile_computation), threading.Lock()

    def compile_locked(comp):
        with lock:
            return cached(comp)

    return compile_locked


class ClientSplitContext(tff.framework.SyncContext):
    """Splits the clients of a call evenly by count, in order; a call with fewer than two clients runs on one worker.

    No aggregation of a computation may depend on another one: TFF's compiler raises ValueError. A computation that both
    aggregates and returns values of clients does the clients' work twice, before the merge and after it.
    """

    def __init__(self, contexts: Sequence[tff.framework.AsyncContext]):
        self._workers = [WorkerLoop(context) for context in contexts]
        self._compile = compile_once(tff.backends.native.compile_to_mergeable_comp_form)

    def invoke(self, comp: Any, arg: Any) -> Any:
        parameter = comp.type_signature.parameter
        num_clients = count_clients(arg, parameter)
        if num_clients < 2:
            return self._workers[0].submit(comp, arg).result()
        bounds = split_evenly(num_clients, len(self._workers))
        shares = [take_clients(arg, parameter, start, stop) for start, stop in bounds]
        return self._invoke_shares(self._compile(comp), shares)

    def _invoke_shares(self, form: tff.framework.MergeableCompForm, shares: list[Any]) -> Any:
        pair = tff.structure.Struct.unnamed
        merged, *others = self._invoke_each(form.up_to_merge, shares)
        for other in others:  # in the order of the clients, so that float sums repeat exactly
            merged = self._workers[0].submit(form.merge, pair(merged, other)).result()
        result_type = form.after_merge.type_signature.result
        if not _has_client_values(result_type):
            shares = shares[:1]  # the result is the same for all
        results = self._invoke_each(form.after_merge, [pair(share, merged) for share in shares])
        return join_clients(results, result_type)

    def _invoke_each(self, comp: Any, shares: list[Any]) -> list[Any]:
        """Results for all shares, each from its own worker; raises the first error without waiting for the rest."""
        futures = [worker.submit(comp, share) for worker, share in zip(self._workers, shares, strict=False)]
        finished, _ = concurrent.futures.wait(futures, return_when=concurrent.futures.FIRST_EXCEPTION)
        for future in finished:
            future.result()
        return [future.result() for future in futures]
