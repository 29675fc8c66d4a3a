"""Trials are drawn, run by the sweep's machinery (here with a stand-in for training) and scored on validation data."""

import json
import pathlib

import pytest

from launch import tune
from launch.runs.run_records import read_rows
from launch.settings.experiments import list_searches
from launch.settings.run_config import flag_values
from launch.sweeps.tuning.request import parse_request
from launch.sweeps.tuning.scored_runs import build_tasks, compute_grid_size, draw_trials
from launch.sweeps.tuning.search_space import parse_search
from launch.sweeps.tuning.trials import State, find_best

ROOT = pathlib.Path(__file__).parents[2]
NAME = "fedavg_mnist_alpha0.1"
EXPERIMENT = f"fedsikd/{NAME}"
SEARCH = "epochs=2|4;learning_rate=0.1|0.2"
# As they are drawn.
SETTINGS = ["learning_rate", "epochs"]
# Those of the league have a table and a test of their own.
SEARCHES = [each.full_name for each in list_searches().values() if each.paper != "league"]


def arguments(tmp_path, *more, search=SEARCH):
    return [
        f"--experiment={EXPERIMENT}",
        f"--search={search}",
        f"--runs_dir={tmp_path / 'runs'}",
        f"--output={tmp_path / 'trials.csv'}",
        "--rounds=2",
        "--seeds=100,101",
        *more,
    ]


def train(task, bonus=0.0):
    """Stands in for training: more epochs are better, a larger rate is worse, a larger seed a bit better."""
    config = task.config
    training = config.algorithm.training
    score = 0.1 * training.epochs - training.learning_rate + 0.001 * config.seed + bonus
    task.run_dir.mkdir(parents=True)
    flags = {name: value for name, value in flag_values(config).items() if name != "run_dir"}
    (task.run_dir / "config.json").write_text(json.dumps({"flags": flags}))
    (task.run_dir / "summary.json").write_text(json.dumps({"rounds": config.rounds}))
    (task.run_dir / "metrics.csv").write_text(f"round,validation_accuracy\n1,0.9\n2,{score}\n")
    return 0


@pytest.fixture
def search(tmp_path, engine_of):
    """(train, further arguments) -> what a search gives whose engine trains by this function, and its request."""

    def search(train, *more):
        request = parse_request(arguments(tmp_path, *more))
        return *tune.search(request, lambda tasks, jobs: engine_of(train)), request

    return search


@pytest.fixture
def tune_by(tmp_path, engine_of, monkeypatch):
    """(train, further arguments) -> the exit code of the command; nothing is loaded to look for validation examples."""

    def run(train, *more):
        monkeypatch.setattr(tune, "check_validation", lambda request: None)
        monkeypatch.setattr(tune.search, "__defaults__", (lambda tasks, jobs: engine_of(train),))
        return tune.main(arguments(tmp_path, *more))

    return run


def fail_with_four_epochs(task):
    return 1 if task.config.algorithm.training.epochs == 4 else train(task)


def test_trials_are_different_points_of_the_grid_and_always_the_same():
    grid = parse_search(" a = 1|2|3 ; --b=true|false;")
    assert grid == {"a": ("1", "2", "3"), "b": ("true", "false")}
    trials = draw_trials(grid, 4)
    assert trials == draw_trials(grid, 4) and len({tuple(trial.items()) for trial in trials}) == 4
    everything = {(trial["a"], trial["b"]) for trial in draw_trials(grid, 99)}
    assert everything == {(a, b) for a in "123" for b in ("true", "false")}


def test_a_draw_that_leaves_a_flag_at_one_value_is_drawn_anew():
    # FL+HC's grid: without the rule the first eight points all have two epochs.
    grid = {"epochs": ["2", "4", "8"], "learning_rate": ["0.0005", "0.002", "0.004"]}
    grid |= {"client_weighting": ["equal", "examples"], "clustering_round": ["1", "2", "3"]}
    grid |= {"distance_multiple": ["0.8", "0.9", "1.0", "1.1", "1.2"]}
    for number in (2, 5, 8):
        trials = draw_trials(grid, number)
        assert [name for name in grid if len({trial[name] for trial in trials}) == 1] == []
    assert len(draw_trials(grid, 1)) == 1
    assert draw_trials(grid | {"steps": ["7"]}, 8)[0]["steps"] == "7"


