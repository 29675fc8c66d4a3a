"""The reports that `launch.report` can make: a row a paper. Imports no TensorFlow."""

from launch.papers.amfl_p.figure import draw_amfl_p_figures
from launch.papers.amfl_p.measures import AMFL_P_RUNS, STEPS
from launch.papers.amfl_p.tables import SOURCES, build_amfl_p_report
from launch.papers.async_periodic.figure import draw_async_figures
from launch.papers.async_periodic.measures import ASYNC_RUNS
from launch.papers.async_periodic.tables import build_async_report
from launch.papers.engine.collection import PRINTED, TUNED
from launch.papers.engine.paper import Paper
from launch.papers.fedcd.figure import draw_fedcd_figure
from launch.papers.fedcd.measures import FEDCD_RUNS, SIZES
from launch.papers.fedcd.tables import build_fedcd_report
from launch.papers.fedsikd.figure import draw_fedsikd_figure
from launch.papers.fedsikd.measures import FEDSIKD_PRESETS, FEDSIKD_RUNS
from launch.papers.fedsikd.tables import build_fedsikd_report
from launch.papers.private.tables import PRIVATE_RUNS, build_private_report, draw_private_figure
from launch.papers.quantization.tables import QUANTIZATION_RUNS, build_quantization_report
from launch.runs.columns import (
    CLIENTS_FILE,
    EPSILON_SPENT,
    EVENTS_FILE,
    EXPORT_REPORT,
    FINE_TUNING_FILE,
    TIMING_FILE,
    TOTAL_DRIFT,
    WITHIN_CLUSTER_DRIFT,
)

PAPERS: dict[str, Paper] = {
    "fedsikd": Paper(
        name="fedsikd",
        folder="fedsikd",
        title="FedSiKD: Tables V to IX",
        experiments=FEDSIKD_RUNS,
        build=build_fedsikd_report,
        presets=FEDSIKD_PRESETS,
        further_presets=(TUNED,),
        draw=draw_fedsikd_figure,
        figure="figure_3.png",
        further_metrics=f"{WITHIN_CLUSTER_DRIFT}|{TOTAL_DRIFT}|num_clusters",
    ),
    "amfl_p": Paper(
        name="amfl_p",
        folder="amfl_p",
        title="AMFL-P: Tables 1 and 2",
        experiments=AMFL_P_RUNS,
        build=build_amfl_p_report,
        presets=SOURCES,
        draw=draw_amfl_p_figures,
        figure="amfl_p.png",
        further_metrics=STEPS,
        kept_files=(CLIENTS_FILE, FINE_TUNING_FILE),
    ),
    "async": Paper(
        name="async",
        folder="async_periodic",
        title="Asynchronous FL with periodic aggregation: Figures 3 and 4",
        experiments=ASYNC_RUNS,
        build=build_async_report,
        presets={PRINTED: "ours"},
        draw=draw_async_figures,
        figure="async.png",
    ),
    "fedcd": Paper(
        name="fedcd",
        folder="fedcd",
        title="FedCD: Table 1 and claims",
        experiments=FEDCD_RUNS,
        build=build_fedcd_report,
        presets=SIZES,
        draw=draw_fedcd_figure,
        figure="fedcd.png",
        further_metrics=".*_models|archetype_.*|client_accuracy_change|score_deviation|learning_rate_mean",
        kept_files=(TIMING_FILE, EVENTS_FILE),
    ),
    "quantization": Paper(
        name="quantization",
        folder="quantization",
        title="Quantization: exported files beside the Keras models they were converted from",
        experiments=QUANTIZATION_RUNS,
        build=build_quantization_report,
        kept_files=(EXPORT_REPORT,),
    ),
    "private": Paper(
        name="private",
        folder="private",
        title="Private updates: accuracy against epsilon",
        experiments=PRIVATE_RUNS,
        build=build_private_report,
        draw=draw_private_figure,
        figure="private.png",
        further_metrics=f"{EPSILON_SPENT}|clip_norm",
    ),
}


def find_paper(experiments: list[str]) -> str | None:
    """The name of the report that covers most of the experiments, the first of equals; None if none covers any."""
    counts = {name: sum(map(paper.covers, experiments)) for name, paper in PAPERS.items()}
    name = max(counts, key=counts.get)
    return name if counts[name] else None
