"""Experiments: named settings of papers, each with where its value comes from. They are data, not code.

They lie in `reproductions/<paper>/experiments.toml`, and the searches that chose some of them in `searches.toml`:

    report = "fedsikd"                              # the report that counts the runs, if there is one

    [experiments]                                   # each name, and what it is; {1} is the first choice in braces
    "fedsikd_mnist_alpha{0.1,0.5}" = "FedSiKD on MNIST, alpha {1}: Table V."
    "{fedavg,fl_hc}_mnist" = "{1} on MNIST."

    [short]                                         # other names of some, as "<paper>/mnist"
    mnist = "fedsikd_mnist_alpha0.1"

    [words]                                         # how the texts above say a part of a name
    fl_hc = "FL+HC"

    [printed]                                       # what the paper prints for them; a * stands for anything
    "*_alpha0.1" = "test accuracy 90.03 %."

    [[settings]]                                    # flags of one origin
    printed = "section IV"                          # or: code = "<repository>, commit <hash>", or: ours = "<why>"
    note = "What else is to be said."
    of = "*_mnist_*"                                # whose they are; all experiments' without it
    num_clients = 40
    dirichlet_alpha = { "*_alpha0.1*" = 0.1, "*_alpha0.5*" = 0.5 }

What stands further down overrides what stands above; last come the settings of a `chosen.toml` beside the file, which a
program has written. A setting of algorithms belongs to the experiments whose algorithm has it, one that begins with the
name of an algorithm, as `fedavg_epochs`, to those with that algorithm alone.
Imports no TensorFlow, and reads a file when it is asked for.
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
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from launch.settings.algorithms import ALGORITHMS, Algorithm
from launch.settings.errors import FlagError
from launch.settings.flagfiles import replace_directives
from launch.settings.setting_names import find_owner, read_name

REPRODUCTIONS = pathlib.Path(__file__).parents[2] / "reproductions"  # a folder a paper; of a checkout alone
EXPERIMENTS, SEARCHES = "experiments", "searches"  # the files, and the tables in them that have the names
CHOSEN = "chosen.toml"  # further settings of the experiments, which a program has written
NAMES = {EXPERIMENTS: "experiment", SEARCHES: "search"}
EVERYTHING = {EXPERIMENTS: "; launch.train --list_experiments shows all", SEARCHES: ""}
EXPECTED = "<paper>/<name>; --list_experiments lists them"
WIDTH = 120
NOTE, OF = "note", "of"
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


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Named settings.

    Attributes:
      paper: the folder that they lie in.
      name: unlike that of any other experiment.
      about: what it is, for a reader.
      printed: what the paper prints for it; "" where that is not known.
      settings: one a flag.
      report: what `launch.report --tables` calls the report that counts its runs; "" if none does.
      short: another name inside its paper; "" if it has none.
    """

    paper: str
    name: str
    about: str
    printed: str
    settings: tuple[Provenance, ...]
    report: str = ""
    short: str = ""

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


def has_reproductions() -> bool:
    """Whether the papers lie beside the tool, as they do in a checkout."""
    return (REPRODUCTIONS / "__init__.py").is_file()


def import_reproduction(name: str) -> types.ModuleType:
    """A module of the papers' folder, which is found by its path. Raises FlagError where there is no such folder."""
    if not has_reproductions():
        raise FlagError(f"no folder {REPRODUCTIONS.name}/ beside the tool: papers are in a checkout of it alone")
    if REPRODUCTIONS.name not in sys.modules:
        where = {"submodule_search_locations": [str(REPRODUCTIONS)]}
        spec = importlib.util.spec_from_file_location(REPRODUCTIONS.name, REPRODUCTIONS / "__init__.py", **where)
        sys.modules[REPRODUCTIONS.name] = importlib.util.module_from_spec(spec)
    return importlib.import_module(f"{REPRODUCTIONS.name}.{name}")


def list_experiments() -> dict[str, Experiment]:
    """{name: experiment} of all papers, by paper."""
    return _list_all(EXPERIMENTS, REPRODUCTIONS)


def list_searches() -> dict[str, Experiment]:
    """{name: the flags of `launch.tune`} of the searches of all papers, by paper."""
    return _list_all(SEARCHES, REPRODUCTIONS)


def find_experiment(name: str) -> Experiment | None:
    """The experiment of that name, with or without its paper before it; None if there is none."""
    return _find(EXPERIMENTS, name)


def get_experiment(name: str) -> Experiment:
    """As `find_experiment`. Raises FlagError, with what was probably meant, if there is none."""
    return _get(EXPERIMENTS, name)


