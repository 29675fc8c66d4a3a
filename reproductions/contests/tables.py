"""The league at equal costs: its answers, standings, predictions and figure. Imports no TensorFlow.

Every run may spend what FedAvg takes on the same seed, in device seconds or in bytes, so what counts is where it ends.
All tables read their verdicts from one family of pairs a contest (`judging`).
"""

import functools
import pathlib
import statistics
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from launch.console.shown_text import format_count
from launch.contests.problem import COMMON, OWN
from launch.pages.comparison.pairs import AHEAD
from launch.pages.comparison.seed_statistics import UNDECIDED, BySeed, compute_mean, subtract_by_seed
from launch.pages.plots.style import COLORS, MARKERS
from launch.runs.columns import (
    BYTES_DOWN,
    BYTES_UP,
    MAJORITY_ACCURACY,
    TOKEN_BASELINES,
    VIRTUAL_TIME_S,
)
from launch.runs.run_records import RunRecord, read_summary, sum_fine_tuning_s
from launch.runs.task_columns import read_task_columns
from launch.sweeps.tuning.search_space import find_end, parse_search
from reproductions.contests.experiments import EQUAL, TABLE, name_experiment, read_trials, split_argument, split_name
from reproductions.contests.judging import REFERENCES, SYSTEMS, Judged, judge
from reproductions.contests.predictions import HELD, OPEN, PREDICTIONS, list_asked, tell_outcome
from reproductions.contests.problems import NEW, PROBLEMS, find_judged, name_clients, name_judged, read_words
from reproductions.engine.collection import read_toml
from reproductions.engine.figures import GREY, Panel, arrange, draw_panels, paint_means
from reproductions.engine.page import compose_report, fold
from reproductions.engine.paper import Paper
from reproductions.engine.tables import SEED, Report, Table, describe, format_table, make_frame, show, show_difference

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BASELINE = "fedavg"
LIMITS = {"seconds": "most_virtual_s", "bytes": "most_bytes", "rounds": "rounds"}
WORST_TENTH = "worst_tenth"
SHARES = (OWN, WORST_TENTH, COMMON)
COSTS = {"MB": ".1f", "device seconds": ".1f", "rounds": ".0f"}  # how their means look
NOT_RUN, NO_RESULT, TOO_FEW = "not run", "no result", "too few seeds"
LIMITING = EQUAL[:2]  # what the first league limited at once
FLOOR = "without a model"
HEADINGS = {"seconds": "At equal device seconds", "bytes": "At equal bytes", "rounds": "At equal rounds"}
MARKS = dict(zip(EQUAL, MARKERS, strict=False))
BESIDE_BEST, ABOVE, MEDIAN = "beside the best (points)", "above FedAvg (points)", "median"
JUDGED_BY = {OWN: "clients' own test data", NEW: "new clients' own test data", COMMON: "common test set"}
ANSWERS = [
    *("equal", "problem", "judged by", "trials", "best", "accuracy (%)", "not told from it", ABOVE),
    *("best of the four systems", BESIDE_BEST, "sentence"),
]
STANDINGS = [
    *("equal", "problem", "method", "seeds", "own accuracy (%)", "worst tenth (%)", "common test set (%)"),
    *(*COSTS, "ended by", "settings", BESIDE_BEST, MEDIAN, "behind it in", "verdict"),
]
TITLE = "The league: beside the best method of each problem, by seed, with the 95 % interval of each pair alone"


