"""What a model answers with given weights: in Keras, and as a file in TFLite's interpreter."""

import numpy as np
import tensorflow as tf


def rebuild(spec, weights):
    """A Keras model of a specification with these weights."""
    model = spec.build()
    model.set_weights(weights)
    return model


def compute_keras(spec, weights, x):
    """The outputs of stored examples, (n, *outputs)."""
    return rebuild(spec, weights)(spec.preprocess(x), training=False).numpy()


def answer_twice(content, x):
    """As an app asks a file: one interpreter, example after example, in two orders; (2, n, *outputs)."""
    run = tf.lite.Interpreter(model_content=content).get_signature_runner()
    there = [run(x=example[None])["logits"][0] for example in x]
    back = [run(x=example[None])["logits"][0] for example in x[::-1]]
    return np.stack([there, back[::-1]])
