"""`python -m launch.doctor` says whether this machine can train, and how to fix what is missing.

It prints versions, cores, memory, disk, whether the runtime starts and answers, and where the data sets lie; one that
lies nowhere yet is marked with --, not ok.
`--clean` empties the caches of client files, of users' own files and of graphs instead. As every command, it removes
what killed ones left in the temporary folder. Exit codes: 0 all is well, 1 something must be fixed, 2 the request was
wrong, 130 stopped by Ctrl-C.
"""

import dataclasses
import importlib.metadata
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import psutil
from packaging.requirements import Requirement

from datasets.catalog import DATASET_NAMES, locate
from datasets.client_files import clean_client_dir, default_client_dir
from datasets.stored_source import clean_store_dir
from datasets.tff_database import clean_unpacked
from files.digests import clean_digest_records
from files.reading import describe
from launch.command_line import parse_flags, run_command
from launch.console.shown_text import format_count
from launch.console.stop_signals import leave
from launch.runs.columns import WORKER_LOG
from launch.runs.library_versions import find_version, name_library
from launch.runtimes.cached_graphs import clean_graph_dir
from launch.runtimes.device import DeviceError, use_device
from launch.runtimes.processor import count_cores
from launch.runtimes.registry import open_runtime
from launch.runtimes.runtime import READY_TIMEOUT_S, WorkerError, limit_time, quiet_tensorflow
from launch.runtimes.tff_package import ABSENCE, GET_WORKER, has_worker
from launch.settings.errors import FlagError
from launch.settings.runtimes import CPU, CPU_ONLY, DEVICES, IN_PROCESS, RUNTIMES, TFF
from tff_algos.settings.config_fields import setting

PROGRAM = "python -m launch.doctor"
DISTRIBUTION = "federated-suite"
MACHINES = {("Linux", "x86_64"), ("Linux", "aarch64"), ("Darwin", "arm64")}
MIN_MEMORY_BYTES = 2 * 1024**3
MIN_DISK_BYTES = 1024**3


class Finding(NamedTuple):
    """One line of the diagnosis.

    Attributes:
      topic: what was looked at.
      text: what was found.
      fix: what to do; "" if nothing must be done.
      is_missing: whether it is not there, which is no fault.
    """

    topic: str
    text: str
    fix: str = ""
    is_missing: bool = False


def check_python() -> Finding:
    """The Python version and the machine; there are locked packages for a few kinds of machines only."""
    text = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    if sys.version_info[:2] != (3, 11):
        return Finding(
            "python", text, "TensorFlow Federated 0.87 is locked for Python 3.11; install it, then make setup"
        )
    if (platform.system(), platform.machine()) not in MACHINES:
        return Finding("python", text, "expected Linux on x86_64 or aarch64, or macOS on arm64; on Windows use WSL")
    return Finding("python", text)


def check_libraries() -> Finding:
    """Versions of the installed libraries, compared with what `setup.py` asks for."""
    try:
        declared = [Requirement(line) for line in importlib.metadata.requires(DISTRIBUTION) or ()]
    except importlib.metadata.PackageNotFoundError:
        return Finding("libraries", f"{DISTRIBUTION} is not installed", "run make setup")
    found, wrong = [], []
    for requirement in declared:
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        name, version = name_library(requirement.name), find_version(requirement.name)
        found.append(f"{name} {version or 'missing'}")
        if version is None or version not in requirement.specifier:
            wrong.append(name)
    fix = f"wrong or missing: {', '.join(wrong)}; run make setup" if wrong else ""
    return Finding("libraries", ", ".join(found), fix)


def check_memory() -> Finding:
    """Cores that this process may use, and the machine's memory."""
    memory = psutil.virtual_memory()
    num_cores = count_cores()
    total, available = format_gigabytes(memory.total), format_gigabytes(memory.available)
    text = f"{format_count(num_cores, 'core')}, {total} memory, {available} available"
    fix = "close other programs, or train on fewer clients" if memory.available < MIN_MEMORY_BYTES else ""
    return Finding("machine", text, fix)


def check_disk(client_dir: str) -> Finding:
    """Free space where runs go (the current folder) and where client files go, and whether files can be made there."""
    free_bytes = {folder: shutil.disk_usage(find_existing(folder)).free for folder in (os.getcwd(), client_dir)}
    text = ", ".join(f"{format_gigabytes(free)} free for {folder}" for folder, free in free_bytes.items())
    for folder, fix in (
        (os.getcwd(), "start from another folder"),
        (client_dir, "name another folder by --client_dir"),
    ):
        problem = find_write_problem(folder)
        if problem:
            return Finding("disk", text, f"{folder}: cannot write there ({problem}); {fix}")
    if min(free_bytes.values()) < MIN_DISK_BYTES:
        return Finding("disk", text, f"make room, or empty the cache of client files: {PROGRAM} --clean")
    return Finding("disk", text)


def find_write_problem(folder: str) -> str | None:
    """Why no file can be made in a folder, or above it where it would be made; None if one can."""
    try:
        with tempfile.TemporaryFile(dir=find_existing(folder)):
            return None
    except OSError as error:
        return describe(error)


def find_existing(folder: str) -> str:
    """The folder, or the nearest one above it that exists."""
    folder = os.path.abspath(folder)
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    return folder


def format_gigabytes(num_bytes: float) -> str:
    return f"{num_bytes / 1024**3:.1f} GiB"


