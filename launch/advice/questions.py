"""The questions of an advice, each made of comparisons, and the error that each is allowed. Imports no TensorFlow.

- MAIN: federate or alone, the winner against alone. Whichever leads must beat the trivial row, too.
- OVER_FEDAVG: the winner against FedAvg.
- FEDAVG_MAIN: whether FedAvg is better than alone and than the trivial row.
- of each rival, which has several models: whether it is better than those with one for all, than alone, and than the
  trivial row. All rivals together count as one question, of which each has the same share.

Of several comparisons that must all hold, the largest p-value is that of the question. Holm's procedure shares the
error between the questions, so that in all of them together there is hardly ever one.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from launch.advice.choices import FEDAVG
from launch.advice.contrasts import Contrast, level_by_holm
from launch.advice.measures import Measured
from launch.pages.comparison.seed_statistics import ERROR_RATE

# The comparisons, first against second.
MAIN, LEARNED, OVER_FEDAVG = "winner against alone", "winner against trivial", "winner against FedAvg"
FEDAVG_MAIN, FEDAVG_LEARNED, ALONE_LEARNED = "FedAvg against alone", "FedAvg against trivial", "alone against trivial"


class Comparison(NamedTuple):
    """Two methods beside each other.

    Attributes:
      first, second: their names.
      contrast: what the first gains.
      rate: the rate of error at which it is decided, and its interval misses.
    """

    first: str
    second: str
    contrast: Contrast
    rate: float = ERROR_RATE

    @property
    def is_better(self) -> bool:
        return self.contrast.is_better(self.rate)

    @property
    def is_worse(self) -> bool:
        return self.contrast.is_worse(self.rate)

    @property
    def is_decided(self) -> bool:
        return self.is_better or self.is_worse

    @property
    def ends(self) -> tuple[float, float] | None:
        """Of the interval of the gain; None where nothing is known. Without 0 exactly if it is decided."""
        return self.contrast.find_ends(self.rate)

    def is_within(self, margin: float) -> bool:
        """Whether the gain is beyond doubt smaller than the margin, either way."""
        ends = self.ends
        return ends is not None and -margin < ends[0] and ends[1] < margin


class Asked(NamedTuple):
    """A comparison to be made: two methods, and the question that it belongs to."""

    first: Measured
    second: Measured
    question: str


def name_rivals(rival: str, other: str) -> str:
    """What the comparison of a rival is called, with "alone", "trivial", or a method with one model for all."""
    return f"{rival} against {'FedAvg' if other == FEDAVG else other}"


def list_asked(
    winner: Measured, fedavg: Measured | None, alone: Measured, local: Measured | None, trivial: Measured | None
) -> dict[str, Asked]:
    """{comparison: of what}, of all questions but those of rivals."""
    asked = {MAIN: Asked(winner, alone, MAIN)}
    if trivial is not None:
        asked[LEARNED] = Asked(winner, trivial, MAIN)
        if local is not None:
            asked[ALONE_LEARNED] = Asked(local, trivial, MAIN)
    if fedavg is not None and fedavg is not winner:
        asked[OVER_FEDAVG] = Asked(winner, fedavg, OVER_FEDAVG)
        asked[FEDAVG_MAIN] = Asked(fedavg, alone, FEDAVG_MAIN)
        if trivial is not None:
            asked[FEDAVG_LEARNED] = Asked(fedavg, trivial, FEDAVG_MAIN)
    return asked


def list_asked_of_rival(
    rival: Measured, shared: Sequence[Measured], alone: Measured, trivial: Measured | None
) -> dict[str, Asked]:
    """{comparison: of what}, of the question whether this rival shows that one model for all is not enough."""
    others = {"alone": alone, "trivial": trivial, **{each.name: each for each in shared}}
    return {
        name_rivals(rival.name, name): Asked(rival, other, rival.name)
        for name, other in others.items()
        if other is not None
    }


def share_doubt(
    asked: Mapping[str, Asked], found: Mapping[str, Contrast], is_model: bool, rate: float
) -> dict[str, float]:
    """The rate at which each comparison is decided: that of its question, by Holm over the questions.

    Args:
      asked, found: the comparisons.
      is_model: whether alone is a model, and not each client's own constant answer.
      rate: of an error in any question.
    """
    p_values = {each.question: 0.0 for each in asked.values()}
    for question in p_values:
        p_values[question] = max(_miss(found[name]) for name, each in asked.items() if each.question == question)
    # Of these two, either side is an answer.
    p_values[MAIN] = _doubt_main(found, is_model)
    if OVER_FEDAVG in found:
        p_values[OVER_FEDAVG] = found[OVER_FEDAVG].p_value
    rivals = p_values.keys() - {MAIN, OVER_FEDAVG, FEDAVG_MAIN}
    weights = [1 / len(rivals) if question in rivals else 1.0 for question in p_values]
    rates = dict(zip(p_values, level_by_holm(list(p_values.values()), rate, weights), strict=True))
    return {name: rates[each.question] for name, each in asked.items()}


def _doubt_main(found: Mapping[str, Contrast], is_model: bool) -> float:
    """The p-value of whether to federate: whichever side leads must have learned something."""
    main = found[MAIN]
    leader = LEARNED if (main.gain or 0) >= 0 else ALONE_LEARNED
    # Where each client's own constant answer is all that training alone has, nobody learns by that.
    if leader == ALONE_LEARNED and not is_model:
        return 1.0
    return max(main.p_value, _miss(found[leader])) if leader in found else main.p_value


def _miss(found: Contrast) -> float:
    """The p-value of the first being better: 1 where it is not."""
    return found.p_value if (found.gain or 0) > 0 else 1.0
