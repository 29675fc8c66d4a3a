"""Runs that are killed again and again end with the bytes of a run that was left alone.

Of each algorithm a run is killed `KILLS` times and resumed after each: our process by SIGKILL at a random moment and, a
quarter of them, in the middle of a write. Nothing of it listens before, no process is left after it, and the run that
ends last leaves no temporary file of any of them. The moments are drawn from fixed seeds and printed (`pytest -s`).
FEDERATED_KILLS=4 makes a short version of it. FEDERATED_RUNTIME=tff takes another runtime, whose worker is killed, too.
"""

import contextlib
import csv
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import psutil
import pytest

from launch.runs.checkpoints import find_checkpoints

ROOT = pathlib.Path(__file__).parents[3]
KILLS = int(os.environ.get("FEDERATED_KILLS", 20))
RUNTIME = os.environ.get("FEDERATED_RUNTIME", "in_process")
ROUNDS = 10
RUNS = {
    "fedavg": ["--num_clients=4"],
    "fedsikd": ["--num_clients=4"],
    "fedcd": ["--clients_per_archetype=1", "--cohort_size=5", "--milestones=2,5,8"],
    "async_periodic": ["--num_clients=4"],
    "amfl_p": ["--building_num_sensors=4"],
}
SAME = ("metrics.csv", "clients.csv", "events.csv")
DEADLINE_S = 600
MARK = "FEDERATED_FIRE_TEST"


class Life:
    """One process of a run, from its start until it ends or is killed, with what it started in turn."""

    number = 0

    def __init__(self, folder, algo, find_listening, plan=None):
        type(self).number += 1
        self.find_listening = find_listening
        self.mark = f"{os.getpid()}-{self.number}"
        self.run_dir, self.errors = folder / "run", folder / "err.txt"
        begun = (self.run_dir / "config.json").exists()
        temporary = folder.parent / "temporary"
        temporary.mkdir(exist_ok=True)
        new = [f"--algo={algo}", f"--runtime={RUNTIME}", f"--rounds={ROUNDS}", "--seed=1", *RUNS[algo]]
        asked = ["--resume"] if begun else new
        program = ["-m", "launch.train"]
        if plan is not None:
            program = [str(pathlib.Path(__file__).with_name("dying_train.py")), str(folder), json.dumps(plan)]
        self.process = subprocess.Popen(
            [sys.executable, *program, *asked, f"--run_dir={self.run_dir}", f"--client_dir={folder / 'shards'}"],
            cwd=ROOT,
            env={**os.environ, MARK: self.mark, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)},
            stdout=subprocess.DEVNULL,
            stderr=self.errors.open("w"),
        )

    def wait(self):
        return self.process.wait(DEADLINE_S)

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

    def find_worker(self):
        """The worker, None as long as there is none."""
        return next((each for each in self.find_processes() if each.name().startswith("worker_binary")), None)

    def wait_for_round(self, round_num):
        """Whether the process lives on when the table has that round."""
        deadline_s = time.monotonic() + DEADLINE_S
        while self.process.poll() is None and count_rounds(self.run_dir) < round_num:
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
        return self.process.poll() is None

    def assert_nothing_is_left(self):
        deadline_s = time.monotonic() + 10
        while self.find_processes():
            assert time.monotonic() < deadline_s, self.find_processes()
            time.sleep(0.1)


def count_rounds(run_dir):
    try:
        return max(0, (run_dir / "metrics.csv").read_bytes().count(b"\n") - 1)
    except FileNotFoundError:
        return 0


def kill_at_a_random_moment(life, rng):
    """Kills our process in its start, or some time after its first or second new round; whether that was in time."""
    if rng.random() < 0.2:
        time.sleep(rng.uniform(0, 15))
    elif life.wait_for_round(count_rounds(life.run_dir) + rng.choice([1, 1, 2])):
        time.sleep(rng.uniform(0, 0.5))
    with contextlib.suppress(psutil.NoSuchProcess, FileNotFoundError):  # it has ended by itself
        assert life.find_listening(life.process.pid) == []
    life.process.kill()
    return life.wait() == -signal.SIGKILL


