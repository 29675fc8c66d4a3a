"""The names of the files of a run folder and of the columns of their tables: their one home. Imports no TensorFlow.

The columns that every algorithm gives are named by the protocol, those of archetypes in `archetype_metrics`, and those
of an algorithm of its own by the algorithm. The tables of an export have the fields of their rows as columns.
"""

from launch.settings import run_config, serving
from tff_algos import protocol

# Files and folders.
CONFIG_FILE, MAX_JSON = run_config.CONFIG_FILE, run_config.MAX_JSON
METRICS_FILE, TIMING_FILE = run_config.METRICS_FILE, "timing.csv"
EVENTS_FILE, CLIENTS_FILE = "events.csv", "clients.csv"
FINE_TUNING_FILE = "fine_tuning.csv"
CLIENTS_BY_ROUND_FILE = "clients_by_round.csv.gz"
# Of live runs: the events by which they are repeated, the devices as they were measured, what went over the wire.
RECORD_FILE, MEASURED_DEVICES_FILE, TRAFFIC_FILE = run_config.RECORD_FILE, "devices.csv", "traffic.csv"
# Who has a seat, the links to hand out, how clients are asked, what they train by, and what fine-tuning on them gave.
ROSTER_FILE, LINKS_FILE, SERVE_FILE, TRAINING_FILE, FINE_TUNED_FILE = (
    *("roster.json", "links.txt", serving.SERVE_FILE, "training.tflite", "fine_tuned.csv"),
)
SUMMARY_FILE = "summary.json"
CHECKSUMS_FILE = "checksums.sha256"
RUN_PAGE = "report.html"
PRUNED_FILE = "pruned.json"  # only in runs that a search has stopped: after which round, and why
WORKER_LOG = "worker.log"
EVALUATION = "evaluation"  # how the tables of `launch.evaluate` begin
CHECKPOINTS, TENSORBOARD, PLOTS, MODELS, EXPORT = "checkpoints", "tensorboard", "plots", "models", "export"
KEPT = "kept"  # what clients keep between rounds, if it is too large for the checkpoints
BEST = "best"  # in summaries; and the folder in `models` and in `export` of what is of the best round, if that is kept
TRACKING = "tracking"  # the run's ids in trackers, and their logs
REPORT_PAGE, REPORT_TABLE = "report.md", "report.csv"  # of an export, as all that follow
REPORT_CLIENTS, REPORT_TEACHERS = "report_clients.csv", "report_teachers.csv"
LABELS_FILE, TEST_SET_FILE, WEB_PAGE = "labels.txt", "test_set.npz", "page.html"
VOCABULARY_FILE = "vocabulary.txt"  # of models that take the words of a text
EXPORT_REPORT = f"{EXPORT}/{REPORT_TABLE}"

# In the data section of config.json: what names the data that a run got, the data before they were divided, where these
# are the same with any seed and where a loader of somebody's may have drawn them by it, and the devices.
DIGEST, SOURCE_DIGEST, ARRAYS_DIGEST, DEVICES = "digest", "source_digest", "arrays_digest", "device_profiles"
# The weights of classes in training, and what names those of a file.
CLASS_WEIGHTS, CLASS_WEIGHTS_DIGEST = "class_weights", "class_weights_digest"
OWN_MODULES = "own_modules"  # in config.json: the sums of a user's own modules
OWN_ALGORITHM = "own_algorithm"  # in config.json: what people see of a user's own algorithm
# In config.json: that clients answered over the network, how many there were, and whether they brought their data.
LIVE, SEATS, OWN_DATA = serving.LIVE, serving.SEATS, serving.OWN_DATA

# The first column of every table with a row a round, and of events.csv.
ROUND = "round"

# metrics.csv
VIRTUAL_TIME_S, NUM_CLIENTS, NUM_REJECTED, BYTES_DOWN, BYTES_UP, TRAIN_LOSS = protocol.COMMON_METRICS
TEST_LOSS, TEST_ACCURACY = "test_loss", "test_accuracy"
CLIENT_TEST_ACCURACY, CLIENT_VALIDATION_ACCURACY = "client_test_accuracy", "client_validation_accuracy"
VALIDATION_ACCURACY = "validation_accuracy"
WITHIN_CLUSTER_DRIFT, TOTAL_DRIFT = protocol.WITHIN_CLUSTER_DRIFT, protocol.TOTAL_DRIFT
# Only with device profiles that say what the devices spend; JOULES is in clients.csv and summary.json, too.
JOULES, JOULES_TOTAL = protocol.JOULES, protocol.JOULES_TOTAL
EPSILON_SPENT = protocol.EPSILON_SPENT  # only in runs with private updates

# timing.csv
ROUND_S, EVALUATION_S = "round_s", "evaluation_s"
HOST_MEMORY_BYTES, WORKER_MEMORY_BYTES = "host_memory_bytes", "worker_memory_bytes"

