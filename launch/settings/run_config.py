"""What one training run is asked to do: the shared settings and the settings of its algorithm. Imports no TensorFlow.

A config and its flags are two spellings of the same thing: `flag_values` writes a config as {flag name: value}, and
`build_run_config` reads it back. `config.json` holds the former.
"""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from datasets.catalog import (
    BUILDING_HETEROGENEITY,
    DATASET_NAMES,
    HAR_FEATURES,
    OCCUPANCY_FEATURES,
    DatasetOptions,
    find_dataset,
)
from datasets.layouts import AS_STORED, AUTO, BYTES, LAYOUTS, SCALE_FORM
from datasets.partitioners import PARTITION_NAMES
from launch.settings import archetype_flags, data_flags, group_flags, task_flags
from launch.settings.algorithms import ALGORITHMS, Algorithm
from launch.settings.flag_fields import (
    FlagField,
    IdleFlag,
    find_idle_flags,
    iterate_fields,
    prefix_errors,
    replace_fields,
)
from launch.settings.own_algorithm import load_own_algorithm
from launch.settings.partition_needs import NOT_BY_ARCHETYPE, needs_no_archetypes
from launch.settings.run_checks import check_dataset, check_run_settings
from launch.settings.runtimes import CPU, DEVICES, RAY, RAY_SHARES, RUNTIMES, TFF
from launch.settings.smoke_config import shrink_to_smoke
from launch.settings.trackers import NO_TRACKER, TRACKER_CHOICES
from models.model_names import ACTIVATIONS, AUGMENTATIONS, MODEL_NAMES, PRECISIONS, QUANTIZATIONS, WIDTH_MODELS
from tff_algos.settings.config_fields import (
    SMOKE_CLIENTS,
    AlgorithmConfig,
    ConfigError,
    Needs,
    Setting,
    check,
    needs_value,
    setting,
)
from tff_algos.settings.local_training import LocalTrainingConfig