def kill_the_worker(life, rng):
    """Kills the worker: the run ends in one line that says how to go on. Whether that was in time."""
    if not life.wait_for_round(count_rounds(life.run_dir) + rng.choice([1, 1, 2])):
        return False
    time.sleep(rng.uniform(0, 0.3))
    worker = life.find_worker()
    if worker is None:
        return False
    worker.kill()
    exit_code = life.wait()
    if exit_code == 0:  # it had done its last round
        return False
    [line] = life.errors.read_text().splitlines()
    assert exit_code == 1 and "was killed by SIGKILL" in line and "go on with: python -m launch.train --resume" in line
    return True


def draw_plan(kinds, rng):
    """Where to die in a write: a kind of all there are, its first, second or third time, and after how many bytes."""
    kind = rng.choice(sorted(set(kinds)))
    num_bytes = rng.choice([None, 0, 1, 10, 100, 1000]) if kind.startswith("open ") else None
    return {"kind": kind, "occurrence": rng.randint(1, min(3, kinds.count(kind))), "bytes": num_bytes}


def die_in_a_write(life, rng):
    exit_code = life.wait()
    assert exit_code in (0, -signal.SIGKILL, -signal.SIGXFSZ), life.errors.read_text()
    return exit_code != 0


def draw_kills(rng):
    writes, workers = KILLS // 4, KILLS // 5 if RUNTIME == "tff" else 0
    ways = [die_in_a_write] * writes + [kill_the_worker] * workers
    ways += [kill_at_a_random_moment] * (KILLS - len(ways))
    rng.shuffle(ways)
    return ways


@pytest.mark.slow
@pytest.mark.parametrize("algo", RUNS)
def test_a_run_that_is_killed_again_and_again_ends_with_the_same_bytes(tmp_path, algo, find_listening):
    rng = random.Random(f"fire {algo}")
    straight, broken, log = tmp_path / "straight", tmp_path / "broken", tmp_path / "writes.txt"
    straight.mkdir()
    broken.mkdir()
    assert Life(straight, algo, find_listening, {"log": str(log)}).wait() == 0
    kinds = log.read_text().splitlines()
    kills = draw_kills(rng)
    while kills:
        # What comes before the config is written, a run that is resumed does not do again.
        begun = (broken / "run" / "config.json").exists()
        coming = kinds[kinds.index("rename config.json") :] if begun else kinds
        plan = draw_plan(coming, rng) if kills[-1] is die_in_a_write else None
        life = Life(broken, algo, find_listening, plan)
        done = count_rounds(broken / "run")
        hit = kills[-1](life, rng)
        life.assert_nothing_is_left()
        print(algo, len(kills), kills[-1].__name__, plan or "", "from round", done, "hit" if hit else "too late")
        if hit:
            kills.pop()
        elif life.process.returncode == 0:
            assert_same_run(broken, straight)
            shutil.rmtree(broken)
            broken.mkdir()
    last = Life(broken, algo, find_listening)
    assert last.wait() == 0, last.errors.read_text()
    last.assert_nothing_is_left()
    assert_same_run(broken, straight)
    assert list((tmp_path / "temporary").iterdir()) == []


def assert_same_run(broken, straight):
    written = [name for name in SAME if (straight / "run" / name).exists()]
    assert written[:2] == ["metrics.csv", "clients.csv"]
    for name in written:
        assert (broken / "run" / name).read_bytes() == (straight / "run" / name).read_bytes(), name
    kept = find_checkpoints(straight / "run" / "checkpoints")[ROUNDS]
    assert (broken / "run" / "checkpoints" / kept.name).read_bytes() == kept.read_bytes()
    assert_all_is_whole(broken)
    assert list_files(broken) == list_files(straight)


def list_files(folder):
    """The files of a run, without TensorBoard's, whose names hold the time."""
    return {
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and "events.out" not in path.name
    }


def assert_all_is_whole(folder):
    """No file is left that was being written, and every table and JSON file can be read.

    Drafts of client files stay in their cache for a day, as another process might be writing them.
    """
    for draft in folder.glob("shards/.[0-9]*"):
        shutil.rmtree(draft)
    names = {path.name for path in folder.rglob("*")}
    assert not {name for name in names if name.startswith(".") and not re.fullmatch(r"\.lock(-[0-9a-f]{2})?", name)}
    for path in folder.rglob("*.csv"):
        with open(path, newline="", encoding="utf-8") as file:
            assert len({len(row) for row in csv.reader(file, strict=True)}) == 1, path
    for path in folder.rglob("*.json"):
        json.loads(path.read_text(encoding="utf-8"))
