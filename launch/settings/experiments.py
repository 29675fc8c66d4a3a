"""Experiments: named settings of papers, each with where its value comes from.

They are rows of Python files, `EXPERIMENTS` of `reproductions/<paper>/experiments.py`, and the searches that chose some
of them `SEARCHES` of the `searches.py` beside it:

    COMMON = printed("section IV", dataset="mnist", num_clients=40)
    EXPERIMENTS = [
        make_experiment(
            f"fedsikd_mnist_alpha{alpha}",
            f"FedSiKD on MNIST, alpha {alpha}: Table V.",      # what it is, for a reader
            COMMON,                                             # further settings override those before them
            printed("section V", algo="fedsikd", dirichlet_alpha=alpha),
            from_code("github.com/a/b, commit 0123456", teacher_epochs=10),
            ours("the paper prints no learning rate", student_learning_rate=0.001),
            printed="test accuracy 90.03 %.",                   # what the paper prints for it
        )
        for alpha in (0.1, 0.5)
    ]

A file runs when somebody types a name in it, as in `--experiment=<paper>/<name>`, or asks for a list; a name that a run
has kept runs nothing. `REPORT` is the report that counts the runs, if it is not called like the paper.
Imports no TensorFlow.
"""

import dataclasses
import difflib
import enum
import fnmatch
import functools
import importlib.util
import pathlib
import re
import sys
import textwrap
import types
from collections.abc import Sequence
from typing import Any, NamedTuple

from launch.settings.errors import FlagError
from launch.settings.flag_parsing import replace_directives

REPRODUCTIONS = pathlib.Path(__file__).parents[2] / "reproductions"  # a folder a paper; of a checkout alone
NO_PAPERS = f"no folder {REPRODUCTIONS.name}/ beside the tool; papers lie in a checkout of it, not in a wheel"
EXPERIMENTS, SEARCHES = "experiments", "searches"  # the modules of a paper, and in capitals the rows in them
NAMES = {EXPERIMENTS: "experiment", SEARCHES: "search"}
EVERYTHING = {EXPERIMENTS: "; launch.train --list_experiments shows all", SEARCHES: ""}
EXPECTED = "<paper>/<name>; --list_experiments lists them"
WIDTH = 120
NOT_KEPT = "trials were not kept"  # what is said of a search whose table of trials does not lie in docs/results/
_TRIALS = re.compile(r"docs/results/[\w./-]+\.csv")


class Origin(enum.StrEnum):
    """Who chose a setting; the value is the key in the file."""

    PRINTED = "printed"
    AUTHORS_CODE = "code"
    OURS = "ours"

    @property
    def words(self) -> str:
        """As a reader meets it."""
        return "authors' code" if self is Origin.AUTHORS_CODE else self.value


# Where a setting of a flagfile comes from.
HEADINGS: dict[Origin | None, str] = {
    Origin.PRINTED: "Printed ({}).",
    Origin.AUTHORS_CODE: "From the authors' code ({}).",
    Origin.OURS: "Ours: {}.",
}


class Provenance(NamedTuple):
    """A setting and where its value comes from.

    Attributes:
      flag: its name.
      value: as on a command line.
      origin: who chose it; None in a search, which says it in one text.
      source: the section, the repository and commit, or our reason.
      note: what else is to be said.
    """

    flag: str
    value: str
    origin: Origin | None
    source: str
    note: str


