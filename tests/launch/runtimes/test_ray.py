"""Rounds on Ray clusters of this machine: what is lost on the way changes no byte. `make test-ray` runs these."""

import os
import pathlib
import pickle
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import psutil
import pytest
import tree

from launch.runtimes.ray_cluster import is_ray_installed
from launch.settings.algorithms import ALGORITHMS
from launch.settings.run_config import build_run_config

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not is_ray_installed(), reason="Ray is not installed (make test-ray installs it apart)"),
]
ROOT = pathlib.Path(__file__).parents[3]
TOKEN = "0123456789abcdef" * 4
SHARES = 5
WAIT_S = 300.0


class TwoNodes:
    """A cluster whose second node comes and goes."""

    def __init__(self):
        from ray.cluster_utils import Cluster

        self.options = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "include_dashboard": False}
        self.cluster = Cluster(initialize_head=True, head_node_args=self.options)
        self.second = None

    def add(self):
        if self.second is None:
            self.second = self.cluster.add_node(num_cpus=1, node_ip_address="127.0.0.1")

    def kill_second(self):
        self.cluster.remove_node(self.second, allow_graceful=False)
        self.second = None

    def find_processes(self, of_second=False):
        """The processes of the cluster, or those that its second node has started."""
        if of_second:
            raylet = self.second.all_processes["raylet"][0].process.pid
            return psutil.Process(raylet).children(recursive=True)
        folder = self.cluster.head_node.get_session_dir_path()
        return [process for process in psutil.process_iter() if folder in " ".join(read_command(process))]


def read_command(process):
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def find_sharing(processes):
    """Those of the processes that compute a share now; Ray names a process by its task."""
    return [process for process in processes if "ray::run_share" in " ".join(read_command(process))]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", TOKEN)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_worker_niceness", "0")
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        two = TwoNodes()
        yield two
        two.cluster.shutdown()


@pytest.fixture(scope="module")
def ray_runtime(nodes, tmp_path_factory):
    """The cluster as TFF's default context."""
    from launch.runtimes.ray_runtime import run_ray

    with run_ray(str(tmp_path_factory.mktemp("ray") / "worker.log"), nodes.cluster.address, SHARES) as runtime:
        nodes.add()  # after we have joined: of two nodes on one machine, Ray joins either, and ours must not be killed
        yield runtime


@pytest.fixture
def compute_slowly(ray_runtime):
    """A function () -> bytes of the result of a round that takes each of ten clients a moment."""
    import tensorflow as tf
    import tensorflow_federated as tff

    @tff.tensorflow.computation(np.float32, np.float32)
    def work(value, weight):
        return tf.while_loop(lambda _: True, lambda x: tf.sin(x * weight) + 1e-3, [value], maximum_iterations=10_000)[0]

    @tff.federated_computation(tff.FederatedType(np.float32, tff.CLIENTS), tff.FederatedType(np.float32, tff.SERVER))
    def one_round(values, weight):
        worked = tff.federated_map(work, (values, tff.federated_broadcast(weight)))
        return tff.federated_sum(worked), tff.federated_mean(worked)

    return lambda: pickle.dumps(one_round(list(np.linspace(0.5, 5, 10, dtype=np.float32)), np.float32(1.7)))


def run_rounds(config, folder, num_rounds=3):
    """The states after each of the first rounds of a run, in the runtime that is TFF's default now."""
    from launch.training.federation import build_spec, load_federated_data
    from launch.training.training_run import build_process

    data = load_federated_data(config)
    process = build_process(config, build_spec(config, data.format), data)
    states = [process.initialize()]
    for _ in range(num_rounds):
        states.append(process.next(states[-1]).state)
    return states[1:]


def list_arrays(value):
    return [np.asarray(leaf) for leaf in tree.flatten(value) if leaf is not None]


SETTINGS = {
    **{name: {"algo": name, "smoke": True} for name in ALGORITHMS},
    "qat": {"algo": "fedavg", "smoke": True, "quantize": "qat"},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_three_rounds_are_those_of_tensorflow_in_this_process(ray_runtime, tmp_path, name):
    from launch.runtimes.in_process import run_in_process

    config = build_run_config({**SETTINGS[name], "client_dir": str(tmp_path / "shards")})
    on_ray = run_rounds(config, tmp_path)
    with run_in_process(str(tmp_path / "worker.log")):
        here = run_rounds(config, tmp_path)
    for states in zip(on_ray, here, strict=True):
        for found, expected in zip(*map(list_arrays, states), strict=True):
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
            if np.issubdtype(expected.dtype, np.floating):
                np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))
                finite = np.isfinite(expected)
                tolerance = 1e-5 * np.abs(expected[finite]).max(initial=0)
                np.testing.assert_allclose(found[finite], expected[finite], rtol=0, atol=tolerance)
            else:
                np.testing.assert_array_equal(found, expected)


def test_a_repeated_run_has_the_same_bytes_with_one_node_or_two(nodes, ray_runtime, tmp_path):
    nodes.add()
    config = build_run_config({"algo": "fedsikd", "smoke": True, "client_dir": str(tmp_path)})
    first = pickle.dumps(run_rounds(config, tmp_path))
    assert pickle.dumps(run_rounds(config, tmp_path)) == first
    nodes.kill_second()
    assert pickle.dumps(run_rounds(config, tmp_path)) == first
    nodes.add()


