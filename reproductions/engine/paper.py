"""A paper: everything that the commands need to know of its report."""

import dataclasses
import functools
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from launch.runs import columns
from launch.runs.run_archive import Kept
from launch.runs.run_records import RunRecord, read_rows
from launch.settings.experiments import Experiment, list_experiments
from reproductions.engine.claim_rows import Claim
from reproductions.engine.collection import PRINTED, TUNED
from reproductions.engine.folder import FOLDER, read_toml
from reproductions.engine.provenance import tabulate_provenance
from reproductions.engine.tables import Report, Table

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
