"""What each algorithm's row says to search: settings that are its own and that its run would take."""

import dataclasses
import itertools

import pytest

from launch.contests.search_points import draw_points
from launch.runs.run_records import read_rows
from launch.settings.algorithms import ALGORITHMS
from launch.settings.errors import FlagError
from launch.settings.flags import parse_config
from launch.settings.run_config import find_algorithm
from launch.settings.setting_names import read_name
from launch.sweeps.tuning.own_space import build_own_space, drop_idle
from launch.sweeps.tuning.request import parse_request, parse_requests
from launch.sweeps.tuning.scored_runs import list_trials
from launch.sweeps.tuning.search_space import (
    Range,
    check_space,
    find_own_point,
    format_search,
    format_settings,
    holds,
    parse_search,
)
from reproductions.league.experiments import TABLE, split_name
from tff_algos.settings.searched import ADAM_RATES, LOCAL_RATES, SGD_RATES

MOST_VARIED, MOST_CHOSEN, MOST_CHOICES = 4, 2, 3
# Their papers' own settings are four already.
WITHOUT_SERVER_MOMENTUM = {"cfl", "fedsikd", "random_cluster", "pfedme"}
# Where a list has not the default: the printed milestones need 45 rounds, the indices choose the clusters, and equal
# weights are age-aware ones at the default gamma.
OUTSIDE = {"fedcd": "milestones", **dict.fromkeys(("fedsikd", "random_cluster"), "num_clusters")}
OUTSIDE["async_periodic"] = "weighting"


def resolve_of(*arguments):
    return lambda more: parse_config([*arguments, *more])


def build(name, *arguments, given=()):
    return build_own_space(ALGORITHMS[name], resolve_of(f"--algo={name}", *arguments), given)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_list_holds_few_settings_which_the_flags_take(name):
    row = ALGORITHMS[name]
    space = build(name)
    assert list(space) == list(row.searched) and set(space) <= row.names
    assert format_search(parse_search(format_search(space))) == format_search(space)
    check_space(space, name)
    varied = [each for each in space.values() if isinstance(each, Range) or len(each) > 1]
    chosen = [each for each in varied if not isinstance(each, Range)]
    assert (
        len(varied) <= MOST_VARIED and len(chosen) <= MOST_CHOSEN and max(map(len, chosen), default=0) <= MOST_CHOICES
    )
    rates = [each for key, each in space.items() if key.endswith("learning_rate")]
    assert rates and all(each.kind == "log" for each in rates)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_defaults_lie_inside(name):
    config = parse_config([f"--algo={name}"])
    space = build(name)
    outside = [key for key in space if find_own_point({key: space[key]}, config) is None]
    assert outside == ([OUTSIDE[name]] if name in OUTSIDE else [])


@pytest.mark.parametrize("name", ALGORITHMS)
def test_whatever_averages_searches_momentum_at_the_server(name):
    row = ALGORITHMS[name]
    has_sgd = "server_momentum" in row.names and getattr(row.default_config(), "server", None) is not None
    takes_it = has_sgd and row.default_config().server.optimizer == "sgd" and name != "amfl_p"
    assert ("server_momentum" in row.searched) == (takes_it and name not in WITHOUT_SERVER_MOMENTUM)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_point_is_a_run(name):
    arguments = [f"--algo={name}", "--rounds=10"]
    for point in draw_points(build(name, "--rounds=10"), 12):
        parse_config([*arguments, *format_settings(point)])


def test_what_trials_of_the_league_have_chosen_lies_inside():
    """Of settings that are on the list; its methods have SGD but on Shakespeare, and AMFL-P rates of its own."""
    outside = []
    for row in (row for row in read_rows(TABLE) if row["chosen"]):
        name, problem = split_name(row["experiment"])
        optimizer = "adam" if problem == "shakespeare" else "sgd"
        for setting, _, value in (each.removeprefix("--").partition("=") for each in row["settings"].split()):
            values = ALGORITHMS[name].searched.get(read_name(setting, ALGORITHMS[name]), "")
            values = LOCAL_RATES[optimizer] if values in LOCAL_RATES.values() else values
            searched = parse_search(f"a={values}")["a"] if values else None
            is_inside = searched is None or (
                searched.low <= float(value) <= searched.high if isinstance(searched, Range) else value in searched
            )
            outside += [] if is_inside else [(row["experiment"], setting, value)]
    assert not outside