class Contest:
    """One contest.

    Attributes:
      equal, problem: which.
      runs: a row a run, by seed.
      titles: of its methods, by name, as their trials have chosen them.
      num_trials: of a method, the most that one has; points that are the same for a method are one trial.
      without: (title, why it has no result) by method.
      judged: who is ahead of whom; None where no method but a reference has a result.
    """

    def __init__(self, equal: str, problem: str, runs: pd.DataFrame, trials: Iterable[Mapping[str, str]]):
        """`trials` are those of all contests."""
        self.equal, self.problem, self.runs, self.words = equal, problem, runs, read_words(problem)
        own = [row for row in trials if split_name(row["experiment"])[1:] == (equal, problem)]
        self.num_trials = max(Counter(row["experiment"] for row in own).values(), default=0)
        chosen = {row["experiment"]: row for row in own if row["chosen"]}
        ends = {split_name(row["experiment"])[0]: (row["title"], row["why out"]) for row in own}
        self.without = {name: end for name, end in ends.items() if end[1]}
        self._chosen = {name: chosen.get(name_experiment(name, equal, problem), {}) for name in runs.method.unique()}
        self.titles = {name: row.get("title", name) for name, row in self._chosen.items()}
        self.values: dict[str, BySeed] = {name: own.judged.to_dict() for name, own in runs.groupby("method")}
        self.floor = runs.floor.groupby(SEED).first().dropna()
        floor = compute_mean(self.floor) if len(self.floor) else None
        rivals = self.values.keys() - set(REFERENCES)
        asked = list_asked(equal, problem)
        self.judged: Judged | None = judge(self.values, asked, self.titles, floor) if rivals else None

    def subtract(self, first: str, second: str) -> str:
        """The first minus the second in points with its interval; "" if either has no result or both are the same."""
        if first == second or not {first, second} <= self.values.keys():
            return ""
        return show_difference(pd.Series(self.values[first]), pd.Series(self.values[second]))[0]

    def has_enough_seeds(self, method: str) -> bool:
        """Whether a method has results on so many seeds that something can be said of it beside the best."""
        judged = self.judged
        return judged is not None and method in judged.values and not judged.has_too_few_seeds(method, judged.best)

    def count_behind(self, method: str) -> str:
        """In how many seeds it is behind the best method, of those that both have."""
        found = subtract_by_seed(self.values[method], self.values[self.judged.best]).values()
        return f"{sum(value < 0 for value in found)} of {len(found)}"

    def subtract_best(self, method: str) -> list[str]:
        """How far a method is ahead of the best: the mean by seed with its interval, the median, how often behind."""
        best = self.judged.best if self.judged else ""
        if best in ("", method):
            return ["", "", ""]
        found = list(subtract_by_seed(self.values[method], self.values[best]).values())
        median = f"{100 * statistics.median(found):+.2f}" if found else ""
        return [self.subtract(method, best), median, self.count_behind(method)]

    def show_settings(self, method: str) -> str:
        """What trials chose, numbers at an end of what was searched marked so."""
        row = self._chosen[method]
        searched = parse_search(row["searched"]) if row.get("searched") else {}
        shown = []
        for name, value in map(split_argument, row.get("settings", "").split()):
            end = find_end(searched[name], value) if name in searched else ""
            shown.append(f"{name}={value}" + (f" ({end} end)" if end else ""))
        return ", ".join(shown)


def list_contests(runs: Iterable[RunRecord], trials: Iterable[Mapping[str, str]]) -> list[Contest]:
    """The contests whose runs there are, in their order.

    Args:
      runs: of their experiments, each experiment and seed once.
      trials: the rows of the table of trials.
    """
    frame = make_frame(runs, measure, ("equal", "problem", "method", "judged")).dropna(subset="judged")
    trials = list(trials)
    found = {each: own.set_index(SEED) for each, own in frame.groupby(["equal", "problem"])}
    keys = [(equal, problem) for equal in EQUAL for problem in PROBLEMS if (equal, problem) in found]
    return [Contest(*key, found[key], trials) for key in keys]


def measure(run: RunRecord) -> dict[str, Any]:
    """What a run that has ended says at its end; nothing of another.

    Shares of 1: on the clients' own test data, or on that of new clients where the problem is about them, the mean of
    their worst tenth, and on the common test set; which of these the problem is `judged` by, larger is better; and the
    `floor`, what is reached without a model.
    """
    if not (summary := read_summary(run)):
        return {}
    method, equal, problem = split_name(run.experiment)
    task, last = read_task_columns(summary), run.rounds[max(run.rounds)]
    clients = summary[name_clients(problem)]
    own, _, _, worst_tenth = task.statistics
    shares = {OWN: clients[own], WORST_TENTH: clients[worst_tenth], COMMON: last.get(task.test)}
    return {
        "equal": equal,
        "problem": problem,
        "method": method,
        **shares,
        "judged": find_judged(problem, task, summary, last),
        "floor": None
        if name_judged(problem) == COMMON
        else clients.get(MAJORITY_ACCURACY, summary.get(TOKEN_BASELINES, {}).get("bigram_accuracy")),
        "MB": sum(map(_count_bytes, run.rounds.values())) / 1e6,
        "device seconds": last[VIRTUAL_TIME_S] + sum_fine_tuning_s(summary),
        "rounds": max(run.rounds),
        "ended by": _find_end(run, equal),
    }


def _count_bytes(row: Mapping[str, Any]) -> float:
    return row[BYTES_DOWN] + row[BYTES_UP]


