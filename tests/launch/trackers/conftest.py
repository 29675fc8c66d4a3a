"""Runs that grow while a test looks at them, and a stand-in for the trackers."""

import fcntl
import json
import os
import pathlib
import sys

import pytest

from launch.runs.tables import write_json, write_table
from launch.settings.run_config import build_run_config, flag_values

COLUMNS = ["round", "virtual_time_s", "test_accuracy", "test_loss"]


class GrowingRun:
    """A run folder as `launch.train` writes it, round by round; the run goes on until `end`."""

    def __init__(self, run_dir, **flags):
        self.run_dir, self._rows = run_dir, []
        config = {"flags": flag_values(build_run_config({"algo": "fedavg", **flags})), "data": {"num_train": 30}}
        write_json(run_dir / "config.json", config)
        self.go_on()

    def go_on(self):
        self._lock = open(self.run_dir / ".lock", "w")  # noqa: SIM115 (held until the run ends)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def add_rounds(self, number):
        """In round r the accuracy is 0.01 r; the loss of odd rounds is left out; each takes 2 s."""
        for i in range(len(self._rows) + 1, len(self._rows) + number + 1):
            self._rows.append([str(i), str(60 * i), str(0.01 * i), "" if i % 2 else "0.5"])
        seconds = [[row[0], "1.5", "0.5", "1000"] for row in self._rows]
        write_table(self.run_dir / "timing.csv", ["round", "round_s", "evaluation_s", "host_memory_bytes"], seconds)
        write_table(self.run_dir / "metrics.csv", COLUMNS, self._rows)

    def end(self, is_finished=True):
        if is_finished:
            summary = {"algo": "fedavg", "rounds": len(self._rows), "final": {"test_accuracy": 0.5, "test_loss": None}}
            write_json(self.run_dir / "summary.json", summary)
            write_table(self.run_dir / "clients.csv", ["client", "accuracy"], [["client_0", "0.5"]])
            (self.run_dir / "plots").mkdir(exist_ok=True)
            (self.run_dir / "plots" / "by_round.png").write_bytes(b"png")
            (self.run_dir / "models" / "global").mkdir(parents=True, exist_ok=True)
            (self.run_dir / "models" / "global" / "model.keras").write_bytes(b"keras")
        self._lock.close()


@pytest.fixture
def start_run(tmp_path):
    """A function (name, **flags) -> GrowingRun, which is ended after the test."""
    runs = []

    def start(name="run", **flags):
        runs.append(GrowingRun(tmp_path / name, **flags))
        return runs[-1]

    yield start
    for run in runs:
        run._lock.close()


class StandIn:
    """What the stand-in tracker was asked for, and how it can be made to fail."""

    def __init__(self, path):
        self._path = path
        self.down, self.dies = (path.with_name(f"{path.name}.{what}") for what in ("down", "dies"))

    @property
    def requests(self):
        return [json.loads(line) for line in self._path.read_text().splitlines()] if self._path.exists() else []

    def list_rounds(self, do="rounds"):
        return [row[0] for request in self.requests if request["do"] == do for row in request["rounds"]]

    def find(self, do):
        return [request for request in self.requests if request["do"] == do]


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """The stand-in tracker, which FL_TRACK_PYTHON names."""
    python = tmp_path / "stand_in_python"
    program = pathlib.Path(__file__).with_name("stand_in_sender.py")
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I "{program}"\n')
    python.chmod(0o755)
    requests = tmp_path / "requests"
    monkeypatch.setenv("FL_TRACK_PYTHON", str(python))
    monkeypatch.setenv("REQUESTS", str(requests))
    assert os.access(python, os.X_OK)
    return StandIn(requests)
