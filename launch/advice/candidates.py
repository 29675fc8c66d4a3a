"""Which methods are tried on what data, in the order of what they may tell, and why the others are not.

What a method's trials vary stands in its algorithm's row (`Algorithm.searched`). Imports no TensorFlow.
"""

import dataclasses
import inspect
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from launch.advice.inspection import Facts
from launch.contests.methods import ALONE, GROUPS, PERSONAL, POOLED, REFERENCE, SHARED, Method
from launch.contests.plan import ROUNDS_ALONE
from launch.settings.algorithms import ALGORITHMS, Algorithm
from launch.settings.errors import FlagError
from launch.settings.flags import parse_config
from launch.settings.run_config import (
    RunConfig,
    build_run_config,
    find_algorithm,
    find_idle,
    flag_values,
    shared_fields,
)
from launch.settings.suggestions import simplify, suggest_value
from launch.sweeps.tuning.own_space import build_own_space
from launch.sweeps.tuning.search_space import Settings, parse_search
from tff_algos.protocol import FederatedProcess
from tff_algos.settings.config_fields import is_own
from tff_algos.settings.local_training import LocalTrainingConfig
from tff_algos.settings.searched import FINE_TUNING_RATES

LOCAL, FEDAVG, TUNED, POOL = "local_only", REFERENCE, "fedavg_fine_tuned", "pooled"
ALWAYS = (LOCAL, FEDAVG, POOL)  # the advice compares with these
FINAL_STEPS, FINAL_RATE = "final_steps", "final_learning_rate"
MOST_STEPS, ROUNDS_OF_STEPS = 50, 2  # at the end, and that may take no longer than so many rounds of FedAvg
FEDPROX = "fedprox"  # a setting of FedAvg, no algorithm
LEAST_FOR_GROUPS = 6  # clients; of fewer a group is hardly more than a client
MOST_ASKED, ASKED = 100, 50  # of more clients, so many are asked in a round
LEAST_FOR_AMFL, BATCH_OF_AMFL = 16, 32  # train examples of a client; of a support and of a query batch, at most


def _meets_all(facts: Facts) -> str:
    return ""


def _find_no_groups(facts: Facts) -> str:
    if facts.num_clients >= LEAST_FOR_GROUPS:
        return ""
    return f"{facts.num_clients} clients are too few for groups; expected at least {LEAST_FOR_GROUPS}"


def _obstruct_asking_all(facts: Facts) -> str:
    if facts.num_clients > MOST_ASKED:
        return f"it trains all {facts.num_clients:,} clients in every round"
    return _find_no_groups(facts)


def _obstruct_fedsikd(facts: Facts) -> str:
    if facts.takes_tokens:
        return "it groups clients by the statistics of their inputs, and words have none that mean something"
    return _obstruct_asking_all(facts)


def _obstruct_fedcd(facts: Facts) -> str:
    # Words have right answers, too.
    is_right_or_wrong = facts.task.metric.name.endswith("accuracy")
    return _find_no_groups(facts) if is_right_or_wrong else "the labels are no classes, by which it scores models"


def _obstruct_partial(facts: Facts) -> str:
    return "the model has one layer alone" if facts.config.model == "logistic_regression" else ""


def _obstruct_amfl(facts: Facts) -> str:
    config, fewest = facts.config, facts.train_examples[0]
    if fewest < LEAST_FOR_AMFL:
        return f"a client has {fewest} examples to train on, fewer than {LEAST_FOR_AMFL}"
    for name, plain in (("quantize", "none"), ("precision", "float32"), ("augment", "none")):
        if getattr(config, name) != plain:
            return f"it cannot train with --{name}={getattr(config, name)}"
    return ""


def _obstruct_asynchronous(facts: Facts) -> str:
    if not facts.config.device_profiles:
        return "nothing says that devices differ; give --device_profiles"
    if facts.devices_differ:
        return ""
    return f"the fastest device is only {facts.speeds_apart:.2g} times as fast as the slowest"


