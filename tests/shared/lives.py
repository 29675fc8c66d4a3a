"""A run in a process of its own that a test kills: what of it lives, how far it is, whether it ended as another."""

import os
import pathlib
import signal
import subprocess
import sys
import time
import uuid

import psutil

from launch.runs.checkpoints import find_checkpoints

ROOT = pathlib.Path(__file__).parents[2]
MARK = "FEDERATED_FIRE_TEST"
DEADLINE_S = 600


class Life:
    """One process of a run, from its start until it ends or is killed, with what it started in turn.

    `arguments` begin the run, which lies in `folder`; one that has begun is resumed. `program` is what Python runs.
    """

    def __init__(self, folder, arguments, program=("-m", "launch.train"), **environment):
        self.run_dir, self.output, self.mark = folder / "run", folder / "output.txt", uuid.uuid4().hex
        asked = ["--resume"] if (self.run_dir / "config.json").exists() else arguments
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, *program, *asked, f"--run_dir={self.run_dir}", f"--client_dir={folder / 'shards'}"],
                cwd=ROOT,
                env={**inherited, MARK: self.mark, "PYTHONPATH": str(ROOT), **environment},
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # also under nohup
            )

    def find_processes(self, words=""):
        """All living processes that carry this life's mark, and these words in their command lines."""
        found = []
        for process in psutil.process_iter():
            try:
                is_alive = process.environ().get(MARK) == self.mark and process.status() != psutil.STATUS_ZOMBIE
                if is_alive and words in " ".join([process.name(), *process.cmdline()]):
                    found.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return found

    def count_rounds(self):
        try:
            return max(0, (self.run_dir / "metrics.csv").read_bytes().count(b"\n") - 1)
        except FileNotFoundError:
            return 0

    def wait_for_round(self, round_num):
        """Whether the process lives on when the table has that round."""
        deadline_s = time.monotonic() + DEADLINE_S
        while self.process.poll() is None and self.count_rounds() < round_num:
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
        return self.process.poll() is None

    def end(self, exit_codes=(0,)):
        """Waits for the end, after which nothing may be left; returns the exit code."""
        exit_code = self.process.wait(DEADLINE_S)
        assert exit_code in exit_codes, self.output.read_text()
        deadline_s = time.monotonic() + 30
        while left := self.find_processes():
            assert time.monotonic() < deadline_s, left
            time.sleep(0.1)
        return exit_code


def assert_same_run(folder, straight):
    """The tables and the last checkpoint are those of the run that was left alone."""
    for name in ("metrics.csv", "clients.csv", "events.csv", "clients_by_round.csv.gz"):
        if name in ("metrics.csv", "clients.csv") or (straight / "run" / name).exists():
            assert (folder / "run" / name).read_bytes() == (straight / "run" / name).read_bytes(), name
    kept = max(find_checkpoints(straight / "run" / "checkpoints").items())[1]
    assert (folder / "run" / "checkpoints" / kept.name).read_bytes() == kept.read_bytes()
