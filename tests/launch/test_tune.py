"""Trials are drawn, run by the sweep's machinery (here with a stand-in for training) and scored on validation data."""

import json
import pathlib
import shlex
import shutil

import pytest

from launch import sweep, tune
from launch.runs.run_records import read_rows
from launch.settings.experiments import list_searches
from launch.settings.flags import parse_config
from launch.settings.run_config import flag_values
from launch.sweeps.tuning.request import parse_request, parse_requests
from launch.sweeps.tuning.scored_runs import build_tasks, compute_grid_size, draw_trials, list_trials
from launch.sweeps.tuning.search_space import parse_search
from launch.sweeps.tuning.trials import State, build_task, find_best

ROOT = pathlib.Path(__file__).parents[2]
NAME = "fedavg_mnist_alpha0.1"
EXPERIMENT = f"fedsikd/{NAME}"
SEARCH = "epochs=2|4;learning_rate=0.1|0.2"
SETTINGS = ["epochs", "learning_rate"]
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
    """(train, further arguments, or all) -> the exit code of the command, which loads no data to look at.

    The runs' output is kept in logs, as it is by the engine of the command.
    """

    def run(train, *more, alone=False):
        monkeypatch.setattr(tune, "check_validation", lambda request: request)
        engine = engine_of(train)
        engine.keeps_logs = True
        monkeypatch.setattr(tune.search, "__defaults__", (lambda tasks, jobs: engine,))
        return tune.main(list(more) if alone else arguments(tmp_path, *more))

    return run


def fail_with_four_epochs(task):
    return 1 if task.config.algorithm.training.epochs == 4 else train(task)


def test_trials_are_different_points_of_the_grid_and_always_the_same():
    grid = parse_search(" a = 1|2|3 ; --b=true|false;")
    assert grid == {"a": ("1", "2", "3"), "b": ("true", "false")}
    trials = draw_trials(grid, 4)
    assert trials == draw_trials(grid, 6)[:4] and len({tuple(trial.items()) for trial in trials}) == 4
    everything = {(trial["a"], trial["b"]) for trial in draw_trials(grid, 99)}
    assert everything == {(a, b) for a in "123" for b in ("true", "false")}


def test_two_trials_differ_in_every_flag_and_a_huge_grid_is_no_burden():
    grid = {"epochs": ["2", "4", "8"], "learning_rate": ["0.0005", "0.002", "0.004"]}
    grid |= {"client_weighting": ["equal", "examples"], "clustering_round": ["1", "2", "3"]}
    grid |= {"distance_multiple": ["0.8", "0.9", "1.0", "1.1", "1.2"]}
    for number in (2, 5, 8):
        trials = draw_trials(grid, number)
        assert trials == draw_trials(grid, 9)[:number]
        assert [name for name in grid if len({trial[name] for trial in trials}) == 1] == []
    assert len(draw_trials(grid, 1)) == 1
    assert draw_trials(grid | {"steps": ["7"]}, 8)[0]["steps"] == "7"
    huge = {name: [str(value) for value in range(1000)] for name in "abcdef"}
    assert len({tuple(trial.values()) for trial in draw_trials(huge, 20)}) == 20


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


def test_trials_between_the_ends_of_ranges_need_no_optuna(tmp_path, tune_by, capsys):
    asked = "--search=learning_rate=log(0.001,0.1);epochs=int(2,4)"
    assert tune_by(train, asked, "--trials=3") == 0
    printed = capsys.readouterr().out
    assert "trials.csv has 3 trials whose settings lie evenly\n" in printed
    rows = read_rows(tmp_path / "trials.csv")
    # The experiment's own epochs are no point of the range.
    assert [row["trial"] for row in rows] == ["1", "2", "3"] and len({row["learning_rate"] for row in rows}) == 3
    assert all(0.001 <= float(row["learning_rate"]) <= 0.1 and row["epochs"] in ("2", "3", "4") for row in rows)
    folder = tmp_path / "runs" / NAME
    assert "learning_rate=log(0.001,0.1);epochs=int(2,4); 3 trials whose settings lie evenly, each" in " ".join(
        (folder / f"{NAME}_tuned.flags").read_text().replace("# ", "").split()
    )
    trained = []
    assert tune_by(lambda task: trained.append(task.label) or train(task), asked, "--trials=5") == 0
    assert len(trained) == 4 and read_rows(tmp_path / "trials.csv")[:3] == rows


