"""A Ray cluster as the runtime: a round's clients are cut into shares, and Ray runs each share where it has a core.

A share is a Ray task, not a call of an actor of ours. Ray gives a task to any free core, of a node that has just joined
as well, and repeats it elsewhere if its process or its node dies. An actor would be bound to its place: after the loss
of a node it would wait for a free core, or crowd on a core that is taken, and a new node would stay idle. Processes are
used again from task to task, and keep their graphs (see `ray_share`).

The partial sums are merged in the order of the shares. Their number is part of the run's settings, so a round gives the
same bytes however many nodes there are, and whatever dies.

Imports neither TensorFlow, TFF nor Ray until `run_ray` is entered.
"""

import contextlib
import hashlib
import itertools
import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from datasets.client_files import is_client_path, measure_files, read_files
from launch.runtimes.ray_cluster import join_ray
from launch.runtimes.ray_share import Failed, MissingFiles, Share, name_path, run_share
from launch.runtimes.runtime import READY_TIMEOUT_S, Runtime, WorkerError, quiet_tensorflow

if TYPE_CHECKING:
    from launch.runtimes.graph_sessions import RoundForm, Tensors
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
        def open_clients(form: "RoundForm") -> "Iterator[RunClients]":
            with contextlib.closing(ClientShares(ray, form, num_shares, shipment)) as shares:
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
    """Runs the clients' part of one form on the cluster."""

    def __init__(self, ray: Any, form: "RoundForm", num_shares: int, shipment: Shipment):
        import tensorflow as tf

        from launch.runtimes.graph_sessions import GraphFunction

        self._ray, self._shipment, self._num_shares = ray, shipment, num_shares
        # By default Ray fills one node before it looks at the next, so that short shares follow each other on that one.
        self._task = ray.remote(num_cpus=1, max_retries=MAX_RETRIES, scheduling_strategy="SPREAD")(run_share)
        self._digest = hashlib.sha256(pickle.dumps(form)).hexdigest()
        self._form = [ray.put(form)]  # in a list, so that Ray hands on the reference and not the form
        self._returns_client_values = form.returns_client_values
        self._tensorflow = tf.__version__
        self._functions = [] if form.returns_client_values else [GraphFunction(form.zero), GraphFunction(form.merge)]

    def run_clients(self, clients: "Sequence[Tensors]", prepared: "Tensors") -> "Tensors | list[Tensors]":
        """The totals of the clients, or their values in their order; see `ShareRunner.run_share`."""
        shares = [
            Share(self._digest, self._tensorflow, part, self._shipment.measure(part))
            for part in split_evenly(clients, self._num_shares)
        ]
        try:
            results = self._compute(shares, prepared)
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

    def _compute(self, shares: Sequence[Share], prepared: "Tensors") -> list[Any]:
        """What the shares give, in their order. Those that lack files are sent again, with the files."""
        prepared_reference = self._ray.put(list(prepared))

        def submit(share: Share) -> Any:
            return self._task.remote(share, prepared_reference, self._form, self._shipment.find(share.files))

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
        return results

    def close(self) -> None:
        """Frees what this process has for the form."""
        for function in self._functions:
            function.close()