Block = tuple[Provenance, ...]  # settings of one origin


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Named settings.

    Attributes:
      name: unlike that of any other experiment.
      about: what it is, for a reader.
      settings: one a flag, the algorithm first.
      printed: what the paper prints for it; "" where that is not known.
      short: another name inside its paper; "" if it has none.
      paper: the folder that it lies in.
      report: what `launch.report --tables` calls the report that counts its runs.
    """

    name: str
    about: str
    settings: Block
    printed: str = ""
    short: str = ""
    paper: str = ""
    report: str = ""

    @property
    def full_name(self) -> str:
        return f"{self.paper}/{self.name}"

    @property
    def flags(self) -> dict[str, str]:
        """{flag: value as on a command line}."""
        return {each.flag: each.value for each in self.settings}

    @property
    def arguments(self) -> list[str]:
        """What it stands for on a command line."""
        return [f"--{each.flag}={each.value}" for each in self.settings]


def import_reproduction(name: str) -> types.ModuleType:
    """A module of the papers' folder, which is found by its path. Raises FlagError where there is no such folder."""
    if not (REPRODUCTIONS / "__init__.py").is_file():
        raise FlagError(NO_PAPERS)
    # By its path: a folder of this name where the user is would be found first by an import.
    if REPRODUCTIONS.name not in sys.modules:
        path = REPRODUCTIONS / "__init__.py"
        spec = importlib.util.spec_from_file_location(
            REPRODUCTIONS.name, path, submodule_search_locations=[str(REPRODUCTIONS)]
        )
        assert spec is not None  # a file that ends in .py has one
        sys.modules[REPRODUCTIONS.name] = importlib.util.module_from_spec(spec)
    return importlib.import_module(f"{REPRODUCTIONS.name}.{name}")


def _make_block(origin: Origin | None, source: str, note: str = "", /, **settings: Any) -> Block:
    """Settings of one origin.

    Args:
      origin: who chose them; bound by the three names below.
      source: the section of the paper, the repository and commit, or our reason.
      note: what else is to be said.
      settings: {flag: value}.
    """
    spelled = {flag: str(value).lower() if isinstance(value, bool) else str(value) for flag, value in settings.items()}
    return tuple(Provenance(flag, value, origin, source, note) for flag, value in spelled.items())


# What a paper prints, the authors' published code, our own choice: `_make_block` with each origin in its order.
printed, from_code, ours = (functools.partial(_make_block, origin) for origin in Origin)


def make_experiment(name: str, about: str, /, *blocks: Block, printed: str = "", short: str = "") -> Experiment:
    """A row of a paper: of settings that stand in several blocks the last one counts."""
    settings = {each.flag: each for block in blocks for each in block}
    return Experiment(
        name, about, tuple(sorted(settings.values(), key=lambda each: each.flag != "algo")), printed, short
    )


def make_search(name: str, about: str, /, **flags: Any) -> Experiment:
    """A row of a paper's searches: flags of `launch.tune`."""
    return Experiment(name, about, _make_block(None, "", **flags))


def list_experiments() -> dict[str, Experiment]:
    """{name: experiment} of all papers, by paper."""
    return _list_all(EXPERIMENTS, REPRODUCTIONS)


def list_searches() -> dict[str, Experiment]:
    """{name: the flags of `launch.tune`} of the searches of all papers, by paper."""
    return _list_all(SEARCHES, REPRODUCTIONS)


def get_search(name: str) -> Experiment:
    """The search of that name, with or without its paper before it. Raises FlagError if there is none."""
    return get_experiment(name, SEARCHES)


def match_experiments(pattern: str) -> list[Experiment]:
    """Those whose name, with or without the paper, is like a pattern such as 'fedsikd/*_mnist_*'.

    Raises:
      FlagError: there are none.
    """
    everything = list_experiments().values()
    found = [each for each in everything if any(fnmatch.fnmatchcase(n, pattern) for n in (each.full_name, each.name))]
    return found or [get_experiment(pattern)]


def format_list(text: str = "") -> str:
    """A line an experiment, of those with a name in which the text occurs, or that are like it where it has a star.

    Raises:
      FlagError: there are none.
    """
    found = [each for each in list_experiments().values() if text in each.full_name] or match_experiments(text)
    shown = [each.full_name + (f" or {each.paper}/{each.short}" if each.short else "") for each in found]
    return "\n".join(f"{name}  {each.about}" for name, each in zip(shown, found, strict=True))


def expand_experiments(argv: Sequence[str]) -> list[str]:
    """The arguments, with the flags in the place of each `--experiment=<name>`; what stands after a lone `--` stays.

    Raises:
      FlagError: there is no such experiment.
    """
    return replace_directives(argv, "experiment", _list_arguments, EXPECTED)


