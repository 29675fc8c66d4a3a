"""Fixtures that write run folders without training, with made-up numbers or with models as they start, and that look at
what is drawn of them.
"""

import contextlib
import os
import pathlib
import types

import psutil
import pytest
from PIL import Image

from launch.plots import style
from launch.runs.run_description import describe_data
from launch.runs.run_records import resolve_experiment
from launch.runs.tables import write_json, write_table
from launch.settings.experiments import get_experiment
from launch.settings.run_config import build_run_config, flag_values

LISTEN = "0A"  # the state's number in /proc/net/tcp


@pytest.fixture
def without_linux():
    """A folder for the PYTHONPATH of a program, which then finds nothing of Linux that macOS lacks."""
    return str(pathlib.Path(__file__).with_name("without_linux"))


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


@pytest.fixture(scope="module")
def no_plots():
    """Runs in this process draw no plots, which take a third of a small run and have tests of their own."""
    from launch.plots import run_plots

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_plots, "draw_run", lambda *given: [])
        yield


@pytest.fixture(scope="module")
def convert_here():
    """Exports convert in this process, which has imported TensorFlow, and time a file for a moment alone."""
    from launch.tflite.converter_main import answer_request
    from launch.tflite.converter_process import ConverterProcess

    process = types.SimpleNamespace(measure_memory=lambda: 0, ask=lambda request, *bounds: answer_request(request))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "launch.export.run_converter_process",
            lambda folder, log_path: contextlib.nullcontext(ConverterProcess(process, folder)),
        )
        patch.setattr("launch.tflite.exported_file.TIMED_RUNS", 5)
        yield


@pytest.fixture(scope="session")
def write_finished_run():
    """(run folder, **flags) -> the run folder, finished, on digits, with the models as they start.

    `clients.csv` gives every client the model `global`; FedSiKD has one teacher, `teacher_0`.
    """

    def write(run_dir, **flags):
        from launch.training.federation import build_spec, load_federated_data
        from models.saved_models import save_model
        from tff_algos.weights import initialize_weights

        shards = str(run_dir.parent / "shards")
        config = build_run_config({"num_clients": 3, "rounds": 1, "client_dir": shards, **flags})
        data = load_federated_data(config)
        described = describe_data(data)
        spec = build_spec(config, described)
        models = {"global": spec} | ({"teacher_0": spec.teacher} if config.algo == "fedsikd" else {})
        for name, model_spec in models.items():
            save_model(model_spec, initialize_weights(model_spec, config.seed), run_dir / "models" / name)
        write_json(run_dir / "config.json", {"flags": flag_values(config), "data": described})
        own = {"teachers_test_accuracy": {"teacher_0": 0.1}} if "teacher_0" in models else {}
        write_json(run_dir / "summary.json", {"rounds": config.rounds, config.algo: own})
        clients = [[client.name, str(client.num_train), "global"] for client in data.clients]
        write_table(run_dir / "clients.csv", ["client", "num_train", "model"], clients)
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

    def keep(canvas, *arguments, **keywords):
        drawn[names[-1]] = canvas.figure
        return save(canvas, *arguments, **keywords)

    monkeypatch.setitem(style.STYLE, "savefig.dpi", 50)
    monkeypatch.setattr(style, "replace_whole", note_name)
    monkeypatch.setattr(FigureCanvasAgg, "print_png", keep)
    return drawn


@pytest.fixture
def assert_is_picture():
    """(path) checks that there is a PNG file, and nothing unfinished beside it."""

    def check(path):
        with Image.open(path) as image:
            assert image.format == "PNG"
            assert min(image.size) > 100
        assert not [other for other in path.parent.iterdir() if other.name.startswith(".")]

    return check


@pytest.fixture
def find_listening():
    """A function (pid) -> [(pid, port)] of the process and its descendants that listen in this machine's network."""

    def find(pid):
        ports = {}
        for table in ("/proc/self/net/tcp", "/proc/self/net/tcp6"):
            for line in pathlib.Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTEN:
                    ports[f"socket:[{fields[9]}]"] = int(fields[1].rpartition(":")[2], 16)
        root = psutil.Process(pid)
        return [
            (process.pid, ports[target])
            for process in (root, *root.children(recursive=True))
            for target in _read_links(pathlib.Path(f"/proc/{process.pid}/fd"))
            if target in ports
        ]

    return find


def _read_links(folder):
    targets = []
    for link in folder.iterdir():
        try:
            targets.append(os.readlink(link))
        except FileNotFoundError:  # closed meanwhile
            continue
    return targets


class StandInRun:
    """A run that has ended with this exit code."""

    def __init__(self, exit_code):
        self._exit_code = exit_code

    def read_output(self):
        return []

    def poll(self):
        return self._exit_code

    def interrupt(self):
        raise AssertionError("it has ended")

    kill = interrupt


class StandInEngine:
    """Makes runs at once and one at a time, by a function from tasks to exit codes."""

    slots, keeps_logs = 1, False

    def __init__(self, train):
        self._train = train

    def start(self, task, slot):
        return StandInRun(self._train(task))

    def close(self):
        pass


@pytest.fixture
def engine_of():
    """(train) -> an engine that makes a run by calling `train(task)`, which returns its exit code."""
    return StandInEngine
