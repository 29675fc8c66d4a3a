"""How a training file takes a step: as the clients of its run did, as far as one file can. Imports no TensorFlow."""

from collections.abc import Iterator
from typing import NamedTuple

from launch.settings.algorithms import ALGORITHMS
from launch.settings.run_config import RunConfig, find_algorithm
from launch.tflite.export_plan import ModelExport
from launch.training.finished_run import FinishedRun
from tff_algos.settings.fine_tuning import RESOURCES
from tff_algos.settings.local_training import LocalTrainingConfig


class PhoneTraining(NamedTuple):
    """The local training of a run, as its files' JSON says it.

    Attributes:
      optimizer: sgd or adam.
      momentum: of sgd.
      weight_decay: of kernels.
      proximal_weight: of the pull to the weights that a round began with.
      learning_rate: of the run, in the round that the model is of; None where the run has none that is known. An input
        of `train`, so no more than a suggestion.
      not_in_file: what else the clients' training did, which the file does not do.
    """

    optimizer: str = "sgd"
    momentum: float = 0.0
    weight_decay: float = 0.0
    proximal_weight: float = 0.0
    learning_rate: float | None = None
    not_in_file: tuple[str, ...] = ()


def find_phone_training(run: FinishedRun, export: ModelExport) -> PhoneTraining:
    """How the clients of a run trained this model."""
    settings, is_personal = run.config.algorithm, export.is_personal
    not_in_file = (*_list_left_out(run.config, export), *_list_left_out_of_all(run.config, export))
    if is_personal and hasattr(settings, "fine_tuning"):
        # By its resources, a client has a rate of its own, of which the setting is the largest.
        rate = None if settings.fine_tuning.rule == RESOURCES else settings.fine_tuning.learning_rate
        return PhoneTraining(learning_rate=rate, not_in_file=not_in_file)
    if is_personal and run.config.final_steps:
        return PhoneTraining(learning_rate=run.config.final_learning_rate, not_in_file=not_in_file)
    if hasattr(settings, "inner_learning_rate"):  # AMFL-P
        return PhoneTraining(learning_rate=settings.inner_learning_rate, not_in_file=not_in_file)
    training = find_local_training(run, export)
    if training is None:
        return PhoneTraining(not_in_file=not_in_file)
    pull, name = training.proximal_weight, find_algorithm(run.config.algo).name
    if name == "pfedme":  # whose steps are pulled to the client's copy of w
        pull = settings.pull
    elif name == "ditto" and is_personal:  # a client's own model is pulled to the shared one instead
        pull = 0.0
    rate = training.round_learning_rate(max(run.rounds, 1))
    return PhoneTraining(training.optimizer, training.momentum, training.weight_decay, pull, rate, not_in_file)


def find_local_training(run: FinishedRun, export: ModelExport) -> LocalTrainingConfig | None:
    """The settings by which the clients trained this model; None of an algorithm that has none such."""
    # Algorithms with teachers call the training of the others `student`.
    names = ("teacher_training",) if export.is_teacher else ("student", "training")
    settings = run.config.algorithm
    training = next((getattr(settings, name) for name in names if hasattr(settings, name)), None)
    return training if isinstance(training, LocalTrainingConfig) else None


def _list_left_out(config: RunConfig, export: ModelExport) -> Iterator[str]:
    """What the algorithm's clients do beside steps of their optimizer."""
    row, settings = find_algorithm(config.algo), config.algorithm
    if export.is_personal and (config.final_steps or hasattr(settings, "fine_tuning")):
        return  # plain steps
    if row.name in ("fedsikd", "random_cluster") and settings.trains_teacher and not export.is_teacher:
        yield f"the teacher's part of the loss (label_weight={settings.label_weight:g}): it trains on labels alone"
    elif row.beside_steps:
        yield row.beside_steps.format(**vars(settings))
    elif row.name not in ALGORITHMS:
        yield "what an algorithm of your own adds to the steps of its settings `training`"


def _list_left_out_of_all(config: RunConfig, export: ModelExport) -> Iterator[str]:
    """What any algorithm's clients may do."""
    if config.augment != "none":
        yield f"augmentation (augment={config.augment})"
    if config.weight_column:
        yield f"the weights of examples (weight_column={config.weight_column}): all count alike"
    if config.quantize != "none" and not export.is_teacher:
        yield "the rounding of quantization-aware training: it trains the float model"
    if config.precision != "float32":
        yield f"the rounding of precision={config.precision}: it computes in float32"
    privacy = getattr(config.algorithm, "privacy", None)
    if privacy is not None and privacy.is_active:
        yield "the clipping of an update and its noise (dp_epsilon), which are the server's to add"
