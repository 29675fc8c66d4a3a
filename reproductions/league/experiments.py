"""The league: the four systems beside what one would try first, on problems of many kinds, within what FedAvg takes.

An experiment is called `<method>_league_<problem>`. Its last settings are what trials have chosen, which are read from
the table of all trials; `python -m reproductions.league.choose` writes it.

Expected: no paper has this comparison. In docs/results/league.md none of the four systems is shown to be ahead of all
rivals on any problem.
Cost on two cores: 0.4 minutes of training a run in the median, 2.6 at most; the 620 kept runs took 4.6 hours.
Command: `python -m launch.sweep --experiments='league/*_league_*' --seeds=0-4 --finished=docs/results/league.zip`.
"""

import pathlib
from collections import Counter
from collections.abc import Mapping
from typing import Any

from launch.runs.tables import iterate_records
from launch.settings.experiments import Block, Experiment, make_experiment, ours
from reproductions.engine.collection import FOLDER, read_toml

WORDS = read_toml("league", "league.toml")
PROBLEMS: Mapping[str, Mapping[str, Any]] = WORDS["problems"]
METHODS: Mapping[str, str] = WORDS["methods"]  # titles, in the order of the tables
INFIX = "_league_"


def name_experiment(method: str, problem: str) -> str:
    """The experiment of a method on a problem."""
    return f"{method}{INFIX}{problem}"


def name_tuned(method: str, problem: str) -> str:
    """The experiment whose trials choose the method's settings on a problem."""
    return name_experiment(method, PROBLEMS[problem].get("tuned_as", problem))


def split_name(experiment: str) -> tuple[str, str]:
    """(method, problem) of an experiment of the league."""
    method, _, problem = experiment.partition(INFIX)
    return method, problem


TRIALS = "docs/results/tuning/league.csv"  # as texts name the table
TABLE = FOLDER.parent / TRIALS

BIASES = {"archetypes20": 0.2, "archetypes35": 0.35, "archetypes65": 0.65}
NEW_CLIENTS = {"har_new": 6, "building_new": 25}
SLOW_STEPS = {"slow_digits": 4, "slow_mnist": 20}
FIRST = ("local_only", "fedavg", "fedadam", "scaffold")
PERSONAL = ("fine_tuning", "ditto", "pfedme", "apfl", "partial", "ifca", "cfl", "fl_hc", "fedsikd")
IN_GROUPS = (*FIRST, *PERSONAL, "fedcd", "amfl_p", "oracle")
WITHOUT_GROUPS = (*FIRST, "fednova", *PERSONAL, "random_cluster", "fedcd")
ON_NEW = ("local_only", "fedavg", "fedadam", "fine_tuning", "ifca", "amfl_p")
ON_SLOW = ("fedavg", "async_periodic", "fed_async", "buffered")
METHODS_OF = {
    "rotated": IN_GROUPS,
    **dict.fromkeys(BIASES, IN_GROUPS),
    "dirichlet": WITHOUT_GROUPS,
    "har": (*WITHOUT_GROUPS, "amfl_p"),
    **dict.fromkeys(NEW_CLIENTS, ON_NEW),
    **dict.fromkeys(SLOW_STEPS, ON_SLOW),
    "shakespeare": ("fedavg", "fedadam", "fine_tuning", "partial", "ifca", "fedcd", "amfl_p"),
}
TITLES = METHODS | {
    "local_only": "Local training",
    "fine_tuning": "FedAvg with fine-tuning",
    "random_cluster": "FedSiKD's random clusters",
    "async_periodic": "Asynchronous FL",
    "oracle": "FedAvg inside the known groups",
}
DATA_WORDS = {problem: PROBLEMS[problem]["title"] for problem in METHODS_OF} | {
    "dirichlet": "MNIST, alpha 0.1",
    "har_new": "HAR, people who took no part",
    "building_new": "the simulated building, sensors that took no part",
}

# Bytes and virtual seconds are what FedAvg takes; rounds are twice as many as it has, with slow devices four times.
LIMITS = {
    "rotated": (3820000000, 236, 60),
    **dict.fromkeys(BIASES, (71000000, 64.5, 60)),
    "dirichlet": (122400000, 48.3, 40),
    "har": (204300000, 100, 60),
    "har_new": (145900000, 98, 60),
    "building_new": (149900000, 307, 100),
    "slow_digits": (93300000, 20, 80),
    "slow_mnist": (2072000000, 20, 80),
    "shakespeare": (2065000000, 520, 120),
}
WHY_LIMITS = (
    "what FedAvg takes in 30 rounds, of the Dirichlet clients and slow devices in 20, of the building in 50, "
    "of Shakespeare's roles in 60; the mean of seeds 100 to 104",
    "A run ends before the round that would pass a limit. Twice as many rounds are allowed, for methods whose rounds "
    "are cheaper in both; local training has as many as FedAvg, by which it has learned what it can. Shakespeare's "
    "limits are twice what was measured for 30 rounds, in which the best of FedAvg's trials had 31 %, 3 points above "
    "the most frequent character; no other method had been tried.",
)
FIRST_RATES = {
    "local_only": {"learning_rate": 0.1},
    "fedavg": {"learning_rate": 0.1},
    "fine_tuning": {"local_learning_rate": 0.1, "learning_rate": 0.02},
    "amfl_p": {"meta_learning_rate": 0.01, "fine_tuning_learning_rate": 0.02},
}


