"""Tables V to IX of the FedSiKD paper beside our runs, tables that it does not have, and its Figure 3 with our runs.

Most tables are made of `by_seed`, the rows of `measure_runs` at round 5: a row a run, by seed. Imports no TensorFlow.
"""

import itertools
import math
import pathlib
from collections.abc import Mapping, Sequence

import pandas as pd

from launch.pages.comparison.seed_statistics import compare_by_seed, compute_deviation, compute_mean
from launch.runs.columns import CLIENT_TEST_ACCURACY, TEST_ACCURACY, TEST_LOSS, TOTAL_DRIFT, WITHIN_CLUSTER_DRIFT
from launch.runs.run_records import RunRecord
from launch.settings.algorithms import ALGORITHMS
from reproductions.engine import figures
from reproductions.engine.collection import PERCENT_METRICS, PRINTED, TUNED, Cell, Place, PrintedValue, SeedResults
from reproductions.engine.judge import decide_further
from reproductions.engine.page import compose_report, format_p_value
from reproductions.engine.paper import Paper
from reproductions.engine.tables import (
    SEED,
    Report,
    Table,
    describe,
    list_results,
    make_table,
    select,
    show,
    show_range,
)
from reproductions.fedsikd import measures
from reproductions.fedsikd.claims import CLAIMS, FURTHER, METRICS, NOISE, OWN
from reproductions.fedsikd.measures import ALPHAS, AUTHORS, AXES, BUDGET_ROUNDS, MNIST, NAMES, PRIVACY

PRESETS, DATA, STATISTICS = AXES["preset"], AXES["data"], AXES["statistics"]
ROUND = f"round {BUDGET_ROUNDS} (%)"
NUM_COLUMNS = 4  # of panels
TITLE = "FedSiKD, Figure 3 with our runs: test accuracy by round, mean over n seeds and one deviation either side"
STYLES = figures.style_series(NAMES, {algo: ALGORITHMS[algo].color for algo in NAMES})


def build_fedsikd_report(paper: Paper, runs: Sequence[RunRecord]) -> Report:
    """The printed tables with our numbers, further tables, and the claims."""
    printed = measures.read_printed(paper.read_printed_rows())
    frame = measures.measure_runs(runs, measures.find_targets(printed))
    by_seed, results = frame[frame.round_num == BUDGET_ROUNDS].set_index(SEED), list_judged(frame)
    p_values = {  # by the place of the second result, which FedSiKD, or the run without noise, is put above
        Place(preset, *each.claim.conditions[0].cells[1][:3]): each.p_value
        for preset, family in ((TUNED, OWN), (PRIVACY, NOISE))
        for each in decide_further(family, results[preset])
    }
    tables = {
        "tables": tabulate_values(printed, frame),
        "clusters": tabulate_clusters(by_seed),
        "own_splits": tabulate_own_splits(by_seed, p_values),
        "tuned": tabulate_tuned(by_seed),
        "privacy": tabulate_privacy(by_seed, p_values),
    }
    sections = describe("fedsikd", {name: table for name, table in tables.items() if table.rows})
    values = pd.concat([printed, measures.measure_printed(printed)]).itertuples(index=False)
    values = [PrintedValue(table, Cell(*cell), value) for table, *cell, value in values]
    return compose_report(paper, sections, runs, results, values)


def list_judged(frame: pd.DataFrame) -> SeedResults:
    """The rows of `measure_runs` as results: what claims are about, by preset, cell and seed; some at two places.

    - A baseline of ours also stands beside the authors' values, which set only how FedSiKD distils.
    - RandomCluster as the paper prints it is also the control, which has every setting of the FedSiKD beside it, down
      to the sizes of the clusters: they differ in the members of the clusters alone.
    """
    printed, authors = frame[frame.preset == PRINTED], frame[(frame.preset == AUTHORS) & (frame.algo == "fedsikd")]
    shared = printed[printed.algo != "fedsikd"].merge(authors[["dataset", "setting"]].drop_duplicates())
    control = printed[printed.algo == "random_cluster"].assign(algo="control")
    results: SeedResults = {preset: {} for preset in (*PRESETS, PRIVACY)}
    for round_num, rows in pd.concat([frame, shared.assign(preset=AUTHORS), control]).groupby("round_num"):
        found = rows[[SEED, *Place._fields, *METRICS]].dropna(axis="columns", how="all")
        for preset, by_cell in list_results(found, round_num, results).items():
            results[preset] |= by_cell
    return results


