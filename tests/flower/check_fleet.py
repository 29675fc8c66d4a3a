"""`check_fleet.py <folder with run and app> <bin of Flower>`: trains the app with Flower's own processes.

Each node gets the train examples of a client of the run. What round 1 gives must be the mean of what clients trained
by plain gradient descent in TensorFlow, on the same examples in the same order. Then a round by TLS, with keys of nodes
and with secure aggregation, must give the same but for rounding. Every process is ended.
"""

import base64
import contextlib
import io
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import tensorflow as tf

from datasets.client_source import TRAIN
from launch.live.description import describe_arrays
from launch.live.join import load_examples
from launch.training.finished_run import read_finished_run
from models.saved_models import load_weights

FOLDER, BIN = (pathlib.Path(each).absolute() for each in sys.argv[1:3])
APP = FOLDER / "app"
NODES, ROUNDS, RATE, EPOCHS, SEED = 4, 2, 0.05, 2, 0  # as check.sh trains, and the app's defaults are
LIMIT_S = 900  # of a run of Flower
LARGEST_DIFFERENCE = 2e-6  # of the largest weight: sums of float32 in another order
CLIPPING_RANGE, LEVELS, MOST_EXAMPLES = 8.0, 2**22, 1000.0  # of secure aggregation, as the app has them
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")},
    "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
    "FLWR_HOME": str(FOLDER / "home"),
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
}


def write_nodes() -> None:
    """The examples of each client of the run, as stored, for a node."""
    run = read_finished_run(str(FOLDER / "run"))
    data = run.load_data()
    for client in data.clients:
        x, y = data.read_split(client, TRAIN)
        np.savez(FOLDER / f"node_{client.index}.npz", x=x, y=y)


def train_plainly() -> tuple[dict[str, np.ndarray], int]:
    """The weights after round 1, by TensorFlow alone, and all examples that they are of."""
    run = read_finished_run(str(FOLDER / "run"))
    spec, described = run.build_spec("float32"), describe_arrays(run.load_data())
    start = load_weights(spec, run.find_model_folders()["global"])
    model, total, sums = spec.build(), 0, [np.zeros(array.shape) for array in start]
    batch_size = run.config.batch_size
    for node in range(NODES):
        x, y, *_ = load_examples(str(FOLDER / f"node_{node}.npz"), described, f"{SEED}")
        x = x if spec.has_channel_axis else x[..., 0]
        model.set_weights(start)
        random = np.random.default_rng([SEED, 1])
        for order in [random.permutation(len(y)) for _ in range(EPOCHS)]:
            for first in range(0, len(y), batch_size):
                rows = order[first : first + batch_size]
                with tf.GradientTape() as tape:
                    outputs = model(x[rows], training=True)
                    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y[rows], outputs)
                    loss = tf.reduce_mean(losses)
                gradients = tape.gradient(loss, model.trainable_variables)
                for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
                    variable.assign_sub(RATE * gradient)
        sums = [total_of + len(y) * array for total_of, array in zip(sums, model.get_weights(), strict=True)]
        total += len(y)
    return {f"weight_{place}": array / total for place, array in enumerate(sums)}, total


@contextlib.contextmanager
def start(name: str, *command: str):
    """Runs a program, with whatever it starts, until the end of the block; its output goes into <name>.log."""
    with open(FOLDER / f"{name}.log", "w", encoding="utf-8") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=FOLDER, env=ENVIRONMENT, start_new_session=True)
    try:
        yield process
    finally:
        for each in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, each)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)


def find_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def call(*command: str, limit_s: float = 120) -> str:
    """What a program prints; it must succeed."""
    ended = subprocess.run(
        command, cwd=FOLDER, env=ENVIRONMENT, capture_output=True, text=True, timeout=limit_s, check=False
    )
    assert ended.returncode == 0, f"{' '.join(command)}:\n{ended.stdout}{ended.stderr}"
    return ended.stdout


def make_certificates() -> None:
    """As the app's README says, for 127.0.0.1."""
    names = FOLDER / "names.txt"
    names.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    new_key = ("-newkey", "rsa:2048", "-nodes")
    call("openssl", "req", "-x509", *new_key, "-subj", "/CN=fleet", "-keyout", "ca.key", "-out", "ca.crt")
    call("openssl", "req", *new_key, "-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.csr")
    signed = ("-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", names.name)
    call("openssl", "x509", "-req", *signed, "-out", "server.crt")
    for node in range(NODES):
        call("ssh-keygen", "-t", "ecdsa", "-b", "384", "-N", "", "-C", "", "-f", f"key_{node}")


