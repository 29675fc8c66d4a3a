"""Makes the federation and the model that a config asks for: where data sets and models meet. No TensorFlow at its top.

The data are opened, divided among clients and weighted by class; attackers among the clients may get other labels.
"""

import dataclasses
import os
from typing import TYPE_CHECKING

import numpy as np

from datasets.arrays import ArrayDataset
from datasets.catalog import DATASETS
from datasets.class_weights import compute_balanced_weights, digest_class_weights, load_class_weights
from datasets.client_files import flip_labels
from datasets.client_source import TRAIN, ClientSource
from datasets.data_notes import note_content, note_labels, note_numbers
from datasets.device_table import load_device_profiles
from datasets.example_format import LABEL_KINDS, ExampleFormat
from datasets.federate import build_federated_data, default_client_dir
from datasets.federated_data import FederatedData
from datasets.layouts import AUTO
from datasets.names import note_alike
from datasets.new_clients import draw_new_clients, leave_out_new_clients
from datasets.options import FILES, NPZ, is_users_own
from datasets.standardized_clients import standardize_clients
from files.digests import compute_sum
from launch.console.progress import say_while_waiting
from launch.runs.columns import ARRAYS_DIGEST, CLASS_WEIGHTS_DIGEST, SOURCE_DIGEST
from launch.settings.data_flags import BALANCED, CLIENT, NONE, choose_options
from launch.settings.run_config import RunConfig
from launch.settings.runtimes import ON
from launch.training.opened_data import is_random, open_data
from tff_algos.settings.aggregation import LABEL_FLIP, AggregationConfig, AttackConfig
from tff_algos.settings.config_fields import ConfigError, is_own
from tff_algos.simulation.attackers import draw_attackers

if TYPE_CHECKING:
    from models.model_spec import ModelSpec
    from models.task import Task


MOST_NOTED_CLIENTS = 20
CONVOLVED = ("har", NPZ)  # whose features keep the convolutions over them that "auto" was in earlier versions


def load_federated_data(config: RunConfig) -> FederatedData:
    """The clients of a run, their files written if they are not there yet. Imports no TensorFlow.

    Raises:
      DatasetError: a file is missing or damaged, or the split asked for cannot be made.
    """
    if config.device_profiles:
        # Its mistakes come before the minutes that the data take.
        load_device_profiles(config.device_profiles, 1, config.seed)
    with say_while_waiting(f"the data of {config.dataset} are read or made"):
        return _load(config)


def _load(config: RunConfig) -> FederatedData:
    arrays, settings = open_data(config)
    source_digests = _identify_source(config, arrays)
    if config.standardize == CLIENT:
        arrays = standardize_clients(arrays, config.unscaled)
    client_dir = config.client_dir or default_client_dir()
    num_last = 0 if config.draw_new_clients else config.new_clients
    data = build_federated_data(arrays, settings, client_dir, num_last, config.most_test_examples)
    if config.device_profiles:
        profiles = load_device_profiles(config.device_profiles, len(data.everyone), config.seed)
        data = dataclasses.replace(data, profiles=profiles)
    if config.draw_new_clients:
        data = draw_new_clients(data, config.new_clients)
    if not config.test_new_clients:
        data = leave_out_new_clients(data)
    if is_users_own(config.dataset) and not is_random(config):
        data = dataclasses.replace(data, notes=(*arrays.notes, *_note_content(config, arrays, data)))
    return dataclasses.replace(data, source_digests=source_digests)


def _identify_source(config: RunConfig, arrays: ArrayDataset | ClientSource) -> dict[str, str]:
    """What names the data before they are divided, as `config.json` has it.

    Of a user's arrays it is the sum of their file, since their test part is drawn by the seed. A loader of their own
    may draw anything by it.
    """
    if isinstance(arrays, ClientSource):
        return {ARRAYS_DIGEST if is_own(config.dataset) else SOURCE_DIGEST: arrays.digest}
    path = os.path.expanduser({NPZ: config.npz, FILES: config.data}.get(config.dataset, ""))
    if os.path.isfile(path):
        return {SOURCE_DIGEST: compute_sum(path, may_trust_record=True)}
    return {ARRAYS_DIGEST: arrays.source_digest}


def _note_content(config: RunConfig, data: ArrayDataset | ClientSource, federation: FederatedData) -> tuple[str, ...]:
    """What looks odd in a user's own data; of clients that are read one by one, numbers of a few of them."""
    is_scaled, scale = config.standardize != NONE, find_scale(config)
    clients = _note_clients(data) if config.partition == "natural" else ()
    if isinstance(data, ArrayDataset):
        return (*note_content(data, scale, is_scaled), *clients)
    numbers = ()
    if not (is_scaled or data.format.takes_tokens):
        few = np.flatnonzero(data.num_examples[TRAIN])[:MOST_NOTED_CLIENTS]
        x = np.concatenate([data.read(int(client), TRAIN)[0] for client in few])
        numbers = note_numbers(x, data.format, scale)
    # Labels that are no classes, or of too many clients.
    if not federation.label_counts.size:
        return (*numbers, *clients)
    train, test = federation.label_counts.sum(axis=0), np.bincount(federation.test_y, minlength=data.format.num_classes)
    everywhere = None
    # Also of what clients hold back for validation and tests.
    if data.count_labels is not None:
        everywhere = data.count_labels().sum(axis=0) + test * data.has_tests
    return (*numbers, *note_labels(data.format.class_names, train, test, everywhere), *clients)


