"""What one training run is asked to do: the shared settings and the settings of its algorithm. Imports no TensorFlow.

A config and its flags are two spellings of the same thing: `flag_values` writes a config as {flag name: value}, and
`build_run_config` reads it back, held to more than the range of each setting. `config.json` holds the former.
"""

import dataclasses
import functools
import importlib.machinery
import pathlib
from collections.abc import Mapping
from typing import Any

from datasets.catalog import DATASET_NAMES, check_dataset_name, find_dataset
from datasets.errors import DatasetError
from datasets.layouts import AUTO, BYTES, NO_SCALE, SCALE_FORM, parse_factor
from datasets.options import FILES, NPZ
from datasets.partition_settings import NO_VARIANT, PARTITION_NAMES, ArchetypeSettings
from datasets.unscaled_flag import FORM, is_unscaled
from launch.settings.algorithms import ALGORITHMS, OWN_FORM, Algorithm
from launch.settings.data_flags import BALANCED, CLIENT, FEDERATED, DataFlags, LossFlags, OwnDataFlags, choose_options
from launch.settings.flag_fields import FlagField, IdleFlag, find_idle_flags, iterate_fields, replace_fields
from launch.settings.own_algorithm import load_own_algorithm
from launch.settings.run_flags import (
    ArchetypeFlags,
    DeviceFlags,
    FolderFlags,
    ModelFlags,
    PartitionFlags,
    RoundFlags,
)
from launch.settings.runtimes import CPU, CPU_ONLY, IN_PROCESS, OFF, ON, RAY_CLIENT, RAY_PLACES, TFF
from launch.settings.suggestions import simplify, suggest_value
from models.model_names import MODEL_NAMES, WIDTH_MODELS, ModelError, check_model_name
from tff_algos.settings.config_fields import AlgorithmConfig, ConfigError, check, is_own, setting, shrink

RUN_TO_RESUME = "--run_dir=<folder of the run to go on with> beside it"
OWN_FILE = "--data=<your file or folder>"
OWN_SUFFIXES = (".csv", ".tsv", ".gz", ".npz", ".npy", ".pt", ".parquet", ".arrow", ".json", ".sqlite", ".lzma", ".zip")
# Data sets and models that other tools bring, by their names in small letters and digits.
ELSEWHERE = {
    "svhn": "SVHN",
    "imagenet": "ImageNet",
    "tinyimagenet": "Tiny ImageNet",
    "adult": "Adult",
}
MODELS_ELSEWHERE = {
    "mlp": "perceptron",
    "dnn": "perceptron",
    "cnn": "image_student",
    "2nn": "perceptron_2nn",
    "resnet": "resnet18_gn",
    "resnet18": "resnet18_gn",
    "mobilenet": "mobilenet_v2",
    "lstm": "char_lstm",
    "gru": "char_gru",
    "transformer": "char_transformer",
    "logistic": "logistic_regression",
}


def check_run_settings(config: Any) -> None:
    """Raises ConfigError for the first setting of a `RunConfig` that cannot be meant."""
    check_dataset(config.dataset)
    for is_broken, field, expected in _list_rules(config):
        if is_broken:
            raise ConfigError(field, getattr(config, field), expected)
    if config.scale not in (AUTO, NO_SCALE, BYTES):
        try:
            parse_factor(config.scale)
        except ValueError:
            raise ConfigError("scale", config.scale, SCALE_FORM) from None
    for field in ("model", "teacher_model"):
        _check_model(field, getattr(config, field))
    check_ray_address(config.ray_address)