def tabulate_values(printed: pd.DataFrame, frame: pd.DataFrame) -> Table:
    """A row a printed value, those of HAR once for each input; empty where not run.

    Args:
      printed: see `read_printed`.
      frame: see `measure_runs`.
    """
    keys = ["preset", *Cell._fields]
    values = frame.melt([*Place._fields, "round_num"], [TEST_ACCURACY, CLIENT_TEST_ACCURACY, TEST_LOSS], "metric")
    found = values.dropna().groupby(keys).value.agg(mean=compute_mean, deviation=compute_deviation, seeds="count")
    found = found.map("{:.8g}".format, na_action="ignore")
    on_own_splits = printed.assign(metric=printed.metric.map({TEST_ACCURACY: CLIENT_TEST_ACCURACY}))
    parts = [printed.assign(value=printed.value.map("{:g}".format))]
    for cells, infix, columns in ((printed, "", list(found)), (on_own_splits, "_own_splits", ["mean", "deviation"])):
        for preset in PRESETS:
            beside = cells.assign(preset=preset).join(found, on=keys)[columns]
            parts.append(beside.add_prefix(f"{'ours' if preset == PRINTED else preset}{infix}_"))
    names = {"setting": "dirichlet_alpha", "round_num": "round", "value": "printed"}
    return make_table(pd.concat(parts, axis="columns").rename(columns=names).fillna(""))


def compare_printed(tables: Mapping[str, Table]) -> Table:
    """Accuracy at round 5 on skewed data, printed and of each kind of our runs; all else stands in `tables`."""
    wanted = [(MNIST, "0.1"), (MNIST, "0.5"), (measures.HAR, "0.1")]
    titles = {"ours" if preset == PRINTED else preset: title for preset, title in PRESETS.items()}
    rows = []
    for record in tables["tables"].records:
        place = record["dataset"], record["dirichlet_alpha"]
        if place in wanted and (record["round"], record["metric"]) == (str(BUDGET_ROUNDS), TEST_ACCURACY):
            cells = [format_percent(record[f"{source}_mean"], record[f"{source}_deviation"]) for source in titles]
            name = f"{DATA[place[0]]}, alpha {place[1]}"
            order = wanted.index(place), list(NAMES).index(record["algo"])
            rows.append((order, [name, NAMES[record["algo"]], format_percent(record["printed"]), *cells]))
    return Table(["data", "algorithm", "printed", *titles.values()], [row for _, row in sorted(rows)])


def format_percent(mean: str, deviation: str = "") -> str:
    """A share and its deviation as `show` writes them; "" where it was not run."""
    if not mean:
        return ""
    return f"{100 * float(mean):.2f}" + (f" ± {100 * float(deviation):.2f}" if deviation else "")


def tabulate_clusters(by_seed: pd.DataFrame) -> Table:
    """FL+HC's clusters, and its clients' own accuracy beside FedAvg's.

    Seeds with the same sizes stand together: "37, 3 x 1 (seeds 0, 2); 40 (seed 1)".
    """
    accuracies = {TEST_ACCURACY: "test set", CLIENT_TEST_ACCURACY: "clients"}
    shown = list(itertools.product(("fl_hc", "fedavg"), accuracies))
    rows = []
    for (preset, dataset, alpha), runs in by_seed.groupby(["preset", "dataset", "setting"]):
        if sizes := runs.groupby("cluster_sizes", sort=False).groups:
            spelled = [f"{text} (seed{'s' * (len(s) > 1)} {', '.join(map(str, s))})" for text, s in sizes.items()]
            cells = [show(runs[metric][runs.algo == algo]) for algo, metric in shown]
            rows.append([PRESETS[preset], DATA[dataset], alpha, "; ".join(spelled), *cells])
    names = [f"{NAMES[algo]}, {accuracies[metric]}" for algo, metric in shown]
    return Table(["runs", "data", "alpha", "sizes", *names], rows)


