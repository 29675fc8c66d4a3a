"""A paper: everything that the commands need to know of its report, and where each of its settings comes from."""

import dataclasses
import functools
import itertools
import pathlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from launch.runs import columns
from launch.runs.run_archive import Kept
from launch.runs.run_records import RunRecord, read_rows
from launch.settings.algorithms import ALGORITHMS
from launch.settings.experiments import Experiment, Origin, list_experiments
from reproductions.engine.claim_rows import Claim
from reproductions.engine.collection import FOLDER, PRINTED, TUNED, read_toml
from reproductions.engine.tables import Report, Table

LEAST_LETTERS = 4  # of a pattern of names, to be read with ease
COLUMNS = ("setting", "value", "origin", "source")


def tabulate_provenance(experiments: Sequence[Experiment]) -> Table:
    """Setting, value, origin and source of every flag of the experiments of a paper, printed ones first.

    Equal settings of equal source share a row. A setting of an algorithm has the algorithm's name before it, since
    another's may differ. A value names its experiments unless all have it, or all those of this algorithm.
    """
    read = {each.name: each.settings for each in experiments}
    algos = {stem: next((each.value for each in found if each.flag == "algo"), "") for stem, found in read.items()}
    rows: dict[tuple[Origin, str, str], dict[str, set[str]]] = {}
    for stem, found in read.items():
        for flag, value, origin, source, _ in found:
            name = f"{algos[stem]}_{flag}" if algos[stem] and flag in ALGORITHMS[algos[stem]].names else flag
            rows.setdefault((origin, name, source), {}).setdefault(value, set()).add(stem)
    order = {flag: place for place, flag in enumerate(dict.fromkeys(flag for _, flag, _ in rows))}
    patterns = _find_patterns(read)
    lines = []
    for origin, flag, source in sorted(rows, key=lambda key: (list(Origin).index(key[0]), order[key[1]], key[2])):
        able = {stem for stem, algo in algos.items() if algo and flag.startswith(f"{algo}_")} or set(read)
        values = [
            value if stems == able else f"{value} ({_name_experiments(stems, able, patterns)})"
            for value, stems in rows[origin, flag, source].items()
        ]
        lines.append([flag, ", ".join(values), origin.words, source])
    return Table(COLUMNS, lines)


