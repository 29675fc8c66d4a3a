"""The league's problems as contests of the engine that `launch.advise` has. Imports no TensorFlow.

On each problem all methods train as much in a round, by the same optimizer, and vary what their own modules list. What
they may spend is what FedAvg takes on the same seed: device seconds, those of fine-tuning counted, or bytes. Trials are
chosen by validation examples, on seeds that are not reported. Every method goes to fresh seeds; further ones go to
those that the planned ones do not tell from the best.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from launch.advice.candidates import LOCAL, choose_methods, name_as_chosen
from launch.advice.inspection import look_at
from launch.contests.contest import BYTES, VIRTUAL_S, ChooseMore, Outcome
from launch.contests.methods import ALONE, REFERENCE, Method
from launch.contests.plan import Plan
from launch.contests.problem import COMMON, OWN, Problem
from launch.pages.comparison.seed_statistics import BySeed
from launch.runs.columns import METRICS_FILE, SUMMARY_FILE
from launch.runs.run_records import RunPath, read_json, read_rounds
from launch.settings.flags import parse_config
from launch.settings.run_config import find_algorithm, find_idle, flag_values
from launch.sweeps.tuning.even_points import BLOCK
from launch.sweeps.tuning.own_space import build_own_space
from launch.sweeps.tuning.search_space import SearchSpace, parse_search
from reproductions.contests import experiments
from reproductions.contests.experiments import split_argument
from reproductions.contests.judging import judge
from reproductions.contests.predictions import list_asked
from reproductions.contests.problems import ALL, CONTESTS, NEW, find_judged, name_judged, read_words
from tff_algos.settings.searched import SERVER_MOMENTUM

# What limits all alike; nothing but FedAvg's rounds, where these are equal.
EQUAL = dict(zip(experiments.EQUAL, ((VIRTUAL_S,), (BYTES,), ()), strict=True))
FINE_TUNING = "fine_tuning"
# Of what is written for all methods, by the names that some have for it.
SAME = {"epochs": ("student_epochs", "local_epochs"), "optimizer": ("student_optimizer", "local_optimizer")}
MOMENTUM = "server_momentum"
MANY_STEPS = ("400", "800")  # of a new client that trains alone, where it has seconds left
SLOW = {
    REFERENCE: (
        "async_periodic",
        {"waiting": "synchronous", "weighting": "age_aware", "gamma": "1", "max_scheduled": "30"},
    ),
    "async_periodic": ("async_periodic", {"waiting": "periodic", "max_scheduled": "30"}),
    "fed_async": ("fed_async", {"updates_per_round": "30", "concurrency": "30"}),
    "buffered": ("buffered", {"concurrency": "30"}),
}
SLOW_TITLES = {REFERENCE: "FedAvg", "async_periodic": "Asynchronous FL", "fed_async": "FedAsync", "buffered": "FedBuff"}


class League(NamedTuple):
    """A problem and those that compete on it.

    Attributes:
      problem: of the contest.
      methods: the most important first.
      plan: what is done.
    """

    problem: Problem
    methods: tuple[Method, ...]
    plan: Plan


def build_plan(rounds: int, blocks: int = 1) -> Plan:
    """Nine settings of each method in runs of a third, the best two whole on two seeds; five fresh seeds, or ten.

    Nine are a method's own settings and a block of points that lie evenly; with more blocks, more are whole as well.
    """
    return Plan(rounds, 1 + blocks * BLOCK, 0.33, 2 * blocks, (100, 101), 1, (0, 1, 2, 3, 4), 10)


def build_contest(name: str) -> League:
    """The contest of a problem, for which its data are looked at.

    Raises:
      FlagError, DatasetError: the data are not there, or a method's flags are refused.
    """
    words = read_words(name)
    given = _read_flags(words["flags"])
    flags, facts = look_at(given)
    common = tuple(f"--{flag}={value}" for flag, value in flags.items())
    common = (*common, *CONTESTS[ALL]["further"], *words.get("further", ()))
    judged = name_judged(name)
    problem = Problem(name, common, facts.task, COMMON if judged == COMMON else OWN)
    if "slow" in words:
        methods = [_build_slow(method, common, words["slow"]) for method in SLOW]
    else:
        chosen = choose_methods(facts, words["methods"], has_pooled=False).methods
        methods = [_fix_work(method, common, words.get("work", CONTESTS[ALL]["work"]), judged) for method in chosen]
        if judged == NEW:
            # Without a model from others, a new client trains its own from random weights.
            methods = [_build_new_alone(common), *(each for each in methods if each.role != ALONE)]
    spaces = {method.name: method.space for method in methods}
    alike = CONTESTS[ALL]["same_space"]
    methods = [each._replace(space=spaces[alike.get(each.name, each.name)]) for each in methods]
    methods += [_build_variant(name, methods, **given) for name, given in words.get("variants", {}).items()]
    return League(problem, tuple(methods), build_plan(words["rounds"], words.get("blocks", 1)))


def _build_variant(name: str, methods: Sequence[Method], of: str, title: str, flags: Sequence[str]) -> Method:
    """Another method with further flags."""
    base = next(method for method in methods if method.name == of)
    return base._replace(name=name, title=title, fixed=(*base.fixed, *flags))


def _read_flags(arguments: Sequence[str]) -> dict[str, Any]:
    """The flags by name, with values of their kinds."""
    values = flag_values(parse_config(["--algo=fedavg", *arguments]))
    return {name: values[name] for name, _ in map(split_argument, arguments)}


def _fix_work(method: Method, common: Sequence[str], work: Mapping[str, str], judged: str) -> Method:
    """The method with the local work of all, which its trials then leave as it is."""
    names = find_algorithm(method.algo).names
    same = {each: value for name, value in work.items() for each in (name, *SAME.get(name, ())) if each in names}
    fixed = dict(map(split_argument, method.fixed)) | same
    fixed |= dict(map(split_argument, CONTESTS[ALL].get(method.algo, ())))
    arguments = tuple(f"--{name}={value}" for name, value in fixed.items())
    # Steps on clients' own data at the end change nothing of the shared model.
    final = {name: values for name, values in method.space.items() if name.startswith("final_") and judged != COMMON}
    space = {**_search(method.algo, common, arguments), **_search_momentum(method, common, arguments), **final}
    return method._replace(fixed=arguments, space=space, start={})


def _search_momentum(method: Method, common: Sequence[str], fixed: Sequence[str]) -> SearchSpace:
    """Momentum at the server for whatever averages, also where an algorithm's own list has no place for it."""
    config = parse_config([f"--algo={method.algo}", *common, *fixed])
    averages = method.role != ALONE and MOMENTUM in find_algorithm(method.algo).names - find_idle(config).keys()
    return parse_search(f"{MOMENTUM}={SERVER_MOMENTUM}") if averages else {}


