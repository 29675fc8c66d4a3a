"""What one training run is asked to do: the shared settings and the settings of its algorithm. Imports no TensorFlow.

A config and its flags are two spellings of the same thing: `flag_values` writes a config as {flag name: value}, and
`build_run_config` reads it back. `config.json` holds the former.
"""

import dataclasses
import os
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from datasets.archetypes import ArchetypeSettings
from datasets.catalog import (
    BUILDING_HETEROGENEITY,
    DATASET_NAMES,
    HAR_FEATURES,
    OCCUPANCY_FEATURES,
    DatasetOptions,
    check_dataset_name,
    find_dataset,
)
from datasets.errors import DatasetError
from datasets.partitioners import PARTITION_NAMES
from launch.settings.algorithms import ALGORITHMS, Algorithm
from launch.settings.worker_addresses import check_address
from models.model_names import (
    ACTIVATIONS,
    AUGMENTATIONS,
    MODEL_NAMES,
    PRECISIONS,
    QUANTIZATIONS,
    WIDTH_MODELS,
    ModelError,
    check_model_name,
)
from tff_algos.settings.config_fields import ConfigError, Setting, check, setting
from tff_algos.settings.local_training import LocalTrainingConfig

CONFIG_FILE = "config.json"  # what a run folder keeps of its config
SMOKE_ROUNDS = 2
SMOKE_CLIENTS = 3
SMOKE_QAT_START_ROUND = 2
SMOKE_ARCHETYPES = {"train_per_client": 20, "validation_per_client": 5, "test_per_client": 5}
SMOKE_LIMITS = {"epochs": 1, "steps": 1, "cohort_size": SMOKE_CLIENTS, "clustering_round": 1}
SMOKE_MILESTONES = "1"

