"""A fixture that writes run folders with made-up numbers, for the tests of reports, sweeps and plots."""

import pytest

from launch.experiment_config import flag_values
from launch.run_folder import write_json, write_table
from launch.run_records import EXPERIMENTS, resolve_flagfile


@pytest.fixture
def write_run():
    """(runs_dir, experiment, seed, rounds) -> run folder, as `launch.train` leaves it.

    In round r the test accuracy is `accuracy + 0.01 r`, the loss 1 / r; `accuracy` may be a list, one a round.
    """

    def write(
        runs_dir, experiment, seed, rounds, accuracy=0.5, arguments=(), experiments=EXPERIMENTS, is_finished=True
    ):
        config = resolve_flagfile(experiments / f"{experiment}.flags", [f"--seed={seed}", *arguments])
        run_dir = runs_dir / experiment / f"seed_{seed}"
        write_json(run_dir / "config.json", {"flags": flag_values(config), "data": {}})
        rows = []
        for round_num in range(1, rounds + 1):
            reached = accuracy[round_num - 1] if isinstance(accuracy, list) else accuracy + 0.01 * round_num
            row = {"round": round_num, "virtual_time_s": 60 * round_num, "num_clients": 40, "num_rejected": 0}
            row |= {"bytes_down": 3000000, "bytes_up": 3000000, "train_loss": 0.8 / round_num}
            row |= {"test_loss": 1 / round_num, "test_accuracy": reached, "client_test_accuracy": ""}
            row |= {"within_cluster_drift": 0.02 / round_num, "total_drift": 0.03 / round_num}
            rows.append(row)
        write_table(run_dir / "metrics.csv", list(rows[0]), [[str(value) for value in row.values()] for row in rows])
        if is_finished:
            write_json(run_dir / "summary.json", {"rounds": rounds, "final": {"test_accuracy": reached}})
        return run_dir

    return write
