"""A run folder that is damaged in one file: each command says so in one line, or ends as if nothing had happened."""

import contextlib
import gzip
import itertools
import pathlib
import re
import shutil

import pytest

from launch import evaluate, export, report, train
from launch.runs.checkpoints import find_checkpoints
from launch.runs.checksums import RECORDS, check_sums, write_checksums
from launch.runs.columns import FINE_TUNING_FILE, RECORD_FILE, TRAFFIC_FILE
from launch.runs.errors import RunFolderError
from launch.runs.run_folder import RunFolder

MODEL = "models/global/model.keras"
# The records of a simulation that does not fine-tune.
OF_FEDCD = [name for name in RECORDS if name not in (FINE_TUNING_FILE, RECORD_FILE, TRAFFIC_FILE)]


def cut(path, other):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path, other):
    path.write_bytes(b"")


def flip_a_bit(path, other):
    content = bytearray(path.read_bytes())
    content[len(content) * 2 // 3] ^= 1
    path.write_bytes(content)


def take_another_runs(path, other):
    shutil.copy(other, path)


DAMAGES = (cut, empty, flip_a_bit, take_another_runs)


def name_of(damage):
    return damage.__name__


@pytest.fixture(scope="module")
def kept(tmp_path_factory, write_finished_run):
    """A folder with two finished runs that were not trained, `run` and `other`, with all records and their sums."""
    root = tmp_path_factory.mktemp("kept")
    for name, seed in (("run", 0), ("other", 1)):
        run_dir = write_finished_run(root / name, algo="fedavg", model="perceptron", seed=seed)
        for table in ("metrics.csv", "timing.csv", "events.csv", "fine_tuning.csv", "record.csv", "traffic.csv"):
            (run_dir / table).write_text(f"round,{seed}\n1,{seed}\n")
        (run_dir / "clients_by_round.csv.gz").write_bytes(gzip.compress(f"round\n{seed}\n".encode()))
        summary = (run_dir / "summary.json").read_text()
        (run_dir / "summary.json").write_text(summary.replace("{", f'{{"seed": {seed},', 1))
        with contextlib.closing(RunFolder(run_dir, is_new=False)) as folder:
            write_checksums(folder)
    return root


@pytest.fixture
def copy(kept, tmp_path):
    return pathlib.Path(shutil.copytree(kept / "run", tmp_path / "run"))


def list_files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("damage", DAMAGES, ids=name_of)
@pytest.mark.parametrize("name", [*RECORDS, MODEL, "checksums.sha256"])
@pytest.mark.parametrize("command", [evaluate, export], ids=["evaluate", "export"])
def test_a_finished_run_that_is_damaged_is_one_line_for_those_who_read_it(kept, copy, capfd, command, name, damage):
    damage(copy / name, kept / "other" / name)
    before = list_files(copy)
    assert command.main([f"--run_dir={copy}"]) == 2
    error = capfd.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1
    assert list_files(copy) == before


def test_a_run_without_sums_is_not_checked(copy):
    check_sums(copy)
    (copy / "metrics.csv").write_text("round\n")
    with pytest.raises(RunFolderError, match=r"metrics\.csv: has changed since the run ended"):
        check_sums(copy)
    (copy / "checksums.sha256").unlink()
    check_sums(copy)


@pytest.mark.parametrize("is_checked", [True, False])
def test_a_report_names_the_runs_that_are_damaged_and_counts_the_others(tmp_path, write_run, capsys, is_checked):
    cases = list(itertools.product(["config.json", "metrics.csv", "summary.json"], DAMAGES))
    cell, whole = "async_periodic_mnist_iid_random_old", len(cases)
    dirs = [write_run(tmp_path / "runs", cell, seed, rounds=40, accuracy=0.1 + seed / 100) for seed in range(whole + 1)]
    for run_dir, (name, damage) in zip(dirs[:whole], cases, strict=True):
        if is_checked:
            with contextlib.closing(RunFolder(run_dir, is_new=False)) as folder:
                write_checksums(folder)
        damage(run_dir / name, dirs[whole] / name)
    assert report.main(["--tables=async", f"--runs_dir={tmp_path / 'runs'}"]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("not counted: ")]
    seeds = sorted(int(re.search(r"seed_(\d+)", line)[1]) for line in lines)
    assert seeds == sorted(set(seeds)) and whole not in seeds, "a line a run"
    # Without sums, neither a flipped digit nor another run's table is seen.
    assert len(seeds) == whole if is_checked else 0 < len(seeds) < whole


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with two FedCD runs, `run` and `other`, that differ in their seed."""
    root = tmp_path_factory.mktemp("trained")
    for name, seed in (("run", 0), ("other", 1)):
        arguments = ["--algo=fedcd", "--smoke", "--clients_by_round", f"--seed={seed}"]
        arguments.append(f"--client_dir={root / 'shards'}")
        assert train.main([*arguments, f"--run_dir={root / name}"]) == 0
    return root


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES, ids=name_of)
@pytest.mark.parametrize("name", [*OF_FEDCD, "checkpoints/round_2.npz", "checksums.sha256"])
def test_a_damaged_run_that_is_resumed_is_one_line_or_ends_with_the_same_bytes(trained, tmp_path, capfd, name, damage):
    run_dir = pathlib.Path(shutil.copytree(trained / "run", tmp_path / "run"))
    damage(run_dir / name, trained / "other" / name)
    exit_code = train.main(["--resume", f"--run_dir={run_dir}"])
    out, err = capfd.readouterr()
    if exit_code:
        refused = {"config.json", "metrics.csv", "timing.csv", "events.csv", "clients_by_round.csv.gz"}
        if damage is take_another_runs:
            refused.add("checkpoints/round_2.npz")  # its settings are not those of config.json
        assert exit_code == 2 and name in refused
        assert err.startswith("error: ") and err.count("\n") == 1
        return
    assert err == "" and name not in ("metrics.csv", "events.csv", "clients_by_round.csv.gz")
    for table in ("metrics.csv", "events.csv", "clients.csv"):
        assert (run_dir / table).read_bytes() == (trained / "run" / table).read_bytes()
    assert "going on from round 1" in out or "checkpoint" not in name or damage is take_another_runs
    last = find_checkpoints(run_dir / "checkpoints")[2]
    assert last.read_bytes() == (trained / "run" / "checkpoints" / last.name).read_bytes()
