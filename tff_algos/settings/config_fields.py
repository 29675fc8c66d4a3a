"""Declares the fields of configs: ranges, help texts, and what a field needs. The flags are derived from them.

A config is a frozen dataclass whose fields are made by `setting` (a value) or `group` (a nested config). The config of
an algorithm extends `AlgorithmConfig`; a group calls `check` in its `__post_init__`. This module imports nothing heavy,
so that `--help` answers at once.
"""

import dataclasses
import itertools
import math
import numbers
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self, TypeVar

# What TensorFlow computes with: integers of 32 bits, and single precision, in which smaller numbers are 0.
MOST_INTEGER, MOST_FLOAT, LEAST_FLOAT = 2**31 - 1, 3.4028234e38, 1.1754944e-38
NO_LIMIT = ("", None)
Value = TypeVar("Value")
SMOKE_CLIENTS = 3  # of a smoke run, which has one client an archetype where there are archetypes


class ConfigError(ValueError):
    """A value that cannot be used: which field, what was given, what was expected."""

    def __init__(self, field: str, value: Any, expected: str):
        super().__init__(f"{field}={format_value(value)}: expected {expected}")
        self.field, self.value, self.expected = field, value, expected


class Needs(NamedTuple):
    """What another field must be for a setting to do anything; without it, giving the setting's flag is an error.

    Attributes:
      field: the other field, of the same config or group.
      is_met: whether the setting does something, from the other field's value.
      fix: what to give for that, in words; "{flag}" stands for the other field's flag, for example "--{flag}=qat".
    """

    field: str
    is_met: Callable[[Any], bool]
    fix: str


def needs_value(field: str, *values: str) -> Needs:
    """The need that another field has this value, or one of these."""
    return Needs(field, lambda given: given in values, f"--{{flag}}={' or '.join(values)}")


@dataclasses.dataclass(frozen=True)
class Setting:
    """What is declared of one field.

    Attributes:
      help_text: a sentence or two for `--help`.
      minimum: the least value; a tuple is held to the limits number by number.
      above: a bound that the value must exceed.
      maximum: the largest value.
      below: a bound that the value must stay under.
      choices: the only values.
      or_own: the form of a user's own value beside the choices, for example "module:ALGORITHM"; "" for none.
      expected: what is expected, in words, where the limits do not say it.
      shared: whether the value comes from the flag of all algorithms that has the field's name.
      smoke: the largest value in a smoke run; None where the value costs no time.
      needs: what other fields must be for this one to do anything.
      of_old_runs: the value for runs that are older than the setting, if it is not the default.
      repeated: of texts, whether each stands in a flag of its own.
    """

    help_text: str
    minimum: float | None = None
    above: float | None = None
    maximum: float | None = None
    below: float | None = None
    choices: tuple[str, ...] | None = None
    or_own: str = ""
    expected: str = ""
    shared: bool = False
    smoke: int | None = None
    needs: tuple[Needs, ...] = ()
    of_old_runs: Any = None
    repeated: bool = False

    def describe_range(self, value: Any = None) -> str:
        """What is expected, in words, for example "a number above 0 and at most 1".

        With a value that is refused, it is also said how large or small a number may be, if that is what is wrong.
        """
        word, limit = _find_limit(value)
        if self.expected:
            return self.expected + (f", {word} {limit:.10g}" if word else "")
        if self.choices:
            own = f", or your own as {self.or_own}" if self.or_own else ""
            return "one of " + ", ".join(filter(None, self.choices)) + own
        bounds: tuple[tuple[str, float | None], ...]
        bounds = (("at least", self.minimum), ("above", self.above), ("at most", self.maximum), ("below", self.below))
        if (word, True) not in {(given, bound is not None) for given, bound in bounds}:  # a bound of its own is tighter
            bounds += ((word, limit),)
        words = " and ".join(f"{word} {bound:.10g}" for word, bound in bounds if bound is not None)
        return f"a number {words}".rstrip()

    def admits(self, value: Any) -> bool:
        """Whether the value is one of the choices or within the limits; without either, anything is."""
        if self.choices:
            return value in self.choices or (bool(self.or_own) and is_own(value))
        if isinstance(value, tuple):
            return all(self.admits(number) for number in value)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return True
        return (
            _find_limit(value) == NO_LIMIT  # first: a whole number of 400 digits is no float
            and math.isfinite(value)
            and (self.minimum is None or value >= self.minimum)
            and (self.above is None or value > self.above)
            and (self.maximum is None or value <= self.maximum)
            and (self.below is None or value < self.below)
        )


