"""--final_steps: FedAvg with it is Fine-Tuning; runs of several models with it go on, and leave the clients' own."""

import json

import pytest

from launch import evaluate, export, train
from launch.runs.run_records import read_rounds, read_rows

pytestmark = pytest.mark.usefixtures("no_plots", "convert_here")
DATA = (
    *("--dataset=digits", "--num_clients=4", "--rounds=2", "--rounds_per_evaluation=1"),
    *("--model=perceptron", "--batch_size=32", "--norun_page"),
)
FINAL = ("--final_steps=5", "--final_learning_rate=0.1")
IFCA = ("--algo=ifca", "--num_models=2", "--epochs=1", *FINAL)


@pytest.fixture(scope="module")
def make_run(tmp_path_factory):
    """(name of its folder, further flags) -> the folder of a run, made once; one with --resume goes on."""
    folder = tmp_path_factory.mktemp("final")

    def make(name, *flags):
        path = folder / name
        if path.exists() and "--resume" not in flags:
            return path
        given = flags if "--resume" in flags else (*DATA, *flags)
        assert train.main([*given, f"--run_dir={path}", f"--client_dir={folder / 'clients'}"]) == 0
        return path

    return make


def read(run, file, names):
    return [{name: row[name] for name in names} for row in read_rows(run / file)]


def test_fedavg_with_final_steps_is_fine_tuning(make_run):
    fedavg = make_run("fedavg", "--algo=fedavg", "--epochs=1", *FINAL)
    tuned = make_run("tuned", "--algo=fine_tuning", "--local_epochs=1", "--steps=5", "--learning_rate=0.1")
    for file in ("metrics.csv", "clients.csv"):
        assert (fedavg / file).read_bytes() == (tuned / file).read_bytes()
    summary, other = (json.loads((run / "summary.json").read_text()) for run in (fedavg, tuned))
    assert summary["is_personal"] and summary["fedavg"] == other["fine_tuning"]
    assert summary["fedavg"]["fine_tuning_virtual_s"] > 0
    # What training is worth beside random weights would cost as much again.
    assert "fine_tuning_start" in other and "fine_tuning_start" not in summary
    plain = make_run("plain", "--algo=fedavg", "--epochs=1")
    own, shared = ("client_test_accuracy", "client_validation_accuracy"), ("test_accuracy", "virtual_time_s")
    assert read(plain, "metrics.csv", shared) == read(fedavg, "metrics.csv", shared)
    assert all(a != b for a, b in zip(*(read(run, "metrics.csv", own) for run in (plain, fedavg)), strict=True))


def test_its_seconds_count_where_that_is_asked_for(make_run):
    """What it takes is known before: of a limit that two rounds pass with it and not without it, one round is left."""
    tuned = make_run("fedavg", "--algo=fedavg", "--epochs=1", *FINAL)
    final_s = json.loads((tuned / "summary.json").read_text())["fedavg"]["fine_tuning_virtual_s"]
    first_s, second_s = (row["virtual_time_s"] for row in read_rounds(tuned / "metrics.csv").values())
    limit = f"--most_virtual_s={second_s + 0.5 * final_s}"
    assert final_s > 0 and first_s + final_s <= second_s + 0.5 * final_s
    for name, flags, rounds in (("free", (), 2), ("counted", ("--limit_fine_tuning",), 1)):
        run = make_run(name, "--algo=fedavg", "--epochs=1", *FINAL, limit, *flags)
        assert len(read_rounds(run / "metrics.csv")) == rounds


def test_a_run_of_two_models_goes_on_and_leaves_the_clients_own(make_run, capsys):
    whole = make_run("whole", *IFCA)
    resumed = make_run("resumed", *IFCA, "--rounds=1")
    make_run("resumed", "--resume", "--rounds=2")
    for file in ("metrics.csv", "clients.csv", "models/model_1/model.keras"):
        assert (whole / file).exists()
        if not file.endswith(".keras"):
            assert (whole / file).read_bytes() == (resumed / file).read_bytes()
    client = read_rows(whole / "clients.csv")[2]
    assert client["model"] in ("model_0", "model_1")
    assert evaluate.main([f"--run_dir={whole}"]) == 0
    assert export.main([f"--run_dir={whole}", f"--model={client['client']}", "--formats=float32"]) == 0
    [row] = read_rows(whole / "export" / "report.csv")
    assert float(row["client_test_accuracy"]) == pytest.approx(float(client["accuracy"]), abs=1e-6)
    described = json.loads((whole / "export" / f"{client['client']}.float32.json").read_text())
    assert described["source_model"] == client["model"]


@pytest.mark.parametrize(
    ("algo", "reason"),
    [
        ("ditto", "have models of their own already"),
        ("fine_tuning", "have models of their own already"),
        ("local_only", "share no model"),
    ],
)
def test_clients_with_models_of_their_own_take_no_final_steps(tmp_path, capsys, algo, reason):
    code = train.main([*DATA, f"--algo={algo}", "--final_steps=5", f"--run_dir={tmp_path / 'run'}"])
    assert code == 2 and not (tmp_path / "run").exists()
    expected = f"error: --final_steps=5: expected 0 with --algo={algo}, whose clients {reason}"
    assert capsys.readouterr().err.strip().splitlines()[-1] == expected


def test_a_rate_without_steps_is_told(capsys):
    assert train.main([*DATA, "--algo=fedavg", "--final_learning_rate=0.1"]) == 2
    assert "give steps, such as --final_steps=50" in capsys.readouterr().err