# What a resumed run may change: how long it goes on and where things lie, never what a round computes.
CHANGEABLE_ON_RESUME = frozenset(
    {"rounds", "rounds_per_checkpoint", "target_accuracy", "workers"}
    | {"data_dir", "shard_dir", "npz", "building_csv", "run_dir", "resume", "overwrite"}
)


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """The settings of one run; every field but `algorithm` has a flag of its name."""

    algo: str = setting(dataclasses.MISSING, "Algorithm to train with.", choices=tuple(ALGORITHMS))
    algorithm: Any = None
    dataset: str = setting(
        "digits",
        f"Data set: {', '.join(DATASET_NAMES)}, or module:OBJECT of your own; digits and building need no download, "
        f"npz is your own file.",
    )
    data_dir: str = dataclasses.field(
        default_factory=lambda: os.environ.get("FL_DATA_DIR", ""),
        metadata={"setting": Setting("Folder of the data sets' files; by default the variable FL_DATA_DIR.")},
    )
    shard_dir: str = setting("", "Folder of the clients' shards, the same path on every worker; empty: a cache folder.")
    npz: str = setting("", "Your own file for --dataset=npz: x, y, and optionally client, x_test, y_test.")
    har_features: str = setting(
        "statistics", "Input of har: the 561 statistics, or the (128, 9) windows.", choices=HAR_FEATURES
    )
    building_num_sensors: int = setting(
        DatasetOptions.building_num_sensors, "Sensors of building, each a client.", minimum=1, maximum=10**5
    )
    building_heterogeneity: str = setting(
        DatasetOptions.building_heterogeneity,
        "How much the rooms and sensors of building differ.",
        choices=BUILDING_HETEROGENEITY,
    )
    building_csv: str = setting("", "File to save the readings of building to, as CSV; empty: not saved.")
    occupancy_client_hours: int = setting(
        DatasetOptions.occupancy_client_hours, "Hours of readings that make a client of occupancy.", minimum=1
    )
    occupancy_features: str = setting(
        DatasetOptions.occupancy_features,
        "Input of occupancy: two of its readings, or all five.",
        choices=OCCUPANCY_FEATURES,
    )
    num_clients: int = setting(
        10, "Number of clients; the natural and the archetype partitions bring their own.", minimum=1
    )
    partition: str = setting(
        "dirichlet",
        "How examples go to clients; hierarchical and hypergeometric: by archetype.",
        choices=PARTITION_NAMES,
    )
    dirichlet_alpha: float = setting(0.5, "Label skew of the dirichlet partition; smaller is more skewed.", above=0)
    labels_per_client: int = setting(2, "Most labels that a client has in the shards partition.", minimum=1)
    validation_fraction: float = setting(
        1 / 12, "Share of a client's examples in its own validation split.", minimum=0, maximum=0.45
    )
    test_fraction: float = setting(
        1 / 12, "Share of a client's examples in its own test split.", minimum=0, maximum=0.45
    )
    clients_per_archetype: int = setting(
        ArchetypeSettings.clients_per_archetype,
        "Clients of each archetype; 0: 3 of ten (hierarchical), 5 of six (hypergeometric).",
        minimum=0,
    )
    train_per_client: int = setting(
        ArchetypeSettings.train_per_client, "Examples in a client's train split, by archetype.", minimum=1
    )
    validation_per_client: int = setting(
        ArchetypeSettings.validation_per_client, "Examples in a client's validation split, by archetype.", minimum=0
    )
    test_per_client: int = setting(
        ArchetypeSettings.test_per_client, "Examples in a client's own test split, by archetype.", minimum=0
    )
    bias_min: float = setting(
        ArchetypeSettings.bias_min,
        "Least share of its archetype's label in a hierarchical client.",
        minimum=0,
        maximum=1,
    )
    bias_max: float = setting(
        ArchetypeSettings.bias_max, "Largest share of it; the client's is drawn between the two.", minimum=0, maximum=1
    )
    hypergeometric_draws: int = setting(
        ArchetypeSettings.hypergeometric_draws,
        "Draws n of the hypergeometric partition, one less than the labels, or as many: the last two outcomes merged.",
        minimum=1,
    )
    model: str = setting(
        "auto", f"Model: {', '.join(MODEL_NAMES)}, or module:function of your own (auto: by data set)."
    )
    teacher_model: str = setting("auto", "Teacher model, named likewise.")
    activation: str = setting("linear", "Activation of the convolutions; the paper prints none.", choices=ACTIVATIONS)
    width: float = setting(1.0, f"Factor on the numbers of filters of {', '.join(WIDTH_MODELS)}.", above=0, maximum=8)
    quantize: str = setting(
        "none",
        "qat: train the model (not the teacher) for 8-bit integers, by quantization-aware training.",
        choices=QUANTIZATIONS,
    )
    qat_start_round: int = setting(1, "First round of quantization-aware training; float before it.", minimum=1)
    precision: str = setting(
        "float32",
        "What the models' layers compute in; weights, logits, losses and aggregation are float32 in any case.",
        choices=PRECISIONS,
    )
    augment: str = setting(
        "none",
        "crop_flip: images are shifted by up to 4 pixels and mirrored at random while a client trains.",
        choices=AUGMENTATIONS,
    )
    batch_size: int = setting(
        LocalTrainingConfig.batch_size, "Examples in a mini-batch; the last one of an epoch may be smaller.", minimum=1
    )
    rounds: int = setting(20, "Rounds of training.", minimum=1, maximum=10**6)
    rounds_per_evaluation: int = setting(1, "Rounds between two evaluations; the last is always evaluated.", minimum=1)
    rounds_per_checkpoint: int = setting(1, "Rounds between two checkpoints; the last is always kept.", minimum=1)
    target_accuracy: float = setting(0.0, "Stop at this test accuracy; 0 means never.", minimum=0, maximum=1)
    seed: int = setting(0, "Seed of everything random.", minimum=0, maximum=10**9)
    run_dir: str = setting("", "Run folder; empty: the next free one under runs/.")
    resume: bool = setting(
        False, "Go on with the run in --run_dir from its last checkpoint; other flags may be left out."
    )
    overwrite: bool = setting(False, "Replace the run in --run_dir.")
    workers: str = setting("", "host:port,... of TFF workers on other machines; empty: one on this machine.")
    smoke: bool = setting(
        False,
        f"Try the flags in seconds: random data, {SMOKE_ROUNDS} rounds, {SMOKE_CLIENTS} clients, or one an archetype.",
    )

    def __post_init__(self):
        check(self)
        if self.resume and self.overwrite:
            raise ConfigError("overwrite", True, "either --resume or --overwrite, not both")
        if self.resume and not self.run_dir:
            raise ConfigError("resume", True, "--run_dir=<folder of the run to go on with> beside it")
        _check_dataset(self.dataset)
        if bool(self.npz) != (self.dataset == "npz"):
            raise ConfigError("npz", self.npz, "a file together with --dataset=npz, and only then")
        if self.bias_min > self.bias_max:
            raise ConfigError("bias_min", self.bias_min, f"at most --bias_max={self.bias_max}")
        if self.qat_start_round > self.rounds:
            raise ConfigError("qat_start_round", self.qat_start_round, f"at most --rounds={self.rounds}")
        if self.precision != "float32" and self.quantize != "none":
            raise ConfigError("precision", self.precision, f"float32 with --quantize={self.quantize}")
        if self.width != 1 and not {self.model, self.teacher_model} & set(WIDTH_MODELS):
            raise ConfigError("width", self.width, f"1, or --model={WIDTH_MODELS[0]} beside it")
        for field in ("model", "teacher_model"):
            _check_model(field, getattr(self, field))
        for address in self.worker_addresses or ([self.workers] if self.workers else []):
            _check_worker(self.workers, address)

    @property
    def worker_addresses(self) -> list[str]:
        """The workers elsewhere, each "host:port"; empty for one of our own."""
        return [address.strip() for address in self.workers.split(",") if address.strip()]


