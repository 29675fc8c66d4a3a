"""Where each setting of a flagfile comes from, read from its headings. Imports no TensorFlow.

The comments up to the first empty line are the head of a flagfile: what it is. Each comment below the head is a
heading, and the flags up to the next one belong to it. A heading begins in one of three ways, and more sentences may
follow:

    # Printed (section V-A1).
    # From the authors' code (github.com/SimuEnv/FedSiKD, commit 7e47aa4).
    # Ours: the paper prints no optimizer.

A heading that says "tuned" names the grid or search space, the seeds, and where the score of every trial is kept
(`docs/results/tuning/<name>.csv`), or says that the trials were not kept.
"""

import enum
import itertools
import pathlib
import re
import textwrap
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from launch.papers.engine.markdown import Table
from launch.runs.run_records import RunRecord
from launch.settings.errors import FlagError

_WIDTH = 120


def wrap_comment(text: str) -> list[str]:
    """The lines of a comment in a flagfile."""
    lines = textwrap.wrap(text, _WIDTH - 2, break_long_words=False, break_on_hyphens=False)
    return [f"# {line}" for line in lines]


class Origin(enum.Enum):
    """Who chose a setting."""

    PRINTED = "printed"
    AUTHORS_CODE = "authors' code"
    OURS = "ours"


class Provenance(NamedTuple):
    """A flag of a flagfile and where its value comes from.

    Attributes:
      flag: its name.
      value: as in the file; "true" for a flag without a value.
      origin: who chose it.
      source: the section, the repository and commit, or our reason; the heading's first sentence.
      note: the sentences after it.
    """

    flag: str
    value: str
    origin: Origin
    source: str
    note: str


HEADINGS = {
    Origin.PRINTED: re.compile(r"Printed \((?P<source>sections? [^()]+)\)\.(?: (?P<note>.+))?"),
    Origin.AUTHORS_CODE: re.compile(
        r"From the authors' code \((?P<source>[^\s,()]+/[^\s,()]+, commit [0-9a-f]{7,40})\)\.(?: (?P<note>.+))?"
    ),
    Origin.OURS: re.compile(r"Ours: (?P<source>.+?)\.(?: (?P<note>.+))?"),
}
EXPECTED = (
    "'# Printed (section <number>).', '# From the authors' code (<repository>, commit <hash>).' or '# Ours: <why>.'"
)
TRIALS = re.compile(r"docs/results/[\w./-]+\.csv")
NOT_KEPT = "trials were not kept"
LEAST_LETTERS = 4  # of a pattern of names, to be read with ease
COLUMNS = ("setting", "value", "origin", "source")


def read_provenance(flagfile: pathlib.Path) -> list[Provenance]:
    """The flags of a flagfile in its order, each with its origin.

    Raises:
      FlagError: a flag stands under no heading, or a comment below the head is no proper one; names file and line.
    """
    found, heading = [], None
    for number, lines in _split_into_blocks(flagfile.read_text(encoding="utf-8")):
        place = f"{flagfile}:{number}"
        if not lines[0].startswith("#"):
            if heading is None:
                raise FlagError(f"{place}: {lines[0]} stands under no heading; expected {EXPECTED} above it")
            found.append(Provenance(*_split_flag(lines[0], place), *heading))
        elif number > 1:
            heading = _read_heading(" ".join(line.lstrip("# ") for line in lines), place)
    return found


def _split_into_blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """Runs of comments and single flags, each with the number of its first line; an empty line ends a run."""
    comments: list[str] = []
    for number, line in enumerate(map(str.strip, text.splitlines()), start=1):
        if line.startswith("#"):
            comments.append(line)
            continue
        if comments:
            yield number - len(comments), comments
            comments = []
        if line:
            yield number, [line]
    if comments:
        yield len(text.splitlines()) - len(comments) + 1, comments


def _split_flag(line: str, place: str) -> tuple[str, str]:
    match = re.fullmatch(r"--(\w+)(?:=(.*))?", line)
    if match is None:
        raise FlagError(f"{place}: {line!r}; expected a comment or --flag=value")
    return match[1], "true" if match[2] is None else match[2]


def _read_heading(text: str, place: str) -> tuple[Origin, str, str]:
    for origin, form in HEADINGS.items():
        match = form.fullmatch(text)
        if match:
            _check_tuned(text, place)
            return origin, match["source"], match["note"] or ""
    raise FlagError(f"{place}: a comment below the head that is no heading: {text[:60]!r}; expected {EXPECTED}")


def _check_tuned(text: str, place: str) -> None:
    """Refuses a tuned setting without its trials."""
    if not re.search(r"(?<!not )\btuned\b", text):
        return
    missing = [
        what
        for what, is_there in {
            "the grid or search space": re.search(r"\bgrid\b|\bsearch space\b", text),
            "the seeds": re.search(r"\bseeds?\b", text),
            f"the CSV of its trials below docs/results/, or '{NOT_KEPT}'": NOT_KEPT in text or list_trials(text),
        }.items()
        if not is_there
    ]
    if missing:
        raise FlagError(f"{place}: a heading that says 'tuned' does not name {'; '.join(missing)}")


