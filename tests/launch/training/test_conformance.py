"""An algorithm is held to the protocol: one line for each thing it can get wrong; the project's own ones pass."""

import dataclasses
import re
import types

import numpy as np
import pytest

from datasets.federated_data import Archetypes
from launch.settings.algorithms import ALGORITHMS
from launch.settings.flags import FlagError
from launch.settings.run_config import build_run_config
from launch.training.conformance import Conformance, build_own_process, check_small
from tff_algos.protocol import COMMON_METRICS, FederatedProcess, RoundOutput

LABEL = "--algo=my_module:ALGORITHM"
CLIENTS = tuple(types.SimpleNamespace(index=index, name=f"client_{index}") for index in range(3))
DATA = types.SimpleNamespace(clients=CLIENTS, everyone=CLIENTS)
TEACHER = types.SimpleNamespace(weight_shapes=((2,),), of_weights=lambda weights: TEACHER)
SPEC = types.SimpleNamespace(weight_shapes=((4, 3), (3,)), teacher=TEACHER, of_weights=lambda weights: SPEC)
WEIGHTS = (np.ones((4, 3), np.float32), np.zeros(3, np.float32))
# A server with its own state and that of clients, a clock, models of clients; FedAvg is a part of each.
QUICK = {"scaffold", "fed_async", "ditto"}
METRICS = {**dict.fromkeys(COMMON_METRICS, 1.0), "num_rejected": 0.0}


class Right(FederatedProcess):
    """Counts its rounds, and has one model."""

    def initialize(self):
        return {"round_num": np.int32(0), "models": [np.stack([array]) for array in WEIGHTS]}

    def next(self, state):
        return RoundOutput({**state, "round_num": np.int32(state["round_num"] + 1)}, dict(METRICS))

    def get_models(self, state):
        return {"global": tuple(stacked[0] for stacked in state["models"])}

    def client_model(self, state):
        return ["global"] * len(CLIENTS)


def change(**methods):
    return type("Own", (Right,), methods)


def check(kind, builder=None):
    process = build_own_process(LABEL, builder or (lambda *arguments: kind()), SPEC, DATA, None, 3)
    Conformance(LABEL, process, SPEC, DATA).check()


def fail(*arguments):
    raise ValueError("first\nsecond")


def leave(*arguments):
    raise SystemExit


def give(value):
    return lambda self, state, *arguments: value


def give_metrics(**changed):
    return give(RoundOutput(Right().initialize(), {**METRICS, **changed}))


def give_state(state):
    return give(RoundOutput(state, METRICS))


def next_of_other_metrics(self, state):
    name = f"round_{state['round_num']}"
    return RoundOutput({**state, "round_num": state["round_num"] + 1}, {**METRICS, name: 1.0})


def next_that_counts(self, state):
    self.rounds = [*self.rounds, 1]
    return RoundOutput({**state, "round_num": state["round_num"] + 1}, {**METRICS, "own": float(len(self.rounds))})


def next_in_place(self, state):
    state["models"][0] += 1
    return RoundOutput(dict(state), METRICS)


