"""How much is tried: the numbers of a contest, by what its time allows. Imports no TensorFlow."""

from typing import NamedTuple


class Plan(NamedTuple):
    """The numbers of a contest, as its journal has them.

    Attributes:
      rounds: of FedAvg. Other federated methods may spend the virtual seconds that it takes in these, in at most
        `MOST_ROUNDS_FOR_ONE` times as many rounds; methods that share nothing have as many rounds as it.
      trials: points of each method's space; point 0 has the algorithm's defaults, where the space contains them.
      first_share: of a run's length that the first rung has: all trials, one seed.
      kept: of each method's trials, how many go on to the second rung: whole length, all trial seeds.
      trial_seeds: of trials alone; the first is that of the first rung.
      finalists: how many methods go to fresh seeds by their validation mean, beside those that always do.
      seeds: fresh ones, which every finalist has.
      most_seeds: how many fresh ones a method may have, if it is asked for and time is left.
    """

    rounds: int
    trials: int
    first_share: float
    kept: int
    trial_seeds: tuple[int, ...]
    finalists: int
    seeds: tuple[int, ...]
    most_seeds: int