def _note_clients(data: ArrayDataset | ClientSource) -> tuple[str, ...]:
    """A line if clients differ in spelling only."""
    names = data.client_names or ()
    if isinstance(data, ClientSource):
        counts = sum(data.num_examples.values())
    else:
        counts = np.bincount(data.train_clients, minlength=len(names)) if names else np.zeros(0)
    return note_alike("clients", names, dict(zip(names, counts.tolist(), strict=True)))


def find_scale(config: RunConfig) -> str | None:
    """How a user's own numbers are scaled: --scale, "" where there is nothing for it, None where the loader does it."""
    if config.dataset not in DATASETS:
        return None
    return config.scale if config.dataset == NPZ else ""


def build_spec(
    config: RunConfig, example_format: ExampleFormat, to_train: bool = True, task: "Task | None" = None
) -> "ModelSpec":
    """The model of a run, which does not scale its features yet.

    Args:
      config: what was asked for.
      example_format: of the data.
      to_train: False for a run that is finished.
      task: of the run, as from `build_run_task`; None is without class weights.

    Raises:
      ModelError: the model does not exist, cannot be built, or does not fit the data.
    """
    from models.catalog import ModelOptions, build_model_spec
    from models.compilation import compile_spec

    options = ModelOptions(**{field.name: getattr(config, field.name) for field in dataclasses.fields(ModelOptions)})
    task = task or build_run_task(config, example_format, to_train=to_train)
    names = [_choose_model(name, config, example_format) for name in config.algorithm.model_names or (config.model,)]
    first, *others = [build_model_spec(name, example_format, options, task, to_train) for name in names]
    spec = dataclasses.replace(first, peers=tuple(dataclasses.replace(each, teacher=None) for each in others))
    return compile_spec(spec) if config.compile == ON else spec


def _choose_model(name: str, config: RunConfig, example_format: ExampleFormat) -> str:
    """A model as `--model` takes it; "auto" is the data set's own, if it has one, and for a table the perceptron.

    Neighbouring columns of a table are not alike as steps in time are.
    """
    if name != AUTO:
        return name
    if example_format.are_features and config.dataset not in CONVOLVED:
        return "perceptron"
    own = DATASETS[config.dataset].find_model(choose_options(vars(config))) if config.dataset in DATASETS else ""
    return own or AUTO


def build_run_task(
    config: RunConfig, example_format: ExampleFormat, class_weights: tuple[float, ...] = (), to_train: bool = True
) -> "Task":
    """The task of a run.

    Args:
      config: what was asked for.
      example_format: of the data.
      class_weights: of each class in the loss that trains; () for none.
      to_train: False leaves out a loss of the user's own, which nothing that is tested needs, and imports no module.

    Raises:
      ModelError: a loss that the task does not have, or one of the user's own that cannot be used.
    """
    from models.task import build_format_task

    options = {"huber_delta": config.huber_delta, "class_weights": class_weights}
    if not is_own(config.loss):
        return build_format_task(example_format, loss="" if config.loss == AUTO else config.loss, **options)
    task = build_format_task(example_format, **options)
    if not to_train:
        return task
    from models.own_loss import load_own_loss

    return dataclasses.replace(task, own_loss=load_own_loss(config.loss, task))


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


def find_attacks(config: RunConfig) -> AttackConfig:
    """The attack of a run's settings; that of an algorithm which has none is inactive."""
    aggregation = getattr(config.algorithm, "aggregation", None)
    return aggregation.attacks if isinstance(aggregation, AggregationConfig) else AttackConfig()


def find_attackers(config: RunConfig, data: FederatedData) -> tuple[int, ...]:
    """Indices of the clients that attack, ascending."""
    return tuple(draw_attackers(find_attacks(config), len(data.clients), config.seed).tolist())


def check_attack(config: RunConfig, data: FederatedData) -> None:
    """Raises ConfigError if labels are to be flipped that are no classes."""
    attacks, kind = find_attacks(config), LABEL_KINDS[data.format.labels.task]
    if attacks.is_active and attacks.attack == LABEL_FLIP and not (kind.is_by_class and data.format.num_classes):
        raise ConfigError("attack", LABEL_FLIP, f"another one, since an example of {kind.title} has not one class")


def flip_attackers_labels(config: RunConfig, data: FederatedData) -> FederatedData:
    """The federation that the algorithm gets: with other labels of the attackers, if they flip theirs."""
    flips = find_attacks(config).attack == LABEL_FLIP
    return flip_labels(data, find_attackers(config, data)) if flips else data
