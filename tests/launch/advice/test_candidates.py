"""Which methods fit which data, with a reason for each that does not, and what their trials vary."""

import dataclasses
import importlib

import pytest

from launch.advice.candidates import (
    CANDIDATES,
    NOT_FOR_NEW,
    check_names,
    choose_methods,
    describe_left_out,
    name_as_chosen,
)
from launch.advice.inspection import Facts
from launch.contests.contest_runs import Builder
from launch.contests.methods import GROUPS, PERSONAL, SHARED
from launch.contests.problem import Problem
from launch.runs.task_columns import find_task_columns
from launch.settings.algorithms import ALGORITHMS
from launch.settings.errors import FlagError
from launch.settings.flags import parse_config
from launch.settings.run_config import flag_values
from launch.sweeps.tuning.search_space import Range, check_space, find_start
from tff_algos.protocol import FederatedProcess

DATA = ("--dataset=digits", "--partition=iid", "--batch_size=16")
FACTS = Facts(
    config=parse_config(["--algo=fedavg", *DATA]),
    task=find_task_columns("classification"),
    num_classes=10,
    takes_tokens=False,
    num_clients=10,
    num_new=0,
    train_examples=(50, 90.0, 120),
    num_judged=10,
    is_ordered=False,
    speeds_apart=1.0,
)
ALWAYS = ["local_only", "fedavg", "pooled"]


def change(config=(), **facts):
    """The facts with others, and those of further flags of the data."""
    return dataclasses.replace(FACTS, config=parse_config(["--algo=fedavg", *DATA, *config]), **facts)


def list_classes(builder):
    """The classes of processes that the module of a builder has."""
    module = importlib.import_module(builder.partition(":")[0])
    own = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__]
    return [each for each in own if issubclass(each, FederatedProcess)]


def list_names(facts, *arguments):
    return [method.name for method in choose_methods(facts, *arguments).methods]


def test_the_order_says_what_a_short_time_leaves_out():
    names = list_names(FACTS)
    others = ["fedavg_fine_tuned", "ifca", "fedadam", "partial", "ditto", "cfl", "fedsikd", "fedcd", "amfl_p"]
    assert names == [*ALWAYS, *others]
    assert names == [each.name for each in CANDIDATES if each.name != "async_periodic"]


