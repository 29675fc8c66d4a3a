"""What AMFL-P's experiments are called, and what is measured in a run of one. Imports no TensorFlow.

- The paper's own: AMFL-P, its baselines and local training, with the rates that the paper prints.
- `start_<start>_<finish>`: a factorial of what trains the start and of how devices finish; `local_training` and
  `fedavg_alone` stand beside it. Four of these are the methods as tuned.
- `few_shot_<start>`: few readings a sensor, and sensors that took no part in training.
- `ablation_<change>`: AMFL-P with one thing changed.
- `defaults_<algorithm>_<data>`: four algorithms without flags, and FedAvg with the best of its trials.
"""

import statistics
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from launch.runs import columns
from launch.runs.run_records import RunRecord, read_columns, read_rows, read_summary
from reproductions.engine.collection import PRINTED, TUNED, Cell, Place, find_first_round
from reproductions.engine.folder import read_toml
from reproductions.engine.tables import BySeed, Values
from tff_algos.settings.fine_tuning import INITIAL

DATASET, LEVELS, TABLE_1_LEVEL = "building", ("low", "medium", "high"), "medium"
LAST_ROUND = 50
TARGET_ACCURACY = 0.75
ACCURACY, STEPS = columns.CLIENT_TEST_ACCURACY, "mean_fine_tuning_steps"
TRAINED, RANDOM = "trained", "random"  # the two starts of a curve
AMFL_P, FINE_TUNING, FEDAVG, LOCAL_ONLY = "amfl_p", "fine_tuning", "fedavg", "local_only"
OF_SENSORS = {
    columns.MEMBERS: ("accuracy_of_members", "majority"),
    columns.NEW: ("accuracy_of_new_sensors", "majority_of_new_sensors"),
}
NEW_SENSORS = 20  # of the 100 in few-shot runs
TEXTS = read_toml("amfl_p", "tables.toml")
AXES: Mapping[str, Mapping[str, str]] = TEXTS["axes"]  # names and titles
ALGOS = AXES["algorithm"]
# The methods as tuned are runs of our factorial, whose settings trials on seeds 100 to 104 chose.
TUNED_RUNS = {
    AMFL_P: "start_maml_resources",
    FINE_TUNING: "start_fedavg_same",
    FEDAVG: "fedavg_alone",
    LOCAL_ONLY: "local_training",
}
# An older search chose AMFL-P's inner rate and the steps of FedAvg's start, and saw these buildings. So what is tuned
# is shown and judged without them, but for a degree of heterogeneity that has no others and counts for no claim.
SEEN_SEEDS, STRUCTURED = range(5), "structured"
TUNED_KINDS = ("start_", "few_shot_", "ablation_", *TUNED_RUNS.values())
PLACES = {
    f"{names.get(algo, algo)}_{DATASET}_{level}": Place(preset, DATASET, level, algo)
    for preset, names in ((PRINTED, {}), (TUNED, TUNED_RUNS))
    for algo in ALGOS
    for level in LEVELS
}
# A start with few readings: whose runs have it, and as which of the two. Random weights are the same in all of a seed.
FEW_SHOT_RUNS = {start: (start, TRAINED) for start in AXES["few_shot_start"]} | {RANDOM: (FEDAVG, RANDOM)}
Line = Mapping[int, BySeed]


def counts(run: RunRecord) -> bool:
    """Whether a run counts: one with tuned settings does on buildings that no search saw."""
    is_tuned = run.experiment.startswith(TUNED_KINDS) and not run.experiment.endswith(STRUCTURED)
    return not (is_tuned and run.flags["seed"] in SEEN_SEEDS)


def leave_out_seen(by_seed: BySeed) -> BySeed:
    """What stands beside tuned runs: the seeds that no search saw."""
    return {seed: value for seed, value in by_seed.items() if seed not in SEEN_SEEDS}


def make_cell(algo: str, level: str = TABLE_1_LEVEL, metric: str = ACCURACY) -> Cell:
    """A result at the end of a run."""
    return Cell(DATASET, level, algo, LAST_ROUND, metric)


def find(values: Values, name: str, degree: str = TABLE_1_LEVEL, number: Hashable = ACCURACY) -> BySeed:
    """A number of an experiment on the building, by seed."""
    return values.get((f"{name}_{DATASET}_{degree}", number), {})


def find_line(values: Values, name: str, degree: str, start: str = TRAINED, whose: str = columns.MEMBERS) -> Line:
    """{fine-tuning steps: {seed: accuracy}} of an experiment on the building, in the order of the steps."""
    experiment = f"{name}_{DATASET}_{degree}"
    found = {
        number[2]: by_seed
        for (each, number), by_seed in values.items()
        if each == experiment and isinstance(number, tuple) and number[:2] == (start, whose)
    }
    return dict(sorted(found.items()))


