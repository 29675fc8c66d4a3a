"""AMFL-P (Vasishtha 2025): Tables 1 and 2 and Figure 1, on a simulated building, and our own comparisons beside them.

Expected: Table 1, at medium heterogeneity, prints accuracies of 88.7 % (AMFL-P), 82.5 % (Fine-Tuning) and 78.2 %
(FedAvg). The values of Table 2, which varies the heterogeneity, are lost.
Cost on two cores: 0.2 minutes of training a run in the median, 3 on CIFAR-10; the 1,135 kept runs took 5.2 hours.
Command: `python -m launch.sweep --experiments='amfl_p/start_*_medium' --seeds=0-19 --finished=docs/results/amfl_p.zip
-- --runtime=in_process --compile=off`.
"""

from collections.abc import Iterator
from typing import Any

from launch.settings.experiments import Block, Experiment, make_experiment, ours, printed

DEGREES = ("low", "medium", "high")  # of heterogeneity; our factorial has "structured", too
RATES = {"meta_learning_rate": 0.001, "inner_learning_rate": 0.01}  # as the paper prints them
CURVE = "0,1,2,5,10,20,50,100"
ADAPTIVE = printed("section 3.4", weighting="adaptive")
NOT_OF_PAPER = "local training is not in the paper"
NO_OPTIMIZER = "the paper names no optimizer of FedAvg"


def name_finish(algo: str, **settings: Any) -> dict[str, Any]:
    """What Fine-Tuning calls its `steps` is `fine_tuning_steps` of AMFL-P, and so with all settings of finishing."""
    return settings if algo == "fine_tuning" else {f"fine_tuning_{flag}": value for flag, value in settings.items()}


DEGREE = ("the paper varies the heterogeneity (section 4.3) without defining its levels",)  # our reason, and a note
STRUCTURED = (
    "a fourth degree, with the heterogeneity that a start can use",
    "It was written before any method was run on it and is counted for no claim.",
)


def list_shared(algo: str, degree: str) -> list[Block]:
    """What all experiments have but those without flags."""
    return [
        printed("section 4.1", dataset="building", building_num_sensors=100),
        printed("section 4.1", **({**RATES, "fine_tuning_steps": 100} if algo == "amfl_p" else {})),
        ours(NOT_OF_PAPER, algo=algo) if algo == "local_only" else printed("section 4", algo=algo),
        ours(
            "the paper does not print how long it trains",
            "By its Table 1, FedAvg needs 50 rounds to its target (section 4.2).",
            rounds=50,
        ),
        ours(*(STRUCTURED if degree == "structured" else DEGREE), building_heterogeneity=degree),
        ours(
            "the last fifth of a sensor's training days, which is three days, is its validation split",
            validation_fraction=0.2,
        ),
        ours("rounds to an accuracy are counted in steps of five", rounds_per_evaluation=5),
    ]


# The paper's own comparison, with local training beside it.
TITLES = {"amfl_p": "AMFL-P", "fedavg": "FedAvg", "fine_tuning": "Fine-Tuning", "local_only": "Local training"}
TABLE_1 = {
    "amfl_p": "accuracy 88.7 %, 30 rounds to the target accuracy, 65 fine-tuning steps on average.",
    "fedavg": "accuracy 78.2 %, 50 rounds to the target accuracy.",
    "fine_tuning": "accuracy 82.5 %, 40 rounds to the target accuracy, 100 fine-tuning steps.",
}
LOST = "nothing that we have; the values of Table 2 are lost."
NOT_LOCAL = f"nothing; {NOT_OF_PAPER}."
TRAINING = {"steps": 4, "optimizer": "sgd", "learning_rate": 0.01}
FINE_TUNING = {f"local_{flag}": value for flag, value in TRAINING.items()} | {"learning_rate": 0.01}


