"""TFF as its tutorials use it: `tff.learning`'s weighted FedAvg over `tf.data` client datasets, default context.

The datasets are those of TFF's image classification tutorial: float32 pixels in [0, 1], as TFF's own EMNIST has them,
then `repeat`, `shuffle`, `batch`, `map` and `prefetch`. They are made before the timing starts.
"""

import collections
import contextlib
from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from datasets.federated_data import ClientFiles, FederatedData
from launch.benchmarks.workloads import Workload, build_data
from launch.settings.run_config import RunConfig
from launch.training.federation import build_spec

PREFETCHED_BATCHES = 10


@contextlib.contextmanager
def open_rounds(workload: Workload, folder: str) -> Iterator[Callable[[], None]]:
    """Yields a function that runs the next round in TFF's default context.

    TFF starts its worker on first use and leaves it running: the caller kills this process's group.
    """
    config, data = workload.build_config(folder), build_data(workload, folder)
    tf.keras.utils.set_random_seed(config.seed)
    datasets = [build_client_dataset(config, data, client) for client in data.clients]

    def model_fn():
        return tff.learning.models.from_keras_model(
            # TFF calls this in graphs of its own: a model that was built outside would belong to another graph.
            build_spec(config, data.format).build(),
            loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            input_spec=datasets[0].element_spec,
        )

    process = tff.learning.algorithms.build_weighted_fed_avg(
        model_fn, client_optimizer_fn=tff.learning.optimizers.build_adam(config.algorithm.training.learning_rate)
    )
    state = process.initialize()

    def run_round():
        nonlocal state
        state = process.next(state, datasets).state

    yield run_round


def build_client_dataset(config: RunConfig, data: FederatedData, client: ClientFiles) -> tf.data.Dataset:
    """A client's epochs as batches {"x": (batch, *input_shape), float32 or of tokens int32, "y": int32}."""
    x, y = data.read_split(client, "train")
    scale, offset = np.float32(data.format.preprocessing.scale), np.float32(data.format.preprocessing.offset)
    pixels = x if data.format.takes_tokens else x.astype(np.float32) * scale + offset
    examples = tf.data.Dataset.from_tensor_slices(collections.OrderedDict(pixels=pixels, label=y))
    batches = (
        # Repeated before it is batched, as in TFF's tutorial: an epoch's last batch is filled by the next epoch.
        examples.repeat(config.algorithm.training.epochs).shuffle(len(y), seed=config.seed).batch(config.batch_size)
    )
    named = batches.map(lambda batch: collections.OrderedDict(x=batch["pixels"], y=batch["label"]))
    return named.prefetch(PREFETCHED_BATCHES)
