"""The peers of the benchmark: their processes, what they leave behind (nothing), and the arithmetic of the raw loop."""

import contextlib
import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from unittest import mock

import numpy as np
import psutil
import pytest
from small_formats import format_of
from stand_ins import run_script, write_program

from datasets.arrays import make_array_dataset
from datasets.federate import PartitionSettings, build_federated_data
from datasets.mnist import MNIST_FORMAT
from launch.benchmarks import flower_simulation, pfl_research
from launch.benchmarks.cost import Cost, read_cost, subtract
from launch.benchmarks.peer_process import PeerError, PeerProcess, _set_environment
from launch.benchmarks.workloads import FLOWER, PEERS, PFL, Peer, build_data, make_fed_avg, make_gpu_peers

TINY = make_fed_avg("tiny", "image_student", num_clients=3, num_examples=10, batch_size=4, epochs=2)

STAND_IN = """
import contextlib, os, subprocess, sys

@contextlib.contextmanager
def open_rounds(workload, folder, fail_in_round=0, exit_in_round=0):
    worker = subprocess.Popen(["sleep", "1000"], stdout=sys.stdout)  # like stock TFF's: it inherits and stays
    with open(os.path.join(folder, "worker_pid"), "w") as file:
        file.write(str(worker.pid))
    rounds = []

    def run_round():
        rounds.append(1)
        if len(rounds) == fail_in_round:
            raise RuntimeError("no\\nluck")
        if len(rounds) == exit_in_round:
            print("last words", flush=True)
            os._exit(3)

    yield run_round
"""


@pytest.fixture
def start_stand_in(monkeypatch, tmp_path):
    """A function that starts `stand_in`, a peer with a worker that outlives it."""
    (tmp_path / "stand_in_peer.py").write_text(textwrap.dedent(STAND_IN))
    monkeypatch.syspath_prepend(tmp_path)

    def start(**options):
        return PeerProcess("stand_in", Peer("stand_in_peer", "a stand-in", options=options), TINY, str(tmp_path))

    return start


def wait_until_gone(pid, limit_s=10.0):
    """Whether the process ends within the limit; one that nobody has waited for counts as gone."""
    deadline = time.monotonic() + limit_s
    with contextlib.suppress(psutil.NoSuchProcess):
        while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
    return True


def read_worker_pid(folder):
    return int((folder / "worker_pid").read_text())


def test_a_peer_runs_rounds_and_its_worker_ends_with_it(start_stand_in, tmp_path):
    with start_stand_in() as peer:
        peer.wait_until_ready()
        assert peer.run_round() >= Cost(0, 0)
        assert peer.run_round() >= Cost(0, 0)
        worker_pid = read_worker_pid(tmp_path)
        assert psutil.pid_exists(worker_pid)
    assert wait_until_gone(worker_pid)
    peer.close()


