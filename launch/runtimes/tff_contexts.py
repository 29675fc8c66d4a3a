"""Joins TFF workers to TFF's default context. Imports TFF, which takes seconds: import this module lazily."""

import contextlib
import time
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import grpc
import tensorflow_federated as tff

from launch.runtimes import flat_values
from launch.runtimes.client_split import ClientSplitContext, compile_once
from launch.runtimes.worker_process import WorkerError, WorkerLost, WorkerProcess

MAX_EXECUTORS = 8  # of each worker. One costs about 20 MB and its threads; to make it again takes a second.

_MAX_MESSAGE_BYTES = 2 * 10**9
_CHANNEL_OPTIONS = {
    "grpc.max_receive_message_length": _MAX_MESSAGE_BYTES,
    "grpc.max_send_message_length": _MAX_MESSAGE_BYTES,
    "grpc.enable_http_proxy": 0,  # a proxy in the environment is not meant for workers
    "grpc.initial_reconnect_backoff_ms": 100,  # a worker of our own may need a moment before it listens
    "grpc.min_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 1000,
    # Notices a machine that has vanished. A server cuts connections that ask more than once in five minutes.
    "grpc.keepalive_time_ms": 310_000,
}
# The relay of a worker takes a connection at once, and lets it wait until the worker listens.
_RELAY_OPTIONS = {**_CHANNEL_OPTIONS, "grpc.min_reconnect_backoff_ms": 20_000}

_contexts_in_use: list[tff.framework.SyncContext] = []  # innermost last; TFF's default is global as well


class WorkerStub:
    """TFF's stub of a worker, with failing calls turned into WorkerError.

    After gRPC's errors for a dead worker, TFF repeats the computation for ever. After a WorkerError it does not.
    """

    def __init__(self, stub: tff.framework.RemoteExecutorGrpcStub, address: str, process: WorkerProcess | None):
        self._stub, self._address, self._process = stub, address, process

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
        if not isinstance(error, grpc.RpcError) or error.code() == grpc.StatusCode.CANCELLED:
            return WorkerLost(f"the connection to the TFF worker at {self._address} was closed")
        if error.code() != grpc.StatusCode.UNAVAILABLE:
            details = (error.details() or "no details").strip()
            message = f"a computation failed in the TFF worker at {self._address}: {error.code().name}: "
            return WorkerError(message + details.splitlines()[0][:300], details)
        death = self._process.describe_death() if self._process else None
        return death or WorkerLost(f"the TFF worker at {self._address} does not answer any more")


class UnwatchedChannel:
    """A channel whose state TFF's stub cannot watch: gRPC's watching thread may print an error when it is closed."""

    def __init__(self, channel: grpc.Channel):
        self._channel = channel

    def subscribe(self, callback: Any, try_to_connect: bool = False) -> None:
        """Does nothing: `connect` has waited until it is ready, and `WorkerStub` notices calls that fail."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)


@contextlib.contextmanager
def connect(address: str, process: WorkerProcess | None, timeout_s: float) -> Iterator[WorkerStub]:
    """Waits until the worker listens, at most `timeout_s` seconds; closes the connection at the end of the block.

    `process` is the worker's process if it is ours. Raises WorkerError if the worker died or does not answer in time.
    """
    is_socket = address.startswith("unix:")
    options = _RELAY_OPTIONS if is_socket else _CHANNEL_OPTIONS
    target = f"unix:{urllib.parse.quote(address.removeprefix('unix:'))}" if is_socket else address
    with contextlib.closing(grpc.insecure_channel(target, list(options.items()))) as channel:
        _wait_until_ready(channel, address, process, timeout_s)
        yield WorkerStub(tff.framework.RemoteExecutorGrpcStub(UnwatchedChannel(channel)), address, process)


def _wait_until_ready(channel: grpc.Channel, address: str, process: WorkerProcess | None, timeout_s: float) -> None:
    ready = grpc.channel_ready_future(channel)
    deadline_s = time.monotonic() + timeout_s
    try:
        while time.monotonic() < deadline_s:  # in short steps, so that the death of our own worker is noticed at once
            with contextlib.suppress(grpc.FutureTimeoutError):
                return ready.result(timeout=0.1)
            if process and not process.is_alive():
                raise process.describe_death()
    finally:
        ready.cancel()
    log_tail = process.read_log_tail() if process else ""
    raise WorkerError(f"no TFF worker answers at {address} within {timeout_s:g} s; is it running there?", log_tail)


class StoppedContext(tff.framework.SyncContext):
    """Refuses computations. TFF's own default would quietly start a worker that outlives this program."""

    def invoke(self, comp: Any, arg: Any) -> Any:
        raise WorkerError("no TFF worker is running; call computations inside `with run_tff(...)`")


class Executor(tff.framework.RemoteExecutor):
    """A worker's executor, which takes text beyond ASCII, too: TFF's own refuses a client's path with an umlaut."""

    async def create_value(self, value: Any, type_spec: Any = None) -> Any:
        """The value in the worker."""
        return await super().create_value(flat_values.encode_text(value), type_spec)


class ExecutorFactory(tff.framework.ExecutorFactory):
    """A worker's executors: one for each number of clients in a call, at most `MAX_EXECUTORS` at a time.

    It stands in for `tff.framework.ResourceManagingExecutorFactory`, which drops the oldest executor without closing
    it, so that the worker keeps that one's threads and graphs for ever.
    """

    def __init__(self, stub: WorkerStub):
        self._stub = stub
        self._executors: dict[tuple, tff.framework.RemoteExecutor] = {}  # the one used last comes last

    def create_executor(self, cardinalities: Mapping[Any, int]) -> tff.framework.RemoteExecutor:
        """The executor for these numbers of clients, kept from an earlier call or new."""
        key = _hashable(cardinalities)
        executor = self._executors.pop(key, None) or self._start(cardinalities)
        self._executors[key] = executor
        if len(self._executors) > MAX_EXECUTORS:
            self._executors.pop(next(iter(self._executors))).close()
        return executor

    def clean_up_executor(self, cardinalities: Mapping[Any, int]) -> None:
        """Closes an executor; TFF calls it after errors."""
        executor = self._executors.pop(_hashable(cardinalities), None)
        if executor is not None:
            executor.close()

    def _start(self, cardinalities: Mapping[Any, int]) -> tff.framework.RemoteExecutor:
        # By default the worker frees values only when 20 of them are no longer needed, which are the models and updates
        # of several rounds.
        executor = Executor(self._stub, dispose_batch_size=1)
        executor.set_cardinalities({tff.CLIENTS: 0, **cardinalities})
        return executor


def _hashable(cardinalities: Mapping[Any, int]) -> tuple:
    return tuple(sorted((str(placement), number) for placement, number in cardinalities.items()))


@contextlib.contextmanager
def use_workers(stubs: Sequence[WorkerStub], num_shares: int) -> Iterator[None]:
    """Makes the workers TFF's default context, see `use_context`; it cuts the clients of a call into shares."""
    arguments = {
        "compiler_fn": compile_once(tff.backends.native.desugar_and_transform_to_native),
        "transform_args": tff.tensorflow.transform_args,
        "transform_result": tff.tensorflow.transform_result,
    }
    factories = [ExecutorFactory(stub) for stub in stubs]
    if len(factories) == 1 and num_shares == 1:
        context = tff.framework.SyncExecutionContext(factories[0], **arguments)
    else:
        contexts = [tff.framework.AsyncExecutionContext(factory, **arguments) for factory in factories]
        context = ClientSplitContext(contexts, num_shares)
    with use_context(context):
        yield


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
