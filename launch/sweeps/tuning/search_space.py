"""What `--search` says: the choices or the range of each searched flag. Knows no sampler."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from launch.settings.flag_fields import FlagField
from launch.settings.flags import FlagError, parse_given
from launch.settings.run_config import RunConfig, find_algorithm, flag_values, shared_fields
from launch.settings.setting_names import read_name
from launch.sweeps.tasks import OWN_FLAGS

# In place of those of a run.
OWN_FLAGS_HERE = {"seed": "--seeds", "rounds": "--rounds", "run_dir": "--runs_dir"}
INT, FLOAT, LOG = "int", "float", "log"
KINDS = {INT: int, FLOAT: float, LOG: float}
SIGNIFICANT_DIGITS, SHORT_DIGITS = 6, 3
LOWER, UPPER = "lower", "upper"  # ends
# Of a range's width, on its own scale, that counts as its end.
EDGE = 0.05
# Of a range's width: how far a number may be moved, at most, to have few digits.
SHORT_SHARE = 1 / 200
EACH_ONCE = "expected each flag and each of its values once"

Choices = tuple[str, ...]
# The values of searched flags, as they are typed.
Settings = Mapping[str, str]


class Range(NamedTuple):
    """Numbers from `low` to `high`, both included: whole ones, any, or any with an even logarithm."""

    kind: str
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.kind}({self.low},{self.high})"

    @property
    def middle(self) -> float:
        """The number with as much of the range below it as above."""
        middle = math.sqrt(self.low * self.high) if self.kind == LOG else (self.low + self.high) / 2
        return self.shorten(middle)

    def shorten(self, value: float) -> float:
        """A number of the range to as many digits as people read, unless that moves it far in the range."""
        rounded = float(f"{value:.{SHORT_DIGITS}g}")
        is_near = abs(rounded - value) <= SHORT_SHARE * (self.high - self.low)
        return rounded if is_near and self.low <= rounded <= self.high else value

    def format_value(self, value: float) -> str:
        """A number of the range as a flag takes it, rounded where it stays inside."""
        if self.kind == INT:
            return str(int(value))
        rounded = f"{value:.{SIGNIFICANT_DIGITS}g}"
        return rounded if self.low <= float(rounded) <= self.high else repr(value)


SearchSpace = Mapping[str, Choices | Range]


def parse_search(text: str) -> dict[str, Choices | Range]:
    """The choices of each flag of "a=1|2;b=3|4", or its range: "c=int(2,8);d=float(0,1);e=log(1e-4,1e-1)".

    Raises:
      FlagError: it says something else.
    """
    space: dict[str, Choices | Range] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, equals, values = part.partition("=")
        name = name.strip().lstrip("-")
        if not equals or not name:
            raise FlagError(f"--search: {part!r}: expected a flag and its values, as name=1|2|3")
        searched = parse_values(part, values)
        if name in space:
            raise FlagError(f"--search: {part!r}: {EACH_ONCE}")
        if name in OWN_FLAGS:
            own = OWN_FLAGS_HERE.get(name)
            raise FlagError(
                f"--search: {name} is not searched; " + (f"give {own} beside it" if own else "leave it out")
            )
        space[name] = searched
    if not space:
        raise FlagError("--search is missing: expected flags with their values, as 'a=1|2|3;b=true|false'")
    return space


def parse_values(part: str, values: str) -> Choices | Range:
    """The values of a flag; `part` is the flag with them, as an error shows it."""
    searched = _parse_range(part, values.strip()) or tuple(value.strip() for value in values.split("|"))
    if not all(map(str, searched)):
        raise FlagError(f"--search: {part!r}: expected a flag and its values, as name=1|2|3")
    if not isinstance(searched, Range) and len(set(searched)) < len(searched):
        raise FlagError(f"--search: {part!r}: {EACH_ONCE}")
    return searched


def _parse_range(part: str, text: str) -> Range | None:
    """The range of "kind(low,high)"; None for text without brackets, which are choices."""
    match = re.fullmatch(r"(\w*)\((.*)\)", text)
    if match is None:
        return None
    kind, ends = match[1], match[2].split(",")
    expected = f"--search: {part!r}: expected int(low,high), float(low,high) or log(low,high), or choices as 1|2|3"
    if kind not in KINDS or len(ends) != 2:
        raise FlagError(expected)
    try:
        low, high = (KINDS[kind](end.strip()) for end in ends)
    except ValueError:
        raise FlagError(expected) from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise FlagError(f"--search: {part!r}: expected two numbers, the smaller one first")
    if kind == LOG and low <= 0:
        raise FlagError(f"--search: {part!r}: expected numbers above 0, which have a logarithm")
    return Range(kind, low, high)


def has_ranges(space: SearchSpace) -> bool:
    """Whether some flag has a range, so that there is no grid."""
    return any(isinstance(searched, Range) for searched in space.values())


def compute_grid_size(grid: Mapping[str, Sequence[str]]) -> int:
    """How many points the grid has."""
    return math.prod(map(len, grid.values()))


def check_space(space: SearchSpace, algo: str) -> None:
    """Holds every choice and both ends of every range to what the flags themselves take.

    Args:
      algo: the algorithm whose flags count, as `--algo` spells it.

    Raises:
      FlagError: an unknown flag, a value that a flag does not take, or a range for a flag that takes none of its kind.
    """
    algorithm = find_algorithm(algo)
    fields = {field.name: field for field in (*shared_fields(), *algorithm.fields)}
    settings = [read_name(name, algorithm) for name in space]
    if twice := next((name for name in settings if settings.count(name) > 1), ""):
        raise FlagError(f"--search: {twice}: expected each setting once")
    for name, searched in space.items():
        ends = (searched.low, searched.high) if isinstance(searched, Range) else ()
        for value in map(searched.format_value, ends) if ends else searched:
            try:
                parse_given([f"--algo={algo}", f"--{name}={value}"])
            except FlagError as error:
                raise refuse_search(error, {name: value}) from None
        if ends:
            _check_kind(fields[read_name(name, algorithm)], searched)


def refuse_search(error: FlagError, settings: Settings) -> FlagError:
    """The error of `launch.train` on settings that are searched, in the words of `--search`."""
    listed = [(name, value) for name, value in settings.items() if "," in value and f"{name}={value}:" in str(error)]
    hint = "".join(f"; did you mean {name}={value.replace(',', '|')}?" for name, value in listed[:1])
    return FlagError(f"--search: {error}{hint}")


def _check_kind(field: FlagField, searched: Range) -> None:
    if field.value_type not in (int, float):
        raise FlagError(f"--search: {field.name}={searched}: takes no single number; expected choices, as 1|2|3")
    if field.value_type is int and searched.kind != INT:
        raise FlagError(f"--search: {field.name}={searched}: takes whole numbers; expected int(low,high) or choices")


def find_own_point(space: SearchSpace, config: RunConfig) -> Settings | None:
    """The point of the space with the settings that a run has anyway; None if one of these lies outside."""
    return find_start(space, read_values(space, flag_values(config)))


def read_values(space: SearchSpace, flags: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the searched flags in those of a run, by the names that the space has for them."""
    algorithm = find_algorithm(flags["algo"])
    return {name: flags.get(read_name(name, algorithm), "") for name in space}


