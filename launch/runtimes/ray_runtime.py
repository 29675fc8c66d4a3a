"""A Ray cluster as the runtime: a round's clients are cut into shares, and Ray runs each share where it has a core.

A share is a Ray task, not a call of an actor of ours. Ray gives a task to any free core, of a node that has just joined
as well, and repeats it elsewhere if its process or its node dies. An actor would be bound to its place: after the loss
of a node it would wait for a free core, or crowd on a core that is taken, and a new node would stay idle. Processes are
used again from task to task, and keep their graphs (see `run_share`).

The partial sums are merged in the order of the shares. Their number is part of the run's settings, so a round gives the
same bytes however many nodes there are, and whatever dies.

Imports neither TensorFlow, TFF nor Ray until `run_ray` is entered.
"""

import contextlib
import hashlib
import itertools
import os
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from datasets.client_files import (
    default_copies_dir,
    find_files,
    is_client_path,
    measure_files,
    read_files,
    write_copy,
)
from launch.runtimes.device import give_sessions_own_threads
from launch.runtimes.ray_cluster import join_ray
from launch.runtimes.runtime import READY_TIMEOUT_S, Runtime, WorkerError, quiet_tensorflow

# What a process of a Ray cluster does: the clients' part of a round, for one share of the clients.
#
# It needs TensorFlow, but not TFF. Processes stay from round to round, and keep the graphs that they have loaded.

MAX_RUNNERS = 8  # graphs kept at a time; an algorithm has a few

_runners: dict[str, "ShareRunner"] = {}  # by the digest of the graphs; the one used last comes last
_found: dict[str, str] = {}  # path of a client's files at the driver -> its path here


class Share(NamedTuple):
    """A share of a round's clients.

    Attributes:
      graphs_digest: stands for the graphs.
      tensorflow: the version that the driver has.
      clients: the values of each client.
      files: the sizes of the files of each client, by the path that its values name (see `measure_files`).
    """

    graphs_digest: str
    tensorflow: str
    clients: Sequence[Sequence[Any]]
    files: Mapping[str, Mapping[str, int]]


class Done(NamedTuple):
    """The totals of a share, or the values of its clients; see `ShareRunner.run_share`."""

    values: Sequence[Any]


class MissingFiles(NamedTuple):
    """The share was not computed: this machine does not have these files."""

    paths: tuple[str, ...]


class Failed(NamedTuple):
    """The share cannot be computed; the reason is one line."""

    reason: str


def run_share(
    share: Share, prepared: Sequence[Any], graphs: Sequence[Any], shipped: Mapping[str, Any]
) -> Done | MissingFiles | Failed:
    """Computes a share.

    Args:
      share: what to compute.
      prepared: what the `prepare` of the round gave.
      graphs: those of the round as one reference into Ray's object store, taken out only where they are needed.
      shipped: the contents of clients' files, as references likewise, by path.
    """
    give_sessions_own_threads()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import ray
    import tensorflow as tf

    from launch.runtimes.graph_sessions import ShareRunner, explain_failure

    if tf.__version__ != share.tensorflow:
        return Failed(f"a node has TensorFlow {tf.__version__}, and this machine {share.tensorflow}")
    try:
        missing, copies_dir = [], default_copies_dir()
        for path, sizes in share.files.items():
            place = _found.get(path) or find_files(path, sizes, copies_dir)
            if place is None and path in shipped:
                place = write_copy(path, ray.get(shipped[path]), copies_dir)
            if place is None:
                missing.append(path)
            else:
                _found[path] = place
    except OSError as error:
        return Failed(f"a node cannot keep clients' files: {error}")
    if missing:
        return MissingFiles(tuple(missing))
    clients = [
        # For the path of a client's files the path that they have here.
        [np.asarray(os.fsencode(here), object) if (here := _found.get(name_path(value))) else value for value in client]
        for client in share.clients
    ]
    try:
        # A share has one core, so one thread.
        runner = _runners.pop(share.graphs_digest, None) or ShareRunner(ray.get(graphs[0]), num_threads=1)
        _runners[share.graphs_digest] = runner
        if len(_runners) > MAX_RUNNERS:
            _runners.pop(next(iter(_runners))).close()
        return Done(runner.run_share(clients, prepared))
    except tf.errors.OpError as error:
        _runners.pop(share.graphs_digest).close()
        return Failed(explain_failure(error))


def name_path(value: Any) -> str:
    """The text that a scalar tensor holds; "" for other tensors."""
    if getattr(value, "ndim", None) == 0 and value.dtype == object:
        value = value.item()
    return os.fsdecode(value) if isinstance(value, str | bytes) else ""


if TYPE_CHECKING:
    from launch.runtimes.graph_sessions import RoundGraphs, ShareRunner, Tensors
    from launch.runtimes.round_context import RunClients

MAX_RETRIES = 20  # of a share whose process or node died; one that kills its process every time must end, too


