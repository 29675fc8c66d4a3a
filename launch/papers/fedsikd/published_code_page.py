"""The page on the replay of FedSiKD's published scripts, made of the numbers alone. Imports no TensorFlow."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from datasets.catalog import get_title
from launch.papers.engine.markdown import Table, format_table, join_blocks
from launch.papers.fedsikd.published_code import (
    ALPHAS,
    ARM_OF_ROW,
    ARMS,
    CLIENT_0,
    DATASETS,
    FEDAVG,
    FL_HC,
    LEADERS,
    PLANNED_SPLITS,
    PRINTED_WITHIN,
    ROUNDS,
    Place,
    PrintedRow,
    Range,
    Replay,
    Run,
    Summary,
    count_inside,
    get_runs,
    get_values,
    list_gaps,
    list_missing,
    list_ranges,
    list_round_ranges,
    read_printed_rows,
    share_of_pairs,
    summarize,
)
from launch.papers.fedsikd.published_code_fl_hc import tabulate_fl_hc
from launch.papers.fedsikd.published_code_text import (
    COMMANDS,
    COUNTS,
    DONE,
    INFERENCE,
    INTRODUCTION,
    ON_FL_HC,
    PAIRS,
    READING,
    ROUND_BY_ROUND,
    UNITS,
)
from launch.runs.columns import TEST_ACCURACY, TEST_LOSS

METRICS = {TEST_ACCURACY: ("test accuracy (%)", 100, ".1f"), TEST_LOSS: ("test loss", 1, ".2f")}
SUMMARY_FORMATS = Summary((100, ".1f"), (100, "+.1f"), (1, "+.2f"))
FIRST_REPLAY = "65.2, 67.7, 65.4 and 48.7"  # splits of another program, before this one
NOT_COMPUTED = "not computed"
EXACT = Summary(0.0, 0.0, 0.0)
ROW_NAMES = {CLIENT_0: "FedAvg", LEADERS: "FedSiKD and RandomCluster", FL_HC: "FL+HC"}
ARM_NAMES = {
    CLIENT_0: "client 0 alone",
    LEADERS: "four leaders' teachers",
    FL_HC: "a round of all clients, twice",
    FEDAVG: "FedAvg of all clients",
}


def format_page(replay: Replay) -> str:
    """The page as Markdown, a function of the replay's numbers and of the printed tables."""
    rows = read_printed_rows()
    blocks = [
        INTRODUCTION,
        _say_in_short(rows, replay),
        DONE,
        UNITS,
        format_table(tabulate_units(rows, replay)),
        READING,
        *_compare_ranges_of_three(rows, replay),
        INFERENCE,
        COUNTS,
        format_table(_tabulate_counts(rows, replay)),
        *_describe_misfit(rows, replay),
        PAIRS,
        format_table(_tabulate_pairs(rows, replay)),
        ON_FL_HC,
        format_table(tabulate_fl_hc(replay)),
        ROUND_BY_ROUND,
        *_list_round_tables(rows, replay),
        COMMANDS,
        *_describe_cost(replay),
    ]
    return join_blocks(blocks) + "\n"


def tabulate_units(rows: Sequence[PrintedRow], replay: Replay) -> Table:
    """A row for each printed one: those with the most misses first, those that are not computed last."""
    lines = []
    for row in rows:
        runs, beside = get_runs(replay, row.place), get_runs(replay, row.place._replace(arm=FEDAVG))
        misses = [gap != 0 for gap in list_gaps(row, runs)]
        verdict = f"{sum(misses)} of {len(misses)}" if misses else NOT_COMPUTED
        cells = []
        for printed, *found, within, (factor, form) in zip(
            summarize(row.values),
            list_ranges(runs),
            list_ranges(beside),
            PRINTED_WITHIN,
            SUMMARY_FORMATS,
            strict=True,
        ):
            ranges = [_place_in(printed, each, within, factor, form) for each in found]
            cells += [format(factor * printed, form), *ranges]
        rank = (0, -sum(misses)) if misses else (1, 0)
        counts = f"{len(runs)} and {len(beside)}"
        lines.append((rank, [row.name, get_title(row.dataset), row.alpha, verdict, counts, *cells]))
    lines.sort(key=lambda line: line[0])
    columns = ["printed row", "data", "alpha", "misses", "splits"]
    for name in ("level", "change", "change of loss"):
        columns += [f"{name}, {what}" for what in ("printed", "replay", "FedAvg of all")]
    return Table(columns, [line for _, line in lines])