def count_final_steps(facts: Facts) -> int:
    """Steps at the end, whose seconds count: for clients with few examples as many as before would take all rounds."""
    steps_a_pass = math.ceil(facts.train_examples[1] / facts.config.batch_size)
    return min(MOST_STEPS, ROUNDS_OF_STEPS * LocalTrainingConfig.epochs * max(steps_a_pass, 1))


def _fix_nothing(facts: Facts) -> tuple[str, ...]:
    return ()


def _ask_all(facts: Facts) -> tuple[str, ...]:
    return (f"--cohort_size={facts.num_clients}",) if facts.num_clients <= MOST_ASKED else ()


def _fix_amfl(facts: Facts) -> tuple[str, ...]:
    # Clients that are simulated or drawn have other sizes with every seed.
    is_fixed = facts.have_own_clients and not facts.config.most_clients
    fewest = facts.train_examples[0] // (2 if is_fixed else 3)
    size = min(BATCH_OF_AMFL, max(fewest, 1))
    sizes = (f"--support_size={size}", f"--query_size={size}", f"--fine_tuning_steps={count_final_steps(facts)}")
    # Nothing says that some devices can do less than others, so that all take all steps, as those of other methods do.
    return sizes if facts.config.device_profiles else (*sizes, "--min_resource=1")


def _fix_asynchronous(facts: Facts) -> tuple[str, ...]:
    return (f"--max_scheduled={max(3, facts.num_clients // 3)}",)


@dataclasses.dataclass(frozen=True)
class _Candidate:
    """A method that may be tried.

    Attributes:
      name: see `Method`, as are `algo`, `role` and `cost`.
      title: "" is that of the algorithm.
      further: what trials vary beside the settings of the algorithm's row and fine-tuning at the end.
      start: see `Method`.
      find_obstacle: (facts) -> why it cannot be tried on such data; "" if it can.
      fix: (facts) -> flags of all its runs.
    """

    name: str
    algo: str
    role: str = SHARED
    title: str = ""
    cost: float = 1.0
    further: Mapping[str, str] = dataclasses.field(default_factory=dict)
    start: Settings = dataclasses.field(default_factory=dict)
    find_obstacle: Callable[[Facts], str] = _meets_all
    fix: Callable[[Facts], tuple[str, ...]] = _fix_nothing


# What its paper's clients have in hundreds of rounds; in the few of a plan they would only begin to learn, and others
# would look better beside them than they are.
_SOONER = {"learning_rate": f"{LocalTrainingConfig.learning_rate:g}"}
# In the order in which a short time leaves them out, from the end.
CANDIDATES = (
    _Candidate(LOCAL, "local_only", ALONE, "Each client alone", 0.8 * ROUNDS_ALONE, start=_SOONER),
    _Candidate(FEDAVG, "fedavg"),
    _Candidate(POOL, "pooled", POOLED, "All data in one place", 0.8),
    _Candidate(
        TUNED,
        "fedavg",
        PERSONAL,
        "FedAvg + fine-tuning",
        1.1,
        {FINAL_RATE: FINE_TUNING_RATES},
    ),
    _Candidate("ifca", "ifca", GROUPS, cost=1.5, find_obstacle=_find_no_groups),
    _Candidate("fedadam", "fedadam"),
    _Candidate("partial", "partial", PERSONAL, "FedPer or FedRep", 1.3, find_obstacle=_obstruct_partial),
    _Candidate("ditto", "ditto", PERSONAL, cost=2.0),
    _Candidate("cfl", "cfl", GROUPS, cost=1.2, find_obstacle=_obstruct_asking_all),
    _Candidate("fedsikd", "fedsikd", cost=4.0, find_obstacle=_obstruct_fedsikd),
    _Candidate("fedcd", "fedcd", GROUPS, cost=3.0, find_obstacle=_obstruct_fedcd, fix=_ask_all),
    _Candidate("amfl_p", "amfl_p", PERSONAL, cost=2.0, find_obstacle=_obstruct_amfl, fix=_fix_amfl),
    _Candidate(
        "async_periodic",
        "async_periodic",
        cost=1.5,
        find_obstacle=_obstruct_asynchronous,
        fix=_fix_asynchronous,
    ),
)
BY_NAME = {each.name: each for each in CANDIDATES}
# Of the algorithms that are tried only if somebody asks for them, those whose clients do not share one model.
ROLES = {
    **dict.fromkeys(("apfl", "pfedme", "fine_tuning", "fedproto"), PERSONAL),
    **dict.fromkeys(("fl_hc", "oracle"), GROUPS),
}


