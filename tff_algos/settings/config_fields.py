"""Declares the fields of algorithm configs with their ranges and help texts, from which the flags are derived.

A config is a frozen dataclass whose fields are made by `setting` (a value) or `group` (a nested config) and whose
`__post_init__` calls `check`. This module imports nothing heavy, so that `--help` answers at once.
"""

import dataclasses
import math
from typing import Any


class ConfigError(ValueError):
    """A value out of its range: which field, what was given, what was expected."""

    def __init__(self, field: str, value: Any, expected: str):
        super().__init__(f"{field}={value}: expected {expected}")
        self.field, self.value, self.expected = field, value, expected


@dataclasses.dataclass(frozen=True)
class Setting:
    """The help text and the admissible values of one field; `shared` marks a value set by a flag of all algorithms."""

    help_text: str
    minimum: float | None = None
    above: float | None = None
    maximum: float | None = None
    below: float | None = None
    choices: tuple[str, ...] | None = None
    shared: bool = False

    def describe_range(self) -> str:
        """What is expected, in words, for example "a number above 0 and at most 1"."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        bounds = (("at least", self.minimum), ("above", self.above), ("at most", self.maximum), ("below", self.below))
        words = " and ".join(f"{word} {bound:g}" for word, bound in bounds if bound is not None)
        return f"a number {words}".rstrip()

    def admits(self, value: Any) -> bool:
        if self.choices:
            return value in self.choices
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return True
        return (
            math.isfinite(value)
            and (self.minimum is None or value >= self.minimum)
            and (self.above is None or value > self.above)
            and (self.maximum is None or value <= self.maximum)
            and (self.below is None or value < self.below)
        )


def setting(default: Any, help_text: str, **limits: Any) -> Any:
    """A dataclass field with a default, a help text and limits (see `Setting`)."""
    return dataclasses.field(default=default, metadata={"setting": Setting(help_text, **limits)})


def group(factory: Any, flag_prefix: str) -> Any:
    """A nested config; its flags are named `--<algo>_<flag_prefix><field>`."""
    return dataclasses.field(default_factory=factory, metadata={"flag_prefix": flag_prefix})


def check(config: Any) -> None:
    """Raises ConfigError for the first field of `config` whose value its `Setting` does not admit."""
    for field in dataclasses.fields(config):
        limits = field.metadata.get("setting")
        value = getattr(config, field.name)
        if limits is not None and not limits.admits(value):
            raise ConfigError(field.name, value, limits.describe_range())
