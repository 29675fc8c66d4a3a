"""The pages of `launch.train --help`: what people use, one algorithm's flags, or all flags. Imports no TensorFlow."""

import dataclasses
import textwrap
from collections.abc import Iterator, Sequence

from launch.settings.algorithms import ALGORITHMS, Algorithm
from launch.settings.flag_fields import DEBUG, FlagField, format_default, iterate_fields
from launch.settings.flag_parsing import FULL_HELP, HELP_FLAGS, describe_expected
from launch.settings.flags import LISTING, PROGRAM, find_asked_algorithm, parse_given
from launch.settings.run_config import find_algorithm, list_groups, shared_fields
from launch.settings.setting_names import get_flag

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
# The same of the algorithms' own settings.
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
      FlagError: a mistake in the other arguments, or the user's own algorithm cannot be used.
    """
    others = [each for each in arguments if each not in (*HELP_FLAGS, DEBUG)]
    if not set(LISTING) & set(map(get_flag, others)):
        parse_given(others)
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
    flags = [(f"--{name}{format_default(defaults[name])}", text) for name, text in COMMON.items()]
    more = [
        (f"{PROGRAM} --help --algo=fedavg", "the settings of FedAvg, as --epochs=2"),
        (f"{PROGRAM} {FULL_HELP}", "all flags of all algorithms"),
        ("--flagfile=<file>", "reads flags from a file"),
        ("--experiment=<paper>/<name>", "takes a paper's settings"),
        ("--list_experiments", "lists these experiments"),
        (DEBUG, "prints the traceback of an error, too"),
    ]
    return "\n".join(
        (
            f"{PROGRAM} --algo=<algorithm> [--flag=value ...]",
            "Trains an algorithm on a data set, and says where the results are.",
            *("", "Algorithms:"),
            *_align([(row.name, row.summary) for row in ALGORITHMS.values()]),
            *("", "Flags that people use; the default is in brackets:"),
            *_align(flags),
            *("", "More:"),
            *_align(more),
        )
    )


def format_algorithm(spelling: str) -> str:
    """The flags of one algorithm: common ones, then a line for each of its own settings, then the names of all others.

    Raises:
      FlagError: the user's own algorithm cannot be used.
    """
    algorithm = find_algorithm(spelling)
    own = dict(_list_own_groups(algorithm))
    fields = [*(field for group in own.values() for field in group), *shared_fields()]
    common = [field for field in fields if field.name in COMMON_OF_ALGORITHMS or field.name in COMMON]
    lines = [f"{PROGRAM} --algo={spelling} [--flag=value ...]", *_wrap(algorithm.summary, "")]
    lines += [*_describe_defaults(algorithm), "", f"Default values are in brackets. {FULL_HELP} explains every flag."]
    lines += ["", "The most used:", *_list_in_short(common)]
    for title, group in own.items():
        if others := [field for field in group if field not in common]:
            lines += ["", f"{title}:", *_list_in_short(others)]
    lines += ["", "Of every algorithm:"]
    for title, group in list_groups().items():
        if names := [f"--{field.name}" for field in group if field not in common]:
            lines += textwrap.wrap(f"{title}: {', '.join(names)}", WIDTH, initial_indent="  ", subsequent_indent="    ",
                                   break_on_hyphens=False)  # fmt: skip
    return "\n".join(lines)


def _list_in_short(fields: Sequence[FlagField]) -> list[str]:
    """A line a flag: its name, its default, and as much of what it does as the line has room for."""
    names = [f"  --{field.name}{format_default(field)}" for field in fields]
    texts = [COMMON.get(field.name, field.setting.help_text) for field in fields]
    width = min(max(map(len, names)), WIDTH // 2)
    return [
        f"{name:{width}}  {textwrap.shorten(text, WIDTH - max(len(name), width) - 2, placeholder=' ...')}"
        for name, text in zip(names, texts, strict=True)
    ]


def format_all_flags(arguments: Sequence[str] = ()) -> str:
    """All shared flags, then the algorithms' settings, each once; those of one algorithm if the arguments name one.

    Raises:
      FlagError: the user's own algorithm cannot be used.
    """
    lines = [f"{PROGRAM} --algo=<algorithm> [--flag=value ...]", "", "Default values are in brackets."]
    if asked := find_asked_algorithm(arguments):
        algorithm = find_algorithm(asked)
        lines += ["", f"--algo={asked}: {algorithm.summary}", *_describe_defaults(algorithm)]
        lines += [line for _, group in _list_own_groups(algorithm) for field in group for line in _describe(field)]
    for title, group in list_groups().items():
        lines += ["", f"{title}:", *(line for field in group for line in _describe(field))]
    if asked:
        return "\n".join(lines)
    # Those of all algorithms of ours, each in the words of the first that has it; then who has it.
    owners: dict[str, dict[str, FlagField]] = {}
    for row in ALGORITHMS.values():
        for field in row.fields:
            owners.setdefault(field.name, {})[row.name] = field
    lines += [
        "",
        "Settings of algorithms, whose name may stand before them, as in --fedavg_epochs, for this one alone:",
    ]
    for fields in owners.values():
        first, *_ = fields.values()
        defaults = [f"; {name}: {str(field.default) or 'empty'}" for name, field in fields.items()
                    if field.default != first.default]  # fmt: skip
        others = [name for name in ALGORITHMS if name not in fields]
        who = f"Of all but {', '.join(others)}" if len(others) < len(fields) else f"Of {', '.join(fields)}"
        lines += [*_describe(first), *_wrap(f"{'Of all' if not others else who}{''.join(defaults)}.", "      ")]
    return "\n".join(lines)


def _list_own_groups(algorithm: Algorithm) -> Iterator[tuple[str, list[FlagField]]]:
    """(title, flags) of the algorithm's own settings, then of each group of them that has any."""
    config, skipped = algorithm.default_config(), algorithm.fields_without_flag
    is_group = {field.name: "flag_prefix" in field.metadata for field in dataclasses.fields(config)}
    groups = [name for name in is_group if is_group[name]]
    yield algorithm.title, list(iterate_fields(config, {*skipped, *groups}))
    for name in groups:
        heading = f"{algorithm.title}: {name.replace('_', ' ')}"
        yield heading, list(iterate_fields(config, {*skipped, *(is_group.keys() - {name})}))


def _describe_defaults(algorithm: Algorithm) -> list[str]:
    defaults = [f"--{name}={value}" for name, value in algorithm.shared_defaults.items()]
    return _wrap(" ".join(["Its own defaults:", *defaults]), "    ") if defaults else []


def _describe(field: FlagField) -> list[str]:
    expected = field.value_type is not bool and describe_expected(field.setting, field.value_type)
    text = field.setting.help_text + (f" Expected: {expected}." if expected else "")
    return [f"  --{field.name}{format_default(field)}", *_wrap(text, "      ")]


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