def test_every_trial_is_trained_with_every_seed_and_scored(tmp_path, search):
    outcomes, confirmed, failures, request = search(train)
    assert failures == [] and not confirmed and [len(each.scores) for each in outcomes] == [2] * 4
    by_setting = {(row["epochs"], row["learning_rate"]): row for row in read_rows(tmp_path / "trials.csv")}
    row, names = by_setting["4", "0.1"], ["validation_accuracy_seed_100", "validation_accuracy_seed_101", "mean"]
    assert list(row) == ["trial", *SETTINGS, *names]
    assert [float(row[name]) for name in names] == pytest.approx([0.4, 0.401, 0.4005])
    best, score = find_best(request, outcomes, confirmed)
    assert best.settings == {"epochs": "4", "learning_rate": "0.1"}
    assert score == pytest.approx(0.4005) and row["trial"] == str(best.number)


def test_a_search_goes_on_where_it_was_stopped(tmp_path, search):
    trained = []

    def train_three(task):
        if len(trained) == 3:
            raise KeyboardInterrupt
        trained.append(task.name)
        return train(task)

    with pytest.raises(KeyboardInterrupt):
        search(train_three)
    rows = read_rows(tmp_path / "trials.csv")
    assert [bool(row["validation_accuracy_seed_100"]) for row in rows] == [True, True, True, False]
    assert not any(row["mean"] for row in rows)
    trained.clear()
    outcomes, *_ = search(lambda task: trained.append(task.name) or train(task))
    assert len(trained) == 5 and all(each.state is State.COMPLETE for each in outcomes)


