"""Trials are drawn, run by the sweep's machinery (here with a stand-in for training) and scored on validation data."""

import csv
import json
import pathlib

import pytest

from launch import tune
from launch.settings.run_config import flag_values

ROOT = pathlib.Path(__file__).parents[2]
EXPERIMENTS = ROOT / "launch" / "experiments" / "fedsikd"
FLAGFILE = EXPERIMENTS / "fedavg_mnist_alpha0.1.flags"
SEARCH = "fedavg_epochs=2|4;fedavg_learning_rate=0.1|0.2"
SPACES = sorted((EXPERIMENTS / "tuning").glob("*.flags"))


def arguments(tmp_path, *more, search=SEARCH):
    return [
        f"--experiment={FLAGFILE}",
        f"--search={search}",
        f"--runs_dir={tmp_path / 'runs'}",
        f"--output={tmp_path / 'trials.csv'}",
        "--rounds=2",
        "--seeds=100,101",
        *more,
    ]


def train(task):
    """Stands in for training: more epochs are better, a larger rate is worse, a larger seed a bit better."""
    config = task.config
    training = config.algorithm.training
    score = 0.1 * training.epochs - training.learning_rate + 0.001 * config.seed
    task.run_dir.mkdir(parents=True)
    flags = {name: value for name, value in flag_values(config).items() if name != "run_dir"}
    (task.run_dir / "config.json").write_text(json.dumps({"flags": flags}))
    (task.run_dir / "summary.json").write_text(json.dumps({"rounds": config.rounds}))
    (task.run_dir / "metrics.csv").write_text(f"round,validation_accuracy\n1,0.9\n2,{score}\n")
    return 0


@pytest.fixture
def opener_of(engine_of):
    """(train) -> what opens an engine that trains by this function."""
    return lambda train: lambda tasks, jobs: engine_of(train)


def read_rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_trials_are_different_points_of_the_grid_and_always_the_same():
    grid = tune.parse_search(" a = 1|2|3 ; --b=true|false;")
    assert grid == {"a": ["1", "2", "3"], "b": ["true", "false"]}
    trials = tune.draw_trials(grid, 4)
    assert trials == tune.draw_trials(grid, 4) and len({tuple(trial.items()) for trial in trials}) == 4
    everything = {(trial["a"], trial["b"]) for trial in tune.draw_trials(grid, 99)}
    assert everything == {(a, b) for a in "123" for b in ("true", "false")}


def test_a_draw_that_leaves_a_flag_at_one_value_is_drawn_anew():
    # FL+HC's grid: without the rule the first eight points all have two epochs.
    grid = {"fl_hc_epochs": ["2", "4", "8"], "fl_hc_learning_rate": ["0.0005", "0.002", "0.004"]}
    grid |= {"fl_hc_client_weighting": ["equal", "examples"], "fl_hc_clustering_round": ["1", "2", "3"]}
    grid |= {"fl_hc_distance_multiple": ["0.8", "0.9", "1.0", "1.1", "1.2"]}
    for number in (2, 5, 8):
        trials = tune.draw_trials(grid, number)
        assert [name for name in grid if len({trial[name] for trial in trials}) == 1] == []
    assert len(tune.draw_trials(grid, 1)) == 1
    assert tune.draw_trials(grid | {"fl_hc_steps": ["7"]}, 8)[0]["fl_hc_steps"] == "7"


def test_every_trial_is_trained_with_every_seed_and_scored(tmp_path, opener_of):
    request = tune.parse_request(arguments(tmp_path))
    scores, failures = tune.run_trials(request, opener_of(train))
    assert failures == [] and len(scores) == 4 * 2
    rows = read_rows(tmp_path / "trials.csv")
    by_setting = {(row["fedavg_epochs"], row["fedavg_learning_rate"]): row for row in rows}
    row = by_setting["4", "0.1"]
    scored = [float(row[name]) for name in ("validation_accuracy_seed_100", "validation_accuracy_seed_101", "mean")]
    assert scored == pytest.approx([0.4, 0.401, 0.4005])
    number, best = tune.find_best(request, scores)
    assert request.trials[number - 1] == {"fedavg_epochs": "4", "fedavg_learning_rate": "0.1"}
    assert best == pytest.approx(0.4005) and row["trial"] == str(number)


def test_a_search_goes_on_where_it_was_stopped(tmp_path, opener_of):
    request = tune.parse_request(arguments(tmp_path))
    trained = []

    def train_three(task):
        if len(trained) == 3:
            raise KeyboardInterrupt
        trained.append(task.name)
        return train(task)

    with pytest.raises(KeyboardInterrupt):
        tune.run_trials(request, opener_of(train_three))
    rows = read_rows(tmp_path / "trials.csv")
    assert [bool(row["validation_accuracy_seed_100"]) for row in rows] == [True, True, True, False]
    assert not any(row["mean"] for row in rows)
    trained.clear()
    scores, _ = tune.run_trials(request, opener_of(lambda task: trained.append(task.name) or train(task)))
    assert len(trained) == 5 and len(scores) == 8


