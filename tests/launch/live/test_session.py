"""A live run from its flags to its folder, by clients in memory that train with TensorFlow's own TFLite."""

import json

import numpy as np
import pytest
from memory_transport import MemoryTransport, ScriptedClient
from phones import open_phone

from launch.live.record import read_record
from launch.live.session import Session
from launch.live.status import Round, read_rounds
from launch.runs import columns
from launch.runs.errors import RunFolderError
from launch.runs.round_table import read_round_table
from launch.runs.tables import format_cell
from launch.serve import parse_request
from launch.settings.flags import parse_config
from launch.settings.serving import ServeFlags, choose_resumed_flags, is_live_run
from launch.training.training_run import run_training
from tff_algos.rounds.partners import RepeatedFrom
from tff_algos.settings.config_fields import ConfigError

FLAGS = (
    *("--algo=fedavg", "--dataset=digits", "--num_clients=2", "--model=logistic_regression", "--rounds=3"),
    *("--batch_size=64", "--learning_rate=0.01", "--run_page=false"),
)
pytestmark = pytest.mark.usefixtures("no_plots")


class TrainingClient(ScriptedClient):
    """A client that does what it is asked at once, and answers a second of the transport's time later."""

    def __init__(self, transport, key):
        super().__init__(transport, key * 32)
        self.phones, self.examples, self.tasks = {}, None, []

    def _hear(self, content):
        super()._hear(content)
        message = self.heard[-1]
        match message.type:
            case "welcome":
                self.say({"type": "fetch", "what": "part"})
                self.say({"type": "fetch", "what": "file"})
            case "part":
                self.examples = message.arrays
            case "file":
                self.phones[message.header["sha256"]] = open_phone(message.arrays["content"].tobytes())
            case "train" | "evaluate" | "fine_tune":
                self.tasks.append(message)
        if self.examples is not None:
            able = [task for task in self.tasks if task.header["file"] in self.phones]
            self.tasks = [task for task in self.tasks if task.header["file"] not in self.phones]
            for task in able:
                self.do(task)

    def do(self, task):
        phone = self.phones[task.header["file"]]
        start = {name: array for name, array in task.arrays.items() if name != "order"}
        if task.type == "train":
            loss_sum = self.train(phone, task, start)
            trained = phone.get_weights()
            deltas = {name: trained[name] - start[name] for name in start}
            self.answer(task, arrays=deltas, after_s=1.0, loss_sum=loss_sum, seconds=0.5)
            return
        named = {name: task.header[name] for name in ("run", "client", "file", "task")}
        phone.run["set_weights"](**start)
        before = self.measure(phone)
        if task.type == "evaluate":
            self.say({"type": "measured", **named, **before}, after_s=1.0)
            return
        self.train(phone, task, start)
        self.say({"type": "tuned", **named, "before": before, "after": self.measure(phone)}, after_s=1.0)

    def train(self, phone, task, start):
        """Takes the task's steps; returns the sum of the losses."""
        x, y, size = self.examples["train_x"], self.examples["train_y"], task.header["batch_size"]
        order = task.arrays["order"]
        per_epoch, loss_sum = -(-len(y) // size), 0.0
        phone.run["set_weights"](**start)
        for step in range(task.header["steps"]):
            first = step % per_epoch * size
            rows = order[step // per_epoch][np.arange(first, first + size) % len(y)]
            labels = np.where(np.arange(first, first + size) < len(y), y[rows], -1).astype(np.int32)
            loss_sum += phone.train(x[rows], labels, task.header["learning_rate"])[0] * min(size, len(y) - first)
        return loss_sum

    def measure(self, phone):
        """Sums over the test examples, of whose losses nothing is looked at here."""
        x, y = self.examples["test_x"], self.examples["test_y"]
        answers = [phone.run["infer"](x=each[np.newaxis])["logits"][0].argmax() for each in x]
        return {"num": len(y), "correct": int(np.sum(answers == y)), "loss_sum": 1.5 * len(y)}


class Watched(Session):
    """A session that keeps the model that came out and, within the run, simulates it and its twin.

    Attributes:
      model: that of the run.
      simulated: that of the same rounds, simulated.
      twin: that of its twin, and `twin_metrics`, by round.
    """

    simulates = False

    def join(self, process, *given):
        self.process = process
        return super().join(process, *given)

    def finish(self, process, state, data):
        self.model = process.get_models(state)["global"]
        found = super().finish(process, state, data)
        if self.simulates:
            record = read_record(self._folder.record, len(data.clients))
            self.simulated, _ = self.run(self.process, len(record))
            self.twin, self.twin_metrics = self.run(self.process.ask(RepeatedFrom(record)), len(record))
        return found

    def run(self, process, rounds):
        state, metrics = process.initialize(), []
        for _ in range(rounds):
            output = process.next(state)
            state = output.state
            metrics.append(output.metrics)
        return process.get_models(state)["global"], metrics


def serve(*arguments, simulates=False):
    """(session, its clients) of a run by two clients in memory."""
    transport = MemoryTransport()
    transport.port = 8700
    clients = [TrainingClient(transport, key).join() for key in "ab"]
    config, flags, given = parse_request(arguments)
    with Watched(flags, given, lambda *_: transport) as session:
        session.simulates = simulates
        run_training(config, session)
    return session, clients


def check_equal(first, second, tolerance=1e-5):
    for one, other in zip(first, second, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance)


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """(folder, session, clients) of a run of three rounds."""
    root = tmp_path_factory.mktemp("live")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(root / "cache"))
        yield root / "run", *serve(*FLAGS, f"--run_dir={root / 'run'}", simulates=True)


def test_it_has_the_weights_of_the_simulation_and_so_has_its_twin(live):
    folder, session, _ = live
    check_equal(session.model, session.simulated)
    check_equal(session.model, session.twin)
    names, rows = read_round_table(folder / columns.METRICS_FILE)
    for row, metrics in zip(rows, session.twin_metrics, strict=True):
        of_row = dict(zip(names, row, strict=True))
        for name in ("virtual_time_s", "num_clients", "bytes_down", "bytes_up", columns.NUM_ASKED, columns.NUM_MISSING):
            assert of_row[name] == format_cell(metrics[name])


def test_its_folder_tells_of_it_and_clients_are_told_the_end(live):
    folder, _, clients = live
    config = json.loads((folder / columns.CONFIG_FILE).read_text())
    assert config[columns.LIVE] == {"protocol": 1, "seats": 2, "own_data": False} and is_live_run(folder)
    names, rows = read_round_table(folder / columns.TRAFFIC_FILE)
    traffic = [dict(zip(names, row, strict=True)) for row in rows]
    assert [(row["num_asked"], row["num_answered"], row["num_missing"]) for row in traffic] == [("2", "2", "0")] * 3
    assert int(traffic[0]["bytes_of_files"]) > 0 == int(traffic[1]["bytes_of_files"])
    file = (folder / columns.TRAINING_FILE).read_bytes()
    assert all(client.list_heard("file")[0].arrays["content"].tobytes() == file for client in clients)
    assert [client.heard[-1].type for client in clients] == ["done", "done"]
    assert len((folder / columns.MEASURED_DEVICES_FILE).read_text().splitlines()) == 3
    assert choose_resumed_flags(str(folder), {"more_asked": 1}) == ServeFlags(port=8700, more_asked=1)


def test_who_watched_saw_its_rounds_and_its_end(live):
    folder, _, clients = live
    seen = json.loads(clients[0].server.shown[-1])
    names, rows = read_round_table(folder / columns.METRICS_FILE)
    accuracies = [float(row[names.index("test_accuracy")]) for row in rows]
    assert [round(row["accuracy"], 6) for row in seen["history"]] == accuracies
    assert (seen["state"], seen["round"], seen["here"], seen["needed"]) == ("over", 3, 2, 1)
    assert [each["answers"] for each in seen["seats"]] == [3, 3] and seen["report"] is None
    # A server that is started again tells the same of them, from the tables.
    counted = Round._fields[3:-1]
    assert [[row[name] for name in counted] for row in seen["history"]] == [
        [getattr(row, name) for name in counted] for row in read_rounds(folder, 3)
    ]


def test_only_its_own_command_goes_on_with_it(live):
    folder = live[0]
    with pytest.raises(RunFolderError, match=r"begun by launch.serve.*python -m launch.serve --resume"):
        run_training(parse_config(["--resume", f"--run_dir={folder}"]))


def test_clients_measure_the_model_and_fine_tune_it_at_the_end(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    flags = [*FLAGS[1:], "--algo=fine_tuning", "--partition=iid", "--rounds=1", "--fine_tuning_steps=3"]
    session, clients = serve(*flags, "--evaluate_on=clients", f"--run_dir={tmp_path / 'run'}")
    names, (row,) = read_round_table(tmp_path / "run" / columns.METRICS_FILE)
    x, y = (np.concatenate([each.examples[name] for each in clients]) for name in ("test_x", "test_y"))
    kernel, bias = session.model
    logits = x.reshape(len(x), -1) @ kernel + bias
    reached = float(row[names.index("test_accuracy")])
    assert reached == pytest.approx(np.mean(logits.argmax(axis=1) == y), abs=1e-5)
    assert row[names.index("client_test_accuracy")] == ""
    lines = (tmp_path / "run" / columns.FINE_TUNED_FILE).read_text().splitlines()
    before = [int(line.split(",")[2]) for line in lines[1:]]
    assert sum(before) == round(reached * len(y))
    assert all(client.list_heard("fine_tune")[0].header["steps"] == 3 for client in clients)


@pytest.mark.parametrize(
    ("values", "field"),
    [({"seats": 3}, "seats"), ({"own_data": True}, "own_data"), ({"schema": "a.json"}, "schema"),
     ({"own_data": True, "seats": 2, "start_with": 3}, "start_with")],
)  # fmt: skip
def test_flags_that_cannot_be_meant(values, field):
    with pytest.raises(ConfigError) as refused:
        ServeFlags(**values)
    assert refused.value.field == field