def _check_dataset(dataset: str) -> None:
    try:
        check_dataset_name(dataset)
    except DatasetError as error:
        raise ConfigError("dataset", dataset, str(error).partition(": expected ")[2]) from None


def _check_model(field: str, name: str) -> None:
    try:
        check_model_name(name)
    except ModelError:
        raise ConfigError(field, name, f"auto, {', '.join(MODEL_NAMES)}, or your own as module:function") from None


def _check_worker(workers: str, address: str) -> None:
    try:
        check_address(address)
    except ValueError:
        raise ConfigError("workers", workers, "host:port,... such as 192.0.2.7:8000,192.0.2.8:8000") from None


class FlagField(NamedTuple):
    """A setting as a flag: its name, its declaration and its default, whose type is the flag's."""

    name: str
    setting: Setting
    default: Any


def _groups(config: Any) -> Iterator[tuple[str, str]]:
    for field in dataclasses.fields(config):
        if "flag_prefix" in field.metadata:
            yield field.name, field.metadata["flag_prefix"]


def iterate_fields(config: Any, prefix: str, without_flag: Collection[str] = ()) -> Iterator[FlagField]:
    """The fields of a config and of its groups as flags `<prefix><group's prefix><field>`, shared ones left out."""
    groups = dict(_groups(config))
    for field in dataclasses.fields(config):
        declared = field.metadata.get("setting")
        if field.name in groups and field.name not in without_flag:
            yield from iterate_fields(getattr(config, field.name), prefix + groups[field.name])
        elif declared is not None and not declared.shared and field.name not in without_flag:
            yield FlagField(prefix + field.name, declared, getattr(config, field.name))


def replace_fields(config: Any, prefix: str, values: Mapping[str, Any]) -> Any:
    """`config` with `values`, named by flag; a shared field takes the value of the shared flag of its name.

    Raises:
      ConfigError: a value is out of its range or conflicts with another; its `field` is the flag's name.
    """
    changed = {}
    for name, group_prefix in _groups(config):
        changed[name] = replace_fields(getattr(config, name), prefix + group_prefix, values)
    for field in dataclasses.fields(config):
        if "setting" in field.metadata:
            flag_name = field.name if field.metadata["setting"].shared else prefix + field.name
            if flag_name in values:
                changed[field.name] = values[flag_name]
    try:
        return dataclasses.replace(config, **changed)
    except ConfigError as error:
        raise ConfigError(prefix + error.field, error.value, error.expected) from None


