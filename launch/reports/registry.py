"""The reports that `launch.report` can make: a row each. Imports no TensorFlow."""

import functools
import pathlib
import re
from collections.abc import Sequence

from launch.reports.amfl_p.report import build_amfl_p_report
from launch.reports.async_periodic.report import build_async_report
from launch.reports.fedcd.report import build_fedcd_report
from launch.reports.fedsikd.claims import FEDSIKD_CLAIMS, NAMES
from launch.reports.quantization import build_quantization_report
from launch.reports.report_tables import (
    PaperReport,
    Report,
    ReportSource,
    compute_results,
    format_claims,
    format_tables,
    judge,
    normalize_setting,
    read_printed_values,
    tabulate_claims,
    tabulate_values,
)
from launch.runs.run_records import RunRecord

LEGEND = (
    "Ours: mean ± sample deviation over n seeds, of runs with the settings of the flagfiles in launch/experiments/. "
    "Tuned: of the flagfiles that end in _tuned; in a claim, algorithms without such a run take part as printed. "
    "A claim is reproduced if all comparisons of its rule hold for our means."
)


def build_paper_report(paper: PaperReport, runs: Sequence[RunRecord]) -> Report:
    """Compares the runs of a paper's experiments with what it prints."""
    runs = [run for run in runs if re.fullmatch(paper.experiments, run.experiment)]
    printed, results = read_printed_values(paper), compute_results(runs, paper.setting_flag)
    judgements = [judge(claim, printed, results) for claim in paper.claims]
    parts = [f"# {paper.title}", LEGEND, format_tables(paper, printed, results), "## Claims", format_claims(judgements)]
    tables = {"tables": tabulate_values(paper, printed, results), "claims": tabulate_claims(judgements)}
    return Report("\n\n".join(parts), tables, runs)


def draw_paper_figure(paper: PaperReport, runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    """Draws the paper's figure of accuracy by round from our runs, a panel for each data set and setting."""
    from launch.reports.curves import Curves, draw_comparison

    printed = read_printed_values(paper)
    datasets = list(dict.fromkeys(value.cell.dataset for value in printed))
    places = dict.fromkeys((value.cell.dataset, value.cell.setting) for value in printed)
    panels = []
    for dataset, setting in sorted(places, key=lambda place: datasets.index(place[0])):
        curves: dict[str, list[pathlib.Path]] = {name: [] for name in paper.algorithms}
        for name, algo in paper.algorithms.items():
            for run in runs:
                place = (run.flags["dataset"], normalize_setting(run.flags[paper.setting_flag]), run.flags["algo"])
                if place == (dataset, setting, algo):
                    label = name if run.preset == "printed" else f"{name}, tuned"
                    curves.setdefault(label, []).append(run.path)
        panels.append(Curves(f"{dataset.upper()}, {paper.setting_flag.split('_')[-1]} = {setting}", curves))
    file_name, title = paper.figure
    draw_comparison(panels, folder / file_name, title)
    return folder / file_name


def from_paper(paper: PaperReport) -> ReportSource:
    """The report that compares our runs with a paper."""
    draw = functools.partial(draw_paper_figure, paper) if paper.figure else None
    return ReportSource(functools.partial(build_paper_report, paper), draw)


def _draw_amfl_p(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    from launch.reports.amfl_p.figure import draw_amfl_p_figure

    return draw_amfl_p_figure(runs, folder)


def _draw_async(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    from launch.reports.async_periodic.figure import draw_async_figure

    return draw_async_figure(runs, folder)


def _draw_fedcd(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    from launch.reports.fedcd.figure import draw_fedcd_figure

    return draw_fedcd_figure(runs, folder)


FEDSIKD = PaperReport(
    title="FedSiKD: Tables V to IX",
    printed_files=("fedsikd/table_v.csv", "fedsikd/tables_vi_to_ix.csv"),
    setting_flag="dirichlet_alpha",
    algorithms={name: algo for algo, name in NAMES.items()},
    experiments=r"(fedsikd|random_cluster|fl_hc|fedavg)_(mnist|har)_alpha[0-9.]+(_tuned)?",
    claims=FEDSIKD_CLAIMS,
    figure=("figure_3.png", "Figure 3: test accuracy by round, mean over seeds and one deviation either side"),
)

PAPERS = {"fedsikd": FEDSIKD}
REPORTS: dict[str, ReportSource] = {
    **{name: from_paper(paper) for name, paper in PAPERS.items()},
    "amfl_p": ReportSource(build_amfl_p_report, _draw_amfl_p),
    "async": ReportSource(build_async_report, _draw_async),
    "fedcd": ReportSource(build_fedcd_report, _draw_fedcd),
    "quantization": ReportSource(build_quantization_report),
}
