"""Which methods are set against each other: chosen on validation examples alone. Imports no TensorFlow."""

from collections.abc import Mapping, Sequence

from launch.advice.measures import Measured, is_share, is_share_of_answers
from launch.contests.methods import GROUPS, PERSONAL, REFERENCE, SHARED
from launch.pages.comparison.seed_statistics import MARGIN
from launch.runs.task_columns import TaskColumns

FEDAVG = REFERENCE
NEAR = 0.001  # a tenth of a point; of other metrics that share of the best


def choose_winner(methods: Sequence[Measured], task: TaskColumns) -> Measured | None:
    """The federated method with the best mean on validation examples over the seeds that all have; see `NEAR`.

    Where the time ended between two methods, one has a seed more than another: that makes no winner. None without any.
    """
    federated = [each for each in methods if each.is_federated and each.validations]
    if not federated:
        return None
    seeds = list_common_seeds(federated)
    # Without a common one nothing is paired, and each has its own mean.
    scores = {each.name: each.average_validation(seeds or each.validations) for each in federated}
    known = [(task.sign * score, each) for each in federated if (score := scores[each.name]) is not None]
    if not known:
        return None
    best = max(score for score, _ in known)
    near = [each for score, each in known if best - score <= NEAR * (1 if is_share(task) else abs(best))]
    return min(near, key=lambda each: float("inf") if each.cost.bytes is None else each.cost.bytes)


def list_common_seeds(methods: Sequence[Measured]) -> list[int]:
    """The seeds on which all federated ones have validation results."""
    known = [set(each.validations) for each in methods if each.is_federated and each.validations]
    return sorted(set.intersection(*known)) if known else []


def choose_row(rows: Sequence[Measured], task: TaskColumns) -> Measured | None:
    """The best on validation examples, over the seeds that all have; the first where none has any.

    Of test examples nothing is chosen by: that would be to look at the answers.
    """
    known = [each for each in rows if each.validations]
    if not known:
        return next(iter(rows), None)
    common = set.intersection(*(set(each.validations) for each in known))
    return max(known, key=lambda each: task.sign * each.average_validation(sorted(common or each.validations)))


def list_rivals(winner: Measured, methods: Sequence[Measured]) -> list[Measured]:
    """Methods with several models beside the winner, any of which may show that one for all is not enough."""
    return [each for each in methods if each.role in (GROUPS, PERSONAL) and each is not winner]


def list_shared(winner: Measured, methods: Sequence[Measured]) -> list[Measured]:
    """Those with one model for all that may be advised: the winner and FedAvg."""
    return [each for each in methods if each.role == SHARED and (each is winner or each.name == FEDAVG)]


def collect_sizes(methods: Sequence[Measured], task: TaskColumns) -> Mapping[str, float] | None:
    """The test examples of each client, where each of them is right or wrong; else None."""
    return next((each.sizes for each in methods if each.sizes), None) if is_share_of_answers(task) else None


def get_margin(task: TaskColumns, beside: float | None) -> float:
    """A difference that hardly matters: a point, or a hundredth of the result beside which it stands."""
    return MARGIN if is_share(task) else MARGIN * abs(beside or 0.0)
