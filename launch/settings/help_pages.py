"""The pages of `launch.train --help`: what people use, one algorithm's flags, or all flags. Imports no TensorFlow."""

import dataclasses
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from launch.settings.algorithms import ALGORITHMS, Algorithm
from launch.settings.flag_fields import FlagField, iterate_fields
from launch.settings.flags import FULL_HELP, PROGRAM, describe_expected, find_asked_algorithm, find_own_algorithm
from launch.settings.run_config import find_algorithm, list_groups, shared_fields

WIDTH = 80
# The flags that people use most, and a few words on each.
COMMON = {
    "dataset": "Data set: digits, mnist, cifar10, building and more.",
    "data": "Your own file or folder: CSV, parquet, npz, images.",
    "label_column": "Column of your table to predict.",
    "num_clients": "Number of clients.",
    "partition": "How examples go to clients: iid, dirichlet, natural.",
    "dirichlet_alpha": "Label skew of dirichlet; smaller is more skewed.",
    "model": "Model, or your own as module:function.",
    "rounds": "Rounds of training.",
    "batch_size": "Examples in a mini-batch.",
    "seed": "Seed of everything random.",
    "run_dir": "Folder of the run; by default a new one under runs/.",
    "resume": "Go on with the run in --run_dir.",
    "smoke": "Try the flags in seconds, on random data.",
}
# The same of an algorithm's own settings, without its name before them.
COMMON_OF_ALGORITHMS = frozenset(
    (
        *("epochs", "steps", "learning_rate", "optimizer", "proximal_weight", "cohort_size", "num_clusters"),
        *("local_epochs", "local_learning_rate", "student_epochs", "student_learning_rate", "teacher_epochs"),
        *("inner_steps", "inner_learning_rate", "meta_learning_rate", "fine_tuning_steps", "fine_tuning_learning_rate"),
        *("server_learning_rate", "dp_epsilon"),
    )
)


def format_help(arguments: Sequence[str] = ()) -> str:
    """The text of --help or, if it is among the arguments, of --helpfull; of one algorithm if they name one.

    Raises:
      FlagError: the user's own algorithm cannot be used.
    """
    if FULL_HELP in arguments:
        return format_all_flags(arguments)
    asked = find_asked_algorithm(arguments)
    return format_algorithm(asked) if asked else format_first_page()


def format_start() -> str:
    """What is said to a person who has typed nothing."""
    return f"""\
Name an algorithm. Some commands to begin with:
  {PROGRAM} --algo=fedavg                trains on real handwritten digits
  {PROGRAM} --algo=fedavg --data=<file>  trains on your own table or images
  {PROGRAM} --help                       lists the algorithms and the flags"""


def format_first_page() -> str:
    """The algorithms, the flags that people use, and how to get more; at most 60 lines of 80 columns."""
    defaults = {field.name: field for field in shared_fields()}
    flags = [(f"--{name}{_format_default(defaults[name])}", text) for name, text in COMMON.items()]
    more = [
        (f"{PROGRAM} --help --algo=fedavg", "the flags of FedAvg, in groups"),
        (f"{PROGRAM} {FULL_HELP}", "all flags of all algorithms"),
        ("--flagfile=<file>", "reads flags from a file"),
        ("--experiment=<paper>/<name>", "takes a paper's settings"),
        ("--list_experiments", "lists these experiments"),
    ]
    return "\n".join(
        (
            f"{PROGRAM} --algo=<algorithm> [--flag=value ...]",
            "Trains an algorithm on a data set, and says where the results are.",
            *("", "Algorithms:"),
            *_align([(row.name, row.summary) for row in ALGORITHMS.values()]),
            *("", "Flags that people use; the default is in brackets:"),
            *_align(flags),
            *("", "Flags of an algorithm begin with its name, as --fedavg_epochs=2.", "", "More:"),
            *_align(more),
        )
    )


