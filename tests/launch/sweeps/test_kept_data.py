"""A sweep does not train an experiment on other data than its kept runs had."""

import json

import pytest

from launch.settings.errors import FlagError
from launch.settings.run_config import build_run_config, flag_values
from launch.sweep import main
from launch.sweeps.kept_data import check_kept_data
from launch.sweeps.present_data import PresentData
from launch.sweeps.recipes import Recipe
from launch.sweeps.tasks import Task
from launch.training.opened_data import name_data

SUBSET, WHOLE = "cifar10 subset (20,000 + 5,000 images)", "cifar10"
RECIPE = Recipe("fedavg", "--algo=fedavg")
EXPERIMENT = "fedcd/fedcd_cifar10_hierarchical_cpu"


@pytest.fixture
def present(monkeypatch):
    """Here lies the whole data set."""
    monkeypatch.setattr("launch.training.opened_data.name_data", lambda config: WHOLE)
    return PresentData()


def make_task(tmp_path, seed=0, **flags):
    flags = {"algo": "fedavg", "dataset": "cifar10", "rounds": 1, "seed": seed, **flags}
    return Task(RECIPE, (), tmp_path / "runs" / "fedavg" / f"seed_{seed}", build_run_config(flags))


def keep(folder, config, data, name="fedavg", is_finished=True):
    """A kept run, as an archive has it."""
    run_dir = folder / name / f"seed_{config.seed}"
    run_dir.mkdir(parents=True)
    (run_dir / "config.json").write_text(json.dumps({"flags": flag_values(config), "data": data}))
    if is_finished:
        (run_dir / "summary.json").write_text(json.dumps({"rounds": config.rounds}))


@pytest.mark.parametrize("seed", [0, 5])
def test_another_data_set_of_that_name_is_refused_whatever_the_seed(tmp_path, present, seed):
    keep(tmp_path / "kept", make_task(tmp_path).config, {"dataset": SUBSET})
    message = (
        r"^fedavg, seed \d: .*seed_0 was trained on cifar10 subset .*, and this run would have cifar10; expected the"
    )
    with pytest.raises(FlagError, match=message) as caught:
        check_kept_data([make_task(tmp_path, seed)], [tmp_path / "kept"], present)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "flags"),
    [
        ({"dataset": WHOLE}, {}),
        ({"dataset": SUBSET}, {"learning_rate": 0.7}),  # other settings: another run
        ({}, {}),  # of an earlier version, which says nothing
    ],
)
def test_the_same_data_and_what_cannot_be_compared_are_trained(tmp_path, present, data, flags):
    keep(tmp_path / "kept", make_task(tmp_path, **flags).config, data)
    check_kept_data([make_task(tmp_path)], [tmp_path / "kept"], present)


def test_what_is_finished_is_not_trained_and_needs_no_data(tmp_path, present):
    task = make_task(tmp_path)
    keep(tmp_path / "kept", task.config, {"dataset": SUBSET})
    keep(tmp_path / "runs", task.config, {"dataset": SUBSET})
    check_kept_data([task], [tmp_path / "kept"], present)


def test_a_table_that_was_corrected_is_told_by_its_digest(tmp_path):
    (table := tmp_path / "table.csv").write_text("client,a,label\n" + "".join(f"c,{i},{i % 2}\n" for i in range(40)))
    task = make_task(tmp_path, dataset="files", data=str(table))
    keep(tmp_path / "kept", task.config, {"dataset": "table.csv", "digest": "another"}, is_finished=False)
    with pytest.raises(FlagError, match=r"was trained on other data than .*table.csv holds now"):
        check_kept_data([task], [tmp_path / "kept"], PresentData())
    check_kept_data([make_task(tmp_path, 1, dataset="files", data=str(table))], [tmp_path / "kept"], PresentData())


@pytest.mark.parametrize("flag", ["finished", "same_data_as"])
def test_a_sweep_on_other_data_is_one_line_and_trains_nothing(tmp_path, present, capsys, flag):
    config = Recipe("any", f"--experiment={EXPERIMENT}").resolve(("--seed=0",))
    keep(tmp_path / "kept", config, {"dataset": SUBSET}, EXPERIMENT.partition("/")[2])
    where = [f"--runs_dir={tmp_path / 'runs'}", f"--{flag}={tmp_path / 'kept'}"]
    assert main([f"--experiments={EXPERIMENT}", "--seeds=1", *where]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: fedcd_cifar10_hierarchical_cpu, seed 1: ") and said.count("\n") == 1
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(("dataset", "name"), [("digits", "digits"), ("cifar10", "cifar10")])
def test_what_lies_here_or_would_be_downloaded_is_named(tmp_path, dataset, name):
    assert name_data(build_run_config({"algo": "fedavg", "dataset": dataset, "data_dir": str(tmp_path)})) == name