def test_a_cost_counts_waits_of_all_threads_and_pages_of_processes_below():
    """A child touches 4,000 pages, and a thread of its, which has to live to be counted, stops 50 times."""
    child = (
        "import threading, time; input(); pages = bytearray(4096 * 4000); done = threading.Event()\n"
        "stop_often = lambda: ([time.sleep(0.0001) for _ in range(50)], done.set(), time.sleep(60))\n"
        "threading.Thread(target=stop_often, daemon=True).start(); done.wait(); print(flush=True); input()"
    )
    with subprocess.Popen([sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        before = read_cost(0.0)
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()
        cost = subtract(read_cost(2.0), before)
        process.stdin.write(b"\n")
    assert cost.wall_s == 2.0 and cost.cpu_s >= cost.system_s - 1e-6 >= -1e-6
    assert cost.memory_bytes > 4096 * 4000
    if psutil.LINUX:
        assert cost.switches >= 50 and cost.faults >= 4000


@pytest.mark.parametrize(
    ("options", "raised"),
    [
        ({}, pytest.raises(KeyboardInterrupt)),
        ({"fail_in_round": 2}, pytest.raises(PeerError, match=r"^stand_in: RuntimeError: no luck$")),
        ({"exit_in_round": 2}, pytest.raises(PeerError, match="its process ended; its log ends: last words")),
    ],
)
def test_an_interrupt_an_error_in_a_round_and_an_early_end_leave_no_worker(start_stand_in, tmp_path, options, raised):
    with raised, start_stand_in(**options) as peer:
        peer.wait_until_ready()
        for _ in range(2):
            peer.run_round()
        raise KeyboardInterrupt
    assert wait_until_gone(read_worker_pid(tmp_path))


def test_when_the_benchmark_is_killed_nothing_remains(start_stand_in, tmp_path):
    code = """
        import sys
        from launch.benchmarks import peer_process
        from launch.benchmarks.workloads import Peer, Workload
        sys.path.insert(0, sys.argv[1])
        peer = peer_process.PeerProcess("stand_in", Peer("stand_in_peer", ""), Workload("", "", {}), sys.argv[1])
        peer.wait_until_ready()
        print(peer._process.pid, flush=True)
        input()
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        peer_pid = int(parent.stdout.readline())
        worker_pid = read_worker_pid(tmp_path)
        assert psutil.pid_exists(worker_pid)
        os.kill(parent.pid, signal.SIGKILL)
    assert wait_until_gone(peer_pid)
    assert wait_until_gone(worker_pid)


def test_threads_and_gpus_of_the_user_reach_no_peer_but_those_that_it_is_given():
    outside = {"TF_NUM_INTRAOP_THREADS": "7", "MALLOC_ARENA_MAX": "16", "CUDA_VISIBLE_DEVICES": "3"}
    for peer, inside in (
        (PEERS["stock_tff"], {"CUDA_VISIBLE_DEVICES": "-1"}),
        (PEERS["raw_loop"], {"CUDA_VISIBLE_DEVICES": "-1", "TF_NUM_INTRAOP_THREADS": "1"}),
        (Peer("", "", {"CUDA_VISIBLE_DEVICES": "3"}), {"CUDA_VISIBLE_DEVICES": "3"}),
    ):
        with mock.patch.dict(os.environ, outside):
            with _set_environment(peer):
                assert {name: os.environ[name] for name in outside if name in os.environ} == inside
            assert os.environ["TF_NUM_INTRAOP_THREADS"] == "7"


def train_with_keras(weights, x, y, seed):
    """The reference: the same batches of 4 in two epochs with Keras's own Adam, one eager step after another."""
    import tensorflow as tf

    from models.image_cnn import build_image_student

    model = build_image_student((28, 28, 1), 10)
    model.set_weights(weights)
    optimizer = tf.keras.optimizers.legacy.Adam(1e-3, epsilon=1e-7)
    loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    for epoch in range(2):
        order = tf.random.experimental.stateless_shuffle(
            np.arange(len(y)), seed + np.array([0, epoch], np.int32)
        ).numpy()
        for start in range(0, len(y), 4):
            batch = order[start : start + 4]
            with tf.GradientTape() as tape:
                loss = loss_fn(y[batch], model(x[batch] / np.float32(255), training=True))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return model.get_weights()


@pytest.mark.slow
def test_raw_loop_trains_as_keras_does_and_averages_over_its_processes(tmp_path):
    """Batches of 4, 4 and 2 in two epochs: a partial last batch, and moments that outlive the epoch."""
    from launch.benchmarks import raw_loop

    data = build_data(TINY, str(tmp_path))
    with raw_loop.open_rounds(TINY, str(tmp_path), num_processes=2) as run_round:
        averages = run_round()
    initial_weights, _ = raw_loop.build_client_training(TINY.build_config(str(tmp_path)), data)
    trained = [
        train_with_keras(initial_weights, *data.read_split(client, "train"), np.array([1, client.index], np.int32))
        for client in data.clients
    ]
    for average, *clients in zip(averages, *trained, strict=True):
        np.testing.assert_allclose(average, np.mean(clients, axis=0), atol=2e-5)
    assert any(
        not np.allclose(average, start, atol=1e-4) for average, start in zip(averages, initial_weights, strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize("augment", ["none", "crop_flip"])
def test_the_raw_loop_trains_as_the_authors_of_fedcd_do(augment, tmp_path):
    """One step with momentum and weight decay, BatchNorm's statistics included, as our local training does it.

    With augmentation both draw it from the same seed of the step. The order of the examples has another, so they are
    one image eight times.
    """
    import tensorflow as tf

    from launch.benchmarks import raw_loop
    from launch.training.federation import build_spec
    from tff_algos.client.local_training import train_locally

    sgd = {"optimizer": "sgd", "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.5, "batch_size": 8}
    workload = make_fed_avg("tiny", "image_cnn10", 1, 8, "cifar10", width=0.1, augment=augment, **sgd)
    config, data = workload.build_config(str(tmp_path)), build_data(workload, str(tmp_path))
    spec = build_spec(config, data.format)
    assert (spec.augment is None) == (augment == "none")
    x = np.random.default_rng(0).integers(0, 256, (8, 32, 32, 3), np.uint8)
    y = np.arange(8, dtype=np.int32)
    if augment != "none":
        x, y = np.repeat(x[:1], 8, axis=0), np.repeat(y[:1], 8)
    weights, train = raw_loop.build_client_training(config, data)
    fold_in = tf.random.experimental.stateless_fold_in
    # Of our local training with the seed below.
    step_seed = fold_in(fold_in(tf.constant([3, 4]), 0), 0)
    # The raw loop adds the step, from 1 on, and the epoch.
    seed = step_seed - tf.constant([1, 0])
    trained = train([tf.constant(w) for w in weights], tf.constant(x), tf.constant(y), seed)
    result = train_locally(
        spec,
        config.algorithm.training,
        tuple(map(tf.constant, weights)),
        tf.constant(x),
        tf.constant(y),
        tf.constant([3, 4]),
        tf.constant(0.1),
    )
    for before, after, delta in zip(weights, trained, result.weights_delta, strict=True):
        np.testing.assert_allclose(after - before, delta, atol=2e-5)


ROOT = pathlib.Path(__file__).parents[2]
NUM_ROUNDS = 6
SMALLEST = make_fed_avg("tiny", "image_student", num_clients=2, num_examples=3)
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

FAKE_PFL = """
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
    """A function that puts a program of ours in the place of the peers' Python; it ends in its third order."""

    def put(starts=True):
        (tmp_path / "stand_in.py").write_text(FAKE_PFL.replace("{starts}", str(starts)))
        program = f'#!/bin/sh\nexec {sys.executable} {tmp_path / "stand_in.py"} "$@"\n'
        write_program(tmp_path / "bin" / "python", program)
        monkeypatch.setattr(pfl_research, "PFL_ENVIRONMENT", tmp_path)
        monkeypatch.setattr(flower_simulation, "FLOWER_ENVIRONMENT", tmp_path)

    return put


@pytest.mark.parametrize("num_processes", [1, 2])
def test_every_process_gets_the_orders_and_the_end_of_one_is_an_error(num_processes, stand_in, tmp_path, capfd):
    stand_in()
    with pfl_research.open_processes(
        SMALLEST.build_config(str(tmp_path)), build_data(SMALLEST, str(tmp_path)), num_processes
    ) as processes:
        processes.run_round()
        assert processes.compute_accuracy() == 0.25
        with pytest.raises(RuntimeError, match="a process of pfl-research has ended"):
            processes.run_round()
    # They meet on this machine alone.
    if num_processes > 1:
        assert "--master-addr=127.0.0.1" in pfl_research.build_command({}, num_processes)
    assert sorted(capfd.readouterr().out.splitlines()) == [f"rank {rank} round" for rank in range(num_processes)]


def test_flower_is_one_program_that_is_asked_in_the_same_way(stand_in, tmp_path):
    stand_in()
    config, data = SMALLEST.build_config(str(tmp_path)), build_data(SMALLEST, str(tmp_path))
    with flower_simulation.open_processes(config, data) as processes:
        processes.run_round()
        assert processes.compute_accuracy() == 0.25
        with pytest.raises(RuntimeError, match="a process of flower has ended"):
            processes.run_round()


def test_a_program_that_ends_at_once_is_an_error(stand_in, tmp_path):
    stand_in(starts=False)
    with pytest.raises(RuntimeError, match="did not start"), pfl_research.open_rounds(SMALLEST, str(tmp_path), 2):
        pytest.fail("it started")


@pytest.fixture
def run_setup(tmp_path):
    """A function (**environment) -> (exit code, stdout, stderr, calls of Python) that runs `setup_torch.sh pfl`."""
    project = tmp_path / "project"
    (project / "launch" / "benchmarks").mkdir(parents=True)
    shutil.copy(ROOT / "launch" / "benchmarks" / "setup_torch.sh", project / "launch" / "benchmarks")
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
        script = project / "launch" / "benchmarks" / "setup_torch.sh"
        *ended, calls = run_script(script, "pfl", calls=tmp_path / "calls", **environment)
        return *ended, [line.split()[-1].rpartition("/")[2] for line in calls if " pip " in line]

    run.environment = project / ".venv-pfl"
    return run


def test_set_up_takes_the_build_for_the_cpu_alone_and_drops_what_only_cuda_needs(run_setup, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    # A link to another disk stays.
    run_setup.environment.symlink_to(tmp_path / "elsewhere")
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
    names = ("pfl", "flower-simulation", "pfl-cpu")
    pfl, flower, cpu = ((ROOT / f"requirements-{name}.lock").read_text() for name in names)
    assert "\npfl==0.6.0 " in pfl and "\nflwr==1.42.0 " in flower and "\ntorch==2.13.0+cpu " in cpu
    assert all("\ntorch==2.13.0 " in lock for lock in (pfl, flower))


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
    settings = PartitionSettings(partition="iid", num_clients=4, validation_fraction=0.0, test_fraction=0.0, seed=0)
    return build_federated_data(arrays, settings, str(tmp_path_factory.mktemp("noisy")))


def needs(name, *arguments):
    reason = PEERS[name].explain_absence()
    return pytest.param(name, arguments, marks=pytest.mark.skipif(reason is not None, reason=str(reason)))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "arguments"), [needs(PFL, 1), needs(PFL, 2), needs(FLOWER)])
def test_it_learns_what_ours_does(name, arguments, noisy_images, tff_runtime, tmp_path):
    """Ten classes of noisy images: six rounds lead both from chance to nearly all."""
    from launch.training.evaluation import build_evaluator
    from launch.training.federation import build_spec
    from launch.training.training_run import build_process

    config = make_fed_avg("noisy", "image_student", num_clients=4, num_examples=250).build_config(str(tmp_path))
    peer = {PFL: pfl_research, FLOWER: flower_simulation}[name]
    with peer.open_processes(config, noisy_images, *arguments) as processes:
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
    # Chance is 0.1; noise of the start may lift it a little.
    assert before < 0.4
    assert theirs > 0.9 and ours_reached > 0.9
