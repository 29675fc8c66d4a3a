"""FedSiKD (Alsenani et al. 2024): clusters of similar clients, each with a teacher, on MNIST and HAR; Tables V to IX.

Expected: on MNIST at alpha 0.1 the paper prints test accuracies of 74.83 % for FedSiKD after round 5, 65.18 % for
RandomCluster, 57.57 % for FL+HC and 37.79 % for FedAvg; at alpha 2 they are from 85.60 to 90.67 %.
Cost on two cores: 4 minutes of training a run in the median, 24 with all rounds; the 252 kept runs took 25.4 hours.
Command: `python -m launch.sweep --experiments='fedsikd/*_mnist_alpha0.1' --seeds=0-2 -- --runtime=tff`;
all 68 experiments are `fedsikd/*`.
"""

import csv
import itertools
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from launch.settings.experiments import Block, Experiment, from_code, make_experiment, ours, printed

TITLES = {"fedavg": "FedAvg", "fedsikd": "FedSiKD", "fl_hc": "FL+HC", "random_cluster": "RandomCluster"}
SETUP = (
    "sections V-A1 and V-A2",
    "The authors' code defines this batch size without passing it on, so that it trains on batches of 32.",
)
CODE = "github.com/SimuEnv/FedSiKD, commit 7e47aa4"
NO_K = "The paper has k chosen by three indices (section IV-A) and prints none."
BESIDE = "beside Table V of the FedSiKD paper. Not the paper's setting."
ONLY_MEMBERS = "so that only the clusters' members differ"
LEADER = printed("section IV-C2", "One client of a cluster, its leader, trains the teacher.", teacher="leader")
ADAM = ours(
    "the paper prints neither an optimizer nor its learning rate",
    student_optimizer="adam",
    student_learning_rate=0.001,
    teacher_optimizer="adam",
    teacher_learning_rate=0.001,
)


class Data(NamedTuple):
    """A data set as the clients have it.

    Attributes:
      name: in the names of experiments.
      dataset: as the flag has it.
      title: for a reader.
      tables: {alpha: the table of the paper with its accuracies}.
      rounds: all that the paper has.
      inputs: what an example is.
      student_epochs: how long a student trains in a round.
      clusters: how many clusters there are, and how long FedSiKD trains in them.
      their_statistics: what the authors' code takes of a client's data.
      their_distillation: how the authors' code distils.
    """

    name: str
    dataset: str
    title: str
    tables: Mapping[float, str]
    rounds: int
    inputs: Block
    student_epochs: int
    clusters: tuple[Block, ...]
    their_statistics: str
    their_distillation: str


MNIST = Data(
    name="mnist",
    dataset="mnist",
    title="MNIST",
    tables={0.1: "VI", 0.5: "VI", 1.0: "VII", 2.0: "VII"},
    rounds=70,
    inputs=(),
    student_epochs=6,
    clusters=(
        from_code(
            CODE,
            f"Four leaders train there, each of a group by position in the list of clients. {NO_K}",
            student_epochs=6,
            teacher_epochs=10,
            num_clusters=4,
        ),
    ),
    their_statistics="mean and deviation of augmented images",
    their_distillation="In the code, w = 0.1 and T = 3 on softmax(softmax / T)",
)
HAR_EPOCHS = from_code(CODE, student_epochs=3, teacher_epochs=7)
FOUR = "four clusters, as in the authors' code for MNIST, where four leaders train"
HAR = Data(
    name="har",
    dataset="har",
    title="HAR, 561 features",
    tables={0.1: "VIII", 0.5: "VIII", 1.0: "IX", 2.0: "IX"},
    rounds=50,
    inputs=printed(*SETUP, har_features="statistics"),
    student_epochs=3,
    clusters=(HAR_EPOCHS, ours(FOUR, NO_K, num_clusters=4)),
    their_statistics="mean, deviation, skewness and five histogram bins",
    their_distillation="In the code, w = 1 and T = 5 on softmax(softmax / T)",
)
WINDOWS = HAR._replace(
    name="har_windows",
    title="HAR, windows",
    tables={0.1: "VIII", 0.5: "VIII"},
    inputs=from_code(
        CODE, "The inertial windows, 128 steps of 9 signals; the paper prints 561 features.", har_features="inertial"
    ),
)

