"""TFF's package as it is installed here: without its worker, and without JAX until somebody asks for it.

TFF 0.87's wheel is tagged for x86-64 Linux, but all of it is Python (8 MB) except its worker (301 MB), which only
`--runtime=tff` runs. So `setup.sh` installs a smaller wheel made of it, on any machine, and `setup_tff.sh` adds the
worker to what is installed. In the smaller wheel

- a note takes the worker's place: TFF looks for the file when it is imported. That it cannot be run is said when TFF
  starts it;
- TFF's interface to JAX imports JAX when it is first used, no longer at the top of TFF. So JAX need not be installed,
  and one that is there works. A `.pth` file, or a package that stands in for JAX, would reach every program of the
  environment, and hide a real one.

This module is also a program, which runs before any package is installed:

    python tff_package.py get-small <folder>      writes the smaller wheel; prints the line of a lock for it
    python tff_package.py get-worker <folder>     puts the worker into the installed package
"""

import base64
import csv
import hashlib
import importlib.util
import io
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

LOCK = pathlib.Path(__file__).resolve().parents[2] / "requirements-tff.lock"
PLATFORM = "manylinux_2_31_x86_64"  # as the wheel is tagged; by itself pip would refuse it elsewhere
TAG = "py3-none-any"
GET_WORKER = "make setup-tff"
ABSENCE = "TFF's worker is not installed"

WORKER = "tensorflow_federated/data/worker_binary"
NOTE = f"{ABSENCE}: it is 301 MB, and only --runtime=tff needs it. To get it: {GET_WORKER}\n".encode()
JAX = "tensorflow_federated/python/core/environments/jax/__init__.py"
LATE_JAX = b'''"""Libraries for interacting with a JAX frontend and XLA backend; JAX is imported when it is used."""


def __getattr__(name):
  if name != 'computation':
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
  from tensorflow_federated.python.core.environments.jax_frontend import jax_computation

  return jax_computation.jax_computation
'''
FACTORY = "tensorflow_federated/python/core/impl/executor_stacks/executor_factory.py"
START = b"    port = portpicker.pick_unused_port()\n"
CHECK = f"""    if not os.access(binary_path, os.X_OK):
      raise RuntimeError("{ABSENCE}; to get it: {GET_WORKER}")
""".encode()


def shrink_wheel(wheel: str, folder: str) -> pathlib.Path:
    """Writes TFF's wheel without its worker, for any machine, into the folder; returns its path.

    Raises:
      KeyError, ValueError: the wheel is not as it is expected to be.
    """
    name, version = pathlib.Path(wheel).name.split("-")[:2]
    info = f"{name}-{version}.dist-info"
    small = pathlib.Path(folder) / f"{name}-{version}-{TAG}.whl"
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(small, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as written:
        changed = {
            WORKER: NOTE,
            JAX: LATE_JAX,
            FACTORY: _replace(whole.read(FACTORY), START, CHECK + START),
            f"{info}/WHEEL": _replace(whole.read(f"{info}/WHEEL"), f"py3-none-{PLATFORM}".encode(), TAG.encode()),
        }
        rows = list(csv.reader(io.StringIO(whole.read(f"{info}/RECORD").decode())))
        for row in rows:
            if row[0] == WORKER:
                row[1:] = "", ""
            elif row[0] in changed:
                digest = base64.urlsafe_b64encode(hashlib.sha256(changed[row[0]]).digest()).rstrip(b"=").decode()
                row[1:] = f"sha256={digest}", str(len(changed[row[0]]))
        listed = io.StringIO()
        csv.writer(listed, lineterminator="\n").writerows(rows)
        changed[f"{info}/RECORD"] = listed.getvalue().encode()
        for path in whole.namelist():
            written.writestr(path, changed.pop(path) if path in changed else whole.read(path))
    if changed:
        raise KeyError(f"{wheel} lacks {', '.join(changed)}")
    return small


def _replace(content: bytes, old: bytes, new: bytes) -> bytes:
    if content.count(old) != 1:
        raise ValueError(f"expected once: {old!r}")
    return content.replace(old, new)


def find_worker() -> pathlib.Path:
    """Where TFF's worker lies in this environment, or the note in its place."""
    package = importlib.util.find_spec("tensorflow_federated")  # found, not imported
    return pathlib.Path(package.origin).parents[1] / WORKER


def has_worker() -> bool:
    """Whether TFF's worker is installed."""
    return os.access(find_worker(), os.X_OK)


def add_worker(wheel: str) -> None:
    """Puts the worker of TFF's wheel into the installed package, whole or not at all.

    Raises:
      OSError: it cannot be written.
    """
    worker = find_worker()
    unfinished = worker.with_name(f"unfinished_{os.getpid()}")
    try:
        with zipfile.ZipFile(wheel) as whole, whole.open(WORKER) as packed, unfinished.open("wb") as written:
            shutil.copyfileobj(packed, written, 2**20)
        unfinished.chmod(0o755)
        unfinished.replace(worker)
    finally:
        unfinished.unlink(missing_ok=True)


def download_wheel(folder: str) -> str:
    """Puts TFF's wheel into the folder, if it is the one of the lock; returns its path. pip's words go to stderr.

    Raises:
      subprocess.CalledProcessError: pip failed.
    """
    options = ["--no-deps", "--require-hashes", "--only-binary=:all:", f"--platform={PLATFORM}", f"--dest={folder}"]
    command = ["-m", "pip", "--no-input", "--disable-pip-version-check", "download", *options, "-r", str(LOCK)]
    subprocess.run([sys.executable, *command], stdout=sys.stderr, check=True)
    [wheel] = pathlib.Path(folder).glob("tensorflow_federated-*.whl")
    return str(wheel)


def main(arguments: list[str]) -> int:
    """Runs the program; returns its exit code."""
    what, folder = arguments
    try:
        wheel = download_wheel(folder)
    except subprocess.CalledProcessError as error:
        return error.returncode
    if what == "get-worker":
        add_worker(wheel)
        return 0
    small = shrink_wheel(wheel, folder)
    digest = hashlib.sha256(small.read_bytes()).hexdigest()
    print(f"tensorflow-federated @ {small.resolve().as_uri()} --hash=sha256:{digest}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
