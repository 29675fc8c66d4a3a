"""The searches that chose settings of AMFL-P and of what stands beside it, written before the first trial.

Of starts, local training and FedAvg alone: all points of the grid are tried, so that no draw favours a method: 36 of
each start that is trained, of local training and of FedAvg alone, 12 of a random start, which has no training to
choose. The seeds are the same, and not reported, and so are the choices of what starts share; each cell takes its own
best trial, so that rates and batch sizes differ between them. The score is the clients' own validation accuracy at the
end. Where the best of them had the smallest or the largest rate of finishing, or of local training, two further rates
were added afterwards, before any run that is reported.

Of defaults: of an algorithm's trials, which are the same on building and HAR, the one with the highest mean over the
two data sets of its mean validation accuracy over the seeds becomes the default, the first of equals. If AMFL-P's is
below local training's on either, another trial is taken: each has its lead over local training on the data set where
that lead is smaller, which may be negative, and the trial for which this is largest becomes the default; it is then
said by how many points, and on which of the two, AMFL-P misses local training's accuracy. The score is of validation
examples alone, and no other data set decides. Buildings of other seeds are others. On HAR the data are the same with
every seed and are split anew, so that test windows of the reported seeds 0 to 4 are train or validation windows of
seeds 100 to 104. All points of each grid are tried, 36 of the two algorithms that fine-tune, with 200 steps at most,
and 12 of the others, which have less to choose; they share the choices of what they share. Whether the rate follows a
device's resources, or its steps alone, is chosen with AMFL-P's trials, since at a tenth of the steps and of the rate a
weak device is hardly fine-tuned; Fine-Tuning is the same for all.

Those of AMFL-P's defaults are its second trials, written after the first and before any run that is reported. The first
36 had 30 rounds, as the others do, and the best was about six points behind local training on HAR: 30 rounds are 30
steps of the server, each from 64 examples of a device, where the others take up to five times all of them in a round.
Single runs with seed 100 did better with more. So AMFL-P has 300 rounds, which at 19,200 examples of a device are fewer
than 30 rounds of five epochs take, and 12 trials more. The smallest rate of finishing was the best, so that a smaller
one is among them. Left out are what was worst on HAR: batches of 16, the largest rate of finishing and the largest of
the server. The first trials are kept in defaults_amfl_p_har_subjects_first.csv and, with seed 100 alone, in
defaults_amfl_p_building_medium_first.csv. The rates of finishing of Fine-Tuning's defaults are those of AMFL-P's second
trials, written before the first trial of Fine-Tuning was run. To FedAvg's and local training's one more rate, 0.0003,
was added after the first 12 trials and before any run that is reported: the best had the smallest, FedAvg's on the
building as on HAR, local training's on the building.

Command: `python -m launch.tune --search=amfl_p/<name>`, which starts from the experiment of that name if none is given.
Its trials are in docs/results/tuning/<name>.csv.
"""

from launch.settings.experiments import Experiment, make_search
from reproductions.amfl_p.experiments import FINISHES, STARTS

FIRST = "; written before the first of them was run."
ADDED = (
    "Where the best of them had the smallest or the largest rate of finishing, or of local training, two further rates "
    "were added afterwards, before any run that is reported; to local training, whose best then had the most steps a "
    "round, 24 steps too."
)
QUICK = "runtime=in_process"
EPOCHS = f"epochs=1|5;learning_rate=0.0003|0.001|0.003|0.01;batch_size=16|48;{QUICK}"
LOCAL = "local_epochs=1|5;local_learning_rate=0.001|0.003|0.01"
META = "server_optimizer=adam;meta_learning_rate=0.003|0.01;inner_learning_rate=0.1;inner_steps=1"
RULES = "fine_tuning_rule=resources|steps;fine_tuning_steps=200"
FINISH = "learning_rate=0.025|0.05|0.1"
DEFAULTS = {  # by algorithm: whose they are, how many trials, the grid, and when it was written
    "amfl_p": ("AMFL-P's", 12, f"{META};{RULES};fine_tuning_{FINISH};batch_size=48;{QUICK}", "."),
    "fedavg": ("FedAvg's", 16, EPOCHS, FIRST),
    "fine_tuning": ("Fine-Tuning's", 36, f"{LOCAL};steps=200;{FINISH};batch_size=16|48;{QUICK}", FIRST),
    "local_only": ("local training's", 16, EPOCHS, FIRST),
}

BATCHES, AT_END = "batch_size=16|48|96", "rounds_per_evaluation=50"
ALONE = f"steps=2|6|12;learning_rate=0.001|0.003|0.01|0.03;{BATCHES};{AT_END};{QUICK}"
TRAINING = f"steps=2|6|12|24;learning_rate=0.0001|0.0003|0.001|0.003|0.01|0.03;{BATCHES};{AT_END};{QUICK}"
FEDAVG = f"local_learning_rate=0.01|0.03|0.1;learning_rate=0.05|0.1|0.2|0.4;{BATCHES};curve=0;{AT_END}"
MAML, CURVE = "meta_learning_rate=0.01|0.03|0.1;fine_tuning_learning_rate", f"fine_tuning_curve=0;{AT_END}"
STARTED = {  # by start and finish: how many trials, and the grid
    ("fedavg", "resources"): (36, f"{FEDAVG};{QUICK}"),
    ("fedavg", "same"): (36, FEDAVG),
    ("maml", "resources"): (36, f"{MAML}=0.05|0.1|0.2|0.4;{BATCHES};{CURVE}"),
    ("maml", "same"): (54, f"{MAML}=0.0125|0.025|0.05|0.1|0.2|0.4;{BATCHES};{CURVE}"),
    ("random", "resources"): (18, f"learning_rate=0.05|0.1|0.2|0.4|0.8|1.6;{BATCHES};curve=0"),
    ("random", "same"): (12, f"learning_rate=0.05|0.1|0.2|0.4;{BATCHES};curve=0"),
}


def make_row(cell: str, whose: str, trials: int, grid: str, when: str = FIRST) -> Experiment:
    """A search that starts from an experiment. `when`: the rest of what is said of its trials."""
    shared = {"seeds": "100,101,102,103,104", "objective": "client_validation_accuracy"}
    return make_search(cell, f"The trials of {whose}{when}", **shared, trials=trials, search=grid)


SEARCHES = [
    make_row(f"defaults_{algo}_{data}_{kind}", f"{whose} defaults on {data}, {kind}", *rest)
    for data, kind in (("building", "medium"), ("har", "subjects"))
    for algo, (whose, *rest) in DEFAULTS.items()
]
MEDIUM = "medium heterogeneity"
for (start, finish), rest in STARTED.items():
    whose = f"the start from {STARTS[start]} with {FINISHES[finish]}, {MEDIUM}"
    SEARCHES.append(make_row(f"start_{start}_{finish}_building_medium", whose, *rest))
SEARCHES += [
    make_row("fedavg_alone_building_medium", f"FedAvg alone, {MEDIUM}", 36, ALONE),
    make_row("local_training_building_medium", f"local training, {MEDIUM}", 72, TRAINING, f"{FIRST} {ADDED}"),
]
