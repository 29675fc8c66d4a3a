"""What the name of a setting means: that of all algorithms which have it or, as `<algo>_X`, the X of one alone.

A name that can be read as `<algo>_X` of an algorithm that takes part is read so: of AMFL-P beside Fine-Tuning,
`--fine_tuning_steps` is the latter's `steps`, and the former's setting of this name is `--amfl_p_fine_tuning_steps`.
Each other name is X itself. A run, which has one algorithm, keeps its settings under their own names.
"""

import re
from collections.abc import Collection, Iterable, Sequence

from launch.settings.algorithms import Algorithm

_FLAG = re.compile("(--|-(?!-))([^=]+)(=.*)?", re.DOTALL)


def read_name(name: str, algorithm: Algorithm) -> str:
    """What the setting is called in a run of the algorithm."""
    own = name.removeprefix(algorithm.flag_prefix)
    return own if own in algorithm.names else name


def find_owner(name: str, algorithms: Iterable[Algorithm]) -> Algorithm | None:
    """The one of these that the name is meant for alone; None where it is meant for all."""
    owners = [row for row in algorithms if read_name(name, row) != name]
    return max(owners, key=lambda row: len(row.name), default=None)


def find_setting(name: str, algorithms: Iterable[Algorithm]) -> str:
    """The setting that a name means, whichever of these algorithms it is meant for."""
    owner = find_owner(name, algorithms)
    return read_name(name, owner) if owner else name


def get_flag(argument: str) -> str:
    """The name of the flag that an argument gives, as it is typed, "no" of a switch included; "" if it gives none."""
    match = _FLAG.fullmatch(argument)
    return match[2] if match else ""


def join_values(arguments: Iterable[str]) -> list[str]:
    """The arguments, with `--name value` as `--name=value`."""
    joined: list[str] = []
    for argument in arguments:
        if joined and not argument.startswith("-") and get_flag(joined[-1]) and "=" not in joined[-1]:
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


def rename_arguments(arguments: Sequence[str], algorithms: Collection[Algorithm]) -> list[str]:
    """The arguments, settings of these algorithms under their own names; what stands after a lone `--` stays."""
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    renamed = []
    for argument in arguments[:end]:
        if match := _FLAG.fullmatch(argument):
            dashes, name, value = match.groups()
            setting = find_setting(name, algorithms)
            if setting == name and name.startswith("no") and value is None:
                setting = f"no{find_setting(name[2:], algorithms)}"
            argument = f"{dashes}{setting}{value or ''}"
        renamed.append(argument)
    return [*renamed, *arguments[end:]]