def test_the_best_are_scored_anew_on_further_seeds_which_decide(tmp_path, search):
    """With the further seeds, the second of the search is the best; the third is not tried again."""

    def train_otherwise(task):
        is_second = task.config.algorithm.training.learning_rate == 0.2
        return train(task, bonus=0.5 if task.config.seed >= 200 and is_second else 0.0)

    outcomes, confirmed, failures, request = search(train_otherwise, "--confirm_seeds=200,201", "--confirm_trials=2")
    numbers = {tuple(each.settings.values()): each.number for each in outcomes}
    assert failures == [] and set(confirmed) == {numbers["0.1", "4"], numbers["0.2", "4"]}
    best, score = find_best(request, outcomes, confirmed)
    # 0.1 x 4 epochs - 0.2 + 0.001 x 200.5, and the bonus
    assert best.settings == {"epochs": "4", "learning_rate": "0.2"}
    assert score == pytest.approx(0.4 - 0.2 + 0.2005 + 0.5)
    rows = {row["trial"]: row for row in read_rows(tmp_path / "trials.csv")}
    assert rows[str(best.number)]["confirmed_mean"] == f"{score:.6g}"
    assert [row["confirmed_mean"] for row in rows.values()].count("") == 2


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--objective=test_accuracy"], "settings that test examples chose cannot be judged on them"),
        (["--objective=accuracy"], "expected one of validation_accuracy, client_validation_accuracy"),
        (["--search="], "--search is missing"),
        (["--search=epochs"], "expected a flag and its values"),
        (["--search=epochs=2||3"], "expected a flag and its values"),
        (["--search=epochs=2|2"], "each of its values once"),
        (["--search=seed=1|2"], "seed is not searched; give --seeds beside it"),
        (["--search=rounds=1|2"], "rounds is not searched; give --rounds beside it"),
        (["--search=resume=true"], "resume is not searched; leave it out"),
        (["--search=epochs=2|x"], "error: --search: --epochs=x: expected an integer"),
        (["--search=nope=2"], "error: --search: --nope: unknown flag"),
        (["--search=validation_fraction=0|0.1"], "--validation_fraction=0: expected more, since trials are scored"),
        (["--search=epochs=int(2)"], "expected int(low,high), float(low,high) or log(low,high), or choices"),
        (["--search=epochs=int(2,b)"], "expected int(low,high), float(low,high) or log(low,high), or choices"),
        (["--search=epochs=about(2,3)"], "expected int(low,high), float(low,high) or log(low,high), or choices"),
        (["--search=epochs=int(3,2)"], "expected two numbers, the smaller one first"),
        (["--search=learning_rate=log(0,1)"], "expected numbers above 0, which have a logarithm"),
        (["--search=epochs=int(1,3)", "--sampler=grid"], "--sampler=grid: does not go with a range in --search"),
        (["--sampler=grid", "--pruner=median"], "--sampler=grid: does not go with --pruner=median"),
        (["--sampler=best"], "--sampler=best: expected one of grid, tpe"),
        (["--pruner=mean"], "--pruner=mean: expected one of none, median"),
        (["--first_pruning_round=2"], "--first_pruning_round: does nothing without --pruner=median"),
        (["--confirm_trials=2"], "--confirm_trials: does nothing without --confirm_seeds"),
        (["--confirm_seeds=102,0101"], "--confirm_seeds=101: is one of --seeds; expected seeds that are not searched"),
        (["--confirm_seeds=a"], "--confirm_seeds=a: expected whole numbers"),
        (["--seeds=1,b"], "--seeds=1,b: expected whole numbers"),
        (["--trials=0"], "--trials=0: expected an integer at least 1"),
        (["--jobs=0"], "--jobs=0: expected an integer at least 1"),
        (["--seeds="], "--seeds is empty: expected whole numbers"),
        (["--output=trials.txt"], "expected the name of a .csv"),
        (["--experiment=nowhere.flags"], "--experiment=nowhere.flags: no such file; expected a flagfile or the name"),
        (["--", "--rounds=3"], "nothing is expected after --"),
    ],
)
def test_a_wrong_request_is_one_line_and_exit_code_2(tmp_path, capsys, more, message):
    assert tune.main(arguments(tmp_path, *more)) == 2
    printed = capsys.readouterr().err
    assert message in printed and printed.count("\n") == 1
    assert not list(tmp_path.iterdir()), "nothing is half-written"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("trial,fedavg_batches,validation_accuracy_seed_7,mean", "trials of another search (over fedavg_batches)"),
        ("round,test_accuracy", "something else"),
        (
            "trial,epochs,validation_accuracy_seed_7,validation_accuracy_seed_100,mean",
            "scores that this search does not have (validation_accuracy_seed_7)",
        ),
        (
            "trial,epochs,client_validation_accuracy_seed_100,mean",
            "scores that this search does not have (client_validation_accuracy_seed_100)",
        ),
    ],
)
def test_a_table_of_another_search_is_not_replaced(tmp_path, capsys, line, message):
    table = tmp_path / "trials.csv"
    table.write_text(line + "\n")
    assert tune.main(arguments(tmp_path)) == 2
    printed = capsys.readouterr().err
    assert f"--output={table}: holds {message} and would be replaced" in printed and printed.count("\n") == 1
    assert table.read_text() == line + "\n"


def test_a_table_beside_its_runs_may_get_other_seeds_but_no_other_search(tmp_path, search, capsys):
    beside, table = (f"--runs_dir={tmp_path}", "--output="), tmp_path / NAME / "trials.csv"
    for seeds, has_second in (("100,101", True), ("100", False)):
        search(train, *beside, f"--seeds={seeds}")
        assert ("validation_accuracy_seed_101" in table.read_text()) is has_second
    assert tune.main(arguments(tmp_path, *beside, "--search=epochs=2|4", "--seeds=100")) == 2
    assert f"--runs_dir={tmp_path}: holds trials of another search (over" in capsys.readouterr().err


def test_a_table_of_trials_stays_where_every_run_fails(tmp_path, search):
    """As in a checkout that has such a table and lacks the data; the first score replaces it."""
    search(train)
    before, empty = (tmp_path / "trials.csv").read_text(), f"--runs_dir={tmp_path / 'empty'}"
    *_, failures, _ = search(lambda task: 2, empty)
    assert len(failures) == 8 and (tmp_path / "trials.csv").read_text() == before
    search(lambda task: train(task, bonus=0.05), empty)
    assert (tmp_path / "trials.csv").read_text() != before


