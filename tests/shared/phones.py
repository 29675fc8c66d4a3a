"""A file for on-device training as an app uses it."""

import numpy as np


class Phone:
    """The functions of such a file, or of a module, by their names."""

    def __init__(self, functions):
        self.run = functions

    def train(self, x, y, rate, steps=1):
        """The loss of each of some steps with one batch."""
        batch = {"x": x, "y": y, "learning_rate": np.float32(rate)}
        return [float(self.run["train"](**batch)["loss"]) for _ in range(steps)]

    def get_weights(self):
        """{"weight_<i>": array} of what is trained."""
        return {name: np.asarray(value) for name, value in self.run["get_weights"](unused=np.int32(0)).items()}

    def train_round(self, weights, x, y, orders, batch_size, rate):
        """(weights, losses) after a round from `weights`, with these orders of the examples, one an epoch.

        Batches are filled up with rows whose label is -1, which do not count.
        """
        self.run["set_weights"](**weights)
        losses = []
        for order in orders:
            for start in range(0, len(order), batch_size):
                chosen = order[start : start + batch_size]
                rest = batch_size - len(chosen)
                filled = np.concatenate([x[chosen], np.zeros((rest, *x.shape[1:]), np.float32)])
                losses += self.train(filled, np.concatenate([y[chosen], np.full(rest, -1, np.int32)]), rate)
        return self.get_weights(), losses


def open_phone(content):
    """The phone with this file."""
    import tensorflow as tf  # takes seconds

    interpreter = tf.lite.Interpreter(model_content=content)
    return Phone({name: interpreter.get_signature_runner(name) for name in interpreter.get_signature_list()})