def format_algorithm(spelling: str) -> str:
    """The flags of one algorithm in groups, common ones first, its own before those of all; without their limits.

    Raises:
      FlagError: the user's own algorithm cannot be used.
    """
    algorithm = find_algorithm(spelling)
    own = dict(_list_own_groups(algorithm))
    fields = [*shared_fields(), *(field for group in own.values() for field in group)]
    chosen = {*COMMON, *(algorithm.flag_prefix + name for name in COMMON_OF_ALGORITHMS)}
    common = [field for field in fields if field.name in chosen]
    groups = {"The most used": common, **own, **list_groups()}
    lines = [f"{PROGRAM} --algo={spelling} [--flag=value ...]", *_wrap(algorithm.summary, "")]
    lines += _describe_defaults(algorithm)
    lines += ["", f"Default values are in brackets. {FULL_HELP} says which values a flag takes."]
    for title, group in groups.items():
        shown = group if group is common else [field for field in group if field.name not in chosen]
        if shown:
            lines += ["", f"{title}:", *(line for field in shown for line in _describe(field, has_limits=False))]
    return "\n".join(lines)


def format_all_flags(arguments: Sequence[str] = ()) -> str:
    """All shared flags, then each algorithm's, the user's own last if the arguments name one.

    Raises:
      FlagError: the user's own algorithm cannot be used.
    """
    lines = [f"{PROGRAM} --algo=<algorithm> [--flag=value ...]", "", "Default values are in brackets."]
    for title, group in list_groups().items():
        lines += ["", f"{title}:", *(line for field in group for line in _describe(field))]
    for spelling in (*ALGORITHMS, *find_own_algorithm(arguments)):
        algorithm = find_algorithm(spelling)
        lines += ["", f"--algo={spelling}: {algorithm.summary}", *_describe_defaults(algorithm)]
        lines += [line for _, group in _list_own_groups(algorithm) for field in group for line in _describe(field)]
    return "\n".join(lines)


def _list_own_groups(algorithm: Algorithm) -> Iterator[tuple[str, list[FlagField]]]:
    """(title, flags) of the algorithm's own settings, then of each group of them that has any."""
    config, skipped = algorithm.default_config(), algorithm.fields_without_flag
    groups = [field.name for field in dataclasses.fields(config) if "flag_prefix" in field.metadata]
    yield algorithm.title, list(iterate_fields(config, algorithm.flag_prefix, {*skipped, *groups}))
    others = {field.name for field in dataclasses.fields(config)}
    for name in groups:
        fields = list(iterate_fields(config, algorithm.flag_prefix, {*skipped, *(others - {name})}))
        yield f"{algorithm.title}: {name.replace('_', ' ')}", fields


def _describe_defaults(algorithm: Algorithm) -> list[str]:
    defaults = " ".join(f"--{name}={value}" for name, value in algorithm.shared_defaults.items())
    return _wrap(f"Its own defaults: {defaults}", "    ") if defaults else []


def _describe(field: FlagField, has_limits: bool = True) -> list[str]:
    is_told = field.value_type is not bool and (has_limits or field.setting.choices)
    expected = describe_expected(field.setting, field.value_type) if is_told else ""
    text = f"{field.setting.help_text} Expected: {expected}." if expected else field.setting.help_text
    return [f"  --{field.name}{_format_default(field)}", *_wrap(text, "      ")]


def _format_default(field: FlagField) -> str:
    default: Any = "" if field.default is None else field.default
    text = str(default).lower() if field.value_type is bool else str(default)
    return f" [{text}]" if text else ""


def _wrap(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _align(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Two columns; a text that does not fit is wrapped beside its name."""
    width = max(len(name) for name, _ in rows) + 2
    lines = []
    for name, text in rows:
        first, *further = textwrap.wrap(text, WIDTH - width - 2) or [""]
        lines += [f"  {name:{width}}{first}", *(" " * (width + 2) + line for line in further)]
    return lines
