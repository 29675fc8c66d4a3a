"""A process that has imported TensorFlow and TFF, and from which run after run is forked.

`python -m launch.sweeps.warm_process REPLIES CORES MODULE`

REPLIES is the number of an open pipe, CORES are the cores to keep to, with commas between them, MODULE is imported at
the start. Each line of stdin is a request, a JSON object: `module`, what to run as by `python -m`; `arguments`; `log`,
the file that the output is appended to, null for where it goes now. The replies are {"pid"} when it runs, and
{"exit_code"} when it has ended, negative for a signal.

A run starts with what the imports have left, as in a process of its own, and its end takes everything with it: graphs,
caches, seeds, memory, a crash. This process itself never runs a TensorFlow operation, so the only threads that a fork
does not copy are idle ones: those of OpenBLAS, which starts them anew, and the event loop of the context that TFF makes
on import, which no run uses.

macOS forks no process safely that has loaded its libraries. There this process becomes the run that is first asked for,
and ends with it.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import signal
import sys
from collections.abc import Sequence
from typing import Any

from launch.console import stop_signals
from launch.runtimes.child_process import die_with
from launch.runtimes.processor import keep_to_cores

# Python 3.11 does not have it on macOS, where no process is forked safely that has loaded its libraries.
FORKS = hasattr(os, "waitid")


def main(replies: int, cores: Sequence[int], module: str) -> None:
    """Serves requests until stdin ends. In the process that is to run it, runs what was asked for."""
    # Before the imports: thread pools are as large as the cores are many.
    keep_to_cores(cores)
    importlib.import_module(module)
    gc.collect()
    # What is shared with the runs stays shared: their collector leaves it alone.
    gc.freeze()
    # Else the interpreter's end would not collect what the imports made, and TFF's destructors would fail aloud.
    atexit.register(gc.unfreeze)
    request = _wait_for_request(replies)
    if request is not None:
        sys.argv[1:] = request["arguments"]
        runpy.run_module(request["module"], run_name="__main__", alter_sys=True)


def _wait_for_request(replies: int) -> dict[str, Any] | None:
    """A request, in the process that is to run it; None, in one that forked others for that, after the last."""
    pid = os.getpid()
    ended = None
    for line in iter(sys.stdin.buffer.readline, b""):
        # Only now may the number of the last run's process be given to another: nobody can still want to signal it.
        if ended is not None:
            os.waitpid(ended, 0)
        request = json.loads(line)
        ended = os.fork() if FORKS else 0
        if ended == 0:
            if FORKS:
                die_with(pid)
                os.setsid()
            _enter_run(replies, request["log"])
            return request
        # Without reaping it: until the next request its number must not be given to another process.
        result = os.waitid(os.P_PID, ended, os.WEXITED | os.WNOWAIT)
        exited = result.si_code == os.CLD_EXITED
        _reply(replies, exit_code=result.si_status if exited else -result.si_status)
    return None


def _reply(replies: int, **content: int) -> None:
    os.write(replies, f"{json.dumps(content)}\n".encode())


def _enter_run(replies: int, log: str | None) -> None:
    """What a process started by itself would have: Ctrl-C, no stdin, an output of its own."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # From now on it can be asked to keep a checkpoint and end.
    _reply(replies, pid=os.getpid())
    os.close(replies)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    if log is None:
        # The sweep has a line of its own that says so.
        stop_signals.IS_SAID = False
    else:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)


if __name__ == "__main__":
    main(int(sys.argv[1]), [int(core) for core in sys.argv[2].split(",")], sys.argv[3])
    stop_signals.leave(0)