# Those without a model for clients that take no part in training: of these nothing is measured then.
NOT_FOR_NEW = frozenset(
    (
        *("local_only", "ditto", "partial", "fedsikd", "random_cluster", "fl_hc", "fedcd", "fedproto"),
        *("async_periodic", "fed_async", "buffered"),
    )
)


class Chosen(NamedTuple):
    """What is tried, the most telling first, and what is not, each with the reason."""

    methods: tuple[Method, ...]
    left_out: tuple[tuple[Method, str], ...]


def check_names(names: Sequence[str]) -> None:
    """Raises FlagError if one of `--methods` is neither a candidate nor an algorithm, or two have one name."""
    known = list(dict.fromkeys((*BY_NAME, *ALGORITHMS)))
    spellings = {name: name for name in (*ALWAYS, *(name for name in names if not is_own(name)))}
    for name in names:
        if is_own(name):
            try:
                row = find_algorithm(name)
                _list_classes(row)
            except FlagError as error:
                raise FlagError(str(error).replace(f"--algo={name}", f"--methods={name}")) from None
            if spellings.setdefault(row.name, name) != name or row.name == TUNED:
                raise FlagError(
                    f"--methods={','.join(names)}: {name}: {row.name} is also the name of another method; expected "
                    "names that differ"
                )
        elif name not in known:
            hint = suggest_value(name, known, "module:ALGORITHM")
            if simplify(name) == FEDPROX:
                hint = "; FedProx is fedavg with --proximal_weight, which is not tried here"
            raise FlagError(f"--methods={','.join(names)}: {name}: expected some of {', '.join(known)}{hint}")


def choose_methods(facts: Facts, names: Sequence[str] = (), has_pooled: bool = True) -> Chosen:
    """The methods for such data.

    Args:
      facts: on the data.
      names: as `check_names` takes them; none: all candidates. What the advice compares with is always there.
      has_pooled: whether all data may be brought to one place, to show what that could give.
    """
    methods, left_out = [], []
    for candidate in _list_asked(names):
        reason = candidate.find_obstacle(facts)
        if candidate.name == POOL and not has_pooled:
            reason = "as --no_pooled asks"
        method = Method(candidate.name, _get_title(candidate), candidate.algo, role=candidate.role, cost=candidate.cost)
        if not reason:
            try:
                methods.append(_complete(method, candidate, facts))
                continue
            except FlagError as error:
                if method.name == FEDAVG:
                    raise
                reason = str(error)
        left_out.append((method, reason))
    return Chosen(tuple(methods), tuple(left_out))


def _list_asked(names: Sequence[str]) -> list[_Candidate]:
    if not names:
        return list(CANDIDATES)
    asked = {name: BY_NAME[name] for name in ALWAYS}
    for name in names:
        if name in BY_NAME:
            asked[name] = BY_NAME[name]
        else:
            row = find_algorithm(name)
            role = _find_role(row) if is_own(name) else ROLES.get(row.name, SHARED)
            asked[name] = _Candidate(row.name, name, role)
    return list(asked.values())


