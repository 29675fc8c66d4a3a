"""The searches that chose settings of asynchronous FL, written before the first trial.

Periodic aggregation, FedAvg, FedAsync and FedBuff have as many trials each, on the same seeds, which are not reported,
and the same choices of the learning rate. Each grid has as many points, and all of them are tried, so that no draw
favours a method. Learning rates of 0.01, 0.03 and 0.1 were written down first; after the trials of periodic aggregation
and of FedAvg, and FedAsync's with the first seed, were all best at 0.1, each method got 0.3 as well, and, when all
were best at that, 1, before any tuned run on a reported seed. A tenth of each device's examples is held out for
validation in the trials; the reported runs train on all. The weight of FedAsync's and FedBuff's updates falls with
their staleness as in the experiment; the score is taken at about 10.5 T_max, the tuned methods are compared at 10.

Command: `python -m launch.tune --search=async_periodic/<name>`, which starts from the experiment of that name. Its
trials are in docs/results/tuning/<name>.csv.
"""

from launch.settings.experiments import make_search

SHARED = {"seeds": "100,101,102,103,104", "objective": "validation_accuracy", "trials": 20}
RATES = "validation_fraction=0.1;learning_rate=0.01|0.03|0.1|0.3|1.0"
SCORE = "The score is the accuracy on the validation examples of all devices together"
COMPARED = "which is at 10 T_max, where the tuned methods are compared."


def describe(name: str, method: str, score: str = "") -> str:
    """What a search is, and what its best trial becomes."""
    return (
        f"The trials of {method} on MNIST, non-IID; written before the first of them was run. {score}So {name}_tuned "
        "is the experiment with the settings of the best trial, the first of equals, without its validation_fraction, "
        "which stays 0, and with the experiment's own rounds."
    )


FRESH, SYNCHRONOUS = (f"async_periodic_mnist_shards_random_{kind}" for kind in ("fresh", "synchronous"))
SEARCHES = (
    make_search(
        FRESH,
        describe(FRESH, "periodic aggregation with random scheduling", f"{SCORE} at the end of the run, {COMPARED} "),
        **SHARED,
        search=f"{RATES};gamma=0.25|0.5|0.75|1.0;runtime=in_process",
    ),
    make_search(
        SYNCHRONOUS,
        describe(
            SYNCHRONOUS,
            "FedAvg on the clock of asynchronous FL",
            f"{SCORE} after ten rounds, {COMPARED} Its rate is halved every 20 rounds, as printed, so never within "
            "these ten, or every 5, so in their middle, as that of the periodic runs is in the middle of theirs. ",
        ),
        **SHARED,
        rounds=10,
        search=f"{RATES};proximal_weight=0.0|0.02;learning_rate_decay_rounds=5|20;runtime=in_process",
    ),
    make_search(
        "buffered_mnist_shards",
        describe("buffered_mnist_shards", "FedBuff"),
        **SHARED,
        search=f"{RATES};server_learning_rate=0.5|1.0|1.5|2.0;runtime=in_process",
    ),
    make_search(
        "fed_async_mnist_shards",
        describe("fed_async_mnist_shards", "FedAsync"),
        **SHARED,
        search=f"{RATES};mixing_weight=0.1|0.2|0.4|0.8;runtime=in_process",
    ),
)
