"""What a contest gives: its plan, its trials, and the folders of its runs on fresh seeds. Imports no TensorFlow."""

import pathlib
import types
from collections.abc import Mapping
from typing import NamedTuple

from launch.contests.methods import Method
from launch.contests.plan import Plan
from launch.contests.problem import Limits, Problem
from launch.sweeps.tuning.search_space import Settings

NONE_YET: Mapping = types.MappingProxyType({})


class TrialResult(NamedTuple):
    """A trial of a method.

    Attributes:
      number: of its folder, from 0.
      settings: its flags and their values, beside those that are fixed; {} are the algorithm's defaults.
      scores: of both rungs, {seed: the objective after the last round} each; without runs that did not end.
      why_out: why no more of it was run, such as what a run failed by; "" if it went as far as the plan has it.
    """

    number: int
    settings: Settings
    scores: tuple[Mapping[int, float], Mapping[int, float]] = (NONE_YET, NONE_YET)
    why_out: str = ""


class Entered(NamedTuple):
    """A method at the end of a contest.

    Attributes:
      method: what entered.
      trials: by number; none of a method that the plan has left out.
      chosen: the settings of the trial that was best on validation examples; None without any.
      why_out: why it did not go to fresh seeds, in words; "" if it did.
      runs: {fresh seed: folder} of its finished runs on fresh seeds.
    """

    method: Method
    trials: tuple[TrialResult, ...] = ()
    chosen: Settings | None = None
    why_out: str = ""
    runs: Mapping[int, pathlib.Path] = NONE_YET


class Outcome(NamedTuple):
    """What a contest gave.

    Attributes:
      problem: what was tried on.
      plan: how much was to be tried.
      limits: {name of a method: what each of its whole runs may spend}, of methods that the plan has.
      entered: all methods in the order that they were given.
      seconds: real ones, of all commands together.
      is_cut: whether the time ended before all was run on fresh seeds that the plan has.
    """

    problem: Problem
    plan: Plan
    limits: Mapping[str, Limits]
    entered: tuple[Entered, ...]
    seconds: float
    is_cut: bool

    def get(self, name: str) -> Entered:
        """The method of that name. Raises KeyError if none has it."""
        return {each.method.name: each for each in self.entered}[name]