def _list_classes(row: Algorithm) -> list[type[FederatedProcess]]:
    """The classes of processes in the module of an own algorithm's builder, or else those that it imports.

    Raises:
      FlagError: the builder cannot be imported.
    """
    module = sys.modules[inspect.unwrap(row.load_builder()).__module__]
    found = [each for each in vars(module).values() if isinstance(each, type) and issubclass(each, FederatedProcess)]
    own = [each for each in found if each.__module__ == module.__name__]
    return own or [each for each in found if each is not FederatedProcess]


def _find_role(row: Algorithm) -> str:
    classes = _list_classes(row)
    if any(each.is_personal is True or each.shares_models is False for each in classes):
        return PERSONAL
    # By name, which needs no TensorFlow.
    bases = {base.__name__ for each in classes for base in each.__mro__}
    return GROUPS if bases & {"ClusteredProcess", "GroupedProcess"} else SHARED


def _takes_new_clients(algo: str) -> bool:
    if not is_own(algo):
        return algo not in NOT_FOR_NEW
    return all(each.takes_new_clients is True for each in _list_classes(find_algorithm(algo)))


def _get_title(candidate: _Candidate) -> str:
    return candidate.title or find_algorithm(candidate.algo).title


def _complete(method: Method, candidate: _Candidate, facts: Facts) -> Method:
    """The method with the flags of its runs, and with what its trials vary.

    Raises:
      FlagError: a run would refuse its flags.
    """
    row = find_algorithm(candidate.algo)
    fixed = candidate.fix(facts)
    if facts.config.device_profiles and "speed" in row.names:
        fixed = (*fixed, "--speed=profiles")
    if facts.num_clients > MOST_ASKED and "cohort_size" in row.names:
        fixed = (*fixed, f"--cohort_size={ASKED}")
    if facts.num_new and not _takes_new_clients(candidate.algo):
        fixed = (*fixed, "--test_new_clients=false")
    further, steps = dict(candidate.further), str(count_final_steps(facts))
    if candidate.name == TUNED:
        further = {FINAL_STEPS: steps, **further}
    elif candidate.name != FEDAVG and candidate.role in (SHARED, GROUPS):
        further |= {FINAL_STEPS: f"0|{steps}", FINAL_RATE: FINE_TUNING_RATES}
    given = {*further, *(flag.removeprefix("--").partition("=")[0] for flag in fixed)}
    common = [f"--algo={candidate.algo}", *_list_flags(facts.config), *fixed]
    space = build_own_space(row, lambda more: parse_config([*common, *more]), given)
    space |= parse_search(";".join(f"{name}={values}" for name, values in further.items())) if further else {}
    start = {name: value for name, value in candidate.start.items() if name in space}
    return method._replace(fixed=fixed, space=space, start=start)


def _list_flags(config: RunConfig) -> list[str]:
    """The flags of all runs on these data, which every algorithm has; each has other defaults for some."""
    plain = {"algo": config.algo, "dataset": config.dataset, "data": config.data, "npz": config.npz}
    defaults, idle = flag_values(build_run_config(plain)), find_idle(config)
    names = [field.name for field in shared_fields() if field.name != "algo" and field.name not in idle]
    said = {"partition", "batch_size", *(() if config.data else ("dataset",))}
    values = flag_values(config)
    return [f"--{name}={values[name]}" for name in names if name in said or values[name] != defaults[name]]


def name_as_chosen(method: Method, chosen: Settings | None) -> Method:
    """The method as its trials have chosen it: with steps at the end, clients have models of their own."""
    is_tuned = method.name != TUNED and (chosen or {}).get(FINAL_STEPS, "0") != "0"
    if not is_tuned:
        return method
    return method._replace(
        title=f"{method.title} + fine-tuning", role=PERSONAL if method.role == SHARED else method.role
    )


def describe_left_out(chosen: Chosen) -> list[str]:
    """What is not tried and why, in lines for the terminal; what is tried says the plan."""
    return [f"left out {method.title}: {reason}" for method, reason in chosen.left_out]