def _build_new_alone(common: Sequence[str]) -> Method:
    fixed = ("--start=initial",)
    own = _search(FINE_TUNING, common, fixed)
    space = {"learning_rate": own["learning_rate"], "steps": (*own["steps"], *MANY_STEPS)}
    return Method(LOCAL, "Local training", FINE_TUNING, fixed=fixed, space=space, role=ALONE, rounds=1)


def _build_slow(name: str, common: Sequence[str], work: Mapping[str, str]) -> Method:
    algo, own = SLOW[name]
    given = {**own, **work, "speed": "by_label", "optimizer": "sgd"}
    given |= {"proximal_weight": "0"} if "proximal_weight" in find_algorithm(algo).names else {}
    fixed = tuple(f"--{flag}={value}" for flag, value in given.items())
    return Method(name, SLOW_TITLES[name], algo, fixed=fixed, space=_search(algo, common, fixed))


def _search(algo: str, common: Sequence[str], fixed: Sequence[str]) -> dict:
    arguments = [f"--algo={algo}", *common, *fixed]
    given = {name for name, _ in map(split_argument, fixed)}
    return build_own_space(find_algorithm(algo), lambda more: parse_config([*arguments, *more]), given)


def read_judged(run_dir: RunPath, league: League) -> float | None:
    """What a run on a fresh seed is judged by, larger is better; None if it has none."""
    rows = read_rounds(run_dir / METRICS_FILE)
    return find_judged(league.problem.name, league.problem.task, read_json(run_dir / SUMMARY_FILE), rows[max(rows)])


def collect_judged(outcome: Outcome, league: League) -> dict[str, BySeed]:
    """By method and seed what its runs on fresh seeds are judged by."""
    found: dict[str, BySeed] = {}
    for each in outcome.entered:
        values = {seed: read_judged(path, league) for seed, path in each.runs.items()}
        if known := {seed: value for seed, value in values.items() if value is not None}:
            found[each.method.name] = known
    return found


def build_chooser(league: League, equal: str) -> ChooseMore:
    """The methods that the planned seeds do not tell from the best, and that; further seeds are never looked at."""

    def choose_more(outcome: Outcome) -> tuple[str, ...]:
        planned = set(outcome.plan.seeds)
        values = {
            name: {seed: value for seed, value in by_seed.items() if seed in planned}
            for name, by_seed in collect_judged(outcome, league).items()
        }
        judged = judge(values, list_asked(equal, league.problem.name), title_methods(outcome))
        return (judged.best, *judged.alike) if judged.alike else ()

    return choose_more


def title_methods(outcome: Outcome) -> dict[str, str]:
    """The methods' titles, as their trials have chosen them."""
    return {each.method.name: name_as_chosen(each.method, each.chosen).title for each in outcome.entered}
