"""Whether what was expected of a contest came true: each prediction of predictions.toml as statements that can be put.

A prediction is refuted by what its `refuted_by` says, and holds otherwise. Imports no TensorFlow.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from launch.pages.comparison.pairs import AHEAD, BEHIND
from launch.pages.comparison.seed_statistics import UNDECIDED, compute_mean
from reproductions.contests.judging import BEST, BEST_GROUP, BEST_PLAIN, GROUPS, SYSTEMS, Judged
from reproductions.engine.collection import read_toml

PREDICTIONS: Mapping[str, Mapping[str, Mapping[str, str]]] = read_toml("contests", "predictions.toml")
TUNED = "fedavg_fine_tuned"
HELD, REFUTED, OPEN = "came true", "refuted", "open"


class Statement(NamedTuple):
    """What must be so.

    Attributes:
      words: what is said of a contest in which it is not so; names in braces stand for titles.
      holds: whether it is so.
      about: the methods that must have a result for it; two are a pair that is judged.
    """

    words: str
    holds: Callable[[Judged], bool]
    about: tuple[str, ...] = ()


def _compare(first: str, second: str, verdicts: Iterable[str], words: str) -> Statement:
    return Statement(words, lambda judged: judged.find(first, second) in verdicts, (first, second))


def _alike(first: str, second: str) -> Statement:
    return _compare(first, second, {UNDECIDED, ""}, "{first} is {verdict} {second}")


def _behind(first: str, second: str) -> Statement:
    return _compare(first, second, {BEHIND}, "{first} is {verdict} {second}")


def _not_behind(first: str, second: str) -> Statement:
    return _compare(first, second, {AHEAD, UNDECIDED, ""}, "{first} is {verdict} {second}")


def _not_ahead(first: str, second: str) -> Statement:
    return _compare(first, second, {BEHIND, UNDECIDED, ""}, "{first} is {verdict} {second}")


def _leads(*names: str) -> Statement:
    return Statement("{best} leads", lambda judged: judged.best in names)


def _reaches(name: str, share: float) -> Statement:
    return Statement(
        f"{{{name}}} has less than {100 * share:.0f} %",
        lambda judged: compute_mean(judged.values[name].values()) >= share,
        (name,),
    )


def _none_above(margin: float) -> Statement:
    def holds(judged: Judged) -> bool:
        means = [compute_mean(by_seed.values()) for by_seed in judged.values.values()]
        return judged.floor is None or max(means) <= judged.floor + margin

    return Statement(f"{{best}} is more than {100 * margin:.0f} points above it", holds)


def _is_told_from(judged: Judged, others: Iterable[str]) -> bool:
    """Whether the best method is ahead of all of these."""
    return all(judged.find(BEST, other) == AHEAD for other in others if other in judged.values)


_NO_SYSTEM_WINS = Statement(
    "{best} is ahead of all rivals",
    lambda judged: judged.best not in SYSTEMS or not _is_told_from(judged, judged.values.keys() - {judged.best}),
)
_GROUPS_NOT_BEATEN = Statement(
    "{best} is ahead of all methods of groups",
    lambda judged: judged.best in GROUPS or not _is_told_from(judged, GROUPS),
)

EXPECTED: Mapping[tuple[str, str], tuple[Statement, ...]] = {
    ("seconds", "building_new"): (
        _alike("amfl_p", TUNED),
        _behind("local_only", "amfl_p"),
        _behind("local_only", TUNED),
    ),
    ("seconds", "har_new"): (_alike("amfl_p", TUNED), _behind("fedavg", "amfl_p"), _behind("fedavg", TUNED)),
    ("seconds", "har"): (_behind("local_only", TUNED), _NO_SYSTEM_WINS),
    ("seconds", "rotated"): (
        *(_leads("fl_hc", "ifca"), _reaches("cfl", 0.85)),
        *(_behind("fedcd", BEST), _behind("fedsikd", BEST)),
    ),
    ("seconds", "archetypes20"): (_GROUPS_NOT_BEATEN, _behind("fedavg", BEST_GROUP)),
    ("seconds", "archetypes35"): (_alike(TUNED, BEST_GROUP),),
    ("seconds", "archetypes65"): (_none_above(0.03),),
    ("seconds", "dirichlet"): (_not_ahead(BEST_PLAIN, TUNED), _not_ahead("fedsikd", "random_cluster")),
    ("seconds", "tiny"): (_not_ahead("fedsikd", "fedavg"), _not_ahead("fedsikd_8bit", "fedavg")),
    ("seconds", "shakespeare"): (
        *(_alike("fedavg", "fedadam"), _alike("fedavg", TUNED), _alike("fedadam", TUNED)),
        *(_behind("fedcd", BEST), _behind("amfl_p", BEST)),
    ),
    ("seconds", "slow_digits"): (_not_behind("buffered", BEST), _not_behind("async_periodic", "fedavg")),
    ("seconds", "slow_mnist"): (_not_behind("buffered", BEST), _not_behind("async_periodic", "fedavg")),
    ("bytes", "building_new"): (_alike("amfl_p", TUNED),),
    ("bytes", "har_new"): (_alike("amfl_p", TUNED),),
    ("bytes", "har"): (_not_behind("partial", TUNED),),
    ("bytes", "rotated"): (_behind("ifca", "fl_hc"), _behind("fedcd", BEST)),
    ("bytes", "archetypes20"): (_behind("fedcd", BEST), _behind("ifca", BEST)),
    ("bytes", "archetypes35"): (_not_behind(TUNED, BEST_GROUP),),
    ("bytes", "archetypes65"): (_none_above(0.03),),
    ("bytes", "dirichlet"): (_behind("fedsikd", TUNED),),
    ("bytes", "tiny"): (_behind("fedsikd_8bit", "fedavg"),),
    ("bytes", "shakespeare"): (_not_behind("partial", "fedavg"), _behind("fedcd", BEST), _behind("ifca", BEST)),
    ("bytes", "slow_digits"): (_not_ahead("async_periodic", "fedavg"), _not_ahead("buffered", "fedavg")),
    ("rounds", "tiny"): (
        *(_behind("fedavg", "fedsikd"), _not_ahead("fedsikd", "random_cluster")),
        _not_ahead("fedsikd", "fedsikd_8bit"),
    ),
    ("bytes", "slow_mnist"): (_not_ahead("async_periodic", "fedavg"), _not_ahead("buffered", "fedavg")),
}


def list_asked(equal: str, problem: str) -> list[tuple[str, str]]:
    """The pairs that the prediction of a contest is about."""
    return [statement.about for statement in EXPECTED[equal, problem] if len(statement.about) == 2]


def tell_outcome(equal: str, problem: str, judged: Judged, titles: Mapping[str, str]) -> tuple[str, str]:
    """HELD or REFUTED, and what it was refuted by; or OPEN, and which method has no result, or too few.

    Args:
      equal, problem: the contest.
      judged: it.
      titles: of the methods, by name.
    """
    names = {judged.names.get(name, name) for each in EXPECTED[equal, problem] for name in each.about}
    if missing := sorted(names - judged.values.keys()):
        return OPEN, f"no result: {', '.join(titles.get(name, name) for name in missing)}"
    for pair in list_asked(equal, problem):
        if judged.has_too_few_seeds(*pair):
            return OPEN, f"too few seeds: {', '.join(titles[judged.names.get(each, each)] for each in pair)}"
    against = [_say(statement, judged, titles) for statement in EXPECTED[equal, problem] if not statement.holds(judged)]
    return (REFUTED, "; ".join(against)) if against else (HELD, "")


def _say(statement: Statement, judged: Judged, titles: Mapping[str, str]) -> str:
    words = {name: titles.get(name, name) for name in judged.values} | {BEST: titles[judged.best]}
    if len(statement.about) == 2:
        first, second = (judged.names.get(name, name) for name in statement.about)
        verdict = {UNDECIDED: "not told from", BEHIND: "behind", AHEAD: "ahead of", "": "itself the leader, not behind"}
        words |= {"first": titles[first], "second": titles[second], "verdict": verdict[judged.find(first, second)]}
    return statement.words.format(**words)
