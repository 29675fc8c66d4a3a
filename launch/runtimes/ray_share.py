"""What a process of a Ray cluster does: the clients' part of a round, for one share of the clients.

It needs TensorFlow, but not TFF. Processes stay from round to round, and keep the graphs that they have loaded.
"""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from datasets.client_files import default_copies_dir, find_files, write_copy
from launch.runtimes.device import give_sessions_own_threads

if TYPE_CHECKING:
    from launch.runtimes.graph_sessions import ShareRunner

MAX_RUNNERS = 8  # graphs kept at a time; an algorithm has a few

_runners: dict[str, "ShareRunner"] = {}  # by the digest of the form; the one used last comes last
_found: dict[str, str] = {}  # path of a client's files at the driver -> its path here


class Share(NamedTuple):
    """A share of a round's clients.

    Attributes:
      form_digest: stands for the form.
      tensorflow: the version that the driver has.
      clients: the values of each client.
      files: the sizes of the files of each client, by the path that its values name (see `measure_files`).
    """

    form_digest: str
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
    share: Share, prepared: Sequence[Any], form: Sequence[Any], shipped: Mapping[str, Any]
) -> Done | MissingFiles | Failed:
    """Computes a share.

    Args:
      share: what to compute.
      prepared: what the form's `prepare` gave.
      form: the form as one reference into Ray's object store, taken out only where it is needed.
      shipped: the contents of clients' files, as references likewise, by path.
    """
    give_sessions_own_threads()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    from launch.runtimes.graph_sessions import explain_failure

    if tf.__version__ != share.tensorflow:
        return Failed(f"a node has TensorFlow {tf.__version__}, and this machine {share.tensorflow}")
    try:
        missing = _find_files(share.files, shipped)
    except OSError as error:
        return Failed(f"a node cannot keep clients' files: {error}")
    if missing:
        return MissingFiles(missing)
    clients = [
        # For the path of a client's files the path that they have here.
        [np.asarray(os.fsencode(here), object) if (here := _found.get(name_path(value))) else value for value in client]
        for client in share.clients
    ]
    try:
        return Done(_get_runner(share.form_digest, form).run_share(clients, prepared))
    except tf.errors.OpError as error:
        _runners.pop(share.form_digest).close()
        return Failed(explain_failure(error))


def name_path(value: Any) -> str:
    """The text that a scalar tensor holds; "" for other tensors."""
    if getattr(value, "ndim", None) == 0 and value.dtype == object:
        value = value.item()
    return os.fsdecode(value) if isinstance(value, str | bytes) else ""


def _find_files(files: Mapping[str, Mapping[str, int]], shipped: Mapping[str, Any]) -> tuple[str, ...]:
    """Looks for files on this machine, and puts those there that came with the call. Returns those still missing."""
    import ray

    missing, copies_dir = [], default_copies_dir()
    for path, sizes in files.items():
        place = _found.get(path) or find_files(path, sizes, copies_dir)
        if place is None and path in shipped:
            place = write_copy(path, ray.get(shipped[path]), copies_dir)
        if place is None:
            missing.append(path)
        else:
            _found[path] = place
    return tuple(missing)


def _get_runner(form_digest: str, form: Sequence[Any]) -> "ShareRunner":
    """The graphs of a form, kept from an earlier call or loaded. A share has one core, so one thread."""
    import ray

    from launch.runtimes.graph_sessions import ShareRunner

    runner = _runners.pop(form_digest, None) or ShareRunner(ray.get(form[0]), num_threads=1)
    _runners[form_digest] = runner
    if len(_runners) > MAX_RUNNERS:
        _runners.pop(next(iter(_runners))).close()
    return runner
