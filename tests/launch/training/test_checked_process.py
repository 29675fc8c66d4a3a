"""A user's algorithm is held to the protocol: one line for each thing it can get wrong, and nothing else changes."""

import re
import types

import numpy as np
import pytest

from launch.runtimes.runtime import WorkerError
from launch.settings.flags import FlagError
from launch.training.checked_process import build_checked_process
from tff_algos.protocol import COMMON_METRICS, FederatedProcess, KeptFileError, RoundOutput
from tff_algos.rounds.forwarding import ForwardingProcess
from tff_algos.settings.config_fields import ConfigError

LABEL = "--algo=my_module:ALGORITHM"
CLIENTS = tuple(types.SimpleNamespace(index=index, name=f"client_{index}") for index in range(3))
DATA = types.SimpleNamespace(clients=CLIENTS, everyone=CLIENTS)
TEACHER = types.SimpleNamespace(weight_shapes=((2,),), of_weights=lambda weights: TEACHER)
SPEC = types.SimpleNamespace(weight_shapes=((4, 3), (3,)), teacher=TEACHER, of_weights=lambda weights: SPEC)
WEIGHTS = (np.ones((4, 3), np.float32), np.zeros(3, np.float32))
METRICS = dict.fromkeys(COMMON_METRICS, 1.0)


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
    return build_checked_process(
        LABEL, builder or (lambda model_spec, clients, config, seed: kind()), SPEC, DATA, None, 3
    )


def use(process):
    """Everything that a run asks of a process, round by round."""
    state = process.initialize()
    for _ in range(2):
        state, _ = process.next(state)
        process.get_events(state)
    process.is_spent(state)
    process.get_notes(state)
    return list(process.personalize(state, CLIENTS))


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


