"""What a reader can run again: experiments with their data and durations, from run folders with made-up numbers."""

import json

from launch.runs.columns import SUMMARY_FILE
from reproductions.engine.counted_runs import collect_runs
from reproductions.engine.own_runs import tabulate_experiments

CELL = "fedsikd_mnist_alpha0.1"


def set_seconds(run_dir, seconds):
    path = run_dir / SUMMARY_FILE
    path.write_text(json.dumps({**json.loads(path.read_text()), "train_seconds": seconds}))


def test_an_experiment_has_its_data_seeds_rounds_and_mean_seconds(tmp_path, write_run):
    for seed, rounds, seconds in ((2, 3, 10), (0, 5, 21)):
        set_seconds(write_run(tmp_path, CELL, seed=seed, rounds=rounds), seconds)
    config = write_run(tmp_path, "fedavg_mnist_alpha0.1", seed=0, rounds=1, is_finished=False) / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "data": {"dataset": "mnist subset"}}))
    runs, _ = collect_runs(tmp_path)
    columns, rows = tabulate_experiments(runs)
    assert columns == ("experiment", "data", "seeds", "rounds", "seconds")
    assert rows == [
        ["fedsikd/fedavg_mnist_alpha0.1", "mnist subset", "0", "1", ""],
        [f"fedsikd/{CELL}", "mnist", "0, 2", "5", "15.5"],
    ]