NOISE = {  # {statistics: {epsilon: standard deviation of the noise on a size, in examples}}
    "per_feature": {1: 196, 2: 104, 4: 56, 8: 31},
    "scalar": {1: 8.1, 2: 4.3, 4: 2.3, 8: 1.3},
}
TAKEN_OVER = {"per_feature": "for each of the 784 pixels", "scalar": "over all values of a client"}
# What the best trials had, of FedAvg, of FL+HC besides, and of FedSiKD and RandomCluster, which have a teacher as well.
STUDENT = {"epochs": 8, "learning_rate": 0.002, "client_weighting": "examples"}
CUT = {"clustering_round": 2, "distance_multiple": 1.2}
PAIR = {
    "student_epochs": 8,
    "student_learning_rate": 0.002,
    "teacher": "cluster",
    "teacher_epochs": 5,
    "num_clusters": 2,
    "label_weight": 0.7,
    "temperature": 2,
    "temperature_squared": False,
    "weighting": "examples",
}
OTHER_PAIR = {"student_learning_rate": 0.0005, "teacher_epochs": 2, "temperature": 5, "temperature_squared": True}
CHOSEN = {  # {(algorithm, alpha): (validation accuracy of the best trial (%), what it had)}
    ("fedavg", 0.1): ("88.37", STUDENT),
    ("fedsikd", 0.1): ("88.46", {**PAIR, "label_weight": 0.9, "statistics": "scalar"}),
    ("fl_hc", 0.1): ("86.84", {**STUDENT, "epochs": 4, "learning_rate": 0.004, **CUT}),
    ("random_cluster", 0.1): ("88.27", {"cluster_sizes": "kmeans", **PAIR, **OTHER_PAIR, "num_clusters": 3}),
    ("fedavg", 0.5): ("90.91", STUDENT),
    ("fedsikd", 0.5): ("90.94", {**PAIR, "label_weight": 0.9, "statistics": "scalar"}),
    ("fl_hc", 0.5): ("90.51", {**STUDENT, "epochs": 4, "learning_rate": 0.004, **CUT}),
    ("random_cluster", 0.5): ("90.85", {"cluster_sizes": "equal", **PAIR}),
}
LONGER = (
    "without a teacher a round moves a sixth of the bytes, so that thirty can be paid for; the methods are compared "
    "at round 5 and at equal bytes"
)
ABLATIONS = {
    "indices": (ours("the ablation, the number of clusters by the three indices", num_clusters=0),),
    "k1": (ours("the ablation, one cluster", num_clusters=1),),
    "per_feature": (ours("the ablation, statistics of each feature", statistics="per_feature"),),
    "w1": (ours("the ablation, labels alone, no distillation", label_weight=1.0), ours(LONGER, rounds=30)),
}


def read_printed() -> dict[tuple[str, ...], float]:
    """{(data set, alpha, algorithm, round, metric): number} of the paper's Tables V to IX."""
    lines = pathlib.Path(__file__).with_name("printed.csv").read_text(encoding="utf-8").splitlines()
    return {tuple(place): float(value) for _, *place, value in csv.reader(lines[1:])}


NUMBERS = read_printed()


def spell_printed(algo: str, data: Data, alpha: float) -> str:
    """What the paper prints for an algorithm."""
    places = (("5", "test_accuracy"), ("1", "test_loss"), (str(data.rounds), "test_loss"))
    accuracy, first, last = (NUMBERS[data.dataset, str(alpha), TITLES[algo], *place] for place in places)
    losses = f"test loss {first:.2f} at round 1 and {last:.2f} at round {data.rounds}."
    return f"test accuracy {100 * accuracy:.2f} % at round 5; {losses}"


def describe(algo: str, data: Data, alpha: float) -> str:
    """The beginning of what an experiment is."""
    return f"{TITLES[algo]} on {data.title}, 40 clients, Dirichlet alpha {alpha}"


def cite(data: Data, alpha: float) -> str:
    """Where the paper has its numbers."""
    return f"Tables V and {data.tables[alpha]} and Figure 3 of the FedSiKD paper."


def list_shared(algo: str, data: Data, alpha: float) -> list[Block]:
    """The algorithm, and the data that all have alike."""
    clients = {"num_clients": 40, "partition": "dirichlet", "dirichlet_alpha": alpha, "batch_size": 64}
    return [
        printed("section IV" if algo == "fedsikd" else "section V-A3", algo=algo),
        printed(*SETUP, dataset=data.dataset, **clients, rounds=data.rounds),
    ]


