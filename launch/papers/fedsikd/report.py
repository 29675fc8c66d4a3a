"""The FedSiKD paper's Tables V to IX beside our runs, and what we measured beyond them. Imports no TensorFlow."""

from collections.abc import Mapping, Sequence

from launch.papers.engine.collection import (
    PERCENT_METRICS,
    PRINTED,
    Cell,
    Measured,
    PrintedValue,
    Results,
    summarize_results,
)
from launch.papers.engine.markdown import Report, Section, Table, format_measured, format_table
from launch.papers.engine.paper import Paper
from launch.papers.fedsikd.further_tables import tabulate_clusters, tabulate_privacy, tabulate_tuned
from launch.papers.fedsikd.measures import (
    FEDSIKD_PRESETS,
    HAR,
    HAR_INPUTS,
    HAR_WINDOWS,
    NAMES,
    group_places,
    list_printed_values,
    measure_by_seed,
    measure_printed,
    share_baselines,
)
from launch.runs.columns import TEST_ACCURACY, TEST_LOSS
from launch.runs.run_records import RunRecord

METRIC_NAMES = {TEST_ACCURACY: "test accuracy (%)", TEST_LOSS: "test loss"}
ON_PRESETS = (
    "- *Ours*: as the paper prints it; what it leaves open is chosen by us.\n"
    "- *Ours, the authors' values*: FedSiKD on MNIST with w = 0.1, T = 3 and probabilities distilled, not logits, from "
    "the authors' published code. These concern the distillation alone, so this FedSiKD is judged against the "
    "baselines of *ours*; RandomCluster, which distils too, has our values there.\n"
    "- *Ours, tuned*: each algorithm with settings chosen on the clients' validation splits, with as many trials as "
    "the others, on seeds that are not reported. A tuned run is judged against tuned runs only.\n\n"
    "*HAR features* are the 561 of the paper, *HAR windows* the 128 steps of 9 channels that the authors' code has. "
    "Claims on HAR are put to both, but those on alpha 1 and 2 to the features alone, since there are no experiments "
    "on windows."
)
LEGEND = (
    "A value of ours is a mean ± sample deviation over n seeds. The settings are those of the flagfiles in "
    "launch/experiments/. HAR stands for its features, where a row does not say that it is of windows."
)


def build_fedsikd_report(paper: Paper, runs: Sequence[RunRecord]) -> Report:
    """The printed tables with our rows below theirs, further tables, and the claims."""
    by_place = group_places(runs)
    printed = list_printed_values(paper.read_printed_rows())
    own = measure_by_seed(by_place, printed)
    results = summarize_results(own)
    sections = {
        "tables": Section("", tabulate_values(printed, results), format_tables(printed, results)),
        "clusters": tabulate_clusters(by_place, results),
        "tuned": tabulate_tuned(by_place, own),
        "privacy": tabulate_privacy(own),
    }
    sections = {name: section for name, section in sections.items() if section.table.rows}
    judged = measure_by_seed(share_baselines(by_place), printed)
    judged = {preset: judged[preset] for preset in paper.presets}
    return paper.compose_report(LEGEND, sections, [*printed, *measure_printed(printed)], judged, runs)


def format_tables(printed: Sequence[PrintedValue], results: Results) -> str:
    """Every printed table as Markdown: a block for each data set, alpha and metric, a row for each source."""
    blocks: dict[tuple, dict[str, dict[int, float]]] = {}
    for table, cell, value in printed:
        if cell.dataset != HAR_WINDOWS:  # rows of its own in the blocks of HAR
            block = blocks.setdefault((table, cell.dataset, cell.setting, cell.metric), {})
            block.setdefault(cell.algo, {})[cell.round_num] = value
    lines = []
    table_before = None
    for (table, dataset, alpha, metric), rows in blocks.items():
        if table != table_before:
            lines += [f"### Table {table}", ""]
            table_before = table
        lines += [f"**{dataset.upper()}, Dirichlet alpha {alpha}, {METRIC_NAMES.get(metric, metric)}**", ""]
        lines += [format_table(_tabulate_block(Cell(dataset, alpha, "", 0, metric), rows, results)), ""]
    return "\n".join(lines)


def _tabulate_block(place: Cell, rows: Mapping[str, Mapping[int, float]], results: Results) -> Table:
    rounds = sorted({round_num for values in rows.values() for round_num in values})
    factor = 100 if place.metric in PERCENT_METRICS else 1
    lines = []
    for algo, name in NAMES.items():
        if algo not in rows:
            continue
        values = [rows[algo].get(round_num) for round_num in rounds]
        lines.append([name, "printed", *("" if value is None else f"{factor * value:.2f}" for value in values)])
        for preset, dataset, source in _list_sources(place.dataset):
            cells = [place._replace(dataset=dataset, algo=algo, round_num=round_num) for round_num in rounds]
            measured = [results[preset].get(cell) for cell in cells]
            # Every algorithm has a row of what the paper prints, which may say that there are no runs.
            if (preset, dataset) == (PRINTED, place.dataset) or any(measured):
                counted = source + _format_counts(measured)
                lines.append(["", counted, *(format_measured(place.metric, value) for value in measured)])
    return Table(["algorithm", "", *(f"round {round_num}" for round_num in rounds)], lines)


def _list_sources(dataset: str) -> list[tuple[str, str, str]]:
    """What our rows below a printed one come from: preset, data set, and what stands beside the numbers."""
    windows = {HAR_WINDOWS: ", windows"}
    datasets = HAR_INPUTS if dataset == HAR else (dataset,)
    return [
        (preset, each, source + windows.get(each, ""))
        for preset, source in FEDSIKD_PRESETS.items()
        for each in datasets
    ]


def _format_counts(measured: Sequence[Measured | None]) -> str:
    counts = sorted({value.count for value in measured if value})
    if not counts:
        return ""
    return f" (n = {counts[0]})" if len(counts) == 1 else f" (n = {counts[0]} to {counts[-1]})"


def tabulate_values(printed: Sequence[PrintedValue], results: Results) -> Table:
    """The tables as a CSV table, a row a printed value, those of HAR once for each input; empty where not run."""
    columns = ["table", "dataset", "dirichlet_alpha", "algo", "round", "metric", "printed"]
    sources = ["ours" if preset == PRINTED else preset for preset in FEDSIKD_PRESETS]
    columns += [f"{source}_{part}" for source in sources for part in ("mean", "deviation", "seeds")]
    rows = []
    for table, cell, value in printed:
        row = [table, cell.dataset, cell.setting, cell.algo, str(cell.round_num), cell.metric, f"{value:g}"]
        for preset in FEDSIKD_PRESETS:
            measured = results[preset].get(cell)
            row += ["", "", ""] if measured is None else _format_numbers(measured)
        rows.append(row)
    return Table(columns, rows)


def _format_numbers(measured: Measured) -> list[str]:
    deviation = "" if measured.deviation is None else f"{measured.deviation:.8g}"
    return [f"{measured.mean:.8g}", deviation, str(measured.count)]