def list_paper(algo: str, degree: str) -> list[Block]:
    """A method of the paper with the learning rates that it prints, or local training beside it."""
    if algo == "amfl_p":
        return [
            *list_shared(algo, degree),
            ADAPTIVE,
            printed("section 3.3", fine_tuning_rule="resources"),
            printed(
                "section 3.5",
                "One inner step and plain gradient descent, as in the summary of the algorithm.",
                inner_steps=1,
                server_optimizer="sgd",
            ),
            ours(
                "the paper prints neither batch sizes nor the highest rate of fine-tuning, which is the inner rate "
                "here",
                "With plain SGD at this meta-learning rate the global model hardly moves: within 30 rounds its weights "
                "change by 0.13 % of their norm and its meta-loss falls from 1.423 to 1.420 (medium heterogeneity, "
                "mean of seeds 0 to 2). Nearly all learning happens in the fine-tuning.",
                support_size=32,
                query_size=32,
                fine_tuning_learning_rate=0.01,
                batch_size=16,
            ),
        ]
    training = FINE_TUNING if algo == "fine_tuning" else TRAINING
    why = "the inner rate of AMFL-P, and as many examples a round as AMFL-P uses"
    steps = printed("section 4.2", **({"steps": 100} if algo == "fine_tuning" else {}))
    return [*list_shared(algo, degree), ours(why, batch_size=16, **training), steps]


def list_paper_rows() -> Iterator[Experiment]:
    """Each method at each degree."""
    for degree in DEGREES:
        where = "Tables 1, 2 and Figure 1" if degree == "medium" else "Table 2"
        for algo, title in TITLES.items():
            numbers = TABLE_1.get(algo, NOT_LOCAL) if degree == "medium" or algo == "local_only" else LOST
            yield make_experiment(
                f"{algo}_building_{degree}",
                f"{title} on the simulated building, 100 sensors, {degree} heterogeneity: {where} of the AMFL-P paper.",
                *list_paper(algo, degree),
                printed=numbers,
                short=degree if algo == "amfl_p" else "",
            )


# Our factorial: what trains the start, and how the devices finish. FedAvg alone and local training stand beside it.
STARTS = {"fedavg": "FedAvg", "maml": "MAML", "random": "random weights"}
FINISHES = {"resources": "steps and rate by resources", "same": "the same steps and rate for all"}
CHOSEN = {  # the validation accuracy (%) of the best trial of each, and its settings; all have batches of 96
    "fedavg_alone": ("58.21", {"steps": 2, "learning_rate": 0.003}),
    "local_training": ("80.49", {"steps": 12, "learning_rate": 0.001}),
    "start_fedavg_resources": ("79.99", {"local_learning_rate": 0.03, "learning_rate": 0.2}),
    "start_fedavg_same": ("81.50", {"local_learning_rate": 0.03, "learning_rate": 0.1}),
    "start_maml_resources": ("81.25", {"meta_learning_rate": 0.03, "fine_tuning_learning_rate": 0.1}),
    "start_maml_same": ("82.35", {"meta_learning_rate": 0.03, "fine_tuning_learning_rate": 0.05}),
    "start_random_resources": ("67.72", {"learning_rate": 0.8}),
    "start_random_same": ("75.44", {"learning_rate": 0.2}),
}


def choose(cell: str, best: str, note: str, those: str = "", /, **settings: float) -> Block:
    """What the best trial of a search had. `those`: which of its trials count, if not all."""
    search = f"{cell}_building_medium"
    why = (
        "tuned by the clients' validation accuracy at the end, medium heterogeneity, seeds 100 to 104: the best "
        f"({best} %) of all points of the grid of the search amfl_p/{search}{those}; every trial is in "
        f"docs/results/tuning/{search}.csv"
    )
    return ours(why, note, **settings)


def choose_own(cell: str) -> Block:
    """What the trials of a cell of the factorial, or of what stands beside it, chose for it."""
    best, settings = CHOSEN[cell]
    note = (
        "Of each start with a finish, of local training and of FedAvg alone all points of a grid are tried; the "
        "settings are its own, the batch size among them. The other degrees use the same settings."
    )
    return choose(cell, best, note, **settings, batch_size=96)


