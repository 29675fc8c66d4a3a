"""Whole runs on a Ray cluster: folders that travel, and a sweep on two nodes that gives what one here gives."""

import os
import pathlib
import signal
import subprocess
import sys
import tarfile
import time

import psutil
import pytest

from launch import sweep
from launch.runs.tables import write_json
from launch.runtimes.ray_cluster import is_ray_installed
from launch.settings.flags import FlagError
from launch.sweeps import ray_runs
from launch.sweeps.node_run import pack, unpack

ROOT = pathlib.Path(__file__).parents[3]
NEEDS_RAY = pytest.mark.skipif(not is_ray_installed(), reason="Ray is not installed (make test-ray installs it apart)")


@pytest.fixture
def run_dir(tmp_path):
    folder = tmp_path / "there" / "run"
    (folder / "checkpoints").mkdir(parents=True)
    write_json(folder / "config.json", {"flags": {"run_dir": "/on/a/node", "rounds": 3}})
    (folder / "metrics.csv").write_text("round\n1\n")
    return folder


def test_a_folder_arrives_as_it_was_but_for_its_own_name_whole_or_not_at_all(run_dir, tmp_path):
    arrived = tmp_path / "here" / "seed_0"
    # The second takes the place of the first.
    for table in ("round\n1\n", "round\n1\n2\n"):
        (run_dir / "metrics.csv").write_text(table)
        unpack(pack(run_dir), arrived)
        assert (arrived / "metrics.csv").read_text() == table and (arrived / "checkpoints").is_dir()
        assert f'"run_dir": "{arrived}"' in (arrived / "config.json").read_text()
    (run_dir / "metrics.csv").write_text("round\n" + "1\n" * 20_000)
    with pytest.raises(tarfile.TarError):
        unpack(pack(run_dir)[:5000], arrived)
    assert (arrived / "metrics.csv").read_text() == table
    assert [path.name for path in arrived.parent.iterdir()] == ["seed_0"]
    assert pack(tmp_path) is pack(tmp_path / "missing") is None, "without a run nothing is sent"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--ray_address=auto"], "does nothing without --runtime=ray"),
        (["--runtime=tff"], "--runtime=tff: expected one of ray"),
        (["--runtime=ray", "--ray_address=nowhere"], "expected auto, host:port or ray://host:port"),
        (["--runtime=ray"], r"Ray is not installed; .*requirements-ray\.lock"),
    ],
)
def test_wrong_flags_are_named(arguments, words, monkeypatch):
    monkeypatch.setattr(ray_runs, "is_ray_installed", lambda: "installed" not in words)
    with pytest.raises(FlagError, match=words):
        sweep.parse_request(["--experiments=fedsikd/fedsikd_mnist_alpha0.1", *arguments])


def start_sweep(tmp_path, runs_dir, *arguments):
    flagfile = tmp_path / "small.flags"
    flagfile.write_text("--algo=fedavg\n--num_clients=4\n--rounds=3\n--epochs=1\n")
    command = [sys.executable, "-m", "launch.sweep", f"--flagfiles={flagfile}", f"--runs_dir={runs_dir}", *arguments]
    # A cluster of the user's own would be joined by these variables.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def list_left_over():
    commands = []
    for process in psutil.process_iter():
        try:
            commands.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return [command for command in commands if "/fed_ray_" in command or "/fed_run_" in command]


@NEEDS_RAY
@pytest.mark.slow
def test_a_sweep_on_ray_brings_back_what_a_sweep_here_makes(tmp_path):
    here = start_sweep(tmp_path, tmp_path / "here", "--seeds=0,1", "--jobs=2")
    on_ray = start_sweep(tmp_path, tmp_path / "on_ray", "--seeds=0,1", "--runtime=ray")
    for each in (here, on_ray):
        output = each.communicate(timeout=600)[0]
        assert each.returncode == 0, output
    for seed in (0, 1):
        folders = [tmp_path / name / "small" / f"seed_{seed}" for name in ("here", "on_ray")]
        for name in ("metrics.csv", "clients.csv"):
            assert folders[0].joinpath(name).read_bytes() == folders[1].joinpath(name).read_bytes()
        config = [folder.joinpath("config.json").read_text() for folder in folders]
        assert config[0].replace(str(folders[0]), "") == config[1].replace(str(folders[1]), "")
        assert "round 3/3" in folders[1].with_name(f"seed_{seed}.log").read_text()
    assert list_left_over() == []


@NEEDS_RAY
@pytest.mark.slow
def test_a_sweep_on_ray_that_is_stopped_keeps_checkpoints_and_goes_on(tmp_path):
    stopped = start_sweep(tmp_path, tmp_path / "runs", "--runtime=ray", "--rounds=300")
    log = tmp_path / "runs" / "small" / "seed_0.log"
    while stopped.poll() is None and not (log.exists() and "round 2/300" in log.read_text()):
        time.sleep(0.2)
    stopped.send_signal(signal.SIGINT)
    output = stopped.communicate(timeout=300)[0]
    assert stopped.returncode == 130, output
    assert list((tmp_path / "runs" / "small" / "seed_0" / "checkpoints").iterdir())
    assert list_left_over() == []
    rounds = len((tmp_path / "runs" / "small" / "seed_0" / "metrics.csv").read_text().splitlines()) - 1
    assert 2 <= rounds < 300
    resumed = start_sweep(tmp_path, tmp_path / "runs", "--runtime=ray", f"--rounds={rounds + 1}")
    output = resumed.communicate(timeout=300)[0]
    assert resumed.returncode == 0, output
    assert len((tmp_path / "runs" / "small" / "seed_0" / "metrics.csv").read_text().splitlines()) == rounds + 2
