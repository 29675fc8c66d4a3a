"""Runs with devices from a file, as a person makes them."""

import json

import pytest

from launch.pages.plots.run_plots import draw_run
from launch.runs.run_records import read_rows
from launch.runs.tables import write_table

HEADER = "client,device,examples_per_s,downlink_bytes_per_s,uplink_bytes_per_s"
ENERGY = "joules_per_example,joules_per_byte_down,joules_per_byte_up"
# Client 0 trains for hours and is always there; client 1 can be reached from hour 1 on.
TWO_DEVICES = f"""# two devices
{HEADER},{ENERGY},available_h
0,slow,0.1,1e9,1e9,0.5,1e-5,2e-5,
1,quick,1000,1e9,1e9,0.25,0,1e-5,1-24
"""


@pytest.fixture
def train(tmp_path, train_here, no_plots):
    (tmp_path / "two.csv").write_text(TWO_DEVICES)
    return lambda *flags: train_here("--seed=1", "--norun_page", *flags)


def ask_for_two_devices(tmp_path):
    devices = f"--device_profiles={tmp_path / 'two.csv'}"
    return "--algo=fedavg", "--model=perceptron", "--num_clients=2", "--epochs=1", "--fairness", devices


def test_a_run_counts_joules_and_waits_for_windows(tmp_path, train):
    code, said, _ = train(*ask_for_two_devices(tmp_path), "--rounds=3", f"--run_dir={tmp_path / 'straight'}")
    assert code == 0
    rounds, clients = read_rows(tmp_path / "straight" / "metrics.csv"), read_rows(tmp_path / "straight" / "clients.csv")
    sizes = [int(client["num_train"]) for client in clients]
    assert [client["device_name"] for client in clients] == ["slow", "quick"] and sizes[0] > 360
    # At hour 0 client 0 is alone; its training takes more than the hour after which client 1 is there, too.
    assert [row["num_clients"] for row in rounds] == ["1", "2", "2"]
    assert float(rounds[0]["virtual_time_s"]) == pytest.approx(10 * sizes[0], rel=1e-3)
    model_bytes = int(rounds[0]["bytes_down"])
    slow, quick = 0.5 * sizes[0] + 3e-5 * model_bytes, 0.25 * sizes[1] + 1e-5 * model_bytes
    assert [float(row["joules"]) for row in rounds] == pytest.approx([slow, slow + quick, slow + quick], rel=1e-5)
    assert float(rounds[2]["joules_total"]) == pytest.approx(3 * slow + 2 * quick, rel=1e-5)
    assert [float(client["joules"]) for client in clients] == pytest.approx([3 * slow, 2 * quick], rel=1e-5)
    summary = json.loads((tmp_path / "straight" / "summary.json").read_text())
    assert summary["joules"] == pytest.approx(
        {"total": 3 * slow + 2 * quick, "mean": 1.5 * slow + quick, "most": max(3 * slow, 2 * quick)}
    )
    # The spread of the clients' accuracies, which are not personal.
    accuracies = sorted(float(client["accuracy"]) for client in clients)
    spread = (accuracies[1] - accuracies[0]) / 2, accuracies[0]
    last = [float(rounds[2][f"client_test_accuracy_{name}"]) for name in ("std", "worst_tenth")]
    assert last == pytest.approx(spread, abs=1e-5) and summary["is_personal"] is False
    assert f"deviation {spread[0]:.4f}, worst tenth {spread[1]:.4f}" in said and " J of all clients" in said


# Does not say what its clients do.
MUTE_ALGORITHM = """
import dataclasses
from launch.settings.algorithms import ALGORITHMS
from tff_algos.rounds.synchronous import SynchronousProcess, build_parts

class Mute(SynchronousProcess):
    list_work = None

def build(*arguments):
    return Mute(**build_parts(*arguments))

ALGORITHM = dataclasses.replace(ALGORITHMS["fedavg"], name="mute", builder="build")
"""


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--device_profiles=none.csv"], "--device_profiles=none.csv: No such file or directory; expected a CSV file"),
        (["--device_profiles={two}", "--num_clients=3"], "no row for client 2; expected one for each of 0 to 2"),
        (["--device_profiles={bad}"], "line 3, joules_per_example=-1: expected a number of at least 0"),
        (["--device_profiles={apart}", "--num_clients=3", "--cohort_size=2"], "--cohort_size=2: expected "
            "at most 1, since no more devices are ever available at once by --device_profiles"),
        (["--device_profiles=phones", "--algo=buffered"], "--speed=redrawn: expected profiles with"),
        (["--device_profiles=phones", "--algo=amfl_p", "--smoke", "--min_resource=0.2"],
            "--min_resource=0.2: expected its default with --device_profiles, which gives the resources"),
        (["--device_profiles=phones", "--algo=mute:ALGORITHM"], "--device_profiles=phones: expected a file "
            "without joules, since --algo=mute:ALGORITHM does not say what its clients do"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(tmp_path, train, flags, expected, monkeypatch):
    (tmp_path / "mute.py").write_text(MUTE_ALGORITHM)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "bad.csv").write_text(TWO_DEVICES.replace(",0.5,", ",-1,"))
    rates = "1,1,1"
    rows = [f"0,a,{rates},1-2", f"1,b,{rates},2-3", f"2,c,{rates},3-4"]
    (tmp_path / "apart.csv").write_text("\n".join([f"{HEADER},available_h", *rows]))
    named = {name: tmp_path / f"{name}.csv" for name in ("two", "bad", "apart")}
    given = [flag.format(**named) for flag in flags]
    algo = [] if any(flag.startswith("--algo") for flag in flags) else ["--algo=fedavg"]
    code, _, error = train(*algo, *given, f"--run_dir={tmp_path / 'run'}", "--rounds=1")
    assert (code, error.count("\n")) == (2, 1) and expected in error
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("figures")
def test_progress_by_joules(tmp_path, write_run, figures):
    run_dir = write_run(tmp_path, "fedavg_har_alpha1.0", seed=3, rounds=2)
    rows = read_rows(run_dir / "metrics.csv")
    columns = [*rows[0], "joules", "joules_total"]
    spent = [("1500", "1500"), ("2500", "4000")]
    write_table(
        run_dir / "metrics.csv", columns, [[*row.values(), *pair] for row, pair in zip(rows, spent, strict=True)]
    )
    draw_run(run_dir)
    accuracy, _ = figures["by_joules.png"].axes
    assert accuracy.get_xlabel() == "energy, all clients (kJ)"
    assert accuracy.lines[0].get_xdata().tolist() == [1.5, 4.0]
    assert accuracy.lines[0].get_ydata().tolist() == [0.51, 0.52]