def run_fleet(name: str, settings: str, is_private: bool) -> float:
    """Trains with a SuperLink and SuperNodes; the seconds that it took. Weights go into the folder <name>."""
    link_port, *node_ports = find_ports(1 + NODES)
    address = f"127.0.0.1:{link_port}"
    way = 'root-certificates = "{}"'.format(FOLDER / "ca.crt") if is_private else "insecure = true"
    home = FOLDER / "home"
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(
        f'[superlink]\ndefault = "fleet"\n\n[superlink.fleet]\naddress = "{address}"\n{way}\n'
    )
    link = [
        "flower-superlink",
        "--host",
        "127.0.0.1",
        "--port",
        f"{link_port}",
        "--disable-runtime-dependency-installation",
    ]
    if is_private:
        link += ["--ssl-ca-certfile", "ca.crt", "--ssl-certfile", "server.crt", "--ssl-keyfile", "server.key"]
        link += ["--enable-supernode-auth"]
    with contextlib.ExitStack() as stack:
        stack.enter_context(start(f"{name}_link", *link, *([] if is_private else ["--insecure"])))
        wait_for_port(link_port)
        for node, port in enumerate(node_ports):
            own = ["--insecure"]
            if is_private:
                call("flwr", "supernode", "register", f"key_{node}.pub", "fleet")
                own = ["--root-certificates", "ca.crt", "--auth-supernode-private-key", f"key_{node}"]
            own += ["--superlink", address, "--host", "127.0.0.1", "--port", f"{port}"]
            data = f'data="{FOLDER / f"node_{node}.npz"}"'
            stack.enter_context(start(f"{name}_{node}", "flower-supernode", *own, "--node-config", data))
        begun = time.monotonic()
        settings = f'least-nodes={NODES} output="{FOLDER / name}" {settings}'
        out = call("flwr", "run", str(APP), "fleet", "--stream", "--run-config", settings, limit_s=LIMIT_S)
        (FOLDER / f"{name}.log").write_text(out)
        return time.monotonic() - begun


def wait_for_port(port: int) -> None:
    for _ in range(600):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise AssertionError(f"nothing listens at 127.0.0.1:{port}")


def read_round(name: str, round_num: int) -> dict[str, np.ndarray]:
    with np.load(FOLDER / name / f"round_{round_num}.npz") as file:
        return dict(file)


def measure(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> float:
    """The largest difference of two models' weights."""
    assert found.keys() == expected.keys()
    return max(float(np.abs(found[name] - expected[name]).max()) for name in expected)


def main() -> None:
    write_nodes()
    expected, num_examples = train_plainly()
    largest = max(float(np.abs(array).max()) for array in expected.values())
    moved = measure(read_round_of_app(), expected)
    seconds = run_fleet("plain", f"rounds={ROUNDS} FedAdam.eta=0.02", is_private=False)
    difference = measure(read_round("plain", 1), expected)
    print(
        f"plain: {ROUNDS} rounds in {seconds:.0f} s; round 1 differs from TensorFlow's by {difference:.1e}, and moved"
    )
    print(f"       weights by up to {moved:.2f}; the largest is {largest:.2f}")
    assert difference <= LARGEST_DIFFERENCE * largest < moved / 100
    assert measure(read_round("plain", ROUNDS), expected) > moved / 100  # it goes on
    make_certificates()
    seconds = run_fleet("secure", "rounds=1 secure=true fraction-evaluate=0.0", is_private=True)
    difference = measure(read_round("secure", 1), expected)
    # Each node rounds to a level, and so much of the nodes' weights is in the sum.
    rounding = NODES * 2 * CLIPPING_RANGE / LEVELS / (num_examples / MOST_EXAMPLES)
    print(f"by TLS, keys of nodes and SecAgg+: 1 round in {seconds:.0f} s; differs by {difference:.1e}")
    assert 0 < difference <= rounding
    assert "Secure aggregation completed" in (FOLDER / "secure.log").read_text()


def read_round_of_app() -> dict[str, np.ndarray]:
    """The weights that the app begins with."""
    model = json.loads((APP / "federated_app" / "model.json").read_text())
    with np.load(io.BytesIO(base64.b64decode(model["start"]))) as file:
        return dict(file)


if __name__ == "__main__":
    main()
