"""What columns of a run's tables are called where people read them. Imports no TensorFlow."""

from launch.runs.archetype_metrics import CHANGE, MIXED
from launch.runs.columns import (
    BYTES_DOWN,
    BYTES_UP,
    CLIENT,
    CLIENT_STEPS,
    CLUSTER,
    DEVICE_NAME,
    DOWNLINK_BYTES_PER_S,
    EPSILON_SPENT,
    EXAMPLES_PER_S,
    JOULES,
    JOULES_TOTAL,
    NUM_CLIENTS,
    NUM_REJECTED,
    NUM_TEST,
    NUM_TRAIN,
    NUM_VALIDATION,
    RESOURCE,
    ROUND,
    TEST_LOSS,
    TIME_S,
    TOTAL_DRIFT,
    TRAIN_LOSS,
    UPLINK_BYTES_PER_S,
    VIRTUAL_TIME_S,
    WITHIN_CLUSTER_DRIFT,
)

# Those that the rule of `title_column` would not name well.
TITLES = {
    ROUND: "Round",
    TEST_LOSS: "Test loss",
    TRAIN_LOSS: "Training loss",
    VIRTUAL_TIME_S: "Virtual time, s",
    NUM_CLIENTS: "Clients that took part",
    NUM_REJECTED: "Updates left out, since not finite",
    BYTES_DOWN: "Bytes to clients, a round",
    BYTES_UP: "Bytes from clients, a round",
    TOTAL_DRIFT: "Drift of the updates",
    WITHIN_CLUSTER_DRIFT: "Drift within clusters",
    EPSILON_SPENT: "Epsilon spent",
    JOULES: "Energy, J",
    JOULES_TOTAL: "Energy since the start, J",
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
    CLIENT: "Client",
    NUM_TRAIN: "Train examples",
    NUM_VALIDATION: "Validation examples",
    NUM_TEST: "Test examples",
    EXAMPLES_PER_S: "Examples a second",
    DOWNLINK_BYTES_PER_S: "Downlink, bytes a second",
    UPLINK_BYTES_PER_S: "Uplink, bytes a second",
    DEVICE_NAME: "Device",
    CLUSTER: "Cluster",
    RESOURCE: "Resources",
    CLIENT_STEPS: "Fine-tuning steps",
    TIME_S: "Time, s",
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
