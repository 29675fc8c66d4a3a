"""Our own comparisons of FedCD with FedAvg, which the paper does not claim; accuracies in per cent, changes in points.

Thresholds and rounds were set before the runs of the authors' training were made, but for those of the last comparison.
"""

from launch.papers.engine.claims import Claim
from launch.papers.engine.conditions import Condition, at_most, exceeds
from launch.papers.fedcd.claims import (
    AT_THE_END,
    END,
    MOST_BIT_EFFECT,
    ROUNDS_RULE,
    converges_first,
    make_cell,
    matches_32_bits,
)
from launch.papers.fedcd.measures import (
    BASE,
    BIASES,
    CALM_FROM,
    FEDAVG,
    FEDCD,
    HIERARCHICAL,
    LAST_ROUNDS,
    LATE,
    MILESTONES,
    MOST_CHANGE,
    SHARED,
)

LEAST_LEAD = 15.0  # points


def _leads(metric: str) -> Condition:
    cells = [make_cell(HIERARCHICAL, algo, metric) for algo in (FEDCD, FEDAVG)]
    return exceeds(*cells, "FedCD {0}, FedAvg {1}", by=LEAST_LEAD)


def _changes_less(metric: str, variant: str = BASE) -> Condition:
    cells = make_cell(HIERARCHICAL, FEDAVG, metric), make_cell(HIERARCHICAL, FEDCD, metric, variant)
    return exceeds(*cells, "FedAvg {0} against FedCD {1}")


def _compare(text: str, rule: str, *conditions: Condition) -> Claim:
    return Claim("", text, rule, conditions)


FEDCD_FURTHER = (
    _compare(f"at round {END} FedCD is more than {LEAST_LEAD:g} points above FedAvg, hierarchical archetypes",
             "mean accuracy of the devices", _leads("final")),
    _compare(f"the same over the last {LAST_ROUNDS} rounds", "mean accuracy of the devices", _leads("mean_of_last")),
    _compare(f"at round {END} FedCD with 8 bits is within {MOST_BIT_EFFECT:g} points of FedCD with 32",
             "mean accuracy of the devices", matches_32_bits("8", "final")),
    # FedCD's calm alone would say little: see `SAME_RATES`.
    _compare(f"in rounds {LATE - LAST_ROUNDS + 1} to {LATE} a device's accuracy changes by at most {MOST_CHANGE:g} "
             "points a round under FedCD, and by more under FedAvg, hierarchical archetypes",
             "mean over devices and rounds; both must hold",
             at_most(make_cell(HIERARCHICAL, FEDCD, "late_change"), "points {0}", MOST_CHANGE),
             _changes_less("late_change")),
    # Clones that begin the learning rates anew train at the first one where FedAvg is past its first step down.
    _compare("with one schedule of learning rates for all models, a device's accuracy changes less under FedCD than "
             f"under FedAvg in rounds {CALM_FROM} to {END}, hierarchical archetypes",
             "mean over devices and rounds", _changes_less("change", SHARED)),
    _compare(f"with that schedule, the same over the last {LAST_ROUNDS} rounds", "mean over devices and rounds",
             _changes_less("last_change", SHARED)),
    _compare(f"with that schedule, FedCD converges in fewer of the first {END} rounds than FedAvg, hierarchical "
             "archetypes", f"{ROUNDS_RULE}; {AT_THE_END}",
             converges_first(f"convergence_or_end_{END}", variant=SHARED)),
    _compare(f"from the first milestone on, devices have more active models with a bias of {BIASES[0]} than with "
             f"{BIASES[-1]}, hierarchical archetypes",
             f"all devices' active models, mean over the rounds {MILESTONES[0] + 1} to {END}; these rounds were chosen "
             "after the runs, since the claim looks only at those after the last milestone",
             exceeds(*(make_cell(HIERARCHICAL, FEDCD, "cloned_active_models", f"bias{BIASES[i]}") for i in (0, -1)),
                     f"bias {BIASES[0]} {{0}}, bias {BIASES[-1]} {{1}}")),
)  # fmt: skip
