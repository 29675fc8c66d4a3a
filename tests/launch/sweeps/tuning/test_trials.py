"""Which trials are the best, and what the table says of them."""

import pathlib

import pytest

from launch.settings.flags import FlagError, parse_config
from launch.settings.run_config import flag_values
from launch.sweeps.recipes import find_recipe
from launch.sweeps.tuning.request import Request
from launch.sweeps.tuning.search_space import Range, check_space, find_start, format_search, parse_search
from launch.sweeps.tuning.trials import Outcome, State, find_best, rank, read_curve, tabulate, write_best_flagfile

OUTCOMES = [
    Outcome(1, {"a": "1"}, State.COMPLETE, {"100": 0.5, "101": 0.7}),
    Outcome(2, {"a": "2"}, State.PRUNED, {}, {"100": {1: 0.25}}, (1, 0.25)),
    Outcome(3, {"a": "3"}, State.COMPLETE, {"100": 0.875, "101": 0.625}),
    Outcome(4, {"a": "3"}, State.COMPLETE, {"100": 0.875, "101": 0.625}),
    Outcome(5, {"a": "4"}, State.OPEN, {"100": 0.9}),
    Outcome(6, {"a": "5"}, State.REFUSED),
    Outcome(7, {"a": "6"}, State.COMPLETE, {"100": 0.75, "101": 0.75}),
]


@pytest.fixture
def request_of():
    """(sampler, further seeds) -> a request."""

    def build(sampler, confirm_seeds=()):
        return Request(pathlib.Path("a.flags"), parse_search("a=1|2"), sampler, 7, ("100", "101"), None,
                       "validation_accuracy", pathlib.Path("runs"), pathlib.Path("t.csv"),
                       confirm_seeds=confirm_seeds)  # fmt: skip

    return build


def test_complete_trials_are_ranked_by_their_means_equal_ones_by_number_equal_settings_once(request_of):
    assert [each.number for each in rank(OUTCOMES)] == [3, 7, 1]
    best, mean = find_best(request_of("grid"), OUTCOMES, {})
    assert (best.number, mean) == (3, 0.75)


def test_further_seeds_decide_among_the_trials_that_have_them_all(request_of):
    request = request_of("grid", ("200", "201"))
    confirmed = {3: {"200": 0.5, "201": 0.5}, 7: {"200": 0.5, "201": 0.625}, 1: {"200": 1.0}}
    best, mean = find_best(request, OUTCOMES, confirmed)
    assert (best.number, mean) == (7, 0.5625)
    assert find_best(request, OUTCOMES, {}) is None


def test_a_search_with_optuna_has_columns_for_what_became_of_a_trial(request_of):
    columns, rows = tabulate(request_of("tpe", ("200",)), OUTCOMES[:3], {3: {"200": 0.5}})
    scores = ["validation_accuracy_seed_100", "validation_accuracy_seed_101", "mean"]
    results = ["state", "pruned_after_round", "value_then"]
    assert columns == ["trial", "a", *scores, *results, "validation_accuracy_seed_200", "confirmed_mean"]
    assert rows == [
        ["1", "1", "0.5", "0.7", "0.6", "complete", "", "", "", ""],
        ["2", "2", "", "", "", "pruned", "1", "0.25", "", ""],
        ["3", "3", "0.875", "0.625", "0.75", "complete", "", "", "0.5", "0.5"],
    ]
    columns, _ = tabulate(request_of("grid"), OUTCOMES[:1], {})
    assert columns == ["trial", "a", *scores]


def test_a_curve_has_the_rounds_that_were_evaluated(tmp_path):
    assert read_curve(tmp_path, "validation_accuracy") == {}
    (tmp_path / "metrics.csv").write_text("round,validation_accuracy\n1,\n2,0.5\n3,\n4,0.25\n")
    assert read_curve(tmp_path, "validation_accuracy") == {2: 0.5, 4: 0.25}
    assert read_curve(tmp_path, "client_validation_accuracy") == {}