def shared_fields() -> list[FlagField]:
    """The flags of every algorithm; the default of `--algo` is None."""
    first = next(iter(ALGORITHMS))
    fields = iterate_fields(RunConfig(algo=first), "")
    return [field._replace(default=None) if field.name == "algo" else field for field in fields]


def algorithm_fields(name: str) -> list[FlagField]:
    """The flags `--<name>_<field>` of one algorithm."""
    algorithm = ALGORITHMS[name]
    return list(iterate_fields(algorithm.default_config(), f"{name}_", algorithm.fields_without_flag))


def build_run_config(values: Mapping[str, Any]) -> RunConfig:
    """The config of flags given as {name: value}; those not given have their defaults.

    Raises:
      ConfigError: no `algo`, or a value is out of its range or conflicts with another.
      DatasetError: a user's own data set cannot be imported.
    """
    name = values.get("algo")
    if name not in ALGORITHMS:
        raise ConfigError("algo", name, "one of " + ", ".join(ALGORITHMS))
    defaults = dict(ALGORITHMS[name].shared_defaults)
    dataset = values.get("dataset", defaults.get("dataset", RunConfig.dataset))
    _check_dataset(dataset)
    if partition := find_dataset(dataset).partition:
        defaults["partition"] = partition
    values = {**defaults, **values}
    shared = {field.name: values[field.name] for field in shared_fields() if field.name in values}
    config = RunConfig(**shared)
    with_batch_size = {**values, "batch_size": config.batch_size}
    algorithm = replace_fields(ALGORITHMS[name].default_config(), f"{name}_", with_batch_size)
    config = dataclasses.replace(config, algorithm=algorithm)
    config = _shrink_to_smoke(config) if config.smoke else config
    check_algorithm(config, "check_rounds", config.rounds)
    return config


def check_algorithm(config: RunConfig, check_name: str, value: Any) -> None:
    """Lets an algorithm's config that has a method of this name hold its settings to a value from outside of it.

    The names: `check_rounds` (of the run), and `check_clients` (how many there are).

    Raises:
      ConfigError: a setting of the algorithm does not fit; its `field` is the flag's name.
    """
    if hasattr(config.algorithm, check_name):
        try:
            getattr(config.algorithm, check_name)(value)
        except ConfigError as error:
            raise ConfigError(f"{config.algo}_{error.field}", error.value, error.expected) from None


def flag_values(config: RunConfig) -> dict[str, Any]:
    """Every flag of the config with its value: what `build_run_config` reads back, and flagfiles can hold."""
    algorithm: Algorithm = ALGORITHMS[config.algo]
    own = iterate_fields(config.algorithm, f"{config.algo}_", algorithm.fields_without_flag)
    return {field.name: field.default for field in (*iterate_fields(config, ""), *own)}


def _shrink_to_smoke(config: RunConfig) -> RunConfig:
    """The same config on few random clients, with as many shards, and with as little local work as it can do."""
    num_clients, labels_per_client = min(config.num_clients, SMOKE_CLIENTS), config.labels_per_client
    if config.partition == "shards":
        labels_per_client = -(-config.num_clients * labels_per_client // num_clients)
    return dataclasses.replace(
        config,
        rounds=min(config.rounds, SMOKE_ROUNDS),
        qat_start_round=min(config.qat_start_round, SMOKE_QAT_START_ROUND),
        num_clients=num_clients,
        labels_per_client=labels_per_client,
        clients_per_archetype=1,
        **{name: min(getattr(config, name), limit) for name, limit in SMOKE_ARCHETYPES.items()},
        algorithm=_limit_fields(config.algorithm),
    )


def _limit_fields(config: Any) -> Any:
    limited = {name: _limit_fields(getattr(config, name)) for name, _ in _groups(config)}
    for name, limit in SMOKE_LIMITS.items():
        if hasattr(config, name):
            limited[name] = min(getattr(config, name), limit)
    if getattr(config, "milestones", ""):
        limited["milestones"] = SMOKE_MILESTONES
    return dataclasses.replace(config, **limited)
