"""Runs sent to a real MLflow server on this machine, and read back by its REST API. `make test-track` runs it."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import pytest

from launch import track
from launch.runs.run_records import read_rounds
from launch.runs.trackers.order import ENVIRONMENT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ENVIRONMENT / "setup_done").exists(), reason=f"no {ENVIRONMENT.name}: make setup-track"),
]
ROOT = pathlib.Path(__file__).parents[3]
ROUND_TIME_LIMIT_S = 120.0


class Server:
    """An MLflow server in a folder, which can be stopped and started again."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._folder = folder
        self.uri = f"http://127.0.0.1:{port}"
        self._command = [
            str(ENVIRONMENT / "bin" / "mlflow"), "server", "--host=127.0.0.1", f"--port={port}", "--workers=1",
            f"--backend-store-uri=sqlite:///{folder}/mlflow.db", f"--artifacts-destination={folder}/artifacts",
        ]  # fmt: skip
        self.start()

    def start(self):
        environment = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"}
        with open(self._folder / "server.log", "ab") as log:
            self._process = subprocess.Popen(
                self._command, cwd=self._folder, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        wait_until(self._is_up)

    def _is_up(self):
        assert self._process.poll() is None, (self._folder / "server.log").read_text()
        try:
            return urllib.request.urlopen(f"{self.uri}/health", timeout=5).status == 200
        except OSError:
            return False

    def stop(self):
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def get(self, path, /, **query):
        address = f"{self.uri}/api/2.0/mlflow/{path}?{urllib.parse.urlencode(query)}"
        return json.load(urllib.request.urlopen(address, timeout=30))

    def find_runs(self, experiment):
        found = self.get("experiments/get-by-name", experiment_name=experiment)["experiment"]
        body = json.dumps({"experiment_ids": [found["experiment_id"]], "max_results": 100}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.uri}/api/2.0/mlflow/runs/search", body, headers)
        return [Run(self, run) for run in json.load(urllib.request.urlopen(request, timeout=30)).get("runs", [])]


class Run:
    """A run as the server has it."""

    def __init__(self, server, run):
        self._server, self.info = server, run["info"]
        parts = [{item["key"]: item["value"] for item in run["data"].get(part, [])} for part in ("params", "tags")]
        self.params, self.tags = parts

    def read_history(self, name):
        """[(step, value)] of a metric, in the order of the steps."""
        found = self._server.get("metrics/get-history", run_id=self.info["run_id"], metric_key=name)
        return sorted((metric.get("step", 0), metric["value"]) for metric in found.get("metrics", []))

    def list_files(self, path=""):
        found = self._server.get("artifacts/list", run_id=self.info["run_id"], **({"path": path} if path else {}))
        for entry in found.get("files", []):
            yield from self.list_files(entry["path"]) if entry["is_dir"] else [entry["path"]]

    def read_file(self, path):
        query = urllib.parse.urlencode({"path": path, "run_uuid": self.info["run_id"]})
        return urllib.request.urlopen(f"{self._server.uri}/get-artifact?{query}", timeout=30).read()


def wait_until(condition):
    deadline = time.monotonic() + ROUND_TIME_LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("mlflow"))
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def environment(server, monkeypatch, request):
    """The server's address and an experiment of the test's own, for whatever it starts."""
    monkeypatch.delenv("FL_TRACK_PYTHON", raising=False)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.uri)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", request.node.name)


def start_training(*arguments, **options):
    command = [sys.executable, "-m", "launch.train", "--algo=fedavg", "--num_clients=2", "--epochs=1"]
    command += arguments
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def train(*arguments):
    run = start_training(*arguments)
    out, errors = run.communicate(timeout=300)
    assert run.returncode == 0, errors
    return out


def assert_rounds(run, run_dir, name="test_loss"):
    """The server has each round's number once, as it stands in metrics.csv."""
    expected = [(number, values[name]) for number, values in read_rounds(run_dir / "metrics.csv").items()]
    assert run.read_history(name) == expected


def test_a_run_is_shown_with_settings_metrics_and_files(server, tmp_path, request):
    run_dir = tmp_path / "run"
    out = train(f"--run_dir={run_dir}", "--rounds=3", "--track=mlflow")
    (run,) = server.find_runs(request.node.name)
    assert f"look: {server.uri}/#/experiments/{run.info['experiment_id']}/runs/{run.info['run_id']}" in out
    assert (run.info["run_name"], run.info["status"]) == ("run", "FINISHED")
    expected = {"algo": "fedavg", "num_clients": "2", "rounds": "3", "epochs": "1"}
    assert expected.items() <= run.params.items() and "data_dir" not in run.params
    sizes = json.loads((run_dir / "config.json").read_text())["data"]
    assert run.tags["dataset"] == "digits" and run.tags["data.num_train"] == str(sizes["num_train"])
    for name in ("train_loss", "test_accuracy", "bytes_up"):
        assert_rounds(run, run_dir, name)
    assert [step for step, _ in run.read_history("system/round_s")] == [1, 2, 3]
    summary = json.loads((run_dir / "summary.json").read_text())
    assert run.read_history("summary/best.test_accuracy") == [(3, summary["best"]["test_accuracy"])]
    files = set(run.list_files())
    assert {"config.json", "clients.csv", "plots/by_round.png", "models/global/model.keras"} <= files
    assert not [name for name in files if name.startswith(("checkpoints", "tensorboard", "tracking", "."))]
    for name in ("clients.csv", "plots/by_round.png", "models/global/model.keras"):
        assert run.read_file(name) == (run_dir / name).read_bytes()


