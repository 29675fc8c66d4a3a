"""FedProto: a pull by hand, clients of two architectures, and who sends and keeps what."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from small_formats import make_format

from models.model_names import ModelError
from models.model_spec import ModelSpec
from models.task import build_task
from tff_algos.fed_proto.config import FedProtoConfig
from tff_algos.fed_proto.process import assign_models, find_heads
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.local_training import LocalTrainingConfig

SEVERAL_BATCHES = LocalTrainingConfig(epochs=2, batch_size=4, learning_rate=0.01)
ONE_STEP = LocalTrainingConfig(epochs=1, batch_size=100, optimizer="sgd", learning_rate=0.1)
WIDTH = 6


def build_model(hidden):
    dense = tf.keras.layers.Dense
    layers = [dense(units, activation="relu", bias_initializer="ones") for units in hidden]
    return tf.keras.Sequential([tf.keras.Input((4,)), *layers, dense(3)])


def build_small():
    return build_model((WIDTH,))


def build_large():
    return build_model((8, WIDTH))


def build_wide():
    return build_model((WIDTH + 1,))


SMALL, LARGE, WIDE = (
    ModelSpec(name, build, make_format((4,)))
    for name, build in (("small", build_small), ("large", build_large), ("wide", build_wide))
)
BOTH = dataclasses.replace(SMALL, peers=(LARGE,))  # clients 0 and 2 have the small model, client 1 the large one


@pytest.fixture(scope="module")
def data(build_federation, tmp_path_factory):
    return build_federation(tmp_path_factory.mktemp("fed_proto"), [9, 4, 14])


@pytest.fixture(scope="module")
def process(build_algorithm, data):
    return build_algorithm("fedproto", data, ONE_STEP, BOTH, prototype_weight=3.0)


def get_own(process, state):
    """Each client's model with its own head."""
    return process.store.read(state.kept, range(3))


def embed(spec, weights, x):
    model = spec.build()
    model.set_weights(weights)
    return tf.keras.Model(model.inputs, model.layers[-1].input)(x).numpy()


def test_two_architectures_by_hand(process, data, run, get_bytes):
    """A full batch down the gradient of CE + 3 * mean distance; prototypes by each client's own trained model."""
    (first, second, third), rows = run(process, 2)
    own = [get_own(process, state) for state in (first, second, third)]
    assert [len(weights) for weights in own[0]] == [4, 6, 4]
    assert get_bytes(own[0][0]) == get_bytes(own[0][2])
    embeddings, labels = [], []
    for index, spec in enumerate((SMALL, LARGE, SMALL)):
        x, y = data.read_split(data.clients[index], "train")
        embeddings.append(embed(spec, own[2][index], x))
        labels.append(y)
        for number, state in enumerate((first, second)):
            model = spec.build()
            model.set_weights(own[number][index])
            with tf.GradientTape() as tape:
                embedding = tf.keras.Model(model.inputs, model.layers[-1].input)(x)
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x))
                pulls = tf.reduce_mean(tf.square(embedding - state.own.means[y]), axis=1)
                loss = tf.reduce_mean(losses + 3 * tf.where(state.own.counts[y] > 0, pulls, 0.0))
            gradients = tape.gradient(loss, model.trainable_variables)
            stepped = zip(own[number][index], gradients, own[number + 1][index], strict=True)
            for before, gradient, after in stepped:
                np.testing.assert_allclose(after, before - 0.1 * gradient, atol=2e-6)
    embeddings, labels = np.concatenate(embeddings), np.concatenate(labels)
    for label in range(3):
        np.testing.assert_allclose(third.own.means[label], embeddings[labels == label].mean(axis=0), rtol=1e-5)
    np.testing.assert_array_equal(third.own.counts, np.bincount(labels, minlength=3))
    assert [row["num_prototypes"] for row in rows] == [3, 3] and rows[0]["prototype_spread"] > 0


def test_what_predicts_is_the_nearest_prototype_or_the_clients_own_head(process, data, run, get_bytes):
    (first, second), _ = run(process, 1)
    for nearest, own in zip(process.get_models(first).values(), get_own(process, first), strict=True):
        assert get_bytes(nearest) == get_bytes(own), "before the first round there is no prototype"
    with_heads = dataclasses.replace(process, config=dataclasses.replace(process.config, prediction="head"))
    assert list(with_heads.get_models(second)) == [client.name for client in data.clients]
    x = data.test_x
    for index, spec in enumerate((SMALL, LARGE, SMALL)):
        weights, own = process.get_models(second)[f"client_{index}"], get_own(process, second)[index]
        assert get_bytes(with_heads.get_models(second)[f"client_{index}"]) == get_bytes(own)
        assert get_bytes(weights[:-2]) == get_bytes(own[:-2])
        model = spec.build()
        model.set_weights(weights)
        distances = np.square(embed(spec, own, x)[:, np.newaxis] - second.own.means).sum(axis=2)
        np.testing.assert_array_equal(model(x).numpy().argmax(axis=1), distances.argmin(axis=1))
    pairs = list(process.personalize(second, data.clients[1:]))
    assert [client.index for client, _ in pairs] == [1, 2] and len(pairs[0][1]) == 6
    assert process.client_columns(second) == {"architecture": ["small", "large", "small"]}


