"""Sweeps with made-up numbers, as `launch.sweep` leaves them."""

import json

import pytest

from launch.runs.tables import write_table

EXPERIMENT = "fedsikd_mnist_alpha0.1"
LEAST_PNG = b"\x89PNG\r\n\x1a\n"  # how every PNG file begins


@pytest.fixture
def write_sweep(tmp_path, write_run):
    """(temperatures, seeds, rounds) -> folder of FedSiKD's runs in `<T>/<experiment>/seed_<seed>`.

    The last test accuracy is 0.5 + 0.01 rounds + T / 100 + seed / 1000. Each run has three clients, seconds, a plot and
    an event.
    """

    def write(temperatures, seeds, rounds=3):
        folder = tmp_path / "runs"
        for temperature in temperatures:
            for seed in seeds:
                run_dir = write_run(
                    folder / f"T{temperature}",
                    EXPERIMENT,
                    seed,
                    rounds,
                    accuracy=0.5 + temperature / 100 + seed / 1000,
                    arguments=[f"--temperature={temperature}"],
                )
                write_extras(run_dir, rounds)
        return folder

    return write


def write_extras(run_dir, rounds):
    """What a run has besides its settings, metrics and summary."""
    seconds = [[str(round_num), "1.5"] for round_num in range(1, rounds + 1)]
    write_table(run_dir / "timing.csv", ["round", "round_s"], seconds)
    clients = [[f"client_{i}", str(100 + i), "global", f"0.{5 + i}"] for i in range(3)]
    write_table(
        run_dir / "clients.csv", ["client", "num_train", "model", "accuracy"], [*clients, ["new", "9", "global", ""]]
    )
    write_table(
        run_dir / "events.csv", ["round", "time_s", "client", "what", "model"], [["1", "0.5", "client_0", "train", "1"]]
    )
    (run_dir / "plots").mkdir()
    (run_dir / "plots" / "by_round.png").write_bytes(LEAST_PNG + b"of this run")


@pytest.fixture
def change_flags():
    """(run folder, **flags) -> its `config.json` with these flags in place of its own; None removes one."""

    def change(run_dir, **flags):
        config = json.loads((run_dir / "config.json").read_text())
        config["flags"] = {name: value for name, value in {**config["flags"], **flags}.items() if value is not None}
        (run_dir / "config.json").write_text(json.dumps(config))

    return change