def train_student(data: Data, note: str = "") -> Block:
    """How FedAvg and FL+HC train, which have a student alone."""
    alike = "as FedSiKD's students train, so that every algorithm trains a student as long in a round"
    return ours(alike, note, epochs=data.student_epochs, optimizer="adam", learning_rate=0.001)


def choose_statistics(data: Data) -> Block:
    """What clients are compared by."""
    theirs = f"In the code they are {data.their_statistics}."
    return ours("the paper does not print what the statistics are taken over", theirs, statistics="scalar")


def list_cell(algo: str, data: Data, alpha: float) -> list[Block]:
    """Settings as the paper prints them, and what we chose where it prints none."""
    is_mnist = data.dataset == "mnist"
    theirs = "In the authors' script mnist_fedavg.py, client 0 trains for 8 epochs." if is_mnist else ""
    elsewhere = "" if is_mnist else ", chosen on MNIST,"
    own = {
        "fedavg": [train_student(data, theirs)],
        "fl_hc": [
            train_student(data),
            ours("the paper does not print after how many rounds FL+HC clusters", clustering_round=1),
            ours(
                f"a multiple of the median distance between two clients' updates{elsewhere} tuned "
                "by the validation accuracy at alpha 0.1 on seeds 100 and 101, all of the grid 0.8 to 1.2 in "
                "docs/results/tuning/fl_hc_mnist_printed.csv",
                "The paper cuts the tree at a distance (section V-A3) that it does not print. The best is the largest "
                "of the grid: the fewer clusters, the better; at 1.3 there would be one, which is FedAvg.",
                distance_multiple=1.2,
            ),
        ],
        "random_cluster": [
            ADAM,
            *data.clusters,
            ours(
                f"as in FedSiKD's run, {ONLY_MEMBERS}",
                teacher="leader",
                weighting="equal",
                label_weight=0.5,
                temperature=3.0,
            ),
            ours(
                "the paper does not print how large random clusters are; k-means on these statistics gives the sizes, "
                "as in FedSiKD, and only the members are drawn at random",
                statistics="scalar",
            ),
        ],
        "fedsikd": [
            ADAM,
            LEADER,
            *data.clusters,
            printed(
                "section IV-C5",
                "The plain mean within each cluster, then the plain mean of the clusters.",
                weighting="equal",
            ),
            choose_statistics(data),
            ours(
                "the paper prints neither w nor T, and logits are distilled",
                f"{data.their_distillation}.",
                label_weight=0.5,
                temperature=3.0,
            ),
        ],
    }
    return [*list_shared(algo, data, alpha), data.inputs, *own[algo]]


def list_cells() -> Iterator[Experiment]:
    """What the paper has."""
    shorts = {("fedsikd", MNIST.name, 0.1): "mnist", ("fedsikd", HAR.name, 0.1): "har"}
    for data in (HAR, WINDOWS, MNIST):
        for alpha, algo in itertools.product(data.tables, TITLES):
            yield make_experiment(
                f"{algo}_{data.name}_alpha{alpha}",
                f"{describe(algo, data, alpha)}: {cite(data, alpha)}",
                *list_cell(algo, data, alpha),
                printed=spell_printed(algo, data, alpha),
                short=shorts.get((algo, data.name, alpha), ""),
            )


def list_authors() -> Iterator[Experiment]:
    """FedSiKD that distils as the authors' code does."""
    theirs = {"label_weight": 0.1, "temperature": 3.0, "distillation_inputs": "probabilities"}
    for alpha in MNIST.tables:
        yield make_experiment(
            f"fedsikd_mnist_alpha{alpha}_authors",
            f"{describe('fedsikd', MNIST, alpha)}: {cite(MNIST, alpha)} Not a replay of the authors' code: the "
            "algorithm is the paper's, with the values of that code.",
            *list_cell("fedsikd", MNIST, alpha),
            from_code(CODE, "Distilled is softmax(softmax / T).", **theirs),
            printed=spell_printed("fedsikd", MNIST, alpha),
        )