def test_what_nobody_has_typed_is_said(tmp_path, tune_by, capsys):
    given = ["--algo=fedavg", "--rounds=2", "--trials=2", "--objective=validation_accuracy", f"--runs_dir={tmp_path}"]
    assert tune_by(train, *given, alone=True) == 0
    said = "search   fedavg_digits: 2 trials of learning_rate=log(0.0002,0.02);server_momentum=float(0.0,0.9)\n"
    assert capsys.readouterr().out.startswith(said)
    assert read_rows(tmp_path / "fedavg_digits" / "trials.csv")[0]["learning_rate"] == "0.003"


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
    assert [bool(row["validation_accuracy_seed_100"]) for row in rows] == [True, True, False, False]
    assert [bool(row["mean"]) for row in rows] == [True, False, False, False]
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
    assert failures == [] and set(confirmed) == {numbers["4", "0.1"], numbers["4", "0.2"]}
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
        (
            ["--search=validation_fraction=0|0.1"],
            "--validation_fraction=0: trials are scored on validation ex",
        ),
        (["--search=epochs=int(2)"], "expected int(low,high), float(low,high) or log(low,high), or choices"),
        (["--search=epochs=int(2,b)"], "expected int(low,high), float(low,high) or log(low,high), or choices"),
        (["--search=epochs=about(2,3)"], "expected int(low,high), float(low,high) or log(low,high), or choices"),
        (["--search=epochs=int(3,2)"], "expected two numbers, the smaller one first"),
        (["--search=learning_rate=log(0,1)"], "expected numbers above 0, which have a logarithm"),
        (["--search=epochs=int(1,3)", "--sampler=grid"], "--sampler=grid: does not go with a range in --search"),
        (["--sampler=grid", "--pruner=median"], "--sampler=grid: does not go with --pruner=median"),
        (["--sampler=best"], "--sampler=best: expected one of grid, even, tpe"),
        (["--pruner=mean"], "--pruner=mean: did you mean median? expected one of none, median"),
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
        (["--algo=fedavg"], "--algo=fedavg: is in --experiment="),
        (["--experiment="], "--algo is missing: expected --algo=fedavg and further flags of launch.train, or --exp"),
        (["--experiment=", "--algo=fedavg,dito"], "error: --algo=dito: "),
        (["--seed=3"], "--seed: did you mean --seeds? unknown flag"),
        (["--learning_rat=3"], "error: --learning_rat: "),
        (["--num_clients=0"], "--num_clients=0: expected"),
        (["--experiment=", "--algo=fedavg,ditto"], "is the table of one algorithm, not of 2; leave it out"),
        (["--search=learning_rate=-1|1"], "error: --search: --learning_rate=-1: expected a number above 0"),
        (["--search=pull=1"], "error: --search: --pull: belongs to --algo="),
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
    """A line a trial, then the answer, which fits a screen and names a command; nothing of the 6 runs."""
    assert tune_by(train, "--trials=3") == 0
    lines = capsys.readouterr().out.splitlines()
    trials = draw_trials(parse_search(SEARCH), 3)
    means = [0.1 * int(each["epochs"]) - float(each["learning_rate"]) + 0.1005 for each in trials]
    shown = [f"epochs={each['epochs']} learning_rate={each['learning_rate']}" for each in trials]
    best = max(range(3), key=lambda i: means[i])
    assert lines[:3] == [
        f"[{i}/3] trial {i} ({settings}): {mean:.4f}" for i, settings, mean in zip((1, 2, 3), shown, means, strict=True)
    ]
    assert lines[3] == f"  trial  {NAME}: validation_accuracy, mean and 95 % interval over the seeds 100, 101"
    assert [int(line.split()[0]) for line in lines[4:7]] == sorted((1, 2, 3), key=lambda number: -means[number - 1])
    assert lines[7].startswith(f"best     trial {best + 1}: {shown[best]}; validation_accuracy {means[best]:.4f} [")
    # The experiment's own settings lie outside of the grid and were not tried, so that nothing is said of them.
    folder = tmp_path / "runs" / NAME
    assert lines[8:] == [
        f"files    {folder / NAME}_tuned.flags has the best settings",
        f"         {tmp_path / 'trials.csv'} has 3 of the 4 points of the grid",
        "next     train the best on seeds that were not searched, and report these:",
        f"         python -m launch.sweep --flagfiles={folder / NAME}_tuned.flags --seeds=0-4 --runs_dir=runs/{NAME}",
    ]
    (block,) = [block for block in (folder / f"{NAME}_tuned.flags").read_text().split("\n\n") if "tuned by" in block]
    heading = " ".join(block.replace("\n# ", " ").splitlines())
    assert SEARCH in heading and "3 of the 4 points of the grid" in heading and "seeds 100, 101" in heading


