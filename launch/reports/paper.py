"""A row of the registry: everything that the commands need to know of a paper's report."""

import dataclasses
import pathlib
import re
from collections.abc import Callable, Sequence

from launch.reports.claims import Claim
from launch.reports.markdown import Report
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

    def build_report(self, runs: Sequence[RunRecord]) -> Report:
        """The report of those of the runs that are of its experiments."""
        return self.build(self, [run for run in runs if self.covers(run.experiment)])
