"""`launch.advise`: what it says before it runs anything, what it asks for, and a small contest from end to end."""

import pathlib
import shlex

import pytest

from launch import advise
from launch.console.stop_signals import StopSignal
from launch.settings.flags import parse_config

DIGITS = ("--dataset=digits", "--partition=iid", "--num_clients=4", "--model=logistic_regression")


@pytest.fixture
def advise_here(tmp_path, monkeypatch, capsys):
    """(arguments) -> (exit code, stdout, stderr) of the command in a folder and with a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return lambda *arguments: (advise.main(list(arguments)), *capsys.readouterr())


PLAN = """\
data     digits: classification, 10 classes, judged by the clients' own accuracy
clients  4, examples of each to train on: 215 to 216, in the middle 216
splits   of each client's examples 15% to choose by, 25% to test on, where the data do not say it
note     clients are simulated (--partition=iid): the advice is for clients that differ like that
methods  Each client alone, FedAvg, FedAvg + fine-tuning, FedAdam, Ditto, AMFL-P
without  All data in one place: --no_pooled
without  IFCA: 4 clients are too few for groups; expected at least 6
without  FedPer or FedRep: the model has one layer alone
without  CFL: 4 clients are too few for groups; expected at least 6
without  FedSiKD: 4 clients are too few for groups; expected at least 6
without  FedCD: 4 clients are too few for groups; expected at least 6
without  Asynchronous FL: nothing says that devices differ; give --device_profiles
plan     without --plan_only a short run of FedAvg shows how many rounds and trials the minutes allow
"""


def test_the_plan_alone(advise_here, tmp_path, monkeypatch):
    monkeypatch.setattr(advise, "run_contest", None)
    assert advise_here(*DIGITS, "--no_pooled", "--plan_only") == (0, PLAN, "")
    assert not (tmp_path / "runs").exists()


def test_what_the_contest_is_asked_for(advise_here, monkeypatch):
    """And that a command which is stopped says how to go on."""
    asked = {}

    def stop(problem, methods, folder, **further):
        asked.update(further, problem=problem, methods=methods, folder=folder)
        raise StopSignal(15)

    monkeypatch.setattr(advise, "run_contest", stop)
    arguments = (*DIGITS, "--minutes=3", "--rounds=7", "--jobs=1", "--methods=ditto", "--data_dir=my data")
    code, _, error = advise_here(*arguments)
    assert code == 143 and error == f"stopped; go on with: python -m launch.advise {shlex.join(arguments)}\n"
    assert asked["seconds"] == 180 and asked["rounds"] == 7 and asked["jobs"] == 1 and 0 < asked["spent_s"] < 60
    assert asked["always"] == ["local_only", "fedavg", "pooled"] and asked["folder"] == pathlib.Path(
        "runs/advice/digits"
    )
    problem, methods = asked["problem"], asked["methods"]
    assert [method.name for method in methods] == ["local_only", "fedavg", "pooled", "ditto"]
    # What algorithms have defaults of their own for is the same for all.
    configs = [parse_config([f"--algo={method.algo}", *problem.arguments, *method.fixed]) for method in methods]
    for name in ("dataset", "partition", "batch_size", "validation_fraction", "test_fraction", "model", "num_clients"):
        assert len({getattr(config, name) for config in configs}) == 1, name
    assert configs[0].dataset == "digits" and configs[0].test_fraction == 0.25 and configs[0].data_dir == "my data"
    assert problem.name == "digits" and problem.result == "client_test_accuracy"
