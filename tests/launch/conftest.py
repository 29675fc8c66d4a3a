"""Fixtures that write run folders without training, with made-up numbers or with models as they start, and that look at
what is drawn of them.
"""

import contextlib
import json
import os
import pathlib
import types

import psutil
import pytest

from launch.runs.run_description import describe_data
from launch.runs.tables import write_json, write_table
from launch.settings.flags import FlagError, parse_config
from launch.settings.run_config import build_run_config, flag_values
from launch.settings.typed_places import remember_places

LISTEN = "0A"  # the state's number in /proc/net/tcp


@pytest.fixture
def without_linux():
    """A folder for the PYTHONPATH of a program, which then finds nothing of Linux that macOS lacks."""
    return str(pathlib.Path(__file__).with_name("without_linux"))


@pytest.fixture
def train_here(tmp_path, monkeypatch, capsys):
    """(arguments of `launch.train`) -> (exit code, stdout, stderr) of a run here, with a cache of its own."""
    import launch.train

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return lambda *arguments: (launch.train.main(arguments), *capsys.readouterr())


@pytest.fixture(scope="module")
def no_plots():
    """Runs in this process draw no plots, which take a third of a small run and have tests of their own."""
    from launch.pages.plots import run_plots

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_plots, "draw_run", lambda *given: [])
        yield


@pytest.fixture(scope="module")
def convert_here():
    """Exports convert in this process, which has imported TensorFlow, and time a file for a moment alone."""
    from launch.tflite.converter_process import ConverterProcess, answer_request

    process = types.SimpleNamespace(measure_memory=lambda: 0, ask=lambda request, *bounds: answer_request(request))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "launch.export.run_converter_process",
            lambda folder, log_path: contextlib.nullcontext(ConverterProcess(process, folder)),
        )
        patch.setattr("launch.tflite.export_measurement.TIMED_RUNS", 5)
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
        spec = build_spec(config, data.format)
        models = {"global": spec} | ({"teacher_0": spec.teacher} if config.algo == "fedsikd" else {})
        for name, model_spec in models.items():
            save_model(model_spec, initialize_weights(model_spec, config.seed), run_dir / "models" / name)
        write_json(run_dir / "config.json", {"flags": flag_values(config), "data": described})
        remember_places(flag_values(config))
        own = {"teachers_test_accuracy": {"teacher_0": 0.1}} if "teacher_0" in models else {}
        write_json(run_dir / "summary.json", {"rounds": config.rounds, config.algo: own})
        clients = [[client.name, str(client.num_train), "global"] for client in data.clients]
        write_table(run_dir / "clients.csv", ["client", "num_train", "model"], clients)
        return run_dir

    return write


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


@pytest.fixture
def refuse():
    """(arguments, function that reads them) -> the one line that they are answered with."""

    def read(arguments, function=parse_config):
        with pytest.raises(FlagError) as caught:
            function(arguments.split() if isinstance(arguments, str) else arguments)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    return read


@pytest.fixture
def store_run(tmp_path):
    """(flags, those that its version did not know, further ones) -> the arguments that resume a run with them."""

    def store(values, lacking=(), **further):
        flags = flag_values(build_run_config({"algo": "fedavg", **values})) | further
        stored = {name: value for name, value in flags.items() if name not in lacking}
        (tmp_path / "run").mkdir(exist_ok=True)
        (tmp_path / "run" / "config.json").write_text(json.dumps({"flags": stored, "data": {}}))
        return ["--resume", f"--run_dir={tmp_path / 'run'}"]

    return store