def find_few_shot(values: Values, start: str, readings: str, whose: str = columns.MEMBERS) -> Line:
    """The line of a start with few readings."""
    runs, kind = FEW_SHOT_RUNS[start]
    return find_line(values, f"few_shot_{runs}", readings, kind, whose)


def measure(run: RunRecord) -> dict[Hashable, float]:
    """Every number of a run; nothing of one that ended early."""
    last = run.rounds.get(run.flags["rounds"], {})
    if ACCURACY not in last:
        return {}
    summary = read_summary(run)
    accuracies = {round_num: row[ACCURACY] for round_num, row in run.rounds.items() if ACCURACY in row}
    numbers = {
        ACCURACY: last[ACCURACY],
        "majority": summary.get("clients", {}).get(columns.MAJORITY_ACCURACY),
        "majority_of_new_sensors": summary.get(columns.NEW_CLIENTS, {}).get(columns.MAJORITY_ACCURACY),
        "start_gain": summary.get(columns.START, {}).get(columns.GAIN),
        "start_change": summary.get(columns.START, {}).get(columns.RELATIVE_CHANGE),
        "rounds_to_target": find_first_round(accuracies, TARGET_ACCURACY, LAST_ROUND),
        STEPS: count_mean_steps(run),
        **measure_costs(run, summary),
        **dict(read_curve(run)),
    }
    if run.experiment.startswith("few_shot_local"):
        numbers |= read_groups(run)
    return {name: value for name, value in numbers.items() if value is not None}


def count_mean_steps(run: RunRecord) -> float:
    """Fine-tuning steps of a device, the mean over the devices; none without fine-tuning."""
    if run.flags["algo"] == FINE_TUNING:
        return float(run.flags["steps"])  # the same for all, so there is no column of it
    return run.rounds[max(run.rounds)].get(STEPS, 0.0)


def measure_costs(run: RunRecord, summary: Mapping[str, Any]) -> dict[str, float]:
    """Examples that all devices together trained on, before the finish and in it; one seen twice counts twice.

    Nothing of a run whose devices train for epochs, since batches vary then.
    """
    algo = run.flags["algo"]
    own = summary.get(algo, {})
    training = own.get("energy_of_training_examples")
    is_fine_tuned = algo == FINE_TUNING
    if is_fine_tuned and run.flags.get("start") == INITIAL:
        training = 0.0  # what was trained is not used
    if training is None:
        steps = run.flags.get("local_steps" if is_fine_tuned else "steps", 0)
        devices = sum(metrics.get(columns.NUM_CLIENTS, 0.0) for metrics in run.rounds.values())
        training = devices * steps * read_mean_batch(run) if steps and devices else None
    if training is None:
        return {}
    return {"examples_of_training": training, "examples_of_finish": own.get("energy_of_fine_tuning_examples", 0.0)}


def read_mean_batch(run: RunRecord) -> float:
    """Examples in a step, the mean over the devices: a batch, or all that a device has, as the finish counts them.

    A whole batch if it is not kept how many a device has.
    """
    path, batch_size = run.path / columns.CLIENTS_FILE, run.flags["batch_size"]
    counts = read_columns(path).get(columns.NUM_TRAIN, ()) if path.is_file() else ()
    return statistics.fmean(min(batch_size, size) for size in counts) if len(counts) else float(batch_size)


def read_curve(run: RunRecord) -> Iterator[tuple[tuple[str, str, int], float]]:
    """((start, whose, fine-tuning steps), accuracy) for each row of fine_tuning.csv."""
    path = run.path / columns.FINE_TUNING_FILE
    for row in read_rows(path) if path.is_file() else ():
        place = row[columns.FINE_TUNING_CLIENTS], int(row[columns.FINE_TUNING_STEPS])
        yield (TRAINED, *place), float(row[columns.TRAINED_START_ACCURACY])
        yield (RANDOM, *place), float(row[columns.RANDOM_START_ACCURACY])


def read_groups(run: RunRecord) -> dict[str, float]:
    """Local training's accuracy on the sensors that are members, and on those that are new, in the other runs."""
    path = run.path / columns.CLIENTS_FILE
    accuracy = read_columns(path)[columns.ACCURACY] if path.is_file() else ()
    if len(accuracy) <= NEW_SENSORS:
        return {}
    return {
        "accuracy_of_members": float(accuracy[:-NEW_SENSORS].mean()),
        "accuracy_of_new_sensors": float(accuracy[-NEW_SENSORS:].mean()),
    }