def _find_end(run: RunRecord, equal: str) -> str:
    """What a run had no more of. Where bytes are equal, device seconds are limited, too, at ten times FedAvg's."""
    if max(run.rounds) >= run.flags["rounds"] or not run.flags.get(LIMITS[equal]):
        return "rounds"
    if equal == "bytes":
        rows = run.rounds.values()
        has_bytes = sum(map(_count_bytes, rows)) + max(map(_count_bytes, rows)) <= run.flags[LIMITS[equal]]
        return "seconds" if has_bytes else equal
    return equal


def tabulate_answers(contests: Iterable[Contest]) -> Table:
    """A row a contest: what is best, what cannot be told from it, and the sentence of it."""
    return Table(ANSWERS, [[each.equal, each.words["title"], *_answer(each)] for each in contests])


def _answer(contest: Contest) -> list[str]:
    judged, titles, judged_by = contest.judged, contest.titles, JUDGED_BY[name_judged(contest.problem)]
    if judged is None:
        return [judged_by, str(contest.num_trials), *[""] * (len(ANSWERS) - 4)]
    alike = ", ".join(titles[name] for name in judged.alike)
    counted = ", ".join(f"{titles[name]} (behind in {contest.count_behind(name)})" for name in judged.alike)
    systems = {name: judged.values[name] for name in SYSTEMS if contest.has_enough_seeds(name)}
    system = max(systems, key=lambda name: compute_mean(systems[name].values()), default="")
    missing = NO_RESULT if contest.without.keys() & set(SYSTEMS) else ""
    missing = TOO_FEW if judged.values.keys() & set(SYSTEMS) else missing
    shared = ", for one model that all share" if name_judged(contest.problem) == COMMON else ""
    sentence = f"On {contest.words['title']}{shared}, use {titles[judged.best]}"
    sentence += f"; the seeds do not tell it from: {alike}." if alike else "."
    return [
        judged_by,
        str(contest.num_trials),
        titles[judged.best],
        show(contest.runs.judged[contest.runs.method == judged.best]),
        counted,
        contest.subtract(judged.best, BASELINE),
        titles.get(system, missing),
        contest.subtract(system, judged.best) if system else "",
        sentence,
    ]


def tabulate_standings(contests: Iterable[Contest]) -> Table:
    """A row a contest and method, best first; what is reached without a model among them, those without result last."""
    rows, blank = [], [""] * (len(STANDINGS) - 6)
    for contest in contests:
        lines = [(own.judged, _show_method(contest, name, own)) for name, own in contest.runs.groupby("method")]
        if len(floor := contest.floor):
            lines.append((floor, [contest.words.get("floor", FLOOR), str(len(floor)), show(floor), *blank, ""]))
        lines.sort(key=lambda line: -compute_mean(line[0]))
        shown = [cells for _, cells in lines]
        shown += [[title, "0", "", *blank, f"{NO_RESULT}: {why}"] for title, why in contest.without.values()]
        rows += [[contest.equal, contest.words["title"], *cells] for cells in shown]
    return Table(STANDINGS, rows)


def _show_method(contest: Contest, name: str, own: pd.DataFrame) -> list[str]:
    judged = contest.judged
    ended = own["ended by"].value_counts()
    best = judged.best if judged else ""
    verdict = "knows the groups" if name in REFERENCES else "best"
    if best not in ("", name) and name not in REFERENCES:
        verdict = {UNDECIDED: "not told from it", AHEAD: "behind"}.get(judged.find(best, name), "ahead")
        verdict = TOO_FEW if judged.has_too_few_seeds(name, best) else verdict
    return [
        contest.titles[name],
        str(len(own)),
        *(show(own[share], absent="") for share in SHARES),
        *(f"{compute_mean(own[cost]):{digits}}" for cost, digits in COSTS.items()),
        ", ".join(f"{what} ({number})" if len(ended) > 1 else what for what, number in ended.items()),
        contest.show_settings(name),
        *contest.subtract_best(name),
        verdict,
    ]


def tabulate_predictions(contests: Iterable[Contest]) -> Table:
    """A row a contest: what was expected before its first run, what would refute it, and what came."""
    found = {(each.equal, each.problem): each for each in contests}
    rows = []
    for equal in EQUAL:
        for problem, words in PREDICTIONS[equal].items():
            contest = found.get((equal, problem))
            outcome = (NOT_RUN, "")
            if contest and contest.judged:
                outcome = tell_outcome(equal, problem, contest.judged, contest.titles)
            rows.append([equal, read_words(problem)["title"], words["expected"], words["refuted_by"], *outcome])
    return Table(["equal", "problem", "expected", "refuted by", "outcome", "since"], rows)


