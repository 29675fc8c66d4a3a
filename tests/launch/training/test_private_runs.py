"""A run with private updates as a person makes it: what it says, its budget, and going on."""

import json

import pytest

import launch.train
from launch.runs.run_records import read_rows

pytestmark = pytest.mark.usefixtures("no_plots")
PRIVATE = (
    "--algo=fedavg",
    "--runtime=in_process",
    "--num_clients=6",
    "--model=perceptron",
    "--epochs=1",
    "--cohort_size=3",
    "--participation=bernoulli",
    "--client_weighting=equal",
    "--dp_epsilon=60",
    "--norun_page",
)

DEVICE = {
    "examples_per_s": "100",
    "downlink_bytes_per_s": "1e6",
    "uplink_bytes_per_s": "1e6",
    "joules_per_example": "0.1",
    "joules_per_byte_down": "1e-6",
    "joules_per_byte_up": "1e-6",
}


@pytest.fixture
def train_here(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def run(*arguments):
        code = launch.train.main(arguments)
        return code, *capsys.readouterr()

    return run


def test_a_run_that_was_broken_off_goes_on_to_the_same_bytes(train_here, tmp_path):
    """Noise, adaptive clip norm and epsilon: the last round is made again from the checkpoint before it."""
    run_dir = tmp_path / "run"
    adaptive = ("--dp_clipping=adaptive", "--dp_clip_count_noise=1")
    code, said, _ = train_here(*PRIVATE, *adaptive, "--rounds=2", f"--run_dir={run_dir}")
    assert code == 0
    assert "privacy  epsilon 60 at delta 1e-05 hides a client more or less" in said
    assert "simulation only" in said and "Not to be released" in said
    rows = read_rows(run_dir / "metrics.csv")
    spent = [float(row["epsilon_spent"]) for row in rows]
    assert spent == sorted(spent) and 59.9 < spent[-1] <= 60 and len({row["clip_norm"] for row in rows}) == 2
    straight = (run_dir / "metrics.csv").read_bytes()
    (run_dir / "checkpoints" / "round_2.npz").unlink()
    code, _, _ = train_here("--resume", f"--run_dir={run_dir}")
    assert code == 0 and (run_dir / "metrics.csv").read_bytes() == straight
    summary = json.loads((run_dir / "summary.json").read_text())
    assert summary["fedavg"]["privacy"]["epsilon_spent"] == pytest.approx(spent[-1], rel=1e-5)


def test_a_run_stops_at_its_budget_and_is_not_to_be_led_beyond(train_here, tmp_path):
    run_dir = tmp_path / "run"
    devices = tmp_path / "devices.csv"  # with joules the algorithm is wrapped, and its budget must count all the same
    devices.write_text(f"{','.join(DEVICE)}\n{','.join(DEVICE.values())}\n")
    given = ("--dp_noise_multiplier=0.4", "--rounds=20", "--rounds_per_evaluation=7")
    code, said, _ = train_here(*PRIVATE, *given, f"--device_profiles={devices}", f"--run_dir={run_dir}")
    rows = read_rows(run_dir / "metrics.csv")
    assert code == 0 and 1 < len(rows) < 20
    assert f"spent    after round {len(rows)}: a further one would exceed the budget" in said
    assert float(rows[-1]["epsilon_spent"]) <= 60
    assert rows[-1]["joules"] and "privacy  epsilon 60" in said
    assert json.loads((run_dir / "summary.json").read_text())["budget_spent"] is True
    assert rows[-1]["test_accuracy"]  # the last round is evaluated, whichever it is
    code, said, _ = train_here("--resume", f"--run_dir={run_dir}", "--rounds=40")
    assert code == 0 and read_rows(run_dir / "metrics.csv") == rows and "spent    after round" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--dp_clip_norm=0",), "--dp_clip_norm=0: expected a number above 0"),
        (("--dp_clip_quantile=0.3",), "does nothing with --dp_clipping=fixed"),
        (("--dp_delta=0.2",), "--dp_delta=0.2: expected below 1 / clients"),
        (("--dp_noise_multiplier=0.05",), "one round costs with it"),
        (("--dp_clipping=adaptive", "--dp_noise_multiplier=0.5"), "the count alone would cost more"),
        (("--target_accuracy=0.9",), "--target_accuracy=0.9: expected 0 with private updates"),
    ],
)
def test_a_wrong_request_is_one_line(train_here, tmp_path, arguments, message):
    code, _, error = train_here(*PRIVATE, *arguments, f"--run_dir={tmp_path / 'run'}")
    assert code == 2 and error.count("\n") == 1 and message in error and "Traceback" not in error
    assert not (tmp_path / "run").exists()
