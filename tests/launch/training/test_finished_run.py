"""A finished run as it is read back."""

import json
from types import SimpleNamespace

import pytest

from launch.runs.errors import RunFolderError
from launch.runs.run_description import describe_data
from launch.runs.tables import write_json, write_table
from launch.settings.module_sums import sum_run_modules
from launch.settings.run_config import build_run_config, flag_values
from launch.training.finished_run import FinishedRun, read_finished_run


@pytest.fixture
def finish(tmp_path, make_federation, monkeypatch):
    """(is_personal, **flags) -> the folder of a finished run; a model and an aggregator lie beside it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "own_net.py").write_text("UNITS = 4\n")
    (tmp_path / "own_sums.py").write_text("")

    def finish(is_personal=False, **flags):
        config = build_run_config({"algo": "fedavg", "model": "own_net:build", "aggregator": "own_sums:F", **flags})
        content = {"flags": flag_values(config), "data": describe_data(make_federation([3, 5]))}
        path = tmp_path / "run"
        path.mkdir()
        write_json(path / "config.json", content | {"own_modules": sum_run_modules(config)})
        write_json(path / "summary.json", {"rounds": 1, "fedavg": {}, "is_personal": is_personal})
        write_table(path / "clients.csv", ["client", "model"], [["client_0", "global"]])
        return path

    return finish


def read(path):
    return read_finished_run(str(path), trusted={"own_net", "own_sums"})


def test_models_are_not_built_by_code_that_has_changed(finish, tmp_path):
    path = finish()
    assert read(path).rounds == 1
    (tmp_path / "own_net.py").write_text("UNITS = 8\n")
    with pytest.raises(RunFolderError, match=r"your code changed since the run \(own_net\).*; put the former"):
        read(path)
    (tmp_path / "own_net.py").write_text("UNITS = 4\n")
    assert read(path).rounds == 1


def test_other_code_is_noted_unless_models_are_made_anew_by_it(finish, tmp_path, capsys):
    path = finish()
    (tmp_path / "own_sums.py").write_text("x = 1\n")
    assert read(path).rounds == 1 and "your code changed since the run (own_sums); its saved" in capsys.readouterr().out
    write_json(path / "summary.json", {"rounds": 1, "fedavg": {}, "is_personal": True})
    with pytest.raises(RunFolderError, match="own_sums"):
        read(path)


def test_of_a_run_of_an_earlier_version_nothing_is_known(finish, tmp_path):
    path = finish()
    config = json.loads((path / "config.json").read_text())
    del config["own_modules"]
    write_json(path / "config.json", config)
    (tmp_path / "own_net.py").write_text("UNITS = 8\n")
    assert read(path).rounds == 1


def test_a_saved_model_is_of_the_architecture_that_its_clients_name(tmp_path):
    specs = {name: SimpleNamespace(name=name) for name in ("small", "large", "teacher")}
    spec = SimpleNamespace(name="small", peers=(specs["large"],), teacher=specs["teacher"])
    architectures = {"client_0": "small", "client_1": "large", "client_2": "of another version"}
    run = FinishedRun(tmp_path, None, {}, {}, frozenset({"t"}), 1, architectures=architectures)
    assert run.choose_spec(spec, "client_1") is specs["large"] and run.choose_spec(spec, "t") is specs["teacher"]
    assert all(run.choose_spec(spec, name) is spec for name in ("client_0", "client_2", "global"))
