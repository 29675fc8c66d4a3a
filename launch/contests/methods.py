"""What enters a contest: an algorithm with fixed flags and the settings that its trials vary. Imports no TensorFlow."""

import types
from typing import NamedTuple

from launch.sweeps.tuning.search_space import SearchSpace, Settings

# What a client has at the end: a model of its own that nobody else helped to train; one trained on all examples in one
# place; the same one as all others; that of a group; its own, made from what others trained, too.
ALONE, POOLED, SHARED, GROUPS, PERSONAL = "alone", "pooled", "shared", "groups", "personal"
ROLES = (ALONE, POOLED, SHARED, GROUPS, PERSONAL)
# The method that sets the pace: what it takes on a seed, other federated methods may spend.
REFERENCE = "fedavg"
# Those that take part in federated rounds, and so in what FedAvg may spend.
FEDERATED_ROLES = (SHARED, GROUPS, PERSONAL)


class Method(NamedTuple):
    """A method that is tried.

    Attributes:
      name: of its folders, in snake case, such as "fedavg_fine_tuned"; no other method of the contest has it.
      title: for readers, such as "FedAvg + fine-tuning".
      algo: as `--algo` takes it; a user's own as "module:ALGORITHM".
      fixed: flags of all its runs, such as "--final_steps=50".
      space: what its trials vary; {}: nothing, so that it has one trial.
      start: settings of its first trial, where these are not its algorithm's own.
      role: one of `ROLES`.
      cost: real seconds of its run, which has more rounds than FedAvg's if its clients learn alone, for one of
        FedAvg's; a guess until it is measured.
      rounds: of its whole and short runs at most; 0: as its role has it.
    """

    name: str
    title: str
    algo: str
    fixed: tuple[str, ...] = ()
    space: SearchSpace = types.MappingProxyType({})
    start: Settings = types.MappingProxyType({})
    role: str = SHARED
    cost: float = 1.0
    rounds: int = 0

    @property
    def is_federated(self) -> bool:
        """Whether clients learn from each other without handing over their examples."""
        return self.role in FEDERATED_ROLES
