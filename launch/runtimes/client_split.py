"""A TFF context that splits the clients of a call among several workers. Imports TFF: import this module lazily.

A part of the clients that a worker computes at a time is a *share*. How many there are belongs to the run, not to the
workers: float sums depend on where they are cut, so a worker that dies, or a run that goes on with fewer or more
workers, must not change the shares. As in `tff.framework.MergeableCompExecutionContext`, and by the same
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

from launch.progress import say
from launch.runtimes.worker_process import WorkerLost


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


def split_evenly(num_clients: int, num_shares: int) -> list[tuple[int, int]]:
    """(start, stop) of each share, in order. Sizes differ by at most one, and no share is empty."""
    num_shares = min(num_clients, num_shares)
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
    """Cuts the clients of a call into shares, evenly by count and in order; with fewer than two clients it does not.

    The shares go to the workers in turns. If a worker is lost, the others compute what it had, then and from then on,
    and a line says so; the results are the same. The loss of the last worker is raised as WorkerLost.

    No aggregation of a computation may depend on another one: TFF's compiler raises ValueError. A computation that both
    aggregates and returns values of clients does the clients' work twice, before the merge and after it.

    Args:
      contexts: one of each worker.
      num_shares: of a call; the last workers have nothing to do if it is smaller than their number.
    """

    def __init__(self, contexts: Sequence[tff.framework.AsyncContext], num_shares: int):
        self._workers = [WorkerLoop(context) for context in contexts]
        self._num_shares = num_shares
        self._compile = compile_once(tff.backends.native.compile_to_mergeable_comp_form)

    def invoke(self, comp: Any, arg: Any) -> Any:
        parameter = comp.type_signature.parameter
        num_clients = count_clients(arg, parameter)
        if num_clients < 2 or self._num_shares == 1:
            return self._invoke_once(comp, arg)
        bounds = split_evenly(num_clients, self._num_shares)
        shares = [take_clients(arg, parameter, start, stop) for start, stop in bounds]
        return self._invoke_shares(self._compile(comp), shares)

    def _invoke_shares(self, form: tff.framework.MergeableCompForm, shares: list[Any]) -> Any:
        pair = tff.structure.Struct.unnamed
        merged, *others = self._invoke_each(form.up_to_merge, shares)
        for other in others:  # in the order of the clients, so that float sums repeat exactly
            merged = self._invoke_once(form.merge, pair(merged, other))
        result_type = form.after_merge.type_signature.result
        if not _has_client_values(result_type):
            shares = shares[:1]  # the result is the same for all
        results = self._invoke_each(form.after_merge, [pair(share, merged) for share in shares])
        return join_clients(results, result_type)

    def _invoke_once(self, comp: Any, arg: Any) -> Any:
        [result] = self._invoke_each(comp, [arg])
        return result

    def _invoke_each(self, comp: Any, shares: list[Any]) -> list[Any]:
        """Results for all shares, in their order; raises the first error without waiting for the rest."""
        results: list[Any] = [None] * len(shares)
        running = dict(self._start(comp, shares, index) for index in range(len(shares)))
        while running:
            finished, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in finished:
                index, worker = running.pop(future)
                try:
                    results[index] = future.result()
                except WorkerLost as loss:
                    self._drop(worker, loss)
                    running.update([self._start(comp, shares, index)])
        return results

    def _start(
        self, comp: Any, shares: list[Any], index: int
    ) -> tuple[concurrent.futures.Future, tuple[int, WorkerLoop]]:
        worker = self._workers[index % len(self._workers)]
        return worker.submit(comp, shares[index]), (index, worker)

    def _drop(self, worker: WorkerLoop, loss: WorkerLost) -> None:
        """Does without a worker from now on; raises the loss if it was the last one."""
        if worker not in self._workers:  # another of its shares said so before
            return
        if len(self._workers) == 1:
            raise loss
        self._workers.remove(worker)
        left = len(self._workers)
        go_on = "1 worker that is left computes" if left == 1 else f"{left} workers that are left compute"
        say(f"warning  {loss}; the {go_on} its clients from now on, with the same results")