def get_search(name: str) -> Experiment:
    """The search of that name, with or without its paper before it. Raises FlagError if there is none."""
    return _get(SEARCHES, name)


def match_experiments(pattern: str) -> list[Experiment]:
    """Those whose name, with or without the paper, is like a pattern such as 'fedsikd/*_mnist_*'.

    Raises:
      FlagError: there are none.
    """
    everything = list_experiments().values()
    found = [each for each in everything if _is_like(each, pattern)]
    return found or [get_experiment(pattern)]


def _is_like(experiment: Experiment, pattern: str) -> bool:
    return fnmatch.fnmatchcase(experiment.full_name, pattern) or fnmatch.fnmatchcase(experiment.name, pattern)


def format_list(text: str = "") -> str:
    """A line an experiment, of those with a name in which the text occurs, or that are like it where it has a star.

    Raises:
      FlagError: there are none.
    """
    found = [
        each for each in list_experiments().values() if text in each.full_name or ("*" in text and _is_like(each, text))
    ]
    found = found or match_experiments(text)
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


def format_heading(setting: Provenance) -> str:
    """Where a setting comes from, as a sentence in a flagfile."""
    head = {
        Origin.PRINTED: f"Printed ({setting.source}).",
        Origin.AUTHORS_CODE: f"From the authors' code ({setting.source}).",
        Origin.OURS: f"Ours: {setting.source}.",
    }[setting.origin]
    return f"{head} {setting.note}".rstrip()


def format_flagfile(experiment: Experiment) -> str:
    """The text of a flagfile with the same settings, each below a comment on where it comes from."""
    printed = [f"Printed: {experiment.printed}"] if experiment.printed else []
    blocks = [[line for text in (experiment.about, *printed) for line in wrap_comment(text)]]
    by_heading: dict[str, list[str]] = {}
    for setting in experiment.settings:
        by_heading.setdefault(format_heading(setting), []).append(f"--{setting.flag}={setting.value}")
    blocks += [[*wrap_comment(heading), *flags] for heading, flags in by_heading.items()]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


@functools.cache
def _list_all(kind: str, folder: pathlib.Path) -> dict[str, Experiment]:
    everything: dict[str, Experiment] = {}
    for path in sorted(folder.glob(f"*/{kind}.toml")):
        for each in _read(kind, path).values():
            if each.name in everything:
                raise FlagError(f"{path}: {each.name} is in {everything[each.name].paper}, too; rename one")
            everything[each.name] = each
    return everything


def _find(kind: str, name: str) -> Experiment | None:
    paper, _, own = name.rpartition("/")
    if not paper:
        return _list_all(kind, REPRODUCTIONS).get(own)
    path = REPRODUCTIONS / paper / f"{kind}.toml"
    known = _read(kind, path) if "/" not in paper and path.is_file() else {}
    return known.get(own) or next((each for each in known.values() if own and each.short == own), None)


def _get(kind: str, name: str) -> Experiment:
    found = _find(kind, name)
    if found is not None:
        return found
    everything, paper = _list_all(kind, REPRODUCTIONS), name.rpartition("/")[0]
    if own := {key: each for key, each in everything.items() if each.paper == paper}:
        everything = own
    spelled = {each.full_name: each.full_name for each in everything.values()}
    spelled |= {each.name: each.full_name for each in everything.values()}
    spelled |= {other: other for each in everything.values() if each.short for other in [f"{each.paper}/{each.short}"]}
    near = difflib.get_close_matches(name, list(spelled), n=1, cutoff=0.6)
    hint = f"; did you mean {spelled[near[0]]}?" if near else ""
    raise FlagError(f"{name}: no such {NAMES[kind]}{hint}{EVERYTHING[kind]}")


@functools.cache
def _read(kind: str, path: pathlib.Path) -> dict[str, Experiment]:
    """{name: experiment} of a file, in its order. Raises FlagError where the file says what cannot be."""
    import tomllib  # here, since `--help` needs none

    def load(path: pathlib.Path) -> dict[str, Any]:
        try:
            return tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise FlagError(f"{path}: cannot be read ({error})") from None

    content, chosen = load(path), path.with_name(CHOSEN)
    words = content.get("words", {})
    about = dict(pair for name, text in content.get(kind, {}).items() for pair in _expand(name, text, words))
    printed = content.get("printed", {})
    rules = [_Rule(path, kind, rule) for rule in content.get("settings", ())]
    if kind == EXPERIMENTS and chosen.is_file():
        rules += [_Rule(chosen, kind, rule) for rule in load(chosen).get("settings", ())]
    short = {full: other for other, full in content.get("short", {}).items()}
    if unknown := sorted(short.keys() - about.keys()):
        raise FlagError(f"{path}: [short] names {unknown[0]}, which is not in [{kind}]")
    experiments = {}
    for name, text in about.items():
        settings = _collect(name, rules)
        told = _choose(printed, name) if printed else None
        experiments[name] = Experiment(
            path.parent.name, name, text, told or "", tuple(settings), content.get("report", ""), short.get(name, "")
        )
    used = {pattern for rule in rules for pattern in rule.patterns} | printed.keys()
    if idle := [pattern for pattern in used if not any(map(_compile(pattern).match, about))]:
        raise FlagError(f"{path}: {idle[0]} is like no name in [{kind}]")
    return experiments


