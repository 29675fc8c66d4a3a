"""Flagfiles as people write them: with a mark at the start, beyond ASCII, in each other."""

import codecs
import os
import pathlib
import subprocess
import sys

import pytest

from launch.settings.flag_parsing import expand_flagfiles

ROOT = pathlib.Path(__file__).parents[3]


@pytest.fixture
def write(tmp_path):
    def write_file(name, text, mark=b""):
        (tmp_path / name).write_bytes(mark + text.encode())
        return f"--flagfile={tmp_path / name}"

    return write_file


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
@pytest.mark.parametrize("start", ["", "# caf\u00e9\n", "// x\r\n", "\n"])
def test_a_mark_at_the_start_is_no_part_of_the_first_flag(write, mark, start):
    flagfile = write("a.flags", f"{start}--algo=fedavg\n  --npz=/tmp/j\u00fcrgen.npz  \n", mark)
    assert expand_flagfiles(["--seed=1", flagfile, "--rounds=2"]) == [
        *("--seed=1", "--algo=fedavg", "--npz=/tmp/j\u00fcrgen.npz", "--rounds=2"),
    ]


def test_a_file_reads_others(write, tmp_path):
    write("inner.flags", "--rounds=3\n", codecs.BOM_UTF8)
    outer = write("outer.flags", f"-flagfile={tmp_path / 'inner.flags'}\n--seed=2\n", codecs.BOM_UTF8)
    assert expand_flagfiles([outer, outer]) == ["--rounds=3", "--seed=2"] * 2
    assert expand_flagfiles(["--flagfile", str(tmp_path / "inner.flags")]) == ["--rounds=3"]


def test_what_stands_behind_two_dashes_stays(write):
    assert expand_flagfiles(["--", "--flagfile=x"]) == ["--", "--flagfile=x"]
    assert expand_flagfiles(["--flagfile=", "--seed=1"]) == ["--seed=1"]


def test_a_circle_is_one_line(write, refuse, tmp_path):
    write("b.flags", f"--flagfile={tmp_path / 'a.flags'}\n")
    assert "a.flags: includes itself" in refuse([write("a.flags", f"--flagfile={tmp_path / 'b.flags'}\n")])


@pytest.mark.parametrize("content", [b"\xff\xfe-\x00", b"--npz=\xfc.npz"])
def test_another_encoding_is_one_line(write, refuse, content):
    assert "a.flags: it is not a text file in UTF-8" in refuse([write("a.flags", "", content)])


def test_a_file_is_read_in_utf_8_whatever_the_locale(write):
    flagfile = write("a.flags", "# \u00fc\n--algo=nothing\n")
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "launch.train", flagfile]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=60)
    assert ended.returncode == 2 and ended.stderr.startswith(b"error: --algo=nothing: ")