def test_rates_are_those_of_the_optimizer_that_clients_have():
    adam, sgd = (parse_search(f"a={text}")["a"] for text in (ADAM_RATES, SGD_RATES))
    assert (build("fedavg")["learning_rate"], build("scaffold")["learning_rate"]) == (adam, sgd)
    assert build("fedavg", "--optimizer=sgd")["learning_rate"] == sgd
    assert build("apfl", "--optimizer=adam")["learning_rate"] == adam
    assert build("fedsikd", "--student_optimizer=sgd")["student_learning_rate"] == sgd
    tuned = build("fine_tuning", "--local_optimizer=sgd")
    assert tuned["local_learning_rate"] == sgd and tuned["learning_rate"].low == 0.005, "the steps at the end are SGD's"
    # The server's optimizer is another.
    assert build("fedadam", "--server_optimizer=yogi")["server_learning_rate"] == Range("log", 0.003, 0.1)


def test_what_is_given_or_does_nothing_or_does_not_fit_is_left_out():
    assert list(build("ditto", "--pull=1", given=("algo", "pull"))) == ["learning_rate", "server_momentum"]
    assert list(build("fedavg", "--server_optimizer=adam")) == ["learning_rate"]
    assert list(build("async_periodic")) == [
        "learning_rate",
        "period_fraction",
        "weighting",
        "gamma",
        "server_momentum",
    ]
    assert "period_fraction" not in build("async_periodic", "--waiting=synchronous")
    assert not {"weighting", "gamma"} & set(build("async_periodic", "--weighting=equal", given=("weighting",)))
    # A milestone after the last round.
    assert build("fedcd", "--rounds=10")["milestones"] == ("2", "2,5")
    assert build("fedcd", "--rounds=4")["milestones"] == ("2",)
    assert "milestones" not in build("fedcd", "--milestones=1", "--rounds=1")
    with pytest.raises(FlagError, match="--milestones=5,15,25,30: expected rounds up to the last one, --rounds=1"):
        build("fedcd", "--rounds=1")
    assert build("fedavg", given=("learning_rate", "server_momentum")) == {}


def test_a_command_without_a_search_takes_the_algorithms_own_list(tmp_path):
    given = [f"--runs_dir={tmp_path}", "--optimizer=sgd", "--cohort_size=2"]
    fedavg, ditto = parse_requests(["--algo=fedavg,ditto", *given, "--ditto_pull=1"])
    assert format_search(fedavg.space) == f"learning_rate={SGD_RATES};server_momentum=float(0.0,0.9)"
    assert ditto.space == fedavg.space, "its pull is given"
    assert (fedavg.sampler, fedavg.num_trials, ditto.num_trials) == ("even", 8, 8)
    assert parse_request(["--algo=fedavg", "--pruner=median"]).sampler == "tpe"
    assert parse_request(["--algo=fedavg", "--sampler=tpe"]).sampler == "tpe"


def test_the_first_trial_has_the_settings_as_they_are_and_more_trials_are_added(tmp_path):
    asked = ["--algo=fedavg", f"--runs_dir={tmp_path}"]
    trials = list_trials(parse_request(asked))
    assert trials[0] == (1, {"learning_rate": "0.003", "server_momentum": "0"}) and len(trials) == 8
    assert [number for number, _ in trials] == list(range(1, 9))
    assert list_trials(parse_request([*asked, "--trials=12"]))[:8] == trials
    # Outside of the range they are trial 0, as beside a grid.
    outside = list_trials(parse_request([*asked, "--search=learning_rate=log(0.01,0.1)", "--trials=3"]))
    assert outside[0] == (0, {}) and [number for number, _ in outside] == [0, 1, 2, 3]
    # Settings without a number have no place in a range.
    even = parse_request([*asked, "--search=epochs=int(1,2);optimizer=sgd|adam", "--trials=9"])
    assert sorted(tuple(each.values()) for _, each in list_trials(even) if each) == list(
        itertools.product("12", ("adam", "sgd"))
    )