class _Rule:
    """A table of `[[settings]]`: flags of one origin, and the patterns of the names that have them."""

    def __init__(self, path: pathlib.Path, kind: str, content: Mapping[str, Any]):
        origins = [origin for origin in Origin if origin in content]
        if len(origins) != (kind == EXPERIMENTS):
            given = f"one of {', '.join(Origin)}" if kind == EXPERIMENTS else "flags alone"
            raise FlagError(f"{path}: expected {given} in each of [[settings]], not {dict(content)!r:.80}")
        self.origin = origins[0] if origins else None
        self.source = content[self.origin] if origins else ""
        self.note = content.get(NOTE, "")
        of = content.get(OF, ["*"])
        self._of = [of] if isinstance(of, str) else of
        self._values = {flag: value for flag, value in content.items() if flag not in (*Origin, NOTE, OF)}
        by_name = [each for each in self._values.values() if isinstance(each, dict)]
        self.patterns = {*self._of, *(pattern for each in by_name for pattern in each)}

    def iterate(self, name: str) -> Iterator[Provenance]:
        """The flags that an experiment has by it."""
        if not any(_compile(pattern).match(name) for pattern in self._of):
            return
        for flag, value in self._values.items():
            chosen = _choose(value, name) if isinstance(value, dict) else value
            if chosen is not None:
                yield Provenance(flag, _format_value(chosen), self.origin, self.source, self.note)


def _collect(name: str, rules: Sequence[_Rule]) -> list[Provenance]:
    """The settings of an experiment, one a flag, without those of other algorithms; its algorithm is first."""
    given = [each for rule in rules for each in rule.iterate(name)]
    spelling = next((each.value for each in reversed(given) if each.flag == "algo"), None)
    if spelling is None:
        return list({each.flag: each for each in given}.values())
    algorithm, found = ALGORITHMS[spelling], {}
    for each in given:
        if algorithm in _find_algorithms(each.flag):
            flag = read_name(each.flag, algorithm)
            found[flag] = each._replace(flag=flag)
    return sorted(found.values(), key=lambda each: each.flag != "algo")


@functools.cache
def _find_algorithms(name: str) -> Collection[Algorithm]:
    """Those whose setting a name is in a file; all where it is of every run, or unknown."""
    rows = ALGORITHMS.values()
    if owner := find_owner(name, rows):
        return (owner,)
    return tuple(row for row in rows if name in row.names) or tuple(rows)


def _choose(by_pattern: Mapping[str, Any], name: str) -> Any:
    """What the last pattern says that a name is like; None if none is."""
    return next((by_pattern[each] for each in reversed(by_pattern) if _compile(each).match(name)), None)


def _format_value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_BRACES = re.compile(r"\{([^{}]*)\}")


@functools.cache
def _compile(pattern: str) -> re.Pattern:
    """A pattern of names, in which * is anything and {a,b} is a or b."""
    parts = _BRACES.split(pattern)  # what is between braces has the odd places
    choices = ("|".join(map(re.escape, part.split(","))) for part in parts[1::2])
    written = [".*".join(map(re.escape, part.split("*"))) for part in parts[::2]]
    return re.compile(
        "".join(part + f"(?:{choice})" for part, choice in zip(written, choices, strict=False)) + written[-1] + r"\Z"
    )


def _expand(name: str, text: str, words: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The names that one with choices in braces stands for, each with its text; a choice may be {part=words}."""
    choices = _BRACES.search(name)
    if choices is None:
        yield name, text
        return
    place = len(_BRACES.findall(name))  # the last is filled in first
    *_, last = _BRACES.finditer(name)
    for choice in last[1].split(","):
        part, _, own = choice.partition("=")
        filled = text.replace(f"{{{place}}}", own or words.get(part, part))
        yield from _expand(name[: last.start()] + part + name[last.end() :], filled, words)