def _place_in(printed: float, found: Range | None, within: float, factor: float, form: str) -> str:
    """Where a printed value lies: "in 22.1 to 53.0", or "**outside** of 40.0 to 55.0 (1.8 below)"."""
    if found is None:
        return NOT_COMPUTED
    span = f"{format(factor * found.low, form)} to {format(factor * found.high, form)}"
    if gap := found.exceed_by(printed, within):
        return f"**outside** of {span} ({_format_gap(gap, factor, form)})"
    return f"in {span}" + (" (by its rounding)" if found.exceed_by(printed) else "")


def _format_gap(gap: float, factor: float, form: str) -> str:
    size, form = abs(factor * gap), form.lstrip("+")
    text = format(size, form)
    return f"{text if float(text) else f'{size:.1g}'} {'above' if gap > 0 else 'below'}"


def _say_in_short(rows: Sequence[PrintedRow], replay: Replay) -> str:
    """The counts that matter most, as a list."""
    known = [row for row in rows if row.place.arm != FL_HC]
    replayed = [row for row in known if get_runs(replay, row.place)]
    gaps = [list_gaps(row, get_runs(replay, row.place)) for row in replayed]
    num_gaps = sum(map(len, gaps))
    expected = len(Summary._fields) * _expect_outside(replayed, replay)
    num_whole = sum(not any(found) for found in gaps)
    num_outside = sum(gap != 0 for found in gaps for gap in found)
    unrounded = sum(gap != 0 for row in replayed for gap in list_gaps(row, get_runs(replay, row.place), EXACT))
    lines = [
        f"- {len(replayed)} of {len(known)} printed rows (FL+HC's apart, of which our notes say too little) have a "
        f"replay. {num_whole} lie within its ranges in level, change and loss. Of {num_gaps} comparisons {num_outside} "
        f"lie outside; {expected:.1f} would be expected to, if the printed rows were further splits of the same "
        f"procedure. If the printed digits were exact, {unrounded} would.",
        *_compare_by_group(rows, replay),
        *_compare_with_fedavg(rows, replay),
    ]
    if missing := sum(number for _, number in _count_missing(replay)):
        lines.append(f"- {missing} splits are not computed yet; the end of the page lists them.")
    return "\n".join(lines)


def _compare_by_group(rows: Sequence[PrintedRow], replay: Replay) -> Iterator[str]:
    """How many comparisons lie outside by data set and procedure; and in which direction the teachers' losses do."""
    found = {row: gaps for row in rows if (gaps := list_gaps(row, get_runs(replay, row.place)))}
    groups = {
        (dataset, arm): own
        for dataset, arm in itertools.product(DATASETS, ROW_NAMES)
        if (own := [row for row in found if (row.dataset, row.place.arm) == (dataset, arm)])
    }
    counts = [
        f"{get_title(dataset)}, {ROW_NAMES[arm]} {sum(gap != 0 for row in own for gap in found[row])} of "
        f"{sum(len(found[row]) for row in own)} ({len(Summary._fields) * _expect_outside(own, replay):.1f} expected)"
        for (dataset, arm), own in groups.items()
    ]
    if counts:
        yield f"- Outside by group: {'; '.join(counts)}."
    for (dataset, arm), own in groups.items():
        if arm == LEADERS:
            yield _describe_losses(dataset, {row: found[row][-1] for row in own}, replay)


