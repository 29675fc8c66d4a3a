"""The league: a table a problem, the pairs that decide, one sentence each, and the figure. Imports no TensorFlow.

Every run of a problem ends within the same limits, in bytes, in virtual seconds and in rounds, so what counts is where
it ends.
"""

import pathlib
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from launch.pages.comparison.pairs import find_best, judge_pairs, list_pairs, list_winners
from launch.pages.comparison.seed_statistics import UNDECIDED, BySeed, compute_mean
from launch.pages.plots.style import COLORS, MARKERS, span_values
from launch.runs.columns import BYTES_DOWN, BYTES_UP, MAJORITY_ACCURACY, NEW_CLIENTS, TOKEN_BASELINES, VIRTUAL_TIME_S
from launch.runs.run_records import RunRecord, read_summary
from launch.runs.task_columns import read_task_columns
from launch.settings.experiments import list_experiments, list_searches
from launch.sweeps.tuning.search_space import parse_search
from reproductions.engine.figures import GREY, Panel, arrange, draw_panels, paint_means
from reproductions.engine.page import compose_report, fold, format_p_value
from reproductions.engine.paper import Paper
from reproductions.engine.tables import (
    EXPERIMENT,
    SEED,
    Report,
    Table,
    describe,
    format_table,
    make_frame,
    show,
    show_difference,
)
from reproductions.league.experiments import METHODS, METHODS_OF, PROBLEMS, WORDS, name_tuned, split_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Methods go by their titles here.
SYSTEMS = [METHODS[name] for name in WORDS["systems"]]  # the four
REFERENCES = [METHODS[name] for name in WORDS["references"]]  # which know what a method does not; no rivals
BASELINE = METHODS["fedavg"]

SHARES = OWN, WORST_TENTH, COMMON = "own", "worst_tenth", "common"
COSTS = {"MB": ".1f", "virtual seconds": ".0f", "rounds": ".0f"}  # how their means look
MAJORITY_TITLE = "each client's majority class"
WINNERS, NONE = "systems ahead of all rivals", "none"
LEAD = "its difference to the best other method (points)"
ANSWERS = ["problem", "best", "not told apart", "best of the four systems", LEAD, WINNERS, "sentence"]
SYSTEM_COLOR = COLORS[0]
TITLE = "The league: accuracy within the same bytes and seconds, mean over the seeds with 95 % intervals"


def measure(run: RunRecord) -> dict[str, Any]:
    """What a run that has ended says at its end; nothing of another.

    Accuracies are shares of 1: on the clients' own test data, or on that of new clients where the problem is about
    them, and on the common test set; which of these the problem is `judged` by; and that of the `majority` class.
    """
    if not (summary := read_summary(run)):
        return {}
    method, problem = split_name(run.experiment)
    words, task, last = PROBLEMS[problem], read_task_columns(summary), run.rounds[max(run.rounds)]
    clients = summary[NEW_CLIENTS if words.get("new_clients") else "clients"]
    own, _, _, worst_tenth = task.statistics
    shares = {OWN: clients[own], WORST_TENTH: clients[worst_tenth], COMMON: last.get(task.test)}
    return {
        "problem": problem,
        "method": METHODS[method],
        **shares,
        "judged": shares[words.get("judged_by", OWN)],
        "majority": clients.get(MAJORITY_ACCURACY, summary.get(TOKEN_BASELINES, {}).get("bigram_accuracy")),
        "MB": sum(row[BYTES_DOWN] + row[BYTES_UP] for row in run.rounds.values()) / 1e6,
        "virtual seconds": last[VIRTUAL_TIME_S],
        "rounds": max(run.rounds),
    }


def measure_all(runs: Iterable[RunRecord]) -> pd.DataFrame:
    """A row a run that has ended, by seed: its experiment, and what `measure` finds.

    Groups by problem and by method come in the order of the tables.
    """
    frame = make_frame(runs, measure, ("problem", "method", "judged")).dropna(subset="judged").set_index(SEED)
    orders = {"problem": PROBLEMS.keys(), "method": METHODS.values()}
    return frame.astype({name: pd.CategoricalDtype(list(order)) for name, order in orders.items()})


def find_majority(runs: pd.DataFrame) -> pd.Series:
    """By seed what is right without a model, which is the same in all runs of a problem."""
    return runs.groupby(SEED).majority.first().dropna()


def find_rivals(runs: pd.DataFrame) -> dict[str, BySeed]:
    """By method and seed what the methods of a problem are judged by, without those that know the groups."""
    by_method = runs[~runs.method.isin(REFERENCES)].groupby("method", observed=True)
    return {method: own.judged.to_dict() for method, own in by_method}