@contextlib.contextmanager
def run_ray(
    log_path: str,
    address: str = "",
    num_shares: int = 1,
    ready_timeout_s: float = READY_TIMEOUT_S,
    graph_dir: str = "",
) -> Iterator[Runtime]:
    """Makes a Ray cluster TFF's default context; leaves it at the end.

    Args:
      log_path: the file that TensorFlow's and Ray's words are appended to.
      address: which cluster; see `join_ray`.
      num_shares: into how many shares the clients of a call are cut, evenly by count and in order.
      ready_timeout_s: the longest wait for the cluster.
      graph_dir: the folder where graphs are kept for later runs; "" for none.

    Yields:
      A runtime without workers of ours.

    Raises:
      WorkerError: the cluster cannot be joined; inside the block, a share failed or the cluster was lost.
    """
    with join_ray(address, log_path, ready_timeout_s) as ray:
        with quiet_tensorflow(log_path):
            from launch.runtimes.round_context import RoundContext
            from launch.runtimes.tff_contexts import use_context
        shipment = Shipment(ray)

        @contextlib.contextmanager
        def open_clients(graphs: "RoundGraphs") -> "Iterator[RunClients]":
            with contextlib.closing(ClientShares(ray, graphs, num_shares, shipment)) as shares:
                yield shares.run_clients

        with contextlib.closing(RoundContext(open_clients, graph_dir)) as context, use_context(context):
            yield Runtime()


def split_evenly(clients: Sequence[Any], num_shares: int) -> list[Sequence[Any]]:
    """The clients in shares, in order. Sizes differ by at most one, and no share is empty."""
    num_shares = min(len(clients), num_shares)
    bounds = [len(clients) * i // num_shares for i in range(num_shares + 1)] if clients else []
    return [clients[start:stop] for start, stop in itertools.pairwise(bounds)]


class Shipment:
    """The clients' files in Ray's object store: put there when a node lacks them, and kept for the next node."""

    def __init__(self, ray: Any):
        self._ray = ray
        self._references: dict[str, Any] = {}
        self._sizes: dict[str, dict[str, int]] = {}

    def measure(self, clients: "Iterable[Tensors]") -> dict[str, dict[str, int]]:
        """The sizes of the files that the clients' values name, by path. Raises WorkerError if one is gone."""
        paths = dict.fromkeys(path for client in clients for path in map(name_path, client) if is_client_path(path))
        try:
            self._sizes.update((path, measure_files(path)) for path in paths if path not in self._sizes)
        except OSError as error:
            raise WorkerError(f"a client's files cannot be read: {error}") from error
        return {path: self._sizes[path] for path in paths}

    def find(self, paths: Iterable[str]) -> dict[str, Any]:
        """References to those of these files that are in the object store."""
        return {path: self._references[path] for path in paths if path in self._references}

    def put(self, paths: Iterable[str]) -> None:
        """Puts these files into the object store. Raises WorkerError if one cannot be read."""
        try:
            for path in paths:
                if path not in self._references:
                    self._references[path] = self._ray.put(read_files(path))
        except OSError as error:
            raise WorkerError(f"a client's files cannot be read: {error}") from error


class ClientShares:
    """Runs the clients' part of the rounds of one computation on the cluster."""

    def __init__(self, ray: Any, graphs: "RoundGraphs", num_shares: int, shipment: Shipment):
        import tensorflow as tf

        from launch.runtimes.graph_sessions import GraphFunction

        self._ray, self._shipment, self._num_shares = ray, shipment, num_shares
        # By default Ray fills one node before it looks at the next, so that short shares follow each other on that one.
        self._task = ray.remote(num_cpus=1, max_retries=MAX_RETRIES, scheduling_strategy="SPREAD")(run_share)
        self._digest = hashlib.sha256(pickle.dumps(graphs)).hexdigest()
        self._graphs = [ray.put(graphs)]  # in a list, so that Ray hands on the reference and not the graphs
        self._returns_client_values = graphs.returns_client_values
        self._tensorflow = tf.__version__
        self._functions = (
            [] if graphs.returns_client_values else [GraphFunction(graphs.zero), GraphFunction(graphs.merge)]
        )

    def run_clients(self, clients: "Sequence[Tensors]", prepared: "Tensors") -> "Tensors | list[Tensors]":
        """The totals of the clients, or their values in their order; see `ShareRunner.run_share`."""
        shares = [
            Share(self._digest, self._tensorflow, part, self._shipment.measure(part))
            for part in split_evenly(clients, self._num_shares)
        ]
        try:
            prepared_reference = self._ray.put(list(prepared))

            def submit(share: Share) -> Any:
                return self._task.remote(share, prepared_reference, self._graphs, self._shipment.find(share.files))

            results: list[Any] = [None] * len(shares)
            waiting = {submit(share): position for position, share in enumerate(shares)}
            while waiting:
                (finished, *_), _ = self._ray.wait(list(waiting))
                position = waiting.pop(finished)
                outcome = self._ray.get(finished)
                if isinstance(outcome, Failed):
                    raise WorkerError(outcome.reason)
                if isinstance(outcome, MissingFiles):
                    self._shipment.put(outcome.paths)
                    waiting[submit(shares[position])] = position
                else:
                    results[position] = outcome.values
        except (self._ray.exceptions.RayError, ConnectionError) as error:
            reason = str(error).strip().splitlines()[0]
            raise WorkerError(f"Ray gave up on a share of the clients: {reason}") from error
        if self._returns_client_values:
            return [values for result in results for values in result]
        zero, merge = self._functions
        totals = results[0] if results else zero()
        for others in results[1:]:
            totals = merge(*totals, *others)
        return totals

    def close(self) -> None:
        """Frees what this process has for the graphs."""
        for function in self._functions:
            function.close()
