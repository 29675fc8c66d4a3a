"""TFF's default context, and that of a TFF worker. Imports TFF, which takes seconds: import this module lazily."""

import contextlib
import time
import types
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import tensorflow_federated as tff

from launch.runtimes import flat_values
from launch.runtimes.runtime import ComputationError, WorkerError

_NEVER_MS = 2**31 - 1
_CHANNEL_OPTIONS = {
    "grpc.max_receive_message_length": 2 * 10**9,
    "grpc.max_send_message_length": 2 * 10**9,
    # The connection is the only one there can be: it waits as long as the worker takes to start, and is never given up.
    "grpc.min_reconnect_backoff_ms": _NEVER_MS,
    "grpc.client_idle_timeout_ms": _NEVER_MS,
}

_contexts_in_use: list[tff.framework.SyncContext] = []  # innermost last; TFF's default is global as well

FindDeath = Callable[[float], WorkerError | None]  # (seconds to wait) -> why the worker has died


class WorkerStub:
    """TFF's stub of a worker, with failing calls turned into WorkerError.

    After gRPC's errors for a dead worker, TFF repeats the computation for ever. After a WorkerError it does not.
    """

    def __init__(self, stub: tff.framework.RemoteExecutorGrpcStub, find_death: FindDeath):
        self._stub, self._find_death = stub, find_death

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._stub, name)

        def call(request):
            try:
                return method(request)
            except (grpc.RpcError, ValueError) as error:  # ValueError: the channel is closed
                # Finalizers call these at any time, and a dead worker holds nothing that could be freed.
                if name.startswith("dispose"):
                    return None
                raise self._explain(error) from error

        return call

    def _explain(self, error: Exception) -> WorkerError:
        if not isinstance(error, grpc.RpcError):
            return WorkerError("the connection to the TFF worker was closed")
        if error.code() == grpc.StatusCode.UNAVAILABLE:
            return self._find_death(2.0) or WorkerError("the TFF worker does not answer any more")
        details = (error.details() or "no details").strip()
        message = f"a computation failed in the TFF worker: {error.code().name}: {details.splitlines()[0][:300]}"
        is_refused = error.code() == grpc.StatusCode.INVALID_ARGUMENT
        return (ComputationError if is_refused else WorkerError)(message, details)


@contextlib.contextmanager
def connect(path: str, find_death: FindDeath, timeout_s: float) -> Iterator[WorkerStub]:
    """Waits until the worker behind a Unix socket listens; closes the connection at the end of the block.

    Raises:
      WorkerError: the worker died, or does not answer within `timeout_s` seconds.
    """
    target = f"unix:{urllib.parse.quote(path)}"
    with contextlib.closing(grpc.insecure_channel(target, list(_CHANNEL_OPTIONS.items()))) as channel:
        _wait_until_ready(channel, find_death, timeout_s)
        # TFF's stub would watch the channel, and gRPC's watching thread may print an error when that is closed.
        unwatched = types.SimpleNamespace(unary_unary=channel.unary_unary, subscribe=lambda *_, **__: None)
        yield WorkerStub(tff.framework.RemoteExecutorGrpcStub(unwatched), find_death)


def _wait_until_ready(channel: grpc.Channel, find_death: FindDeath, timeout_s: float) -> None:
    ready = grpc.channel_ready_future(channel)
    deadline_s = time.monotonic() + timeout_s
    try:
        while time.monotonic() < deadline_s:  # in short steps, so that the worker's death is noticed at once
            with contextlib.suppress(grpc.FutureTimeoutError):
                return ready.result(timeout=0.1)
            if death := find_death(0.0):
                raise death
    finally:
        ready.cancel()
    raise WorkerError(f"the TFF worker does not answer within {timeout_s:g} s")


class StoppedContext(tff.framework.SyncContext):
    """Refuses computations. TFF's own default would quietly start a worker that outlives this program."""

    def invoke(self, comp: Any, arg: Any) -> Any:
        raise WorkerError("no runtime is open; call computations inside `with run_in_process(...)`")


class Executor(tff.framework.RemoteExecutor):
    """A worker's executor, which takes text beyond ASCII, too: TFF's own refuses a client's path with an umlaut."""

    async def create_value(self, value: Any, type_spec: Any = None) -> Any:
        """The value in the worker."""
        return await super().create_value(flat_values.encode_text(value), type_spec)


def make_worker_context(stub: WorkerStub) -> tff.framework.SyncContext:
    """A worker's context, as TFF makes its own."""

    def start_executor(cardinalities):
        # By default the worker frees values only when 20 of them are no longer needed, which are the models and updates
        # of several rounds.
        executor = Executor(stub, dispose_batch_size=1)
        executor.set_cardinalities({tff.CLIENTS: 0, **cardinalities})
        return executor

    return tff.framework.SyncExecutionContext(
        tff.framework.ResourceManagingExecutorFactory(start_executor),
        compiler_fn=tff.backends.native.desugar_and_transform_to_native,
        transform_args=tff.tensorflow.transform_args,
        transform_result=tff.tensorflow.transform_result,
    )


@contextlib.contextmanager
def use_context(context: tff.framework.SyncContext) -> Iterator[None]:
    """Makes a context TFF's default. At the end that is again what an enclosing block set, or `StoppedContext`."""
    _contexts_in_use.append(context)
    tff.framework.set_default_context(context)
    try:
        yield
    finally:
        _contexts_in_use.remove(context)
        tff.framework.set_default_context(_contexts_in_use[-1] if _contexts_in_use else StoppedContext())
