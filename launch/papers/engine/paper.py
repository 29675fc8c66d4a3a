"""A row of the registry: everything that the commands need to know of a paper's report."""

import dataclasses
import functools
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence

from launch.papers.engine.claim_rows import load_claims
from launch.papers.engine.claims import Claim
from launch.papers.engine.collection import PRINTED, TUNED, PrintedValue, SeedResults
from launch.papers.engine.folder import FOLDER
from launch.papers.engine.markdown import Report, Section, tabulate_legend
from launch.papers.engine.page import Titles, compose_page
from launch.papers.engine.provenance import describe_revisions, tabulate_provenance
from launch.papers.engine.remarks import list_remarks
from launch.papers.engine.tables import read_texts
from launch.papers.engine.verdicts import build_further, build_verdicts, judge
from launch.runs.columns import (
    BYTES_DOWN,
    BYTES_UP,
    CLIENT_TEST_ACCURACY,
    NUM_CLIENTS,
    TEST_ACCURACY,
    TEST_LOSS,
    VIRTUAL_TIME_S,
)
from launch.runs.run_archive import Kept
from launch.runs.run_records import RunRecord, read_rows
from launch.settings.experiments import Experiment, list_experiments

# What every report keeps of a round, since `launch.compare` draws it of archives, too; a report names further columns.
ALWAYS_KEPT = (VIRTUAL_TIME_S, NUM_CLIENTS, BYTES_DOWN, BYTES_UP, TEST_LOSS, TEST_ACCURACY, CLIENT_TEST_ACCURACY)


@dataclasses.dataclass(frozen=True)
class Paper:
    """What of a paper is compared with our runs.

    Attributes:
      name: as `--tables` and its files have it.
      folder: of `launch/papers`.
      title: heading of the report.
      experiments: a regular expression that the names of its experiments match whole; other runs do not count.
      build: (paper, runs of its experiments, each experiment and seed once) -> Report.
      presets: the kinds of runs that claims are put to, each with what it is called in the report.
      further_presets: the kinds of runs that our further comparisons are put to; empty: all.
      draw: (runs, folder) -> path of the figure drawn there; None if the report has no figure.
      figure: the name of that file.
      further_metrics: a regular expression of the columns of `metrics.csv` that it reads beside ALWAYS_KEPT.
      kept_files: the further files of a run that it reads.
    """

    name: str
    folder: str
    title: str
    experiments: str
    build: Callable[["Paper", Sequence[RunRecord]], Report]
    presets: Mapping[str, str] = dataclasses.field(default_factory=lambda: {PRINTED: "ours", TUNED: "ours, tuned"})
    further_presets: tuple[str, ...] = ()
    draw: Callable[[Sequence[RunRecord], pathlib.Path], pathlib.Path] | None = None
    figure: str = ""
    further_metrics: str = ""
    kept_files: tuple[str, ...] = ()

    @functools.cached_property
    def rows(self) -> Mapping[str, tuple[Claim, ...]]:
        """The rows of the folder's `claims.toml` by family; nothing if there is no such file.

        Raises:
          ClaimError: a row cannot be read.
        """
        path = FOLDER / self.folder / "claims.toml"
        return load_claims(path) if path.is_file() else {}

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What the paper says in words."""
        return self.rows.get("claim", ())

    @property
    def further(self) -> tuple[Claim, ...]:
        """Comparisons of ours that the paper does not claim."""
        return self.rows.get("further", ())

    @property
    def kept(self) -> Kept:
        """What `--archive` keeps of its runs: what the report reads."""
        return Kept("|".join([*ALWAYS_KEPT, *filter(None, [self.further_metrics])]), self.kept_files)

    @property
    def titles(self) -> Titles:
        """What of it stands on its page."""
        return Titles(self.name, self.title, self.folder, self.presets, self.figure)

    def covers(self, experiment: str) -> bool:
        """Whether an experiment of this name is one of the paper's."""
        return re.fullmatch(self.experiments, experiment) is not None

    def list_experiments(self) -> list[Experiment]:
        """Its experiments, by name."""
        found = [each for each in list_experiments().values() if self.covers(each.name)]
        return sorted(found, key=lambda each: each.name)

    def read_printed_rows(self) -> list[dict[str, str]]:
        """The rows of its printed tables, the folder's `printed.csv`; nothing if there is no such file."""
        path = FOLDER / self.folder / "printed.csv"
        return read_rows(path) if path.is_file() else []

    def compose_report(
        self,
        tables: Mapping[str, Section],
        printed: Sequence[PrintedValue],
        results: SeedResults,
        runs: Sequence[RunRecord],
        **numbers: object,
    ) -> Report:
        """The report: claims, further comparisons, the paper's tables, where settings come from, and the page of these.

        Args:
          tables: the paper's tables by the names of their CSV files.
          printed: the numbers that the paper prints.
          results: our numbers by preset, cell and seed.
          runs: the runs that count.
          numbers: what the legend of `tables.toml` says as `{name}`.
        """
        sections = dict(tables)
        if self.claims:
            judgements = [judge(claim, printed, results) for claim in self.claims]
            sections["claims"] = Section("Verdicts", build_verdicts(judgements, self.presets))
        shown = self.further_presets or self.presets
        labels = {name: label for name, label in self.presets.items() if name in shown}
        if further := build_further(self.further, results, labels):
            sections["further"] = further
        csv_tables = {name: section.table for name, section in sections.items()}
        if experiments := self.list_experiments():
            csv_tables["settings"] = tabulate_provenance(experiments)
        words = read_texts(self.folder)
        texts = {"all": words["legend"].format(**numbers), "runs": words.get("presets", "")}
        texts["revisions"] = describe_revisions(runs)
        csv_tables["legend"] = tabulate_legend(texts, sections)
        return Report(compose_page(self.titles, csv_tables, list_remarks(runs)), csv_tables, runs)

    def build_report(self, runs: Sequence[RunRecord]) -> Report:
        """The report of those of the runs that are of its experiments."""
        return self.build(self, [run for run in runs if self.covers(run.experiment)])
