"""A contest: methods are tried on a problem by successive halving, and the few that are left run on fresh seeds.

Trials are scored on validation examples alone, on seeds of their own. Every run is an ordinary run folder:
`<folder>/trials/<method>/trial_<n>/seed_<s>`, and on fresh seeds `<folder>/seeds/<method>/seed_<s>`, which
`launch.compare --runs=<folder>/seeds` opens. Whatever was decided stands in `<folder>/contest.jsonl`, so that a
contest that was killed goes on as it began. Imports no TensorFlow.
"""

import pathlib
import types
from collections.abc import Callable, Collection, Mapping, Sequence
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
      is_cut: whether the time ended before all was run that the plan has.
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


# Which methods get one more fresh seed, by their names; none: it is decided. Asked again after each seed, and again
# with the same outcome if the contest was killed, so it must answer by that alone.
ChooseMore = Callable[[Outcome], Collection[str]]


def run_contest(
    problem: Problem,
    methods: Sequence[Method],
    folder: pathlib.Path,
    *,
    seconds: float,
    jobs: int | None = None,
    always: Collection[str] = (),
    rounds: int | None = None,
    choose_more: ChooseMore = lambda outcome: (),
    spent_s: float = 0.0,
) -> Outcome:
    """Runs a contest, or what is left of it, and says how it goes.

    Args:
      problem: what methods are tried on.
      methods: the most important first; a time that is short leaves out the last ones. One of them is "fedavg".
      folder: of this contest alone; what an earlier command left there goes on.
      seconds: that all commands together may take, of real time.
      jobs: runs at a time; None: what memory and cores allow.
      always: names of methods that go to fresh seeds whatever their trials gave; the plan leaves none of them out.
      rounds: of FedAvg; None: what the time allows.
      choose_more: which methods get a further fresh seed.
      spent_s: seconds that this command took before, which count, too.

    Raises:
      FlagError: FedAvg's own flags, or those of all, are refused.
      RunFolderError: the folder is that of another contest or in use, or the data have changed since.
      RunStopped: FedAvg cannot be run at all, or not three rounds of it within the time.
      KeyboardInterrupt: we were asked to stop; the same call goes on.
    """
    raise NotImplementedError
