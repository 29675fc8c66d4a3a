"""The papers whose reports `launch.report` can make. Imports no TensorFlow."""

from reproductions.amfl_p.tables import PAPER as AMFL_P
from reproductions.async_periodic.tables import PAPER as ASYNC
from reproductions.contests.tables import PAPER as CONTESTS
from reproductions.engine.paper import Paper
from reproductions.fedcd.tables import PAPER as FEDCD
from reproductions.fedsikd.tables import PAPER as FEDSIKD
from reproductions.league.tables import PAPER as LEAGUE
from reproductions.private.tables import PAPER as PRIVATE
from reproductions.protocols.tables import PAPER as PROTOCOLS
from reproductions.quantization.tables import PAPER as QUANTIZATION
from reproductions.robust.tables import PAPER as ROBUST

PAPERS: dict[str, Paper] = {
    paper.name: paper
    for paper in (FEDSIKD, AMFL_P, ASYNC, FEDCD, CONTESTS, LEAGUE, QUANTIZATION, PRIVATE, ROBUST, PROTOCOLS)
}


def find_paper(experiments: list[str]) -> str | None:
    """The name of the report that covers most of the experiments, the first of equals; None if none covers any."""
    counts = {name: len(paper.experiments.keys() & experiments) for name, paper in PAPERS.items()}
    name = max(counts, key=counts.get)
    return name if counts[name] else None