OLDER = "from an earlier search, which saw seeds 0 to 4 and whose trials were not kept"
STARTING = {  # what trains a start
    "fedavg": [
        ours(NO_OPTIMIZER, local_optimizer="adam"),
        ours(f"{OLDER}; with Adam, fewer steps and a larger rate do the same", local_steps=2),
    ],
    "maml": [
        printed("section 3.5", "One inner step, as in the summary of the algorithm.", inner_steps=1),
        ours(
            "together the two batches fit every sensor: the one with the fewest readings has 78 to train on (high "
            "heterogeneity, seed 9, of all degrees and seeds 0 to 19 and 100 to 104)",
            support_size=16,
            query_size=60,
        ),
        ours("Adam, since plain SGD at the printed rate hardly moves the model", server_optimizer="adam"),
        ours(OLDER, inner_learning_rate=0.1),
    ],
    "random": [
        ours(
            "a control without a trained model",
            "Its clients start from the weights before the first round, so one round does.",
            start="initial",
            rounds=1,
            rounds_per_evaluation=1,
            local_steps=1,
            local_learning_rate=0.003,
        )
    ],
}


def list_start(start: str, finish: str, degree: str) -> list[Block]:
    """A cell of the factorial. MAML stands for AMFL-P's training; the others are Fine-Tuning."""
    algo = "amfl_p" if start == "maml" else "fine_tuning"
    rule, control = name_finish(algo, rule=finish), "a control, with which steps and rate do not depend on resources"
    return [
        *list_shared(algo, degree),
        printed("section 4.1", "N_max.", **name_finish(algo, steps=100)),
        ours("accuracy after every few steps", **name_finish(algo, curve=CURVE)),
        ADAPTIVE if start == "maml" else (),
        printed("section 3.3", **rule) if finish == "resources" else ours(control, **rule),
        *STARTING[start],
        choose_own(f"start_{start}_{finish}"),
    ]


def list_beside(cell: str, algo: str, degree: str) -> list[Block]:
    """FedAvg alone or local training, tuned like the cells of the factorial."""
    optimizer = ours(NOT_OF_PAPER if algo == "local_only" else NO_OPTIMIZER, optimizer="adam")
    return [*list_shared(algo, degree), optimizer, choose_own(cell)]


def list_factorial_rows() -> Iterator[Experiment]:
    """Each start with each finish, and what stands beside them, at each degree."""
    nothing = "nothing; the paper does not tell what the start gains from what the rule by resources loses."
    unlike = "nothing; the paper's Table 1 has FedAvg with settings that it does not print."
    beside = {
        "fedavg_alone": ("FedAvg alone", "fedavg", unlike),
        "local_training": ("Local training", "local_only", NOT_LOCAL),
    }
    for degree in (*DEGREES, "structured"):
        data, paper = f"simulated building, {degree} heterogeneity", "Table 2 of the AMFL-P paper"
        for start, trained in STARTS.items():
            for finish, finished in FINISHES.items():
                name, settings = f"start_{start}_{finish}_building_{degree}", list_start(start, finish, degree)
                about = f"Start from {trained}, finish with {finished}, {data}: our factorial beside {paper}."
                yield make_experiment(name, about, *settings, printed=nothing)
        for cell, (title, algo, numbers) in beside.items():
            about = f"{title}, {data}: stands beside our factorial and {paper}."
            settings = list_beside(cell, algo, degree)
            yield make_experiment(f"{cell}_building_{degree}", about, *settings, printed=numbers)


# Our ablations: AMFL-P as tuned in the factorial, with one thing changed.
CONTROL = "a control of the weights in section 3.4"
PRODUCT = f"{CONTROL}, which multiplies resources and quality"
CHANGES = {
    "dynamic": ours("the paper names static resources as a limitation", resources="dynamic"),
    "printed_adam": printed("section 4.1", "With Adam, of which 0.001 is a usual rate.", **RATES),
    "printed_sgd": printed("sections 3.5 and 4.1", **RATES, server_optimizer="sgd"),
    "quality_fine_tuned": printed("section 3.4", quality_model="fine_tuned"),
    "weighting_equal": ours(CONTROL, weighting="equal"),
    "weighting_examples": ours(CONTROL, weighting="examples"),
    "weighting_quality": ours(PRODUCT, weighting="quality"),
    "weighting_resource": ours(PRODUCT, weighting="resource"),
}


