"""Asynchronous FL with periodic aggregation (Hu et al. 2021) on MNIST, beside FedAvg, FedAsync and FedBuff.

Expected: Figures 3 (IID) and 4 (non-IID) are curves without numbers; `claims.py` has what the text says of them.
Cost on two cores: 0.5 minutes of training a run in the median, 2.5 at most; the 605 kept runs took 6.2 hours.
Command: `python -m launch.sweep --experiments='async_periodic/*_mnist_*' --seeds=0-4`.
"""

from collections.abc import Iterator

from launch.settings.experiments import Block, Experiment, make_experiment, ours, printed

REPORT = "async"
CASES = {"iid": ("IID", "Figure 3 of Hu et al. 2021"), "shards": ("non-IID", "Figure 4 of Hu et al. 2021")}
POLICIES = {
    "frequency": "scheduling by frequency",
    "random": "random scheduling",
    "significance": "scheduling by significance",
}
WEIGHTINGS = {"equal": "equal weights", "fresh": "favouring fresher updates", "old": "favouring older updates"}
GAMMAS = {"fresh": 0.5, "old": 2.0, "old1.25": 1.25, "old1.5": 1.5}  # bases of the age weights
OTHERS = {"buffered": "FedBuff (Nguyen et al. 2022)", "fed_async": "FedAsync (Xie et al. 2019)"}
SHORT = {"async_periodic_mnist_iid_random_fresh": "iid", "async_periodic_mnist_shards_random_fresh": "non_iid"}
A_REMARK = (
    'no numbers: "when slower devices possess some unique training data, favoring older updates sometimes performs '
    'better".'
)


SHARED = [  # by all experiments, on IID or non-IID images
    ours("how often a checkpoint is kept, which changes no result", rounds_per_checkpoint=10),
    ours(
        "no examples are held out on the devices, whose 60,000 are all trained on (section IV)",
        validation_fraction=0,
        test_fraction=0,
    ),
    ours("one virtual second, an arbitrary unit", max_training_s=1.0),
    ours("the paper does not print its model; this is McMahan's 2NN", model="perceptron_2nn"),
    ours(
        "the paper prints neither E nor batch size; "
        "60 steps on batches of 10 are one pass over the 600 examples of a device",
        batch_size=10,
        steps=60,
    ),
]
TWO_LABELS = printed("section IV", labels_per_client=2)
NO_TERM = (
    "The loss of Eq. (4) has no proximal term; Eq. (8), which has one, is introduced in section II-B for asynchronous "
    "training."
)


def list_periodic(case: str, policy: str, kind: str) -> list[Block]:
    """Settings of the paper's algorithm; it is FedAvg where it waits for all devices. `kind`: a weighting, or that."""
    where = {"dataset": "mnist", "partition": case}
    waiting = "synchronous" if kind.startswith("synchronous") else "periodic"
    gamma = (
        "0.5 favours fresh updates, 2 old ones" if kind in WEIGHTINGS else "one of three bases that favour old updates"
    )
    return [
        printed("section IV", **where, rounds=40, learning_rate=0.01, speed="redrawn", proximal_weight=0.02),
        *SHARED,
        printed("sections II-A and II-B", algo="async_periodic", waiting=waiting),
        printed("sections III-A and III-B", scheduling=policy, weighting="age_aware" if kind in GAMMAS else "equal"),
        printed("section II-A", optimizer="sgd"),
        TWO_LABELS if case == "shards" else (),
        printed("section IV", period_fraction=0.25) if waiting == "periodic" else (),
        ours(f"the paper does not print gamma; {gamma}", gamma=GAMMAS[kind]) if kind in GAMMAS else (),
        printed("section II-A", NO_TERM, optimizer="sgd", proximal_weight=0.0) if kind == "synchronous_plain" else (),
    ]


def list_hundred(case: str, policy: str, kind: str) -> list[Block]:
    """The same with the paper's hundred devices."""
    return [
        *list_periodic(case, policy, kind),
        printed("section IV", num_clients=100, max_scheduled=30),
        printed("section IV", learning_rate_decay=0.5, learning_rate_decay_rounds=20),
    ]


def list_beside(case: str, algo: str) -> list[Block]:
    """Settings of FedAsync and FedBuff, which the paper does not have."""
    training = {"optimizer": "sgd", "learning_rate_decay": 0.5, "proximal_weight": 0.02, "speed": "redrawn"}
    demo, staleness = "updates are weighted as in the demo", {"staleness": "polynomial", "staleness_decay": 0.5}
    own = {
        "buffered": ours(
            f"{demo}, and an aggregation takes as many as the paper schedules",
            **{"buffer_size": 30, **staleness, "server_learning_rate": 1.0},
        ),
        "fed_async": ours(
            f"{demo}, and a round is as many of them as the paper schedules",
            **{**staleness, "updates_per_round": 30, "mixing_weight": 0.6},
        ),
    }
    return [
        ours("the paper does not have this algorithm, which stands beside its own", algo=algo),
        printed("section IV", dataset="mnist", partition=case),
        *SHARED,
        printed("section IV", num_clients=100),
        TWO_LABELS if case == "shards" else (),
        ours(
            "how long it trains; the learning rate halves in the middle of the run, as in the paper",
            rounds=70,
            learning_rate_decay_rounds=35 if algo == "buffered" else 1050,
        ),
        ours(
            "local training and times as printed for periodic aggregation (sections II-A, II-B and IV)",
            **{**training, "learning_rate": 0.01},
        ),
        own[algo],
    ]


