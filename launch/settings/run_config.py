"""What one training run is asked to do: the shared settings and the settings of its algorithm. Imports no TensorFlow.

A config and its flags are two spellings of the same thing: `flag_values` writes a config as {flag name: value}, and
`build_run_config` reads it back. `config.json` holds the former.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from datasets.catalog import find_dataset
from datasets.options import FILES
from datasets.partition_settings import NO_VARIANT, VALIDATION_POOL
from launch.settings.algorithms import ALGORITHMS, OWN_FORM, Algorithm
from launch.settings.data_flags import DataFlags, LossFlags, OwnDataFlags, choose_options
from launch.settings.flag_fields import FlagField, IdleFlag, find_idle_flags, iterate_fields, replace_fields
from launch.settings.own_algorithm import load_own_algorithm
from launch.settings.run_checks import check_client_models, check_dataset, check_run_settings
from launch.settings.run_flags import (
    ArchetypeFlags,
    DeviceFlags,
    FolderFlags,
    ModelFlags,
    PartitionFlags,
    RoundFlags,
)
from tff_algos.settings.config_fields import AlgorithmConfig, ConfigError, check, is_own, setting, shrink

CONFIG_FILE = "config.json"  # what a run folder keeps of its config
MAX_JSON = 2**28  # bytes or characters of a run's JSON; what is longer is none


@dataclasses.dataclass(frozen=True)
class _Request:
    """The algorithm"""

    algo: str = setting(dataclasses.MISSING, "Algorithm to train with.", choices=tuple(ALGORITHMS), or_own=OWN_FORM)
    algorithm: AlgorithmConfig | None = None


# Dataclasses take the fields of the last base first.
@dataclasses.dataclass(frozen=True)
class RunConfig(
    FolderFlags,
    DeviceFlags,
    ModelFlags,
    LossFlags,
    ArchetypeFlags,
    PartitionFlags,
    OwnDataFlags,
    DataFlags,
    RoundFlags,
    _Request,
):
    """The settings of one run; every field but `algorithm` has a flag of its name. Each base is a group of them."""

    def __post_init__(self):
        check(self)
        check_run_settings(self)


def list_groups() -> dict[str, list[FlagField]]:
    """The flags of every algorithm in groups, by the group's title."""
    groups = {group.__doc__: {field.name for field in dataclasses.fields(group)} for group in RunConfig.__bases__[::-1]}
    return {title: [field for field in shared_fields() if field.name in names] for title, names in groups.items()}


@functools.cache
def shared_fields() -> tuple[FlagField, ...]:
    """The flags of every algorithm; the default of `--algo` is None."""
    first = next(iter(ALGORITHMS))
    fields = iterate_fields(RunConfig(algo=first))
    return tuple(field._replace(default=None) if field.name == "algo" else field for field in fields)


def find_algorithm(spelling: Any) -> Algorithm:
    """The row of an algorithm as `--algo` spells it: one of `ALGORITHMS`, or a user's own as "module:ALGORITHM".

    Raises:
      ConfigError: it is spelled like neither.
      FlagError: the user's module or row cannot be used.
    """
    if not is_algorithm_spelling(spelling):
        raise ConfigError("algo", spelling, RunConfig.__dataclass_fields__["algo"].metadata["setting"].describe_range())
    if spelling in ALGORITHMS:
        return ALGORITHMS[spelling]
    return load_own_algorithm(spelling, shared_fields())


def is_algorithm_spelling(value: Any) -> bool:
    """Whether records may hold this for `--algo`; a user's own module is not looked for."""
    return isinstance(value, str) and (value in ALGORITHMS or is_own(value))


def algorithm_fields(spelling: str) -> tuple[FlagField, ...]:
    """The settings of one algorithm as flags."""
    return find_algorithm(spelling).fields


def build_run_config(values: Mapping[str, Any]) -> RunConfig:
    """The config of flags given as {name: value}; those not given have their defaults.

    Raises:
      ConfigError: no `algo`, a name that is none, or a value is out of its range or conflicts with another.
      DatasetError: a user's own data set cannot be imported.
      FlagError: the algorithm is the user's own and cannot be used.
    """
    algorithm = find_algorithm(values.get("algo"))
    known = {*(field.name for field in shared_fields()), *algorithm.names}
    if unknown := next((name for name in values if name not in known), None):
        raise ConfigError(unknown, values[unknown], f"a setting of --algo={algorithm.name}")
    defaults = dict(algorithm.shared_defaults)
    if values.get("data"):
        defaults["dataset"] = FILES
    dataset = values.get("dataset", defaults.get("dataset", RunConfig.dataset))
    check_dataset(dataset)
    row = find_dataset(dataset)
    if "partition" not in values and (partition := row.find_partition(choose_options(values))):
        defaults["partition"] = partition
    values = {**defaults, **values}
    config = RunConfig(**{field.name: values[field.name] for field in shared_fields() if field.name in values})
    settings = replace_fields(algorithm.default_config(), {**values, "batch_size": config.batch_size})
    config = dataclasses.replace(config, algorithm=settings)
    config = shrink_to_smoke(config) if config.smoke else config
    config = dataclasses.replace(config, algorithm=config.algorithm.plan_rounds(config.rounds))
    config.algorithm.check_run(config.rounds)
    check_client_models(config)
    return config


def flag_values(config: RunConfig) -> dict[str, Any]:
    """Every flag of the config with its value: what `build_run_config` reads back, and flagfiles can hold."""
    own = iterate_fields(config.algorithm, find_algorithm(config.algo).fields_without_flag)
    return {field.name: field.default for field in (*iterate_fields(config), *own)}


def find_idle(config: RunConfig) -> dict[str, IdleFlag]:
    """The flags that do nothing in this config, by name."""
    own = find_idle_flags(config.algorithm, find_algorithm(config.algo).fields_without_flag)
    return {**find_idle_flags(config), **own}


def shrink_to_smoke(config: Any) -> Any:
    """The same `RunConfig` on few random clients, with as little local work as it can do."""
    shrunk = shrink(dataclasses.replace(config, validation_pool=VALIDATION_POOL))  # a small pool needs more examples
    labels_per_client = config.labels_per_client
    if config.partition == "shards":  # as many shards among fewer clients, so that no label is without one
        labels_per_client = -(-config.num_clients * labels_per_client // shrunk.num_clients)
    # One client a group of a variant, as one an archetype.
    num_clients = shrunk.num_clients if config.variant == NO_VARIANT else config.variant_groups
    return dataclasses.replace(
        shrunk,
        num_clients=num_clients,
        labels_per_client=labels_per_client,
        clients_per_archetype=1,
        algorithm=config.algorithm.shrink_to_smoke(),
    )
