"""Runs on a Ray of their own that lose a process in the middle of a round: the same bytes, and nothing left.

Either our own process is killed by SIGKILL, and the run resumed, or one of those that compute the clients' shares,
which Ray replaces while the run goes on. `make test-ray` runs these.
"""

import os
import pathlib
import random
import stat
import time

import pytest
from lives import DEADLINE_S, Life, assert_same_run

from launch.runtimes.ray_cluster import is_ray_installed

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not is_ray_installed(), reason="Ray is not installed (make test-ray installs it apart)"),
]
KILLS = int(os.environ.get("FEDERATED_KILLS", 2))
COMMON = ["--runtime=ray", "--ray_shares=3", "--rounds=6", "--seed=1"]
RUNS = {
    "fedavg": ["--num_clients=6", "--epochs=10"],
    "fedcd": ["--clients_per_archetype=1", "--cohort_size=5", "--milestones=2,4"],
}


def start(folder, algo):
    return Life(folder, [f"--algo={algo}", *COMMON, *RUNS[algo]])


def wait_for_share(life, rng):
    """A process that computes a share, in a round that is not yet in the table; Ray names a process by its task."""
    first = life.count_rounds() + 1
    deadline_s = time.monotonic() + DEADLINE_S
    while life.process.poll() is None:
        assert time.monotonic() < deadline_s
        if life.count_rounds() >= first and (sharing := life.find_processes("ray::run_share")):
            return rng.choice(sharing)
    raise AssertionError(f"the run is over: {life.output.read_text()}")


@pytest.fixture(scope="module", params=RUNS)
def straight(request, tmp_path_factory):
    """(algorithm, folder) of a run that was left alone."""
    folder = tmp_path_factory.mktemp("straight")
    start(folder, request.param).end()
    return request.param, folder


def test_a_run_that_is_killed_in_mid_round_ends_with_the_same_bytes(tmp_path, straight):
    algo, expected = straight
    rng = random.Random(f"ray {algo}")
    for _ in range(KILLS):
        life = start(tmp_path, algo)
        wait_for_share(life, rng)
        # Where Ray's folder lies depends on how long the path of the temporary folder is. Who removes it was told.
        [reaper] = life.find_processes("ray_reaper.py")
        folder = pathlib.Path(reaper.cmdline()[-1])
        assert folder.name.startswith("fed_ray_") and stat.S_IMODE(folder.stat().st_mode) == 0o700
        time.sleep(rng.uniform(0, 0.1))
        life.process.kill()
        life.end((-9,))
        assert not folder.exists()
    start(tmp_path, algo).end()
    assert_same_run(tmp_path, expected)


def test_a_run_that_loses_processes_of_its_shares_goes_on_with_the_same_bytes(tmp_path, straight):
    algo, expected = straight
    rng = random.Random(f"ray shares {algo}")
    life = start(tmp_path, algo)
    for _ in range(KILLS):
        wait_for_share(life, rng).kill()
    life.end()
    assert_same_run(tmp_path, expected)
    assert "ray" not in life.output.read_text().replace(str(tmp_path), "").lower()
