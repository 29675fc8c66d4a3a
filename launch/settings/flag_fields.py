"""The fields of configs as flags: what they are called, how values travel between the two, and which flags are idle."""

import contextlib
import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tff_algos.settings.config_fields import ConfigError, Setting, format_value, parse_value


class FlagField(NamedTuple):
    """A setting as a flag: its name, its declaration and its default, whose type is the flag's."""

    name: str
    setting: Setting
    default: Any

    @property
    def value_type(self) -> type:
        """The flag's type; that of text without a default."""
        return str if self.default is None else type(self.default)


class IdleFlag(NamedTuple):
    """A flag that does nothing, since another has the wrong value: that one, its value, and what to give instead."""

    other: str
    value: Any
    fix: str


def iterate_fields(config: Any, prefix: str, without_flag: Collection[str] = ()) -> Iterator[FlagField]:
    """The fields of a config and of its groups as flags `<prefix><group's prefix><field>`, shared ones left out."""
    for owner, owner_prefix, name, setting in _walk(config, prefix, without_flag):
        if not setting.shared:
            yield FlagField(owner_prefix + name, setting, format_value(getattr(owner, name)))


def find_idle_flags(config: Any, prefix: str, without_flag: Collection[str] = ()) -> dict[str, IdleFlag]:
    """The flags of a config, arguments as for `iterate_fields`, whose first unmet need makes them do nothing."""
    idle = {}
    for owner, owner_prefix, field, setting in _walk(config, prefix, without_flag):
        for needs in setting.needs:
            value = getattr(owner, needs.field)
            if not needs.is_met(value):
                name, other = (_name_flag(owner, owner_prefix, each) for each in (field, needs.field))
                idle.setdefault(name, IdleFlag(other, format_value(value), needs.fix.format(flag=other)))
    return idle


def _walk(
    config: Any, prefix: str, without_flag: Collection[str], of_old_runs: Mapping[str, Any] | None = None
) -> Iterator[tuple[Any, str, str, Setting]]:
    """(config or group, its prefix, name, setting) of every field that has a flag."""
    for field in dataclasses.fields(config):
        if field.name in without_flag:
            continue
        if "flag_prefix" in field.metadata:
            group, old = getattr(config, field.name), field.metadata["of_old_runs"]
            yield from _walk(group, prefix + field.metadata["flag_prefix"], (), old)
        elif "setting" in field.metadata:
            setting = field.metadata["setting"]
            if of_old_runs and field.name in of_old_runs:
                setting = dataclasses.replace(setting, of_old_runs=of_old_runs[field.name])
            yield config, prefix, field.name, setting


def _name_flag(config: Any, prefix: str, name: str) -> str:
    """The flag of a config's field: a shared one has the field's own name."""
    return name if config.__dataclass_fields__[name].metadata["setting"].shared else prefix + name


def can_hold(field: FlagField, value: Any) -> bool:
    """Whether a value, as JSON has it, is of the flag's type and in its range."""
    types = (int, float) if field.value_type is float else field.value_type
    is_bool = field.value_type is bool
    return isinstance(value, types) and isinstance(value, bool) == is_bool and field.setting.admits(value)


def replace_fields(config: Any, prefix: str, values: Mapping[str, Any]) -> Any:
    """`config` with `values`, named by flag; a shared field takes the value of the shared flag of its name.

    Text for a tuple, as flags and JSON have it, is parsed here and nowhere else.

    Raises:
      ConfigError: a value is out of its range or conflicts with another; its `field` is the flag's name.
    """
    changed = {}
    for field in dataclasses.fields(config):
        if "flag_prefix" in field.metadata:
            group_prefix = prefix + field.metadata["flag_prefix"]
            changed[field.name] = replace_fields(getattr(config, field.name), group_prefix, values)
        elif "setting" in field.metadata:
            declared: Setting = field.metadata["setting"]
            flag_name = field.name if declared.shared else prefix + field.name
            if flag_name in values:
                changed[field.name] = _parse(flag_name, declared, getattr(config, field.name), values[flag_name])
    with prefix_errors(prefix):
        return dataclasses.replace(config, **changed)


@contextlib.contextmanager
def prefix_errors(prefix: str) -> Iterator[None]:
    """Inside, a ConfigError that names a field is raised anew with the field's flag, the prefix and the field.

    An error that begins with "--" names a flag already.
    """
    try:
        yield
    except ConfigError as error:
        if error.field.startswith("--"):
            raise
        raise ConfigError(prefix + error.field, error.value, error.expected) from None


def _parse(flag_name: str, declared: Setting, default: Any, value: Any) -> Any:
    try:
        return parse_value(default, value)
    except ValueError:
        raise ConfigError(flag_name, value, declared.describe_range()) from None


def complete_stored_flags(stored: Mapping[str, Any], fields: Iterable[FlagField]) -> dict[str, Any]:
    """The flags of a stored run, and what it did where later versions have settings of their own: as by default.

    A setting that would do nothing beside the stored flags is not among them: old and new runs are alike in it.
    """
    later = {
        field.name: field.default if field.setting.of_old_runs is None else field.setting.of_old_runs
        for field in fields
        if all(needs.is_met(stored[needs.field]) for needs in field.setting.needs if needs.field in stored)
    }
    return {**later, **stored}