def _describe_losses(dataset: str, gaps: Mapping[PrintedRow, float], replay: Replay) -> str:
    """In which direction the losses of the teachers' rows go, by how far each lies outside."""
    below, expected = sum(gap < 0 for gap in gaps.values()), _expect_outside(gaps, replay) / 2  # on one side
    runs = [run for alpha in ALPHAS for run in get_runs(replay, Place(dataset, alpha, LEADERS))]
    falling = [sum(summarize(run).loss_trend < 0 for run in each) for each in ([row.values for row in gaps], runs)]
    conclusion = (
        " So either these scripts did not make these rows, or one of our choices [below](#what-is-inference) differs "
        "from theirs."
    )
    return (
        f"- {ROW_NAMES[LEADERS]} on {get_title(dataset)}, loss from round 1 to 5: it falls in {falling[0]} of "
        f"{len(gaps)} printed rows and in {falling[1]} of {len(runs)} splits. In {below or 'none'} of these rows the "
        f"printed change lies below that of every split, where {expected:.1f} would be expected to."
        + (conclusion if below > 2 * expected else "")
    )


def _expect_outside(rows: Iterable[PrintedRow], replay: Replay) -> float:
    """Of one part of each row, how many lie outside of their range if each is one more split of the same procedure.

    The last of n + 1 exchangeable values is the least or the greatest with probability 2 / (n + 1).
    """
    return sum(2 / (len(get_runs(replay, row.place)) + 1) for row in rows)


def _compare_with_fedavg(rows: Sequence[PrintedRow], replay: Replay) -> Iterator[str]:
    """How far the printed FedAvg is from that of all clients, and which losses rise."""
    gaps = list(_list_level_gaps(rows, replay, "FedAvg"))
    below = [-100 * gap for gap in gaps if gap < 0]
    if below:
        yield (
            f"- The printed level of FedAvg lies below every split of FedAvg of all clients in {len(below)} of "
            f"{len(gaps)} places, by {min(below):.1f} to {max(below):.1f} points."
        )
    printed = [summarize(row.values).loss_trend > 0 for row in rows if row.name == "FedAvg"]
    rising = [f"{sum(printed)} of {len(printed)} printed rows of FedAvg"]
    for arm in (CLIENT_0, FEDAVG):
        runs = [run for place in replay if place.arm == arm for run in get_runs(replay, place)]
        num_rising = sum(summarize(run).loss_trend > 0 for run in runs)
        rising += [f"{num_rising} of {len(runs)} splits of {ARM_NAMES[arm]}"] if runs else []
    yield f"- The loss rises from round 1 to 5 in {', in '.join(rising)}."


def _list_level_gaps(rows: Sequence[PrintedRow], replay: Replay, name: str) -> Iterator[float]:
    """How far the printed level of an algorithm lies outside of that of FedAvg of all clients, if there is one."""
    for row in rows:
        gaps = list_gaps(row, get_runs(replay, row.place._replace(arm=FEDAVG))) if row.name == name else []
        yield from gaps[:1]


def _tabulate_counts(rows: Sequence[PrintedRow], replay: Replay) -> Table:
    lines = []
    for dataset in DATASETS:
        for name in ARM_OF_ROW:
            own = [row for row in rows if (row.dataset, row.name) == (dataset, name)]
            cells = []
            for metric in METRICS:
                counts = [_count_all(own, lambda row: get_runs(replay, row.place), metric)]
                counts.append(_count_all(own, lambda row: get_runs(replay, row.place._replace(arm=FEDAVG)), metric))
                cells.append("{} of {} ({} of {})".format(*counts[0], *counts[1]))
            lines.append([name, get_title(dataset), *cells])
    return Table(["printed row", "data", "accuracy", "loss"], lines)


def _count_all(
    rows: Sequence[PrintedRow], find_runs: Callable[[PrintedRow], list[Run]], metric: str
) -> tuple[int, int]:
    counts = [count_inside(row, find_runs(row), metric) for row in rows]
    return sum(inside for inside, _ in counts), sum(total for _, total in counts)