def _list_arguments(name: str) -> list[str]:
    if not name:
        raise FlagError(f"--experiment: no value, expected --experiment={EXPECTED}")
    try:
        return get_experiment(name).arguments
    except FlagError as error:
        raise FlagError(f"--experiment={error}") from None


def wrap_comment(text: str) -> list[str]:
    """The lines of a comment in a flagfile."""
    lines = textwrap.wrap(text, WIDTH - 2, break_long_words=False, break_on_hyphens=False)
    return [f"# {line}" for line in lines]


def list_trials(text: str) -> list[str]:
    """The tables of trials that a text names, relative to the root of the repository."""
    return _TRIALS.findall(text)


def format_flagfile(experiment: Experiment) -> str:
    """The text of a flagfile with the same settings, each below a comment on where it comes from."""
    printed = [f"Printed: {experiment.printed}"] if experiment.printed else []
    blocks = [[line for text in (experiment.about, *printed) for line in wrap_comment(text)]]
    by_heading: dict[str, list[str]] = {}
    for setting in experiment.settings:
        heading = f"{HEADINGS[setting.origin].format(setting.source)} {setting.note}".rstrip()
        by_heading.setdefault(heading, []).append(f"--{setting.flag}={setting.value}")
    blocks += [[*wrap_comment(heading), *flags] for heading, flags in by_heading.items()]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


@functools.cache
def _list_all(kind: str, folder: pathlib.Path) -> dict[str, Experiment]:
    # The cache is by folder, in whose place tests put another.
    everything: dict[str, Experiment] = {}
    for path in sorted(folder.glob(f"*/{kind}.py")):
        for each in _read(kind, folder, path.parent.name).values():
            if each.name in everything:
                raise FlagError(f"{path}: {each.name} is in {everything[each.name].paper}, too; rename one")
            everything[each.name] = each
    return everything


def find_experiment(name: str, kind: str = EXPERIMENTS) -> Experiment | None:
    """The experiment, or search, of that name, with or without its paper before it; None if there is none."""
    paper, _, own = name.rpartition("/")
    if not paper:
        return _list_all(kind, REPRODUCTIONS).get(own)
    has_any = paper.isidentifier() and (REPRODUCTIONS / paper / f"{kind}.py").is_file()
    known = _read(kind, REPRODUCTIONS, paper) if has_any else {}
    return known.get(own) or next((each for each in known.values() if own and each.short == own), None)


def get_experiment(name: str, kind: str = EXPERIMENTS) -> Experiment:
    """As `find_experiment`. Raises FlagError, with what was probably meant, if there is none."""
    found = find_experiment(name, kind)
    if found is not None:
        return found
    if not (REPRODUCTIONS / "__init__.py").is_file():
        raise FlagError(f"{name}: {NO_PAPERS}")
    everything, paper = _list_all(kind, REPRODUCTIONS), name.rpartition("/")[0]
    if own := {key: each for key, each in everything.items() if each.paper == paper}:
        everything = own
    spelled = {each.full_name: each.full_name for each in everything.values()}
    spelled |= {each.name: each.full_name for each in everything.values()}
    spelled |= {other: other for each in everything.values() if each.short for other in [f"{each.paper}/{each.short}"]}
    near = difflib.get_close_matches(name, list(spelled), n=1, cutoff=0.6)
    hint = f"; did you mean {spelled[near[0]]}?" if near else ""
    raise FlagError(f"{name}: no such {NAMES[kind]}{hint or EVERYTHING[kind]}")


@functools.cache
def _read(kind: str, folder: pathlib.Path, paper: str) -> dict[str, Experiment]:
    """{name: row} of a paper's module, in its order."""
    module = import_reproduction(f"{paper}.{kind}")
    report = getattr(module, "REPORT", paper)
    rows = (dataclasses.replace(each, paper=paper, report=report) for each in getattr(module, kind.upper()))
    return {each.name: each for each in rows}