def test_trials_of_a_table_are_known_again(tmp_path):
    asked = ["--algo=fedavg", f"--runs_dir={tmp_path / 'runs'}", f"--output={tmp_path / 'trials.csv'}", "--seeds=100"]
    (tmp_path / "trials.csv").write_text(
        "trial,learning_rate,server_momentum,validation_accuracy_seed_100,mean\n4,0.0123,0.5,0.7,0.7\n5,9,0.5,0.1,0.1\n"
    )
    trials = dict(list_trials(parse_request([*asked, "--objective=validation_accuracy"])))
    assert trials[4] == {"learning_rate": "0.0123", "server_momentum": "0.5"} and len(trials) == 8
    assert {"learning_rate": "9", "server_momentum": "0.5"} not in trials.values()
    rates, rounds = Range("log", 0.01, 0.1), Range("int", 2, 8)
    assert [holds(rates, text) for text in ("0.05", "5e-2", "0.5", "adam", "")] == [True, False, False, False, False]
    assert [holds(rounds, text) for text in ("3", "3.0", "9")] == [True, False, False]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--algo=fedavg", "--learning_rate=0.1", "--server_momentum=0.5"],
            "fedavg leaves nothing to search, since",
        ),
        (["--algo=fedavg,examples.fed_dyn", "--learning_rate=0.1", "--alpha=1"], "feddyn leaves nothing to search"),
        (["--algo=fedavg", "--server_momentum=2"], "fedavg: --fedavg_server_momentum=2: expected a number"),
        (
            ["--algo=fedavg", "--sampler=grid"],
            "does not go with a range in --search; expected --sampler=even or",
        ),
        (
            ["--algo=fedavg", "--sampler=even", "--pruner=median"],
            "--sampler=even: does not go with --pruner",
        ),
        (["--experiment=fedsikd/fedavg_mnist_alpha0.1"], "--search is missing: expected flags with their values"),
    ],
)
def test_where_nothing_can_be_searched_one_line_says_why(arguments, said):
    with pytest.raises(FlagError) as refused:
        parse_requests(arguments)
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_an_own_algorithm_may_have_a_list():
    row = find_algorithm("examples.fed_dyn:ALGORITHM")
    resolve = resolve_of("--algo=examples.fed_dyn", "--optimizer=sgd")
    assert format_search(build_own_space(row, resolve)) == f"learning_rate={SGD_RATES};alpha=log(0.01,1.0)"
    assert build_own_space(dataclasses.replace(row, searched={}), resolve) == {}
    wrong = dataclasses.replace(row, searched={"alpha": "log(0,1)"})
    with pytest.raises(FlagError, match=r"^--algo=feddyn: its searched: 'alpha=log\(0,1\)': expected numbers above 0"):
        build_own_space(wrong, resolve)


def test_a_point_leaves_out_numbers_that_do_nothing_beside_its_choices():
    """Of no steps at the end the rate; `launch.train` would refuse it."""
    space = parse_search("final_steps=0|50;final_learning_rate=log(0.005,0.2);learning_rate=log(0.01,1)")
    point = {"final_steps": "50", "final_learning_rate": "0.1", "learning_rate": "0.3"}
    resolve = resolve_of("--algo=fedavg")
    assert drop_idle(point, space, resolve) == point
    assert drop_idle({**point, "final_steps": "0"}, space, resolve) == {"final_steps": "0", "learning_rate": "0.3"}