# The clients of a problem, and their model.
STUDENT = {"model": "image_student", "activation": "relu"}
NEW_PEOPLE = "six of 21 people, and a quarter of the sensors, take no part in training"
PEOPLE = ours(
    "a client is a person; the 561 statistics, since windows are ten times dearer",
    dataset="har",
    partition="natural",
    model="perceptron",
    test_fraction=0.3,
)
SLOW = {"num_clients": 100, "partition": "shards", "labels_per_client": 2, "batch_size": 10}
SLOW_DATA = {
    "slow_digits": {"dataset": "digits", "model": "perceptron"},
    "slow_mnist": {"dataset": "mnist", "model": "perceptron_2nn", "most_train_examples": 100},
}
DATA: Mapping[str, Block] = {
    "rotated": ours(
        "as the protocol of IFCA's Rotated MNIST, smaller: 100 clients of 100 images",
        dataset="mnist",
        variant="rotated",
        variant_groups=4,
        num_clients=100,
        partition="iid",
        most_train_examples=100,
        model="perceptron_1nn",
    ),
    **{
        problem: ours(
            "as FedCD's small experiments, with FedSiKD's student in place of a network of ten layers, which is ten "
            "times dearer",
            dataset="cifar10",
            partition="hierarchical",
            clients_per_archetype=3,
            train_per_client=200,
            validation_per_client=100,
            test_per_client=300,
            **{**STUDENT, "bias_min": bias, "bias_max": bias},
        )
        for problem, bias in BIASES.items()
    },
    "dirichlet": ours(
        "as FedSiKD's experiments on MNIST, with 150 images of a client at most",
        dataset="mnist",
        num_clients=40,
        partition="dirichlet",
        dirichlet_alpha=0.1,
        **{"most_train_examples": 150, **STUDENT},
    ),
    "har": PEOPLE,
    "har_new": PEOPLE + ours(NEW_PEOPLE, new_clients=NEW_CLIENTS["har_new"]),
    "building_new": ours(
        "the sensors of AMFL-P's experiments at medium heterogeneity", dataset="building", partition="natural"
    )
    + ours(NEW_PEOPLE, new_clients=NEW_CLIENTS["building_new"]),
    **{
        problem: ours(
            "two digits a client, as in the experiments of asynchronous FL, and as many images as the digits allow",
            **{**SLOW, **own},
        )
        for problem, own in SLOW_DATA.items()
    },
    "shakespeare": ours(
        "200 roles with 20 sequences or more, of which 40 are trained on at most; two layers of attention, since GRU "
        "is five times dearer",
        dataset="shakespeare",
        partition="natural",
        fewest_examples=20,
        most_clients=200,
        most_train_examples=40,
        evaluated_clients=100,
        finally_evaluated_clients=100,
        model="char_transformer",
        batch_size=10,
    ),
}


def limit(method: str, problem: str) -> Block:
    """What a run may spend."""
    most_bytes, most_virtual_s, rounds = LIMITS[problem]
    if method == "local_only":
        rounds = 1 if problem in NEW_CLIENTS else rounds // 2
    return ours(*WHY_LIMITS, most_bytes=most_bytes, most_virtual_s=most_virtual_s, rounds=rounds)


SAME = "plain SGD and the same local work for all: two passes over a client's data"
AS_IN_REPORT = "as in the best of the trials on MNIST in FedSiKD's report"
TEACHING = {"student_epochs": 2, "student_optimizer": "sgd", "teacher_epochs": 2, "num_clusters": 0}
PIXELS = "Clients that see turned images differ in each pixel's mean and not in that of all."
WORK = {"fedcd": {"milestones": 2, "late_round": 5}, "partial": {"personal": "last", "head_epochs": 2}}


def list_work(algo: str, problem: str) -> list[Block]:
    """What clients train in a round, and at the end, where nobody waits for the slow ones."""
    steps = 100 if problem in {**BIASES, **NEW_CLIENTS} else 30
    match algo:
        case "fine_tuning":
            return [ours(SAME, local_epochs=2, local_optimizer="sgd", steps=steps)]
        case "amfl_p":
            began = {"inner_steps": 1, "inner_learning_rate": 0.1, "server_optimizer": "adam"}
            return [
                ours(SAME, fine_tuning_steps=steps, fine_tuning_rule="same"),
                ours("the defaults when the league began, which may change", **began),
            ]
        case "fedsikd" | "random_cluster":
            best = {} if problem in BIASES else {"teacher_epochs": 5, "weighting": "examples"}
            best |= {"statistics": "per_feature"} if problem == "rotated" else {}
            return [ours(SAME, **TEACHING), ours(AS_IN_REPORT, PIXELS, **best)]
    return [ours(SAME, epochs=2, optimizer="sgd", **WORK.get(algo, {}))]


