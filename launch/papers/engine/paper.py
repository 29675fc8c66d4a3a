"""A row of the registry: everything that the commands need to know of a paper's report."""

import dataclasses
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence

from launch.papers.engine.claims import Claim
from launch.papers.engine.collection import PRINTED, TUNED, PrintedValue, SeedResults
from launch.papers.engine.heads import compose_heads
from launch.papers.engine.markdown import Report, Section, format_sections, join_blocks
from launch.papers.engine.provenance import describe_revisions, tabulate_provenance
from launch.papers.engine.verdicts import (
    HOW_DECIDED,
    Untestable,
    build_further,
    build_verdicts,
    explain_verdicts,
    judge,
    tabulate_untestable,
)
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
from launch.runs.run_records import RunRecord, list_flagfiles, read_rows

# What every report keeps of a round, since `launch.compare` draws it of archives, too; a report names further columns.
ALWAYS_KEPT = (VIRTUAL_TIME_S, NUM_CLIENTS, BYTES_DOWN, BYTES_UP, TEST_LOSS, TEST_ACCURACY, CLIENT_TEST_ACCURACY)
FOLDER = pathlib.Path(__file__).parents[1]  # a folder a paper


@dataclasses.dataclass(frozen=True)
class Paper:
    """What of a paper is compared with our runs.

    Attributes:
      title: heading of the report.
      experiments: a regular expression that the names of its flagfiles match whole; other runs do not count.
      build: (paper, runs of its experiments, each experiment and seed once) -> Report.
      printed_files: CSV files of the paper's tables, relative to `launch/papers`.
      presets: the kinds of runs that claims are put to, each with what it is called in the report.
      on_presets: what these names mean, for the reader.
      claims: what the paper says in words.
      untestable: what it says that no run can decide.
      further: comparisons of ours that the paper does not claim.
      further_presets: the kinds of runs that these are put to; empty: all.
      draw: (runs, folder) -> path of the figure drawn there; None if the report has no figure.
      figure: the name of that file.
      accuracy: the column of accuracies that its tables show, which the heads of its flagfiles tell.
      told_rounds: the rounds after which they do, beside the last one.
      further_metrics: a regular expression of the columns of `metrics.csv` that it reads beside ALWAYS_KEPT.
      kept_files: the further files of a run that it reads.
    """

    title: str
    experiments: str
    build: Callable[["Paper", Sequence[RunRecord]], Report]
    printed_files: tuple[str, ...] = ()
    presets: Mapping[str, str] = dataclasses.field(default_factory=lambda: {PRINTED: "ours", TUNED: "ours, tuned"})
    on_presets: str = ""
    claims: tuple[Claim, ...] = ()
    untestable: tuple[Untestable, ...] = ()
    further: tuple[Claim, ...] = ()
    further_presets: tuple[str, ...] = ()
    draw: Callable[[Sequence[RunRecord], pathlib.Path], pathlib.Path] | None = None
    figure: str = ""
    accuracy: str = TEST_ACCURACY
    told_rounds: tuple[int, ...] = ()
    further_metrics: str = ""
    kept_files: tuple[str, ...] = ()

    @property
    def kept(self) -> Kept:
        """What `--archive` keeps of its runs: what the report reads."""
        return Kept("|".join([*ALWAYS_KEPT, *filter(None, [self.further_metrics])]), self.kept_files)

    def covers(self, experiment: str) -> bool:
        """Whether a flagfile of this name is one of the paper's."""
        return re.fullmatch(self.experiments, experiment) is not None

    def list_flagfiles(self) -> list[pathlib.Path]:
        """Its flagfiles, by name."""
        return [path for path in list_flagfiles() if self.covers(path.stem)]

    def compose_heads(self, runs: Sequence[RunRecord]) -> dict[pathlib.Path, str]:
        """The flagfiles of runs, each with its text in which the head says what they gave."""
        return compose_heads(runs, self.accuracy, self.told_rounds)

    def read_printed_rows(self) -> list[dict[str, str]]:
        """The rows of its printed tables, in the order of the files."""
        return [row for name in self.printed_files for row in read_rows(FOLDER / name)]

    def compose_report(
        self,
        legend: str,
        tables: Mapping[str, Section],
        printed: Sequence[PrintedValue],
        results: SeedResults,
        runs: Sequence[RunRecord],
    ) -> Report:
        """The report: verdicts, the paper's tables, further comparisons, the figure, the numbers, the provenance.

        Args:
          legend: how to read the tables.
          tables: the paper's tables by the names of their CSV files.
          printed: the numbers that the paper prints.
          results: our numbers by preset, cell and seed.
          runs: the runs that count.
        """
        judgements = [judge(claim, printed, results) for claim in self.claims]
        verdicts = build_verdicts(judgements, self.presets, self.on_presets)
        labels = {name: label for name, label in self.presets.items() if name in (self.further_presets or self.presets)}
        further = build_further(self.further, results, labels)
        blocks = [f"# {self.title}"]
        if self.claims:
            blocks += format_sections([verdicts])
        if self.untestable:
            blocks += format_sections([Section("Claims that no run can decide", tabulate_untestable(self.untestable))])
        blocks += ["## Tables", legend, *format_sections(tables.values(), level=3)]
        csv_tables = {name: section.table for name, section in tables.items()}
        if further is not None:
            blocks += format_sections([further])
            csv_tables["further"] = further.table
        if self.figure:
            blocks += ["## Figure", f"![{self.title}]({self.figure})"]
        if self.claims:
            blocks += ["## How each claim is decided", HOW_DECIDED, explain_verdicts(judgements, self.presets)]
            csv_tables["claims"] = verdicts.table
        if flagfiles := self.list_flagfiles():
            blocks += format_sections([Section("Where the settings come from", tabulate_provenance(flagfiles))])
        if revisions := describe_revisions(runs):
            blocks.append(revisions)
        return Report(join_blocks(block.rstrip("\n") for block in blocks) + "\n", csv_tables, runs)

    def build_report(self, runs: Sequence[RunRecord]) -> Report:
        """The report of those of the runs that are of its experiments."""
        return self.build(self, [run for run in runs if self.covers(run.experiment)])
