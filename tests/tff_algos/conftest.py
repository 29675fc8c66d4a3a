"""A model of one weight and clients with given numbers, worked out by hand; and what is alike is traced once."""

import dataclasses
import functools

import numpy as np
import pytest
from small_formats import change_format, make_format


@pytest.fixture(scope="session")
def tff_runtime(tff_runtime):
    """The runtime, in which the first computation made of some content serves all others: tracing takes longest."""
    from launch.runtimes import content_digest
    from launch.runtimes.round_context import RoundContext
    from tff_algos.late_computation import LateComputation
    from tff_algos.settings.aggregation import ServerStepConfig
    from tff_algos.settings.fine_tuning import FineTuningConfig
    from tff_algos.settings.local_training import LocalTrainingConfig

    call, known = LateComputation.__call__, {}

    @functools.wraps(call)
    def call_first(late, *values):
        if "first" not in vars(late):
            with pytest.MonkeyPatch.context() as patch:
                # Models and losses of tests count as sources, or no content with one could be told.
                patch.setattr(content_digest, "SOURCES", (*content_digest.SOURCES, "tests"))
                try:
                    content = content_digest.digest_content("", late.build, late.arguments)
                except content_digest.UnknownContent:
                    content = late
            late.first = known.setdefault(content, late)
        return call(late.first, *values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LateComputation, "__call__", call_first)
        # The graphs of a computation, too, are looked for once.
        patch.setattr(RoundContext, "_find_or_make", functools.cache(RoundContext._find_or_make))
        for kind in (LocalTrainingConfig, FineTuningConfig, ServerStepConfig):
            for field in dataclasses.fields(kind):
                # Rates are inputs of a graph.
                if field.name.startswith("learning_rate"):
                    patch.setattr(field, "metadata", {**field.metadata, "outside_graphs": True})
        yield tff_runtime


@pytest.fixture
def monkeypatch(request, monkeypatch):
    """A test that patches anything traces its own, since the patch may reach into a graph."""
    if "tff_runtime" in request.fixturenames:
        from tff_algos.late_computation import LateComputation

        monkeypatch.setattr(LateComputation, "__call__", LateComputation.__call__.__wrapped__)
    return monkeypatch


@pytest.fixture(scope="session")
def build_algorithm(tff_runtime, linear_spec):
    """A function (its name, clients, local training, fields of its config) -> the process of an algorithm.

    Of the linear model and with seed 2, if not said otherwise. The fields have the defaults of the config.
    """
    from launch.settings.algorithms import ALGORITHMS

    def build(name, data, training=None, spec=linear_spec, seed=2, **fields):
        row = ALGORITHMS[name]
        if training is not None:
            fields["training"] = training
        return row.load_builder()(spec, data, row.config_class(**fields), seed)

    return build


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


@pytest.fixture(scope="session")
def scalar_spec():
    """A spec of one weight w, 0 at first, with the logits (0, w x): an example's gradient is (sigmoid(w x) - y) x."""
    from models.model_spec import ModelSpec

    def build():
        import tensorflow as tf

        x = tf.keras.Input((1,))
        logit = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")(x)
        return tf.keras.Model(x, tf.keras.layers.Concatenate()([tf.zeros_like(logit), logit]))

    return ModelSpec("scalar", build, make_format((1,), "float32", 2))


@pytest.fixture
def make_scalar_federation(make_federation):
    """A function ([(x, y, number of such examples) of each client]) -> FederatedData for `scalar_spec`.

    All examples of a client are alike, so that their order is none.
    """

    def make(clients):
        # The files are those of other examples, and are written over.
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