def make_ablation(change: str, *blocks: Block, but: str = "") -> Experiment:
    """AMFL-P with one thing changed. `but`: what else is changed with it."""
    about = (
        f"AMFL-P with one thing changed ({change}), simulated building, medium heterogeneity: our ablations beside "
        f"Table 1 of the AMFL-P paper. All else is as in start_maml_resources_building_medium{but}; nothing is tuned "
        "again."
    )
    settings = (*list_start("maml", "resources", "medium"), *blocks)
    return make_experiment(f"ablation_{change}_building_medium", about, *settings, printed="nothing.")


BY_SQUARE = "a control of section 3.3, whose rule makes the change of a device go with the square of its resources"
SAME_RATE = (
    "The rate, and the batch with it, that suit where all devices have the same rate: that of the rule by resources is "
    "its highest, and would be too high here."
)
RULE_STEPS = make_ablation(
    "rule_steps",
    ours(BY_SQUARE, fine_tuning_rule="steps"),
    choose("start_maml_same", "82.35", SAME_RATE, fine_tuning_learning_rate=0.05, batch_size=96),
    but=", but the rate and the batch of fine-tuning",
)

# Our few-shot figure: sensors with their first readings alone, and sensors that took no part in training.
FEW_STARTS = {"fedavg": ("FedAvg", 0)} | {f"maml{k}": (f"MAML with {k} inner steps", k) for k in (1, 5, 10)}


def list_few(algo: str) -> list[Block]:
    """What all of them share, whatever the readings."""
    return [
        *list_shared(algo, "medium"),
        ours(
            "no readings are held out, so that all starts see the same labels; the weights of AMFL-P judge a sensor's "
            "model on its query batch",
            validation_fraction=0,
        ),
        ours("accuracy is measured when training is over", rounds_per_evaluation=50),
    ]


def limit_readings(readings: int | None) -> Block:
    """The first so many of each sensor; None: all."""
    why = 'the paper claims an advantage "even with limited local data" and measures none'
    note = "A sensor has its first readings in time, since it is new when it is labelled."
    return ours(why, note, most_train_examples=readings) if readings else ()


def choose_of_16(cell: str, best: str, like: str = "as here", had: str = "", /, **settings: float) -> Block:
    """What the trials with batches of 16 chose. `had`: what else these trials had."""
    trials = f"The trials had all readings but a validation split{had}. Nothing was chosen again for these runs."
    return choose(cell, best, f"Batches are of 16, {like}. {trials}", ", those with batches of 16", **settings)


def list_few_start(inner_steps: int, readings: int | None) -> list[Block]:
    """MAML's start with so many inner steps, which are its K; FedAvg's with none."""
    algo = "amfl_p" if inner_steps else "fine_tuning"
    training = {"local_steps": 2, "local_optimizer": "adam"}
    chosen = [choose_of_16("start_fedavg_same", "80.46", local_learning_rate=0.03)]
    if inner_steps:
        training = {"inner_learning_rate": 0.1, "server_optimizer": "adam"}
        size, had = (
            readings // 2 if readings else 32,
            ", support and query batches of 16 and 60 readings, and one inner step",
        )
        batches = {"inner_steps": inner_steps, "support_size": size, "query_size": size}
        chosen = [
            ADAPTIVE,
            ours("the paper does not print K", "Support and query batch share the readings of a sensor.", **batches),
            choose_of_16("start_maml_same", "81.99", "as here", had, meta_learning_rate=0.03),
        ]
    finish = name_finish(algo, rule="same", learning_rate=0.1, curve=CURVE)
    return [
        *list_few(algo),
        printed("section 4.1", "N_max.", **name_finish(algo, steps=100)),
        ours("a fifth of the sensors takes no part in training", new_clients=20),
        ours("as in the factorial", **training),
        ours(
            "one finish for all starts, so that the starts alone differ", "No trial chose it.", **finish, batch_size=16
        ),
        limit_readings(readings),
        *chosen,
    ]