def make_private(statistics: str, epsilon: str, released: str, noise: Block) -> Experiment:
    """FedSiKD whose clients release statistics of a kind, with noise or without."""
    return make_experiment(
        f"fedsikd_mnist_alpha0.1_{statistics}_epsilon{epsilon}",
        f"{describe('fedsikd', MNIST, 0.1)}, {released}, {TAKEN_OVER[statistics]}: one of ten runs of accuracy against "
        "epsilon, beside Table VI of the FedSiKD paper.",
        *list_cell("fedsikd", MNIST, 0.1),
        ours(
            "averages by examples, where the paper prints plain means (section IV-C5), so that the sizes of the "
            "clients matter; and five rounds, those of the paper's Table VI",
            weighting="examples",
            rounds=5,
        ),
        ours(
            "the paper prints neither w nor T nor what the statistics are taken over, and logits are distilled",
            f"{MNIST.their_distillation}, and the statistics are {MNIST.their_statistics}.",
            statistics=statistics,
            label_weight=0.5,
            temperature=3.0,
        ),
        noise,
        printed="nothing; the paper assumes differential privacy and leaves it open.",
    )


def list_private() -> Iterator[Experiment]:
    """The ten runs of accuracy against epsilon."""
    exact = ours("no noise, for comparison with the runs that have it", privacy_epsilon=0)
    noisy = "the statistics and the clients' sizes are released with noise"
    for statistics, deviations in NOISE.items():
        for epsilon, deviation in deviations.items():
            size = f"On a size it has a standard deviation of {deviation} examples."
            noise = ours(noisy, size, privacy_epsilon=epsilon, privacy_delta=1e-5, privacy_accountant="rdp")
            yield make_private(statistics, f"{epsilon}", f"noisy statistics, epsilon {epsilon}", noise)
        yield make_private(statistics, "_none", "exact statistics", exact)


def choose(algo: str, alpha: float, before: str = "", **further: Any) -> Block:
    """What the best trial of an algorithm had, and further settings; `before` is said before where it comes from."""
    search = f"{algo}_mnist_alpha{alpha}"
    best, settings = CHOSEN[algo, alpha]
    return ours(
        f"{before}tuned by the validation accuracy after round 5, seeds 100 and 101: the best of eight trials "
        f"({best} %), drawn at random from the grid of the search fedsikd/{search}; every trial is in "
        f"docs/results/tuning/{search}.csv",
        **further,
        **settings,
    )


def list_untuned(algo: str, alpha: float) -> list[Block]:
    """What the trials of an algorithm left alone."""
    teaches = algo in ("fedsikd", "random_cluster")
    teaching = {"student_optimizer": "adam", "teacher_optimizer": "adam", "teacher_learning_rate": 0.001}
    compared = "the methods are compared at round 5 and at equal bytes"
    longer = f"30 rounds, so that as many bytes can be moved as FedSiKD moves in five; {compared}"
    return [
        *list_shared(algo, MNIST, alpha),
        ours(
            "the paper prints no optimizer; as in the runs with its settings",
            **(teaching if teaches else {"optimizer": "adam"}),
        ),
        ours(f"five rounds; {compared}", rounds=5) if teaches else ours(longer, rounds=30),
    ]


def list_tuned() -> Iterator[Experiment]:
    """Each algorithm with what its trials chose, the control of tuned FedSiKD, and its ablations."""
    for algo, alpha in CHOSEN:
        about = f"{describe(algo, MNIST, alpha)}, tuned: {BESIDE}"
        settings = (*list_untuned(algo, alpha), choose(algo, alpha))
        yield make_experiment(f"{algo}_mnist_alpha{alpha}_tuned", about, *settings)
    every = f"every setting of tuned FedSiKD, {ONLY_MEMBERS}; "
    for alpha in (0.1, 0.5):
        about = f"{describe('random_cluster', MNIST, alpha)}, the control of tuned FedSiKD: {BESIDE}"
        chosen = choose("fedsikd", alpha, every, cluster_sizes="kmeans")
        settings = (*list_untuned("random_cluster", alpha), chosen)
        yield make_experiment(f"random_cluster_mnist_alpha{alpha}_control", about, *settings)
    for name, changes in ABLATIONS.items():
        about = f"{describe('fedsikd', MNIST, 0.1)}, tuned, ablation {name}: {BESIDE}"
        settings = (*list_untuned("fedsikd", 0.1), choose("fedsikd", 0.1, "as tuned FedSiKD; "), *changes)
        yield make_experiment(f"fedsikd_mnist_alpha0.1_tuned_{name}", about, *settings)


EXPERIMENTS = (*list_cells(), *list_authors(), *list_private(), *list_tuned())
