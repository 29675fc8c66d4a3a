"""The cores and the processor's name, also where the kernel tells nothing of them."""

import os
import pathlib
import platform
import re
import subprocess
from types import SimpleNamespace

import pytest

from launch.runtimes import processor

ROOT = pathlib.Path(__file__).parents[3]
X86 = """processor\t: 0
model name\t: Some Xeon
flags\t\t: fpu avx2

processor\t: 1
model name\t: Some Xeon
flags\t\t: fpu avx2
"""
ARM = """processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd
CPU implementer\t: 0x41
CPU architecture: 8
CPU part\t: 0xd0c
"""


@pytest.fixture
def say(monkeypatch, tmp_path):
    """A function that makes /proc/cpuinfo say something."""
    monkeypatch.setattr(processor, "CPU_INFO", tmp_path / "cpuinfo")
    return (tmp_path / "cpuinfo").write_text


def test_cores_are_those_that_the_kernel_binds_us_to_or_else_all_until_we_keep_to_some(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {5, 2}, raising=False)
    assert (processor.list_cores(), processor.count_cores()) == ([2, 5], 2)
    for name in ("sched_getaffinity", "sched_setaffinity"):
        monkeypatch.delattr(os, name, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(processor, "_own_share", [])
    assert processor.list_cores() == [0, 1, 2, 3]
    processor.keep_to_cores([3, 1])
    assert (processor.list_cores(), processor.count_cores()) == ([1, 3], 2)


@pytest.mark.parametrize(
    ("text", "name", "description"),
    [
        (X86, "Some Xeon", "Some Xeon\nfpu avx2"),
        (ARM, "CPU implementer 0x41, CPU part 0xd0c", "CPU implementer 0x41, CPU part 0xd0c\nfp asimd"),
        ("", "our_architecture", "our_architecture"),
    ],
)
def test_a_processor_is_called_what_linux_knows_of_it(say, monkeypatch, text, name, description):
    monkeypatch.setattr(platform, "machine", lambda: "our_architecture")
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    say(text)
    assert (processor.name_processor(), processor.describe_processor()) == (name, description)


@pytest.mark.usefixtures("say")  # there is no such file
def test_macos_is_asked_for_the_name(monkeypatch):
    asked = []
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(
        subprocess, "run", lambda command, **_: asked.append(command) or SimpleNamespace(stdout="Apple M1\n")
    )
    assert processor.describe_processor() == "Apple M1"
    assert asked == [["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]]


def test_nobody_else_asks_for_cores_or_the_processor():
    asked = re.compile(r"sched_[gs]etaffinity|cpu_count|/proc/cpuinfo")
    folders = [ROOT / package for package in ("files", "datasets", "models", "tff_algos", "launch")]
    paths = [path for folder in folders for path in folder.rglob("*.py")]
    assert [path.name for path in paths if asked.search(path.read_text(encoding="utf-8"))] == ["processor.py"]
