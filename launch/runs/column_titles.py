"""What columns of a run's tables are called where people read them. Imports no TensorFlow."""

from launch.runs import columns
from launch.runs.archetype_metrics import CHANGE, MIXED
from tff_algos import protocol

# Those that the rule of `title_column` would not name well.
TITLES = {
    columns.ROUND: "Round",
    columns.TEST_LOSS: "Test loss",
    columns.TRAIN_LOSS: "Training loss",
    columns.VIRTUAL_TIME_S: "Virtual time, s",
    columns.NUM_CLIENTS: "Clients that took part",
    columns.NUM_REJECTED: "Updates left out, since not finite",
    columns.BYTES_DOWN: "Bytes to clients, a round",
    columns.BYTES_UP: "Bytes from clients, a round",
    columns.TOTAL_DRIFT: "Drift of the updates",
    columns.WITHIN_CLUSTER_DRIFT: "Drift within clusters",
    columns.EPSILON_SPENT: "Epsilon spent",
    columns.NUM_PRESENT: "Clients that were there",
    columns.NUM_ASKED: "Clients that were asked",
    columns.NUM_ANSWERED: "Clients that answered",
    columns.NUM_LATE: "Answers that came too late",
    columns.NUM_MISSING: "Clients that did not answer",
    columns.NUM_RETURNS: "Clients that came back",
    protocol.NUM_ATTACKERS: "Attackers that took part",
    columns.JOULES: "Energy, J",
    columns.JOULES_TOTAL: "Energy since the start, J",
    CHANGE: "Change of a client's accuracy",
    MIXED: "Models of both meta-archetypes",
    "aggregator_clipping_norm": "Clipping norm of the aggregator",
    "live_models": "Models on the server",
    "preferred_models": "Models that a client prefers",
    "active_models": "Models on the clients, all together",
    "max_active_models": "Most models on one client",
    "num_ready": "Clients that were ready",
    "num_scheduled": "Clients that were scheduled",
    "mean_age": "Mean age of the updates",
    "max_age": "Age of the oldest update",
    "scheduled_count_std": "Deviation of how often clients were scheduled",
    "update_norm": "Norm of the update",
    # Of clients and events.
    columns.CLIENT: "Client",
    columns.NUM_TRAIN: "Train examples",
    columns.NUM_VALIDATION: "Validation examples",
    columns.NUM_TEST: "Test examples",
    columns.EXAMPLES_PER_S: "Examples a second",
    columns.DOWNLINK_BYTES_PER_S: "Downlink, bytes a second",
    columns.UPLINK_BYTES_PER_S: "Uplink, bytes a second",
    columns.DEVICE_NAME: "Device",
    columns.CLUSTER: "Cluster",
    columns.RESOURCE: "Resources",
    columns.CLIENT_STEPS: "Fine-tuning steps",
    columns.TIME_S: "Time, s",
}
_UNITS = {"_s": ", s", "_bytes": ", bytes"}
_WORDS = {"std": "deviation", "num": "number of", "rmse": "RMSE", "mae": "MAE", "auc": "AUC", "lr": "learning rate"}


def title_column(name: str) -> str:
    """A column in words: "Update norm" of `update_norm`; of a column that nobody has named, by its parts."""
    if name in TITLES:
        return TITLES[name]
    unit = next((ending for ending in _UNITS if name.endswith(ending) and len(name) > len(ending)), "")
    words = [_WORDS.get(word, word) for word in name.removesuffix(unit).split("_") if word]
    text = " ".join(words)
    return f"{text[:1].upper()}{text[1:]}{_UNITS.get(unit, '')}" or name
