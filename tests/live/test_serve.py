"""`launch.serve` with two clients over WebSockets, killed in the middle and gone on with; and a port that is taken."""

import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from certificates import make_certificate

from launch.live.links import read_links
from launch.runs.round_table import read_round_table

ROOT = pathlib.Path(__file__).parents[2]
FLAGS = (
    *("--algo=fedavg", "--dataset=digits", "--num_clients=2", "--model=logistic_regression", "--rounds=12"),
    *("--rounds_per_checkpoint=1", "--run_page=false"),
)
LIMIT_S = 120


def start(log, *command):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    with open(log, "w") as file:
        return subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, cwd=log.parent, env=environment)


def wait_for(log, pattern):
    """What the pattern finds in a log, as soon as it does."""
    for _ in range(LIMIT_S * 10):
        if found := re.search(pattern, log.read_text()):
            return found
        time.sleep(0.1)
    raise AssertionError(f"{pattern}: not in {log.read_text()}")


@pytest.fixture
def processes():
    """Those that are ended in any case."""
    found = []
    yield found
    for process in found:
        process.kill()
        process.wait()


def test_a_run_goes_on_after_its_server_was_killed_and_its_clients_come_back(tmp_path, live_python, processes):
    serve = sys.executable, "-m", "launch.serve"
    processes.append(start(tmp_path / "first.log", *serve, *FLAGS, "--port=0", "--run_dir=run"))
    base = wait_for(tmp_path / "first.log", r"also at (\S+)/join.py")[1]
    links = read_links(tmp_path / "run/links.txt")
    join = ROOT / "launch/live/join.py"
    with urllib.request.urlopen(f"{base}/join.py") as answer:
        assert answer.read() == join.read_bytes()
    for link, said in ((base, "the link has no token: take it whole"), (f"{base}/#guessed", "not one of this run's")):
        refused = subprocess.run([live_python, str(join), link, f"--home={tmp_path / 'c'}"], capture_output=True)
        assert refused.returncode == 2 and said in refused.stderr.decode().splitlines()[-1]
    clients = [
        start(
            *(tmp_path / f"{name}.log", live_python, str(join), link),
            *(f"--home={tmp_path / name}", "--give_up_after_s=60"),
        )
        for name, link in (("a", links["seat 0"]), ("b", links["seat 1"]))
    ]
    processes += clients
    wait_for(tmp_path / "first.log", r"round 3/12: .*2 of 2 clients answered")
    processes[0].send_signal(signal.SIGKILL)
    processes[0].wait()
    assert read_links(tmp_path / "run/links.txt") == links
    processes.append(start(tmp_path / "second.log", *serve, "--resume", "--run_dir=run"))
    assert processes[-1].wait(LIMIT_S) == 0, (tmp_path / "second.log").read_text()
    assert wait_for(tmp_path / "second.log", r"link +(.+)")[1].startswith(
        "none: all 2 seats are taken; clients come back"
    )
    kept = b"".join(path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file())
    assert not (tmp_path / "run/links.txt").exists()
    assert not [link for link in links.values() if link.partition("#")[2].encode() in kept]
    assert [client.wait(LIMIT_S) for client in clients] == [0, 0]
    names, rows = read_round_table(tmp_path / "run" / "metrics.csv", 12)
    assert float(rows[-1][names.index("test_accuracy")]) > 0.8
    assert [row[names.index("num_clients")] for row in rows] == ["2"] * 12
    read_round_table(tmp_path / "run" / "traffic.csv", 12)
    processes.append(start(tmp_path / "third.log", *serve, "--resume", "--run_dir=run"))
    assert processes[-1].wait(LIMIT_S) == 0  # a run that is over waits for nobody


def test_by_a_shared_link_over_https_clients_train(tmp_path, live_python, processes):
    """The link has another name than the address on which the server listens."""
    files = make_certificate(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as free:
        base = f"https://localhost:{free.getsockname()[1]}"
    flags = f"--port={base.rpartition(':')[2]}", f"--public_url={base}", "--link=shared", "--rounds=3"
    tls = f"--tls_certificate={files[0]}", f"--tls_key={files[1]}"
    serve = sys.executable, "-m", "launch.serve", *FLAGS, *flags, *tls, "--run_dir=run"
    processes.append(start(tmp_path / "server.log", *serve))
    link = wait_for(tmp_path / "server.log", r"link +(\S+)")[1]
    assert link.startswith(f"{base}/#") and read_links(tmp_path / "run/links.txt")["everybody"] == link
    for name in "ab":
        command = live_python, str(ROOT / "launch/live/join.py"), link, f"--certificate={files[0]}"
        processes.append(start(tmp_path / f"{name}.log", *command, f"--home={tmp_path / name}"))
    assert [process.wait(LIMIT_S) for process in processes] == [0, 0, 0], (tmp_path / "server.log").read_text()
    assert "http is not private" not in (tmp_path / "server.log").read_text()


def test_killed_here_and_there_a_run_has_each_round_once_and_the_weights_of_its_replay(live_python):
    flags = "--client_kills=5", "--server_kills=2", "--rounds=40"
    command = sys.executable, str(ROOT / "tests/live/kills.py"), "waiting", f"--python={live_python}", *flags
    done = subprocess.run(command, capture_output=True, text=True, timeout=5 * LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_port_that_is_taken_is_one_line(tmp_path, processes):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        processes.append(start(tmp_path / "log", sys.executable, "-m", "launch.serve", *FLAGS, f"--port={port}"))
        assert processes[-1].wait(LIMIT_S) == 2
    last = (tmp_path / "log").read_text().splitlines()[-1]
    assert last.startswith(f"error: --port={port}: expected one on which no other program listens, or 0 for a free one")
    assert not list((tmp_path / "runs").glob("*"))