def test_a_node_without_the_files_gets_them_once(nodes, ray_runtime, tmp_path):
    """The path goes through a descriptor of this process, so nobody else finds anything there."""
    from launch.runtimes.in_process import run_in_process

    shards, copies = tmp_path / "shards", pathlib.Path(os.environ["XDG_CACHE_HOME"]) / "federated_suite/shard_copies"
    shards.mkdir()
    descriptor = os.open(shards, os.O_RDONLY)
    try:
        config = build_run_config({"algo": "fedavg", "smoke": True, "client_dir": f"/proc/self/fd/{descriptor}"})
        found = run_rounds(config, tmp_path)
        (digest,) = [path.name for path in shards.iterdir() if path.is_dir()]
        # What comes client by client has sums of its own beside each.
        copied = sorted(path for path in (copies / digest).glob("client_*") if path.suffix != ".sums")
        originals = sorted((shards / digest).glob("client_*"))
        assert [path.name for path in copied] == [path.name for path in originals]
        assert [path.read_bytes() for path in copied] == [path.read_bytes() for path in originals]
        written = [path.stat().st_mtime_ns for path in copied]
        run_rounds(config, tmp_path)
        assert [path.stat().st_mtime_ns for path in copied] == written
        with run_in_process(str(tmp_path / "worker.log")):
            expected = run_rounds(config, tmp_path)
    finally:
        os.close(descriptor)
    for state, other in zip(found, expected, strict=True):
        for array, wanted in zip(list_arrays(state), list_arrays(other), strict=True):
            np.testing.assert_allclose(array, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max(initial=0))


def do_in_mid_round(find_victims, act):
    """Starts a thread that acts on the first victim found; returns what will hold what it acted on."""
    acted = []

    def watch():
        deadline_s = time.monotonic() + WAIT_S
        while time.monotonic() < deadline_s and not acted:
            for victim in find_victims()[:1]:
                time.sleep(0.1)
                act(victim)
                acted.append(victim)
            time.sleep(0.05)

    threading.Thread(target=watch, daemon=True).start()
    return acted


def test_a_process_or_a_node_killed_in_a_round_changes_no_byte(nodes, compute_slowly):
    nodes.add()
    undisturbed = compute_slowly()
    # Ray does not keep the session's name in the title of a process that computes.
    raylets = [node.all_processes["raylet"][0].process.pid for node in nodes.cluster.list_all_nodes()]
    killed = do_in_mid_round(
        lambda: find_sharing([child for pid in raylets for child in psutil.Process(pid).children(recursive=True)]),
        lambda process: process.kill(),
    )
    assert compute_slowly() == undisturbed and killed
    killed = do_in_mid_round(lambda: find_sharing(nodes.find_processes(of_second=True)), lambda _: nodes.kill_second())
    assert compute_slowly() == undisturbed and killed
    nodes.add()


def test_a_node_that_joins_takes_shares(nodes, compute_slowly):
    nodes.add()
    undisturbed = compute_slowly()
    nodes.kill_second()
    assert compute_slowly() == undisturbed
    nodes.add()
    seen = do_in_mid_round(lambda: find_sharing(nodes.find_processes(of_second=True)), lambda process: None)
    deadline_s = time.monotonic() + WAIT_S
    while not seen and time.monotonic() < deadline_s:
        assert compute_slowly() == undisturbed
    assert seen


def test_ports_listen_on_the_loopback_interface_alone(nodes, ray_runtime):
    ours = {process.pid for process in nodes.find_processes()} | {os.getpid()}
    ours |= {child.pid for pid in ours for child in psutil.Process(pid).children(recursive=True)}
    listening = [
        each.laddr for each in psutil.net_connections("inet") if each.status == psutil.CONN_LISTEN and each.pid in ours
    ]
    assert listening
    assert {address.ip for address in listening} <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}


def join_elsewhere(address, tmp_path, **environment):
    """(exit code, output) of another process that joins a cluster."""
    code = (
        "import sys\nfrom launch.runtimes.ray_cluster import join_ray\n"
        f"with join_ray({address!r}, {str(tmp_path / 'ray.log')!r}, 30.0) as ray:"
        " print(sum(node['Alive'] for node in ray.nodes()))"
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={**kept, **environment}, capture_output=True, text=True, timeout=120
    )
    return ended.returncode, ended.stdout + ended.stderr


def test_only_who_has_the_token_is_let_in_and_a_cluster_that_does_not_answer_is_named(nodes, tmp_path):
    nodes.add()
    address = nodes.cluster.address
    exit_code, num_nodes = join_elsewhere(address, tmp_path, RAY_AUTH_TOKEN=TOKEN)
    # A node that another test has killed may still be counted.
    assert exit_code == 0 and int(num_nodes) >= 2
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nowhere = "{}:{}".format(*unused.getsockname())
    for asked, environment, words in (
        (address, {"RAY_AUTH_TOKEN": "f" * 64}, "it refuses our token"),
        (address, {"RAY_AUTH_MODE": "disabled"}, "it refuses our token"),
        (address, {"HOME": str(tmp_path)}, "it asks for a token"),
        (nowhere, {}, f"no Ray answers at {nowhere}"),
    ):
        exit_code, output = join_elsewhere(asked, tmp_path, **environment)
        assert exit_code == 1 and words in output.splitlines()[-1]
