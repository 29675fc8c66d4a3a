"""The commands that a live run ends with."""

import pathlib

from launch.live.twin import describe_stand_in, list_twin_commands
from launch.settings.run_config import build_run_config

TABLE = {"kind": "table", "columns": [{"kind": "number", "mean": 5.0, "deviation": 2.0}], "label": {"name": "is ill"}}


def test_data_in_the_place_of_clients_own_are_read_and_dealt_as_these_were():
    assert describe_stand_in(TABLE, 3) == {"num_clients": 3, "label_column": "is ill", "standardize": "federated"}
    unscaled = {**TABLE, "columns": [{"kind": "number", "mean": 0.0, "deviation": 1.0}]}
    assert describe_stand_in(unscaled, 3) == {"num_clients": 3, "label_column": "is ill"}
    assert describe_stand_in({"kind": "arrays", "classes": ["a", "b"]}, 2) == {"num_clients": 2}


def test_the_commands_name_what_was_given(tmp_path):
    config = build_run_config({"algo": "fedavg", "rounds": 7, "data": "mine.csv", "dataset": "files"})
    stand_in = describe_stand_in(TABLE, 3)
    run = tmp_path / "a run"
    run.mkdir()
    repeat, compare = list_twin_commands(config, run, stand_in)
    flags = "'--label_column=is ill' --standardize=federated --data=<data in place of the clients'>"
    assert repeat == f"python -m launch.train '--replay={run}' '--run_dir={run}_twin' {flags}"
    assert compare == f"python -m launch.compare --runs='{run}' --runs='{run}_twin'"
    (run / "devices.csv").touch()
    _, predict, compare = list_twin_commands(config, run, stand_in)
    assert predict == (
        "python -m launch.train --algo=fedavg --rounds=7 --num_clients=3 '--label_column=is ill' "
        f"--standardize=federated '--device_profiles={run}/devices.csv' '--run_dir={run}_devices' "
        "--data=<data in place of the clients'>"
    )
    assert compare.endswith(f"--runs='{run}_devices'")


def test_asynchronous_devices_have_the_speeds_that_were_measured(tmp_path):
    (tmp_path / "devices.csv").touch()
    _, predict, _ = list_twin_commands(build_run_config({"algo": "buffered"}), tmp_path)
    assert predict.startswith(f"python -m launch.train --algo=buffered --speed=profiles --device_profiles={tmp_path}")


def test_where_the_server_dealt_the_parts_the_twin_takes_them_again():
    config = build_run_config({"algo": "fedavg", "num_clients": 4})
    repeat, _ = list_twin_commands(config, pathlib.Path("runs/live"))
    assert repeat == "python -m launch.train --replay=runs/live --run_dir=runs/live_twin"
