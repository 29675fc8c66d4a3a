"""Joins a Ray cluster, or starts a Ray of this process's own. Ray is imported only when a block is entered.

Ray runs any code that reaches it. So its token authentication is on, unless RAY_AUTH_MODE says otherwise, and a Ray of
our own listens on the loopback interface alone, has a token that nobody else knows, and keeps its sockets in a folder
that only this user can enter. A process at its side sees to it that nothing of it outlives this process.
"""

import contextlib
import importlib.util
import logging
import os
import pathlib
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import psutil

from files.reading import describe
from launch.runtimes.arenas import MAX_ARENAS, VARIABLE
from launch.runtimes.processor import count_cores
from launch.runtimes.runtime import WorkerError, limit_time, quiet_tensorflow

INSTALL = ".venv/bin/python -m pip install --no-deps --require-hashes -r requirements-ray.lock"
CONNECT_TIMEOUT_S = 10.0
START_TIMEOUT_S = 120.0  # for a Ray of our own, which takes 8 s on a quiet machine
ADDRESS_FILE = "/tmp/ray/ray_current_cluster"  # in which `ray start` notes where the cluster of this machine is

_ENVIRONMENT = {
    "RAY_AUTH_MODE": "token",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_enable_metrics_collection": "0",  # it would look for an agent that belongs to Ray's dashboard
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # what Ray cannot recover from comes back as an error
    "RAY_worker_niceness": "0",  # by default its processes yield to all others of the machine
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # what a later Ray does anyway; a warning less
    "RAY_NUM_REDIS_GET_RETRIES": "2",  # how often a new driver asks; by default it takes 12 minutes to give up
    VARIABLE: str(MAX_ARENAS),  # Ray has threads before it runs anything of ours
}
# "0" makes Ray take 127.0.0.1 for itself. Otherwise it puts the machine's outer address in its place, where a cluster
# that listens on the loopback interface alone cannot be reached.
_TRANSLATES_LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
_LONGEST_SOCKET_FOLDER = 40  # the path of a socket has room for 107 characters, and Ray puts 66 after this folder
_REAPER = str(pathlib.Path(__file__).with_name("ray_reaper.py"))
_MARK = "FEDERATED_RAY"  # a variable by which the processes of a Ray of our own are known


def is_ray_installed() -> bool:
    """Whether Ray can be imported."""
    return importlib.util.find_spec("ray") is not None


@contextlib.contextmanager
def join_ray(address: str, log_path: str, timeout_s: float) -> Iterator[Any]:
    """Makes this process a driver of Ray. Enter it in the main thread.

    Args:
      address: "host:port", "ray://host:port", "auto" for the cluster that was started on this machine; "" or "local"
        for a Ray of our own, with a process for each of our cores, which ends with the block or with this process.
      log_path: the file that Ray's words are appended to.
      timeout_s: the longest wait for a cluster, once its machine answers.

    Yields:
      The module `ray`.

    Raises:
      WorkerError: Ray is not installed; or the cluster does not answer, refuses our token, or has no core.
    """
    if not is_ray_installed():
        raise WorkerError(f"Ray is not installed; {INSTALL}")
    pathlib.Path(log_path).parent.mkdir(parents=True, exist_ok=True)
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    with contextlib.ExitStack() as stack:
        is_own = address in ("", "local")
        options = stack.enter_context(_prepare_own()) if is_own else {"address": _find_cluster(address)}
        log_start_bytes = os.path.getsize(log_path) if os.path.exists(log_path) else 0
        with quiet_tensorflow(log_path):  # keeps away what Ray's C++ code prints
            import ray

            stack.enter_context(_send_words_to(log_path))
            stack.callback(ray.shutdown)
            try:
                _start(ray, options, START_TIMEOUT_S if is_own else timeout_s)
                os.environ.pop(_MARK, None)
            except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
                with open(log_path, "rb") as log:
                    log.seek(log_start_bytes)
                    reason = _explain(error, log.read().decode("utf-8", "replace"))
                raise WorkerError(
                    f"cannot {'start' if is_own else 'join'} Ray{address and f' at {address}'}: {reason}"
                ) from error
        yield ray


