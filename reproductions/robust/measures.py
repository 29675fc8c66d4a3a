"""What a run of an aggregator under attack gives. Imports no TensorFlow."""

from launch.runs.columns import TEST_ACCURACY
from launch.runs.run_records import RunRecord
from reproductions.engine.folder import read_toml
from reproductions.engine.tables import BySeed, Values

TEXTS = read_toml("robust", "tables.toml")
ATTACKS, AGGREGATORS = TEXTS["attack"], TEXTS["aggregator"]  # their words
NONE = "none"
PERCENT = "percent"
ROUNDS = 20  # of a whole run


def is_finished(run: RunRecord) -> bool:
    """Whether the last round is there, and evaluated."""
    return TEST_ACCURACY in run.rounds.get(ROUNDS, {})


def measure(run: RunRecord) -> dict[str, float]:
    """The accuracy in per cent after the last round; nothing of a run that is not there yet."""
    return {PERCENT: 100 * run.rounds[ROUNDS][TEST_ACCURACY]} if is_finished(run) else {}


def find_results(values: Values, aggregator: str) -> dict[str, BySeed]:
    """The accuracies of an aggregator by attack; what was not run is empty."""
    return {attack: values.get((f"fedavg_mnist_attack_{attack}_{aggregator}", PERCENT), {}) for attack in ATTACKS}
