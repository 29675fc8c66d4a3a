"""What all runtimes share: TensorFlow is imported late and quietly."""

import concurrent.futures
import logging.handlers
import os
import subprocess
import threading
import time

from launch.runtimes.runtime import Runtime, quiet_tensorflow


def test_notices_of_deprecation_are_switched_off_and_other_warnings_are_not(tmp_path, capsys):
    with quiet_tensorflow(str(tmp_path / "tensorflow.log")):
        pass
    handler = logging.handlers.BufferingHandler(10)
    logger = logging.getLogger("tensorflow")
    logger.addHandler(handler)
    logger.warning("From x.py:1: f (from g) is deprecated and will be removed in a future version.")
    logger.warning("something else")
    logger.removeHandler(handler)
    assert [record.getMessage() for record in handler.buffer] == ["something else"]


def test_two_threads_leave_the_standard_error_as_it_was(tmp_path):
    """The second would enter while the first is inside, and leave last: descriptor 2 would stay the first one's log."""
    before, barrier = os.fstat(2), threading.Barrier(2, timeout=60)

    def be_quiet(name, *waits):
        with quiet_tensorflow(str(tmp_path / name)):
            for wait in waits:
                wait()

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        first = pool.submit(be_quiet, "first.log", barrier.wait, lambda: time.sleep(0.2))
        barrier.wait()
        second = pool.submit(be_quiet, "second.log")
        first.result()
        second.result()
    assert (os.fstat(2).st_dev, os.fstat(2).st_ino) == (before.st_dev, before.st_ino)


def test_memory_of_a_worker_is_its_own_and_nothing_without_one():
    assert Runtime(os.getpid()).worker_memory_bytes() > 10e6
    assert Runtime().worker_memory_bytes() == 0
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert Runtime(ended.pid).worker_memory_bytes() == 0
