"""One run on a node of a Ray cluster: its folder goes there and comes back, packed. Does not import TensorFlow."""

import contextlib
import fcntl
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tarfile
import tempfile
import threading
from typing import NamedTuple

from files.cache_folder import default_cache_dir
from files.locks import open_lock_file
from files.writing import replace_folder
from launch.runs.columns import CONFIG_FILE
from launch.runs.tables import write_json
from launch.runtimes.child_process import build_command
from launch.runtimes.processor import keep_to_cores, list_cores

PROJECT = pathlib.Path(__file__).parents[2]


class Request(NamedTuple):
    """A run to make.

    Attributes:
      flagfile: the name of the file with its settings.
      settings: the text of that file.
      arguments: what comes after it on the command line of `launch.train`, without `--run_dir`.
      folder: the run folder to go on with, packed; None for a new run.
    """

    flagfile: str
    settings: str
    arguments: tuple[str, ...]
    folder: bytes | None


class Outcome(NamedTuple):
    """What became of a run.

    Attributes:
      exit_code: of `launch.train`; negative for a signal.
      folder: the run folder, packed; None if there is none.
      output: what it printed.
    """

    exit_code: int
    folder: bytes | None
    output: bytes


def pack(folder: pathlib.Path) -> bytes | None:
    """A run folder as an archive; None if it holds no run."""
    if not (folder / CONFIG_FILE).exists():
        return None
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(folder, ".")
    return packed.getvalue()


def unpack(packed: bytes, run_dir: pathlib.Path) -> None:
    """Puts what `pack` gave in the place of `run_dir`, whole or not at all."""
    with replace_folder(run_dir) as draft:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            # The filter refuses links and paths that lead out of the folder: a node's answer is not trusted.
            archive.extractall(draft, filter="data")
        config = json.loads((draft / CONFIG_FILE).read_text(encoding="utf-8"))
        config["flags"]["run_dir"] = str(run_dir)
        write_json(draft / CONFIG_FILE, config)


class NodeRun:
    """The actor that makes a run. Ray starts it again elsewhere if it dies, and then the run begins anew."""

    def __init__(self):
        self._log: pathlib.Path | None = None
        self._child: subprocess.Popen | None = None
        self._is_stopped = threading.Event()

    def run(self, request: Request) -> Outcome:
        """Makes the run; returns when it has ended."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fed_run_"))
        try:
            flagfile, run_dir, self._log = folder / request.flagfile, folder / "run", folder / "output"
            flagfile.write_text(request.settings, encoding="utf-8")
            if request.folder is not None:
                unpack(request.folder, run_dir)
            resume = ["--resume"] if request.folder is not None else []
            train = ["launch.train", f"--flagfile={flagfile}", *request.arguments, f"--run_dir={run_dir}", *resume]
            with _take_core(), open(self._log, "wb") as log:
                exit_code = self._train(train, log)
            return Outcome(exit_code, pack(run_dir), self._log.read_bytes())
        finally:
            self._log = None
            shutil.rmtree(folder, ignore_errors=True)

    def _train(self, train: list[str], log: io.BufferedWriter) -> int:
        # It ends with this actor: Ray may start the actor again, and two runs would be at work.
        command = build_command(*train)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")])}
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
        ) as self._child:
            # It was asked to stop while the folder was unpacked, when there was no process to tell.
            if self._is_stopped.is_set():
                self._child.send_signal(signal.SIGTERM)
            return self._child.wait()

    def read_output(self, start: int) -> bytes:
        """What the run has printed, from that byte on."""
        # The run has not begun, or has ended.
        with contextlib.suppress(OSError, AttributeError):
            return self._log.read_bytes()[start:]
        return b""

    def interrupt(self) -> None:
        """Asks the run to keep a checkpoint and end. By SIGTERM: Ray blocks SIGINT in what it starts."""
        self._is_stopped.set()
        if self._child is not None:
            self._child.send_signal(signal.SIGTERM)


@contextlib.contextmanager
def _take_core():
    """Binds this thread, and so the run that it starts, to a core that no other run on this machine has."""
    everything = list_cores()
    # Nobody else writes there, as somebody might into the temporary folder.
    locks = default_cache_dir("locks")
    os.makedirs(locks, exist_ok=True)
    with contextlib.ExitStack() as stack:
        for core in everything:
            file = stack.enter_context(open_lock_file(os.path.join(locks, f"core_{core}.lock")))
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                keep_to_cores([core])
                break
        yield
        keep_to_cores(everything)