def _find_limit(value: Any) -> tuple[str, float | None]:
    """The limit that a number breaks which TensorFlow cannot hold, in words and as a bound; NO_LIMIT for all others."""
    if isinstance(value, tuple):
        return next((limit for limit in map(_find_limit, value) if limit != NO_LIMIT), NO_LIMIT)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return NO_LIMIT
    if isinstance(value, float) and not math.isfinite(value):
        return NO_LIMIT
    most = MOST_INTEGER if isinstance(value, int) else MOST_FLOAT
    if abs(value) > most:
        return ("at most", most) if value > 0 else ("at least", -most)
    return ("at least", LEAST_FLOAT) if 0 < abs(value) < LEAST_FLOAT else NO_LIMIT


def is_own(value: Any) -> bool:
    """Whether the value names something in a user's module, as "module:NAME" or "package.module:NAME"."""
    if not isinstance(value, str) or value.count(":") != 1:
        return False
    module, _, name = value.partition(":")
    return name.isidentifier() and all(part.isidentifier() for part in module.split("."))


def setting(
    default: Value | Callable[[], Value], help_text: str, *, needs: Needs | tuple[Needs, ...] = (), **limits: Any
) -> Value:
    """A dataclass field with a help text, needs (one or several) and limits (see `Setting`).

    The default is a value, or a function that gives it, for one that depends on the environment.
    """
    known = [field.name for field in dataclasses.fields(Setting) if field.name not in ("help_text", "needs")]
    # A typing error in an author's limits would otherwise switch the limit off.
    if unknown := next((name for name in limits if name not in known), None):
        raise TypeError(f"setting takes no {unknown}, expected of {', '.join(known)}")
    declared = Setting(help_text, needs=(needs,) if isinstance(needs, Needs) else needs, **limits)
    if isinstance(default, tuple) and not declared.expected:
        numbers = declared.describe_range().replace("a number", "integers")
        declared = dataclasses.replace(declared, expected=f"{numbers} with commas between")
    metadata = {"setting": declared}
    if callable(default):
        return dataclasses.field(default_factory=default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def texts(default: tuple[str, ...], help_text: str, *, repeated: bool = False) -> tuple[str, ...]:
    """A dataclass field for texts, with commas between them or, `repeated`, each in a flag of its own."""
    return dataclasses.field(default=default, metadata={"setting": Setting(help_text, repeated=repeated)})


STRATIFIED = "stratified"
NO_ARCHETYPES = "since the data know no groups of clients, as with --partition=hierarchical or --variant=rotated"


def participation_setting() -> str:
    """How a cohort is drawn, beside a setting `cohort_size`; the same for all algorithms that draw one."""
    return setting(
        "fixed",
        "fixed: exactly cohort_size clients a round; bernoulli: each client by chance, cohort_size on average; "
        "stratified: cohort_size clients, as many of each archetype.",
        choices=("fixed", "bernoulli", STRATIFIED),
    )


def group(factory: Callable[[], Value], flag_prefix: str, of_old_runs: Mapping[str, Any] | None = None) -> Value:
    """A nested config; its flags are named `--<algo>_<flag_prefix><field>`.

    `of_old_runs` is by field, and goes before that of the field's own `Setting`, which other algorithms share.
    """
    metadata = {"flag_prefix": flag_prefix, "of_old_runs": of_old_runs or {}}
    return dataclasses.field(default_factory=factory, metadata=metadata)


def check(config: Any) -> None:
    """Raises ConfigError for the first field of `config` whose value is of another type or refused by its `Setting`."""
    for field in dataclasses.fields(config):
        limits = field.metadata.get("setting")
        value = getattr(config, field.name)
        if limits is None:
            continue
        _check_type(field, limits, value)
        if not limits.admits(value):
            raise ConfigError(field.name, value, limits.describe_range(value))


# What a field declared as each type takes; NumPy's numbers count as Python's. A bool is no number here.
_TYPES = {bool: (bool,), int: (numbers.Integral,), float: (numbers.Real,), str: (str,)}


def _check_type(field: dataclasses.Field, limits: "Setting", value: Any) -> None:
    """Flags have parsed their text already; a config that is built in Python may hold anything."""
    # The annotation of a tuple is a generic alias, which `isinstance` does not take.
    declared = type(field.default) if isinstance(field.default, tuple) else field.type
    if declared is tuple:
        taken = isinstance(value, tuple) and all(_is_of(each, int) for each in value)
        expected = "a tuple of integers"
    elif declared in _TYPES and not limits.choices:  # none of the choices is of another type
        taken = _is_of(value, declared)
        expected = {bool: "True or False", int: "an integer", float: "a number", str: "text"}[declared]
    else:
        return
    if not taken:
        bounds = limits.describe_range().removeprefix("a number").strip() if declared in (int, float) else ""
        wrong = next((each for each in value if not _is_of(each, int)), value) if isinstance(value, tuple) else value
        raise ConfigError(field.name, repr(value), f"{expected}{bounds and f' {bounds}'}, not {type(wrong).__name__}")


def _is_of(value: Any, declared: type) -> bool:
    return isinstance(value, _TYPES[declared]) and isinstance(value, bool) == (declared is bool)


ASCENDING = "rounds in ascending order with commas, such as 5,15,25"


def check_ascending(field: str, rounds: tuple[int, ...]) -> None:
    """Raises ConfigError unless each round is later than the one before it."""
    if any(second <= first for first, second in itertools.pairwise(rounds)):
        raise ConfigError(field, rounds, ASCENDING)


def check_enough_clients(field: str, number: int, num_clients: int) -> None:
    """Raises ConfigError if a setting asks for more clients, or for more groups of clients, than there are clients."""
    if number > num_clients:
        raise ConfigError(field, number, f"at most the {num_clients} clients there are")


def format_value(value: Any) -> Any:
    """A value as flags and JSON spell it: a tuple is its numbers with commas between, NumPy's numbers are Python's."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return value.item() if isinstance(value, numbers.Number) and hasattr(value, "item") else value


def parse_value(default: Any, value: Any) -> Any:
    """The inverse of `format_value`: text for a field whose default is a tuple becomes a tuple of integers.

    Raises:
      ValueError: the text is anything but integers with commas between.
    """
    if not isinstance(default, tuple) or not isinstance(value, str):
        return value
    # Of empty text there is one part, and no integer.
    texts = [text.strip() for text in value.split(",")] if value.strip() else []
    # `int` alone would take 1_0 for 10, and digits of other scripts.
    if not all(re.fullmatch("[+-]?[0-9]+", text) for text in texts):
        raise ValueError(f"expected integers with commas between, got {value}")
    return tuple(int(text) for text in texts)


def shrink(config: Any) -> Any:
    """A config whose settings, and those of its groups, are at most what they declare as `smoke`."""
    changed = {}
    for field in dataclasses.fields(config):
        value, declared = getattr(config, field.name), field.metadata.get("setting")
        if "flag_prefix" in field.metadata:
            changed[field.name] = shrink(value)
        elif declared is not None and declared.smoke is not None:
            changed[field.name] = min(value, declared.smoke)
    return dataclasses.replace(config, **changed)


@dataclasses.dataclass(frozen=True)
class AlgorithmConfig:
    """What the config of every algorithm extends; each method has a default that fits most algorithms.

    A config with checks of its own calls `super().__post_init__()` before them. An error names the field; the caller
    puts the algorithm's name before it, which makes it the flag.
    """

    def __post_init__(self):
        check(self)

    @property
    def trains_teacher(self) -> bool:
        """Whether the model's teacher is trained beside it; by default it is not."""
        return False

    @property
    def model_names(self) -> tuple[str, ...]:
        """The models that clients train in place of --model: those of a setting `models`, else none."""
        return tuple(name.strip() for name in getattr(self, "models", "").split(",") if name.strip())

    def plan_rounds(self, rounds: int) -> Self:
        """The settings for a run of so many rounds; by default the same."""
        return self

    def plan_asked(self) -> Self:
        """The settings for clients that are asked over a network; by default as they are."""
        return self

    def check_run(self, rounds: int) -> None:
        """Raises ConfigError if a setting does not fit a run of that many rounds. By default, all do."""

    def check_clients(self, num_clients: int) -> None:
        """Raises ConfigError if a setting does not fit that many clients. By default, all do."""

    def check_examples(self, fewest: int) -> None:
        """Raises ConfigError if a setting does not fit a client of so few train examples. By default, all do."""

    def check_devices(self, profiles: Any, num_clients: int) -> None:
        """Raises ConfigError if a setting does not fit these device profiles of so many clients. By default, all do."""

    def check_archetypes(self, archetypes: Any) -> None:
        """Raises ConfigError if a setting does not fit these `Archetypes`, None where the data know none."""
        participation = getattr(self, "participation", "")
        if participation == STRATIFIED and archetypes is None:
            raise ConfigError("participation", participation, f"fixed or bernoulli, {NO_ARCHETYPES}")

    def shrink_to_smoke(self) -> Self:
        """The settings for a smoke run: by default, each at most what it declares as `smoke`."""
        return shrink(self)
