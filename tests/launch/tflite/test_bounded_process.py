"""A process that may crash: each way to lose it is one line, the next request has another, and none outlives us."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from launch.tflite.converter_process import ProcessLost, run_bounded

GIB = 2**30
PROGRAM = """
import os, signal, sys, time
from launch.tflite.converter_process import open_answers, serve_requests

def answer(request):
    print("noise")
    if request == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if request == "grow":
        held = bytearray(200 * 2**20)
    if request in ("grow", "wait"):
        time.sleep(600)
    if request == "leave":
        sys.exit(3)
    return {"pid": os.getpid(), "request": request}

serve_requests(answer, open_answers())
"""
PARENT = """
import os, signal
from launch.tflite.converter_process import run_bounded
with run_bounded("answering_fixture", os.devnull) as process:
    print(process.ask("who", 60, 2**30)["pid"], flush=True)
    process.ask("wait", 600, 2**30)
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    """The module's name; it prints into its log."""
    (tmp_path / "answering_fixture.py").write_text(PROGRAM)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "answering_fixture"


def wait_until_gone(pid):
    for _ in range(600):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.1)
    return False


def test_a_lost_process_is_one_line_and_the_next_request_has_another(program, tmp_path):
    with run_bounded(program, str(tmp_path / "log")) as process:
        first = process.ask("ü", 60, GIB)
        assert first["request"] == "ü"
        assert process.ask("again", 60, GIB)["pid"] == first["pid"]
        for request, timeout_s, memory_bytes, reason in (
            ("crash", 60, GIB, "crashed with SIGSEGV"),
            ("grow", 600, GIB // 10, "took more than 0.1 GiB of memory and was ended"),
            ("leave", 60, GIB, "ended with exit code 3"),
        ):
            with pytest.raises(ProcessLost, match=reason):
                process.ask(request, timeout_s, memory_bytes)
            last = process.ask("well?", 60, GIB)
            assert last["request"] == "well?" and last["pid"] != first["pid"]
        with pytest.raises(ProcessLost, match="took longer than 0 s and was ended"):
            process.ask("wait", 0.2, GIB)
    assert wait_until_gone(last["pid"])
    assert "noise" in (tmp_path / "log").read_text()
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == [
        "answering_fixture.py",
        "log",
    ]


def test_a_process_that_is_ready_and_killed_is_replaced(program, tmp_path):
    with run_bounded(program, str(tmp_path / "log")) as process:
        pid = process.ask("who", 60, GIB)["pid"]
        os.kill(pid, signal.SIGKILL)
        assert wait_until_gone(pid)
        assert process.ask("who", 60, GIB)["pid"] != pid


@pytest.mark.parametrize(
    ("number", "is_linux"), [(signal.SIGKILL, True), (signal.SIGINT, True), (signal.SIGKILL, False)]
)
def test_it_ends_with_us(program, monkeypatch, without_linux, number, is_linux):
    if not is_linux:
        monkeypatch.setenv("PYTHONPATH", without_linux, prepend=os.pathsep)
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        pid = int(parent.stdout.readline())
        parent.send_signal(number)
    assert wait_until_gone(pid)
