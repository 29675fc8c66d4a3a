"""The class weights of a run, from its flag and its data: what trains is weighted, what is tested is not.

Imports no TensorFlow.
"""

import dataclasses

from datasets.class_weights import compute_balanced_weights, digest_class_weights, load_class_weights
from datasets.example_format import LABEL_KINDS
from datasets.federated_data import FederatedData
from launch.runs.columns import CLASS_WEIGHTS_DIGEST
from launch.settings.data_flags import BALANCED, NONE
from launch.settings.run_config import RunConfig
from tff_algos.settings.config_fields import ConfigError


def weigh_classes(config: RunConfig, data: FederatedData) -> FederatedData:
    """The federation with the weight of each class, if --class_weights asks for them.

    Raises:
      ConfigError: labels are no classes, or too many clients to be counted.
      DatasetError: the file of weights cannot be used.
    """
    if config.class_weights == NONE:
        return data
    kind, names = LABEL_KINDS[data.format.labels.task], data.format.class_names
    if not (kind.is_by_class and names):
        expected = f"{NONE}, since the labels of the task {kind.title} are no classes; give --loss=module:function"
        raise ConfigError("class_weights", config.class_weights, expected)
    if config.class_weights != BALANCED:
        weights = load_class_weights(config.class_weights, names)
        digests = {**data.source_digests, CLASS_WEIGHTS_DIGEST: digest_class_weights(weights)}
        return dataclasses.replace(data, class_weights=weights, source_digests=digests)
    if not data.label_counts.size:
        expected = f"a file of weights: the labels of {len(data.clients):,} clients are too many to be counted"
        raise ConfigError("class_weights", BALANCED, expected)
    return dataclasses.replace(data, class_weights=compute_balanced_weights(data.label_counts.sum(axis=0)))
