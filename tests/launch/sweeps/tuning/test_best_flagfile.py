"""The flagfile of the best trial resolves to its settings, and says where each comes from."""

import pathlib

import pytest

from launch.settings.flags import parse_config
from launch.settings.run_config import flag_values
from launch.sweeps.recipes import find_recipe
from launch.sweeps.tuning.best_flagfile import write_best_flagfile
from launch.sweeps.tuning.request import Request
from launch.sweeps.tuning.search_space import parse_search
from launch.sweeps.tuning.trials import Outcome, State

EXPERIMENT = "fedsikd/fedavg_har_alpha0.1"


@pytest.fixture
def write(tmp_path):
    """(experiment, settings, request's fields) -> the path of the flagfile."""

    def write(experiment, settings, output="docs/results/tuning/a.csv", confirmed_mean=None, **fields):
        space = parse_search("learning_rate=log(0.0001,0.1);optimizer=sgd|adam")
        recipe = find_recipe(str(experiment))
        request = Request(recipe, space, "tpe", 20, ("100", "101"), 5, "validation_accuracy", tmp_path,
                          pathlib.Path(output))._replace(**fields)  # fmt: skip
        best = Outcome(7, settings, State.COMPLETE, {"100": 0.75, "101": 0.7})
        path = tmp_path / "best.flags"
        write_best_flagfile(path, request, best, confirmed_mean, "20 trials chosen by TPE (3 pruned)")
        return path

    return write


def read_blocks(path):
    """(heading, flags below it) of each block of a flagfile below its head."""
    blocks = [block.splitlines() for block in path.read_text().split("\n\n")[1:]]
    return [
        (" ".join(line.removeprefix("# ") for line in block if line.startswith("#")),
         [line.lstrip("-").split("=")[0] for line in block if line.startswith("-")])
        for block in blocks
    ]  # fmt: skip


def read_note(path):
    (note,) = [heading for heading, _ in read_blocks(path) if "tuned" in heading]
    return note.removeprefix("Ours: tuned by launch.tune on the clients' validation examples. ")


def test_it_is_the_experiment_but_for_what_was_found(write):
    settings = {"learning_rate": "0.0321", "optimizer": "sgd"}
    path = write(EXPERIMENT, settings)
    found, before = (flag_values(parse_config([each])) for each in (f"--flagfile={path}", f"--experiment={EXPERIMENT}"))
    assert {name for name in found if found[name] != before[name]} == set(settings)
    assert found["learning_rate"] == 0.0321 and found["optimizer"] == "sgd"
    blocks = read_blocks(path)
    assert [flags for heading, flags in blocks if "tuned" in heading] == [[*settings]]
    assert all(heading and flags for heading, flags in blocks)
    assert path.read_text().startswith("# fedavg_har_alpha0.1 with the settings of trial 7 of a search.\n")


def test_its_heading_names_space_trials_seeds_scores_and_table(write):
    path = write(EXPERIMENT, {"optimizer": "sgd"}, confirmed_mean=0.6543, confirm_seeds=("200",), pruner="median")
    note = read_note(path)
    assert note == (
        "The search space is learning_rate=log(0.0001,0.1);optimizer=sgd|adam; 20 trials chosen by TPE "
        "(3 pruned), each trained with the seeds 100, 101 for --rounds=5. Runs below the median were stopped, from "
        "round 1 on. The mean validation_accuracy after the last round is 0.7250. It is 0.6543 on the seed 200, not "
        "searched before. Trials: docs/results/tuning/a.csv."
    )


def test_a_table_elsewhere_is_not_said_to_be_kept(write):
    path = write(EXPERIMENT, {"optimizer": "sgd"}, output="runs/tuning/a.csv")
    note = read_note(path)
    assert note.endswith("The trials were not kept with the project; they are in runs/tuning/a.csv.")


def test_a_heading_goes_with_the_last_of_its_flags(write):
    settings = {"epochs": "2", "optimizer": "sgd", "learning_rate": "0.01"}
    text = write(EXPERIMENT, settings).read_text()
    assert "as FedSiKD's students train" in find_recipe(EXPERIMENT).read() and "as FedSiKD's students train" not in text


@pytest.mark.parametrize("head", ["", "# My own experiment.\n", "# Mine.\n\n", "# Mine.\n\n# Ours: a guess.\n"])
def test_a_flagfile_of_ones_own_will_do(write, tmp_path, head):
    own = tmp_path / "own.flags"
    own.write_text(f"{head}--algo=fedavg\n--optimizer=adam\n--rounds=3\n")
    path = write(own, {"optimizer": "sgd"})
    assert parse_config([f"--flagfile={path}"]).rounds == 3
    assert [flag for _, flags in read_blocks(path) for flag in flags] == ["algo", "rounds", "optimizer"]