def test_a_trial_that_fails_has_no_score_and_cannot_be_best(tmp_path, opener_of):
    request = tune.parse_request(arguments(tmp_path))
    scores, failures = tune.run_trials(
        request, opener_of(lambda task: 1 if task.config.algorithm.training.epochs == 4 else train(task))
    )
    assert len(failures) == 4 and len(scores) == 4
    number, _ = tune.find_best(request, scores)
    assert request.trials[number - 1] == {"fedavg_epochs": "2", "fedavg_learning_rate": "0.1"}
    assert tune.find_best(request, {}) is None


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--objective=test_accuracy"], "settings chosen by test examples could not be judged by them"),
        (["--objective=accuracy"], "expected validation_accuracy or client_validation_accuracy"),
        (["--search="], "--search is missing"),
        (["--search=fedavg_epochs"], "expected a flag and its values"),
        (["--search=fedavg_epochs=2||3"], "expected a flag and its values"),
        (["--search=fedavg_epochs=2|2"], "each of its values once"),
        (["--search=seed=1|2"], "seed is not searched; give --seeds beside it"),
        (["--search=rounds=1|2"], "rounds is not searched; give --rounds beside it"),
        (["--search=resume=true"], "resume is not searched; leave it out"),
        (["--search=fedavg_epochs=2|x"], "error: --search: --fedavg_epochs=x: expected an integer"),
        (["--search=nope=2"], "error: --search: --nope: unknown flag"),
        (["--search=validation_fraction=0|0.1"], "--validation_fraction=0: expected more, since trials are scored"),
        (["--seeds=1,b"], "--seeds=1,b: expected whole numbers"),
        (["--trials=0"], "--trials=0: expected an integer at least 1"),
        (["--jobs=0"], "--jobs=0: expected an integer at least 1"),
        (["--seeds="], "--seeds=: expected whole numbers"),
        (["--output=trials.txt"], "expected the name of a .csv"),
        (["--experiment=nowhere.flags"], "--experiment=nowhere.flags: no such file; expected a flagfile"),
        (["--", "--rounds=3"], "nothing is expected after --"),
    ],
)
def test_a_wrong_request_is_one_line_and_exit_code_2(tmp_path, capsys, more, message):
    assert tune.main(arguments(tmp_path, *more)) == 2
    printed = capsys.readouterr().err
    assert message in printed and printed.count("\n") == 1
    assert not list(tmp_path.iterdir()), "nothing is half-written"


def test_what_is_tried_scored_and_to_be_done_next_is_printed(tmp_path, opener_of, capsys, monkeypatch):
    monkeypatch.setattr(tune.run_trials, "__defaults__", (opener_of(train),))
    assert tune.main(arguments(tmp_path, "--trials=3")) == 0
    printed = capsys.readouterr().out
    first = dict(tune.parse_request(arguments(tmp_path, "--trials=3")).trials[0])
    settings = " ".join(f"--{name}={value}" for name, value in first.items())
    assert f"trial 1 ({settings}), seed 100" in printed
    score = 0.1 * int(first["fedavg_epochs"]) - float(first["fedavg_learning_rate"]) + 0.001 * 100
    assert f"score    trial 1, seed 100: validation_accuracy {score:.4f}" in printed
    assert "3 of the 4 points of the grid are in" in printed
    assert f"a copy of {FLAGFILE}, and report it on other seeds than 100, 101" in printed


@pytest.mark.parametrize("path", SPACES, ids=lambda path: path.stem)
def test_the_committed_search_spaces_can_be_run(path):
    """From the project's folder, as their headers say; seeds that are tuned on are never reported ones."""
    request = tune.parse_request([f"--flagfile={path}"])
    assert {"100", "101"} == set(request.seeds) and request.output == pathlib.Path(
        f"docs/results/tuning/{path.stem}.csv"
    )
    tasks = tune.build_tasks(request)
    assert len(tasks) == len(request.trials) * 2
    kept = ROOT / request.output
    if kept.exists():
        found = [{name: row[name] for name in request.trials[0]} for row in read_rows(kept)]
        assert found == [dict(trial) for trial in request.trials], "the kept table is of the trials that are drawn"


def test_methods_that_are_compared_have_as_many_trials():
    numbers = {}
    for path in SPACES:
        if path.stem.endswith("_printed"):
            continue
        cell = path.stem.split("_mnist_")[1]
        numbers.setdefault(cell, set()).add(len(tune.parse_request([f"--flagfile={path}"]).trials))
    assert numbers and all(len(each) == 1 for each in numbers.values())
