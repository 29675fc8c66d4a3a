"""The flags of rounds, clients, model, devices and run folder, as groups of `RunConfig`. Imports no TensorFlow."""

import dataclasses

from datasets.partition_settings import (
    ARCHETYPE_PARTITIONS,
    LAST_OUTCOMES,
    MERGE,
    NATURAL,
    NO_VARIANT,
    PARTITION_NAMES,
    VALIDATION_POOL,
    VARIANTS,
    ArchetypeSettings,
    PachinkoSettings,
    VariantSettings,
)
from launch.settings.runtimes import AUTO, COMPILATIONS, CPU, DEVICES, IN_PROCESS, OFF, RAY, RAY_SHARES, RUNTIMES, TFF
from launch.settings.trackers import NO_TRACKER, TRACKER_CHOICES
from models.model_names import (
    ACTIVATIONS,
    AUGMENTATIONS,
    MODEL_NAMES,
    PRECISIONS,
    QUANTIZATIONS,
    WIDTH_MODELS,
    is_own_model,
)
from tff_algos.settings.config_fields import SMOKE_CLIENTS, Needs, needs_value, setting
from tff_algos.settings.local_training import LocalTrainingConfig

SMOKE_ROUNDS = 2
NOT_BY_ARCHETYPE = Needs("partition", lambda name: name not in ARCHETYPE_PARTITIONS, "another partition")
BY_ARCHETYPE = Needs("partition", lambda name: name in ARCHETYPE_PARTITIONS, "--{flag}=hierarchical")
HIERARCHICAL, HYPERGEOMETRIC = (needs_value("partition", name) for name in ("hierarchical", "hypergeometric"))
NATURAL_CLIENTS = needs_value("partition", NATURAL)
PLOT_FORMATS = ("png", "png,svg", "png,pdf", "png,svg,pdf")


@dataclasses.dataclass(frozen=True)
class RoundFlags:
    """Rounds, evaluation and checkpoints"""

    rounds: int = setting(20, "Rounds of training.", minimum=1, maximum=10**6, smoke=SMOKE_ROUNDS)
    batch_size: int = setting(
        LocalTrainingConfig.batch_size, "Examples in a mini-batch; the last one of an epoch may be smaller.", minimum=1
    )
    seed: int = setting(0, "Seed of everything random.", minimum=0, maximum=10**9)
    rounds_per_evaluation: int = setting(1, "Rounds between two evaluations; the last is always evaluated.", minimum=1)
    rounds_per_shared_evaluation: int = setting(
        1, "Rounds between two evaluations of the shared models on all test and validation examples.", minimum=1
    )
    evaluated_clients: int = setting(1000, "Clients, drawn by the seed, evaluated in a round; 0: all.", minimum=0)
    finally_evaluated_clients: int = setting(
        10_000,
        "Clients, drawn by the seed, evaluated at the end of the run, beside all new ones; 0: all.",
        minimum=0,
    )
    fairness: bool = setting(
        False, "Also write the deviation and worst tenth of the clients' accuracies into metrics.csv."
    )
    keep_best: bool = setting(False, "Also keep the models of the round with the best client_validation_accuracy.")
    rounds_per_checkpoint: int = setting(1, "Rounds between two checkpoints; the last is always kept.", minimum=1)
    target_accuracy: float = setting(0.0, "Stop at this test accuracy; 0 means never.", minimum=0, maximum=1)
    target_metric: float = setting(
        0.0,
        "Stop when the task's main metric on the test set is this good; 0 means never.",
        minimum=0,
    )
    patience: int = setting(
        0,
        "Stop after so many evaluations without a better client_validation_accuracy, or the task's own; 0 means never.",
        minimum=0,
    )
    most_bytes: float = setting(
        0.0, "Stop before the round with which all bytes so far, both ways, would pass this; 0 means never.", minimum=0
    )
    most_virtual_s: float = setting(
        0.0, "Stop before the round with which the virtual time would pass so many seconds; 0 means never.", minimum=0
    )


def needs_no_archetypes(flag: str) -> Needs:
    """For what the partitions by archetype replace by another flag."""
    return Needs("partition", lambda name: name not in ARCHETYPE_PARTITIONS, f"--{flag} in its place")


@dataclasses.dataclass(frozen=True)
class PartitionFlags:
    """Clients and their parts of the data"""

    num_clients: int = setting(
        10,
        "Number of clients; the natural and the archetype partitions bring their own.",
        minimum=1,
        smoke=SMOKE_CLIENTS,
        needs=(
            Needs("partition", lambda name: name != "natural", "--most_clients in its place"),
            needs_no_archetypes("clients_per_archetype"),
        ),
    )
    partition: str = setting(
        "dirichlet",
        "How examples go to clients. natural: as the data say; hierarchical, hypergeometric: by archetype.",
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
    pachinko_alpha: float = setting(
        PachinkoSettings.pachinko_alpha,
        "Concentration of the kinds of classes in the pachinko partition; smaller is more skewed.",
        above=0,
        needs=needs_value("partition", "pachinko"),
    )
    pachinko_beta: float = setting(
        PachinkoSettings.pachinko_beta,
        "Concentration of the classes within a kind in the pachinko partition.",
        above=0,
        needs=needs_value("partition", "pachinko"),
    )
    variant: str = setting(
        NO_VARIANT,
        "rotated, permuted: each group of clients sees the images turned or permuted in its own way; relabelled: with "
        "its own order of the labels.",
        choices=VARIANTS,
        needs=NOT_BY_ARCHETYPE,
    )
    variant_groups: int = setting(
        VariantSettings.groups,
        "Groups of --variant; 1, 2 or 4 where images are turned.",
        minimum=1,
        needs=Needs("variant", lambda kind: kind != NO_VARIANT, "--variant=rotated"),
    )
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
    )
    fewest_examples: int = setting(
        0,
        "Clients of the data with fewer examples to train on are left out; counted before validation splits.",
        minimum=0,
        needs=NATURAL_CLIENTS,
    )
    most_clients: int = setting(
        0, "Most clients of those that the data have, drawn by the seed; 0: all.", minimum=0, needs=NATURAL_CLIENTS
    )
    new_clients: int = setting(
        0, "Clients, the last ones, that take no part in training.", minimum=0, smoke=1, needs=NOT_BY_ARCHETYPE
    )


