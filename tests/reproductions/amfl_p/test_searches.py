"""The search spaces of AMFL-P's comparisons: methods that are compared have as many trials, on seeds of their own."""

import functools
import re

import pytest
from experiment_flags import check_search

from launch.runs.run_records import read_rows, resolve_experiment
from launch.settings.algorithms import ALGORITHMS
from launch.settings.experiments import get_experiment, list_experiments, list_searches
from launch.settings.flags import parse_config
from launch.settings.run_config import find_idle, flag_values
from launch.sweeps.tuning.scored_runs import build_tasks, compute_grid_size, draw_trials
from launch.sweeps.tuning.trials import MEAN
from reproductions.amfl_p.measures import AXES
from reproductions.amfl_p.tables import CHOICE

STARTS, FINISHES, DEGREES, PLACES = (AXES[name] for name in ("start", "finish", "degree", "data"))
CHOSEN_FEDAVG = "fedavg_chosen"
DEFAULT_ALGOS = [algo for algo in AXES["default"] if algo != CHOSEN_FEDAVG]
SPACES = [each.name for each in list_searches().values() if each.paper == "amfl_p"]
NUM_TRIALS = 36
NUM_FEWER = 12  # where there is less to choose
ADDED = {  # where the best of the first trials had the smallest or the largest
    "start_random_resources_building_medium": {"fine_tuning_learning_rate": ("0.8", "1.6")},
    "start_maml_same_building_medium": {"fine_tuning_learning_rate": ("0.0125", "0.025")},
    "local_training_building_medium": {"learning_rate": ("0.0001", "0.0003"), "steps": ("24",)},
    **{
        f"defaults_{algo}_{place}": {"learning_rate": ("0.0003",)}
        for algo in ("local_only", "fedavg")
        for place in CHOICE["chosen_on"]
    },
}
NARROWED = {"batch_size": ("48",)}  # of AMFL-P's defaults, whose second trials these are
TUNED_CELLS = [stem for stem in SPACES if not stem.startswith("defaults_")]
NAMED = re.compile(r"the search amfl_p/(\w+)")
# These have that batch, and the best of the trials with it.
OF_BATCH_16 = re.compile(r"few_shot_(fedavg|maml\d+|local)_.*")


@pytest.fixture
def read(read_request):
    return functools.partial(read_request, "amfl_p")


def draw(request):
    return draw_trials(request.space, request.num_trials)


def name_shared(stem, flag):
    """What AMFL-P and the others call a setting of Fine-Tuning."""
    if get_experiment(stem).flags["algo"] != "fine_tuning" or flag not in ALGORITHMS["fine_tuning"].names:
        return flag
    return flag.removeprefix("local_") if flag.startswith("local_") else f"fine_tuning_{flag}"


def drop_added(stem, flag, choices):
    """(name that algorithms share, choices of the first trials), asserting that the added ones are among `choices`."""
    name = name_shared(stem, flag)
    added = ADDED.get(stem, {}).get(name, ())
    assert set(added) < set(choices)
    return name, tuple(choice for choice in choices if choice not in added)


def test_every_start_finish_and_default_has_its_space():
    cells = {f"start_{start}_{finish}_building_medium" for start in STARTS for finish in FINISHES}
    cells |= {f"defaults_{algo}_{place}" for algo in DEFAULT_ALGOS for place in CHOICE["chosen_on"]}
    assert set(SPACES) == cells | {"local_training_building_medium", "fedavg_alone_building_medium"}


@pytest.mark.parametrize("stem", SPACES)
def test_a_space_can_be_run_and_all_of_it_is_tried(stem, read):
    """Reported seeds are 0 to 19; a test split scores nothing. No draw favours a method."""
    request = read(stem)
    defaults = tuple(f"defaults_{algo}" for algo in ("amfl_p", "fedavg", "local_only"))
    has_less = "start_random" in stem or stem.startswith(defaults)
    first = dict(drop_added(stem, *item) for item in request.space.items())
    assert compute_grid_size(first) == (NUM_FEWER if has_less else NUM_TRIALS)
    assert first.keys() >= ADDED.get(stem, {}).keys()
    tasks = build_tasks(request._replace(seeds=("100",)))
    assert len(draw(request)) == compute_grid_size(request.space) == request.num_trials == len(tasks)
    check_search(request, stem, "client_validation_accuracy", None)


@pytest.mark.parametrize("algo", DEFAULT_ALGOS)
def test_defaults_are_chosen_among_the_same_trials_on_all_data(algo, read):
    first, *others = (read(f"defaults_{algo}_{place}") for place in CHOICE["chosen_on"])
    assert all(draw(other) == draw(first) for other in others)


def test_what_two_methods_share_has_the_same_choices(read_choices):
    starts = [f"start_{start}_{finish}_building_medium" for start in STARTS for finish in FINISHES]
    defaults = [f"defaults_{algo}_building_medium" for algo in DEFAULT_ALGOS]
    beside = ["local_training_building_medium", "fedavg_alone_building_medium"]
    finish, training = "fine_tuning_learning_rate", "learning_rate"
    for stems, rate in ((starts, finish), (defaults, finish), (beside, training)):
        seen = {}
        for of, flag, choices in ((stem, *item) for stem in stems for item in read_choices("amfl_p", stem).items()):
            name, choices = drop_added(of, flag, choices)
            if of.startswith("defaults_amfl_p") and name in NARROWED:
                assert choices == NARROWED[name]
                continue
            assert seen.setdefault(name, choices) == choices, name
        assert {"batch_size", rate} <= seen.keys()


