"""Whole runs on the nodes of a Ray cluster, one on each core; their folders come back when they have ended."""

import contextlib
from collections.abc import Sequence
from typing import Any

from launch.runtimes.ray_cluster import INSTALL, is_ray_installed, join_ray
from launch.runtimes.runtime import READY_TIMEOUT_S
from launch.settings.errors import FlagError
from launch.settings.run_config import check_ray_address
from launch.settings.runtimes import RAY
from launch.settings.typed_places import remember_places
from launch.sweeps.node_run import NodeRun, Outcome, Request, pack, unpack
from launch.sweeps.tasks import Task
from tff_algos.settings.config_fields import ConfigError

LOG = "ray.log"  # in the folder of the runs: what Ray has to say


def check_ray_flags(runtime: str, address: str) -> None:
    """Raises FlagError if the two do not go together, or Ray is not installed."""
    if not runtime:
        if address:
            raise FlagError(f"--ray_address: does nothing without --runtime={RAY}")
        return
    try:
        check_ray_address(address)
    except ConfigError as error:
        raise FlagError(str(error)) from None
    if not is_ray_installed():
        raise FlagError(f"--runtime={RAY}: Ray is not installed; {INSTALL}")


class RayEngine:
    """Starts runs as actors of Ray, each with a core of its own.

    Attributes:
      slots: how many runs go on at a time.
      keeps_logs: True; a run's output comes from its node and goes to `Task.log`.

    Args:
      tasks: those to be made.
      jobs: how many at a time; None: as many as the cluster has cores now.
      address: which cluster; see `join_ray`.

    Raises:
      WorkerError: see `join_ray`.
    """

    keeps_logs = True

    def __init__(self, tasks: Sequence[Task], jobs: int | None, address: str):
        self._stack = contextlib.ExitStack()
        log_path = str(tasks[0].run_dir.parents[1] / LOG)
        self._ray = self._stack.enter_context(join_ray(address, log_path, READY_TIMEOUT_S))
        self.slots = max(1, min(jobs or int(self._ray.cluster_resources()["CPU"]), len(tasks)))
        # A run that its node takes down is begun anew elsewhere; three calls at once: run, output, interrupt.
        options = {"num_cpus": 1, "max_restarts": -1, "max_task_retries": -1, "max_concurrency": 3}
        self._actors = self._ray.remote(**options)(NodeRun)

    def start(self, task: Task, slot: int) -> "RayRun":
        """Sends a run to whichever node has a free core."""
        del slot
        return RayRun(self._ray, self._actors.remote(), task)

    def close(self) -> None:
        """Leaves the cluster; Ray ends what this process has started there."""
        self._stack.close()


class RayRun:
    """A run on a node."""

    def __init__(self, ray: Any, actor: Any, task: Task):
        self._ray, self._actor, self._task = ray, actor, task
        self._exit_code: int | None = None
        # The node that trains records them elsewhere.
        remember_places(vars(task.config))
        task.log.parent.mkdir(parents=True, exist_ok=True)
        self._shown_bytes, self._unread = 0, b""
        # The node has a folder of its own for the run.
        arguments = tuple(each for each in task.arguments if not each.startswith("--run_dir="))
        request = Request(f"{task.recipe.name}.flags", task.recipe.read(), arguments, pack(task.run_dir))
        self._outcome = actor.run.remote(request)
        self._asked: Any = None

    def read_output(self) -> list[str]:
        """The whole lines that came from the node since the last call; asks for more."""
        if self._exit_code is None:
            # Never waits for the node: one answer is asked for at a time, and taken when it has come.
            if self._asked is not None and self._is_there(self._asked):
                with contextlib.suppress(self._ray.exceptions.RayError):
                    self._keep_output(self._ray.get(self._asked))
                self._asked = None
            if self._asked is None:
                self._asked = self._actor.read_output.remote(self._shown_bytes)
        *lines, self._unread = self._unread.split(b"\n")
        return [line.decode("utf-8", "replace") for line in lines]

    def _keep_output(self, output: bytes) -> None:
        self._shown_bytes += len(output)
        self._unread += output
        with open(self._task.log, "ab") as log:
            log.write(output)

    def _is_there(self, reference: Any) -> bool:
        return bool(self._ray.wait([reference], timeout=0)[0])

    def poll(self) -> int | None:
        """The exit code if the run has ended; its folder has arrived then."""
        if self._exit_code is None and self._is_there(self._outcome):
            try:
                outcome: Outcome = self._ray.get(self._outcome)
                self._keep_output(outcome.output[self._shown_bytes :])
                if outcome.folder is not None:
                    unpack(outcome.folder, self._task.run_dir)
                self._exit_code = outcome.exit_code
            except (self._ray.exceptions.RayError, OSError) as error:
                self._keep_output(f"error: {str(error).strip().splitlines()[0]}\n".encode())
                self._exit_code = 1
            self._ray.kill(self._actor)
        return self._exit_code

    def interrupt(self) -> None:
        """Asks the run to keep a checkpoint and end; `poll` brings its folder back."""
        if self._exit_code is None:
            self._actor.interrupt.remote()

    def kill(self) -> None:
        """Ends the run; what it did since it was sent is lost."""
        if self._exit_code is None:
            self._ray.kill(self._actor)
            self._exit_code = -9
