"""The process of one peer: builds it, says "ready", and runs a timed round for every "go" that it is sent.

Started by `peer_process`, never by hand. Commands come on standard input, answers go through a pipe whose number is in
the request; standard output and error are a log file, because stock TFF's worker inherits and keeps them. The answers
are "ready", the seconds of a round, or "error <one line>". This process leads a process group; when its standard input
ends without "quit", its parent has died, and it kills the group: no worker outlives a benchmark.
"""

import contextlib
import importlib
import json
import os
import queue
import signal
import sys
import threading
import time
import traceback

from launch.benchmarks.workloads import Workload


def main(request: str) -> int:
    """Serves rounds until "quit". `request` is JSON: module, options, workload, folder, answer_fd."""
    asked = json.loads(request)
    os.set_inheritable(asked["answer_fd"], False)
    commands: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_read_commands, args=(commands,), daemon=True).start()
    with os.fdopen(asked["answer_fd"], "w", buffering=1, encoding="utf-8") as answers:
        try:
            _serve(asked, commands, answers)
        except Exception as error:
            traceback.print_exc()
            print("error", *f"{type(error).__name__}: {error}".split(), file=answers)
            return 1
    return 0


def _serve(asked, commands, answers):
    module = importlib.import_module(asked["module"])
    workload = Workload(**asked["workload"])
    with module.open_rounds(workload, asked["folder"], **asked["options"]) as run_round:
        print("ready", file=answers)
        while commands.get() == "go":
            start = time.perf_counter()
            run_round()
            print(repr(time.perf_counter() - start), file=answers)


def _read_commands(commands):
    for line in sys.stdin:
        commands.put(line.strip())
        if line.strip() == "quit":
            return
    if os.getpgrp() == os.getpid():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
