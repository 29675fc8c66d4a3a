"""The program as a person runs it: a real run, its folder, and going on after Ctrl-C and SIGKILL."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import matplotlib
import numpy as np
import psutil
import pytest

from datasets.arrays import DatasetError
from launch import evaluate
from launch.runs.run_records import read_rows

ROOT = pathlib.Path(__file__).parents[2]
ARGUMENTS = ("--algo=fedavg", "--num_clients=3", "--seed=1")

OLD_LOG = "what the worker of an older run said"


def start_train(tmp_path, *arguments, stdout=None):
    """Starts the program with Ctrl-C working as on a terminal, its output in files."""
    # Matplotlib's list of fonts, which takes seconds to make, is the one that there is.
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "MPLCONFIGDIR": matplotlib.get_cachedir()}
    return subprocess.Popen(
        [sys.executable, "-m", "launch.train", *arguments],
        cwd=ROOT,
        env=environment,
        stdout=open(tmp_path / "out.txt", "w") if stdout is None else stdout,
        stderr=open(tmp_path / "err.txt", "w"),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def train(tmp_path, *arguments):
    """Runs the program to its end: (exit code, stdout, stderr)."""
    code = start_train(tmp_path, *arguments).wait(300)
    return code, (tmp_path / "out.txt").read_text(), (tmp_path / "err.txt").read_text()


def wait_for_round(tmp_path, process, round_num):
    deadline_s = time.monotonic() + 200
    while f"round {round_num}/" not in (tmp_path / "out.txt").read_text():
        assert process.poll() is None, (tmp_path / "err.txt").read_text()
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory):
    """(run folder, stdout) of a smoke run that replaces another; its output goes through a pipe, as with `| tee`."""
    tmp_path = tmp_path_factory.mktemp("train")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text('{"flags": {"algo": "fedavg"}}')
    (tmp_path / "run" / "worker.log").write_text(OLD_LOG)
    (tmp_path / "run" / "events.csv").touch()
    with open(tmp_path / "pipe.txt", "w") as file:
        tee = subprocess.Popen(["tee"], stdin=subprocess.PIPE, stdout=file)
        process = start_train(
            tmp_path,
            *("--algo=fedavg", "--model=perceptron", "--smoke", "--overwrite"),
            f"--run_dir={tmp_path / 'run'}",
            stdout=tee.stdin.fileno(),
        )
        tee.stdin.close()
        assert process.wait(300) == 0, (tmp_path / "err.txt").read_text()
        tee.wait(10)  # ends only if nobody, such as the worker, holds the pipe any more
    assert (tmp_path / "err.txt").read_text() == ""
    return tmp_path / "run", (tmp_path / "pipe.txt").read_text()


def test_run_says_what_it_does_and_leaves_its_folder(finished_run):
    run_dir, out = finished_run
    starts = [line.split()[0] for line in out.splitlines()]
    assert starts == ["run", "data", "clients", "model", "round", "round", "done", "spread", "page", "next"]
    names = {path.name for path in run_dir.iterdir()}
    assert {"config.json", "metrics.csv", "timing.csv", "clients.csv", "summary.json", "worker.log"} <= names
    assert {"checkpoints", "tensorboard", "plots", "models", "report.html"} <= names
    assert OLD_LOG not in (run_dir / "worker.log").read_text() and "events.csv" not in names
    assert (run_dir / "plots" / "partition.png").exists()
    assert [row["round"] for row in read_rows(run_dir / "metrics.csv")] == ["1", "2"]
    assert list(json.loads((run_dir / "summary.json").read_text())) == [
        *("algo", "dataset", "seed", "rounds", "final", "best", "clients", "bytes_up", "bytes_down"),
        *("virtual_time_s", "train_seconds", "seconds_per_round"),
        *("overall_majority_test_accuracy", "is_personal", "fedavg"),
    ]


@pytest.mark.usefixtures("no_plots")
def test_fedcd_writes_its_models_events_and_columns(train_here, tmp_path):
    run_dir = tmp_path / "run"
    flags = ("--compression_bits=8", "--keep_best", "--augment=crop_flip", "--model=perceptron", "--norun_page")
    code, out, err = train_here("--algo=fedcd", "--smoke", "--partition=hierarchical", f"--run_dir={run_dir}", *flags)
    assert code == 0, err
    assert "10 of 10 archetypes, hierarchical partition, " in out
    config = json.loads((run_dir / "config.json").read_text())
    described = config["data"]["archetypes"]
    assert config["flags"]["augment"] == "crop_flip"
    assert described["meta_archetypes"] == [0] * 5 + [1] * 5 and described["of_clients"][-1] == 9
    first, second = read_rows(run_dir / "metrics.csv")
    assert f"clients' own {float(second['client_test_accuracy']):.4f}, " in out
    assert (first["live_models"], first["active_models"]) == ("2", "20"), "cloned after the first round"
    assert first["client_accuracy_change"] == "" and 0 <= float(second["client_accuracy_change"]) <= 1
    accuracies = [float(second[f"archetype_{number}_accuracy"]) for number in range(10)]
    assert np.mean(accuracies) == pytest.approx(float(second["client_test_accuracy"]), abs=1e-5)
    summary = json.loads((run_dir / "summary.json").read_text())
    own, kept = summary["fedcd"], summary["kept_best"]
    assert {path.name for path in (run_dir / "models").iterdir()} == {*own["models"], "best"}
    column = [float(row["client_validation_accuracy"]) for row in (first, second)]
    assert kept == {"round": 1 + column.index(max(column)), "client_validation_accuracy": max(column)}
    best = evaluate.read_finished_run(str(run_dir), of_round="best")
    rows = evaluate.evaluate_run(best, evaluate.choose_models(best, ""), "")
    of_clients = [row.cells["accuracy"] for row in rows if row.cells["test_set"] != "global"]
    accuracy = float((first, second)[kept["round"] - 1]["client_test_accuracy"])
    assert np.mean(of_clients) == pytest.approx(accuracy, abs=1e-5), "each client's model is that of the kept round"
    clients = read_rows(run_dir / "clients.csv")
    assert {row["model"] for row in clients} <= set(own["models"])
    assert [row["archetype_name"] for row in clients] == [str(number) for number in range(10)]
    assert [row["meta_archetype"] for row in clients] == ["0"] * 5 + ["1"] * 5
    events = read_rows(run_dir / "events.csv")
    assert sum(row["what"] == "prefers" for row in events) == 2 * 10
    assert sum(row["what"] == "cloned" for row in events) == 10


def test_finished_run_is_evaluated_to_the_same_numbers_unless_its_data_changed(finished_run):
    run_dir, _ = finished_run
    run = evaluate.read_finished_run(str(run_dir))
    rows = evaluate.evaluate_run(run, evaluate.choose_models(run, ""), "")
    summary = json.loads((run_dir / "summary.json").read_text())
    assert (rows[0].cells["model"], rows[0].cells["test_set"]) == ("global", "global")
    assert rows[0].cells["accuracy"] == pytest.approx(summary["final"]["test_accuracy"], abs=1e-5)
    own = np.mean([row.cells["accuracy"] for row in rows[1:]])
    assert own == pytest.approx(summary["clients"]["accuracy_mean"], abs=1e-6)
    changed = run._replace(data={**run.data, "digest": "another"})
    with pytest.raises(DatasetError, match="not those that the run was trained on"):
        evaluate.evaluate_run(changed, ["global"], "")


def test_finished_run_is_evaluated_on_a_users_file(finished_run, tmp_path, capsys):
    run_dir, _ = finished_run
    config = json.loads((run_dir / "config.json").read_text())
    x = np.random.default_rng(0).integers(0, 17, (20, *config["data"]["input_shape"])).astype("uint8")
    np.savez(tmp_path / "mine.npz", x=x, y=np.arange(20) % 10)
    assert evaluate.main([f"--run_dir={run_dir}", f"--npz={tmp_path / 'mine.npz'}"]) == 0
    [row] = read_rows(run_dir / "evaluation_mine.csv")
    assert (row["model"], row["test_set"], row["examples"]) == ("global", "mine.npz", "20")
    assert 0 <= float(row["accuracy"]) <= 1 and float(row["loss"]) > 0
    assert "evaluation_mine.csv" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--algo=fedavg", "--smoke", "--overwrite", "--model=sensor_student"),
            "--model=sensor_student: expected exam",
        ),
        (("--resume", "--rounds=1"), "--rounds=1: "),
    ],
)
def test_a_wrong_overwrite_or_resume_leaves_the_old_run(finished_run, train_here, arguments, said):
    run_dir, _ = finished_run
    before = {path: path.read_bytes() for path in run_dir.rglob("*") if path.is_file()}
    code, _, err = train_here(*arguments, f"--run_dir={run_dir}")
    assert (code, len(err.splitlines())) == (2, 1) and err.startswith(f"error: {said}")
    assert {path: path.read_bytes() for path in before} == before


def find_worker(process):
    """The worker of a running program, as a process."""
    [worker] = [child for child in psutil.Process(process.pid).children() if child.name().startswith("worker_binary")]
    return worker


@pytest.mark.slow
@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_run_that_is_asked_to_end_keeps_a_checkpoint(tmp_path, number, exit_code):
    process = start_train(tmp_path, *ARGUMENTS, "--rounds=1000", f"--run_dir={tmp_path / 'run'}")
    wait_for_round(tmp_path, process, 1)
    process.send_signal(number)
    assert process.wait(60) == exit_code
    [line] = (tmp_path / "err.txt").read_text().splitlines()
    assert line.startswith("stopped; go on with: python -m launch.train --resume --run_dir=")
    assert any((tmp_path / "run" / "checkpoints").iterdir())


@pytest.mark.usefixtures("can_close")
@pytest.mark.slow
def test_a_killed_worker_ends_the_run_in_one_line(tmp_path):
    process = start_train(tmp_path, *ARGUMENTS, "--runtime=tff", "--rounds=1000", f"--run_dir={tmp_path / 'run'}")
    wait_for_round(tmp_path, process, 1)
    find_worker(process).kill()
    assert process.wait(60) == 1
    [line] = (tmp_path / "err.txt").read_text().splitlines()
    assert "was killed by SIGKILL" in line and "--resume --run_dir=" in line
    done = len((tmp_path / "run" / "metrics.csv").read_text().splitlines()) - 1
    assert train(tmp_path, "--resume", f"--rounds={done + 1}", f"--run_dir={tmp_path / 'run'}")[0] == 0


@pytest.mark.slow
def test_fedsikd_learns_the_digits_with_its_defaults_in_minutes(tmp_path):
    start_s = time.monotonic()
    assert train(tmp_path, "--algo=fedsikd", f"--run_dir={tmp_path / 'run'}")[0] == 0
    assert time.monotonic() - start_s < 180
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["final"]["test_accuracy"] >= 0.85
