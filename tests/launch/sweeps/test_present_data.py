"""A finished run whose data or whose own code have changed since is not the run that is asked for."""

import importlib
import json
import os
import shutil
import sys

import numpy as np
import pytest
from PIL import Image

from launch.runs.errors import RunFolderError
from launch.runs.run_description import describe_data
from launch.settings.module_sums import sum_run_modules
from launch.settings.run_config import build_run_config, flag_values
from launch.sweeps.present_data import PresentData
from launch.sweeps.recipes import Recipe
from launch.sweeps.tasks import Task, is_finished
from launch.training.federation import load_federated_data
from launch.training.opened_data import identify_data

ROWS = [f"c{i % 3},{i},{-i},{'yes' if i % 2 else 'no'}" for i in range(60)]
OWN_DATA = """
import numpy as np
from datasets.arrays import make_array_dataset
from datasets.catalog import Dataset
from datasets.example_format import ExampleFormat, Preprocessing

def load(options):
    y = np.arange(40) % 2
    x = np.random.default_rng(3).normal(size=(40, 3)).astype(np.float32) * FACTOR
    form = ExampleFormat((3,), "float32", ("low", "high"), Preprocessing(0.5))
    return make_array_dataset("waves", (x, y), (x[:4], y[:4]), form, y)

FACTOR = 1
DATASET = Dataset("waves", loader=load, clients="buoys", partition="natural")
"""


def write_table(path, rows=ROWS):
    path.write_text("\n".join(["client,a,b,label", *rows, ""]))


def make_task(tmp_path, folder="run", finished=(), **flags):
    flags = {"algo": "fedavg", "rounds": 1, "client_dir": str(tmp_path / "clients"), **flags}
    return Task(Recipe("fedavg", "--algo=fedavg"), (), tmp_path / folder, build_run_config(flags), finished)


def finish(task, **changes):
    """Stands in for training."""
    task.run_dir.mkdir(parents=True)
    data, modules = describe_data(load_federated_data(task.config)), sum_run_modules(task.config)
    config = {"flags": flag_values(task.config), "data": data, "own_modules": modules, **changes}
    (task.run_dir / "config.json").write_text(json.dumps(config))
    (task.run_dir / "summary.json").write_text(json.dumps({"rounds": 1}))


def ask(tmp_path, **flags):
    return is_finished(make_task(tmp_path, **flags))


def test_a_corrected_table_is_said_and_the_same_bytes_are_the_same(tmp_path):
    path, other = tmp_path / "table.csv", tmp_path / "elsewhere.csv"
    write_table(path)
    finish(make_task(tmp_path, data=str(path)))
    # Another time of change with the same bytes.
    os.utime(path, (1, 1))
    shutil.copy(path, other)
    assert ask(tmp_path, data=str(path)) and ask(tmp_path, data=str(other))
    write_table(path, [*ROWS[:-1], ROWS[-1].replace("yes", "no")])
    with pytest.raises(RunFolderError, match=r"run: a run on other data than .*table.csv holds now; choose another --"):
        ask(tmp_path, data=str(path))
    assert ask(tmp_path, data=str(other)), "where the file is, is no matter"


def write_npz(folder, factor):
    np.savez(folder / "mine.npz", x=np.arange(180, dtype=np.float32).reshape(60, 3) * factor, y=np.arange(60) % 2)


def write_images(folder, factor):
    for i in range(40):
        path = folder / "images" / f"client_{i % 2}" / f"class_{i // 2 % 2}" / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((4, 4), 5 * i + (factor if i == 4 else 0), np.uint8)).save(path)


def write_devices(folder, factor):
    write_table(folder / "table.csv")
    lines = ["device,examples_per_s,downlink_bytes_per_s,uplink_bytes_per_s", f"a,{factor},2,3", ""]
    (folder / "devices.csv").write_text("\n".join(lines))


@pytest.mark.parametrize(
    ("write", "changed", "flags"),
    [
        (write_npz, "mine.npz", {"dataset": "npz", "npz": "mine.npz", "partition": "iid"}),
        (write_images, "images", {"data": "images"}),
        (write_devices, "devices.csv", {"data": "table.csv", "device_profiles": "devices.csv"}),
    ],
)
def test_other_data_under_the_same_name_are_said(tmp_path, monkeypatch, write, changed, flags):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, 1)
    finish(make_task(tmp_path, **flags))
    assert ask(tmp_path, **flags)
    write(tmp_path, 2)
    with pytest.raises(RunFolderError, match=f"other data than {changed}"):
        ask(tmp_path, **flags)