def list_few_local(readings: int | None) -> list[Block]:
    """Local training beside these starts."""
    note = "It knows no new sensors, so all take part; the report tells them apart."
    training = {"steps": 24, "learning_rate": 0.001, "batch_size": 16}
    return [
        *list_few("local_only"),
        limit_readings(readings),
        ours(NOT_OF_PAPER, note, algo="local_only", optimizer="adam"),
        choose_of_16("local_training", "80.39", "as the other starts' here", **training),
    ]


def list_few_rows() -> Iterator[Experiment]:
    """Each start, and local training, with so many readings."""
    for readings in (16, 32, 64, None):
        number = f"{readings} readings a sensor" if readings else "all readings"
        data, end = f"{number}, simulated building, medium heterogeneity", f"building_{readings or 'all'}"
        figure = "our few-shot figure, for which the AMFL-P paper has no Figure."
        for start, (title, inner_steps) in FEW_STARTS.items():
            name, about = f"few_shot_{start}_{end}", f"Start from {title}, {data}: {figure}"
            yield make_experiment(name, about, *list_few_start(inner_steps, readings), printed="nothing.")
        name, about = f"few_shot_local_{end}", f"Local training, {data}: a line of {figure}"
        yield make_experiment(name, about, *list_few_local(readings), printed="nothing.")


# Our table of defaults: runs without flags, and FedAvg with what its trials would have made its defaults.
DATA = (
    *(("building", degree) for degree in DEGREES),
    *(("cifar10", "shards"), ("digits", "archetypes"), ("har", "subjects"), ("mnist", "archetypes")),
)
PARTITIONS = {"shards": "shards", "archetypes": "hierarchical", "subjects": "natural"}
FEDAVG_CHOSEN = ours(
    "chosen by the validation accuracy on building and HAR (75.01 % in the mean), as the defaults of the other three: "
    "the best of the 16 trials of the search amfl_p/defaults_fedavg_building_medium and ..._har_subjects",
    "The defaults of FedAvg are others, since it is the baseline of the other systems, too.",
    epochs=5,
    learning_rate=0.0003,
    batch_size=48,
)
DEFAULTS = {  # the words of a row, its algorithm, and the settings that it has nevertheless
    "amfl_p": ("AMFL-P without flags", "amfl_p", ()),
    "fedavg": ("FedAvg without flags", "fedavg", ()),
    "fedavg_chosen": ("FedAvg with the best of its trials", "fedavg", FEDAVG_CHOSEN),
    "fine_tuning": ("Fine-Tuning without flags", "fine_tuning", ()),
    "local_only": ("local training without flags", "local_only", ()),
}


TO_THE_END = (
    "as many rounds for the three that train by epochs, which is the default of two of them; accuracy is measured at "
    "the end"
)
DENSE = (
    "two dense layers for all algorithms, since the model of this data set's examples has convolutions and takes up to "
    "an hour a run"
)


def list_defaults(algo: str, data: str, kind: str, chosen: Block) -> list[Block]:
    """The algorithm with its defaults, or with what trials have `chosen`. `kind`: the degree, or how data are split."""
    split = {"building_heterogeneity": kind} if data == "building" else {"partition": PARTITIONS[kind]}
    note = "" if chosen else "All else has its default."
    length = ours(TO_THE_END, rounds=30, rounds_per_evaluation=30)
    if algo == "amfl_p":
        length = ours("accuracy is measured at the end", rounds_per_evaluation=300)
    model = ours(DENSE, model="perceptron") if data in ("cifar10", "har", "mnist") else ()
    return [ours("the algorithm and the data", note, algo=algo, dataset=data, **split), length, model, chosen]


EXPERIMENTS = [
    *list_paper_rows(),
    *list_factorial_rows(),
    *(make_ablation(change, block) for change, block in CHANGES.items()),
    RULE_STEPS,
    *list_few_rows(),
    *(
        make_experiment(
            f"defaults_{row}_{data}_{kind}",
            f"{words} on {data}, {kind}: our table of defaults; the AMFL-P paper has no such Table.",
            *list_defaults(algo, data, kind, chosen),
            printed="nothing.",
        )
        for row, (words, algo, chosen) in DEFAULTS.items()
        for data, kind in DATA
    ),
]