PLAIN = ["--algo=fedavg,ditto", "--dataset=mnist", "--search=epochs=2|4;ditto_learning_rate=0.2|0.4|0.6"]


def test_flags_of_a_run_need_no_experiment(tmp_path):
    requests = parse_requests([*PLAIN, "--num_clients=5", "--ditto_pull=0.3", f"--runs_dir={tmp_path}"])
    assert [each.experiment.name for each in requests] == ["fedavg_mnist", "ditto_mnist"]
    assert [each.fixed for each in requests] == [
        ("--dataset=mnist", "--num_clients=5"),
        ("--dataset=mnist", "--num_clients=5", "--pull=0.3"),
    ]
    rates = ("0.2", "0.4", "0.6")
    assert [each.space for each in requests] == [
        {"epochs": ("2", "4")},
        {"epochs": ("2", "4"), "learning_rate": rates},
    ]
    # As many trials for each: the points of the smaller grid.
    assert {(each.num_trials, each.seeds) for each in requests} == {(2, ("100", "101", "102"))}
    # With the settings as they were given beside them.
    assert [number for number, _ in list_trials(requests[1])] == [0, 1, 2]
    config = build_tasks(requests[1])[0, "102"].config
    assert (config.seed, config.num_clients, config.algorithm.pull, config.dataset) == (102, 5, 0.3, "mnist")
    assert (config.run_page, config.plot_formats) == (False, "none"), "nobody looks at each trial"
    whole = parse_request(["--algo=fedavg", "--search=epochs=1|2|3;learning_rate=0.1|0.2|0.3"])
    assert (whole.folder, whole.num_trials) == (pathlib.Path("runs/tuning/fedavg_digits"), 9)
    large = parse_request(["--algo=fedavg", "--search=epochs=1|2|3;learning_rate=0.1|0.2|0.3|0.4|0.5"])
    assert (large.num_trials, parse_request(arguments(tmp_path)).num_trials) == (8, 8)
    over = parse_request([*arguments(tmp_path), "--num_clients=7"])
    assert build_tasks(over)[1, "100"].config.num_clients == 7, "a flag beside an experiment counts"


def test_the_best_of_plain_flags_stands_beside_the_given_settings_and_can_be_trained(
    tmp_path, tune_by, capsys, monkeypatch
):
    """Seeds shift all scores alike, so that the difference is exact: 0.1 x (8 - 5) epochs."""
    monkeypatch.chdir(tmp_path)
    plain = ["--algo=fedavg", "--search=epochs=2|8", "--epochs=1", "--objective=validation_accuracy", "--rounds=3"]
    assert tune_by(train, *plain, alone=True) == 2
    assert "--epochs: is searched as well; leave it out" in capsys.readouterr().err
    plain[2] = "--learning_rate=0.25"
    assert tune_by(train, *plain, alone=True) == 0
    printed = capsys.readouterr().out
    assert "trial 0 (the settings as they were given): 0.3510" in printed
    assert "default  epochs=5; 0.3510 [" in printed and "differs by +0.3000: better" in printed
    assert "trials.csv has all 2 points of the grid" in printed
    (flagfile,) = tmp_path.glob("runs/tuning/fedavg_digits/fedavg_tuned.flags")
    config = parse_config([f"--flagfile={flagfile}"])
    training = config.algorithm.training
    assert (config.rounds, training.epochs, training.learning_rate) == (3, 8, 0.25)
    command = printed.splitlines()[-1].removeprefix("         python -m launch.sweep ")
    tasks = sweep.parse_request(shlex.split(command)).tasks
    assert [str(each.run_dir) for each in tasks] == [f"runs/digits/fedavg_tuned/seed_{seed}" for seed in range(5)]
    # Given again, it goes on without a run; so does a grid with more values, in which old trials keep their numbers.
    assert tune_by(lambda task: 1, *plain, alone=True) == 0
    capsys.readouterr()
    plain[1] = "--search=epochs=8|2|4"
    assert tune_by(train, *plain, alone=True) == 0
    assert "[4/4] trial 3 (epochs=4)" in capsys.readouterr().out


