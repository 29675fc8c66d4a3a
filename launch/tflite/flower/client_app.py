"""The ClientApp: trains the training file by LiteRT on the examples of this node, which stay here."""

import base64
import json
import pathlib
import threading

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from federated_app.join import Examples, Message, Trainer, load_examples
from flwr.client import NumPyClient
from flwr.client.mod import secaggplus_mod
from flwr.clientapp import ClientApp

MODEL = json.loads(pathlib.Path(__file__).with_name("model.json").read_text(encoding="utf-8"))


def read_examples(path, seed):
    """Those of an .npz with x and y, or of a CSV with the columns of `model.json`; a fifth is held out for tests."""
    description = MODEL["arrays"] if path.endswith(".npz") else MODEL.get("table", MODEL["arrays"])
    return Examples(*load_examples(path, description, f"{seed}"))


def draw_order(num_examples, steps, seed, round_num):
    """The indices of the examples in the order in which these steps take them, uint32 (epochs, num_examples)."""
    per_epoch = -(-num_examples // MODEL["batch_size"])
    random = np.random.default_rng([seed, round_num])
    return np.array([random.permutation(num_examples) for _ in range(-(-steps // per_epoch))], np.uint32)


class Client(NumPyClient):
    """A node: its examples, and the training file."""

    def __init__(self, context):
        self._settings = context.run_config
        self._trainer = Trainer(base64.b64decode(MODEL["training_file"]), Interpreter)
        examples = read_examples(str(context.node_config["data"]), self._settings["seed"])
        self._examples = examples.fit(self._trainer.input_shape, MODEL["num_classes"])

    def fit(self, parameters, config):
        """Trains from the weights of the round, and gives back what became of them and how many examples made it."""
        x, settings = self._examples.train_x, self._settings
        per_epoch = -(-len(x) // MODEL["batch_size"])
        steps = settings["local-steps"] or settings["local-epochs"] * per_epoch
        weights = dict(zip(MODEL["weights"], parameters, strict=True))
        header = {"type": "train", "steps": steps, "batch_size": MODEL["batch_size"]}
        header["learning_rate"] = settings["learning-rate"]
        order = draw_order(len(x), steps, settings["seed"], config["round"])
        task = Message(header, {**weights, "order": order})
        self._trainer.check(task, len(x))
        answer = self._trainer.train(task, self._examples, threading.Event())
        trained = [weights[name] + answer.arrays[name] for name in MODEL["weights"]]
        return trained, len(x), {"loss": answer.header["loss_sum"] / max(answer.header["num_trained"], 1)}

    def evaluate(self, parameters, config):
        """Tests the weights on the examples that were held out here."""
        weights, test = dict(zip(MODEL["weights"], parameters, strict=True)), self._examples[2:]
        sums = self._trainer.measure(weights, *test, threading.Event())
        if not sums["num"]:
            raise ValueError("no example of this node is held out for tests: it has fewer than 5")
        return sums["loss_sum"] / sums["num"], sums["num"], {"accuracy": sums["correct"] / sums["num"]}


def add_in_secret(message, context, call_next):
    """Flower's SecAgg+ where the run asks for it: the server gets sums of weights, and no node's own."""
    return secaggplus_mod(message, context, call_next) if context.run_config["secure"] else call_next(message, context)


app = ClientApp(lambda context: Client(context).to_client(), mods=[add_in_secret])