def test_code_of_ones_own_that_is_edited_is_said(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    source = tmp_path / "own_waves.py"
    source.write_text(OWN_DATA)
    (tmp_path / "own_net.py").write_text("import own_units\n")
    (tmp_path / "own_units.py").write_text("UNITS = 4\n")
    flags = {"dataset": "own_waves:DATASET", "model": "own_net:build"}
    try:
        finish(make_task(tmp_path, **flags))
        finish(make_task(tmp_path, "old", **flags), own_modules=None)
        assert ask(tmp_path, **flags)
        (tmp_path / "own_units.py").write_text("UNITS = 8\n")
        with pytest.raises(RunFolderError, match="run: a run of other code than own_units holds now"):
            ask(tmp_path, **flags)
        assert is_finished(make_task(tmp_path, "old", **flags)), "of a run of an earlier version, nothing is known"
        source.write_text(OWN_DATA.replace("FACTOR = 1", "FACTOR = 10"))
        importlib.invalidate_caches()
        sys.modules.pop("own_waves")
        with pytest.raises(RunFolderError, match="old: a run on other data than own_waves:DATASET holds now"):
            is_finished(make_task(tmp_path, "old", **flags))
    finally:
        sys.modules.pop("own_waves", None)


def test_a_kept_run_on_other_data_is_another_run(tmp_path):
    write_table(path := tmp_path / "table.csv")
    finish(make_task(tmp_path, "kept/fedavg/seed_0", data=str(path)))
    archived = (tmp_path / "kept",)
    assert is_finished(make_task(tmp_path, data=str(path), finished=archived))
    write_table(path, ROWS[::-1])
    assert not is_finished(make_task(tmp_path, data=str(path), finished=archived))


def test_data_that_are_gone_are_told_once_and_change_nothing(tmp_path, capsys):
    write_table(path := tmp_path / "table.csv")
    task = make_task(tmp_path, data=str(path))
    finish(task)
    path.unlink()
    assert is_finished(task) and is_finished(task)
    said = capsys.readouterr().out
    assert said.count("\n") == 1 and "table.csv" in said and "is taken to be of these data" in said


def test_each_data_are_opened_once_and_what_is_made_meanwhile_is_not_looked_at(tmp_path, monkeypatch):
    write_table(path := tmp_path / "table.csv")
    opened = []
    monkeypatch.setattr("launch.training.opened_data.identify_data", lambda config: opened.append(config.seed) or {})
    present = PresentData()
    tasks = [make_task(tmp_path, f"run_{i}", data=str(path), learning_rate=0.1 * (1 + i)) for i in range(3)]
    finish(tasks[0])
    finish(tasks[1])
    for task in tasks * 2:
        present.find_change(task.run_dir, task.config, task is not tasks[2])
    finish(tasks[2])
    assert present.find_change(tasks[2].run_dir, tasks[2].config) == "" and opened == [0]


@pytest.mark.parametrize(
    "flags",
    [
        {"dataset": "digits", "partition": "shards"},
        {"dataset": "digits", "partition": "hierarchical", "clients_per_archetype": 1, "train_per_client": 5},
        {"dataset": "digits", "variant": "rotated", "num_clients": 4, "seed": 2},
        {"dataset": "digits", "smoke": True},
        {"data": "table.csv"},
        {"data": "tested.csv", "standardize": "client"},
        {"data": "table.csv", "most_clients": 2},
        {"data": "table.csv", "partition": "iid", "num_clients": 2, "seed": 1},
    ],
    ids=lambda flags: " ".join(map(str, flags.values())),
)
def test_data_are_identified_as_a_run_identifies_them(tmp_path, monkeypatch, flags):
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "table.csv")
    rows = [f"{row},{int(i > 40)}" for i, row in enumerate(ROWS)]
    (tmp_path / "tested.csv").write_text("\n".join(["client,a,b,label,test", *rows, ""]))
    config = make_task(tmp_path, **flags).config
    assert identify_data(config) == {"digest": load_federated_data(config).digest}


def test_a_setting_without_effect_is_no_other_data(tmp_path):
    """It is in the digest all the same."""
    asked = {"dataset": "digits", "partition": "iid"}
    finish(make_task(tmp_path, **asked, dirichlet_alpha=0.1))
    assert ask(tmp_path, **asked, dirichlet_alpha=0.5)
