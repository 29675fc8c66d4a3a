"""The peer pfl-research: its environment's set-up, the orders to its processes, and that it learns what ours does."""

import dataclasses
import pathlib
import shutil
import sys

import numpy as np
import pytest
from small_formats import format_of
from stand_ins import run_script, write_program

from datasets.arrays import make_array_dataset
from datasets.federate import PartitionSettings, build_federated_data
from datasets.mnist import MNIST_FORMAT
from launch.benchmarks import pfl_research
from launch.benchmarks.workloads import PEERS, PFL, build_data, make_fed_avg, make_gpu_peers

ROOT = pathlib.Path(__file__).parents[2]
NUM_ROUNDS = 6
TINY = make_fed_avg("tiny", "image_student", num_clients=2, num_examples=3)
LOCK = """numpy==2 \\
    --hash=sha256:1
nvidia-x==1 \\
    --hash=sha256:2
    # via torch
torch==2.13.0 \\
    --hash=sha256:3
"""
FAKE_PYTHON = """#!/bin/sh
echo "$*" >>"$CALLS"
case "$*" in
    "-m venv"*) [ -z "$VENV_FAILS" ] && mkdir -p "$4/bin" && cp "$0" "$4/bin/python" ;;
    *requirements-pfl-cpu.lock) exit "$CPU_EXIT" ;;
    *pip*) echo "$PIP_SAYS"; exit "$PIP_EXIT" ;;
    *import*) exit "$IMPORT_EXIT" ;;
esac
"""

STAND_IN = """
import json, re, socket, sys, threading, os

settings = json.loads(sys.argv[-1])
found = re.search("--nproc-per-node=([0-9]+)", " ".join(sys.argv))
with open(settings["arrays"], "rb") as file:
    assert file.read(2) == b"PK"

def serve(rank):
    orders = socket.socket(socket.AF_UNIX)
    orders.connect(settings["socket"])
    channel = orders.makefile("rw")
    print("done", file=channel, flush=True)
    for number, line in enumerate(channel):
        if line == "accuracy\\n":
            print(0.25, file=channel, flush=True)
        elif number == 2:
            os._exit(0)
        else:
            os.write(1, f"rank {rank} {line.strip()}\\n".encode())  # at once, so that threads do not mix their lines
            print("done", file=channel, flush=True)

if {starts}:
    threads = [threading.Thread(target=serve, args=(rank,)) for rank in range(int(found[1]) if found else 1)]
    for thread in threads:
        thread.start()
"""


@pytest.fixture
def stand_in(monkeypatch, tmp_path):
    """A function that puts a program of ours in the place of pfl-research's Python; it ends in its third order."""

    def put(starts=True):
        (tmp_path / "stand_in.py").write_text(STAND_IN.replace("{starts}", str(starts)))
        program = f'#!/bin/sh\nexec {sys.executable} {tmp_path / "stand_in.py"} "$@"\n'
        write_program(tmp_path / "bin" / "python", program)
        monkeypatch.setattr(pfl_research, "PFL_ENVIRONMENT", tmp_path)

    return put


@pytest.mark.parametrize("num_processes", [1, 2])
def test_every_process_gets_the_orders_and_the_end_of_one_is_an_error(num_processes, stand_in, tmp_path, capfd):
    stand_in()
    with pfl_research.open_processes(
        TINY.build_config(str(tmp_path)), build_data(TINY, str(tmp_path)), num_processes
    ) as processes:
        processes.run_round()
        assert processes.compute_accuracy() == 0.25
        with pytest.raises(RuntimeError, match="a process of pfl-research has ended"):
            processes.run_round()
    if num_processes > 1:  # they meet on this machine alone
        assert "--master-addr=127.0.0.1" in pfl_research.build_command({}, num_processes)
    assert sorted(capfd.readouterr().out.splitlines()) == [f"rank {rank} round" for rank in range(num_processes)]


def test_a_program_that_ends_at_once_is_an_error(stand_in, tmp_path):
    stand_in(starts=False)
    with pytest.raises(RuntimeError, match="did not start"), pfl_research.open_rounds(TINY, str(tmp_path), 2):
        pytest.fail("it started")


@pytest.fixture
def run_setup(tmp_path):
    """A function (**environment) -> (exit code, stdout, stderr, calls of Python) that runs `setup_pfl.sh`."""
    project = tmp_path / "project"
    (project / "launch" / "benchmarks").mkdir(parents=True)
    shutil.copy(ROOT / "launch" / "benchmarks" / "setup_pfl.sh", project / "launch" / "benchmarks")
    shutil.copy(ROOT / "extra_environment.sh", project)
    write_program(project / ".venv" / "bin" / "python", FAKE_PYTHON)
    (project / "requirements-pfl.lock").write_text(LOCK)
    (project / "requirements-pfl-cpu.lock").write_text("torch==2.13.0+cpu\n")

    def run(**changes):
        environment = {
            "VENV_FAILS": "",
            "PIP_SAYS": "",
            "CPU_EXIT": "0",
            "PIP_EXIT": "0",
            "IMPORT_EXIT": "0",
            **changes,
        }
        script = project / "launch" / "benchmarks" / "setup_pfl.sh"
        *ended, calls = run_script(script, calls=tmp_path / "calls", **environment)
        return *ended, [line.split()[-1].rpartition("/")[2] for line in calls if " pip " in line]

    run.environment = project / ".venv-pfl"
    return run