def _compare_ranges_of_three(rows: Sequence[PrintedRow], replay: Replay) -> Iterator[str]:
    """Misses of the replay and of FedAvg of all clients with as many splits each as the latter has."""
    size, counts = PLANNED_SPLITS[FEDAVG], []
    for arm, name in ROW_NAMES.items():
        own = [(row, get_runs(replay, row.place)) for row in rows if row.place.arm == arm]
        others = [(row, get_runs(replay, row.place._replace(arm=FEDAVG))) for row, _ in own]
        if all(len(runs) >= size for _, runs in (*own, *others)):
            misses = [sum(_count_misses_of(row, runs, size) for row, runs in each) for each in (own, others)]
            total = len(Summary._fields) * len(own)
            counts.append(f"{name}, {misses[0]:.1f} of {total} by the replay, {misses[1]:.0f} by FedAvg of all clients")
    if counts:
        yield (
            f"FedAvg of all clients has {size} splits, and narrower ranges. With {size} splits each, on average over "
            f"all choices of {size}, these printed values are missed: {'; '.join(counts)}."
        )


def _count_misses_of(row: PrintedRow, runs: Sequence[Run], size: int) -> float:
    """How many parts of a row lie outside of the range of `size` of the runs, on average over all choices of them."""
    counts = [sum(gap != 0 for gap in list_gaps(row, chosen)) for chosen in itertools.combinations(runs, size)]
    return sum(counts) / len(counts) if counts else 0.0


def _describe_misfit(rows: Sequence[PrintedRow], replay: Replay) -> Iterator[str]:
    """The row whose misfit was known before, FedSiKD on MNIST at alpha 0.1; then all that lies outside."""
    yield "## What does not fit"
    printed = {row.name: row.values.accuracies[-1] for row in rows if (row.dataset, row.alpha) == ("mnist", "0.1")}
    ends = sorted(run.accuracies[-1] for run in get_runs(replay, Place("mnist", "0.1", LEADERS)))
    text = [
        f"MNIST at alpha 0.1, round 5: the paper prints {100 * printed['FedSiKD']:.1f} for FedSiKD and "
        f"{100 * printed['RandomCluster']:.1f} for RandomCluster, which are one procedure. A first replay by another "
        f"program, not kept, gave {FIRST_REPLAY} on four splits, which is 7 to 26 points below FedSiKD's."
    ]
    if ends:
        best = 100 * (ends[-1] - printed["FedSiKD"])
        reach = [sum(end >= printed[name] for end in ends) for name in ("FedSiKD", "RandomCluster")]
        text += [
            f"The splits here give {', '.join(f'{100 * end:.1f}' for end in ends)}.",
            f"Of these {len(ends)}, {reach[0]} reach FedSiKD's and {reach[1]} RandomCluster's;",
            f"the greatest is {abs(best):.1f} points {'above' if best >= 0 else 'below'} FedSiKD's.",
        ]
        if not reach[0]:
            text.append(
                "If FedSiKD's were one more split of the same procedure, it would be the greatest with probability "
                f"1/{len(ends) + 1}. The first replay does not add to this, since it drew attention to the row."
            )
    yield " ".join(text)
    outside = [
        f"- {row.name}, {get_title(row.dataset)}, alpha {row.alpha}: " + ", ".join(found)
        for row in rows
        if (found := _list_misses(row, get_runs(replay, row.place)))
    ]
    yield "\n".join(["All rows that lie outside, by how much:", "", *outside]) if outside else "Nothing else."


def _list_misses(row: PrintedRow, runs: Sequence[Run]) -> list[str]:
    parts = zip(("level", "change", "loss"), list_gaps(row, runs), SUMMARY_FORMATS, strict=False)
    return [f"{name} {_format_gap(gap, *shown)}" for name, gap, shown in parts if gap]