OWN_FORM = "module:ALGORITHM"
CONFIG_FILE = "config.json"  # what a run folder keeps of its config
SMOKE_ROUNDS = 2
PLOT_FORMATS = ("png", "png,svg", "png,pdf", "png,svg,pdf")
FILES = "files"  # the data set of --data


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """The settings of one run; every field but `algorithm` has a flag of its name."""

    algo: str = setting(dataclasses.MISSING, "Algorithm to train with.", choices=tuple(ALGORITHMS), or_own=OWN_FORM)
    algorithm: AlgorithmConfig | None = None
    dataset: str = setting(
        "digits",
        f"Data set: {', '.join(DATASET_NAMES)}, or module:OBJECT of your own; digits and building need no download, "
        f"npz is your own file.",
    )
    data_dir: str = dataclasses.field(
        default_factory=lambda: os.environ.get("FL_DATA_DIR", ""),
        metadata={"setting": Setting("Folder of the data sets' files; by default the variable FL_DATA_DIR.")},
    )
    client_dir: str = setting("", "Folder of the client files, the same path on every worker; empty: a cache folder.")
    data: str = data_flags.DATA
    data_format: str = data_flags.DATA_FORMAT
    client_column: str = data_flags.CLIENT_COLUMN
    label_column: str = data_flags.LABEL_COLUMN
    feature_columns: str = data_flags.FEATURE_COLUMNS
    time_column: str = data_flags.TIME_COLUMN
    test_column: str = data_flags.TEST_COLUMN
    missing: str = data_flags.MISSING_VALUES
    categories: str = data_flags.CATEGORY_FORM
    window: int = data_flags.WINDOW
    window_step: int = data_flags.WINDOW_STEP
    image_size: int = data_flags.IMAGE_SIZE
    image_colour: str = data_flags.IMAGE_COLOUR
    sequence_length: int = data_flags.SEQUENCE_LENGTH
    vocabulary_size: int = data_flags.VOCABULARY_SIZE
    emnist_labels: str = data_flags.EMNIST_LABEL_SET
    cifar100_form: str = data_flags.CIFAR100_FORM
    stackoverflow_task: str = data_flags.STACKOVERFLOW_TASK
    most_test_examples: int = data_flags.MOST_TEST_EXAMPLES
    standardize: str = data_flags.STANDARDIZE
    npz: str = setting("", "Your own file for --dataset=npz: x, y, and optionally client, x_test, y_test.")
    layout: str = setting(
        AUTO,
        "How the axes of your own arrays are read: features, steps and channels, pixels; auto: by shape and dtype.",
        choices=LAYOUTS,
        needs=data_flags.OF_ARRAYS,
        of_old_runs=AS_STORED,
    )
    scale: str = setting(
        AUTO,
        f"Factor on your own numbers: {SCALE_FORM}; auto: 1/255 for images in uint8, bytes: for all in uint8.",
        needs=data_flags.OF_ARRAYS,
        of_old_runs=BYTES,
    )
    task: str = task_flags.TASK
    loss: str = task_flags.LOSS
    huber_delta: float = task_flags.HUBER_DELTA
    har_features: str = setting(
        "statistics",
        "Input of har: the 561 statistics, or the (128, 9) windows.",
        choices=HAR_FEATURES,
        needs=needs_value("dataset", "har"),
    )
    building_num_sensors: int = setting(
        DatasetOptions.building_num_sensors,
        "Sensors of building, each a client.",
        minimum=1,
        maximum=10**5,
        needs=needs_value("dataset", "building"),
    )
    building_heterogeneity: str = setting(
        DatasetOptions.building_heterogeneity,
        "How much the rooms and sensors of building differ.",
        choices=BUILDING_HETEROGENEITY,
        needs=needs_value("dataset", "building"),
    )
    building_csv: str = setting(
        "",
        "File to save the readings of building to, as CSV; empty: not saved.",
        needs=(needs_value("dataset", "building"), Needs("smoke", lambda smoke: not smoke, "--nosmoke")),
    )
    occupancy_client_hours: int = setting(
        DatasetOptions.occupancy_client_hours,
        "Hours of readings that make a client of occupancy.",
        minimum=1,
        needs=needs_value("dataset", "occupancy"),
    )
    occupancy_features: str = setting(
        DatasetOptions.occupancy_features,
        "Input of occupancy: two of its readings, or all five.",
        choices=OCCUPANCY_FEATURES,
        needs=needs_value("dataset", "occupancy"),
    )
    num_clients: int = setting(
        10,
        "Number of clients; the natural and the archetype partitions bring their own.",
        minimum=1,
        smoke=SMOKE_CLIENTS,
        needs=(
            Needs("partition", lambda name: name != "natural", "another partition"),
            needs_no_archetypes("clients_per_archetype"),
        ),
    )
    partition: str = setting(
        "dirichlet",
        "How examples go to clients, natural where the data name them; hierarchical, hypergeometric: by archetype.",
        choices=PARTITION_NAMES,
    )
    dirichlet_alpha: float = setting(
        0.5,
        "Label skew of the dirichlet partition; smaller is more skewed.",
        above=0,
        needs=needs_value("partition", "dirichlet"),
    )
    labels_per_client: int = setting(
        2, "Most labels that a client has in the shards partition.", minimum=1, needs=needs_value("partition", "shards")
    )
    pachinko_alpha: float = group_flags.PACHINKO_ALPHA
    pachinko_beta: float = group_flags.PACHINKO_BETA
    variant: str = group_flags.VARIANT
    variant_groups: int = group_flags.VARIANT_GROUPS
    validation_fraction: float = setting(
        1 / 12,
        "Share of a client's examples in its own validation split.",
        minimum=0,
        maximum=0.45,
        needs=needs_no_archetypes("validation_per_client"),
    )
    test_fraction: float = setting(
        1 / 12,
        "Share of a client's examples in its own test split.",
        minimum=0,
        maximum=0.45,
        needs=needs_no_archetypes("test_per_client"),
    )
    most_train_examples: int = setting(
        0,
        "Most examples in a client's train split, the first ones where they are in order of time; 0: all.",
        minimum=0,
        needs=needs_no_archetypes("train_per_client"),
        of_old_runs=0,
    )
    new_clients: int = setting(
        0, "Clients, the last ones, that take no part in training.", minimum=0, smoke=1, needs=NOT_BY_ARCHETYPE
    )
    device_profiles: str = setting("", "CSV of the devices, or phones for the sample; empty: drawn.", of_old_runs="")
    clients_per_archetype: int = archetype_flags.CLIENTS_PER_ARCHETYPE
    train_per_client: int = archetype_flags.TRAIN_PER_CLIENT
    validation_per_client: int = archetype_flags.VALIDATION_PER_CLIENT
    test_per_client: int = archetype_flags.TEST_PER_CLIENT
    bias_min: float = archetype_flags.BIAS_MIN
    bias_max: float = archetype_flags.BIAS_MAX
    hypergeometric_draws: int = archetype_flags.HYPERGEOMETRIC_DRAWS
    hypergeometric_last_outcome: str = archetype_flags.HYPERGEOMETRIC_LAST_OUTCOME
    validation_pool: float = archetype_flags.VALIDATION_POOL_SHARE
    model: str = setting(
        "auto", f"Model: {', '.join(MODEL_NAMES)}, or module:function of your own (auto: by data set)."
    )
    teacher_model: str = setting("auto", "Teacher model, named likewise.")
    channel_axis: bool = task_flags.CHANNEL_AXIS
    activation: str = setting("linear", "Activation of the convolutions; the paper prints none.", choices=ACTIVATIONS)
    width: float = setting(1.0, f"Factor on the numbers of filters of {', '.join(WIDTH_MODELS)}.", above=0, maximum=8)
    quantize: str = setting(
        "none",
        "qat: train the model (not the teacher) for 8-bit integers, by quantization-aware training.",
        choices=QUANTIZATIONS,
    )
    qat_start_round: int = setting(
        1,
        "First round of quantization-aware training; float before it.",
        minimum=1,
        smoke=SMOKE_ROUNDS,
        needs=needs_value("quantize", "qat"),
    )
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
    fairness: bool = setting(False, "Deviation and worst tenth of the clients' accuracies in metrics.csv, too.")
    batch_size: int = setting(
        LocalTrainingConfig.batch_size, "Examples in a mini-batch; the last one of an epoch may be smaller.", minimum=1
    )
    rounds: int = setting(20, "Rounds of training.", minimum=1, maximum=10**6, smoke=SMOKE_ROUNDS)
    rounds_per_evaluation: int = setting(1, "Rounds between two evaluations; the last is always evaluated.", minimum=1)
    rounds_per_shared_evaluation: int = setting(
        1, "Rounds between two evaluations of the shared models on all test and validation examples.", minimum=1
    )
    evaluated_clients: int = setting(1000, "Clients, drawn by the seed, evaluated in a round; 0: all.", minimum=0)
    finally_evaluated_clients: int = setting(
        10_000,
        "Clients, drawn by the seed, evaluated when the run is over, beside all new ones; 0: all.",
        minimum=0,
        of_old_runs=10_000,
    )
    rounds_per_checkpoint: int = setting(1, "Rounds between two checkpoints; the last is always kept.", minimum=1)
    target_accuracy: float = setting(0.0, "Stop at this test accuracy; 0 means never.", minimum=0, maximum=1)
    target_metric: float = task_flags.TARGET_METRIC
    keep_best: bool = setting(
        False, "Keep the models of the round with the best client_validation_accuracy, too.", of_old_runs=False
    )
    seed: int = setting(0, "Seed of everything random.", minimum=0, maximum=10**9)
    run_dir: str = setting("", "Run folder; empty: the next free one under runs/.")
    resume: bool = setting(
        False, "Go on with the run in --run_dir from its last checkpoint; other flags may be left out."
    )
    overwrite: bool = setting(False, "Replace the run in --run_dir.")
    trust_module: str = setting(
        "", "With --resume: modules of yours that the run names and that may be imported, with commas between them."
    )
    track: str = setting(NO_TRACKER, "Tracker that the run is sent to while it goes on.", choices=TRACKER_CHOICES)
    runtime: str = setting(
        TFF,
        "What runs the computations: TFF's worker, TensorFlow in this process, or a Ray cluster.",
        choices=RUNTIMES,
        of_old_runs=TFF,
    )
    device: str = setting(
        CPU, "What TensorFlow computes on; auto: a GPU if it sees one.", choices=DEVICES, of_old_runs=CPU
    )
    workers: str = setting(
        "",
        "host:port or unix:/path of TFF workers that run already, with commas between them; empty: one of its own.",
        needs=needs_value("runtime", TFF),
    )
    ray_address: str = setting(
        "",
        "Ray cluster: host:port, ray://host:port, or auto for the one of this machine; empty: one of this run's own.",
        needs=needs_value("runtime", RAY),
    )
    ray_shares: int = setting(
        RAY_SHARES,
        "Shares of a round's clients, on Ray; at least the cores of the cluster, so that none is idle.",
        minimum=1,
        maximum=10**4,
        needs=needs_value("runtime", RAY),
        of_old_runs=RAY_SHARES,
    )
    plot_formats: str = setting(
        "png", "Formats of the plots in the run folder.", choices=PLOT_FORMATS, of_old_runs="png"
    )
    plot_smoothing: int = setting(
        0,
        "Evaluated rounds that plots average curves over; the raw ones stay visible. 0: none.",
        minimum=0,
        of_old_runs=0,
    )
    run_page: bool = setting(True, "Write report.html, the page of the run, at its end.", of_old_runs=False)
    smoke: bool = setting(
        False,
        f"Try the flags in seconds: random data, {SMOKE_ROUNDS} rounds, {SMOKE_CLIENTS} clients or one per archetype.",
    )

    def __post_init__(self):
        check(self)
        check_run_settings(self)

    @property
    def worker_addresses(self) -> list[str]:
        """The workers that run already, each "host:port" or "unix:/path"; empty for one of our own."""
        return [address.strip() for address in self.workers.split(",") if address.strip()]