def test_what_is_tried_scored_and_to_be_done_next_is_printed(tmp_path, tune_by, capsys):
    assert tune_by(train, "--trials=3") == 0
    printed = capsys.readouterr().out
    first = dict(draw_trials(parse_search(SEARCH), 3)[0])
    settings = " ".join(f"--{name}={value}" for name, value in first.items())
    score = 0.1 * int(first["epochs"]) - float(first["learning_rate"]) + 0.001 * 100
    best = tmp_path / "runs" / NAME / "best.flags"
    for line in (
        f"trial 1 ({settings}), seed 100",
        f"score    trial 1, seed 100: validation_accuracy {score:.4f}",
        "3 of the 4 points of the grid are in",
        f"{best} has these lines in a copy of {EXPERIMENT}; report it on other seeds than 100, 101",
    ):
        assert line in printed
    (block,) = [block for block in best.read_text().split("\n\n") if "tuned" in block]
    heading = " ".join(block.replace("\n# ", " ").splitlines())
    assert SEARCH in heading and "3 of the 4 points of the grid" in heading and "seeds 100, 101" in heading


def test_a_trial_that_fails_cannot_be_best_which_is_printed_all_the_same(tmp_path, search, tune_by, capsys):
    outcomes, _, failures, request = search(fail_with_four_epochs)
    assert len(failures) == 4 and sum(len(each.scores) for each in outcomes) == 4
    best, _ = find_best(request, outcomes, {})
    assert best.settings == {"epochs": "2", "learning_rate": "0.1"} and find_best(request, [], {}) is None
    assert tune_by(fail_with_four_epochs) == 1
    printed = capsys.readouterr()
    assert "4 runs failed:" in printed.err and "--learning_rate=0.1\n--epochs=2" in printed.out


def test_without_optuna_one_line_says_how_to_get_it(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for more in (["--search=learning_rate=log(0.001,0.1)"], ["--pruner=median"], ["--sampler=tpe"]):
        assert tune.main(arguments(tmp_path, *more)) == 2
        printed = capsys.readouterr().err
        assert "need Optuna, which is not installed; " in printed and "requirements-tune.lock" in printed
        assert printed.count("\n") == 1 and not list(tmp_path.iterdir())


def test_a_request_names_search_sampler_and_values(tmp_path):
    named = parse_request(["--search=fedsikd/fl_hc_mnist_printed", "--trials=2"])
    assert (named.experiment.name, named.num_trials) == ("fl_hc_mnist_alpha0.1", 2), "flags beside it count"
    assert parse_request(["--search=fl_hc_mnist_printed", "--trials=2"]) == named
    path = parse_request([*arguments(tmp_path), "--search=npz=a/one.npz|a/two.npz"])
    assert path.space == {"npz": ("a/one.npz", "a/two.npz")}, "a value is no name of a search"
    assert parse_request(arguments(tmp_path)).sampler == "grid", "choices alone need no Optuna"
    for more in ("--search=epochs=int(1,3)", "--pruner=median", "--sampler=tpe"):
        assert parse_request(arguments(tmp_path, more)).sampler == "tpe"


@pytest.mark.parametrize("name", SEARCHES)
def test_the_searches_of_papers_can_be_run(name, monkeypatch):
    """Seeds that are tuned on are never reported ones, and the kept tables are of the trials that are drawn."""
    monkeypatch.chdir(ROOT)
    request = parse_request([f"--search={name}"])
    assert {"100", "101"} <= set(request.seeds) and min(map(int, request.seeds)) == 100
    assert request.output == pathlib.Path(f"docs/results/tuning/{name.partition('/')[2]}.csv")
    assert request.sampler == "grid" and len(build_tasks(request._replace(seeds=("100",)))) == request.num_trials
    trials = draw_trials(request.space, request.num_trials)
    if request.output.exists():
        found = [{flag: row[flag] for flag in trials[0] if flag in row} for row in read_rows(request.output)]
        drawn = [{flag: trial[flag] for flag in found[0]} for trial in trials]
        # The order hangs on how flags are called.
        is_whole = len(trials) == compute_grid_size(request.space)
        assert sorted(found, key=str) == sorted(drawn, key=str) if is_whole else found == drawn