def tabulate_standings(frame: pd.DataFrame) -> Table:
    """A row a problem and method, best first; the majority class among them."""
    rows = []
    for problem, runs in frame.groupby("problem", observed=True):
        words, lines, baseline = PROBLEMS[problem], [], runs.judged[runs.method == BASELINE]
        for (method, experiment), own in runs.groupby(["method", EXPERIMENT], observed=True):
            shares = [show(own[share], absent="") for share in SHARES]
            costs = [f"{compute_mean(own[cost]):{digits}}" for cost, digits in COSTS.items()]
            search = list_searches()[name_tuned(*split_name(experiment))]
            rate = show_rate(search.flags["search"], list_experiments()[experiment].flags)
            has_pair = len(baseline) and method != BASELINE
            lead = show_difference(own.judged, baseline)[0] if has_pair else ""
            lines.append((own.judged, [method, str(len(own)), *shares, *costs, rate, lead]))
        if len(majority := find_majority(runs)):
            title = words.get("majority", MAJORITY_TITLE)
            lines.append((majority, [title, str(len(majority)), show(majority), *[""] * 7]))
        lines.sort(key=lambda line: -compute_mean(line[0]))
        rows += [[words["title"], *cells] for _, cells in lines]
    shown = ("own accuracy (%)", "worst tenth (%)", "common test set (%)", *COSTS)
    return Table(["problem", "method", "seeds", *shown, "learning rate", "above FedAvg (points)"], rows)


def show_rate(grid: str, flags: Mapping[str, str]) -> str:
    """The learning rate that trials chose, marked where the best may lie beyond the grid; "" before any trials.

    Args:
      grid: of the trials, such as "learning_rate=0.1|0.3|1;momentum=0|0.9", the rates ascending.
      flags: of the experiment.
    """
    # It has three rates and two values of what is the method's own, which may be a rate, too.
    flag, choices = max(parse_search(grid).items(), key=lambda searched: len(searched[1]))
    rate = flags.get(flag, "")
    return rate + {choices[0]: " (lowest)", choices[-1]: " (highest)"}.get(rate, "")


def tabulate_pairs(frame: pd.DataFrame) -> Table:
    """A row a pair of a system and another method."""
    rows = []
    for problem, runs in frame.groupby("problem", observed=True):
        rivals = find_rivals(runs)
        for pair in judge_pairs(list_pairs(list(rivals), SYSTEMS), rivals):
            shown = [pair.difference.format(), format_p_value(pair.p_value), pair.verdict]
            rows.append([PROBLEMS[problem]["title"], pair.first, pair.second, *shown])
    return Table(["problem", "system", "rival", "difference (points)", "p (Holm)", "verdict"], rows)


def tabulate_answers(frame: pd.DataFrame) -> Table:
    """A row a problem that was run: what is best, what cannot be told from it, and the sentence of it.

    Nothing is best where a method has no run with a seed that others have.
    """
    rows = []
    for problem, runs in frame.groupby("problem", observed=True):
        words, rivals = PROBLEMS[problem], find_rivals(runs)
        asked = [METHODS[name] for name in METHODS_OF[problem]]
        counts = runs.groupby("method", observed=False).size()
        missing = [method for method in counts.index[counts < runs.index.nunique()] if method in asked]
        if missing and rivals:
            sentence = f"Not decided, since runs are missing: {', '.join(missing)}."
            rows.append([words["title"], *[""] * (len(ANSWERS) - 2), sentence])
        elif rivals:
            rows.append([words["title"], *_answer(rivals, words["when"])])
    return Table(ANSWERS, rows)


def _answer(rivals: Mapping[str, BySeed], when: str) -> list[str]:
    best = find_best(rivals)
    pairs = judge_pairs([(best, other) for other in rivals if other != best], rivals)
    alike = ", ".join(pair.second for pair in pairs if pair.verdict == UNDECIDED)
    # The best of the four systems, and how far it is ahead of the best other method, by seed.
    system = find_best({method: by_seed for method, by_seed in rivals.items() if method in SYSTEMS})
    other = find_best({method: by_seed for method, by_seed in rivals.items() if method != system})
    lead = show_difference(rivals[system], rivals[other])[0]
    winners = ", ".join(list_winners(rivals, SYSTEMS)) or NONE
    sentence = f"Use {best} when {when}"
    sentence += f"; the seeds do not tell it from: {alike}." if alike else "."
    return [best, alike, system, lead, winners, sentence]