def choose_cohort(algo: str, problem: str) -> Block:
    """How many clients are asked in a round, where the algorithm does not ask all by itself."""
    everybody = {"rotated": 100, "dirichlet": 40, "har": 21}
    if problem in BIASES and algo not in ("local_only", "cfl", "fl_hc", "fedsikd"):
        return ours("a half of the devices a round, as in FedCD's experiments", cohort_size=15)
    if algo == "fedcd" and problem in everybody:
        return ours("all clients in every round", cohort_size=everybody[problem])
    return ()


def wait_for_slow(method: str, problem: str) -> Block:
    """Training with slow devices. FedAvg is asynchronous FL that waits for all."""
    steps = SLOW_STEPS[problem]
    waiting = {"speed": "by_label", "max_scheduled": 30, "steps": steps, "proximal_weight": 0}
    asked = {"concurrency": 30, "steps": steps}
    own = {
        "fedavg": {"waiting": "synchronous", "weighting": "age_aware", **waiting},
        "async_periodic": {"waiting": "periodic", "weighting": "age_aware", "gamma": 1.25, **waiting},
        "fed_async": {"speed": "by_label", "updates_per_round": 30, **asked},
        "buffered": {"speed": "by_label", "buffer_size": 30, **asked},
    }
    why = "slow devices have digits that no fast one has; 30 updates an aggregation, 30 devices at a time"
    return ours(why, **own[method])


def list_text(algo: str) -> list[Block]:
    """What is different on Shakespeare's roles."""
    own = {
        "fine_tuning": {"local_optimizer": "adam", "steps": 4},
        "amfl_p": {"fine_tuning_steps": 4, "support_size": 8, "query_size": 8},
    }
    has_momentum = algo in ("fine_tuning", "partial", "ifca", "fedcd")
    return [
        ours(
            "ten roles a round; Adam on the clients",
            "With SGD at a rate of 0.3 FedAvg had 25 % after 30 rounds, below the 28 % of the most frequent next "
            "character; with Adam at 0.002 it had 30 %.",
            **{"cohort_size": 10, **own.get(algo, {"optimizer": "adam"})},
        ),
        ours(
            "momentum at the server, which FedAvg's trials had chosen before any of these methods was tried",
            "Where no line says so, only FedAvg, SCAFFOLD, FedNova and an oracle could choose it.",
            **({"server_momentum": 0.9} if has_momentum else {}),
        ),
    ]


END = {"fairness": True, "rounds_per_evaluation": 1000, "rounds_per_shared_evaluation": 1000}
END |= {"rounds_per_checkpoint": 1000, "most_test_examples": 2000}


def list_settings(method: str, problem: str) -> list[Block]:
    """All of an experiment but what trials choose."""
    is_initial = method == "local_only" and problem in NEW_CLIENTS
    waits_for_slow = method == "fedavg" and problem in SLOW_STEPS
    algo = "fine_tuning" if is_initial else "async_periodic" if waits_for_slow else method
    spelling = "the algorithm of that name; FedPer and FedRep are two schedules of partial personalization"
    end = "only the end counts, and every client's model is tested there"
    note = "How often a checkpoint is kept changes no result."
    size = 10 if problem in BIASES else 20
    settings = [
        ours(spelling, algo=algo),
        ours(end, note, **END, batch_size=size),
        DATA[problem],
        limit(method, problem),
    ]
    if problem in SLOW_STEPS:
        return [*settings, wait_for_slow(method, problem)]
    settings += list_work(algo, problem)
    if is_initial:
        settings.append(ours("new clients train from random weights, so nobody trains before", start="initial"))
    settings.append(ours("from the middle of the grid, where no trials were made", **FIRST_RATES.get(algo, {})))
    settings.append(choose_cohort(algo, problem))
    return settings + (list_text(algo) if problem == "shakespeare" else [])


def read_choices(path: pathlib.Path) -> dict[str, Block]:
    """What trials have chosen, by the experiment that was tried; nothing where there is no table."""
    rows = list(iterate_records(path.read_text(encoding="utf-8").splitlines(keepends=True))) if path.is_file() else []
    counts = Counter(row["experiment"] for row in rows if row["mean"])
    choices = {}
    for row in rows:
        if row["chosen"]:
            why = f"the best of {counts[row['experiment']]} trials on validation examples ({TRIALS})"
            settings = dict(each.removeprefix("--").split("=", 1) for each in row["settings"].split())
            choices[row["experiment"]] = ours(why, **settings)
    return choices


def list_rows(choices: Mapping[str, Block]) -> list[Experiment]:
    """Every method on its problems, with what trials have chosen for it there or on the problem that it is tuned as."""
    return [
        make_experiment(
            name_experiment(method, problem),
            f"{TITLES[method]} in the league, on {DATA_WORDS[problem]}.",
            *list_settings(method, problem),
            choices.get(name_tuned(method, problem), ()),
            printed="nothing; no paper has this comparison.",
        )
        for problem, methods in METHODS_OF.items()
        for method in methods
    ]


EXPERIMENTS = list_rows(read_choices(TABLE))
