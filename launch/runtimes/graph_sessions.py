"""Runs the parts of a federated round by TensorFlow sessions of this process. Needs TensorFlow, but not TFF.

A *part* is a graph with flat lists of tensors as its inputs and outputs. A session has variables of its own, so that
calls do not disturb each other; calls of one session come one after the other.
"""

import collections
import concurrent.futures
import dataclasses
import queue
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

from launch.runtimes.processor import count_cores

Tensors = Sequence[np.ndarray]


@dataclasses.dataclass(frozen=True)
class GraphPart:
    """A graph to run.

    Attributes:
      graph_def: the serialized `GraphDef`.
      inputs: the names of the tensors that are fed, in order.
      outputs: the names of the tensors that are returned, in order.
      initialize: the operation that makes the variables anew, run before each call; "" for none.
    """

    graph_def: bytes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    initialize: str


@dataclasses.dataclass(frozen=True)
class RoundGraphs:
    """The parts of a federated computation, in the order in which they run.

    Attributes:
      prepare: (values of the server) -> what every client gets.
      work: (values of a client, what every client gets) -> the client's update, or its values if these are the result.
      zero: () -> totals of no client.
      accumulate: (totals, update) -> totals.
      merge: (totals, totals of further clients) -> totals.
      report: (totals) -> aggregate.
      update: (values of the server, aggregate) -> result.
      returns_client_values: whether the result is what `work` returns, client by client; then only `prepare` and `work`
        are to be run.
    """

    prepare: GraphPart
    work: GraphPart
    zero: GraphPart
    accumulate: GraphPart
    merge: GraphPart
    report: GraphPart
    update: GraphPart
    returns_client_values: bool


def default_num_threads(device: str) -> int:
    """How many clients run at a time: one for each core; more on a GPU, which a single small model does not fill."""
    num_cores = count_cores()
    return num_cores if device == "cpu" else min(max(2 * num_cores, 4), 16)


def explain_failure(error: tf.errors.OpError) -> str:
    """The failure of an operation in one line."""
    # What a session raises has the places of the operation before the reason, and comes from an error without them.
    cause = error.__context__ if isinstance(error.__context__, tf.errors.OpError) else error
    reason = (cause.message or "no details").strip().splitlines()[0][:300]
    return f"a computation failed: {type(error).__name__}: {reason}"


def _make_callable(
    session: tf.compat.v1.Session, feeds: Sequence[tf.Tensor], fetch: Sequence[str], target: Sequence[str]
) -> Callable[..., Tensors]:
    """A function of the values of `feeds`, which runs the operations `target` and returns the tensors `fetch`.

    The session's public `make_callable` goes through its `run` if something is fed. That looks through the graph for
    changes, and at every name, on each call, which takes longer than what many a client has to do. What is called here
    is private to TensorFlow, whose version is locked.
    """
    if not fetch and not target:
        return lambda *values: []  # TensorFlow refuses to run nothing
    options = config_pb2.CallableOptions(feed=[feed.name for feed in feeds], fetch=fetch, target=target)
    call = session._make_callable_from_options(options)
    dtypes = [feed.dtype.as_numpy_dtype for feed in feeds]
    return lambda *values: call(*map(np.asarray, values, dtypes))


class GraphFunction:
    """A part as a function that several threads may call: as many calls at a time as it has sessions."""

    def __init__(self, part: GraphPart, num_sessions: int = 1, device: str = "cpu"):
        graph_def = tf.compat.v1.GraphDef.FromString(part.graph_def)
        graph = tf.Graph()
        with graph.as_default():
            tf.compat.v1.import_graph_def(graph_def, name="")
            # A handle wants each name once, and none of an input's: copies where needed.
            taken, outputs = set(part.inputs), []
            for name in part.outputs:
                outputs.append(tf.identity(graph.get_tensor_by_name(name)).name if name in taken else name)
                taken.add(name)
        feeds = [graph.get_tensor_by_name(name) for name in part.inputs]
        start = [part.initialize] if part.initialize else []
        # The operations that the start depends on.
        needed, waiting = set(), list(map(graph.get_operation_by_name, start))
        while waiting:
            operation = waiting.pop()
            if operation not in needed:
                needed.add(operation)
                waiting += [tensor.op for tensor in operation.inputs]
                waiting += operation.control_inputs
        self._fed_to_start = [i for i, feed in enumerate(feeds) if feed.op in needed]
        start_feeds = [feeds[i] for i in self._fed_to_start]
        # One thread an operation, so that results repeat bit for bit, and all operations in the thread that calls
        config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=-1)
        if device == "cpu":
            config.device_count["GPU"] = 0
        config.allow_soft_placement = True  # reading a file has no kernel for a GPU
        config.gpu_options.allow_growth = True
        # TFF has simplified the graphs once; every session doing so again makes the first round take twice as long.
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        self._sessions = [tf.compat.v1.Session(graph=graph, config=config) for _ in range(num_sessions)]
        self._idle = queue.LifoQueue()
        for session in self._sessions:
            start_anew = _make_callable(session, start_feeds, (), start)
            self._idle.put((start_anew, _make_callable(session, feeds, outputs, ())))

    def __call__(self, *values: np.ndarray) -> Tensors:
        """The outputs for these inputs. Raises a `tf.errors.OpError`."""
        start_anew, call = idle = self._idle.get()
        try:
            start_anew(*(values[i] for i in self._fed_to_start))
            return call(*values)
        finally:
            self._idle.put(idle)

    def close(self) -> None:
        """Frees the sessions; a call that still runs is broken off."""
        for session in self._sessions:
            session.close()


class ShareRunner:
    """Runs the clients' part of a round: of all clients, or of a share of them.

    Clients run on a few threads, and are accumulated in their order, so that the same clients give the same bytes.
    """

    def __init__(self, graphs: RoundGraphs, num_threads: int, device: str = "cpu"):
        self._returns_client_values = graphs.returns_client_values
        self._num_threads = num_threads
        self._work = GraphFunction(graphs.work, num_threads, device)
        self._functions = [self._work]
        if not graphs.returns_client_values:
            self._zero, self._accumulate = GraphFunction(graphs.zero), GraphFunction(graphs.accumulate)
            self._functions += [self._zero, self._accumulate]
        self._pool = concurrent.futures.ThreadPoolExecutor(num_threads)

    def run_share(self, clients: Iterable[Tensors], prepared: Tensors) -> Tensors | list[Tensors]:
        """The totals of the clients, or their values in their order if those are the computation's result.

        Args:
          clients: the values of each client.
          prepared: what `prepare` gave.

        Raises:
          tf.errors.OpError: the work of a client failed. After that, the runner can only be closed.
        """
        results = self._work_in_order(clients, prepared)
        if self._returns_client_values:
            return list(results)
        totals = self._zero()
        for update in results:
            totals = self._accumulate(*totals, *update)
        return totals

    def _work_in_order(self, clients: Iterable[Tensors], prepared: Tensors) -> Iterator[Tensors]:
        """What the work of each client gives. Few are under way at a time, since each holds a model's tensors."""
        waiting = collections.deque()
        for client in clients:
            waiting.append(self._pool.submit(self._work, *client, *prepared))
            if len(waiting) > 2 * self._num_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def close(self) -> None:
        """Frees the sessions and the threads; what still runs is broken off."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        for function in self._functions:
            function.close()