def shared_fields() -> list[FlagField]:
    """The flags of every algorithm; the default of `--algo` is None."""
    first = next(iter(ALGORITHMS))
    fields = iterate_fields(RunConfig(algo=first), "")
    return [field._replace(default=None) if field.name == "algo" else field for field in fields]


def find_algorithm(spelling: Any) -> Algorithm:
    """The row of an algorithm as `--algo` spells it: one of `ALGORITHMS`, or a user's own as "module:ALGORITHM".

    Raises:
      ConfigError: it is spelled like neither.
      FlagError: the user's module or row cannot be used.
    """
    if not is_algorithm_spelling(spelling):
        raise ConfigError("algo", spelling, _declare_algo().describe_range())
    if spelling in ALGORITHMS:
        return ALGORITHMS[spelling]
    return load_own_algorithm(spelling, shared_fields())


def is_algorithm_spelling(value: Any) -> bool:
    """Whether `--algo` could be spelled so; a user's own module is not looked for."""
    return isinstance(value, str) and _declare_algo().admits(value)


def _declare_algo() -> Setting:
    return RunConfig.__dataclass_fields__["algo"].metadata["setting"]


def algorithm_fields(spelling: str) -> list[FlagField]:
    """The flags `--<name>_<field>` of one algorithm."""
    algorithm = find_algorithm(spelling)
    return list(iterate_fields(algorithm.default_config(), algorithm.flag_prefix, algorithm.fields_without_flag))