def test_what_an_earlier_version_drew_keeps_its_numbers(tmp_path, search):
    """There the folder, or else the table of trials, says which trial had which number."""
    drawn = draw_trials(parse_search(SEARCH), 4)
    request = parse_request(arguments(tmp_path, "--trials=3"))
    for number, settings in ((1, drawn[3]), (2, drawn[1])):
        train(build_task(request, number, settings, "100"))
    assert list_trials(request) == [(1, drawn[3]), (2, drawn[1]), (3, drawn[0])]
    search(train, "--trials=3")
    shutil.rmtree(tmp_path / "runs")
    assert list_trials(request) == [(1, drawn[3]), (2, drawn[1]), (3, drawn[0])]


def test_a_trial_that_fails_cannot_be_best_which_is_printed_all_the_same(tmp_path, search, tune_by, capsys):
    outcomes, _, failures, request = search(fail_with_four_epochs)
    assert len(failures) == 4 and sum(len(each.scores) for each in outcomes) == 4
    best, _ = find_best(request, outcomes, {})
    assert best.settings == {"epochs": "2", "learning_rate": "0.1"} and find_best(request, [], {}) is None
    assert tune_by(fail_with_four_epochs) == 1
    printed = capsys.readouterr()
    assert "4 runs failed:" in printed.err and ": epochs=2 learning_rate=0.1; validation_acc" in printed.out


def test_an_algorithm_without_scores_is_named_beside_one_that_has_them(tmp_path, tune_by, capsys):
    def train_unscored(task):
        code = train(task)
        if task.config.algo == "ditto":
            (task.run_dir / "metrics.csv").write_text("round,validation_accuracy\n1,\n2,\n")
        return code

    plain = [
        "--algo=fedavg,ditto",
        "--search=epochs=2|4",
        "--objective=validation_accuracy",
        "--seeds=100",
        "--rounds=2",
    ]
    assert tune_by(train_unscored, *plain, "--rounds=2", f"--runs_dir={tmp_path}", alone=True) == 1
    printed = capsys.readouterr()
    assert "ditto_digits: no trial has a validation_accuracy; do the clients" in printed.err
    assert "best     trial" in printed.out and "fedavg_digits: no trial" not in printed.err


def test_without_optuna_one_line_says_how_to_get_it(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for more in (["--search=learning_rate=log(0.001,0.1)", "--sampler=tpe"], ["--pruner=median"], ["--sampler=tpe"]):
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
    for more in ("--pruner=median", "--sampler=tpe"):
        assert parse_request(arguments(tmp_path, more)).sampler == "tpe"
        assert parse_request(arguments(tmp_path, "--search=epochs=int(1,3)", more)).sampler == "tpe"
    assert parse_request(arguments(tmp_path, "--search=epochs=int(1,3)")).sampler == "even"


@pytest.mark.parametrize("name", SEARCHES)
def test_the_searches_of_papers_can_be_run(name, monkeypatch):
    """Seeds that are tuned on are never reported ones, and the kept tables are of the trials that are drawn."""
    monkeypatch.chdir(ROOT)
    request = parse_request([f"--search={name}"])
    assert {"100", "101"} <= set(request.seeds) and min(map(int, request.seeds)) == 100
    assert request.output == pathlib.Path(f"docs/results/tuning/{name.partition('/')[2]}.csv")
    assert request.sampler == "grid" and len(build_tasks(request._replace(seeds=("100",)))) == request.num_trials
    trials = [settings for _, settings in list_trials(request)]
    if request.output.exists():
        found = [{flag: row[flag] for flag in trials[0] if flag in row} for row in read_rows(request.output)]
        drawn = [{flag: trial[flag] for flag in found[0]} for trial in trials]
        # The order hangs on how flags are called.
        is_whole = len(trials) == compute_grid_size(request.space)
        assert sorted(found, key=str) == sorted(drawn, key=str) if is_whole else found == drawn


def test_a_wrong_flag_of_searches_that_go_on_is_told_before_the_first_of_them(tmp_path, capsys):
    """Their folders are there, so that their data are not looked at again."""
    given = ["--algo=fedavg,ditto", "--search=learning_rate=0.01|0.1", f"--runs_dir={tmp_path}"]
    given.append("--objective=client_validation_accuracy")
    for request in parse_requests(given):
        request.folder.mkdir()
    assert tune.main([*given, "--validation_fraction=0"]) == 2
    told = capsys.readouterr()
    assert told.out == "" and "trials are scored on validation examples" in told.err
