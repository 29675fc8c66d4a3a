"""The papers whose reports `launch.report` can make. Imports no TensorFlow."""

from launch.papers.amfl_p.tables import PAPER as AMFL_P
from launch.papers.async_periodic.tables import PAPER as ASYNC
from launch.papers.engine.paper import Paper
from launch.papers.fedcd.tables import PAPER as FEDCD
from launch.papers.fedsikd.tables import PAPER as FEDSIKD
from launch.papers.league.tables import PAPER as LEAGUE
from launch.papers.private.tables import PAPER as PRIVATE
from launch.papers.protocols.tables import PAPER as PROTOCOLS
from launch.papers.quantization.tables import PAPER as QUANTIZATION
from launch.papers.robust.tables import PAPER as ROBUST

PAPERS: dict[str, Paper] = {
    paper.name: paper for paper in (FEDSIKD, AMFL_P, ASYNC, FEDCD, LEAGUE, QUANTIZATION, PRIVATE, ROBUST, PROTOCOLS)
}


def find_paper(experiments: list[str]) -> str | None:
    """The name of the report that covers most of the experiments, the first of equals; None if none covers any."""
    counts = {name: len(paper.experiments.keys() & experiments) for name, paper in PAPERS.items()}
    name = max(counts, key=counts.get)
    return name if counts[name] else None
