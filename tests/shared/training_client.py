"""A client in memory that trains with TensorFlow's own TFLite, in the process of the server."""

import numpy as np
from memory_transport import ScriptedClient
from phones import open_phone


class TrainingClient(ScriptedClient):
    """A client that does what it is asked at once, and answers a second of the transport's time later.

    `forge` makes what it sends of what it has trained, {"weight_<i>": delta}.
    """

    def __init__(self, transport, key, forge=lambda deltas: deltas):
        super().__init__(transport, key * 32)
        self.forge = forge
        self.phones, self.examples, self.tasks = {}, None, []

    def _hear(self, content):
        super()._hear(content)
        message = self.heard[-1]
        match message.type:
            case "welcome":
                self.say({"type": "fetch", "what": "part"})
                self.say({"type": "fetch", "what": "file"})
            case "part":
                self.examples = message.arrays
            case "file":
                self.phones[message.header["sha256"]] = open_phone(message.arrays["content"].tobytes())
            case "train" | "evaluate" | "fine_tune":
                self.tasks.append(message)
        if self.examples is not None:
            able = [task for task in self.tasks if task.header["file"] in self.phones]
            self.tasks = [task for task in self.tasks if task.header["file"] not in self.phones]
            for task in able:
                self.do(task)

    def do(self, task):
        phone = self.phones[task.header["file"]]
        start = {name: array for name, array in task.arrays.items() if name != "order"}
        if task.type == "train":
            loss_sum = self.train(phone, task, start)
            trained = phone.get_weights()
            deltas = {name: trained[name] - start[name] for name in start}
            self.answer(task, arrays=self.forge(deltas), after_s=1.0, loss_sum=loss_sum, seconds=0.5)
            return
        named = {name: task.header[name] for name in ("run", "client", "file", "task")}
        phone.run["set_weights"](**start)
        before = self.measure(phone)
        if task.type == "evaluate":
            self.say({"type": "measured", **named, **before}, after_s=1.0)
            return
        self.train(phone, task, start)
        self.say({"type": "tuned", **named, "before": before, "after": self.measure(phone)}, after_s=1.0)

    def train(self, phone, task, start):
        """Takes the task's steps; returns the sum of the losses."""
        x, y, size = self.examples["train_x"], self.examples["train_y"], task.header["batch_size"]
        order = task.arrays["order"]
        per_epoch, loss_sum = -(-len(y) // size), 0.0
        phone.run["set_weights"](**start)
        for step in range(task.header["steps"]):
            first = step % per_epoch * size
            rows = order[step // per_epoch][np.arange(first, first + size) % len(y)]
            labels = np.where(np.arange(first, first + size) < len(y), y[rows], -1).astype(np.int32)
            loss_sum += phone.train(x[rows], labels, task.header["learning_rate"])[0] * min(size, len(y) - first)
        return loss_sum

    def measure(self, phone):
        """Sums over the test examples, of whose losses nothing is looked at here."""
        x, y = self.examples["test_x"], self.examples["test_y"]
        answers = [phone.run["infer"](x=each[np.newaxis])["logits"][0].argmax() for each in x]
        return {"num": len(y), "correct": int(np.sum(answers == y)), "loss_sum": 1.5 * len(y)}
