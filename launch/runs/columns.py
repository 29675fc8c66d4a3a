"""The names of the files of a run folder and of the columns of `metrics.csv`: their one home. Imports no TensorFlow.

The columns that every algorithm gives are named by the protocol; those of archetypes in `archetype_metrics`.
"""

from launch.settings import run_config
from tff_algos.protocol import COMMON_METRICS

CONFIG_FILE = run_config.CONFIG_FILE
METRICS_FILE, TIMING_FILE, EVENTS_FILE, CLIENTS_FILE = "metrics.csv", "timing.csv", "events.csv", "clients.csv"
SUMMARY_FILE = "summary.json"
WORKER_LOG = "worker.log"
EXPORT_REPORT = "export/report.csv"
CHECKPOINTS, TENSORBOARD, PLOTS, MODELS, EXPORT = "checkpoints", "tensorboard", "plots", "models", "export"

ROUND = "round"
VIRTUAL_TIME_S, NUM_CLIENTS, NUM_REJECTED, BYTES_DOWN, BYTES_UP, TRAIN_LOSS = COMMON_METRICS
TEST_LOSS, TEST_ACCURACY = "test_loss", "test_accuracy"
CLIENT_TEST_ACCURACY, CLIENT_VALIDATION_ACCURACY = "client_test_accuracy", "client_validation_accuracy"
EVALUATION_METRICS = (TEST_LOSS, TEST_ACCURACY, CLIENT_TEST_ACCURACY, CLIENT_VALIDATION_ACCURACY)
# Columns of metrics.csv that a run has only if each client ends up with a model of its own.
PERSONAL_METRICS = (f"{CLIENT_TEST_ACCURACY}_std", f"{CLIENT_TEST_ACCURACY}_worst_tenth")
WITHIN_CLUSTER_DRIFT, TOTAL_DRIFT = "within_cluster_drift", "total_drift"
