"""How many runs go on at a time on this machine: `--jobs`, or what memory and cores allow; and their processes.

One goes on at a time in each slot, forked from the slot's warm process, pinned to the slot's cores.
"""

import contextlib
import dataclasses
import json
import math
import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Any

import numpy as np
import psutil

from datasets.catalog import find_dataset
from launch.runs.errors import RunFolderError
from launch.runtimes.child_process import build_command
from launch.runtimes.processor import list_cores
from launch.settings.data_flags import choose_options
from launch.settings.run_config import RunConfig
from launch.sweeps.tasks import Task, build_arguments, is_finished
from launch.training.run_needs import check_needs
from models.model_names import ARCHITECTURES, MOST_WEIGHTS, STUDENT_OF_RANK, WIDTH_MODELS
from tff_algos.settings.config_fields import setting

MAX_JOBS = 1000

# Measured on small models, at their largest: a process of the sweep and TFF's worker (0.78 and 0.29 GB).
BASE_BYTES = 1.2 * 2**30
# Copies of the weights: of a client that trains, of the server with what is sent and evaluated, and of each client in
# algorithms that keep its model.
COPIES_TRAINING, COPIES_SERVER, COPIES_CLIENT = 6, 17, 2
# Of data whose size only their file tells.
UNKNOWN_BYTES = 25e6

TRAIN = "launch.train"
IMPORTS = "launch.sweeps.imports"
# Of a run whose warm process dies: what kills the second one as well is the run itself.
MAX_STARTS = 2


class _WarmProcess:
    """A warm process and our ends of its pipes. It ends, and so does its run, when this process ends."""

    def __init__(self, cores: Sequence[int]):
        self._replies, theirs = os.pipe()
        # Many runs are watched in turn, and none may hold up the others.
        os.set_blocking(self._replies, False)
        arguments = [str(theirs), ",".join(map(str, cores)), IMPORTS]
        self.process = subprocess.Popen(
            build_command("launch.sweeps.warm_process", *arguments),
            stdin=subprocess.PIPE,
            pass_fds=[theirs],
            # Ctrl-C of the terminal is for this process, which lets the runs keep their checkpoints.
            start_new_session=True,
        )
        # With our copy open, the end of the process would not be the end of its replies.
        os.close(theirs)
        self._unread = b""

    def ask(self, request: dict[str, Any]) -> None:
        # It is dead, which whoever waits for a reply will notice.
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"{json.dumps(request)}\n".encode())
            self.process.stdin.flush()

    def read_replies(self) -> dict[str, int]:
        """What it has replied since the last call, as one."""
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self._replies, 2**16):
                self._unread += piece
        # A reply may come in pieces: what follows the last line's end waits for the rest.
        *lines, self._unread = self._unread.split(b"\n")
        return {name: value for line in lines for name, value in json.loads(line).items()}

    def kill(self) -> None:
        """Kills it and, with it, its run."""
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        os.close(self._replies)


class LocalRun:
    """A run in a slot of `LocalEngine`."""

    def __init__(self, engine: "LocalEngine", task: Task, slot: int):
        self._engine, self._task, self._slot = engine, task, slot
        self._pid, self._exit_code, self._starts = None, None, 0
        self._log, self._read_bytes = None, 0
        if engine.keeps_logs:
            task.log.parent.mkdir(parents=True, exist_ok=True)
            task.log.touch()
            # A run that goes on appends to the log of before, whose lines were shown then.
            self._log, self._read_bytes = task.log.absolute(), task.log.stat().st_size
        self._start()

    def _start(self) -> None:
        self._pid = None
        self._starts += 1
        self._process = self._engine.open_process(self._slot)
        log = None if self._log is None else str(self._log)
        self._process.ask({"module": TRAIN, "arguments": build_arguments(self._task), "log": log})

    def read_output(self) -> list[str]:
        """The whole lines that the run has printed since the last call; none if it prints to our own output."""
        if self._log is None:
            return []
        with open(self._log, "rb") as log:
            log.seek(self._read_bytes)
            whole = log.read().rpartition(b"\n")[0]
        self._read_bytes += len(whole) + 1 if whole else 0
        return whole.decode("utf-8", "replace").splitlines()

    def poll(self) -> int | None:
        """The exit code if the run has ended, negative for a signal. One whose warm process died is started again."""
        if self._exit_code is not None:
            return self._exit_code
        dead = self._process.process.poll()
        # After we looked whether it lives, so that no last words are missed.
        replies = self._process.read_replies()
        self._pid = replies.get("pid", self._pid)
        self._exit_code = replies.get("exit_code")
        if dead is not None and self._pid == self._process.process.pid:
            # It was the run itself, where a warm process does not fork.
            self._exit_code = dead
        if dead is not None and self._exit_code is None:
            self._engine.close_process(self._slot)
            if self._starts < MAX_STARTS:
                self._start()
            else:
                self._exit_code = dead
        return self._exit_code

    @property
    def has_begun(self) -> bool:
        """Whether it has done with waiting for what all runs of its slot need once, as the last `poll` saw it."""
        return self._pid is not None or self._exit_code is not None

    def interrupt(self) -> None:
        """Asks the run to keep a checkpoint and end, as Ctrl-C does; one that has not begun ends at once."""
        self._starts = MAX_STARTS
        if self.poll() is not None:
            return
        if self._pid is None:
            self.kill()
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGINT)

    def kill(self) -> None:
        self._starts = MAX_STARTS
        self._process.process.kill()


