"""Runs with scaled features: what they learn, what they keep, how they go on, and what they are exported to."""

import json
import shutil

import numpy as np
import pytest

from launch import evaluate, export, train
from launch.runs.run_description import describe_data
from launch.runs.stored_data import read_data_section
from launch.settings.flags import FlagError, parse_config
from launch.tflite.export_measurement import ExportedFile
from launch.training.federation import load_federated_data
from launch.training.finished_run import read_finished_run
from models.saved_models import load_weights

pytestmark = pytest.mark.usefixtures("no_plots", "convert_here")
ROUNDS = 3
HERE = ["--algo=fedavg", "--runtime=in_process", "--norun_page"]
FLAGS = [*HERE, "--model=perceptron", "--dataset=npz", "--batch_size=16"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """300 rows of 5 clients: the first feature tells the class, the second is about 1e6, the third does not vary."""
    rng = np.random.default_rng(3)
    y = np.arange(300) % 3 == 0
    x = np.column_stack([rng.normal(size=300) + 4 * y, 1e6 + 1000 * rng.normal(size=300), np.full(300, 7.0)])
    path = tmp_path_factory.mktemp("table") / "mine.npz"
    whose = np.arange(300) % 5
    tests = {"x_test": x[:60], "y_test": y[:60].astype(int)}
    np.savez(path, x=x[60:], y=y[60:].astype(int), client=whose[60:], **tests)
    return path


def run(table, folder, *flags):
    arguments = [*FLAGS, f"--npz={table}", f"--run_dir={folder}", f"--client_dir={table.parent / 'shards'}"]
    return train.main([*arguments, *(flags or ())])


@pytest.fixture(scope="module")
def scaled_run(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("scaled") / "run"
    assert run(table, folder, "--standardize=federated", f"--rounds={ROUNDS}") == 0
    return folder


def read_summary(folder):
    return json.loads((folder / "summary.json").read_text())


def test_an_unscaled_table_says_how_to_scale(table, tmp_path):
    data = load_federated_data(parse_config([*FLAGS, f"--npz={table}", f"--client_dir={tmp_path}"]))
    assert any(note.endswith("--standardize=federated") for note in data.notes)
    assert "feature_means" not in describe_data(data)


def test_a_scaled_one_learns_and_keeps_the_numbers(table, scaled_run):
    assert read_summary(scaled_run)["final"]["test_accuracy"] > 0.9
    data = json.loads((scaled_run / "config.json").read_text())["data"]
    read_data_section(data, scaled_run)
    assert data["notes"] == [] and data["feature_deviations"][2] == 1 and data["feature_means"][2] == 7
    stored = np.load(table)["x"].astype(np.float32)
    # Of the train splits, which have eleven twelfths of the rows or so: near the numbers of all.
    np.testing.assert_allclose(data["feature_means"], stored.mean(0, np.float64), rtol=0.2)
    assert data["feature_deviations"][1] == pytest.approx(stored[:, 1].std(dtype=np.float64), rel=0.1)


def test_a_run_that_goes_on_has_the_same_bytes(table, scaled_run, tmp_path):
    shutil.copytree(scaled_run, tmp_path / "run")
    # The last round is made again, with the means and deviations that are stored.
    (tmp_path / "run" / "checkpoints" / f"round_{ROUNDS}.npz").unlink()
    assert run(table, tmp_path / "run", "--standardize=federated", f"--rounds={ROUNDS}", "--resume") == 0
    assert (tmp_path / "run" / "metrics.csv").read_bytes() == (scaled_run / "metrics.csv").read_bytes()
    configs = [json.loads((folder / "config.json").read_text())["data"] for folder in (tmp_path / "run", scaled_run)]
    assert configs[0] == configs[1]
    assert run(table, tmp_path / "run", "--standardize=none", f"--rounds={ROUNDS}", "--resume") == 2


def test_a_finished_run_scales_without_its_data(scaled_run, table, capsys):
    finished = read_finished_run(str(scaled_run))
    spec = finished.build_spec()
    assert spec.standardization.means == tuple(finished.data["feature_means"])
    assert evaluate.main([f"--run_dir={scaled_run}", f"--npz={table}"]) == 0
    assert f"{read_summary(scaled_run)['final']['test_accuracy']:.4f}" in capsys.readouterr().out


# That a converted file scales is tested in tests/models/test_standardization.py.
@pytest.mark.slow
def test_every_file_answers_as_keras_on_unscaled_rows(scaled_run, table):
    assert export.main([f"--run_dir={scaled_run}", "--formats=float32,int8"]) == 0
    finished = read_finished_run(str(scaled_run))
    spec = finished.build_spec()
    model = spec.build()
    (folder,) = finished.find_model_folders().values()
    model.set_weights(load_weights(spec, folder))
    rows = np.load(table)["x_test"].astype(np.float32)
    # A table's rows get a channel where the model takes series.
    x = rows[..., None] if spec.format.input_shape == (3, 1) else rows
    expected = model(spec.preprocess(x), training=False).numpy()
    assert len(np.unique(expected.argmax(1))) == 2
    for name in ("float32", "int8"):
        (path,) = (scaled_run / "export").glob(f"*.{name}.tflite")
        outputs = ExportedFile(path.read_bytes()).compute_outputs(x)
        np.testing.assert_allclose(outputs, expected, atol=0.1 * np.abs(expected).max())
    assert "the file scales them" in json.loads((scaled_run / "export" / "card.json").read_text())["input"]


def test_each_client_by_its_own_numbers(table, tmp_path, capsys, write_finished_run):
    building = {"dataset": "building", "building_num_sensors": 4, "partition": "natural"}
    write_finished_run(tmp_path / "run", algo="fedavg", standardize="client", **building)
    assert evaluate.main([f"--run_dir={tmp_path / 'run'}"]) == 0
    data = read_finished_run(str(tmp_path / "run")).load_data()
    assert "scaled by its own means and deviations" in data.reading
    for client in data.clients:
        x, _ = data.read_split(client, "train")
        # Of the train and the validation split together: 0 and 1.
        assert abs(x.mean()) < 0.2 and 0.7 < x.std() < 1.3
    assert evaluate.main([f"--run_dir={tmp_path / 'run'}", f"--npz={table}"]) == 2
    assert "own numbers" in capsys.readouterr().err
    assert run(table, tmp_path / "other", "--standardize=client") == 2
    assert "does not say which test examples are whose" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--algo=fedavg", "--standardize=federated", "--dp_epsilon=4", "--client_weighting=equal"], "with privacy"),
        (["--algo=fedsikd", "--standardize=federated", "--privacy_epsilon=2"], "with privacy"),
        (["--algo=fedavg", "--standardize=client", "--partition=iid"], "--partition=natural"),
        (["--algo=fedavg", "--standardize=yes"], "none, federated, client"),
        (
            ["--algo=fedavg", "--standardize=federated", "--unscaled=none"],
            "unscaled=none: expected auto, categories, n",
        ),
        (["--algo=fedavg", "--unscaled=-1"], "--standardize=federated"),
    ],
)
def test_what_makes_no_sense_is_refused(flags, said):
    with pytest.raises(FlagError, match=said):
        parse_config(flags)
