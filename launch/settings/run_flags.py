"""The flags of rounds, clients, model, devices and run folder, as groups of `RunConfig`. Imports no TensorFlow."""

import dataclasses

from datasets.partition_settings import NOT_BY_ARCHETYPE, ArchetypeSettings, PartitionOptions
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
from tff_algos.settings.fine_tuning import FineTuningConfig
from tff_algos.settings.local_training import LocalTrainingConfig

SMOKE_ROUNDS = 2
NO_PLOTS = "none"
PLOT_FORMATS = ("png", "png,svg", "png,pdf", "png,svg,pdf", NO_PLOTS)
_TESTED = Needs("rounds_per_shared_evaluation", bool, "--{flag}=<number> above 0")


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
        1,
        "Rounds between two evaluations of the shared models on all test and validation examples; 0: never.",
        minimum=0,
    )
    evaluated_clients: int = setting(1000, "Clients, drawn by the seed, evaluated in a round; 0: all.", minimum=0)
    finally_evaluated_clients: int = setting(
        10_000,
        "Clients, drawn by the seed, evaluated at the end of the run, beside all new ones; 0: all.",
        minimum=0,
    )
    test_new_clients: bool = setting(
        True,
        "Whether new clients are tested at the end; false: they are left out, so that algorithms without a model for "
        "them can stand beside others.",
        needs=Needs("new_clients", bool, "--{flag}=<number> above 0"),
    )
    clients_by_round: bool = setting(
        False, "Write what each evaluated client reaches in each evaluated round into clients_by_round.csv.gz."
    )
    fairness: bool = setting(
        False, "Also write the deviation and worst tenth of the clients' accuracies into metrics.csv."
    )
    keep_best: bool = setting(False, "Also keep the models of the round with the best client_validation_accuracy.")
    rounds_per_checkpoint: int = setting(1, "Rounds between two checkpoints; the last is always kept.", minimum=1)
    target_accuracy: float = setting(
        0.0, "Stop at this test accuracy; 0 means never.", minimum=0, maximum=1, needs=_TESTED
    )
    target_metric: float = setting(
        0.0,
        "Stop when the task's main metric on the test set is this good; 0 means never.",
        minimum=0,
        needs=_TESTED,
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
    limit_fine_tuning: bool = setting(
        False,
        "Count the seconds of fine-tuning at the end into most_virtual_s, too.",
        needs=Needs("most_virtual_s", bool, "seconds, such as --{flag}=600"),
    )
    final_steps: int = setting(
        0,
        "Steps that each client takes on its own data at the end, from its shared model; 0: none.",
        minimum=0,
        smoke=1,
        needs=Needs("replay", lambda value: not value, "no --replay, which repeats what a live run did"),
    )
    final_learning_rate: float = setting(
        FineTuningConfig.learning_rate,
        "Rate of these steps, plain SGD on mini-batches of --batch_size.",
        above=0,
        needs=Needs("final_steps", bool, "steps, such as --{flag}=50"),
    )


@dataclasses.dataclass(frozen=True)
class PartitionFlags(PartitionOptions):
    """Clients and their parts of the data"""

    new_clients: int = setting(
        0, "Clients, the last ones, that take no part in training.", minimum=0, smoke=1, needs=NOT_BY_ARCHETYPE
    )
    draw_new_clients: bool = setting(
        False,
        "Draw these, the same ones with every seed, in place of the last.",
        needs=Needs("new_clients", bool, "--{flag}=<number> above 0"),
    )


@dataclasses.dataclass(frozen=True)
class ArchetypeFlags(ArchetypeSettings):
    """Partitions by archetype"""


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

    device_profiles: str = setting(
        "",
        "CSV of the devices, or phones for the sample; empty: drawn.",
        needs=Needs("replay", lambda value: not value, "no --replay, which has the devices' times"),
    )
    replay: str = setting(
        "", "Folder of a run of launch.serve, of which to repeat who took part and when; other flags may be left out."
    )
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
    plot_formats: str = setting("png", "Formats of the plots in the run folder; none: no plots.", choices=PLOT_FORMATS)
    plot_smoothing: int = setting(
        0,
        "Evaluated rounds that plots average curves over; the raw ones stay visible. 0: none.",
        minimum=0,
    )
    track: str = setting(NO_TRACKER, "Tracker that the run is sent to while it goes on.", choices=TRACKER_CHOICES)
