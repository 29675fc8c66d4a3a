"""What an algorithm's own row says to search, as it fits a run; and the point in there that the run has anyway."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from launch.settings.algorithms import Algorithm
from launch.settings.errors import FlagError
from launch.settings.run_config import RunConfig, find_idle, flag_values
from launch.sweeps.tuning.search_space import (
    Choices,
    Range,
    SearchSpace,
    Settings,
    find_start,
    parse_values,
    read_values,
)
from tff_algos.settings.searched import LOCAL_RATES

# The settings of a run with further flags; raises FlagError where these do not fit.
Resolve = Callable[[Sequence[str]], RunConfig]


def build_own_space(algorithm: Algorithm, resolve: Resolve, given: Collection[str] = ()) -> dict[str, Choices | Range]:
    """What the algorithm's row says to search in a run, as far as it does something there; empty if that is nothing.

    Left out is what is given, choices that the run refuses, such as rounds after its last, and what another setting
    makes idle. Rates of clients are those of the optimizer that they have.

    Raises:
      FlagError: settings that `launch.train` would refuse, or a row that says something else.
    """
    try:
        listed = {name: parse_values(f"{name}={values}", str(values)) for name, values in algorithm.searched.items()}
    except FlagError as error:
        raise FlagError(f"--algo={algorithm.name}: its searched: {str(error).removeprefix('--search: ')}") from None
    space = {name: searched for name, searched in listed.items() if name not in given}
    config, fitting = _resolve_fitting(space, resolve)
    flags = flag_values(config)
    for name, searched in space.items():
        if isinstance(searched, Range):
            space[name] = _fit_rates(name, searched, flags)
        else:
            space[name] = tuple(each for each in searched if _is_taken(resolve, (*fitting, f"--{name}={each}")))
    # What needs the one choice of another setting will have it.
    chosen = {name for name, searched in space.items() if not isinstance(searched, Range) and len(searched) == 1}
    idle = {name for name, flag in find_idle(config).items() if flag.other not in chosen}
    return {name: searched for name, searched in space.items() if searched and name not in idle}


def find_nearest_point(space: SearchSpace, resolve: Resolve) -> Settings:
    """The point of the space that is most like the settings that a run has anyway.

    A setting whose value lies outside has the first choice, or the middle of the range.

    Raises:
      FlagError: settings that `launch.train` would refuse.
    """
    values = read_values(space, flag_values(_resolve_fitting(space, resolve)[0]))
    point = {}
    for name, searched in space.items():
        own = find_start({name: searched}, values)
        other = searched.format_value(searched.middle) if isinstance(searched, Range) else searched[0]
        point[name] = own[name] if own else other
    return point


def drop_idle(point: Settings, space: SearchSpace, resolve: Resolve) -> dict[str, str]:
    """The point without numbers that do nothing beside its choices, such as the rate of no steps at the end."""
    choices = [f"--{name}={value}" for name, value in point.items() if not isinstance(space[name], Range)]
    idle = find_idle(resolve(choices))
    return {name: value for name, value in point.items() if not (isinstance(space[name], Range) and name in idle)}


def _resolve_fitting(space: SearchSpace, resolve: Resolve) -> tuple[RunConfig, tuple[str, ...]]:
    """The settings of a run, and what had to be added: a choice, where the default of its setting does not fit it.

    Raises:
      FlagError: no choice helps.
    """
    try:
        return resolve(()), ()
    except FlagError:
        for name, searched in space.items():
            for choice in () if isinstance(searched, Range) else searched:
                if _is_taken(resolve, fitting := (f"--{name}={choice}",)):
                    return resolve(fitting), fitting
        raise


def _fit_rates(name: str, searched: Range, flags: Mapping[str, Any]) -> Range:
    rates = {optimizer: parse_values(values, values) for optimizer, values in LOCAL_RATES.items()}
    optimizer = flags.get(name.replace("learning_rate", "optimizer"))
    return (rates.get(optimizer) or searched) if searched in rates.values() else searched


def _is_taken(resolve: Resolve, arguments: Sequence[str]) -> bool:
    try:
        resolve(arguments)
    except FlagError:
        return False
    return True