@pytest.mark.parametrize(
    ("facts", "left_out"),
    [
        (FACTS, {"Asynchronous FL": "nothing says that devices differ; give --device_profiles"}),
        (
            change(num_clients=5),
            dict.fromkeys(("IFCA", "CFL", "FedSiKD", "FedCD"), "5 clients are too few for groups; expected at least 6"),
        ),
        (
            change(num_clients=300),
            dict.fromkeys(("CFL", "FedSiKD"), "it trains all 300 clients in every round"),
        ),
        (
            change(num_classes=0, task=find_task_columns("regression")),
            {"FedCD": "the labels are no classes, by which it scores models"},
        ),
        (change(train_examples=(15, 20.0, 30)), {"AMFL-P": "a client has 15 examples to train on, fewer than 16"}),
        (change(["--quantize=qat"]), {"AMFL-P": "it cannot train with --quantize=qat"}),
        (change(["--model=logistic_regression"]), {"FedPer or FedRep": "the model has one layer alone"}),
        (change(takes_tokens=True), {"FedSiKD": "it groups clients by the statistics of their inputs, and words have "
                                                "none that mean something"}),
        (
            change(["--device_profiles=phones"], speeds_apart=1.5),
            {"Asynchronous FL": "the fastest device is only 1.5 times as fast as the slowest"},
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_left_out_with_a_reason(facts, left_out):
    found = choose_methods(facts)
    assert left_out.items() <= {method.title: reason for method, reason in found.left_out}.items()
    assert not {*left_out} & {method.title for method in found.methods}
    lines = describe_left_out(found)
    assert len(lines) == len(found.left_out)
    assert all(f"left out {title}: {reason}" in lines for title, reason in left_out.items())


def test_devices_that_differ_let_asynchronous_fl_in():
    facts = change(["--device_profiles=phones"], speeds_apart=6.0)
    [method] = [each for each in choose_methods(facts).methods if each.name == "async_periodic"]
    assert method.fixed == ("--max_scheduled=3", "--speed=profiles")


def test_every_method_is_understood_as_it_stands():
    """Its fixed flags, and both ends and all choices of what is searched."""
    for method in choose_methods(change(num_clients=8)).methods:
        parse_config([f"--algo={method.algo}", *DATA, "--num_clients=8", *method.fixed, "--rounds=40"])
        check_space(method.space, method.algo)
        assert method.role in (SHARED, GROUPS, PERSONAL) or method.name in ("local_only", "pooled")


def test_fine_tuning_at_the_end_is_offered_to_whatever_shares_models():
    spaces = {method.name: method.space for method in choose_methods(FACTS).methods}
    assert {name for name in spaces if "final_steps" in spaces[name]} == {
        *("fedavg_fine_tuned", "ifca", "fedadam", "cfl", "fedsikd", "fedcd"),
    }
    # What shares models and what has its own says each algorithm's process; AMFL-P and fine-tuning are wrapped.
    for row in ALGORITHMS.values():
        classes = list_classes(row.builder)
        has_own = any(each.is_personal for each in classes) or row.name in ("amfl_p", "fine_tuning")
        shares = all(each.shares_models for each in classes) and not has_own and row.name not in ("fedavg", "pooled")
        [method] = [
            each
            for each in choose_methods(change(["--device_profiles=phones"], speeds_apart=9.0), [row.name]).methods
            if each.name == row.name
        ]
        assert ("final_steps" in method.space) == shares, row.name
    assert spaces["ifca"]["final_steps"] == ("0", "50")
    assert spaces["fedavg_fine_tuned"]["final_steps"] == ("50",)
    assert isinstance(spaces["fedavg_fine_tuned"]["final_learning_rate"], Range)


@pytest.mark.parametrize(
    ("data", "facts"),
    [
        (("--dataset=digits", "--partition=iid", "--batch_size=16"), {}),
        (("--dataset=shakespeare", "--batch_size=8"), {"takes_tokens": True}),
        (
            ("--dataset=digits", "--partition=iid", "--device_profiles=phones", "--new_clients=4", "--num_clients=20"),
            {"num_new": 4, "num_clients": 16, "speeds_apart": 5.0},
        ),
        (
            ("--dataset=building", "--partition=natural"),
            {"task": find_task_columns("regression"), "num_classes": 0},
        ),
    ],
)
def test_the_first_trial_has_the_defaults_wherever_they_are_searched(data, facts, tmp_path):
    """Each setting by itself, though others of the method have a default that lies outside."""
    facts = dataclasses.replace(FACTS, config=parse_config(["--algo=fedavg", *data]), **facts)
    methods, num_outside = choose_methods(facts).methods, 0
    builder = Builder(Problem("data", data, facts.task), methods, tmp_path)
    for method in methods:
        first, *others = builder.choose_points(method, 4)
        flags = flag_values(parse_config([f"--algo={method.algo}", *data, *method.fixed]))
        idle = {"final_learning_rate"} if first.get("final_steps") == "0" else set()
        assert first.keys() == method.space.keys() - idle and first not in others
        for name, values in ((name, method.space[name]) for name in first):
            own = find_start({name: values}, {name: flags[name]})
            if name in method.start:
                assert (method.name, name, first[name]) == ("local_only", "learning_rate", "0.003")
            elif own is not None:
                assert first[name] == own[name], (method.name, name)
            num_outside += own is None
    assert len(methods) >= 10 and num_outside


def test_clients_alone_begin_with_the_rate_and_the_passes_of_fedavg(tmp_path):
    """In few rounds their own 0.0003 learns next to nothing, and whatever federates would look good."""
    problem = Problem("data", DATA, FACTS.task)
    methods = {method.name: method for method in choose_methods(FACTS).methods}
    builder = Builder(problem, methods.values(), tmp_path)
    [first] = builder.choose_points(methods["local_only"], 1)
    assert first == {"learning_rate": "0.003", "epochs": "5"}
    assert builder.choose_points(methods["fedavg"], 1)[0]["learning_rate"] == "0.003"
    assert parse_config(["--algo=fedavg"]).algorithm.training.epochs == 5


def test_a_method_is_called_as_its_trials_have_chosen_it():
    methods = {method.name: method for method in choose_methods(FACTS).methods}
    steps = {"final_steps": "50", "learning_rate": "0.1"}
    named = {name: name_as_chosen(methods[name], steps) for name in methods}
    assert (named["fedadam"].title, named["fedadam"].role) == ("FedAdam + fine-tuning", PERSONAL)
    # Whether it has made groups is still to be asked.
    assert (named["ifca"].title, named["ifca"].role) == ("IFCA + fine-tuning", GROUPS)
    assert named["fedavg_fine_tuned"].title == "FedAvg + fine-tuning"
    for chosen in (None, {}, {"final_steps": "0"}):
        assert all(name_as_chosen(method, chosen) == method for method in methods.values())


def test_clients_that_are_too_many_are_asked_in_turns():
    fixed = {method.name: method.fixed for method in choose_methods(change(num_clients=300)).methods}
    assert fixed["fedavg"] == fixed["ditto"] == fixed["fedcd"] == ("--cohort_size=50",)
    assert "--cohort_size=50" in fixed["amfl_p"] and not fixed["local_only"]
    fixed = {method.name: method.fixed for method in choose_methods(FACTS).methods}
    assert fixed["fedcd"] == ("--cohort_size=10",) and not fixed["fedavg"]


def test_methods_without_a_model_for_new_clients_measure_nothing_of_them():
    fixed = {method.name: method.fixed for method in choose_methods(change(["--new_clients=4"], num_new=4)).methods}
    assert fixed["local_only"] == fixed["ditto"] == ("--test_new_clients=false",) and not fixed["fedavg"]
    assert not any("--test_new_clients=false" in method.fixed for method in choose_methods(FACTS).methods)
    for row in ALGORITHMS.values():
        takes = [each.takes_new_clients for each in list_classes(row.builder)] or [True]
        assert (row.name not in NOT_FOR_NEW) == takes[0], row.name


@pytest.mark.parametrize(("median", "steps"), [(0.5, 10), (16.0, 10), (17.0, 20), (48.5, 40), (90.0, 50)])
def test_steps_at_the_end_take_no_longer_than_two_rounds(median, steps):
    """A round is five passes, and a pass over 17 examples is 2 batches of 16."""
    facts = change(train_examples=(1, median, 900))
    spaces = {method.name: method.space for method in choose_methods(facts).methods}
    assert spaces["fedavg_fine_tuned"]["final_steps"] == (str(steps),)
    assert spaces["fedcd"]["final_steps"] == ("0", str(steps))


@pytest.mark.parametrize(
    ("fewest", "natural", "size"), [(200, True, 32), (40, True, 20), (16, True, 8), (16, False, 5)]
)
def test_batches_of_amfl_fit_the_smallest_client(fewest, natural, size):
    """Where clients are simulated another seed may have a smaller one."""
    facts = change(["--partition=natural"] if natural else (), train_examples=(fewest, 50.0, 90))
    [method] = [each for each in choose_methods(facts).methods if each.name == "amfl_p"]
    assert method.fixed == (
        f"--support_size={size}",
        f"--query_size={size}",
        "--fine_tuning_steps=40",
        "--min_resource=1",
    )


def test_amfl_limits_steps_by_resources_where_profiles_may_have_them():
    [method] = [each for each in choose_methods(change(["--device_profiles=phones"])).methods if each.name == "amfl_p"]
    assert "--min_resource=1" not in method.fixed


OWN = """
import dataclasses
from launch.settings.algorithms import ALGORITHMS
ROW = dataclasses.replace(ALGORITHMS["fedavg"], name="mine", searched={"epochs": "1|2"})
"""


def test_methods_that_are_asked_for_stand_beside_those_that_always_are(tmp_path, monkeypatch):
    assert list_names(FACTS, ("ditto", "scaffold", "fl_hc")) == [*ALWAYS, "ditto", "scaffold", "fl_hc"]
    (tmp_path / "my_advised_algorithm.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    rates = Range("log", 0.005, 0.2)
    space = {"epochs": ("1", "2"), "final_steps": ("0", "50"), "final_learning_rate": rates}
    *others, own = choose_methods(FACTS, ("my_advised_algorithm:ROW",), False).methods
    assert [method.name for method in others] == ["local_only", "fedavg"]
    assert (own.name, own.algo, own.space) == ("mine", "my_advised_algorithm:ROW", space)
    roles = {method.name: method.role for method in choose_methods(FACTS, ("apfl", "scaffold", "fl_hc")).methods}
    assert (roles["apfl"], roles["scaffold"], roles["fl_hc"]) == (PERSONAL, SHARED, GROUPS)
    [reason] = [reason for method, reason in choose_methods(FACTS, (), False).left_out if method.name == "pooled"]
    assert reason == "as --no_pooled asks"


OTHERS = """
import dataclasses
from launch.settings.algorithms import ALGORITHMS
from tff_algos.protocol import FederatedProcess

class Personal(FederatedProcess):
    is_personal, takes_new_clients = True, False

def build(*arguments):
    raise AssertionError

PERSONAL = dataclasses.replace(ALGORITHMS["fedavg"], name="own_personal", builder=f"{__name__}:build")
TUNED = dataclasses.replace(PERSONAL, name="fedavg_fine_tuned")
SAME = dataclasses.replace(PERSONAL, title="Same")
GONE = dataclasses.replace(PERSONAL, builder=f"{__name__}:no_such_function")
"""


def test_an_own_algorithm_is_treated_as_its_process_says(tmp_path, monkeypatch):
    (tmp_path / "my_other_algorithms.py").write_text(OTHERS)
    monkeypatch.syspath_prepend(tmp_path)
    facts = change(["--new_clients=4"], num_new=4)
    *_, own = choose_methods(facts, ["my_other_algorithms:PERSONAL"]).methods
    assert (own.name, own.role, own.fixed) == ("own_personal", PERSONAL, ("--test_new_clients=false",))
    assert "final_steps" not in own.space
    for names, said in {
        ("my_other_algorithms:TUNED",): "fedavg_fine_tuned is also the name of another method",
        ("my_other_algorithms:PERSONAL", "my_other_algorithms:SAME"): "own_personal is also the name",
        ("my_other_algorithms:GONE",): "no_such_function",
    }.items():
        with pytest.raises(FlagError, match=said) as error:
            check_names(names)
        assert "\n" not in str(error.value)