def list_trials(text: str) -> list[str]:
    """The CSV files of trials that a heading names, relative to the root of the repository."""
    return TRIALS.findall(text)


def tabulate_provenance(flagfiles: Sequence[pathlib.Path]) -> Table:
    """Setting, value, origin and source of every flag in the flagfiles of a paper, printed ones first.

    Equal settings of equal source share a row. A value names its experiments unless all have it, or all those of the
    algorithm that the flag is named after.

    Raises:
      FlagError: see `read_provenance`.
    """
    read = {path.stem: read_provenance(path) for path in flagfiles}
    algos = {stem: next((each.value for each in found if each.flag == "algo"), "") for stem, found in read.items()}
    rows: dict[tuple[Origin, str, str], dict[str, set[str]]] = {}
    for stem, found in read.items():
        for flag, value, origin, source, _ in found:
            rows.setdefault((origin, flag, source), {}).setdefault(value, set()).add(stem)
    order = {flag: place for place, flag in enumerate(dict.fromkeys(flag for _, flag, _ in rows))}
    patterns = _find_patterns(read)
    lines = []
    for origin, flag, source in sorted(rows, key=lambda key: (list(Origin).index(key[0]), order[key[1]], key[2])):
        able = {stem for stem, algo in algos.items() if algo and flag.startswith(f"{algo}_")} or set(read)
        values = [
            value if stems == able else f"{value} ({_name_experiments(stems, able, patterns)})"
            for value, stems in rows[origin, flag, source].items()
        ]
        lines.append([flag, ", ".join(values), origin.value, source])
    return Table(COLUMNS, lines)


def describe_revisions(runs: Sequence[RunRecord]) -> str:
    """A paragraph that says with which revisions of the code the runs were made; "" without runs."""
    revisions = Counter(run.revision or "unknown" for run in runs)
    ordered = sorted(revisions.items(), key=lambda item: (-item[1], item[0]))  # not by the order in which runs are read
    shown = [f"{_shorten_revision(name)} ({number})" for name, number in ordered]
    dirty = " *Dirty*: with changes that were not committed." if any("-dirty" in name for name in revisions) else ""
    return f"Runs by revision of the code: {', '.join(shown)}.{dirty}" if shown else ""


def _shorten_revision(name: str) -> str:
    commit, dash, rest = name.partition("-")
    return f"{commit[:7]}{dash}{rest}"


def _find_patterns(stems: Collection[str]) -> dict[str, frozenset[str]]:
    """{pattern: the stems that match}, of whole stems and of parts of stems with stars around or between them."""
    patterns = {stem: frozenset([stem]) for stem in stems}
    for stem in stems:
        ends = re.finditer("_+|(?<=[a-z])(?=[0-9])", stem)
        borders = {0, len(stem), *(place for match in ends for place in match.span())}
        for start, end in itertools.combinations(sorted(borders), 2):
            before, part, after = stem[:start], stem[start:end], stem[end:]
            if len(before + after) >= LEAST_LETTERS and not after[:1].isdigit():
                patterns[f"{before}*{after}"] = frozenset(
                    each
                    for each in stems
                    if len(each) >= len(before + after) and each.startswith(before) and each.endswith(after)
                )
            if len(part) >= LEAST_LETTERS and not part[0].isdigit():
                patterns[f"*{part}*"] = frozenset(each for each in stems if part in each)
    return patterns


def _name_experiments(chosen: set[str], able: set[str], patterns: Mapping[str, Collection[str]]) -> str:
    """Patterns that match the chosen ones among those that are able to have a flag, or "all but" the others."""
    named, left_out = (_cover(names, able, patterns) for names in (chosen, able - chosen))
    is_shorter = 0 < len(left_out) < len(named)
    return ("all but " if is_shorter else "") + ", ".join(f"`{name}`" for name in (left_out if is_shorter else named))


def _cover(names: set[str], able: set[str], patterns: Mapping[str, Collection[str]]) -> list[str]:
    """Few patterns that match these names and no other; each takes as many of the remaining as it can."""
    matched = {pattern: able.intersection(stems) for pattern, stems in patterns.items()}
    fitting = {
        pattern: stems
        for pattern, stems in matched.items()
        if stems <= names and (len(stems) > 1 or pattern in stems)  # a single one is named in full
    }
    found, remaining = [], set(names)
    while remaining:
        best = min(fitting, key=lambda pattern: (-len(fitting[pattern] & remaining), len(pattern), pattern))
        found.append(best)
        remaining -= fitting[best]
    return sorted(found)
