"""The search for a setting of FedCD's baseline, written before the first trial.

Command: `python -m launch.tune --search=fedcd/<name>`, which starts from the experiment of that name. Its trials are in
docs/results/tuning/<name>.csv.
"""

from launch.settings.experiments import make_search

GROUP_NORM = make_search(
    "fedavg_cifar10_hierarchical_cpu_group_norm",
    "The rate of FedAvg with GroupNorm in FedCD's small size. At the rate of the other runs, 0.05, seed 0 came to 16.5 "
    "% of the test images in 45 rounds, so that its calm would say nothing. The score is that of the clients' own "
    "validation examples after 10 rounds. None of these rates learns, so that the run of 0.05 is shown as it is.",
    seeds="100,101",
    objective="client_validation_accuracy",
    rounds=10,
    trials=3,
    search="learning_rate=0.005|0.01|0.02",
)
SEARCHES = (GROUP_NORM,)