def _tabulate_pairs(rows: Sequence[PrintedRow], replay: Replay) -> Table:
    """FedSiKD and RandomCluster are one procedure: their printed difference beside that of two splits."""
    levels = {(row.dataset, row.alpha, row.name): summarize(row.values).level for row in rows}
    lines = []
    for dataset, alpha in itertools.product(DATASETS, ALPHAS):
        difference = levels[dataset, alpha, "FedSiKD"] - levels[dataset, alpha, "RandomCluster"]
        ours = [summarize(run).level for run in get_runs(replay, Place(dataset, alpha, LEADERS))]
        share = share_of_pairs(difference, ours)
        found = [NOT_COMPUTED, ""] if share is None else [f"{100 * (max(ours) - min(ours)):.1f}", f"{share:.2f}"]
        lines.append([get_title(dataset), alpha, f"{100 * difference:+.1f}", *found])
    return Table(["data", "alpha", "printed (points)", "greatest of two splits", "share of pairs"], lines)


def _list_round_tables(rows: Sequence[PrintedRow], replay: Replay) -> Iterator[str]:
    for dataset in DATASETS:
        for metric, (title, factor, form) in METRICS.items():
            yield f"### {get_title(dataset)}, {title}"
            lines = []
            for row in [row for row in rows if row.dataset == dataset]:
                runs = get_runs(replay, row.place)
                cells = zip(get_values(row.values, metric), list_round_ranges(runs, metric), strict=True)
                shown = [_format_round(value, found, factor, form) for value, found in cells]
                inside = "{} of {}".format(*count_inside(row, runs, metric))
                lines.append([row.alpha, row.name, str(len(runs)), *shown, inside])
            lines += _list_fedavg_lines(dataset, replay, metric)
            columns = ["alpha", "printed row", "splits", *(f"round {round_num}" for round_num in ROUNDS), "inside"]
            yield format_table(Table(columns, lines))


def _list_fedavg_lines(dataset: str, replay: Replay, metric: str) -> list[list[str]]:
    """FedAvg of all clients, which no printed row stands beside: (least / median / greatest) alone."""
    _, factor, form = METRICS[metric]
    lines = []
    for alpha in ALPHAS:
        runs = get_runs(replay, Place(dataset, alpha, FEDAVG))
        ranges = [found for found in list_round_ranges(runs, metric) if found]
        if ranges:
            shown = [_format_range(found, factor, form) for found in ranges]
            lines.append([alpha, f"({ARM_NAMES[FEDAVG]})", str(len(runs)), *shown, ""])
    return lines


def _format_round(value: float, found: Range | None, factor: float, form: str) -> str:
    text = format(factor * value, form)
    if found is None:
        return text
    return f"{text if found.exceed_by(value) == 0 else f'**{text}**'} {_format_range(found, factor, form)}"


def _format_range(found: Range, factor: float, form: str) -> str:
    return f"({' / '.join(format(factor * value, form) for value in (found.low, found.median, found.high))})"


def _describe_cost(replay: Replay) -> Iterator[str]:
    lines = []
    for dataset, arm in itertools.product(DATASETS, ARMS):
        runs = [run for alpha in ALPHAS for run in get_runs(replay, Place(dataset, alpha, arm))]
        seconds = sum(run.cpu_s for run in runs)
        a_split = f"{seconds / len(runs):.0f} s" if runs else ""
        splits = f"{len(runs)} of {PLANNED_SPLITS[arm] * len(ALPHAS)}"
        lines.append([get_title(dataset), ARM_NAMES[arm], splits, a_split, f"{seconds / 60:.0f} min"])
    yield format_table(Table(["data", "arm", "splits", "a split", "in all"], lines))
    missing = [
        f"- {get_title(place.dataset)}, alpha {place.alpha}, {ARM_NAMES[place.arm]}: {number} splits"
        for place, number in _count_missing(replay)
        if number
    ]
    if missing:
        yield "\n".join(["Not computed yet:", "", *missing])


def _count_missing(replay: Replay) -> list[tuple[Place, int]]:
    """How many of the planned splits of each place are not computed."""
    places = map(Place._make, itertools.product(DATASETS, ALPHAS, ARMS))
    return [(place, len(list_missing(replay, place, PLANNED_SPLITS[place.arm]))) for place in places]