def compare(runs: pd.DataFrame, metric: str, algo: str, best: str = "fedsikd") -> tuple[str, str, str]:
    """An accuracy of an algorithm beside another's: its seeds, "3 (10 to 12)"; it; and by how much the other is ahead.

    Args:
      runs: that are compared.
      metric: a column of accuracies, shares if its name is among PERCENT_METRICS, else in per cent.
      algo: whose it is; without any values, all three are empty.
      best: the other, in pairs of the same seed, in points, with the 95 % interval; empty without a pair.
    """
    theirs, mine = (runs[metric][runs.algo == each].dropna() for each in (algo, best))
    scale = 1 if metric in PERCENT_METRICS else 100
    seeds, lead = sorted(theirs.index), compare_by_seed(mine / scale, theirs / scale)
    is_row = len(seeds) > 1 and seeds == list(range(seeds[0], seeds[-1] + 1))
    which = f"{seeds[0]} to {seeds[-1]}" if is_row else ", ".join(map(str, seeds))
    count = f"{len(seeds)} ({which})" if seeds else ""
    return count, show(theirs, metric, absent=""), lead.format() if lead.count and algo != best else ""


def tabulate_own_splits(by_seed: pd.DataFrame, p_values: Mapping[Place, float | None]) -> Table:
    """Every algorithm on the common test set and on the clients' own splits, by how much FedSiKD is ahead on each."""
    # Runs of a seed share their split, and most of them have measured what the majority class gets on it.
    usual = by_seed.groupby(["dataset", "setting", SEED]).majority.transform("first")
    usual = by_seed.assign(**{"algo": "majority", TEST_ACCURACY: math.nan, CLIENT_TEST_ACCURACY: usual})
    usual = usual[(by_seed.algo == "fedsikd") & by_seed[CLIENT_TEST_ACCURACY].notna()]
    frame, rows = pd.concat([by_seed, usual]), []
    names = {**NAMES, "control": AXES["further"]["control"], "majority": "majority class"}
    for preset, dataset, alpha in itertools.product((PRINTED, TUNED), DATA, ALPHAS):
        runs = select(frame, preset=preset, dataset=dataset, setting=alpha)
        measured = set(runs.algo[runs[CLIENT_TEST_ACCURACY].notna()])
        for algo in [algo for algo in names if {algo, "fedsikd"} <= measured]:
            _, on_test, lead = compare(runs, TEST_ACCURACY, algo)
            seeds, on_own, lead_on_own = compare(runs, CLIENT_TEST_ACCURACY, algo)
            p_value = format_p_value(p_values.get(Place(preset, dataset, alpha, algo)))
            place = [PRESETS[preset], DATA[dataset], alpha, names[algo]]
            rows.append([*place, seeds, on_test, on_own, lead, lead_on_own, p_value])
    columns = ["runs", "data", "alpha", "algorithm", "seeds", "test set", "clients' own", "FedSiKD ahead, test set"]
    return Table([*columns, "FedSiKD ahead, clients' own", "p (Holm)"], rows)


