"""A finished run as it is read back."""

import hashlib
import json
from types import SimpleNamespace

import pytest

from launch.runs.errors import RunFolderError
from launch.runs.run_description import describe_data
from launch.runs.tables import write_json, write_table
from launch.settings import typed_places
from launch.settings.errors import FlagError
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
    # A run of an earlier version has no sums, so that nothing is known of its code.
    config = json.loads((path / "config.json").read_text())
    write_json(path / "config.json", {name: value for name, value in config.items() if name != "own_modules"})
    assert read(path).rounds == 1
    write_json(path / "config.json", config)
    (tmp_path / "own_net.py").write_text("UNITS = 4\n")
    assert read(path).rounds == 1


def test_other_code_is_noted_unless_models_are_made_anew_by_it(finish, tmp_path, capsys):
    path = finish()
    (tmp_path / "own_sums.py").write_text("x = 1\n")
    assert read(path).rounds == 1 and "your code changed since the run (own_sums); its saved" in capsys.readouterr().out
    write_json(path / "summary.json", {"rounds": 1, "fedavg": {}, "is_personal": True})
    with pytest.raises(RunFolderError, match="own_sums"):
        read(path)


def test_a_saved_model_is_of_the_architecture_that_its_clients_name(tmp_path):
    specs = {name: SimpleNamespace(name=name) for name in ("small", "large", "teacher")}
    spec = SimpleNamespace(name="small", peers=(specs["large"],), teacher=specs["teacher"])
    architectures = {"client_0": "small", "client_1": "large", "client_2": "of another version"}
    run = FinishedRun(tmp_path, None, {}, {}, frozenset({"t"}), 1, architectures=architectures)
    assert run.choose_spec(spec, "client_1") is specs["large"] and run.choose_spec(spec, "t") is specs["teacher"]
    assert all(run.choose_spec(spec, name) is spec for name in ("client_0", "client_2", "global"))


@pytest.fixture
def shared(tmp_path, monkeypatch):
    """The folder of a stranger's run whose records name one to fill."""
    monkeypatch.setattr(typed_places, "_typed", set())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    config = build_run_config({"algo": "fedavg", "num_clients": 3, "client_dir": str(tmp_path / "autostart")})
    sizes = {"input_shape": [8, 8, 1], "input_dtype": "uint8", "scale": 1.0, "offset": 0.0, "class_names": list("01")}
    write_json(tmp_path / "shared" / "config.json", {"flags": flag_values(config), "data": sizes})
    write_json(tmp_path / "shared" / "summary.json", {"rounds": 1, "fedavg": {}})
    write_table(tmp_path / "shared" / "clients.csv", ["client", "model"], [["client_0", "global"]])
    return tmp_path / "shared"


def test_client_files_go_to_no_folder_of_a_stranger_until_it_is_typed_once(tmp_path, shared, monkeypatch):
    with pytest.raises(FlagError, match=r"names --client_dir=\S+/autostart, .* add --client_dir=\S+ this once"):
        read_finished_run(str(shared)).load_data()
    assert not (tmp_path / "autostart").exists()
    typed = read_finished_run(str(shared), client_dir=str(tmp_path / "other"))
    assert len(typed.load_data().clients) == 3 and (tmp_path / "other").is_dir()
    # Another one was typed.
    with pytest.raises(FlagError):
        read_finished_run(str(shared)).load_data()
    read_finished_run(str(shared), client_dir=str(tmp_path / "autostart")).load_data()
    # In another process.
    monkeypatch.setattr(typed_places, "_typed", set())
    assert len(read_finished_run(str(shared)).load_data().clients) == 3


def test_sums_of_a_stranger_are_no_reason_to_trust_it(shared):
    names = ("config.json", "summary.json", "clients.csv")
    sums = [f"{hashlib.sha256((shared / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    (shared / "checksums.sha256").write_text("".join(sums))
    with pytest.raises(FlagError, match="names --client_dir"):
        read_finished_run(str(shared)).load_data()


def test_no_table_is_written_because_a_record_names_it(tmp_path, shared):
    (tmp_path / "precious.csv").write_text("keep me")
    config = json.loads((shared / "config.json").read_text())
    config["flags"] |= {"dataset": "building", "building_num_sensors": 3, "client_dir": ""}
    config["flags"]["building_csv"] = str(tmp_path / "precious.csv")
    write_json(shared / "config.json", config)
    read_finished_run(str(shared)).load_data()
    assert (tmp_path / "precious.csv").read_text() == "keep me"
