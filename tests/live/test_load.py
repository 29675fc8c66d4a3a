"""A small run of `load.py`: every client is enrolled, dealt its part and asked each round, and each answer counts."""

import json
import pathlib
import subprocess
import sys

LOAD = pathlib.Path(__file__).with_name("load.py")
LIMIT_S = 300


def test_fifty_clients_all_answer_and_those_that_only_knock_give_way():
    flags = "--clients=50", "--rounds=3", "--turns=1", "--processes=2", "--connections=500"
    done = subprocess.run([sys.executable, str(LOAD), *flags], capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    found, ratio = map(json.loads, done.stdout.splitlines())
    assert found["exit_code"] == 0
    assert found["heard"] == {"welcome": 50, "file": 50, "part": 50, "train": 150, "done": 50}
    assert {name: found[name] for name in ("answered", "late", "rejected", "missing")} == {
        "answered": 150,
        "late": 0,
        "rejected": 0,
        "missing": 0,
    }
    # There may be two connections for each seat and 256 more, of which 49 are clients'.
    knocked = found["connections"]
    assert knocked["open"] <= 307 and knocked["closed"] > 0 and knocked["number"] == 500
    assert ratio["ratio"]["median"] > 0
