"""What we compare beside the AMFL-P paper: which runs belong to it, and what is read from one. Imports no TensorFlow.

- Factorial: the start (FedAvg, MAML, random) times the finish (the same steps for all, steps and rate by resources).
  Local training and FedAvg alone stand beside it.
- Few-shot: few readings a sensor, and sensors that took no part in training.
- Ablations: AMFL-P with one thing changed.
- Defaults: four algorithms without flags, and FedAvg with the best of its trials.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from launch.papers.engine.collection import summarize
from launch.papers.engine.markdown import format_measured
from launch.runs import columns
from launch.runs.run_records import RunRecord, read_columns, read_rows, read_summary

ACCURACY = columns.CLIENT_TEST_ACCURACY
FEDAVG, MAML, RANDOM = STARTS = ("fedavg", "maml", "random")
START_TITLES = {FEDAVG: "FedAvg", MAML: "MAML", RANDOM: "random"}
SAME, RESOURCES = FINISHES = ("same", "resources")
FINISH_TITLES = {SAME: "the same for all", RESOURCES: "by resources"}
STRUCTURED = "structured"  # counted for no claim
DEGREES = ("low", "medium", "high", STRUCTURED)
READINGS = ("16", "32", "64", "all")
NEW_SENSORS = 20  # of the 100 in few-shot runs
FEW_SHOT_STARTS = {"fedavg": "FedAvg", "maml1": "MAML, K = 1", "maml5": "MAML, K = 5", "maml10": "MAML, K = 10"}
LOCAL = "local"
ABLATIONS = {
    "weighting_examples": "weighted by examples",
    "weighting_equal": "weighted equally",
    "weighting_resource": "weighted by resources alone",
    "weighting_quality": "weighted by quality alone",
    "quality_fine_tuned": "quality of the fine-tuned model, as printed",
    "dynamic": "dynamic resources",
    "rule_steps": "steps by resources, the same rate",
    "printed_adam": "the printed rates, with Adam",
    "printed_sgd": "the printed rates, with SGD",
}
PLACES = {
    "building_low": "building, low",
    "building_medium": "building, medium",
    "building_high": "building, high",
    "har_subjects": "HAR by subject",
    "digits_archetypes": "digits by archetype",
    "mnist_archetypes": "MNIST by archetype",
    "cifar10_shards": "CIFAR-10, two labels a client",
}
# Where the defaults are to have local training's accuracy or more.
DEMANDED = ("building_low", "building_medium", "building_high", "har_subjects", "digits_archetypes")
CHOSEN_ON = ("building_medium", "har_subjects")  # whose validation splits chose the defaults
CHOSEN_FEDAVG = "fedavg_chosen"  # by its trials, whose best is not its default (docs/algorithms.md)
DEFAULT_ROWS = {
    "amfl_p": "AMFL-P",
    "fine_tuning": "Fine-Tuning",
    "fedavg": "FedAvg",
    CHOSEN_FEDAVG: "FedAvg, its trials' best",
    "local_only": "local training",
}
DEFAULT_ALGOS = tuple(algo for algo in DEFAULT_ROWS if algo != CHOSEN_FEDAVG)

FACTORIAL_RUNS = rf"start_({'|'.join(STARTS)})_({'|'.join(FINISHES)})_building_({'|'.join(DEGREES)})"
LOCAL_RUNS = rf"local_training_building_({'|'.join(DEGREES)})"
ALONE_RUNS = rf"fedavg_alone_building_({'|'.join(DEGREES)})"  # FedAvg's global model, tuned for itself
FEW_SHOT_RUNS = rf"few_shot_({'|'.join([*FEW_SHOT_STARTS, LOCAL])})_building_({'|'.join(READINGS)})"
ABLATION_RUNS = rf"ablation_({'|'.join(ABLATIONS)})_building_medium"
DEFAULT_RUNS = rf"defaults_({'|'.join(DEFAULT_ROWS)})_({'|'.join(PLACES)})"
EXPERIMENTS = "|".join((FACTORIAL_RUNS, LOCAL_RUNS, ALONE_RUNS, FEW_SHOT_RUNS, ABLATION_RUNS, DEFAULT_RUNS))

BySeed = Mapping[int, float]


class FinalResult(NamedTuple):
    """Of a run: accuracy over the clients' own test splits, and that of their majority class, None if not measured."""

    accuracy: float
    majority: float | None


Results = Mapping[tuple[str, ...], Mapping[int, FinalResult]]  # by the groups of a run's name, and by seed


def read_final(run: RunRecord) -> FinalResult | None:
    """What a run ends with; None if it ended early."""
    last = max(run.rounds, default=0)
    if last < run.flags["rounds"] or ACCURACY not in run.rounds[last]:
        return None
    return FinalResult(run.rounds[last][ACCURACY], read_majority(run))


def read_majority(run: RunRecord, whose: str = "clients") -> float | None:
    """The accuracy of each client's majority class, the mean over the clients, or over `columns.NEW_CLIENTS`."""
    return read_summary(run).get(whose, {}).get(columns.MAJORITY_ACCURACY)


def group_by_name(
    runs: Iterable[RunRecord], pattern: str, read: Callable[[RunRecord], Hashable | None]
) -> dict[tuple[str, ...], dict[int, Hashable]]:
    """What is read from the runs whose names match the pattern whole, by its groups and by seed; None is left out."""
    found: dict[tuple[str, ...], dict[int, Hashable]] = {}
    for run in runs:
        match = re.fullmatch(pattern, run.experiment)
        if match is not None and (read_out := read(run)) is not None:
            found.setdefault(match.groups(), {})[run.flags["seed"]] = read_out
    return found


def take_accuracies(results: Mapping[int, FinalResult]) -> dict[int, float]:
    return {seed: result.accuracy for seed, result in results.items()}


def collect_majority(results: Iterable[Mapping[int, FinalResult]]) -> dict[int, float]:
    """The majority class's accuracy by seed, from any of the runs: it is the data's, and no algorithm's."""
    return {seed: result.majority for each in results for seed, result in each.items() if result.majority is not None}


def format_accuracy(by_seed: BySeed, absent: str = "not run") -> str:
    """Mean and deviation over the seeds, in per cent."""
    return format_measured(ACCURACY, summarize(list(by_seed.values())) if by_seed else None, absent)


class CurveRow(NamedTuple):
    """A row of fine_tuning.csv: whose, after how many steps, and the two starts' accuracies."""

    group: str
    steps: int
    trained: float
    random: float


def read_curve(run: RunRecord) -> tuple[CurveRow, ...] | None:
    """The curve of a run; None if it has none or ended early."""
    path = run.path / columns.FINE_TUNING_FILE
    if read_final(run) is None or not path.is_file():
        return None
    return tuple(
        CurveRow(
            row[columns.FINE_TUNING_CLIENTS],
            int(row[columns.FINE_TUNING_STEPS]),
            float(row[columns.TRAINED_START_ACCURACY]),
            float(row[columns.RANDOM_START_ACCURACY]),
        )
        for row in read_rows(path)
    )


def read_local(run: RunRecord) -> tuple[float, float] | None:
    """Local training's accuracy on the sensors that are members and on those that are new in the other runs.

    None if the run ended early, or says nothing of its sensors.
    """
    path = run.path / columns.CLIENTS_FILE
    accuracy: Sequence[float] = read_columns(path)[columns.ACCURACY] if path.is_file() else ()
    if read_final(run) is None or len(accuracy) <= NEW_SENSORS:
        return None
    return float(accuracy[:-NEW_SENSORS].mean()), float(accuracy[-NEW_SENSORS:].mean())
