"""Runs that grow while a test looks at them."""

import fcntl

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
        self._lock = open(run_dir / ".lock", "w")  # noqa: SIM115 (held until the run ends)
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
            best = {"round": len(self._rows), "test_accuracy": 0.5, "test_loss": None}
            write_json(self.run_dir / "summary.json", {"algo": "fedavg", "rounds": len(self._rows), "best": best})
            write_table(self.run_dir / "clients.csv", ["client", "accuracy"], [["client_0", "0.5"]])
            for name in ("plots/by_round.png", "models/global/model.keras", "export/global.int8.tflite"):
                (self.run_dir / name).parent.mkdir(parents=True, exist_ok=True)
                (self.run_dir / name).write_bytes(b"")
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