STATE = Right().initialize()
MISTAKES = {
    # initialize
    "fails": (change(initialize=fail), r"initialize failed: ValueError: first \(test_checked_process.py, line \d+\)"),
    "leaves": (change(initialize=leave), "initialize failed: a call of sys.exit"),
    "state is an object": (
        change(initialize=lambda self: object()),
        "initialize: expected a state of NumPy arrays of numbe",
    ),
    "state has text": (change(initialize=lambda self: {**STATE, "name": "x"}), "initialize: .*a state holds str"),
    "state has None": (change(initialize=lambda self: {**STATE, "last": None}), "initialize: .*a state holds NoneType"),
    # next
    "next fails": (change(next=lambda self, state: [][0]), "next failed: IndexError: list index out of range"),
    "next takes nothing": (change(next=lambda self: None), "next failed: TypeError"),
    "a dict": (change(next=give({"state": 1})), "next: expected a RoundOutput of state and metrics, got dict of 1"),
    "a pair": (change(next=give((STATE, METRICS))), "next: expected a RoundOutput .*, got tuple of 2"),
    "nothing": (change(next=give(None)), "next: expected a RoundOutput of state and metrics, got None"),
    "metric missing": (
        change(next=give(RoundOutput(STATE, {"train_loss": 1.0}))),
        "next: expected the metrics .*, got none of virtual_time_s, num_clients",
    ),
    "no metrics": (change(next=give(RoundOutput(STATE, None))), "next: expected metrics in a dict, got None"),
    "metric taken": (change(next=give_metrics(test_accuracy=1.0)), "metrics under names of their own, got test_acc"),
    "metric is text": (change(next=give_metrics(own="high")), "next: expected a number for the metric 'own', got str"),
    "metric is a list": (change(next=give_metrics(own=[1.0])), "expected a number for the metric 'own', got list of 1"),
    "other metrics": (change(next=next_of_other_metrics), r"expected the same metrics every round \(.*round_0\), got"),
    "object in state": (
        change(next=give_state({**STATE, "round_num": object()})),
        "next: expected a state of NumPy arr",
    ),
    "state grows": (
        change(next=give_state({**STATE, "models": [*STATE["models"], np.ones(1)]})),
        r"next: expected a state of the structure that initialize gave, got another at state\['models', 2\]",
    ),
    "state loses": (
        change(next=give_state({"round_num": np.int32(1)})),
        r"next: .*got another at state\['models', 0\]",
    ),
    "state is flat": (change(next=give_state({**STATE, "models": np.ones(2)})), r"got another at state\['models', 0\]"),
    # get_models and client_model
    "no models": (change(get_models=give({})), "get_models: expected a dict of at least one name .*, got dict of 0"),
    "models in a list": (change(get_models=give([WEIGHTS])), "get_models: expected a dict of at least one name"),
    "models without": (change(get_models=give({"global": None})), "get_models, of 'global': expected a tuple of NumPy"),
    "tensors": (
        change(get_models=give({"global": ([1.0], 2)})),
        "of 'global': expected a tuple of NumPy arrays, got int, l",
    ),
    "too few": (change(get_models=give({"global": WEIGHTS[:1]})), "shapes of the model's weights, 2 arrays, got 1"),
    "stacked": (
        change(get_models=lambda self, state: {"global": tuple(state["models"])}),
        r"get_models, of 'global': expected the shapes of the model's weights, \(4, 3\), got \(1, 4, 3\)",
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
        "personalize failed: ZeroDivisionError",
    ),
    "personalize of other shapes": (
        change(personalize=lambda self, state, clients: ((client, WEIGHTS[::-1]) for client in clients)),
        "personalize: expected the shapes of the model's weights",
    ),
    "summary": (
        change(summarize=give({"object": object()})),
        "summarize: expected numbers, strings, lists and dicts al",
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
    "teacher": (change(get_teachers=give({"t": WEIGHTS})), "get_teachers, of 't': expected the shapes of the model's"),
    "event": (change(get_events=give([(1.0, 2)])), "get_events: expected a list of"),
    "note": (change(get_notes=give("a line")), "get_notes: expected a list of lines, got str"),
    "spent": (change(is_spent=fail), "is_spent failed: ValueError: first"),
    "attribute": (change(is_personal="yes"), "is_personal: expected a bool, got 'yes'"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_is_one_line_that_names_algorithm_and_method(mistake):
    kind, message = MISTAKES[mistake]
    with pytest.raises(FlagError, match=f"^{re.escape(LABEL)}: .*{message}") as caught:
        use(check(kind))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("builder", "message"),
    [
        (
            lambda model_spec, clients: Right(),
            r"its builder must be a function of \(model_spec, clients, config, seed\)",
        ),
        (lambda a, b, c, d, e: Right(), "its builder must be a function of .*: missing a required argument: 'e'"),
        (lambda *arguments: fail(), "its builder failed: ValueError: first"),
        (lambda *arguments: leave(), "its builder failed: a call of sys.exit"),
        (lambda *arguments: None, "its builder gave None, expected a FederatedProcess"),
        (lambda *arguments: Right, "its builder gave ABCMeta, expected a FederatedProcess"),
        (
            lambda *arguments: type("Half", (FederatedProcess,), {})(),
            "its builder failed: TypeError: Can't instantiate",
        ),
    ],
)
def test_a_builder_that_gives_no_process_is_one_line(builder, message):
    with pytest.raises(FlagError, match=message):
        check(None, builder)


def test_what_is_right_passes_through_as_it_is():
    kind = change(
        is_personal=True,
        summarize=give({"rounds": np.int32(2), "curve": np.ones(2), "note": "x"}),
        client_columns=give({"cluster": [0, 1, 0], "name": ["a", "b", None]}),
        get_teachers=give({"teacher": (np.ones(2, np.float32),)}),
        get_events=give([(1.0, 0, "start", 2)]),
        get_notes=give(["a line"]),
    )
    process = check(kind)
    assert process.is_personal and process.map_models is None and process.list_work is None
    pairs = use(process)
    assert [client for client, _ in pairs] == list(CLIENTS)
    assert pairs[0][1] is pairs[1][1]  # evaluation pools clients that share one object
    state = process.initialize()
    assert process.next(state).metrics == METRICS and int(process.next(state).state["round_num"]) == 1


def test_optional_methods_are_passed_on_and_their_failures_are_one_line():
    process = check(change(map_models=lambda self, state, function: function(state), list_work=fail))
    assert process.map_models(3, lambda state: state + 1) == 4
    with pytest.raises(FlagError, match="list_work failed: ValueError: first"):
        process.list_work({}, {})


def test_files_of_what_clients_keep_are_the_algorithms_own(tmp_path):
    told = []
    process = check(
        change(
            keep_in=lambda self, folder: told.append(folder),
            find_kept=lambda self, state: state["round_num"],
            forget=lambda self, needed: told.append(needed),
        )
    )
    process.keep_in(tmp_path)
    process.forget([process.find_kept({"round_num": 4})])
    assert told == [tmp_path, [4]]
    with pytest.raises(FlagError, match="find_kept failed: KeyError"):
        process.find_kept({})


@pytest.mark.parametrize(
    "error", [KeptFileError("lost"), WorkerError("gone"), ConfigError("steps", 1, "more"), BrokenPipeError()]
)
def test_errors_with_a_line_of_their_own_are_passed_on(error):
    def raise_error(self, state):
        raise error

    process = check(change(next=raise_error))
    with pytest.raises(type(error)) as caught:
        process.next(process.initialize())
    assert caught.value is error


def test_everything_public_is_held_to_the_protocol():
    from launch.training.checked_process import CheckedProcess

    public = {name for name in vars(FederatedProcess) if not name.startswith("_")}
    assert public <= {*vars(CheckedProcess), *vars(ForwardingProcess)}
