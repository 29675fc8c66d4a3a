"""What a reader can run again: experiments with their data and durations, from run folders with made-up numbers."""

import json

from launch.runs.columns import SUMMARY_FILE
from launch.settings.experiments import list_experiments
from reproductions.engine.counted_runs import collect_runs
from reproductions.engine.own_runs import COLUMNS, tabulate_commands, tabulate_experiments
from reproductions.engine.tables import Table

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
    assert columns == ("experiment", "data", "seeds", "rounds", "planned rounds", "seconds")
    assert rows == [
        ["fedsikd/fedavg_mnist_alpha0.1", "mnist subset", "0", "1", "70", ""],
        [f"fedsikd/{CELL}", "mnist", "0, 2", "5", "70", "15.5"],
    ]


def test_a_command_trains_as_many_rounds_as_the_kept_runs_had():
    """Those of the experiment are not said again; where a limit ended a run, what was planned counts."""
    entry = {"row": "cell", "experiments": f"fedsikd/{CELL}"}
    whole = int(list_experiments()[CELL].flags["rounds"])

    def spell(planned):
        row = [f"fedsikd/{CELL}", "mnist", "0, 2", "3", str(planned), "15.5"]
        [[_, command, *_]] = tabulate_commands([entry], Table(COLUMNS, [row]), "a.zip").rows
        return command

    assert (
        spell(10) == f"`python -m launch.sweep --experiments=fedsikd/{CELL} --seeds=2 --rounds=10 --same_data_as=a.zip`"
    )
    assert "--rounds" not in spell(whole)
