"""TFF's smaller wheel, the worker that is added later, and TFF as the first import of a program."""

import base64
import csv
import hashlib
import importlib.metadata
import io
import os
import pathlib
import subprocess
import sys
import zipfile

import pytest

from launch.runtimes import tff_package
from launch.runtimes.tff_package import CHECK, FACTORY, JAX, LATE_JAX, NOTE, START, WORKER, add_worker, shrink_wheel

ROOT = pathlib.Path(__file__).parents[3]
NAME = "tensorflow_federated-0.87.0-py3-none-manylinux_2_31_x86_64.whl"
INFO = "tensorflow_federated-0.87.0.dist-info"
FILES = {
    WORKER: b"\x7fELF" + bytes(1000),
    JAX: b"import jax\n",
    FACTORY: b"def start_process():\n" + START + b"    return port\n",
    "tensorflow_federated/version.py": b"__version__ = '0.87.0'\n",
    f"{INFO}/WHEEL": b"Root-Is-Purelib: true\nTag: py3-none-manylinux_2_31_x86_64\n\n",
}


@pytest.fixture
def write_wheel(tmp_path):
    """A function (**changes of files) -> the path of a wheel that is made as TFF's is; None leaves a file out."""

    def write(changes=()):
        files = {path: content for path, content in (FILES | dict(changes)).items() if content is not None}
        rows = [(path, "sha256=of_before", "1") for path in files] + [(f"{INFO}/RECORD", "", "")]
        listed = io.StringIO()
        csv.writer(listed).writerows(rows)
        with zipfile.ZipFile(tmp_path / NAME, "w") as wheel:
            for path, content in {**files, f"{INFO}/RECORD": listed.getvalue().encode()}.items():
                wheel.writestr(path, content)
        return str(tmp_path / NAME)

    return write


def test_the_smaller_wheel_is_for_any_machine_and_lacks_the_worker_and_the_import_of_jax(write_wheel, tmp_path):
    """Its record has the hashes of what was changed, and none of the worker, which may come."""
    small = shrink_wheel(write_wheel(), str(tmp_path))
    assert small.name == "tensorflow_federated-0.87.0-py3-none-any.whl"
    with zipfile.ZipFile(small) as wheel:
        files = {name: wheel.read(name) for name in wheel.namelist()}
    record = {path: rest for path, *rest in csv.reader(io.StringIO(files.pop(f"{INFO}/RECORD").decode()))}
    changed = {
        JAX: LATE_JAX,
        FACTORY: b"def start_process():\n" + CHECK + START + b"    return port\n",
        f"{INFO}/WHEEL": b"Root-Is-Purelib: true\nTag: py3-none-any\n\n",
    }
    assert files == FILES | changed | {WORKER: NOTE}
    assert record.pop(WORKER) == record.pop(f"{INFO}/RECORD") == ["", ""]
    assert record.pop("tensorflow_federated/version.py") == ["sha256=of_before", "1"]
    digests = {path: base64.urlsafe_b64encode(hashlib.sha256(files[path]).digest()) for path in changed}
    assert record == {
        path: [f"sha256={digest.decode().rstrip('=')}", str(len(files[path]))] for path, digest in digests.items()
    }


@pytest.mark.parametrize(
    "changes", [{WORKER: None}, {JAX: None}, {FACTORY: b"def start():\n"}, {FACTORY: START + START}]
)
def test_another_wheel_than_the_expected_one_is_an_error(write_wheel, tmp_path, changes):
    with pytest.raises((KeyError, ValueError)):
        shrink_wheel(write_wheel(changes), str(tmp_path))
    # The installed one lists its worker, so that it is removed with it.
    files = {str(file): file for file in importlib.metadata.files("tensorflow-federated")}
    assert files[WORKER].hash is None and files[JAX].hash is not None
    assert tff_package.find_worker() == files[WORKER].locate()


def test_the_worker_comes_whole_or_not_at_all(write_wheel, tmp_path, monkeypatch):
    worker = tmp_path / "site" / WORKER
    worker.parent.mkdir(parents=True)
    worker.write_bytes(NOTE)
    monkeypatch.setattr(tff_package, "find_worker", lambda: worker)
    assert not tff_package.has_worker()
    with pytest.raises(KeyError):
        add_worker(write_wheel({WORKER: None}))
    assert worker.read_bytes() == NOTE and not tff_package.has_worker()
    wheel = pathlib.Path(write_wheel())
    wheel.write_bytes(wheel.read_bytes().replace(bytes(900), bytes(899) + b"\1"))  # its checksum is wrong now
    with pytest.raises(zipfile.BadZipFile):
        add_worker(str(wheel))
    assert worker.read_bytes() == NOTE and list(worker.parent.iterdir()) == [worker]
    add_worker(write_wheel())
    assert worker.read_bytes() == FILES[WORKER] and tff_package.has_worker()
    assert list(worker.parent.iterdir()) == [worker]


@pytest.mark.slow
def test_without_jax_a_program_that_knows_nothing_of_us_imports_tff_and_what_needs_jax_says_so():
    program = (
        "import sys, tff_algos.fed_avg.process\n"
        "tff = sys.modules['tensorflow_federated']\n"
        "try: print(tff.jax.computation)\n"
        "except ModuleNotFoundError as error: print(error.name)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-W", "ignore", "-c", program]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "jax\n", "")
