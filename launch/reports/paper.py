"""A row of the registry: everything that the commands need to know of a paper's report."""

import dataclasses
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence

from launch.reports.claims import Claim, judge
from launch.reports.collection import PRINTED, PrintedValue, Results
from launch.reports.markdown import Report, Section, format_claims, format_sections, join_blocks, tabulate_claims
from launch.runs.run_records import RunRecord, read_rows

FOLDER = pathlib.Path(__file__).parent


@dataclasses.dataclass(frozen=True)
class Paper:
    """What of a paper is compared with our runs.

    Attributes:
      title: heading of the report.
      experiments: a regular expression that the names of its flagfiles match whole; other runs do not count.
      build: (paper, runs of its experiments, each experiment and seed once) -> Report.
      printed_files: CSV files of the paper's tables, relative to `launch/reports`.
      claims: what the paper says in words.
      draw: (runs, folder) -> path of the figure drawn there; None if the report has no figure.
    """

    title: str
    experiments: str
    build: Callable[["Paper", Sequence[RunRecord]], Report]
    printed_files: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    draw: Callable[[Sequence[RunRecord], pathlib.Path], pathlib.Path] | None = None

    def covers(self, experiment: str) -> bool:
        """Whether a flagfile of this name is one of the paper's."""
        return re.fullmatch(self.experiments, experiment) is not None

    def read_printed_rows(self) -> list[dict[str, str]]:
        """The rows of its printed tables, in the order of the files."""
        return [row for name in self.printed_files for row in read_rows(FOLDER / name)]

    def judge_claims(self, printed: Sequence[PrintedValue], results: Results, preset: str = PRINTED) -> Section:
        """Its claims, put to the printed tables and to our runs of a preset."""
        judgements = [judge(claim, printed, results, preset) for claim in self.claims]
        return Section("Claims", tabulate_claims(judgements), format_claims(judgements))

    def compose_report(self, legend: str, sections: Mapping[str, Section], runs: Sequence[RunRecord]) -> Report:
        """The report made of a legend and of sections by the names of their CSV files."""
        markdown = join_blocks([f"# {self.title}", legend, *format_sections(sections.values())])
        tables = {name: section.table for name, section in sections.items()}
        # The claims end with a line break of their own, tables do not; a file ends with one in either case.
        return Report(markdown.rstrip("\n") + "\n", tables, runs)

    def build_report(self, runs: Sequence[RunRecord]) -> Report:
        """The report of those of the runs that are of its experiments."""
        return self.build(self, [run for run in runs if self.covers(run.experiment)])