def describe_revisions(runs: Sequence[RunRecord]) -> str:
    """A paragraph that says with which revisions of the code the runs were made; "" without runs."""
    revisions = Counter(re.sub(r"^(\w{7})\w*", r"\1", run.revision) or "unknown" for run in runs)
    # Equal counts must not hang on the order in which runs are read.
    ordered = sorted(revisions.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{name} ({number})" for name, number in ordered]
    dirty = " *Dirty*: with changes that were not committed." if any("-dirty" in name for name in revisions) else ""
    return f"Runs by revision of the code: {', '.join(shown)}.{dirty}" if shown else ""


def _find_patterns(stems: Collection[str]) -> dict[frozenset[str], str]:
    """{the stems that match: pattern}, of whole stems and of parts of stems with stars around or between them.

    Of patterns that match the same stems, the one that is shortest or comes first; a single stem is named in full.
    """
    ends, parts = set(), set()
    for stem in stems:
        found = re.finditer("_+|(?<=[a-z])(?=[0-9])", stem)
        borders = {0, len(stem), *(place for match in found for place in match.span())}
        for start, end in itertools.combinations(sorted(borders), 2):
            before, part, after = stem[:start], stem[start:end], stem[end:]
            if len(before + after) >= LEAST_LETTERS and not after[:1].isdigit():
                ends.add((before, after))
            if len(part) >= LEAST_LETTERS and not part[0].isdigit():
                parts.add(part)
    patterns = {f"*{part}*": frozenset(stem for stem in stems if part in stem) for part in parts}
    for before, after in ends:
        alike = (stem for stem in stems if stem.startswith(before) and stem.endswith(after))
        patterns[f"{before}*{after}"] = frozenset(stem for stem in alike if len(stem) >= len(before + after))
    shortest = {patterns[each]: each for each in sorted(patterns, key=_find_order, reverse=True)}
    return shortest | {frozenset([stem]): stem for stem in stems}


def _find_order(pattern: str) -> tuple[int, str]:
    return len(pattern), pattern


def _name_experiments(chosen: set[str], able: set[str], patterns: Mapping[frozenset[str], str]) -> str:
    """Patterns that match the chosen ones among those that are able to have a flag, or "all but" the others."""
    named, left_out = (_cover(names, able, patterns) for names in (chosen, able - chosen))
    is_shorter = 0 < len(left_out) < len(named)
    return ("all but " if is_shorter else "") + ", ".join(f"`{name}`" for name in (left_out if is_shorter else named))


def _cover(names: set[str], able: set[str], patterns: Mapping[frozenset[str], str]) -> list[str]:
    """Few patterns that match these names and no other; each takes as many of the remaining as it can."""
    left_out, fitting = able - names, {}
    for stems, pattern in patterns.items():
        matched = stems & names
        if matched and stems.isdisjoint(left_out) and (len(matched) > 1 or len(stems) == 1):
            fitting[pattern] = matched  # a single one is named in full
    found, remaining = [], set(names)
    while remaining:
        best = min(fitting, key=lambda pattern: (-len(fitting[pattern] & remaining), *_find_order(pattern)))
        found.append(best)
        remaining -= fitting[best]
    return sorted(found)


# What every report keeps of a round, since `launch.compare` draws it of archives, too; a report names further columns.
ALWAYS_KEPT = (
    *(columns.VIRTUAL_TIME_S, columns.NUM_CLIENTS, columns.BYTES_DOWN, columns.BYTES_UP),
    *(columns.TEST_LOSS, columns.TEST_ACCURACY, columns.CLIENT_TEST_ACCURACY),
)


@dataclasses.dataclass(frozen=True)
class Paper:
    """What of a paper is compared with our runs.

    Attributes:
      name: as `--tables` and its files have it, and as experiments name their report; other runs do not count.
      build: (paper, runs of its experiments, each experiment and seed once) -> Report.
      folder: of `reproductions`; "" if it is called like the paper.
      presets: the kinds of runs that claims are put to, each with what it is called in the report.
      claims: what the paper says in words.
      further: comparisons of ours that the paper does not claim.
      further_presets: the kinds of runs that our further comparisons are put to; empty: all.
      draw: (runs, folder) -> path of the figure drawn there; None if the report has no figure.
      further_metrics: a regular expression of the columns of `metrics.csv` that it reads beside ALWAYS_KEPT.
      kept_files: the further files of a run that it reads.
      beside: tables by name -> what the paper prints beside ours, as its page has it; None if it prints nothing.
      further_blocks: tables by name -> blocks of Markdown that its page has under the figure.
    """

    name: str
    build: Callable[["Paper", Sequence[RunRecord]], Report]
    folder: str = ""
    presets: Mapping[str, str] = dataclasses.field(default_factory=lambda: {PRINTED: "ours", TUNED: "ours, tuned"})
    claims: tuple[Claim, ...] = ()
    further: tuple[Claim, ...] = ()
    further_presets: tuple[str, ...] = ()
    draw: Callable[[Sequence[RunRecord], pathlib.Path], pathlib.Path] | None = None
    further_metrics: str = ""
    kept_files: tuple[str, ...] = ()
    beside: Callable[[Mapping[str, Table]], Table] | None = None
    further_blocks: Callable[[Mapping[str, Table]], list[str]] = lambda tables: []

    @property
    def path(self) -> pathlib.Path:
        """Its folder."""
        return FOLDER / (self.folder or self.name)

    @property
    def page(self) -> Mapping[str, Any]:
        """What its page says, see `reproductions.engine.page`."""
        return read_toml(self.path.name, "page.toml")

    @property
    def kept(self) -> Kept:
        """What `--archive` keeps of its runs: what the report reads."""
        return Kept("|".join([*ALWAYS_KEPT, *filter(None, [self.further_metrics])]), self.kept_files)

    @functools.cached_property
    def experiments(self) -> Mapping[str, Experiment]:
        """Its experiments, by name."""
        return {name: each for name, each in sorted(list_experiments().items()) if each.report == self.name}

    @functools.cached_property
    def settings(self) -> Table:
        """Where the settings of its experiments come from."""
        return tabulate_provenance(list(self.experiments.values()))

    def read_printed_rows(self) -> list[dict[str, str]]:
        """The rows of its printed tables, the folder's `printed.csv`; nothing if there is no such file."""
        path = self.path / "printed.csv"
        return read_rows(path) if path.is_file() else []

    def build_report(self, runs: Sequence[RunRecord]) -> Report:
        """The report of those of the runs that are of its experiments."""
        return self.build(self, [run for run in runs if run.experiment in self.experiments])