def test_prototypes_alone_travel(process, data, run):
    (first, second, _), rows = run(process, 2)
    num_own = (data.label_counts > 0).sum()
    assert [row["bytes_up"] for row in rows] == [3 * 3 * 4 + num_own * WIDTH * 4] * 2
    assert [row["bytes_down"] for row in rows] == [3 * 3 * 4, 3 * (3 * 4 + 3 * WIDTH * 4)]
    # Client 0, the slowest: 12 bytes at 1000 a second, 9 examples at 100, 12 + 3 * 24 bytes at 500.
    assert rows[0]["virtual_time_s"] == pytest.approx(0.012 + 0.09 + (12 + 24 * (data.label_counts[0] > 0).sum()) / 500)
    unread = dataclasses.replace(data, label_counts=np.zeros((3, 0), np.int64))
    (work,) = dataclasses.replace(process, clients=unread).list_phases(first, np.arange(3))
    assert work.bytes_up.tolist() == process.list_phases(second, np.arange(3))[0].bytes_up.tolist()


def test_who_is_not_asked_keeps_its_model_and_a_class_that_nobody_has_its_prototype(
    process, data, fix_cohort, run, get_bytes
):
    (_, first), _ = run(process, 1)
    asked = dataclasses.replace(process, config=dataclasses.replace(process.config, cohort_size=1))
    fix_cohort([1])
    second, row = asked.next(first)
    old, new = get_own(process, first), get_own(process, second)
    assert [get_bytes(a) == get_bytes(b) for a, b in zip(old, new, strict=True)] == [True, False, True]
    is_new = data.label_counts[1] > 0
    assert row["num_clients"] == 1 and not is_new.all()
    np.testing.assert_array_equal((second.own.means != first.own.means).any(axis=1), is_new)
    np.testing.assert_array_equal(second.own.counts, np.where(is_new, data.label_counts[1], first.own.counts))
    third, _ = asked.next(asked.initialize())
    assert [state.clients.tolist() for state in third.kept] == [[], [1]]
    assert third.own.counts.tolist() == data.label_counts[1].tolist()


def test_a_client_with_broken_data_sends_nothing(process, make_federation, break_client, run):
    data = make_federation([9, 4, 14])
    process = dataclasses.replace(process, clients=data)
    (_, first), _ = run(process, 1)
    break_client(data, 1)
    second, _ = process.next(first)
    np.testing.assert_array_equal(second.own.counts, data.label_counts[[0, 2]].sum(axis=0))


def test_models_go_round_or_to_devices_from_slow_to_quick():
    speeds = np.array([5.0, 1.0, 4.0, 2.0, 3.0, 9.0])  # that of a new client last
    assert assign_models(5, 2, "turns", speeds).tolist() == [0, 1, 0, 1, 0]
    assert assign_models(5, 2, "speed", speeds).tolist() == [1, 0, 1, 0, 0]
    assert assign_models(5, 1, "speed", speeds).tolist() == [0] * 5


def test_architectures_that_do_not_go_together_are_refused_in_one_line():
    assert [head.width for head in find_heads((SMALL, LARGE), "")] == [WIDTH, WIDTH]
    with pytest.raises(
        ConfigError, match=r"models=small,wide: expected models of one width .*, found 6 of small, 7 of w"
    ):
        find_heads((SMALL, WIDE), "small,wide")
    with pytest.raises(ConfigError, match="models=small,small: expected models whose weights differ in shape"):
        find_heads((SMALL, SMALL), "small,small")
    regression = dataclasses.replace(SMALL, task=build_task("regression", 3, (3,)))
    with pytest.raises(ConfigError, match=r"^--algo=fedproto: expected classes as labels, .*; the task is regression$"):
        find_heads((regression,), "")
    ending = dataclasses.replace(SMALL, build=lambda: tf.keras.Sequential([build_small(), tf.keras.layers.ReLU()]))
    with pytest.raises(ModelError, match=r"^small: expected a last layer"):
        find_heads((ending,), "")
    with pytest.raises(ConfigError, match="models=2: expected at most the 1 clients"):
        FedProtoConfig(models="a,b").check_clients(1)
