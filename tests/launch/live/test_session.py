"""A live run from its flags to its folder, by clients in memory that train with TensorFlow's own TFLite."""

import json

import numpy as np
import pytest
from memory_transport import MemoryTransport
from training_client import TrainingClient

from launch.live.record import read_record
from launch.live.session import Session
from launch.live.status import Round, read_rounds
from launch.runs import columns
from launch.runs.errors import RunFolderError
from launch.runs.round_table import read_round_table
from launch.runs.tables import format_cell
from launch.serve import parse_request
from launch.settings.errors import FlagError
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
    clients = []

    def open_transport(**_):
        links = session._links.find_free() or [""] * 2  # who has a seat needs none
        for key, link in zip("ab", links, strict=True):
            clients.append(TrainingClient(transport, key).join(token=link.partition("#")[2]))
        return transport

    config, flags, given = parse_request(arguments)
    with Watched(flags, given, open_transport) as session:
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
    assert config[columns.LIVE] == {"protocol": 2, "seats": 2, "own_data": False} and is_live_run(folder)
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


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (["--free_seat=2"], r"free_seat=2: expected one that is taken: 0 and 1"),
        (["--free_seat=0,7"], r"free_seat=7: expected one that is taken: 0 and 1"),
    ],
)
def test_a_seat_that_is_none_is_not_freed(live, given, line):
    folder = live[0]
    roster = (folder / columns.ROSTER_FILE).read_text()
    config, flags, names = parse_request(["--resume", f"--run_dir={folder}", "--rounds=4", *given])
    with pytest.raises(ConfigError, match=line), Session(flags, names, forbid_opening) as session:
        run_training(config, session)
    assert (folder / columns.ROSTER_FILE).read_text() == roster


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ([], "port=8700: expected no other program on the run's own, to which its clients come back; or another one"),
        (["--port=8700"], "port=8700: expected another"),
    ],
)
def test_a_run_that_goes_on_takes_no_other_port_than_its_own_by_itself(live, monkeypatch, given, line):
    """Browsers keep keys by address."""

    def refuse(_):
        raise ConfigError("port", 8700, "another")

    folder = live[0]
    config, flags, names = parse_request(["--resume", f"--run_dir={folder}", "--rounds=4", *given])
    monkeypatch.setattr(MemoryTransport, "start", refuse)
    with pytest.raises(ConfigError) as refused, Session(flags, names, lambda **_: MemoryTransport()) as session:
        run_training(config, session)
    assert str(refused.value).startswith(line)


def test_another_client_takes_a_seat_that_is_freed_once(tmp_path, monkeypatch, capsys):
    """The former one, if it finds its key after all, has lost the seat."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    run_dir = tmp_path / "run"
    serve(*FLAGS, "--rounds=1", f"--run_dir={run_dir}")
    before = json.loads((run_dir / columns.ROSTER_FILE).read_text())["seats"]
    transport = MemoryTransport()
    transport.port = 8700
    clients = []

    def open_transport(**_):
        [link] = session._links.find_free()
        clients.append(TrainingClient(transport, "c").join(token=link.partition("#")[2]))
        clients.append(TrainingClient(transport, "b").join(token=""))
        clients.append(TrainingClient(transport, "a").join(token=""))
        return transport

    config, flags, given = parse_request(["--resume", f"--run_dir={run_dir}", "--rounds=2", "--free_seat=0"])
    with Session(flags, given, open_transport) as session:
        run_training(config, session)
    after = json.loads((run_dir / columns.ROSTER_FILE).read_text())["seats"]
    assert after[1] == before[1] and after[0]["key_hash"] != before[0]["key_hash"]
    assert [client.heard[-1].type for client in clients] == ["done", "done", "refused"]
    assert "(seat 0) is freed; links.txt has its new link\n" in capsys.readouterr().out
    assert choose_resumed_flags(str(run_dir), {}).free_seat == ()


@pytest.mark.slow
def test_a_private_run_spends_its_budget_and_has_no_twin(tmp_path, monkeypatch, capsys):
    """The budget lasts for three rounds; one that goes on has none left."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    run_dir = tmp_path / "run"
    serve(*FLAGS, "--dp_epsilon=8", "--client_weighting=equal", "--cohort_size=1", f"--run_dir={run_dir}")
    said = capsys.readouterr().out
    assert "since who takes part is seen" in said
    assert "clip norms to their sum; from the operating system" in said and "--replay" not in said
    assert said.count("twin     none: the noise of a private run") == 1
    assert said.index("privacy  a round's mean of 1 updates") < said.index("warning  the noise is ")
    assert said.index("warning  the noise is ") < said.index("link     http")
    assert "privacy  epsilon 8 of 8 is spent, at delta 1e-05" in said
    names, rows = read_round_table(run_dir / columns.METRICS_FILE)
    spent = [float(row[names.index(columns.EPSILON_SPENT)]) for row in rows]
    assert len(spent) == 3 and spent == sorted(spent) and spent[-1] == pytest.approx(8)
    with pytest.raises(FlagError, match=r"^--replay=.*: a private run, whose noise came from the operating system"):
        parse_config([f"--replay={run_dir}"])
    serve("--resume", f"--run_dir={run_dir}", "--rounds=9")
    assert read_round_table(run_dir / columns.METRICS_FILE) == (names, rows)
    assert "spent    after round 3: a further one would exceed the budget" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (["--evaluate_on=clients"], "evaluate_on=clients: expected server with --dp_epsilon"),
        (["--dp_noise_multiplier=0.3"], r"dp_noise_multiplier=0\.3: expected more noise"),
        (["--most_norm=3"], "most_norm=3.0: expected 0 with --dp_epsilon"),
        (["--dp_delta=0.6"], r"dp_delta=0\.6: expected below 1 / clients"),
    ],
)
def test_what_a_private_run_cannot_have_is_refused_before_anybody_is_waited_for(tmp_path, monkeypatch, given, line):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    private = "--dp_epsilon=8", "--client_weighting=equal", f"--run_dir={tmp_path / 'run'}"
    config, flags, names = parse_request([*FLAGS, *private, *given])
    with pytest.raises(ConfigError, match=line), Session(flags, names, forbid_opening) as session:
        run_training(config, session)
    assert not (tmp_path / "run").exists()


def forbid_opening(**_):
    raise AssertionError("nobody may be waited for")