@dataclasses.dataclass(frozen=True)
class ArchetypeFlags:
    """Partitions by archetype"""

    clients_per_archetype: int = setting(
        ArchetypeSettings.clients_per_archetype,
        "Clients of each archetype; 0: 3 of ten (hierarchical), 5 of six (hypergeometric).",
        minimum=0,
        needs=BY_ARCHETYPE,
    )
    train_per_client: int = setting(
        ArchetypeSettings.train_per_client,
        "Examples in a client's train split, by archetype.",
        minimum=1,
        smoke=20,
        needs=BY_ARCHETYPE,
    )
    validation_per_client: int = setting(
        ArchetypeSettings.validation_per_client,
        "Examples in a client's validation split, by archetype.",
        minimum=0,
        smoke=5,
        needs=BY_ARCHETYPE,
    )
    test_per_client: int = setting(
        ArchetypeSettings.test_per_client, "Examples in its test split.", minimum=0, smoke=5, needs=BY_ARCHETYPE
    )
    bias_min: float = setting(
        ArchetypeSettings.bias_min,
        "Smallest share of its archetype's label in a hierarchical client.",
        minimum=0,
        maximum=1,
        needs=HIERARCHICAL,
    )
    bias_max: float = setting(
        ArchetypeSettings.bias_max,
        "Largest share of it; the client's is drawn between the two.",
        minimum=0,
        maximum=1,
        needs=HIERARCHICAL,
    )
    hypergeometric_draws: int = setting(
        ArchetypeSettings.hypergeometric_draws,
        "Draws n of the hypergeometric partition: labels less one; as many as labels give one outcome too many.",
        minimum=1,
        needs=HYPERGEOMETRIC,
    )
    hypergeometric_last_outcome: str = setting(
        MERGE,
        "The outcome too many: merge it with the one before, or drop it.",
        choices=LAST_OUTCOMES,
        needs=HYPERGEOMETRIC,
    )
    validation_pool: float = setting(
        VALIDATION_POOL, "Share of the train part to validate on.", above=0, maximum=0.5, needs=BY_ARCHETYPE
    )


@dataclasses.dataclass(frozen=True)
class ModelFlags:
    """Models"""

    model: str = setting(
        "auto", f"Model: {', '.join(MODEL_NAMES)}, or module:function of your own (auto: by data set)."
    )
    teacher_model: str = setting("auto", "Teacher model, with the same choices.")
    channel_axis: bool = setting(
        False,
        "Give your own model features as (features, 1), as runs of earlier versions did, not as (features,).",
        needs=Needs("model", is_own_model, "--model=module:function"),
        of_old_runs=True,
    )
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
        "Number format of the models' layers; weights, logits, losses and aggregation are always float32.",
        choices=PRECISIONS,
    )
    augment: str = setting(
        "none",
        "crop_flip: images are shifted by up to 4 pixels and mirrored at random while a client trains.",
        choices=AUGMENTATIONS,
    )


@dataclasses.dataclass(frozen=True)
class DeviceFlags:
    """Devices, and what computes the run"""

    device_profiles: str = setting("", "CSV of the devices, or phones for the sample; empty: drawn.")
    runtime: str = setting(
        IN_PROCESS,
        "What runs the computations: TensorFlow in this process, TFF's own worker, or a Ray cluster.",
        choices=RUNTIMES,
        of_old_runs=TFF,
    )
    device: str = setting(CPU, "What TensorFlow computes on; auto: a GPU if it sees one.", choices=DEVICES)
    compile: str = setting(
        AUTO,
        "Compile training by XLA; auto: that of small dense models, where the run is long enough to gain.",
        choices=COMPILATIONS,
        of_old_runs=OFF,
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
    )


@dataclasses.dataclass(frozen=True)
class FolderFlags:
    """The run folder, and what is written into it"""

    run_dir: str = setting("", "Run folder; empty: the next free one under runs/.")
    resume: bool = setting(
        False, "Go on with the run in --run_dir from its last checkpoint; other flags may be left out."
    )
    overwrite: bool = setting(False, "Replace the run in --run_dir.")
    trust_module: str = setting(
        "", "With --resume: modules of yours that the run names and that may be imported, with commas between them."
    )
    smoke: bool = setting(
        False,
        f"Try the flags in seconds: random data, {SMOKE_ROUNDS} rounds, {SMOKE_CLIENTS} clients or one per archetype.",
    )
    run_page: bool = setting(True, "Write report.html, the page of the run, at its end.")
    plot_formats: str = setting("png", "Formats of the plots in the run folder.", choices=PLOT_FORMATS)
    plot_smoothing: int = setting(
        0,
        "Evaluated rounds that plots average curves over; the raw ones stay visible. 0: none.",
        minimum=0,
    )
    track: str = setting(NO_TRACKER, "Tracker that the run is sent to while it goes on.", choices=TRACKER_CHOICES)