def sum_up_shortly(contests: Sequence[Contest]) -> str:
    """In how many contests one of the four systems wins, of those in which one has results on enough seeds."""
    asked = [each for each in contests if each.judged and any(map(each.has_enough_seeds, SYSTEMS))]
    won = [each for each in asked if _is_won(each)]
    problems = format_count(len({each.problem for each in asked}), "problem")
    number = f"{format_count(len(asked), 'contest')} on {problems}"
    if not won:
        return f"None of the four systems is ahead of all rivals in any of {number} in which one has results."
    where = [f"{each.titles[each.judged.best]} on {each.words['title']} at equal {each.equal}" for each in won]
    asked_of = f"Of {number} in which one of the four systems has results"
    return f"{asked_of}, one is ahead of all rivals in {len(won)}: {'; '.join(where)}."


def sum_up(contests: Sequence[Contest]) -> str:
    """Which of the four systems wins, and where, at equal device seconds and at equal bytes."""
    sentences = []
    for equal in EQUAL:
        asked = [each for each in contests if each.equal == equal and each.judged]
        where = HEADINGS[equal].lower()
        won = [each for each in asked if _is_won(each)]
        near = [each for each in asked if _list_near(each) and each not in won]
        if not asked:
            continue
        winners = "; ".join(f"{each.titles[each.judged.best]} on {each.words['title']}" for each in won)
        said = f"{where}, {winners or 'none of the four systems'} is ahead of all rivals, "
        ran = [f"{title} in {_count_run(asked, name)}" for name, title in SYSTEMS.items()]
        said += f"of {format_count(len(asked), 'contest')} ({', '.join(ran)})"
        if near:
            said += f"; best or not told from it: {'; '.join(map(_say_near, near))}"
        sentences.append(f"{said[0].upper()}{said[1:]}.")
    return " ".join(sentences) or "No contest was run."


def _is_won(contest: Contest) -> bool:
    return contest.judged.best in SYSTEMS and not contest.judged.alike


def _count_run(contests: Sequence[Contest], system: str) -> str:
    ran = sum(each.has_enough_seeds(system) for each in contests)
    tried = sum(system in each.values or system in each.without for each in contests)
    return f"{ran} and with too few seeds or none in {tried - ran} more" if tried > ran else f"{ran}"


def list_missing(predictions: Table) -> str:
    """Which contests have not been run, in a sentence; "" if all have."""
    said = []
    for equal, heading in HEADINGS.items():
        rows = [row for row in predictions.records if row["equal"] == equal]
        missing = [row["problem"] for row in rows if row["outcome"] == NOT_RUN]
        said += [f"{heading.lower()} {'; '.join(missing)}"] if missing else []
    return f"**Not run:** {', and '.join(said)}." if said else ""


def _list_near(contest: Contest) -> list[str]:
    near = (contest.judged.best, *contest.judged.alike)
    return [contest.titles[name] for name in near if name in SYSTEMS]


def _say_near(contest: Contest) -> str:
    return f"{' and '.join(_list_near(contest))} on {contest.words['title']}"


def tabulate_changes(answers: Table) -> Table:
    """A row a problem that was run: what the first league said, what is said now, and what was not fair there."""
    now = {(row["equal"], row["problem"]): row["sentence"] for row in answers.records}
    rows = []
    for problem, words in read_toml("contests", "first_league.toml").items():
        title = read_words(problem)["title"]
        said = [now.get((equal, title), "") for equal in LIMITING]
        if any(said):
            rows.append([title, words["sentence"], *(each or NOT_RUN for each in said), words["why"]])
    return Table(["problem", "first league", *(f"now, {HEADINGS[each].lower()}" for each in LIMITING), "why"], rows)


def count_predictions(predictions: Table) -> str:
    """How many predictions came true, in a sentence."""
    told = [row["outcome"] for row in predictions.records if row["outcome"] not in (NOT_RUN, OPEN)]
    return f"{told.count(HELD)} of {format_count(len(told), 'prediction')} came true, all written before the first run."