def choose(search: str, rounds: int, best: str, **settings: float) -> Block:
    """What twenty trials chose, of which the best had that accuracy (%) after so many rounds."""
    return ours(
        f"tuned by the validation accuracy after round {rounds}, seeds 100 to 104: the best of twenty trials "
        f"({best} %), all points of the grid of the search async_periodic/{search}; every trial is in "
        f"docs/results/tuning/{search}.csv",
        **settings,
    )


def list_rows() -> Iterator[Experiment]:
    """The paper's algorithm in all its forms, and what stands beside it."""
    for case, (data, figure) in CASES.items():
        clock = f"MNIST with the clock of asynchronous FL, {data}"
        for policy, words in POLICIES.items():
            abouts = {
                **{
                    kind: f"Asynchronous FL on MNIST, {data}, {words}, {how}: {figure}."
                    for kind, how in WEIGHTINGS.items()
                },
                "synchronous": f"FedAvg with the proximal term of Eq. (8) on {clock}, {words}: "
                f"beside {figure}, whose FedAvg (section II-A) does not have the term.",
                "synchronous_plain": f"FedAvg on {clock}, {words}: {figure}.",
            }
            for kind, about in abouts.items():
                name, settings = f"async_periodic_mnist_{case}_{policy}_{kind}", list_hundred(case, policy, kind)
                numbers, short = "a curve without numbers.", SHORT.get(name, "")
                yield make_experiment(name, about, *settings, printed=numbers, short=short)
        for algo, title in OTHERS.items():
            about = f"{title} on MNIST, {data}, beside the runs of {figure}."
            nothing = "nothing; the paper does not have it."
            yield make_experiment(f"{algo}_mnist_{case}", about, *list_beside(case, algo), printed=nothing)
    slow = (
        "the slow devices hold digits that no fast device holds, a case that the paper mentions without numbers "
        "(section IV)"
    )
    for kind in ("equal", *GAMMAS):
        how = WEIGHTINGS.get(kind, f"{WEIGHTINGS['old']} with gamma {kind.removeprefix('old')}")
        where = "Asynchronous FL on MNIST where slow devices hold digits of their own"
        about = f"{where}, {how}: a remark on {CASES['shards'][1]}."
        settings = (*list_hundred("shards", "random", kind), ours(slow, speed="by_label"))
        yield make_experiment(f"async_periodic_mnist_persistent_random_{kind}", about, *settings, printed=A_REMARK)


def list_tuned() -> Iterator[Experiment]:
    """Each method with what its trials chose, on non-IID data."""
    name, end = "async_periodic_mnist_shards_random", "Figure 4 of Hu et al. 2021. Not the paper's setting."
    yield make_experiment(
        f"{name}_fresh_tuned",
        "Asynchronous FL on MNIST, non-IID, random scheduling, favouring fresher updates, tuned like FedAvg, FedAsync "
        f"and FedBuff: beside {end}",
        *list_hundred("shards", "random", "fresh"),
        choose(f"{name}_fresh", 40, "91.00", learning_rate=0.3, gamma=0.5),
    )
    yield make_experiment(
        f"{name}_synchronous_tuned",
        "FedAvg on MNIST with the clock of asynchronous FL, non-IID, random scheduling, tuned like periodic "
        f"aggregation, FedAsync and FedBuff: beside {end}",
        *list_hundred("shards", "random", "synchronous"),
        choose(
            f"{name}_synchronous", 10, "86.50", learning_rate=0.3, proximal_weight=0.0, learning_rate_decay_rounds=5
        ),
    )
    chosen = {
        "buffered": ("FedAsync", "92.91", {"learning_rate": 0.3, "server_learning_rate": 1.5}),
        "fed_async": ("FedBuff", "89.82", {"learning_rate": 0.3, "mixing_weight": 0.2}),
    }
    for algo, (rival, best, settings) in chosen.items():
        yield make_experiment(
            f"{algo}_mnist_shards_tuned",
            f"{OTHERS[algo]} on MNIST, non-IID, tuned like periodic aggregation, FedAvg and {rival}: "
            f"beside the runs of {end}",
            *list_beside("shards", algo),
            choose(f"{algo}_mnist_shards", 70, best, **settings),
        )


CITY = make_experiment(
    "async_periodic_mnist_city",
    "Asynchronous FL at the size of a city: 10,000 devices, of which 100 are scheduled in a period; beside "
    f"{CASES['shards'][1]}, which has 100 devices and 30 scheduled.",
    *list_periodic("shards", "random", "fresh"),
    ours(
        "the paper prints neither E nor batch size; 60 steps on batches of 6 are 60 passes over the examples of a "
        "device, as many steps as in the runs of Figure 4",
        batch_size=6,
        steps=60,
    ),
    ours("the size", "MNIST's 60,000 images are 6 a device.", num_clients=10000, max_scheduled=100, rounds=20),
    printed="nothing; the paper has no federation of this size.",
)
EXPERIMENTS = (CITY, *list_rows(), *list_tuned())
