"""The searches for settings of FedCD's baselines, written before the first trial.

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
IN_SMALL = (
    "in the small size with the authors' training, whose seeds 100 and 101 are not reported; the medium takes what it "
    "chooses, since a trial there takes ten times as long. Trained on a subset of CIFAR-10, 20,000 images. "
    "The score is that of the clients' own validation examples at the end."
)
FINE_TUNED = make_search(
    "fedavg_cifar10_hierarchical_authors_small_fine_tuned",
    f"The steps at the end of FedAvg beside FedCD, {IN_SMALL}",
    seeds="100,101",
    objective="client_validation_accuracy",
    trials=12,
    search="final_steps=20|50|200;final_learning_rate=0.003|0.01|0.03|0.1",
)
IFCA = make_search(
    "ifca_cifar10_hierarchical_authors_small",
    f"IFCA beside FedCD, {IN_SMALL}",
    seeds="100,101",
    objective="client_validation_accuracy",
    trials=12,
    search="num_models=2|4|8;dealt_rounds=0|5;final_steps=0|50",
)
SEARCHES = (GROUP_NORM, FINE_TUNED, IFCA)