def compose_contests(tables: Mapping[str, Table]) -> list[str]:
    """For either limit the answers in short and a folded table a problem; then what was predicted."""
    answers, standings, blocks = tables["answers"], tables["standings"], []
    for equal, heading in HEADINGS.items():
        own = [row[1:-1] for row in answers.rows if row[0] == equal]
        if not own:
            continue
        # Bold is what the seeds decide: one method is best, and told from all others.
        shown = [
            [problem, judged_by, trials, best if alike else f"**{best}**", accuracy, alike, *further]
            for problem, judged_by, trials, best, accuracy, alike, *further in own
        ]
        blocks += [f"## {heading}", format_table(Table(ANSWERS[1:-1], shown))]
        problems = []
        for row in answers.records:
            if row["equal"] == equal:
                lines = [line[2:] for line in standings.rows if line[:2] == [equal, row["problem"]]]
                words = f"{_find_what(row['problem'])} Judged by the {row['judged by']}."
                problems += [f"### {row['problem']}", words, row["sentence"]]
                problems.append(format_table(Table(STANDINGS[2:], lines)))
        blocks.append(fold(f"All methods {heading.lower()}", *problems))
    predictions = tables["predictions"]
    put = Table(predictions.columns, [row for row in predictions.rows if NOT_RUN not in row])
    blocks += filter(None, [list_missing(predictions)])
    blocks += ["## Predictions", count_predictions(put)]
    blocks.append(fold("What was expected before the first run, and what came", format_table(put)))
    return [*blocks, fold("What the first league said, and why it changed", format_table(tables["changes"]))]


def _find_what(title: str) -> str:
    return next(words["what"] for words in map(read_words, PROBLEMS) if words["title"] == title)


@functools.cache
def _read_kept_trials() -> tuple[dict[str, str], ...]:
    return tuple(read_trials(TABLE))


def build_league_report(paper: Paper, runs: Sequence[RunRecord]) -> Report:
    """The answers, the standings and the predictions."""
    contests = list_contests(runs, _read_kept_trials())
    answers = tabulate_answers(contests)
    tables = {
        "answer": Table(
            ("about", "sentence"), [["the four systems", sum_up(contests)], ["in short", sum_up_shortly(contests)]]
        ),
        "answers": answers,
        "changes": tabulate_changes(answers),
        "standings": tabulate_standings(contests),
        "predictions": tabulate_predictions(contests),
    }
    return compose_report(paper, describe("contests", tables), [run for run in runs if read_summary(run)], {})


def draw_contests(runs: Sequence[RunRecord], folder: pathlib.Path) -> pathlib.Path:
    """Draws `contests.png`: a panel a problem, its methods from best to worst, beside the best at each limit."""
    contests = list_contests(runs, _read_kept_trials())
    by_problem = [[each for each in contests if each.problem == problem] for problem in PROBLEMS]
    panels = [_build_panel(found) for found in by_problem if found] or [Panel(axes={"title": "no problem"})]
    return draw_panels(arrange(panels, 3), folder / "contests.png", TITLE, (4.4, 3.4))


def _build_panel(contests: Sequence[Contest]) -> Panel:
    first = contests[0]
    names = list(dict.fromkeys(name for each in contests for name in each.values))
    reached = {name: next(each.values[name] for each in contests if name in each.values) for name in names}
    names.sort(key=lambda name: compute_mean(reached[name].values()))
    titles = {name: next(each.titles[name] for each in contests if name in each.titles) for name in names}

    def paint(ax: "Axes") -> None:
        for contest in contests:
            offset, marker = 0.2 * (1 - EQUAL.index(contest.equal)), MARKS[contest.equal]
            for place, name in enumerate(names):
                color = COLORS[0] if name in SYSTEMS else GREY
                differences = subtract_by_seed(contest.values.get(name, {}), contest.values[_find_leader(contest)])
                paint_means(ax, place + offset, [100 * each for each in differences.values()], color, marker)
            ax.plot([], [], marker, color=GREY, markersize=4, label=HEADINGS[contest.equal].lower())
        ax.axvline(0, linewidth=0.8, color="#000000")
        ax.set_yticks(range(len(names)), [titles[name] for name in names])
        for label, name in zip(ax.get_yticklabels(), names, strict=True):
            label.set_color(COLORS[0] if name in SYSTEMS else "#000000")

    of = JUDGED_BY[name_judged(first.problem)]
    axes = {"title": textwrap.fill(first.words["title"], width=33), "xlabel": f"points, {of}"}
    return Panel(axes=axes, paint=paint)


def _find_leader(contest: Contest) -> str:
    return contest.judged.best if contest.judged else next(iter(contest.values))


PAPER = Paper(
    "contests",
    build_league_report,
    draw=draw_contests,
    further_blocks=compose_contests,
    further_metrics="test_token_accuracy|client_test_token_accuracy|client_test(_token)?_accuracy_worst_tenth",
)