def build_run_config(values: Mapping[str, Any]) -> RunConfig:
    """The config of flags given as {name: value}; those not given have their defaults.

    Raises:
      ConfigError: no `algo`, or a value is out of its range or conflicts with another.
      DatasetError: a user's own data set cannot be imported.
      FlagError: the algorithm is the user's own and cannot be used.
    """
    algorithm = find_algorithm(values.get("algo"))
    defaults = dict(algorithm.shared_defaults)
    if values.get("data"):
        defaults["dataset"] = FILES
    dataset = values.get("dataset", defaults.get("dataset", RunConfig.dataset))
    check_dataset(dataset)
    task = values.get("task", AUTO)
    known = {field.name for field in dataclasses.fields(DatasetOptions)} & set(values)
    options = DatasetOptions(**{**{name: values[name] for name in known}, "task": "" if task == AUTO else task})
    row = find_dataset(dataset)
    if "partition" not in values and (partition := row.find_partition(options)):
        defaults["partition"] = partition
    values = {**defaults, **values}
    shared = {field.name: values[field.name] for field in shared_fields() if field.name in values}
    config = RunConfig(**shared)
    with_batch_size = {**values, "batch_size": config.batch_size}
    settings = replace_fields(algorithm.default_config(), algorithm.flag_prefix, with_batch_size)
    config = dataclasses.replace(config, algorithm=settings)
    config = shrink_to_smoke(config) if config.smoke else config
    config = dataclasses.replace(config, algorithm=config.algorithm.plan_rounds(config.rounds))
    with prefix_errors(algorithm.flag_prefix):
        config.algorithm.check_run(config.rounds)
    return config


def flag_values(config: RunConfig) -> dict[str, Any]:
    """Every flag of the config with its value: what `build_run_config` reads back, and flagfiles can hold."""
    algorithm = find_algorithm(config.algo)
    own = iterate_fields(config.algorithm, algorithm.flag_prefix, algorithm.fields_without_flag)
    return {field.name: field.default for field in (*iterate_fields(config, ""), *own)}


def find_idle(config: RunConfig) -> dict[str, IdleFlag]:
    """The flags that do nothing in this config, by name."""
    algorithm = find_algorithm(config.algo)
    own = find_idle_flags(config.algorithm, algorithm.flag_prefix, algorithm.fields_without_flag)
    return {**find_idle_flags(config, ""), **own}
