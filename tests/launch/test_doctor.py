"""The diagnosis of this machine, of a broken one, and emptying the cache of client files."""

import contextlib
import importlib.metadata
import os
import signal
from unittest import mock

import numpy as np
import pytest

from datasets.catalog import DATASET_NAMES
from datasets.client_files import open_or_write_entry
from launch import doctor
from launch.runtimes.runtime import WorkerError


def test_this_machine_is_well(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "MIN_MEMORY_BYTES", 0)  # what is free here and now is not the point
    monkeypatch.setattr(doctor, "MIN_DISK_BYTES", 0)
    assert doctor.main([f"--data_dir={tmp_path}", f"--client_dir={tmp_path / 'no' / 'such'}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    topics = [
        "python",
        "libraries",
        "machine",
        "disk",
        "data folder",
        *(f"data: {name}" for name in DATASET_NAMES),
        "runtime",
    ]
    assert [line[5:26].rstrip() for line in lines] == topics
    needs_no_file = {"digits", "building", "files", "npz"}
    missing = {f"data: {name}" for name in DATASET_NAMES if name not in needs_no_file}
    marks = {line[5:26].rstrip(): line[:5].rstrip() for line in lines}
    assert marks == {topic: "--" if topic in missing else "ok" for topic in topics}
    assert "tensorflow-federated 0.87.0" in lines[1]
    assert "starts and answers in" in lines[-1]


@pytest.mark.parametrize(
    ("system", "machine", "fits"),
    [
        ("Linux", "x86_64", True),
        ("Linux", "aarch64", True),
        ("Darwin", "arm64", True),
        ("Darwin", "x86_64", False),
        ("Windows", "AMD64", False),
    ],
)
def test_some_machines_have_packages(monkeypatch, system, machine, fits):
    monkeypatch.setattr(doctor.platform, "system", lambda: system)
    monkeypatch.setattr(doctor.platform, "machine", lambda: machine)
    assert (doctor.check_python().fix == "") == fits


def test_a_worker_that_is_not_installed_is_said_and_one_that_dies_shows_its_log(monkeypatch):
    monkeypatch.setattr(doctor, "has_worker", lambda: False)
    missing = "TFF's worker is not installed: 72 MB to download, 301 MB on disk"
    assert doctor.check_runtime("tff") == ("runtime", missing, "run make setup-tff", False)
    monkeypatch.setattr(doctor, "time_answer", mock.Mock(side_effect=WorkerError("it died", "last words")))
    assert doctor.check_runtime().text == "it died\nlast words"


@pytest.mark.usefixtures("can_close")
def test_a_worker_that_hangs_is_given_up(monkeypatch):
    open_runtime = doctor.open_runtime

    @contextlib.contextmanager
    def open_stopped_runtime(*arguments, **further):
        with open_runtime(*arguments, **further) as runtime:
            os.kill(runtime.worker_pid, signal.SIGSTOP)
            yield runtime

    monkeypatch.setattr(doctor, "open_runtime", open_stopped_runtime)
    assert doctor.check_runtime("tff", timeout_s=1.5).text == "no answer within 1.5 s"


def test_what_is_short_missing_or_cannot_be_written_must_be_fixed(monkeypatch, tmp_path):
    for client_dir in ("/proc/shards", __file__, f"{__file__}/shards"):
        fix = doctor.check_disk(client_dir).fix
        assert fix.startswith(f"{client_dir}: cannot write there (")
        assert fix.endswith("name another folder by --client_dir")
    for name in ("MIN_MEMORY_BYTES", "MIN_DISK_BYTES"):
        monkeypatch.setattr(doctor, name, 2**60)
    assert doctor.check_memory().fix.startswith("close other programs")
    assert doctor.check_disk(str(tmp_path)).fix.endswith("the cache of client files: python -m launch.doctor --clean")
    fixes = [doctor.check_data_dir(str(path)).fix for path in (tmp_path, tmp_path / "nowhere", __file__)]
    assert [fix[:14] for fix in fixes] == ["", "no such folder", "no such folder"]


def test_a_missing_library_must_be_fixed(monkeypatch):
    def find_version(distribution):
        if distribution == "numpy":
            raise importlib.metadata.PackageNotFoundError(distribution)
        return {"tensorflow": "2.15.0", "pyarrow": "21.0.0", "aiohttp": "3.14.0"}.get(
            distribution, "0.87.0" if "federated" in distribution else "0.7.5"
        )

    monkeypatch.setattr(importlib.metadata, "version", find_version)
    finding = doctor.check_libraries()
    assert "numpy missing" in finding.text
    assert finding.fix == "wrong or missing: numpy, tensorflow; run make setup"


def test_clean_empties_the_cache_and_nothing_else(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    arrays = np.zeros((100_000, 2), np.float32), np.zeros(100_000, np.int32)
    splits = {"train": arrays, "validation": arrays, "test": arrays}
    entry, _ = open_or_write_entry(str(tmp_path), "0" * 64, lambda: [splits])
    (tmp_path / "mine.txt").write_text("keep me")
    assert doctor.main(["--clean", f"--client_dir={tmp_path}"]) == 0
    assert capsys.readouterr().out == f"freed 3.6 MB in {tmp_path}\n"
    assert not os.path.exists(entry)
    assert (tmp_path / "mine.txt").exists()