def find_start(space: SearchSpace, flags: Mapping[str, Any]) -> Settings | None:
    """The point of the space with the values that the flags have; None if one of these lies outside."""
    start = {}
    for name, searched in space.items():
        value = flags[name]
        if isinstance(searched, Range):
            is_inside = isinstance(value, (int, float)) and searched.low <= value <= searched.high
            found = searched.format_value(value) if is_inside else None
        else:
            found = next((choice for choice in searched if _spells(choice, value)), None)
        if found is None:
            return None
        start[name] = found
    return start


def holds(searched: Choices | Range, text: str) -> bool:
    """Whether a table's text is one of the choices, or a number of the range as it is typed."""
    if not isinstance(searched, Range):
        return text in searched
    try:
        value = KINDS[searched.kind](text)
    except ValueError:
        return False
    return searched.low <= value <= searched.high and searched.format_value(value) == text


def _spells(choice: str, value: Any) -> bool:
    """Whether a choice is read as this value of a flag: 1e-3 as 0.001, True as true."""
    if isinstance(value, bool):
        return choice.lower() in (("true", "t", "1") if value else ("false", "f", "0"))
    if not isinstance(value, (int, float)):
        return choice == str(value)
    try:
        return float(choice) == value
    # Another value of the flag is no number, as "auto".
    except ValueError:
        return False


def find_end(values: Choices | Range, chosen: str) -> str:
    """LOWER or UPPER if a number lies at that end; "" for all others, and at 0, below which nothing is."""
    try:
        number = float(chosen)
        if isinstance(values, Range):
            low, high, place = values.low, values.high, number
            if values.kind == LOG:
                low, high, place = math.log(low), math.log(high), math.log(number)
            share = (place - low) / (high - low)
        else:
            numbers = sorted(map(float, values))
            if len(numbers) < 3:
                return ""
            share = 0.0 if number == numbers[0] else 1.0 if number == numbers[-1] else 0.5
    except (ValueError, ZeroDivisionError):
        return ""
    if share <= EDGE:
        return LOWER if number else ""
    return UPPER if share >= 1 - EDGE else ""


def format_search(space: SearchSpace) -> str:
    """The space as `parse_search` reads it."""
    return ";".join(
        f"{name}={searched if isinstance(searched, Range) else '|'.join(searched)}" for name, searched in space.items()
    )


def format_settings(settings: Settings) -> list[str]:
    """The flags as they are typed."""
    return [f"--{name}={value}" for name, value in settings.items()]


def describe_settings(settings: Mapping[str, Any]) -> str:
    """The settings for a line; those of a trial without any are those that were given."""
    return " ".join(f"{name}={value}" for name, value in settings.items()) or "the settings as they were given"


def list_names(settings: Iterable[Settings]) -> list[str]:
    """The flags that any of these has, each once."""
    return list(dict.fromkeys(name for each in settings for name in each))
