"""`launch.train`, which dies in the middle of a write. Run as a program by the tests beside it.

    dying_train.py <folder> <plan> <arguments of launch.train>

Every write below `<folder>` counts: a file that is opened for writing, renamed or removed, a folder that is made or
removed. Each has a kind: what is done, and the file's name without numbers. The plan is JSON: `log`, a file to write
the kinds to, a line each; or `kind`, `occurrence` and `bytes`, where to die. `bytes` null: just before that write, by
SIGKILL. A number: when a file has grown by more bytes, by the kernel, which ends a process that writes beyond
RLIMIT_FSIZE.
"""

import json
import os
import pathlib
import re
import resource
import signal
import sys

CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir"}


def name_kind(event: str, path: str) -> str:
    """A write's kind: "open metrics.csv", "rename round_N.npz" and so on, without process, time and round numbers."""
    name = re.sub(r"^\.\d+\.([0-9a-f]{8}\.)?|(?<=tfevents)\.\d+", "", pathlib.Path(path).name)
    return f"{event.removeprefix('os.')} {re.sub('[0-9a-f]{64}-?.*', 'DIGEST', re.sub('_[0-9]+', '_N', name))}"


def find_write(event: str, arguments: tuple) -> str | None:
    """The path that an audit event writes to; None if it is no write."""
    if event == "open":
        path, _, flags = arguments
        is_write = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    else:
        path, is_write = arguments[0], event in CHANGES
    return os.fspath(path) if is_write and isinstance(path, (str, os.PathLike)) else None


def watch(folder: str, plan: dict) -> None:
    """Installs the hook that counts the writes, and dies at the planned one."""
    seen = []

    def hook(event, arguments):
        if event != "open" and event not in CHANGES:
            return
        path = find_write(event, arguments)
        if path is None or not os.path.abspath(path).startswith(folder):
            return
        seen.append(name_kind(event, path))
        if "log" in plan:
            os.write(log, f"{seen[-1]}\n".encode())
        elif seen[-1] == plan["kind"] and seen.count(plan["kind"]) == plan["occurrence"]:
            die(path, plan["bytes"])

    if "log" in plan:
        log = os.open(plan["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    sys.addaudithook(hook)


def die(path: str, num_bytes: int | None) -> None:
    if num_bytes is None:
        os.kill(os.getpid(), signal.SIGKILL)
    size = os.path.getsize(path) if os.path.exists(path) else 0
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + num_bytes, resource.RLIM_INFINITY))


if __name__ == "__main__":
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it, so that a write fails instead
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    watch(os.path.abspath(sys.argv[1]), json.loads(sys.argv[2]))
    from launch.train import main

    sys.exit(main(sys.argv[3:]))