def test_a_run_that_is_killed_and_resumed_stays_one_run(server, tmp_path, request):
    run_dir = tmp_path / "run"
    training = start_training(f"--run_dir={run_dir}", "--rounds=400", "--track=mlflow", start_new_session=True)

    def has_runs(status):
        return [run.info["status"] for run in server.find_runs(request.node.name)] == [status]

    files = [run_dir / "metrics.csv", run_dir / "tracking" / "mlflow.json"]
    wait_until(lambda: all(file.exists() and file.stat().st_size for file in files))
    os.killpg(training.pid, signal.SIGKILL)
    training.communicate()
    wait_until(lambda: has_runs("KILLED"))
    done = len(read_rounds(run_dir / "metrics.csv"))
    train("--resume", f"--run_dir={run_dir}", f"--rounds={done + 2}")
    (run,) = server.find_runs(request.node.name)
    assert run.info["status"] == "FINISHED" and run.params["rounds"] == "400"
    assert_rounds(run, run_dir)
    for _ in range(2):
        assert track.main([f"--run_dir={run_dir}", "--to=mlflow"]) == 0
    (again,) = server.find_runs(request.node.name)
    assert again.info["run_id"] == run.info["run_id"]
    assert_rounds(again, run_dir)
    assert [step for step, _ in again.read_history("summary/best.round")] == [done + 2]


def test_a_server_that_goes_away_and_comes_back_gets_each_round_once(server, start_run, tmp_path, request):
    run = start_run()
    run.add_rounds(2)
    log = tmp_path / "follow.log"
    command = [sys.executable, "-m", "launch.track", f"--run_dir={run.run_dir}", "--to=mlflow", "--follow"]
    with open(log, "wb") as output:
        follower = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output)
    wait_until(lambda: "look: http" in log.read_text())
    server.stop()
    run.add_rounds(2)
    wait_until(lambda: "warning  mlflow: " in log.read_text())
    server.start()
    run.add_rounds(1)
    run.end()
    assert follower.wait(ROUND_TIME_LIMIT_S) == 0
    (sent,) = server.find_runs(request.node.name)
    assert sent.info["status"] == "FINISHED"
    assert [step for step, _ in sent.read_history("test_accuracy")] == [1, 2, 3, 4, 5]
    assert [step for step, _ in sent.read_history("test_loss")] == [2, 4]


def test_a_run_that_was_deleted_there_is_sent_anew(server, start_run, request):
    run = start_run()
    run.add_rounds(2)
    run.end()
    assert track.main([f"--run_dir={run.run_dir}", "--to=mlflow"]) == 0
    (first,) = server.find_runs(request.node.name)
    body = json.dumps({"run_id": first.info["run_id"]}).encode()
    headers = {"Content-Type": "application/json"}
    urllib.request.urlopen(
        urllib.request.Request(f"{server.uri}/api/2.0/mlflow/runs/delete", body, headers), timeout=30
    )
    assert track.main([f"--run_dir={run.run_dir}", "--to=mlflow", "--nomodels"]) == 0
    (second,) = server.find_runs(request.node.name)
    assert second.info["run_id"] != first.info["run_id"]
    assert [step for step, _ in second.read_history("virtual_time_s")] == [1, 2]
    assert "models/global/model.keras" not in set(second.list_files())


def test_without_a_server_the_run_goes_on(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://me:secret@127.0.0.1:9")
    out = train(f"--run_dir={tmp_path}/run", "--rounds=2", "--track=mlflow")
    assert "done     2 rounds" in out
    warnings = [line for line in out.splitlines() if line.startswith("warning  not all is sent: mlflow: ")]
    assert len(warnings) == 1 and "; go on with: python -m launch.track" in warnings[0]
    assert "secret" not in out + (tmp_path / "run" / "tracking" / "mlflow.log").read_text()


def test_senders_that_begin_together_make_one_database_in_the_current_folder(start_run, tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    senders = []
    for i in range(3):
        run = start_run(f"run_{i}")
        run.add_rounds(1)
        run.end()
        command = [sys.executable, "-m", "launch.track", f"--run_dir={run.run_dir}", "--to=mlflow"]
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        senders.append(subprocess.Popen(command, cwd=tmp_path, env=environment, **options))
    for sender in senders:
        out, error = sender.communicate(timeout=120)
        assert (error, sender.returncode) == ("", 0)
        assert f"mlflow ui --backend-store-uri sqlite:///{tmp_path}/mlflow.db" in out
