"""`python -m launch.worker` starts a TFF worker that runs on other machines can use, and keeps it until Ctrl-C.

The worker has no port. It is reached through a Unix socket that only our user may open, so from elsewhere through ssh
as this user. The commands for that are printed. Exit codes: 1 the worker died or cannot be closed off from others, 2
the request was wrong, 130 stopped by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP.
"""

import getpass
import os
import shlex
import socket
from collections.abc import Sequence

from absl import flags as absl_flags

from launch.command_line import parse_flags, run_command
from launch.progress import say
from launch.runs.columns import WORKER_LOG
from launch.runs.errors import RunStopped
from launch.runtimes.worker_process import ClosingError, WorkerError, WorkerProcess, default_threads, run_worker
from launch.settings.flags import FlagError
from launch.settings.worker_addresses import UNIX, check_address
from launch.stop_signals import leave

PROGRAM = "python -m launch.worker"


def define_flags() -> absl_flags.FlagValues:
    """The flags of this command."""
    values = absl_flags.FlagValues()
    absl_flags.DEFINE_string(
        "socket", "", "Path of the Unix socket to make; empty: one in a new temporary folder.", flag_values=values
    )
    absl_flags.DEFINE_string("log", WORKER_LOG, "File that the worker's output is appended to.", flag_values=values)
    absl_flags.DEFINE_bool(
        "keeps_memory",
        False,
        "Keep freed memory: quicker for models with weights of 4 MB and more, and takes a third more.",
        flag_values=values,
    )
    return values


def parse_request(argv: Sequence[str]) -> absl_flags.FlagValues:
    """Reads the command line, without the program's name; `socket` is then a whole path, or "". Raises FlagError."""
    values = parse_flags(define_flags(), argv)
    if values.socket:
        values.socket = os.path.abspath(os.path.expanduser(values.socket))
        try:
            check_address(UNIX + values.socket)
        except ValueError:
            raise FlagError(f"--socket={values.socket}: too long for a socket; choose a shorter path") from None
        if ":" in values.socket:
            raise FlagError(f"--socket={values.socket}: ssh takes no path with a colon; choose another")
        if os.path.lexists(values.socket):
            raise FlagError(f"--socket={values.socket}: exists already; remove it or choose another path")
        if not os.path.isdir(os.path.dirname(values.socket)):
            raise FlagError(f"--socket={values.socket}: no such folder; make it or choose another path")
    return values


def announce(worker: WorkerProcess) -> None:
    """Says where the worker is, and what to type on the machine that trains."""
    host, path = socket.gethostname(), worker.socket_path
    local = f"$HOME/worker_{host}.sock"
    say(f"worker   process {worker.process.pid}, for {default_threads().inter_op} cores; its log: {worker.log_path}")
    say(f"socket   {path}")
    say("reach    on the machine that trains, in a terminal of its own:")
    say(f"         ssh -N -o ExitOnForwardFailure=yes -o StreamLocalBindUnlink=yes -L {local}:{shlex.quote(path)} "
        f"{name_user()}{host}")  # fmt: skip
    say("use      there, in another one:")
    say(f"         python -m launch.doctor --workers=unix:{local}")
    say(f"         python -m launch.train --workers=unix:{local} ...")
    say("stop     Ctrl-C here")


def name_user() -> str:
    """Our name as ssh takes it before a machine's; "" for a user without one, as some containers have."""
    try:
        return f"{getpass.getuser()}@"
    except (KeyError, OSError):
        return ""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    return run_command(_run, "worker", f"{PROGRAM} [--socket=<path>]", define_flags, argv)


def _run(arguments: Sequence[str]) -> int:
    values = parse_request(arguments)
    log_path = os.path.abspath(os.path.expanduser(values.log))
    try:
        with run_worker(log_path, default_threads(), values.keeps_memory, True, values.socket) as worker:
            announce(worker)
            worker.process.wait()
            raise worker.describe_death()
    except ClosingError as error:
        raise RunStopped(f"error: {error}; docs/cluster.md says how to start a worker with a port", 1) from None
    except WorkerError as error:
        last = (error.log_tail.splitlines() or [""])[-1]
        raise RunStopped(f"error: {error}" + (f" ({last[:200]})" if last else ""), 1) from None


if __name__ == "__main__":
    leave(main())