@contextlib.contextmanager
def _prepare_own() -> Iterator[dict[str, Any]]:
    """What `ray.init` is told to start a Ray that nobody else can reach; ends what is left of it.

    What is started while `_MARK` is set counts as Ray's; take it away when Ray has started.
    """
    # A new folder that only this user can enter. Ray lets everybody into its own, which is to be made in this one
    parent, prefix = tempfile.gettempdir(), "fed_ray_"
    fits = len(os.path.join(parent, f"{prefix}12345678", "r")) <= _LONGEST_SOCKET_FOLDER
    folder = tempfile.mkdtemp(prefix=prefix, dir=parent if fits else "/tmp")
    token = os.environ.get("RAY_AUTH_TOKEN")
    # In a session of its own: Ctrl-C in the terminal must not reach it.
    command = [sys.executable, "-I", "-S", _REAPER, _MARK, folder]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True):  # waits for it at the end
        os.environ |= {"RAY_AUTH_TOKEN": secrets.token_hex(32), _MARK: folder}
        try:
            yield {
                "address": "local",
                "num_cpus": count_cores(),
                "include_dashboard": False,
                "_node_ip_address": "127.0.0.1",
                "_temp_dir": os.path.join(folder, "r"),
            }
        finally:
            for name in ("RAY_AUTH_TOKEN", _MARK):
                os.environ.pop(name, None)
            if token is not None:
                os.environ["RAY_AUTH_TOKEN"] = token


def _find_cluster(address: str) -> str:
    """The address as `ray.init` wants it. Raises WorkerError if nothing answers there: Ray would wait for minutes."""
    if address == "auto":
        with contextlib.suppress(OSError):
            address = os.environ.get("RAY_ADDRESS") or pathlib.Path(ADDRESS_FILE).read_text(encoding="utf-8").strip()
        if address in ("", "auto"):
            raise WorkerError("no Ray cluster was started on this machine; start one with: ray start --head")
    scheme, _, place = address.rpartition("//")
    host, _, port = place.rpartition(":")
    host = host.strip("[]")
    try:
        socket.create_connection((host, int(port)), CONNECT_TIMEOUT_S).close()
    except (OSError, UnicodeError, ValueError) as error:
        raise WorkerError(f"no Ray answers at {address} ({describe(error)}); is it running there?") from None
    if not scheme and host in ("localhost", "127.0.0.1", "::1") and not _listens_outside(int(port)):
        os.environ[_TRANSLATES_LOOPBACK] = "0"
    return address


def _listens_outside(port: int) -> bool:
    """Whether something listens on this port at an address of this machine that others may reach."""
    addresses = [each for interface in psutil.net_if_addrs().values() for each in interface]
    for each in addresses:
        if each.family == socket.AF_INET and not each.address.startswith("127."):
            with contextlib.suppress(OSError):
                socket.create_connection((each.address, port), 1.0).close()
                return True
    return False


@contextlib.contextmanager
def _send_words_to(log_path: str) -> Iterator[None]:
    """Sends to the log what Ray would print on this terminal about its processes, its nodes and itself."""
    from ray._private import worker

    handler = logging.FileHandler(log_path, encoding="utf-8")
    logger, print_words = logging.getLogger("ray"), worker.print_to_stdstream
    handlers, logger.handlers = logger.handlers, [handler]

    def log_words(data: dict[str, Any], **_: Any) -> None:
        logger.info("(%s) %s", data.get("pid"), "\n".join(data["lines"]))

    worker.print_to_stdstream = log_words  # it has no switch for what it says of dead processes
    try:
        yield
    finally:
        worker.print_to_stdstream, logger.handlers = print_words, handlers
        handler.close()


def _start(ray: Any, options: dict[str, Any], timeout_s: float) -> None:
    ray._raylet.AuthenticationTokenLoader.instance().reset_cache()  # it may hold the token of an earlier block
    handle_sigterm = signal.getsignal(signal.SIGTERM)
    try:
        with limit_time(timeout_s):
            ray.init(**options, log_to_driver=False, logging_level=logging.INFO)
            while not ray.cluster_resources().get("CPU"):
                time.sleep(0.2)
    finally:
        signal.signal(signal.SIGTERM, handle_sigterm)  # Ray puts its own there


def _explain(error: Exception, log: str) -> str:
    if "InvalidAuthToken" in log or "Unauthenticated" in str(error):
        return "it refuses our token; set RAY_AUTH_TOKEN, or RAY_AUTH_TOKEN_PATH, to what it was started with"
    if type(error).__name__ == "AuthenticationError":
        return "it asks for a token; set RAY_AUTH_TOKEN, or RAY_AUTH_TOKEN_PATH, to what it was started with"
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
