"""The fields of configs as flags: what they are called, how values travel between the two, and which flags are idle."""

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tff_algos.settings.config_fields import ConfigError, Setting, format_value, parse_value

DEBUG = "--debug"  # of every command: prints the traceback of what becomes a line
KINDS = {int | None: int, tuple[str, ...]: tuple}  # of flags whose type the default does not tell


class FlagField(NamedTuple):
    """A setting as a flag.

    Attributes:
      name: what it is called.
      setting: its declaration; what it needs is named by flag.
      default: as flags spell it.
      kind: the flag's type, if that is not the default's; a tuple is of texts.
    """

    name: str
    setting: Setting
    default: Any
    kind: type | None = None

    @property
    def value_type(self) -> type:
        """The flag's type; that of text without a default."""
        return self.kind or (str if self.default is None else type(self.default))


class IdleFlag(NamedTuple):
    """A flag that does nothing, since another has the wrong value: that one, its value, and what to give instead."""

    other: str
    value: Any
    fix: str


def format_default(field: FlagField) -> str:
    """The default of a flag as its help shows it, in brackets; "" for none."""
    text = "" if field.default is None else str(field.default)
    return f" [{text.lower() if field.value_type is bool else text}]" if text else ""


def iterate_fields(config: Any, without_flag: Collection[str] = ()) -> Iterator[FlagField]:
    """The fields of a config as flags of their names, and of its groups as `<group's prefix><field>`.

    Shared ones, which take the value of a flag of all algorithms, are left out.
    """
    return (field for field in _walk(config, without_flag) if not field.setting.shared)


def find_idle_flags(config: Any, without_flag: Collection[str] = ()) -> dict[str, IdleFlag]:
    """The flags of a config, arguments as for `iterate_fields`, whose first unmet need makes them do nothing."""
    values = {field.name: field.default for field in _walk(config)}
    idle = {}
    for field in _walk(config, without_flag):
        for needs in field.setting.needs:
            if not needs.is_met(value := values[needs.field]):
                idle.setdefault(field.name, IdleFlag(needs.field, value, needs.fix.format(flag=needs.field)))
    return idle


def _walk(
    config: Any, without_flag: Collection[str] = (), prefix: str = "", of_old_runs: Mapping[str, Any] | None = None
) -> Iterator[FlagField]:
    """Every setting of a config and of its groups; a shared one has the field's own name."""
    fields = [field for field in dataclasses.fields(config) if {"setting", "flag_prefix"} & field.metadata.keys()]
    shared = {field.name for field in fields if "setting" in field.metadata and field.metadata["setting"].shared}
    for field in fields:
        value = getattr(config, field.name)
        if field.name in without_flag:
            continue
        if "flag_prefix" in field.metadata:
            yield from _walk(value, (), prefix + field.metadata["flag_prefix"], field.metadata["of_old_runs"])
            continue
        declared, old = field.metadata["setting"], (of_old_runs or {}).get(field.name)
        if (prefix and declared.needs) or old is not None:
            needs = (each._replace(field=each.field if each.field in shared else prefix + each.field)
                     for each in declared.needs)  # fmt: skip
            old = declared.of_old_runs if old is None else old
            declared = dataclasses.replace(declared, needs=tuple(needs), of_old_runs=old)
        name = field.name if declared.shared else prefix + field.name
        yield FlagField(name, declared, format_value(value), KINDS.get(field.type))


def can_hold(field: FlagField, value: Any) -> bool:
    """Whether a value, as JSON has it, is of the flag's type and in its range."""
    types = (int, float) if field.value_type is float else field.value_type
    is_bool = field.value_type is bool
    return isinstance(value, types) and isinstance(value, bool) == is_bool and field.setting.admits(value)


def replace_fields(config: Any, values: Mapping[str, Any], prefix: str = "") -> Any:
    """`config` with `values`, named by flag; a shared field takes the value of the shared flag of its name.

    Text for a tuple, as flags and JSON have it, is parsed here and nowhere else.

    Raises:
      ConfigError: a value is out of its range or conflicts with another; its `field` is the flag's name.
    """
    changed = {}
    for field in dataclasses.fields(config):
        value, declared = getattr(config, field.name), field.metadata.get("setting")
        if "flag_prefix" in field.metadata:
            changed[field.name] = replace_fields(value, values, prefix + field.metadata["flag_prefix"])
        elif declared and (name := field.name if declared.shared else prefix + field.name) in values:
            try:
                changed[field.name] = parse_value(value, values[name])
            except ValueError:
                raise ConfigError(name, values[name], declared.describe_range()) from None
    try:
        return dataclasses.replace(config, **changed)
    except ConfigError as error:
        raise ConfigError(prefix + error.field, error.value, error.expected) from None


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