STATE = Right().initialize()
MISTAKES = {
    # initialize
    "fails": (change(initialize=fail), r"initialize: ValueError: first \(test_conformance.py, line \d+: `raise"),
    "leaves": (change(initialize=leave), "initialize: a call of sys.exit"),
    "state is an object": (
        change(initialize=lambda self: object()),
        "initialize: expected a state of NumPy arrays of numbers.*, got object .test_conformance.py",
    ),
    "state has text": (change(initialize=lambda self: {**STATE, "name": "x"}), "initialize: .*, got str of 1 at name"),
    "state has None": (change(initialize=lambda self: {**STATE, "last": None}), "initialize: .*, got None at last"),
    "state is drawn anew": (
        change(
            initialize=lambda self: {
                **STATE,
                "models": [np.random.default_rng().normal(size=(1, 4, 3)), STATE["models"][1]],
            }
        ),
        r"initialize gives another state when it is called again, at models.0.; draw by the seed .*test_conformance.py",
    ),
    # next
    "next fails": (change(next=lambda self, state: [][0]), "next: IndexError: list index out of range"),
    "next takes nothing": (change(next=lambda self: None), "next: TypeError"),
    "a dict": (change(next=give({"state": 1})), "next: expected a RoundOutput of state and metrics, got dict of 1"),
    "a pair": (change(next=give((STATE, METRICS))), "next: expected a RoundOutput .*, got tuple of 2"),
    "nothing": (change(next=give(None)), "next: expected a RoundOutput of state and metrics, got None"),
    "metric missing": (
        change(next=give(RoundOutput(STATE, {"train_loss": 1.0}))),
        "next: expected the metrics .*, got none of virtual_time_s, num_clients",
    ),
    "no metrics": (change(next=give(RoundOutput(STATE, None))), "next: expected metrics in a dict, got None"),
    "metric taken": (change(next=give_metrics(test_accuracy=1.0)), "metrics under names of their own, got test_acc"),
    "metric is text": (
        change(next=give_metrics(own="high")),
        "next: expected a number for the metric 'own', .*, got str",
    ),
    "metric is a list": (
        change(next=give_metrics(own=[1.0])),
        "expected a number for the metric 'own', .*, got list of 1",
    ),
    "other metrics": (change(next=next_of_other_metrics), r"expected the same metrics every round \(.*round_0\), got"),
    "object in state": (
        change(next=give_state({**STATE, "round_num": object()})),
        "next: expected a state .*, got object at round_num",
    ),
    "state grows": (
        change(next=give_state({**STATE, "models": [*STATE["models"], np.ones(1)]})),
        r"next: expected a state of the structure that initialize gave, got another at models\[2\]",
    ),
    "state loses": (
        change(next=give_state({"round_num": np.int32(1)})),
        r"next: .*got another at models\[0\]",
    ),
    "state is flat": (change(next=give_state({**STATE, "models": np.ones(2)})), r"got another at models"),
    # get_models and client_model
    "no models": (change(get_models=give({})), "get_models: expected a dict of at least one name .*, got dict of 0"),
    "models in a list": (change(get_models=give([WEIGHTS])), "get_models: expected a dict of at least one name"),
    "models without": (change(get_models=give({"global": None})), "get_models, of 'global': expected a tuple of NumPy"),
    "tensors": (
        change(get_models=give({"global": ([1.0], 2)})),
        "of 'global': expected a tuple of NumPy arrays, got int, l",
    ),
    "too few": (change(get_models=give({"global": WEIGHTS[:1]})), "expected 2 arrays, as the model has, got 1"),
    "stacked": (
        change(get_models=lambda self, state: {"global": tuple(state["models"])}),
        r"get_models, of 'global': expected .*weights, \(4, 3\) of number 0, got \(1, 4, 3\)",
    ),
    "unknown name": (
        change(client_model=give(["best"] * 3)),
        r"client_model: expected names of get_models \(global\), got 'best'",
    ),
    "too few names": (
        change(client_model=give(["global"])),
        "client_model: expected a list of 3 names, one a client, got l",
    ),
    "one name": (change(client_model=give("abc")), "client_model: expected a list of 3 names, one a client, got str"),
    "no names": (change(client_model=give(None)), "client_model: expected a list of 3 names, one a client, got None"),
    # The others
    "personalize misses": (
        change(personalize=lambda self, state, clients: ((client, WEIGHTS) for client in clients[:2])),
        r"personalize: expected a pair \(client, weights\) for each client, in order, got None for client_2",
    ),
    "personalize mixes": (
        change(personalize=lambda self, state, clients: ((client, WEIGHTS) for client in clients[::-1])),
        "personalize: expected a pair .*, in order, got tuple of 2 for client_0",
    ),
    "personalize gives weights": (change(personalize=give([WEIGHTS] * 3)), "personalize: expected a pair"),
    "personalize fails late": (
        change(personalize=lambda self, state, clients: ((client, 1 / 0) for client in clients)),
        "personalize: ZeroDivisionError",
    ),
    "personalize of other shapes": (
        change(personalize=lambda self, state, clients: ((client, WEIGHTS[::-1]) for client in clients)),
        "personalize: expected the shapes of the model's weights",
    ),
    "summary": (
        change(summarize=give({"object": object()})),
        "summarize: expected numbers, strings, lists and dicts alone: TypeError",
    ),
    "no summary": (change(summarize=give(None)), "summarize: expected a dict, got None"),
    "short column": (
        change(client_columns=give({"own": [1]})),
        "client_columns: expected 3 numbers or texts of 'own', one",
    ),
    "taken column": (
        change(client_columns=give({"accuracy": [1] * 3})),
        "client_columns: expected names of its own, got 'ac",
    ),
    "teacher": (change(get_teachers=give({"t": WEIGHTS})), "get_teachers, of 't': expected 1 arrays, as the model"),
    "event": (
        change(get_events=give([(1.0, 2)])),
        "get_events: expected .seconds, client, what happened, model., got tuple of 2",
    ),
    "note": (change(get_notes=give("a line")), "get_notes: expected a list of lines, got str"),
    "spent": (change(is_spent=fail), "is_spent: ValueError: first"),
    "attribute": (change(is_personal="yes"), "is_personal: expected a bool, got 'yes'"),
    # A repeated round
    "the same state": (
        change(next=lambda self, state: RoundOutput(state, METRICS)),
        "next: .* the one that it was given",
    ),
    "state on self": (
        change(rounds=[], next=next_that_counts),
        "repeated, at metrics.own; .* as rounds may be, but in th",
    ),
    "state changed": (
        change(next=next_in_place),
        r"next changed the state that it was given, at models\[0\]; make new ar",
    ),
    "none counts": (
        change(next=give_metrics(num_rejected=1.0)),
        "next: expected updates that are finite; look at the l",
    ),
    "infinite": (change(next=give_metrics(train_loss=np.inf)), "next: expected a finite train_loss"),
    "no super": (
        type("Own", (type("SynchronousProcess", (Right,), {}),), {}),
        "initialize: expected a state as that of super.*, got dict of 2 without round_n",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_is_one_line_that_names_algorithm_and_method(mistake):
    kind, message = MISTAKES[mistake]
    with pytest.raises(FlagError, match=f"^{re.escape(LABEL)}: .*{message}|^{re.escape(LABEL)}: {message}") as caught:
        check(kind)
    assert "\n" not in str(caught.value)


BUILDERS = {
    r"must be a function of \(model_spec, clients, config, seed\)": lambda model_spec, clients: Right(),
    "must be a function of .*: missing a required argument: 'e'": lambda a, b, c, d, e: Right(),
    ": ValueError: first": lambda *arguments: fail(),
    ": a call of sys.exit": lambda *arguments: leave(),
    " gave None, expected a FederatedProcess .test_conformance.py, line": lambda *arguments: None,
    " gave ABCMeta, expected a FederatedProcess": lambda *arguments: Right,
    ": TypeError: Can't instantiate": lambda *arguments: type("Half", (FederatedProcess,), {})(),
}


@pytest.mark.parametrize("message", BUILDERS)
def test_a_builder_that_gives_no_process_is_one_line(message):
    with pytest.raises(FlagError, match=f"its builder ?{message}"):
        check(None, BUILDERS[message])


def test_what_is_right_passes():
    kind = change(
        is_personal=True,
        summarize=give({"rounds": np.int32(2), "curve": np.ones(2), "note": "x"}),
        client_columns=give({"cluster": [0, 1, 0], "name": ["a", "b", None]}),
        get_teachers=give({"teacher": (np.ones(2, np.float32),)}),
        get_events=give([(1.0, 0, "start", 2)]),
        get_notes=give(["a line"]),
        list_work=lambda self, state, after: [],
    )
    check(kind)


@pytest.mark.parametrize(
    "algo", [pytest.param(each, marks=[] if each in QUICK else pytest.mark.slow) for each in ALGORITHMS]
)
def test_the_projects_own_algorithms_pass(algo, tff_runtime, make_federation, linear_spec):
    data, config = make_federation([9, 7, 14, 8]), build_run_config({"algo": algo})
    # The teacher has two layers.
    spec = linear_spec if config.algorithm.trains_teacher else linear_spec.teacher
    data = dataclasses.replace(data, archetypes=Archetypes(("a", "b"), (0, 0), (0, 0, 1, 1)))
    check_small(config, data, spec)
