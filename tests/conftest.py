"""Fixtures for everyone: one runtime for the whole test run, and small federations on disk."""

import functools
import io
import os
import pathlib
import signal
import subprocess
import sys

import hypothesis
import numpy as np
import pytest
from PIL import Image
from small_formats import make_format

from datasets.example_format import ExampleFormat, Preprocessing
from datasets.federated_data import ClientFiles, DeviceProfiles, FederatedData
from launch.pages.plots import style
from launch.runs.run_records import resolve_experiment
from launch.runs.tables import write_json, write_table
from launch.settings.experiments import get_experiment
from launch.settings.run_config import flag_values

# As a run in this process has it, which must say so before TensorFlow's first device (see `launch.runtimes.device`).
os.environ["TF_OVERRIDE_GLOBAL_THREADPOOL"] = "1"
# No test runs what another has traced: some replace functions that graphs are made of.
os.environ["FL_KEEP_GRAPHS"] = "0"

# JAX, which TFF imports, would set 1, and a program that a test starts would print more than a user's.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

ROOT = pathlib.Path(__file__).parents[1]
NUM_CLASSES = 3
INPUT_SHAPE = (4,)

# The same commit passes or fails alike each time, on a busy machine too; HYPOTHESIS_PROFILE=search draws more, others.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=40)
hypothesis.settings.register_profile("search", deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def pytest_addoption(parser):
    parser.addoption("--worker", action="store_true", help="rounds are run by TFF's own worker, as in `make test-tff`")


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(config, items):
    """What needs TFF's worker is a test of `make test-tff`, and so is every round that runs on the worker there."""
    needing = {"can_close", "tff_runtime"} if config.getoption("worker") else {"can_close"}
    for item in items:
        if needing.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("tff")


def pytest_configure():
    """Signals end a test's program even where whoever started the tests ignores them, as a shell does behind `&`."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_make_parametrize_id(val, argname):
    """No bytes in a test's name: an archive's hold the time, and processes that share the tests must agree on names."""
    return argname if isinstance(val, bytes) else None


@functools.cache
def find_network_problem():
    """Why no network of its own can be had here for TFF's worker; "" if it can."""
    program = "from launch.runtimes.tff_worker_main import enter_own_network; enter_own_network()"
    tried = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    return tried.stderr.splitlines()[-1] if tried.returncode else ""


@pytest.fixture(scope="session")
def can_close(request):
    """Skips a test of TFF's worker without `--worker`, and where the kernel forbids what it takes to close one off.

    `make test-tff` installs it before: with `--worker` and without a worker the tests fail.
    """
    if not request.config.getoption("worker"):
        pytest.skip("it needs TFF's worker: make test-tff")
    if find_network_problem():
        pytest.skip(f"no network namespace can be had here: {find_network_problem()}")


@pytest.fixture(scope="session")
def tff_runtime(request, tmp_path_factory):
    """TFF's default context: this process or, with `--worker` and where there can be one, TFF's worker."""
    from launch.runtimes.in_process import run_in_process
    from launch.runtimes.tff_worker import run_tff

    run = run_tff if request.config.getoption("worker") and not find_network_problem() else run_in_process
    with run(str(tmp_path_factory.mktemp("worker") / "worker.log")) as runtime:
        yield runtime


@pytest.fixture(scope="session")
def build_federation():
    """A function (folder, sizes, seed) -> FederatedData of float32 examples of shape (4,) in 3 separable classes."""

    def build(folder, sizes, seed=0):
        rng = np.random.default_rng(seed)
        centers = 2.0 * np.eye(NUM_CLASSES, *INPUT_SHAPE, dtype=np.float32)
        members, counts = [], []
        for index, size in enumerate(sizes):
            y = rng.integers(0, NUM_CLASSES, size, dtype=np.int32)
            x = centers[y] + rng.normal(0, 0.3, (size, *INPUT_SHAPE)).astype(np.float32)
            path = str(folder / f"federation_{seed}_client_{index}")
            x.tofile(f"{path}.train.x")
            y.tofile(f"{path}.train.y")
            for split in ("validation", "test"):
                x[:0].tofile(f"{path}.{split}.x")
                y[:0].tofile(f"{path}.{split}.y")
            members.append(ClientFiles(index, f"client_{index}", path, size, 0, 0))
            counts.append(np.bincount(y, minlength=NUM_CLASSES))
        test_y = np.arange(30, dtype=np.int32) % NUM_CLASSES
        rate = np.arange(1.0, len(sizes) + 1)
        return FederatedData(
            dataset="blobs",
            format=ExampleFormat(INPUT_SHAPE, "float32", ("a", "b", "c"), Preprocessing(feature_range=(-4.0, 4.0))),
            clients=tuple(members),
            label_counts=np.stack(counts),
            test_x=centers[test_y],
            test_y=test_y,
            profiles=DeviceProfiles(100 * rate, 1000 * rate, 500 * rate, np.ones(len(sizes))),
        )

    return build


@pytest.fixture
def make_federation(build_federation, tmp_path):
    """A function (sizes, seed) -> FederatedData in the test's own folder, see `build_federation`."""
    return functools.partial(build_federation, tmp_path)


@pytest.fixture(scope="session")
def linear_spec():
    """A spec of one dense layer, (4 + 1) x 3 weights, whose teacher has a hidden layer."""
    return build_dense_spec("linear", (), teacher=build_dense_spec("teacher", (8,)))


@pytest.fixture
def descend():
    """A function (spec, weights, x, y, rate) -> weights after one full-batch step down the mean cross-entropy."""
    import tensorflow as tf

    def step(spec, weights, x, y, rate):
        model = spec.build()
        model.set_weights(weights)
        with tf.GradientTape() as tape:
            logits = model(spec.preprocess(x), training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
        gradients = tape.gradient(loss, model.trainable_variables)
        return [np.asarray(w - rate * g) for w, g in zip(weights, gradients, strict=True)]

    return step


@pytest.fixture
def relabel():
    """A function (data, clients) that turns each of these clients' train labels c into c + 1, on disk."""

    def turn(data, clients):
        for index in clients:
            client = data.clients[index]
            _, y = data.read_split(client, "train")
            ((y + 1) % NUM_CLASSES).astype(np.int32).tofile(f"{client.path}.train.y")

    return turn


@pytest.fixture
def break_client():
    """A function (data, client) that turns all train features of a client into NaN, on disk."""

    def fill(data, client):
        client = data.clients[client]
        np.full((client.num_train, *data.format.input_shape), np.nan, np.float32).tofile(f"{client.path}.train.x")

    return fill


@pytest.fixture
def write_run():
    """(runs_dir, experiment, seed, rounds) -> run folder, as `launch.train` leaves it.

    In round r the test accuracy is `accuracy + 0.01 r`, the loss 1 / r; `accuracy` may be a list, one a round.
    """

    def write(runs_dir, experiment, seed, rounds, accuracy=0.5, arguments=(), is_finished=True):
        config = resolve_experiment(get_experiment(experiment), [f"--seed={seed}", *arguments])
        run_dir = runs_dir / experiment / f"seed_{seed}"
        write_json(run_dir / "config.json", {"flags": flag_values(config), "data": {}})
        rows = []
        for round_num in range(1, rounds + 1):
            reached = accuracy[round_num - 1] if isinstance(accuracy, list) else accuracy + 0.01 * round_num
            row = {"round": round_num, "virtual_time_s": 60 * round_num, "num_clients": 40, "num_rejected": 0}
            row |= {"bytes_down": 3000000, "bytes_up": 3000000, "train_loss": 0.8 / round_num}
            row |= {"test_loss": 1 / round_num, "test_accuracy": reached, "client_test_accuracy": ""}
            row |= {"within_cluster_drift": 0.02 / round_num, "total_drift": 0.03 / round_num}
            rows.append(row)
        write_table(run_dir / "metrics.csv", list(rows[0]), [[str(value) for value in row.values()] for row in rows])
        if is_finished:
            write_json(run_dir / "summary.json", {"rounds": rounds, "final": {"test_accuracy": reached}})
        return run_dir

    return write


SUBSET = "cifar10 subset (20,000 + 5,000 images)"


@pytest.fixture
def write_archetype_run():
    """(runs_dir, experiment, accuracies by round, ...) -> run folder of FedCD or FedAvg, as `launch.train` leaves it.

    A client's accuracy lies by `swing` above the mean in one meta-archetype and below it in the other, in turns, and by
    `tilt` times its archetype's number above that. A round lasts 60 virtual seconds and `round_s` real ones; `models`
    are columns of FedCD, each a number or one a round; `dataset` is the name that the data had. Evaluation takes
    `evaluation_s` a round; None: the run is of an earlier version that did not note it.
    """

    def write(
        runs_dir, experiment, accuracies, seed=0, swing=0.0, round_s=1.0, mixed=0, tilt=0.0, dataset=SUBSET,
        evaluation_s=None, **models,
    ):  # fmt: skip
        flags = flag_values(resolve_experiment(get_experiment(experiment), [f"--seed={seed}"]))
        is_hierarchical = flags["partition"] == "hierarchical"
        groups = [int(is_hierarchical and number >= 5) for number in range(10 if is_hierarchical else 6)]
        of_clients = [number for number in range(len(groups)) for _ in range(flags["clients_per_archetype"])]
        names = [str(number) for number in range(len(groups))]
        archetypes = {"names": names, "meta_archetypes": groups, "of_clients": of_clients}
        run_dir = runs_dir / experiment / f"seed_{seed}"
        data = {"dataset": dataset, "archetypes": archetypes}
        write_json(run_dir / "config.json", {"flags": flags, "data": data})
        rows = []
        for i, accuracy in enumerate(accuracies):
            row = {"round": i + 1, "virtual_time_s": 60 * (i + 1), "bytes_down": 3000000, "bytes_up": 2000000}
            row |= {"train_loss": 1 / (i + 1), "test_loss": 2 / (i + 1), "test_accuracy": accuracy / 2}
            row |= {"client_test_accuracy": accuracy, "client_accuracy_change": 2 * swing if i else ""}
            row |= {"mixed_models": mixed[i] if isinstance(mixed, list) else mixed}
            for number, group in enumerate(groups):
                side = (1 if i % 2 else -1) * (1 if group else -1) * swing
                row[f"archetype_{number}_accuracy"] = accuracy + side + tilt * number
            row |= {name: value[i] if isinstance(value, list) else value for name, value in models.items()}
            rows.append(row)
        write_table(run_dir / "metrics.csv", list(rows[0]), [[str(value) for value in row.values()] for row in rows])
        timed = {"round_s": round_s} | ({} if evaluation_s is None else {"evaluation_s": evaluation_s})
        seconds = [[str(value) for value in (row["round"], *timed.values())] for row in rows]
        write_table(run_dir / "timing.csv", ["round", *timed], seconds)
        write_json(run_dir / "summary.json", {"rounds": len(rows)})
        return run_dir

    return write


@pytest.fixture
def figures(monkeypatch):
    """The figures drawn, by file name, whichever module draws them; they are saved coarsely, which is quick."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    replace, save, names, drawn = style.replace_whole, FigureCanvasAgg.print_png, [], {}

    def note_name(path):
        names.append(path.name)
        return replace(path)

    def keep(canvas, file, **keywords):
        if not isinstance(file, io.BytesIO):  # as where only a layout is asked for
            drawn[names[-1]] = canvas.figure
        return save(canvas, file, **keywords)

    monkeypatch.setitem(style.STYLE, "savefig.dpi", 50)
    monkeypatch.setattr(style, "replace_whole", note_name)
    monkeypatch.setattr(FigureCanvasAgg, "print_png", keep)
    return drawn


@pytest.fixture
def sketches(figures, monkeypatch):
    """As `figures`, but nothing is laid out and painted, which takes nearly all of the time: the files are blank."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    monkeypatch.setattr(FigureCanvasAgg, "draw", lambda canvas: canvas.get_renderer())
    monkeypatch.setattr(ConstrainedLayoutEngine, "execute", lambda engine, figure: None)
    return figures


@pytest.fixture
def assert_is_picture():
    """(path) checks that there is a PNG file, and nothing unfinished beside it."""

    def check(path):
        with Image.open(path) as image:
            assert image.format == "PNG"
            assert min(image.size) > 100
        assert not [other for other in path.parent.iterdir() if other.name.startswith(".")]

    return check


def build_dense_spec(name, hidden, teacher=None):
    from models.model_spec import ModelSpec

    def build():
        import tensorflow as tf

        layers = [tf.keras.layers.Dense(units, activation="relu") for units in hidden]
        return tf.keras.Sequential([tf.keras.Input(INPUT_SHAPE), *layers, tf.keras.layers.Dense(NUM_CLASSES)])

    return ModelSpec(name, build, make_format(INPUT_SHAPE, "float32", NUM_CLASSES), teacher=teacher)