def test_of_an_error_the_lowest_mean_is_the_best(request_of):
    request = request_of("grid", ("200",))._replace(objective="validation_rmse")
    assert [each.number for each in rank(OUTCOMES, request.sign)] == [1, 3, 7]
    assert find_best(request._replace(confirm_seeds=()), OUTCOMES, {})[0].number == 1
    assert find_best(request, OUTCOMES, {3: {"200": 0.5}, 1: {"200": 0.75}})[0].number == 3


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


def test_choices_and_ranges_are_read_and_written_back():
    text = "a=1|2;b=int(2,8);c=float(0.0,0.5);d=log(0.0001,0.1)"
    space = parse_search(f" {text.replace(';', ' ; --')} ;")
    assert space == {
        "a": ("1", "2"),
        "b": Range("int", 2, 8),
        "c": Range("float", 0.0, 0.5),
        "d": Range("log", 0.0001, 0.1),
    }
    assert format_search(space) == text and parse_search(format_search(space)) == space


def test_the_start_is_the_point_of_the_space_with_the_flags_own_values():
    flags = {"a": 0.001, "b": 3, "c": True, "d": "adam", "e": 0.05, "f": 32}
    space = parse_search("a=0.1|1e-3;b=int(2,8);c=true|false;d=sgd|adam;e=log(0.01,1);f=16|32")
    start = {"a": "1e-3", "b": "3", "c": "true", "d": "adam", "e": "0.05", "f": "32"}
    assert find_start(space, flags) == start
    for name, outside in {"a": 0.01, "b": 9, "c": False, "d": "rmsprop", "e": 0.001, "f": 64}.items():
        expected = {**start, "c": "false"} if name == "c" else None
        assert find_start(space, {**flags, name: outside}) == expected


def test_numbers_are_typed_short_but_never_leave_the_range():
    assert Range("int", 2, 8).format_value(3) == "3"
    assert Range("log", 1e-4, 1e-1).format_value(0.0123456789) == "0.0123457"
    assert Range("float", 0.12345678, 0.5).format_value(0.12345679) == "0.123457"
    # 0.123456 in 6 digits.
    assert Range("float", 0.12345612, 0.5).format_value(0.12345613) == "0.12345613"
    assert Range("float", 0.0, 0.98765432).format_value(0.98765432) == "0.987654"
    # 0.987655 in 6 digits.
    assert Range("float", 0.0, 0.98765477).format_value(0.98765477) == "0.98765477"
    for value in (0.12345678, 0.3, 0.98765432):
        shortened = Range("float", 0.12345678, 0.98765432).format_value(value)
        assert Range("float", 0.12345678, 0.98765432).format_value(float(shortened)) == shortened


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ("learning_rate=log(0.1,1000)", ""),
        ("learning_rate=float(0,1)", "--search: --learning_rate=0: expected a number above 0"),
        ("epochs=int(0,3)", "--search: --epochs=0: expected an integer at least 1"),
        ("epochs=float(1,3)", "--search: epochs=float(1.0,3.0): takes whole numbers; expected int"),
        ("epochs=log(1,8)", "takes whole numbers; expected int"),
        ("learning_rate=int(1,2)", ""),
        ("validation_fraction=float(0.1,0.5)", "--search: --validation_fraction=0.5: expected a number at least 0 and"),
        ("optimizer=int(1,2)", "--search: --optimizer=1: expected one of"),
        ("model=int(1,2)", "--search: model=int(1,2): takes no single number; expected choices"),
        ("epochs=1|x", "--search: --epochs=x: expected an integer"),
        ("fedavg_eposch=int(1,2)", "--search: --fedavg_eposch: unknown flag; did you mean --epochs"),
        ("temperature=float(1,2)", "--search: --temperature: belongs to --algo=fedsikd and 2 more, expected settings"),
    ],
)
def test_a_range_that_leaves_that_of_the_flag_is_refused(search, message):
    space = parse_search(search)
    if not message:
        check_space(space, "fedavg")
        return
    with pytest.raises(FlagError) as refused:
        check_space(space, "fedavg")
    assert str(refused.value).startswith(message) or message in str(refused.value)
    assert "\n" not in str(refused.value)
