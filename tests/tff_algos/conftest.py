"""A model of one weight and clients with given numbers, worked out by hand; and what is alike is traced once."""

import dataclasses
import functools
import inspect
import types

import numpy as np
import pytest
from small_formats import change_format, make_format


@pytest.fixture(scope="session")
def known_traces():
    """What `trace_once` has traced so far."""
    return {}


@pytest.fixture
def trace_once(request, known_traces):
    """Tests share the computations that the same code makes of the same settings; tracing takes longer than rounds.

    A test that patches anything traces its own, since the patch may reach into a graph.
    """
    if "tff_runtime" not in request.fixturenames or "monkeypatch" in request.fixturenames:
        yield
        return
    import tensorflow_federated as tff

    from tff_algos.amfl_p import process

    with pytest.MonkeyPatch.context() as patch:
        for place, name in ((tff.tensorflow, "computation"), (tff, "federated_computation")):
            patch.setattr(place, name, remember(getattr(place, name), known_traces))
        build_predict = process.build_predict  # encloses a model of its own, which is the same for the same spec
        patch.setattr(process, "build_predict", lambda spec: look_up(known_traces, build_predict, spec))
        yield


@pytest.fixture
def work_once(tff_runtime):
    """Clients of a phase work in the first round alone and send the same in each, so that noise can be drawn often."""
    from tff_algos.rounds.training_phase import TrainingPhase

    sent, call = {}, TrainingPhase._call

    def recall(phase, *arguments):
        if phase not in sent:
            sent[phase] = call(phase, *arguments)
        return sent[phase]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrainingPhase, "_call", recall)
        yield


@pytest.fixture
def fix_cohort():
    """A function (clients) that makes these the cohort of every later round; traces stay shared."""
    with pytest.MonkeyPatch.context() as patch:
        yield lambda clients: patch.setattr(
            "tff_algos.client.cohort.sample_cohort", lambda *_, **__: np.array(clients, int)
        )


HOSTS_PARTS = ("seed", "private_sum", "release", "attack")


class Same:
    """The key of what has no value: equal to itself alone, and as long-lived as the key."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self):
        return id(self.value)


def build_key(value):
    """Equal for what makes the same graph: functions by their code and what they enclose, settings by their values."""
    if isinstance(value, types.MethodType):
        return types.MethodType, build_key(value.__func__), build_key(value.__self__)
    if isinstance(value, types.FunctionType):
        enclosed = [cell.cell_contents for cell in value.__closure__ or ()]
        return value.__code__, *map(build_key, (*enclosed, value.__defaults__, value.__kwdefaults__))
    if isinstance(value, functools.partial):
        return functools.partial, *map(build_key, (value.func, value.args, value.keywords))
    if dataclasses.is_dataclass(value) and type(value).__dataclass_params__.frozen:
        names = [field.name for field in dataclasses.fields(value)]
        # Rates and seeds are inputs of a graph, so that those of the settings are the host's; noise is as well.
        kept = [name for name in names if name not in HOSTS_PARTS and not name.startswith("learning_rate")]
        return type(value), *(build_key(getattr(value, name)) for name in kept)
    if isinstance(value, (tuple, list)):
        return type(value), *map(build_key, value)
    if isinstance(value, dict):
        return dict, *map(build_key, value.items())
    if isinstance(value, (np.ndarray, np.generic)):
        return value.dtype.str, value.shape, value.tobytes()
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return type(value), value
    if getattr(value, "__dict__", None) == {}:
        return type(value)  # of a class without settings
    try:
        hash(value)
    except TypeError:
        return Same(value)
    return value  # types of TFF are equal by value, and all else by identity


def look_up(known, make, *arguments):
    key = make, *map(build_key, arguments)
    if key not in known:
        known[key] = make(*arguments)
    return known[key]


def remember(make, known):
    """A decorator with or without types, as `make` is, that makes the same of the same function and types."""

    def decorate(*arguments):
        if arguments and inspect.isfunction(arguments[0]):
            return look_up(known, make, *arguments)
        return lambda function: look_up(known, make, function, *arguments)

    return decorate


@pytest.fixture(scope="session")
def scalar_spec():
    """A spec of one weight w, 0 at first, with the logits (0, w x): an example's gradient is (sigmoid(w x) - y) x."""
    import tensorflow as tf

    from models.model_spec import ModelSpec

    def build():
        x = tf.keras.Input((1,))
        logit = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")(x)
        return tf.keras.Model(x, tf.keras.layers.Concatenate()([tf.zeros_like(logit), logit]))

    return ModelSpec("scalar", build, make_format((1,), "float32", 2))


@pytest.fixture(scope="module")
def share_graphs():
    """A function (process, *key) -> the process, whose clients work by the graphs of the first one with this key.

    Tracing a client's work takes a second. Its graph depends on the model's spec and on the settings of what clients
    do and send; so processes of one key may differ in data, seed, cohort, learning rate and the server's step.
    """
    graphs = {}

    def share(process, *key):
        vars(process.phase)["_computations"] = graphs.setdefault(key, {})
        return process

    return share


@pytest.fixture
def make_scalar_federation(make_federation):
    """A function ([(x, y, number of such examples) of each client]) -> FederatedData for `scalar_spec`.

    All examples of a client are alike, so that their order is none.
    """

    def make(clients):
        data = make_federation([number for _, _, number in clients])
        for client, (x, y, number) in zip(data.clients, clients, strict=True):
            np.full((number, 1), x, np.float32).tofile(f"{client.path}.train.x")
            np.full(number, y, np.int32).tofile(f"{client.path}.train.y")
        return change_format(data, input_shape=(1,), class_names=("a", "b"))

    return make


@pytest.fixture(scope="session")
def run():
    """A function (process, rounds) -> the states, the first one before all rounds, and the metrics of each round."""

    def run(process, rounds=3):
        states, rows = [process.initialize()], []
        for _ in range(rounds):
            state, metrics = process.next(states[-1])
            states.append(state)
            rows.append(metrics)
        return states, rows

    return run


@pytest.fixture(scope="session")
def get_personal():
    """A function (process, state) -> the weights of each client's own model."""
    return lambda process, state: [weights for _, weights in process.personalize(state, process.clients.clients)]


@pytest.fixture(scope="session")
def get_bytes():
    """A function (arrays) -> the bytes of each."""
    return lambda weights: [np.asarray(array).tobytes() for array in weights]