def test_set_up_takes_the_build_for_the_cpu_alone_and_drops_what_only_cuda_needs(run_setup, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    run_setup.environment.symlink_to(tmp_path / "elsewhere")  # a link to another disk stays
    exit_code, _, errors, installed = run_setup()
    assert (exit_code, errors, installed) == (0, "", ["requirements-pfl-cpu.lock", "packages.lock"])
    assert (tmp_path / "elsewhere" / "packages.lock").read_text() == "numpy==2 \\\n    --hash=sha256:1\n"
    assert run_setup() == (0, "", "", []) and run_setup.environment.is_symlink()


def test_set_up_takes_the_whole_lock_where_there_is_no_such_build_and_if_it_is_asked_to(run_setup):
    done = run_setup.environment / "setup_done"
    peer = dataclasses.replace(make_gpu_peers("0", [], False)[PFL], set_up=("PFL_CUDA=1 make setup-pfl", done))
    assert run_setup()[0] == 0
    assert peer.explain_absence() == ".venv-pfl is not set up with CUDA; make it with: PFL_CUDA=1 make setup-pfl"
    exit_code, _, errors, installed = run_setup(PFL_CUDA="1")
    assert (exit_code, errors, installed) == (0, "", ["requirements-pfl.lock"])
    assert peer.explain_absence() is None
    assert run_setup(PFL_CUDA="1") == run_setup() == (0, "", "", [])
    shutil.rmtree(run_setup.environment)
    exit_code, printed, errors, installed = run_setup(CPU_EXIT="1")
    assert (exit_code, errors, installed) == (0, "", ["requirements-pfl-cpu.lock", "requirements-pfl.lock"])
    assert "with CUDA" in printed and done.exists()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"VENV_FAILS": "1"}, "cannot make .venv-pfl"),
        ({"CPU_EXIT": "1", "PIP_EXIT": "1", "PIP_SAYS": "NewConnectionError"}, "no network"),
        ({"PIP_EXIT": "1", "PIP_SAYS": "DO NOT MATCH THE HASHES"}, "is not the one of requirements-pfl.lock"),
        ({"PIP_EXIT": "1", "PIP_SAYS": "No space left on device"}, "the disk is full"),
        ({"IMPORT_EXIT": "1"}, "cannot be imported"),
    ],
)
def test_a_failed_set_up_is_one_line_and_does_not_count_as_done(changes, expected, run_setup):
    exit_code, _, errors, _ = run_setup(**changes)
    assert exit_code == 1 and expected in errors and errors.count("\n") == 1
    assert not (run_setup.environment / "setup_done").exists()


def test_the_locks_are_of_one_version():
    whole, cpu = ((ROOT / f"requirements-pfl{name}.lock").read_text() for name in ("", "-cpu"))
    assert "\npfl==0.6.0 " in whole and "\ntorch==2.13.0 " in whole and "\ntorch==2.13.0+cpu " in cpu


@pytest.fixture(scope="module")
def noisy_images(tmp_path_factory):
    """1,000 images of four clients and 200 to test on, of ten classes, in MNIST's format."""
    generator = np.random.default_rng(0)
    centers = generator.integers(0, 256, (10, 28, 28, 1))
    y = np.arange(1200, dtype=np.int32) % 10
    x = np.clip(centers[y] + generator.normal(0, 80, (1200, 28, 28, 1)), 0, 255).astype(np.uint8)
    arrays = make_array_dataset(
        "noisy",
        (x[:1000], y[:1000]),
        (x[1000:], y[1000:]),
        format_of(x[:1000], MNIST_FORMAT.class_names, MNIST_FORMAT.preprocessing),
    )
    settings = PartitionSettings("iid", 4, validation_fraction=0.0, test_fraction=0.0, seed=0)
    return build_federated_data(arrays, settings, str(tmp_path_factory.mktemp("noisy")))


@pytest.mark.slow
@pytest.mark.skipif(PEERS[PFL].explain_absence() is not None, reason=str(PEERS[PFL].explain_absence()))
@pytest.mark.parametrize("num_processes", [1, 2])
def test_it_learns_what_ours_does(num_processes, noisy_images, tff_runtime, tmp_path):
    """Ten classes of noisy images: six rounds lead both from chance to nearly all."""
    from launch.training.evaluation import build_evaluator
    from launch.training.federation import build_spec
    from launch.training.training_run import build_process

    config = make_fed_avg("noisy", "image_student", num_clients=4, num_examples=250).build_config(str(tmp_path))
    with pfl_research.open_processes(config, noisy_images, num_processes) as processes:
        before = processes.compute_accuracy()
        for _ in range(NUM_ROUNDS):
            processes.run_round()
        theirs = processes.compute_accuracy()
    spec = build_spec(config, noisy_images.format)
    process = build_process(config, spec, noisy_images)
    state = process.initialize()
    for _ in range(NUM_ROUNDS):
        state = process.next(state).state
    evaluate = build_evaluator(spec)
    ours_reached = evaluate(process.get_models(state)["global"], noisy_images.test_x, noisy_images.test_y).metric
    assert before < 0.4
    assert theirs > 0.9 and ours_reached > 0.9