def tabulate_tuned(by_seed: pd.DataFrame) -> Table:
    """Tuned against tuned, with control and ablations, at equal rounds and at equal bytes."""
    rows = []
    for alpha, runs in select(by_seed, preset=TUNED, dataset=MNIST).groupby("setting"):
        for algo, name in (NAMES | AXES["further"]).items():
            seeds, *cells = compare(runs, TEST_ACCURACY, algo)
            for metric in ("equal_bytes_accuracy", CLIENT_TEST_ACCURACY):
                cells += compare(runs, metric, algo)[1:]
            if seeds:
                costs = runs[runs.algo == algo]
                seconds = f"{costs.seconds_a_round.min():.1f}" if costs.seconds_a_round.count() else ""
                megabytes = show(costs.megabytes_a_round, "megabytes", absent="")
                rows.append([name, alpha, seeds, *cells, megabytes, seconds])
    columns = ["algorithm", "alpha", "seeds", ROUND, "FedSiKD ahead", "equal bytes (%)", "FedSiKD ahead"]
    return Table([*columns, "clients' own (%)", "FedSiKD ahead", "MB a round", "seconds a round"], rows)


def tabulate_privacy(by_seed: pd.DataFrame, p_values: Mapping[Place, float | None]) -> Table:
    """Accuracy by statistics and epsilon, and by how much the same runs without noise are ahead."""
    runs = by_seed[by_seed.preset == PRIVACY]
    rows = []
    for kind, epsilon in itertools.product(STATISTICS, measures.EPSILONS):
        cells = compare(runs, TEST_ACCURACY, f"{kind}_{epsilon}", f"{kind}_{measures.NO_NOISE}")
        if any(cells):
            p_value = p_values.get(Place(PRIVACY, MNIST, "0.1", f"{kind}_{epsilon}"))
            rows.append([STATISTICS[kind], epsilon, *cells, format_p_value(p_value)])
    return Table(["statistics", "epsilon", "seeds", ROUND, "without noise ahead", "p (Holm)"], rows)


def keep_longest(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """The runs with the most rounds: a mean over other seeds from some round on would look like a change."""
    most = max((len(run.rounds) for run in runs), default=0)
    return [run for run in runs if len(run.rounds) == most]


def draw_fedsikd_figure(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    """Draws `figure_3.png`: the mean over the seeds, and a band of one deviation either side.

    What the paper's figure does not have, HAR's windows and tuned runs, has panels where there are runs, these last.
    """
    placed, panels = measures.place_runs(runs), []
    for preset, dataset, alpha in itertools.product((PRINTED, TUNED), DATA, ALPHAS):
        of_panel = select(placed, preset=preset, dataset=dataset, setting=alpha)
        drawn = {algo: keep_longest(list(of_panel.run[of_panel.algo == algo])) for algo in NAMES}
        if any(drawn.values()) or (preset == PRINTED and dataset != measures.HAR_WINDOWS):
            seeds = show_range(len(each) for each in drawn.values() if each)
            tuned = ", tuned" if preset == TUNED else ""
            title = f"{DATA[dataset]}, alpha = {alpha}{tuned}" + (f", n = {seeds}" if seeds else "")
            curves = [figures.compute_curve_by_round(drawn[algo], TEST_ACCURACY) for algo in NAMES]
            lines = list(map(figures.Line, NAMES.values(), curves, STYLES.values()))
            label = "" if len(panels) % NUM_COLUMNS else "test accuracy"
            panels.append(figures.Panel(lines, axes={"title": title, "xlabel": "round", "ylabel": label}))
    # By row, since a row holds the settings of one data set, and two data sets have accuracies far apart.
    return figures.draw_panels(figures.arrange(panels, NUM_COLUMNS), folder / "figure_3.png", TITLE, sharey="row")


PAPER = Paper(
    "fedsikd",
    build_fedsikd_report,
    presets=PRESETS,
    claims=CLAIMS,
    further=FURTHER,
    further_presets=(TUNED,),
    draw=draw_fedsikd_figure,
    beside=compare_printed,
    further_metrics=f"{WITHIN_CLUSTER_DRIFT}|{TOTAL_DRIFT}|num_clusters",
)
