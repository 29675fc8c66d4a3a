"""Runs on this machine: one at a time in each slot, forked from the slot's warm process, pinned to the slot's cores."""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Any

from launch.runtimes.child_process import build_command
from launch.sweeps.tasks import Task, build_arguments

TRAIN = "launch.train"
IMPORTS = "launch.sweeps.imports"
MAX_STARTS = 2  # of a run whose warm process dies


class _WarmProcess:
    """A warm process and our ends of its pipes. It ends, and so does its run, when this process ends."""

    def __init__(self, cores: Sequence[int]):
        self._replies, theirs = os.pipe()
        os.set_blocking(self._replies, False)
        arguments = [str(theirs), ",".join(map(str, cores)), IMPORTS]
        self.process = subprocess.Popen(
            build_command("launch.sweeps.warm_process", *arguments),
            stdin=subprocess.PIPE,
            pass_fds=[theirs],
            start_new_session=True,
        )
        os.close(theirs)
        self._unread = b""

    def ask(self, request: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):  # it is dead, which whoever waits for a reply will notice
            self.process.stdin.write(f"{json.dumps(request)}\n".encode())
            self.process.stdin.flush()

    def read_replies(self) -> dict[str, int]:
        """What it has replied since the last call, as one."""
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self._replies, 2**16):
                self._unread += piece
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
        replies = self._process.read_replies()  # after we looked whether it lives, so that no last words are missed
        self._pid = replies.get("pid", self._pid)
        self._exit_code = replies.get("exit_code")
        if dead is not None and self._pid == self._process.process.pid:
            self._exit_code = dead  # it was the run itself, where a warm process does not fork
        if dead is not None and self._exit_code is None:
            self._engine.close_process(self._slot)
            if self._starts < MAX_STARTS:
                self._start()
            else:
                self._exit_code = dead
        return self._exit_code

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
