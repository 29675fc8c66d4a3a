"""The limit of the machine: the same federated round in plain TensorFlow, one single-threaded process a core.

Only the arithmetic is federated. Each process holds its clients' arrays in memory, trains the clients one after another
in one compiled loop (dense gather, an optimizer started afresh, no input pipeline), and sends back the sum of their
weights. A round is timed from sending the weights to having the average.
"""

import contextlib
import multiprocessing
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from datasets.federated_data import FederatedData
from launch.benchmarks.workloads import Workload, build_data
from launch.runtimes.processor import count_cores
from launch.settings.run_config import RunConfig
from launch.training.federation import build_spec
from tff_algos.settings.local_training import LocalTrainingConfig

# Those of Keras's Adam, by which the other peers train.
FIRST_DECAY, SECOND_DECAY, EPSILON = 0.9, 0.999, 1e-7


@contextlib.contextmanager
def open_rounds(workload: Workload, folder: str, num_processes: int = 0) -> Iterator[Callable[[], list[np.ndarray]]]:
    """Starts the processes (0: one a core); yields a function that runs the next round and returns the weights."""
    num_clients = workload.build_config(folder).num_clients
    num_processes = min(num_processes or count_cores(), num_clients)
    context = multiprocessing.get_context("spawn")
    connections, processes = [], []
    try:
        for share in np.array_split(np.arange(num_clients), num_processes):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, workload, folder, share.tolist()), daemon=True)
            process.start()
            theirs.close()
            connections.append(ours)
            processes.append(process)
        weights, *_ = [connection.recv() for connection in connections]

        def run_round():
            nonlocal weights
            # All get their order before the first answer is awaited, so that they work at once.
            for connection in connections:
                connection.send(weights)
            sums = [connection.recv() for connection in connections]
            weights = [np.sum(parts, axis=0) / num_clients for parts in zip(*sums, strict=True)]
            return weights

        yield run_round
    finally:
        for process in processes:
            process.kill()
            process.join()


def build_client_training(
    config: RunConfig, data: FederatedData
) -> tuple[list[np.ndarray], Callable[..., list[tf.Tensor]]]:
    """The initial weights, and the compiled training of one client: (weights, x, y, seed) -> trained weights.

    The arguments are: one float32 tensor a weight, uint8 (examples, *input_shape), int32 (examples,), int32 (2,).
    """
    tf.keras.utils.set_random_seed(config.seed)
    spec = build_spec(config, data.format)
    model = spec.build()
    variables = model.trainable_variables
    take_step = build_step(config.algorithm.training, variables)
    batch_size = config.batch_size

    @tf.function
    def train(weights, x, y, seed):
        for variable, value in zip(model.weights, weights, strict=True):
            variable.assign(value)
        first = [tf.zeros_like(v) for v in variables]
        second = [tf.zeros_like(v) for v in variables]
        count = tf.constant(0.0)
        num_examples = tf.shape(y)[0]
        for epoch in tf.range(config.algorithm.training.epochs):
            order = tf.random.experimental.stateless_shuffle(tf.range(num_examples), seed + tf.stack([0, epoch]))
            for step in tf.range((num_examples + batch_size - 1) // batch_size):
                batch = order[step * batch_size : (step + 1) * batch_size]
                step_seed = seed + tf.stack([1 + step, epoch])
                with tf.GradientTape() as tape:
                    logits = model(spec.preprocess_to_train(tf.gather(x, batch), step_seed), training=True)
                    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.gather(y, batch), logits)
                    loss = tf.reduce_mean(losses)
                count += 1.0
                first, second = take_step(tape.gradient(loss, variables), first, second, count)
        return [variable.read_value() for variable in model.weights]

    return model.get_weights(), train


def build_step(training: LocalTrainingConfig, variables: Sequence[tf.Variable]) -> Callable:
    """A step of the optimizer on the variables: (gradients, first, second, count) -> (first, second).

    `first` and `second` are the optimizer's moments, from zeros on; `count` is the step, from 1 on.
    """

    def adam(gradients, first, second, count):
        first = [a + (g - a) * (1 - FIRST_DECAY) for a, g in zip(first, gradients, strict=True)]
        second = [p + (g * g - p) * (1 - SECOND_DECAY) for p, g in zip(second, gradients, strict=True)]
        rate = training.learning_rate * tf.sqrt(1 - SECOND_DECAY**count) / (1 - FIRST_DECAY**count)
        for variable, a, p in zip(variables, first, second, strict=True):
            variable.assign_sub(rate * a / (tf.sqrt(p) + EPSILON))
        return first, second

    def sgd(gradients, first, second, count):
        del count
        decay = training.weight_decay
        gradients = [g + decay * v if v.shape.rank >= 2 else g for g, v in zip(gradients, variables, strict=True)]
        first = [training.momentum * a + g for a, g in zip(first, gradients, strict=True)]
        for variable, a in zip(variables, first, strict=True):
            variable.assign_sub(training.learning_rate * a)
        return first, second

    return {"adam": adam, "sgd": sgd}[training.optimizer]


def _serve(connection, workload: Workload, folder: str, indices: Sequence[int]) -> None:
    """One process: holds the arrays of the clients `indices`; weights in, sum of the clients' trained weights out."""
    # Threads are set before the first operation: later TensorFlow refuses it.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    data = build_data(workload, folder)
    arrays = {i: [tf.constant(array) for array in data.read_split(data.clients[i], "train")] for i in indices}
    initial_weights, train = build_client_training(workload.build_config(folder), data)
    connection.send(initial_weights)
    round_num = 0
    with contextlib.suppress(EOFError):
        while True:
            weights = [tf.constant(w, tf.float32) for w in connection.recv()]
            round_num += 1
            total = [tf.zeros_like(w) for w in weights]
            for i in indices:
                trained = train(weights, *arrays[i], tf.constant([round_num, i]))
                total = [t + w for t, w in zip(total, trained, strict=True)]
            connection.send([t.numpy() for t in total])