class LocalEngine:
    """Starts runs in processes of this machine.

    Attributes:
      slots: how many runs go on at a time.
      keeps_logs: whether a run's output goes to `Task.log`, not to ours.
      shares: the cores of each slot.

    Args:
      shares: the cores of each slot.
      keeps_logs: as above.
    """

    def __init__(self, shares: Sequence[Sequence[int]], keeps_logs: bool):
        self.slots, self.keeps_logs = len(shares), keeps_logs
        self.shares = shares
        self._processes: dict[int, _WarmProcess] = {}

    def start(self, task: Task, slot: int) -> LocalRun:
        """Starts a run in a free slot. Call it in the main thread: the warm process ends with the thread."""
        return LocalRun(self, task, slot)

    def open_process(self, slot: int) -> _WarmProcess:
        """The slot's warm process, started if need be."""
        if slot in self._processes and self._processes[slot].process.poll() is not None:
            self.close_process(slot)
        if slot not in self._processes:
            self._processes[slot] = _WarmProcess(self.shares[slot])
        return self._processes[slot]

    def close_process(self, slot: int) -> None:
        """Ends the slot's warm process and its run."""
        self._processes.pop(slot).kill()

    def close(self) -> None:
        """Ends all warm processes and what still runs in them."""
        for slot in list(self._processes):
            self.close_process(slot)


@dataclasses.dataclass(frozen=True)
class JobsFlags:
    """The flag of commands that make runs."""

    jobs: int | None = setting(
        None,
        "Runs at a time, each on its share of the cores; by default what memory and cores allow.",
        minimum=1,
        maximum=MAX_JOBS,
    )


def open_engine(tasks: Sequence[Task], jobs: int | None, keeps_logs: bool = False) -> LocalEngine:
    """The engine for these runs. One that makes a single run at a time lets it print to our output.

    Args:
      tasks: the runs that are asked for; those that are finished do not count.
      jobs: how many at a time; None: what memory and cores allow.
      keeps_logs: whether a single run at a time prints to its log as well.

    Raises:
      FlagError: a run lacks something on this machine, see `check_needs`.
    """
    cores, left = list_cores(), [task for task in tasks if not is_done(task)]
    for config in {task.recipe.name: task.config for task in left}.values():
        check_needs(config)
    configs = [task.config for task in left]
    if jobs is None:
        jobs = choose_jobs(configs, len(cores), psutil.virtual_memory().available)
    jobs = max(1, min(jobs, len(configs)))
    return LocalEngine(share_cores(cores, jobs), keeps_logs or jobs > 1)


def are_done(tasks: Sequence[Task]) -> bool:
    """Whether there is nothing to run."""
    return all(map(is_done, tasks))


def is_done(task: Task) -> bool:
    """Whether there is nothing to run: the run is finished, or its folder holds another."""
    try:
        return is_finished(task)
    except RunFolderError:
        return True


def choose_jobs(configs: Sequence[RunConfig], num_cores: int, available_bytes: int) -> int:
    """As many runs at a time as there are cores, as long as the largest ones fit into the memory together.

    Where a run may use a GPU, whose memory is not known here, one at a time.
    """
    if any(getattr(config, "device", "cpu") != "cpu" for config in configs):
        return 1
    # Fewer jobs have more cores each, and each core's session holds copies of the weights.
    for jobs in range(min(num_cores, len(configs)), 1, -1):
        needed = sorted((estimate_memory_bytes(config, -(-num_cores // jobs)) for config in configs), reverse=True)
        if sum(needed[:jobs]) <= available_bytes:
            return jobs
    return 1


def share_cores(cores: Sequence[int], jobs: int) -> list[list[int]]:
    """The cores of each job: neighbours, as evenly as can be; where there are more jobs than cores, one in turns."""
    count = len(cores)
    if jobs > count:
        return [[cores[job % count]] for job in range(jobs)]
    return [list(cores[job * count // jobs : (job + 1) * count // jobs]) for job in range(jobs)]


def estimate_memory_bytes(config: RunConfig, num_cores: int) -> float:
    """What a run on so many cores may take, roughly and rather too much than too little."""
    row, options = find_dataset(config.dataset), choose_options(vars(config))
    example_format = None if row.format is None else row.find_format(options)
    # What `--model=auto` means for examples of this format; "" where only their file tells it.
    own = row.find_model(options) or (
        "" if example_format is None else STUDENT_OF_RANK.get(len(example_format.input_shape), "")
    )
    models = [own if name == "auto" else name for name in config.algorithm.model_names or (config.model,)]
    width = config.width**2 if set(models) & set(WIDTH_MODELS) else 1
    counts = [ARCHITECTURES[model].num_weights if model in ARCHITECTURES else MOST_WEIGHTS for model in models]
    weights_bytes = 4 * width * max(counts)
    # FedCD's slots, of which each holds a model.
    num_models = getattr(config.algorithm, "capacity", 1)
    copies = COPIES_TRAINING * 2 * num_cores + COPIES_SERVER * num_models + COPIES_CLIENT * config.num_clients
    is_known = example_format is not None and row.num_examples
    example_bytes = (
        math.prod(example_format.input_shape) * np.dtype(example_format.input_dtype).itemsize if is_known else 0
    )
    return BASE_BYTES + copies * weights_bytes + 2 * (row.num_examples * example_bytes or UNKNOWN_BYTES)