def sum_up(answers: Table, standings: Table) -> str:
    """Whether one of the four systems wins anywhere, and on how many of the problems each ran."""
    rows = [row for row in answers.records if row["best"]]
    won = [f"{row[WINNERS]} on {row['problem']}" for row in rows if row[WINNERS] != NONE]
    answer = f"None of the four systems is shown to be ahead of all rivals on any of {len(rows)} problems."
    if won:
        answer = f"A system is ahead of all rivals on {len(won)} of {len(rows)} problems: {'; '.join(won)}."
    decided = {row["problem"] for row in rows}
    ran = [row["method"] for row in standings.records if row["problem"] in decided]
    return f"{answer} Problems run: {', '.join(f'{system} {ran.count(system)}' for system in SYSTEMS)}."


def compose_problems(tables: Mapping[str, Table]) -> list[str]:
    """All answers in short, a sentence a problem; a folded table of each; then what was not run."""
    answers, standings = tables["answers"], tables["standings"]
    blocks = [format_table(Table(ANSWERS[:-2], [row[:-2] for row in answers.rows]))]
    absent = {words["title"]: words["what"] for words in PROBLEMS.values()}
    sentences, problems = [], []
    for title, best, alike, *_, sentence in answers.rows:
        own = Table(standings.columns[1:], [row[1:] for row in standings.rows if row[0] == title])
        # Bold is what the seeds decide: one method is best, and told from all others.
        is_decided = bool(best) and not alike
        name = f"{title[0].upper()}{title[1:]}"
        sentences.append(f"- {name}: {f'**{sentence}**' if is_decided else sentence}")
        problems += [f"### {name}", absent.pop(title), format_table(own)]
    if sentences:
        blocks += ["\n".join(sentences), fold("All methods by problem", *problems)]
    return [*blocks, f"Not run: {'; '.join(absent)}."] if absent else blocks


def build_league_report(paper: Paper, runs: Sequence[RunRecord]) -> Report:
    """The standings, the pairs and the answers."""
    frame = measure_all(runs)
    answers, standings = tabulate_answers(frame), tabulate_standings(frame)
    tables = {
        "answer": Table(("about", "sentence"), [["the four systems", sum_up(answers, standings)]]),
        "answers": answers,
        "standings": standings,
        "pairs": tabulate_pairs(frame),
    }
    return compose_report(paper, describe("league", tables), [run for run in runs if read_summary(run)], {})


def draw_league(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    """Draws `league.png`: a panel a problem that was run, its methods from best to worst, the four systems coloured."""
    panels = [_build_panel(*problem) for problem in measure_all(runs).groupby("problem", observed=True)]
    panels = panels or [Panel(axes={"title": "no problem"})]
    return draw_panels(arrange(panels, 3), folder / "league.png", TITLE, (4.4, 3.4))


def _build_panel(problem: str, runs: pd.DataFrame) -> Panel:
    words = PROBLEMS[problem]
    judged_by = words.get("judged_by", OWN)
    ordered = runs.groupby("method", observed=True).judged.agg(compute_mean).sort_values(kind="stable").index
    majority = find_majority(runs)

    def paint(ax: "Axes") -> None:
        for place, method in enumerate(ordered):
            values = 100 * runs.judged[runs.method == method]
            look = (SYSTEM_COLOR, MARKERS[1]) if method in SYSTEMS else (GREY, MARKERS[0])
            paint_means(ax, place, list(values), *look)
        if len(majority) and judged_by == OWN:
            title = words.get("majority", MAJORITY_TITLE)
            line = ":" if title == MAJORITY_TITLE else "--"
            ax.axvline(100 * compute_mean(majority), linestyle=line, color="#000000", label=title)
        ax.set_xlim(span_values(np.array(ax.dataLim.intervalx), (0, 100)))
        ax.set_yticks(range(len(ordered)), ordered)
        for label, method in zip(ax.get_yticklabels(), ordered, strict=True):
            label.set_color(SYSTEM_COLOR if method in SYSTEMS else "#000000")

    label = {OWN: "own test data (%)", COMMON: "common test set (%)"}[judged_by]
    return Panel(axes={"title": textwrap.fill(words["title"], width=33), "xlabel": label}, paint=paint)


PAPER = Paper(
    "league",
    build_league_report,
    draw=draw_league,
    further_blocks=compose_problems,
    further_metrics="test_token_accuracy|client_test_token_accuracy|client_test(_token)?_accuracy_worst_tenth",
)