def check_runtime(name: str = IN_PROCESS, device: str = CPU, timeout_s: float = READY_TIMEOUT_S) -> Finding:
    """Whether a runtime computes 1 + 1 within `timeout_s` seconds."""
    topic = "runtime"
    if name == TFF and not has_worker():
        return Finding(topic, f"{ABSENCE}: 72 MB to download, 301 MB on disk", f"run {GET_WORKER}")
    with tempfile.TemporaryDirectory() as folder:
        log_path = os.path.join(folder, WORKER_LOG)
        try:
            with quiet_tensorflow(log_path):
                import tensorflow_federated  # noqa: F401  (now, so that its seconds do not count against the runtime)

                device = use_device(device)
            seconds = time_answer(name, device, log_path, timeout_s)
        except ImportError as error:
            return Finding(topic, f"TensorFlow Federated cannot be imported: {error}", "run make setup")
        except DeviceError as error:
            return Finding(topic, f"{name} on {device}", str(error))
        except WorkerError as error:
            fix = "run make setup again; memory may lack" if name != TFF else f"give --runtime={IN_PROCESS}"
            return Finding(topic, "\n".join(filter(None, (str(error), error.log_tail))), fix)
        except TimeoutError:
            return Finding(topic, f"no answer within {timeout_s:g} s", "see whether other programs use all cores")
    return Finding(topic, f"{name} on {device}: starts and answers in {seconds:.1f} s")


def time_answer(name: str, device: str, log_path: str, timeout_s: float) -> float:
    """Seconds until the runtime has computed. Raises WorkerError or TimeoutError."""
    start_s = time.monotonic()
    with (
        open_runtime(name, log_path, device, ready_timeout_s=timeout_s),
        limit_time(max(start_s + timeout_s - time.monotonic(), 0.1)),
    ):
        if compute_at_client() != 2:
            raise WorkerError("the runtime computes wrongly")
    return time.monotonic() - start_s


def compute_at_client() -> int:
    """1 + 1 at a client, summed over the clients."""
    import numpy as np
    import tensorflow_federated as tff

    add_one = tff.tensorflow.computation(lambda x: x + 1, np.int32)
    add_and_sum = tff.federated_computation(
        lambda values: tff.federated_sum(tff.federated_map(add_one, values)), tff.FederatedType(np.int32, tff.CLIENTS)
    )
    return int(add_and_sum([1]))


def check_data_dir(data_dir: str) -> Finding:
    """Whether the folder that the user names for data sets is one."""
    is_folder = os.path.isdir(os.path.expanduser(data_dir))
    fix = "" if is_folder else "no such folder; make it, or name another by --data_dir or the variable FL_DATA_DIR"
    return Finding("data folder", data_dir, fix)


def check_dataset(name: str, data_dir: str | None) -> Finding:
    """Where a data set lies. A missing one need not be fixed: most are downloaded by the first run."""
    location = locate(name, data_dir)
    return Finding(f"data: {name}", location.description, is_missing=not location.found)


def diagnose(data_dir: str | None, client_dir: str, runtime: str = IN_PROCESS, device: str = CPU) -> Iterator[Finding]:
    """All findings, the quick ones first."""
    yield check_python()
    yield check_libraries()
    yield check_memory()
    yield check_disk(client_dir)
    if data_dir is not None:
        yield check_data_dir(data_dir)
    for name in DATASET_NAMES:
        yield check_dataset(name, data_dir)
    yield check_runtime(runtime, device)


@dataclasses.dataclass(frozen=True)
class Flags:
    """The flags of this command."""

    data_dir: str = setting(lambda: os.environ.get("FL_DATA_DIR", ""), "Folder of the data sets' files.")
    client_dir: str = setting(default_client_dir, "Cache folder of client files.")
    runtime: str = setting(RUNTIMES[0], "Runtime to try, as in training.", choices=RUNTIMES)
    device: str = setting(DEVICES[0], "What it computes on.", choices=DEVICES)
    clean: bool = setting(
        False, "Empty the caches of client files, of examples of files and of graphs, and do nothing else."
    )


def parse_request(argv: Sequence[str]) -> Flags:
    """Reads the command line, without the program's name. Raises FlagError."""
    values = parse_flags(Flags, argv)
    if values.device != CPU and values.runtime in CPU_ONLY:
        raise FlagError(f"--device={values.device}: expected {CPU} with --runtime={values.runtime}")
    return values


def print_finding(finding: Finding) -> bool:
    """Prints a finding and what fixes it; returns whether all is well."""
    mark = "FIX" if finding.fix else "--" if finding.is_missing else "ok"
    print(f"{mark:5}{finding.topic:21}{finding.text}", flush=True)
    if finding.fix:
        print(f"{'':23}-> {finding.fix}", flush=True)
    return not finding.fix


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    return run_command(_run, "doctor", f"{PROGRAM} [--clean]", Flags, argv)


def _run(arguments: Sequence[str]) -> int:
    values = parse_request(arguments)
    client_dir = os.path.abspath(os.path.expanduser(values.client_dir))
    if values.clean:
        if os.path.exists(client_dir) and not os.path.isdir(client_dir):
            raise FlagError(f"--client_dir={values.client_dir}: expected a folder, found a file")
        print(f"freed {clean_client_dir(client_dir) / 1e6:.1f} MB in {client_dir}")
        if freed_bytes := clean_store_dir() + clean_unpacked() + clean_digest_records():
            print(f"freed {freed_bytes / 1e6:.1f} MB of the examples of files, in the cache folder")
        if freed_bytes := clean_graph_dir():
            print(f"freed {freed_bytes / 1e6:.1f} MB of traced graphs, in the cache folder")
        return 0
    findings = diagnose(values.data_dir or None, client_dir, values.runtime, values.device)
    # All are printed, also after one that must be fixed.
    all_well = [print_finding(finding) for finding in findings]
    return 0 if all(all_well) else 1


if __name__ == "__main__":
    leave(main())
