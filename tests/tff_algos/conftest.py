"""A model of one weight and clients with given numbers, so that a round can be worked out by hand."""

import dataclasses

import numpy as np
import pytest


@pytest.fixture(scope="session")
def scalar_spec():
    """A spec of one weight w, 0 at first, with the logits (0, w x): an example's gradient is (sigmoid(w x) - y) x."""
    import tensorflow as tf

    from models.model_spec import ModelSpec

    def build():
        x = tf.keras.Input((1,))
        logit = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")(x)
        return tf.keras.Model(x, tf.keras.layers.Concatenate()([tf.zeros_like(logit), logit]))

    return ModelSpec("scalar", build, (1,), "float32", 2)


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
        return dataclasses.replace(data, input_shape=(1,), class_names=("a", "b"))

    return make