def test_only_runs_without_flags_follow_the_defaults_that_are_chosen(read, drop_quicker):
    """Kept runs of all others, in all papers, still count when the trials have given new defaults."""
    spaces = {algo: read(f"defaults_{algo}_{CHOICE['chosen_on'][0]}").space for algo in DEFAULT_ALGOS}
    searched = {algo: drop_quicker(space).keys() for algo, space in spaces.items()}
    following = set()
    for each in list_experiments().values():
        left = searched.get(each.flags["algo"], set()) - each.flags.keys()
        if left and left - find_idle(resolve_experiment(each)).keys():
            following.add(each.name)
    assert following == {f"defaults_{algo}_{place}" for algo in DEFAULT_ALGOS for place in PLACES}


def list_searched_settings():
    """(experiment, search that a source names, source, flags of that source) for all but runs without flags."""
    found = []
    for each in list_experiments().values():
        by_source = {}
        for setting in each.settings if each.paper == "amfl_p" else ():
            by_source.setdefault(f"{setting.source}. {setting.note}", {})[setting.flag] = setting.value
        for source, given in by_source.items():
            if named := NAMED.search(source):
                found.append((each.name, named[1], source, given))
    return found


def test_every_experiment_that_takes_settings_from_trials_says_so():
    taking = {name for name, *_ in list_searched_settings()}
    runs = rf"(start|local_training|fedavg_alone|few_shot|ablation|defaults_{CHOSEN_FEDAVG})_.*"
    assert taking == {name for name in list_experiments() if re.fullmatch(runs, name)}


@pytest.mark.parametrize("stem", TUNED_CELLS)
def test_what_takes_settings_from_trials_has_those_of_the_best(stem, read, find_best_trial):
    for name, named, source, given in list_searched_settings():
        if named != stem:
            continue
        settings, score = find_best_trial(read(stem), **({"batch_size": "16"} if OF_BATCH_16.fullmatch(name) else {}))
        taken = {flag: float(given[flag]) for flag in given if flag in settings}
        assert taken and taken == {flag: float(settings[flag]) for flag in taken}, name
        assert f"({100 * score:.2f} %)" in source, name


@pytest.mark.parametrize("stem", TUNED_CELLS)
def test_every_degree_takes_all_that_was_searched_and_differs_in_nothing_else(
    stem, read, drop_quicker, list_unsearched_changes
):
    request, given = read(stem), {name: settings for name, _, _, settings in list_searched_settings()}
    for name in [stem.replace("_medium", f"_{degree}") for degree in DEGREES]:
        assert given[name].keys() >= drop_quicker(request.space).keys()
        assert set(list_unsearched_changes(f"--experiment={name}", request)) <= {"building_heterogeneity"}


def choose_default(scores, floor=None):
    """The trial with the highest mean over the data sets; if it is below a floor, that with the largest smallest lead.

    Of equals, the first one.

    Args:
      scores: {trial: its score on each data set}.
      floor: the score on each data set that is to be reached; None: there is none.
    """
    best = max(scores, key=lambda trial: sum(scores[trial]))
    if floor is None or all(score >= least for score, least in zip(scores[best], floor, strict=True)):
        return best
    return max(scores, key=lambda trial: min(score - least for score, least in zip(scores[trial], floor, strict=True)))


@pytest.mark.parametrize(
    ("scores", "floor", "chosen"),
    [
        ({1: (0.8, 0.6), 2: (0.7, 0.8)}, None, 2),  # means of 0.70 and 0.75
        ({1: (0.7, 0.8), 2: (0.8, 0.7)}, None, 1),
        ({1: (0.9, 0.7), 2: (0.74, 0.72)}, (0.75, 0.7), 1),  # on the floor is enough
        ({1: (0.9, 0.6), 2: (0.74, 0.72)}, (0.75, 0.7), 2),  # 0.1 and 0.01 below
        ({1: (0.9, 0.6), 2: (0.76, 0.71)}, (0.75, 0.7), 2),
    ],
)
def test_the_rule_for_defaults(scores, floor, chosen):
    assert choose_default(scores, floor) == chosen


@pytest.fixture
def read_default_scores(read):
    """(algo) -> {trial: its mean score on each data set}; skips the test where the trials have not been run."""

    def read_scores(algo):
        tables = [read(f"defaults_{algo}_{place}").output for place in CHOICE["chosen_on"]]
        if not all(table.exists() for table in tables):
            pytest.skip("the trials have not been run")
        by_place = [[float(row[MEAN]) for row in read_rows(table)] for table in tables]
        return dict(enumerate(zip(*by_place, strict=True), start=1))

    return read_scores


@pytest.mark.parametrize("algo", DEFAULT_ALGOS)
def test_the_defaults_are_those_that_the_rule_chooses(algo, read, read_default_scores, drop_quicker):
    scores, floor = read_default_scores(algo), None
    if algo == "amfl_p":
        local = read_default_scores("local_only")
        floor = local[choose_default(local)]
    request = read(f"defaults_{algo}_{CHOICE['chosen_on'][0]}")
    chosen = read_rows(request.output)[choose_default(scores, floor) - 1]
    row = CHOSEN_FEDAVG if algo == "fedavg" else algo
    configs = [resolve_experiment(get_experiment(f"defaults_{row}_{place}")) for place in PLACES]
    if row == algo:
        configs.append(parse_config([f"--algo={algo}"]))
    searched = drop_quicker(request.space)
    for settings in map(flag_values, configs):
        assert {name: str(settings[name]) for name in searched} == {name: chosen[name] for name in searched}
