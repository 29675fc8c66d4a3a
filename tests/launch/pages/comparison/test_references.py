"""Which references are missing beside personal and clustered runs, and that the command given trains them."""

import pathlib
import shlex

import numpy as np
import pytest

from launch.pages.comparison.compared_run import ComparedRun
from launch.pages.comparison.references import find_missing, spell_baseline
from launch.runs.tables import write_json
from launch.settings.run_config import build_run_config, find_algorithm, flag_values
from launch.sweep import PROGRAM, parse_request


@pytest.fixture
def make_run(tmp_path, monkeypatch):
    """(algorithm, seed, whether clients differ in models, or in kind, flags) -> a run in runs/<algo>/seed_<seed>.

    The data are digits, unless flags say otherwise.
    """
    monkeypatch.chdir(tmp_path)

    def make(algo, seed=0, is_fitted=True, has_kinds=False, **flags):
        completed = flag_values(build_run_config({"dataset": "digits", "algo": algo, "seed": seed, **flags}))
        path = pathlib.Path("runs", algo, f"seed_{seed}")
        path.mkdir(parents=True, exist_ok=True)
        write_json(path / "config.json", {"flags": completed, "data": {}})
        clients = {"archetype": np.array([0.0, 1.0])} if has_kinds else {}
        columns = {"round": np.array([1.0])}
        return ComparedRun(
            str(path), path, completed, find_algorithm(algo).title, columns, clients, is_fitted=is_fitted
        )

    return make


def read_command(command):
    """The runs of the sweep that a command asks for."""
    assert command.startswith(f"{PROGRAM} ")
    return parse_request(shlex.split(command.removeprefix(PROGRAM))).tasks


def test_the_command_trains_what_is_missing_on_the_same_data_and_seeds(make_run):
    flags = {"dataset": "mnist", "dirichlet_alpha": 0.1, "rounds": 7, "fairness": True}
    runs = [make_run("ditto", seed, **flags) for seed in range(4)] + [make_run("fedavg", 5, False, **flags)]
    runs.append(make_run("local_only", 1, **flags))
    (missing,) = find_missing(runs)
    assert missing.text == "Missing to compare with, on the same data and seeds: local training, Fine-Tuning."
    assert missing.command == (
        "python -m launch.sweep --algos=local_only,fine_tuning --seeds=0-3 --runs_dir=runs/references -- "
        "--dataset=mnist --rounds=7 --batch_size=16 --fairness --dirichlet_alpha=0.1"
    )
    assert len(read_command(missing.command)) == 8


@pytest.mark.parametrize(
    ("algos", "asked"),
    [
        (["fedavg"], {"is_fitted": False}),
        (["ditto", "local_only", "fine_tuning"], {}),
        (["local_only"], {}),
        (["ditto"], {"smoke": True}),
    ],
)
def test_nothing_is_missing_of_plain_runs_and_of_complete_ones(algos, asked, make_run):
    assert find_missing([make_run(algo, **asked) for algo in algos]) == []


def test_where_the_kinds_of_clients_are_known_so_is_an_oracle(make_run):
    (missing,) = find_missing([make_run("fedcd", has_kinds=True, dataset="cifar10", bias_min=0.2)])
    assert missing.text.endswith(": local training, Fine-Tuning, Oracle.")
    asked = missing.command.partition(" --runs_dir=")[2]
    assert asked.startswith("runs/fedcd/references_of_seed_0 -- --dataset=cifar10")
    assert "--partition=hierarchical" in asked and "--bias_min=0.2" in asked
    assert len(read_command(missing.command)) == 3


def test_new_clients_have_no_local_training(make_run):
    (missing,) = find_missing([make_run("fedsikd", new_clients=2)])
    assert missing.text.endswith("seeds: Fine-Tuning.")


def test_each_data_has_a_command_of_its_own(make_run):
    runs = [make_run(algo, 0) for algo in ("ditto", "local_only", "fine_tuning")]
    runs += [make_run("ditto", seed, dirichlet_alpha=0.1) for seed in (0, 2)]
    (missing,) = find_missing(runs)
    assert missing.text.startswith("Missing to compare with, on the same data (dirichlet alpha 0.1) and seeds: local")
    assert "--seeds=0,2 " in missing.command
    for number, each in enumerate(find_missing([run for run in runs if run.flags["algo"] == "ditto"])):
        assert f"--runs_dir=runs/ditto/references_{number} " in each.command


def test_no_folder_elsewhere_is_named(make_run, tmp_path, monkeypatch):
    run = make_run("ditto")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    (missing,) = find_missing([run._replace(path=tmp_path / run.path)])
    assert "--runs_dir=runs/references_of_seed_0 " in missing.command and str(tmp_path) not in missing.command


def test_the_baseline_is_trained_with_at_least_three_seeds_where_it_is_missing(make_run):
    runs = [make_run("fedsikd", 5, False, dirichlet_alpha=0.1)]
    assert spell_baseline(runs) == (
        "python -m launch.sweep --algos=fedavg --seeds=0,1,5 --runs_dir=runs -- --dataset=digits --dirichlet_alpha=0.1"
    )
    assert len(read_command(spell_baseline(runs))) == 3
    assert spell_baseline([*runs, make_run("fedavg", 5, False, dirichlet_alpha=0.1)]) == ""
    assert spell_baseline([*runs, make_run("fednova", 5, False, dirichlet_alpha=1)]) == "", "of two data"