def _list_rules(config: Any) -> list[tuple[bool, str, str]]:
    """(whether it is broken, the setting that breaks it, what is expected) of each rule on settings beside others."""
    adds_noise = getattr(getattr(config.algorithm, "privacy", None), "is_active", False)
    is_private = adds_noise or getattr(config.algorithm, "privacy_epsilon", 0) > 0
    without_noise = "with private updates: a result without noise must not"
    outside = "with privacy: its {} are without noise and outside the budget"
    runtime, natural = f"--runtime={config.runtime}", "--partition=natural, whose clients have examples of their own"
    return [
        (config.resume and config.overwrite, "overwrite", "either --resume or --overwrite, not both"),
        (config.resume and not config.run_dir, "resume", RUN_TO_RESUME),
        (config.overwrite and not config.run_dir, "overwrite", "--run_dir=<folder of the run to replace> beside it"),
        (
            bool(config.data) != (config.dataset == FILES),
            "data",
            "a file or folder of yours, and no other --dataset beside it",
        ),
        (
            bool(config.npz) != (config.dataset == NPZ),
            "npz",
            "a file together with --dataset=npz, and only then",
        ),
        (bool(config.replay) and config.smoke, "replay", "no --smoke beside it, which would leave out most clients"),
        (config.bias_min > config.bias_max, "bias_min", f"at most --bias_max={config.bias_max}"),
        (config.qat_start_round > config.rounds, "qat_start_round", f"at most --rounds={config.rounds}"),
        (
            config.precision != "float32" and config.quantize != "none",
            "precision",
            f"float32 with --quantize={config.quantize}",
        ),
        (
            config.target_metric > 0 and config.target_accuracy > 0,
            "target_metric",
            "either --target_accuracy or --target_metric, not both",
        ),
        *(
            (adds_noise and getattr(config, name) > 0, name, f"0 {without_noise} end the run")
            for name in ("target_accuracy", "target_metric", "patience")
        ),
        (adds_noise and config.keep_best, "keep_best", f"false {without_noise} choose the models"),
        (
            config.width != 1 and not {config.model, config.teacher_model} & set(WIDTH_MODELS),
            "width",
            f"1, or --model={' or '.join(WIDTH_MODELS)} beside it",
        ),
        # To add noise, values must be clipped to a range that is known beforehand; a table's is not.
        (
            config.standardize == FEDERATED and is_private,
            "standardize",
            f"none or {CLIENT} {outside.format('sums')}",
        ),
        (
            config.class_weights == BALANCED and is_private,
            "class_weights",
            f"none or a file {outside.format('counts of labels')}",
        ),
        (config.standardize == CLIENT and config.partition != "natural", "standardize", natural),
        (not is_unscaled(config.unscaled), "unscaled", FORM),
        (
            config.device != CPU and config.runtime in CPU_ONLY,
            "device",
            f"{CPU} with {runtime}, which has no GPU; for one, give --runtime={IN_PROCESS}",
        ),
        (
            config.compile == ON and config.runtime == TFF,
            "compile",
            f"{OFF} with {runtime}, whose worker has no XLA; to compile, give --runtime={IN_PROCESS}",
        ),
    ]


def check_dataset(dataset: str) -> None:
    """Raises ConfigError if no data set is spelled so; a user's own is not looked for."""
    try:
        check_dataset_name(dataset)
    except DatasetError as error:
        expected = str(error).partition(": expected ")[2].partition("; did you mean")[0]
        raise ConfigError("dataset", dataset, expected + _suggest_dataset(dataset)) from None


def _suggest_dataset(dataset: str) -> str:
    """What was probably meant by a data set that there is none of."""
    plain = simplify(dataset)
    if plain in ELSEWHERE:
        return f"; {ELSEWHERE[plain]} is not among them; if you have its files, give {OWN_FILE}"
    if "/" in dataset or pathlib.PurePath(dataset).suffix in OWN_SUFFIXES:
        return f"; did you mean --data={dataset}?"
    return suggest_value(dataset, DATASET_NAMES, "module:OBJECT")


def _check_model(field: str, name: str) -> None:
    try:
        check_model_name(name)
    except ModelError:
        near = MODELS_ELSEWHERE.get(simplify(name))
        is_module = name.isidentifier() and importlib.machinery.PathFinder.find_spec(name) is not None
        near = near or (f"{name}:<function in it>" if is_module else "")
        hint = f"; did you mean {near}?" if near else suggest_value(name, ("auto", *MODEL_NAMES), "module:function")
        raise ConfigError(
            field, name, f"auto, {', '.join(MODEL_NAMES)}, or your own as module:function{hint}"
        ) from None


def check_ray_address(address: str) -> None:
    """Raises ConfigError if no Ray cluster is written so."""
    host, _, port = address.removeprefix(RAY_CLIENT).rpartition(":")
    if address not in RAY_PLACES and not (host and port.isdecimal() and 0 < int(port) < 65536):
        expected = "auto, host:port or ray://host:port, such as 192.0.2.7:6379; empty for a Ray of this run's own"
        raise ConfigError("ray_address", address, expected)


CONFIG_FILE = "config.json"  # what a run folder keeps of its config
METRICS_FILE, RECORD_FILE = "metrics.csv", "record.csv"  # a row a round; and what a live run leaves to be repeated
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
        if partition not in PARTITION_NAMES:  # of a user's own row, which no flag can put right
            expected = f"a row whose partition is one of {', '.join(PARTITION_NAMES)}; it is {partition!r}"
            raise ConfigError("dataset", dataset, expected)
        defaults["partition"] = partition
    values = {**defaults, **values}
    config = RunConfig(**{field.name: values[field.name] for field in shared_fields() if field.name in values})
    settings = replace_fields(algorithm.default_config(), {**values, "batch_size": config.batch_size})
    config = dataclasses.replace(config, algorithm=settings)
    # Before the rounds are planned: a privacy budget is to last for those that there will be.
    config = shrink_to_smoke(config) if config.smoke else config
    config = dataclasses.replace(config, algorithm=config.algorithm.plan_rounds(config.rounds))
    config.algorithm.check_run(config.rounds)
    # Of an algorithm whose clients train models of their own.
    for name in (names := config.algorithm.model_names):
        _check_model("models", name)
    if names and config.model != AUTO:
        raise ConfigError("models", ",".join(names), f"no --model={config.model} beside it; give one or the other")
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
    # A small pool needs more examples.
    shrunk = shrink(dataclasses.replace(config, validation_pool=ArchetypeSettings.validation_pool))
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
