"""The searches of the league, written before the first trial; "once" says which were changed after.

Every method has six trials, all points of a grid of three learning rates and two values of what is its own, on one seed
that is not reported. The score is the clients' own validation accuracy at the end of the run, which is within the
limits of the problem; with slow devices, that on the validation examples of all clients.

Command: `python -m reproductions.league.choose`, which makes them all; its trials are in
docs/results/tuning/league.csv.
"""

from launch.settings.experiments import make_search
from reproductions.league.experiments import METHODS_OF, NEW_CLIENTS, SLOW_STEPS, name_experiment, name_tuned

OBJECTIVES = dict.fromkeys(SLOW_STEPS, "validation_accuracy") | {"shakespeare": "client_validation_token_accuracy"}
MIDDLE, HIGH = "0.03|0.1|0.3", "0.1|0.3|1"
RATES = {
    "archetypes35": MIDDLE,
    "building_new": MIDDLE,
    # Once 0.03|0.1|0.3: of eight searches seven chose the highest. All were made anew.
    **dict.fromkeys(SLOW_STEPS, HIGH),
    # Once 0.001|0.003|0.01, of which FedAvg, the only one that was tried, chose the lowest.
    "shakespeare": "0.0003|0.001|0.003",
    # Once 0.03|0.1|0.3, as elsewhere, of which 13 of 17 methods chose the lowest; then 0.003|0.01|0.03, of which 13
    # chose the highest. Trials of the same settings were kept.
    **dict.fromkeys(("har", "har_new"), "0.01|0.03|0.1"),
    # Once 0.03|0.1|0.3, of which on rotated MNIST all methods but local training chose the highest (AMFL-P 0.01 of
    # 0.001|0.003|0.01), and on the Dirichlet clients twelve of 16, all but those below. Trials of the same settings
    # were kept.
    **dict.fromkeys(("rotated", "dirichlet"), HIGH),
}
MIDDLE_ON_DIRICHLET = ("local_only", "scaffold", "ditto", "partial")
GRIDS = {
    "local_only": "learning_rate={rates};momentum=0|0.9",
    **dict.fromkeys(("fedavg", "scaffold", "fednova", "oracle"), "learning_rate={rates};server_momentum=0|0.9"),
    "fedadam": "learning_rate={rates};server_learning_rate=0.003|0.03",
    "fine_tuning": "local_learning_rate={rates};learning_rate=0.02|0.1",
    "ditto": "learning_rate={rates};pull=0.1|1",
    "pfedme": "learning_rate={rates};inner_steps=2|5",
    "apfl": "learning_rate={rates};adaptive=true|false",
    "partial": "learning_rate={rates};schedule=together|head_first",
    "ifca": "learning_rate={rates};num_models=2|4",
    "cfl": "learning_rate={rates};eps_1_multiple=0.2|0.6",
    "fl_hc": "learning_rate={rates};distance_multiple=0.9|1.1",
    # Which teacher: a leader's sends half as much.
    **dict.fromkeys(("fedsikd", "random_cluster"), "student_learning_rate={rates};teacher=leader|cluster"),
    # Once milestones 3,6 and 3,6,9 with no early deletion. On the archetypes ten rounds of that reach the limit, and
    # its best score was 42.4 %. It was made anew, with a clone or two early on and deletion from round 5 on.
    "fedcd": "learning_rate={rates};milestones=2|2,5",
    "amfl_p": "meta_learning_rate={rates};fine_tuning_learning_rate=0.02|0.1",
    # The period decides over how many aggregations the bytes are spread. Once gamma=1|1.25, of which 1.25 was chosen.
    "async_periodic": "learning_rate={rates};period_fraction=0.25|0.5",
    "fed_async": "learning_rate={rates};mixing_weight=0.2|0.6",
    "buffered": "learning_rate={rates};server_learning_rate=1|1.5",
}
OTHER_GRIDS = {
    **{("local_only", problem): "learning_rate={rates};steps=100|400" for problem in NEW_CLIENTS},
    **{("fedavg", problem): "learning_rate={rates};server_momentum=0|0.5" for problem in SLOW_STEPS},
    ("pfedme", "archetypes35"): "learning_rate={rates};outer_rate=0.1|0.5",
    ("fedsikd", "archetypes35"): "student_learning_rate={rates};label_weight=0.3|0.7",
    ("oracle", "archetypes35"): "learning_rate={rates};groups=archetype|meta_archetype",
}
WORDS = {
    **{(method, "shakespeare"): f"{method} on Shakespeare by role" for method in METHODS_OF["shakespeare"]},
    ("amfl_p", "har"): "AMFL-P on HAR by subject",
}


def choose_rates(method: str, problem: str) -> str:
    """The three learning rates of a grid."""
    if method == "amfl_p":
        return "0.003|0.01|0.03" if problem in ("rotated", "archetypes35", "building_new") else "0.001|0.003|0.01"
    return MIDDLE if problem == "dirichlet" and method in MIDDLE_ON_DIRICHLET else RATES[problem]


SEARCHES = tuple(
    make_search(
        name_experiment(method, problem),
        f"The trials of {WORDS.get((method, problem), f'{method} on {problem}')}.",
        seeds="100",
        objective=OBJECTIVES.get(problem, "client_validation_accuracy"),
        trials=6,
        search=OTHER_GRIDS.get((method, problem), GRIDS[method]).format(rates=choose_rates(method, problem)),
    )
    for problem, methods in METHODS_OF.items()
    for method in methods
    if name_tuned(method, problem) == name_experiment(method, problem)
)
