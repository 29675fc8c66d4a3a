"""The C library's limit on arenas, which it is asked to count: no thread of ours shares one."""

import os
import platform
import subprocess
import sys
from unittest import mock

import pytest

from launch.runtimes import arenas

NUM_THREADS = 8 * (os.cpu_count() or 1) + 20  # more than glibc allows by itself
COUNT = """
import ctypes, sys, tempfile, threading
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.fopen.restype = ctypes.c_void_p
allocated = threading.Barrier({threads} + 1)
counted = threading.Event()

def allocate():
    libc.malloc(1000)
    allocated.wait()
    counted.wait()

threads = [threading.Thread(target=allocate) for _ in range({threads})]
for thread in threads:
    thread.start()
allocated.wait()
with tempfile.NamedTemporaryFile("r") as file:
    stream = ctypes.c_void_p(libc.fopen(file.name.encode(), b"w"))
    libc.malloc_info(0, stream)
    libc.fclose(stream)
    print(file.read().count("<heap nr="))
counted.set()
"""


def count_arenas(first_line, **variables):
    """How many arenas a process of `NUM_THREADS` threads gets that begins with this line."""
    environment = {name: value for name, value in os.environ.items() if name != arenas.VARIABLE} | variables
    code = first_line + COUNT.format(threads=NUM_THREADS)
    return int(subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True).stdout)


@pytest.mark.parametrize(
    ("first_line", "variable", "is_right"),
    [
        ("", {}, lambda count: count < NUM_THREADS),
        ("import launch", {}, lambda count: count > NUM_THREADS),  # the main thread has one, too
        ("import launch", {"MALLOC_ARENA_MAX": "3"}, lambda count: count <= 3),
        ("import launch", {"GLIBC_TUNABLES": "glibc.malloc.arena_max=3"}, lambda count: count <= 3),
    ],
    ids=["alone", "with us", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES"],
)
def test_threads_share_arenas_without_us_none_with_us_and_a_limit_of_the_user_stays(first_line, variable, is_right):
    if "glibc" not in platform.libc_ver():
        pytest.skip("the C library is not glibc")
    assert is_right(count_arenas(first_line, **variable))


def test_another_c_library_is_left_alone(monkeypatch):
    """One without the function, and one of another name."""
    monkeypatch.delenv(arenas.VARIABLE, raising=False)
    monkeypatch.setattr(arenas.ctypes, "CDLL", lambda name: object())
    assert not arenas.allow_many_arenas()
    monkeypatch.setattr(arenas.os, "confstr", mock.Mock(side_effect=ValueError("unrecognized configuration name")))
    monkeypatch.setattr(arenas.ctypes, "CDLL", lambda name: pytest.fail("it was called"))
    assert not arenas.allow_many_arenas()