# events.csv; `MODEL` is there the version or the slot of a model, in clients.csv and an export's report its name.
TIME_S, CLIENT, WHAT, MODEL = "time_s", "client", "what", "model"
EVENT_COLUMNS = (ROUND, TIME_S, CLIENT, WHAT, MODEL)
PREFERS = "prefers"  # what FedCD's devices do after every round

# record.csv: the same events, with times as whole numbers of ticks, so that nothing is rounded.
TICK, VERSION = "tick", "version"
RECORD_COLUMNS = (ROUND, TICK, CLIENT, WHAT, VERSION)

# traffic.csv, a row a round; bytes are those on the wire, the other numbers count clients.
NUM_ASKED, NUM_MISSING = protocol.NUM_ASKED, protocol.NUM_MISSING  # also in metrics.csv of rounds that wait
NUM_PRESENT, NUM_ANSWERED, NUM_LATE, NUM_RETURNS = "num_present", "num_answered", "num_late", "num_returns"
BYTES_OF_ORDERS, BYTES_OF_FILES = "bytes_of_orders", "bytes_of_files"

# clients.csv
NUM_TRAIN, NUM_VALIDATION, NUM_TEST = "num_train", "num_validation", "num_test"
EXAMPLES_PER_S, AVAILABILITY = "examples_per_s", "availability"
DOWNLINK_BYTES_PER_S, UPLINK_BYTES_PER_S = "downlink_bytes_per_s", "uplink_bytes_per_s"
ACCURACY, LOSS = "accuracy", "loss"
UNDEFINED = "undefined"  # only where a metric is not defined for some client: which and why; also in tables of
# `launch.evaluate`, and in summary.json for how many clients, of how many
NUM_EVALUATED = "num_evaluated"
TOOK_PART = "took_part"  # only in runs with new clients: 0 for those
ATTACKER = "attacker"  # only in runs with attackers: 1 for those
DEVICE_NAME = "device_name"  # only in runs with device profiles from a file
ARCHETYPE, ARCHETYPE_NAME, META_ARCHETYPE = "archetype", "archetype_name", "meta_archetype"
ARCHITECTURE = protocol.ARCHITECTURE
CLIENT_NAMES = (CLIENT, MODEL, DEVICE_NAME, ARCHETYPE_NAME, ARCHITECTURE)  # text, also where a name looks like a number
CLUSTER, PLANE_X, PLANE_Y = protocol.CLUSTER, protocol.PLANE_X, protocol.PLANE_Y
RESOURCE, CLIENT_STEPS = protocol.RESOURCE, protocol.CLIENT_STEPS
FINE_TUNING_S = protocol.FINE_TUNING_S

# fine_tuning.csv, and what summary.json says of the start of fine-tuning under START: which clients, after how
# many steps at most, and their accuracies from the trained start and from random weights.
FINE_TUNING_CLIENTS, FINE_TUNING_STEPS = "client_group", "most_steps"
MEMBERS, NEW = "members", "new"
TRAINED_START_ACCURACY, RANDOM_START_ACCURACY = "trained_start_accuracy", "random_start_accuracy"
START, RELATIVE_CHANGE, GAIN = "fine_tuning_start", "relative_change", "gain_over_random_start"
# Of summary.json, too: statistics of the clients, and of new ones, which took no part in training.
BUDGET_SPENT = "budget_spent"  # only if no further round may come
NEW_CLIENTS, ACCURACY_MEAN = "new_clients", "accuracy_mean"
ACCURACY_STD, ACCURACY_P10, ACCURACY_WORST_TENTH = "accuracy_std", "accuracy_p10", "accuracy_worst_tenth"
# What giving always the most frequent class reaches, each client its own or all the same; only where labels are
# classes. On the clients' own test splits: mean over them, mean of the worst tenth.
MAJORITY_ACCURACY, MAJORITY_WORST_TENTH = "majority_accuracy", "majority_accuracy_worst_tenth"
OVERALL_MAJORITY_ACCURACY = "overall_majority_accuracy"
OVERALL_MAJORITY_WORST_TENTH = "overall_majority_accuracy_worst_tenth"
OVERALL_MAJORITY_TEST_ACCURACY = "overall_majority_test_accuracy"  # on the global test set
TOKEN_BASELINES = "token_baselines"  # only of text: what tables of the most frequent tokens reach
STOPPED_EARLY = "stopped_early"  # only if --patience has ended the run: its value, and the best round
PATIENCE, BEST_ROUND = "patience", "best_round"
REACHED_LIMITS = "reached_limits"  # only if a limit of cost has ended the run: both limits, by the names of their flags
KEPT_BEST = "kept_best"  # only with --keep_best: the round whose models are kept, and what it was chosen by
ATTACK, ATTACKERS = "attack", "attackers"  # only in runs with attackers: what they do, and their names
IS_PERSONAL = "is_personal"  # whether the clients' models are their own

# Of config.json: what is said of the data in words, and how many natural clients have no example to train on.
READING, NOTES, NUM_CLIENTS_LEFT_OUT = "reading", "notes", "num_clients_left_out"
IS_REMOTE = "is_remote"  # only where clients' examples lie on machines of their own
FILLED = "filled"  # by column of a table, the values that were missing
