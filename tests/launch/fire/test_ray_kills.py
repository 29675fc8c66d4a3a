"""Runs on a Ray of their own that lose a process in the middle of a round: the same bytes, and nothing left.

Either our own process is killed by SIGKILL, and the run resumed, or one of those that compute the clients' shares,
which Ray replaces while the run goes on. `make test-ray` runs these.
"""

import os
import pathlib
import random
import stat
import subprocess
import sys
import tempfile
import time

import psutil
import pytest

from launch.runs.checkpoints import find_checkpoints
from launch.runtimes.ray_cluster import is_ray_installed

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not is_ray_installed(), reason="Ray is not installed (make test-ray installs it apart)"),
]
ROOT = pathlib.Path(__file__).parents[3]
KILLS = int(os.environ.get("FEDERATED_KILLS", 2))
MARK = "FEDERATED_FIRE_TEST"
ROUNDS = 6
RUNS = {
    "fedavg": ["--num_clients=6", "--epochs=10"],
    "fedcd": ["--clients_per_archetype=1", "--cohort_size=5", "--milestones=2,4"],
}
DEADLINE_S = 300


class Life:
    """One process of a run, from its start until it ends or is killed, with what it started in turn."""

    number = 0

    def __init__(self, folder, algo, temporary=None):
        type(self).number += 1
        self.mark = f"ray-{os.getpid()}-{self.number}"
        self.run_dir, self.output = folder / "run", folder / "output.txt"
        begun = (self.run_dir / "config.json").exists()
        new = [f"--algo={algo}", "--runtime=ray", "--ray_shares=3", f"--rounds={ROUNDS}", "--seed=1", *RUNS[algo]]
        arguments = [
            *(["--resume"] if begun else new),
            f"--run_dir={self.run_dir}",
            f"--client_dir={folder / 'shards'}",
        ]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "launch.train", *arguments],
            cwd=ROOT,
            env={**kept, MARK: self.mark, **({"TMPDIR": temporary} if temporary else {})},
            stdout=self.output.open("a"),
            stderr=subprocess.STDOUT,
        )

    def find_processes(self):
        """All living processes that carry this life's mark."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) == self.mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return found

    def find_sharing(self):
        """Those that compute a share at this moment; Ray names a process by its task."""
        found = []
        for process in self.find_processes():
            try:
                if "ray::run_share" in " ".join(process.cmdline()):
                    found.append(process)
            except psutil.NoSuchProcess:
                continue
        return found

    def wait_for_share(self, rng):
        """A process that computes a share, in a round that is not yet in the table; None if the run is over."""
        first = count_rounds(self.run_dir) + 1
        deadline_s = time.monotonic() + DEADLINE_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline_s
            if count_rounds(self.run_dir) >= first and (sharing := self.find_sharing()):
                return rng.choice(sharing)
        return None

    def assert_nothing_is_left(self):
        deadline_s = time.monotonic() + 30
        while left := self.find_processes():
            assert time.monotonic() < deadline_s, left
            time.sleep(0.1)


def count_rounds(run_dir):
    try:
        return max(0, (run_dir / "metrics.csv").read_bytes().count(b"\n") - 1)
    except FileNotFoundError:
        return 0


@pytest.fixture
def temporary():
    """A temporary folder with a path that is short enough for Ray's sockets."""
    with tempfile.TemporaryDirectory(prefix="t", dir="/tmp") as folder:
        yield pathlib.Path(folder)


@pytest.fixture(scope="module", params=RUNS)
def straight(request, tmp_path_factory):
    """(algorithm, folder) of a run that was left alone."""
    folder = tmp_path_factory.mktemp("straight")
    life = Life(folder, request.param)
    assert life.process.wait(DEADLINE_S) == 0, life.output.read_text()
    life.assert_nothing_is_left()
    return request.param, folder


def assert_same_run(folder, straight):
    for name in ("metrics.csv", "clients.csv", "events.csv"):
        if (straight / "run" / name).exists():
            assert (folder / "run" / name).read_bytes() == (straight / "run" / name).read_bytes(), name
    kept = find_checkpoints(straight / "run" / "checkpoints")[ROUNDS]
    assert (folder / "run" / "checkpoints" / kept.name).read_bytes() == kept.read_bytes()


def test_a_run_that_is_killed_in_mid_round_ends_with_the_same_bytes(tmp_path, temporary, straight):
    algo, expected = straight
    rng = random.Random(f"ray {algo}")
    for _ in range(KILLS):
        life = Life(tmp_path, algo, str(temporary))
        assert life.wait_for_share(rng) is not None, life.output.read_text()
        [folder] = temporary.glob("*/fed_ray_*")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        time.sleep(rng.uniform(0, 0.1))
        life.process.kill()
        assert life.process.wait(DEADLINE_S) < 0
        life.assert_nothing_is_left()
    last = Life(tmp_path, algo, str(temporary))
    assert last.process.wait(DEADLINE_S) == 0, last.output.read_text()
    last.assert_nothing_is_left()
    assert list(temporary.glob("*/fed_ray_*")) == []
    assert_same_run(tmp_path, expected)


def test_a_run_that_loses_processes_of_its_shares_goes_on_with_the_same_bytes(tmp_path, straight):
    algo, expected = straight
    rng = random.Random(f"ray shares {algo}")
    life = Life(tmp_path, algo)
    for _ in range(KILLS):
        sharing = life.wait_for_share(rng)
        assert sharing is not None, life.output.read_text()
        sharing.kill()
    assert life.process.wait(DEADLINE_S) == 0, life.output.read_text()
    life.assert_nothing_is_left()
    assert_same_run(tmp_path, expected)
    assert "ray" not in life.output.read_text().replace(str(tmp_path), "").lower()
