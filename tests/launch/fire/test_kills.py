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
import time

import psutil
import pytest
from lives import Life, assert_same_run

KILLS = int(os.environ.get("FEDERATED_KILLS", 20))
RUNTIME = os.environ.get("FEDERATED_RUNTIME", "in_process")
COMMON = [f"--runtime={RUNTIME}", "--rounds=10", "--seed=1", "--clients_by_round"]
RUNS = {
    "fedavg": ["--num_clients=4"],
    "fedsikd": ["--num_clients=4"],
    "fedcd": ["--clients_per_archetype=1", "--cohort_size=5", "--milestones=2,5,8"],
    "async_periodic": ["--num_clients=4"],
    "amfl_p": ["--building_num_sensors=4"],
}
DYING = str(pathlib.Path(__file__).with_name("dying_train.py"))


def kill_at_a_random_moment(life, rng, find_listening):
    """Kills our process in its start, or some time after its first or second new round; whether that was in time."""
    if rng.random() < 0.2:
        time.sleep(rng.uniform(0, 15))
    elif life.wait_for_round(life.count_rounds() + rng.choice([1, 1, 2])):
        time.sleep(rng.uniform(0, 0.5))
    with contextlib.suppress(psutil.NoSuchProcess, FileNotFoundError):  # it has ended by itself
        assert find_listening(life.process.pid) == []
    life.process.kill()
    return life.end((0, -signal.SIGKILL)) != 0


def kill_the_worker(life, rng, find_listening):
    """Kills the worker: the run ends in one line that says how to go on. Whether that was in time."""
    is_running = life.wait_for_round(life.count_rounds() + rng.choice([1, 1, 2]))
    time.sleep(rng.uniform(0, 0.3))
    workers = life.find_processes("worker_binary") if is_running else []
    if not workers:
        return False
    workers[0].kill()
    if not life.end((0, 1)):  # it had done its last round
        return False
    line = life.output.read_text().splitlines()[-1]
    assert "was killed by SIGKILL" in line and "go on with: python -m launch.train --resume" in line
    return True


def die_in_a_write(life, rng, find_listening):
    return life.end((0, -signal.SIGKILL, -signal.SIGXFSZ)) != 0


def draw_plan(kinds, rng):
    """Where to die in a write: a kind of all there are, its first, second or third time, and after how many bytes."""
    kind = rng.choice(sorted(set(kinds)))
    num_bytes = rng.choice([None, 0, 1, 10, 100, 1000]) if kind.startswith("open ") else None
    return {"kind": kind, "occurrence": rng.randint(1, min(3, kinds.count(kind))), "bytes": num_bytes}


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
    straight, broken, temporary = (tmp_path / name for name in ("straight", "broken", "temporary"))
    for folder in (straight, broken, temporary):
        folder.mkdir()

    def start(folder, plan=None):
        program = ["-m", "launch.train"] if plan is None else [DYING, str(folder), json.dumps(plan)]
        return Life(folder, [f"--algo={algo}", *COMMON, *RUNS[algo]], program, TMPDIR=str(temporary))

    start(straight, {"log": str(tmp_path / "writes.txt")}).end()
    kinds = (tmp_path / "writes.txt").read_text().splitlines()
    kills = draw_kills(rng)
    while kills:
        # What comes before the config is written, a run that is resumed does not do again.
        begun = (broken / "run" / "config.json").exists()
        coming = kinds[kinds.index("rename config.json") :] if begun else kinds
        plan = draw_plan(coming, rng) if kills[-1] is die_in_a_write else None
        life = start(broken, plan)
        done, hit = life.count_rounds(), kills[-1](life, rng, find_listening)
        print(algo, len(kills), kills[-1].__name__, plan or "", "from round", done, "hit" if hit else "too late")
        if hit:
            kills.pop()
        elif life.end((0, 1)) == 0:
            assert_same_whole_run(broken, straight)
            shutil.rmtree(broken)
            broken.mkdir()
    start(broken).end()
    assert_same_whole_run(broken, straight)
    assert list(temporary.iterdir()) == []


def assert_same_whole_run(broken, straight):
    """Beside the bytes: no file is left that was being written, and every table and JSON file can be read.

    Drafts of client files stay in their cache for a day, as another process might be writing them.
    """
    assert_same_run(broken, straight)
    for draft in broken.glob("shards/.[0-9]*"):
        shutil.rmtree(draft)
    # TensorBoard's names hold the time.
    listed = [
        {
            str(path.relative_to(folder))
            for path in folder.rglob("*")
            if path.is_file() and "events.out" not in path.name
        }
        for folder in (broken, straight)
    ]
    assert listed[0] == listed[1]
    names = {path.name for path in broken.rglob("*")}
    assert not {name for name in names if name.startswith(".") and not re.fullmatch(r"\.lock(-[0-9a-f]{2})?", name)}
    for path in broken.rglob("*.csv"):
        with open(path, newline="", encoding="utf-8") as file:
            assert len({len(row) for row in csv.reader(file, strict=True)}) == 1, path
    for path in broken.rglob("*.json"):
        json.loads(path.read_text(encoding="utf-8"))
