"""Comparisons of two methods, doubted twice: over seeds, and over clients. Imports no TensorFlow.

Seeds alone would be too sure. They divide the same examples anew, or only draw other first weights, so all of them can
agree on what chance has put into the test examples of these clients. So a difference counts only if it is there in both
samples, each paired:
- over seeds: the mean over the clients, a number a seed;
- over clients: the mean over the seeds, a number a client, from `LEAST_CLIENTS` on. Fewer clients cannot stand for
  others; where the result is a share of right answers, the test examples are the sample in their place. Where it is
  none, only seeds are left, and these decide nothing.

The p-value of a comparison is the largest of its samples, and its interval reaches as far as any of theirs. So an
interval at some level is without 0 exactly if the p-value is below 1 minus that level and the samples agree on a side.

A gain is positive where the first method is better, whichever way the metric goes.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from launch.pages.comparison.seed_statistics import ERROR_RATE, LEAST_SEEDS, compute_mean, is_constant

LEAST_CLIENTS = 5
SEEDS, CLIENTS, EXAMPLES = "seeds", "clients", "test examples"
# Of a method, its clients' own results: {seed: {client: value}}.
Results = Mapping[int, Mapping[str, float]]


class Sample(NamedTuple):
    """A mean gain over some units.

    Attributes:
      unit: SEEDS, CLIENTS or EXAMPLES.
      mean: of the gains.
      error: its standard error; 0 where all gains are equal.
      degrees: of freedom of Student's t; infinite for the normal distribution.
      count: of the units.
    """

    unit: str
    mean: float
    error: float
    degrees: float
    count: int

    def compute_p_value(self) -> float:
        """Two-sided, of a mean gain of 0; without any spread 0, or 1 of no gain."""
        if not self.error:
            return float(self.mean == 0)
        return 2 * _tail(self.degrees, abs(self.mean) / self.error)

    def find_ends(self, rate: float) -> tuple[float, float]:
        """Of the interval that misses the truth in this share of cases."""
        half = find_quantile(self.degrees, 1 - rate / 2) * self.error if self.error else 0.0
        return self.mean - half, self.mean + half


class Contrast(NamedTuple):
    """What one method gains over another.

    Attributes:
      gain: the mean over seeds of the mean over clients; None where the methods share no seed.
      samples: that it was doubted by; empty where nothing can be decided: with fewer than `LEAST_SEEDS` seeds, and
        with fewer than `LEAST_CLIENTS` clients whose results are no shares of right answers.
      by_client: the mean gain of each client over the seeds.
    """

    gain: float | None
    samples: tuple[Sample, ...]
    by_client: Mapping[str, float]

    @property
    def p_value(self) -> float:
        """The largest of the samples; 1 without any, and where they are of different sides."""
        if not self.samples or len({math.copysign(1, sample.mean) for sample in self.samples}) > 1:
            return 1.0
        return max(sample.compute_p_value() for sample in self.samples)

    def find_ends(self, rate: float) -> tuple[float, float] | None:
        """Of the interval that misses the truth in at most this share of cases; None where nothing is known."""
        if not self.samples:
            return None
        lows, highs = zip(*(sample.find_ends(rate) for sample in self.samples), strict=True)
        return min(lows), max(highs)

    @property
    def doubted(self) -> Sample | None:
        """The sample with the largest p-value; None without any."""
        return max(self.samples, key=Sample.compute_p_value, default=None)

    def is_better(self, rate: float) -> bool:
        """Whether the first method is better beyond doubt."""
        return self.p_value < rate and (self.gain or 0) > 0

    def is_worse(self, rate: float) -> bool:
        """Whether the second method is better beyond doubt."""
        return self.p_value < rate and (self.gain or 0) < 0


NO_CONTRAST = Contrast(None, (), {})


def contrast(first: Results, second: Results, sign: int, sizes: Mapping[str, float] | None = None) -> Contrast:
    """What the first method gains over the second, over the seeds and clients that both have.

    Args:
      first, second: results of the clients.
      sign: 1 if larger results are better, -1 if lower ones are.
      sizes: the test examples of each client, where a result is the share of right answers to them; else None.
    """
    gains = {}
    for seed in sorted(first.keys() & second.keys()):
        one, other = first[seed], second[seed]
        both = {name: sign * (one[name] - other[name]) for name in one if name in other}
        known = {name: gain for name, gain in both.items() if math.isfinite(gain)}
        if known:
            gains[seed] = known
    if not gains:
        return NO_CONTRAST
    by_seed = [compute_mean(each.values()) for each in gains.values()]
    by_client = _average_clients(gains)
    samples: tuple[Sample, ...] = ()
    if len(by_seed) >= LEAST_SEEDS and len(by_client) >= LEAST_CLIENTS:
        samples = (_sample(SEEDS, by_seed), _sample(CLIENTS, list(by_client.values())))
    elif len(by_seed) >= LEAST_SEEDS and sizes:
        samples = (_sample(SEEDS, by_seed), _sample_examples(first, second, by_client, sizes))
    return Contrast(compute_mean(by_seed), samples, by_client)


def find_losers(first: Results, second: Results, sign: int, rate: float = ERROR_RATE) -> set[str]:
    """The clients for which the first method is worse beyond doubt, over the seeds; corrected for their number.

    Args:
      first, second, sign: as of `contrast`.
      rate: of an error in any client.
    """
    gains: dict[str, list[float]] = {}
    for seed in sorted(first.keys() & second.keys()):
        for name in first[seed].keys() & second[seed].keys():
            gains.setdefault(name, []).append(sign * (first[seed][name] - second[seed][name]))
    known = {name: each for name, each in gains.items() if len(each) >= LEAST_SEEDS}
    samples = {name: _sample(SEEDS, each) for name, each in known.items()}
    return {name for name, each in samples.items() if each.mean < 0 and each.compute_p_value() < rate / len(known)}


def _average_clients(gains: Mapping[int, Mapping[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for each in gains.values() for name in each)
    return {name: compute_mean(each[name] for each in gains.values() if name in each) for name in names}


def _sample(unit: str, values: Sequence[float]) -> Sample:
    mean, count = compute_mean(values), len(values)
    if not is_constant(values):
        return Sample(unit, mean, float(np.std(values, ddof=1)) / math.sqrt(count), count - 1, count)
    if unit != CLIENTS or is_constant((mean, 0.0)):
        return Sample(unit, 0.0 if is_constant((mean, 0.0)) else mean, 0.0, count - 1, count)
    # Few clients with few test examples may all differ by the same. How sure that is, a sign test says.
    error = abs(mean) / find_quantile(count - 1, 1 - 0.5**count)
    return Sample(unit, mean, error, count - 1, count)


def _sample_examples(
    first: Results, second: Results, by_client: Mapping[str, float], sizes: Mapping[str, float]
) -> Sample:
    """The gain over test examples, with the largest spread that these shares of right answers can have.

    A pair of answers to an example differs at most as often as one of the two is wrong, or as one of them is right.
    Seeds do not make more examples of them, since they may all be tested on the same.
    """
    variance, number = 0.0, 0.0
    for name in by_client:
        shares = [compute_mean(each[name] for each in results.values() if name in each) for results in (first, second)]
        size = sizes.get(name, 0)
        if size > 0:
            variance += min(sum(shares), 2 - sum(shares)) / size / len(by_client) ** 2
            number += size
    mean = compute_mean(by_client.values())
    # Where both are never wrong, another example still could tell them apart: one is counted as if it had.
    least = 1 / number if number else 1.0
    return Sample(EXAMPLES, mean, math.sqrt(max(variance, least / max(number, 1.0))), math.inf, int(number))


def _tail(degrees: float, value: float) -> float:
    # Quicker to import than scipy.stats, which asks it for the same.
    from scipy import special

    return float(special.ndtr(-value) if math.isinf(degrees) else special.stdtr(degrees, -value))


def find_quantile(degrees: float, share: float) -> float:
    """Of Student's t; of the normal distribution where the degrees of freedom are infinite."""
    from scipy import special

    return float(special.ndtri(share) if math.isinf(degrees) else special.stdtrit(degrees, share))


def level_by_holm(
    p_values: Sequence[float], rate: float = ERROR_RATE, weights: Sequence[float] | None = None
) -> list[float]:
    """The rate of error at which each question of a family is decided by Holm's procedure, in their order.

    The smallest p-value is decided at rate / m, the next at rate / (m - 1) and so on, up to the first that is not
    below its own; all others are decided at the rate of that one. So a p-value is below its rate exactly if Holm's
    adjusted one is below `rate`, and an interval at the same rate agrees with the decision.

    Args:
      p_values: of the questions.
      rate: of an error in any of them.
      weights: the share of a question that each is, for questions that count as one together; None: 1 each. Then m is
        the sum of the weights of those that are left, the p-values are divided by theirs to be ordered, and the rates
        are multiplied by them.
    """
    shares = [1.0] * len(p_values) if weights is None else list(weights)
    levels, stopped = [rate] * len(shares), 0.0
    left = sum(shares)
    for i in sorted(range(len(shares)), key=lambda i: p_values[i] / shares[i]):
        level = stopped or rate / left
        levels[i] = level * shares[i]
        if not stopped and p_values[i] >= levels[i]:
            stopped = level
        left -= shares[i]
    return levels
