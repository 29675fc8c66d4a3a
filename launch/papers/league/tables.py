"""The league: a table a problem, the pairs that decide, and one sentence each. Imports no TensorFlow."""

from collections.abc import Mapping, Sequence

from launch.papers.engine.equivalence import compare_by_seed
from launch.papers.engine.markdown import Report, Table, format_table
from launch.papers.engine.paper import Paper
from launch.papers.engine.report import compose_report, format_p_value
from launch.papers.engine.tables import BySeed, Values, collect, count, describe, show
from launch.papers.league.figure import draw_league
from launch.papers.league.measures import (
    COMMON,
    MAJORITY,
    MEGABYTES,
    METHODS,
    OWN,
    PROBLEMS,
    REFERENCES,
    ROUNDS,
    SECONDS,
    SYSTEMS,
    WORST_TENTH,
    measure,
    name_experiment,
    read_rates,
)
from launch.papers.league.pairs import UNDECIDED, find_best, judge_pairs, list_system_pairs, list_winners
from launch.runs.columns import TEST_ACCURACY
from launch.runs.run_records import RunRecord

STANDINGS = (
    *("problem", "method", "seeds", "own accuracy (%)", "worst tenth (%)", "common test set (%)"),
    *("MB", "virtual seconds", "rounds", "learning rate", "above FedAvg (points)"),
)
PAIRS = ("problem", "system", "rival", "difference (points)", "p (Holm)", "verdict")
ANSWERS = ("problem", "best", "as good", "systems ahead of all rivals", "sentence")
BASELINE = "fedavg"
LOWEST, HIGHEST = "lowest", "highest"
MAJORITY_TITLE = "each client's majority class"


def find_values(values: Values, problem: str, number: str) -> dict[str, BySeed]:
    """A number by method and seed, of the methods that were run."""
    found = {method: values.get((name_experiment(method, problem), number), {}) for method in METHODS}
    return {method: by_seed for method, by_seed in found.items() if by_seed}


def tabulate_standings(values: Values) -> Table:
    """A row a problem and method, best first; the majority class among them."""
    rows = []
    for problem, words in PROBLEMS.items():
        own = find_values(values, problem, OWN)
        ordered = sorted(own, key=lambda method: -_mean(own[method]))
        lines = [(_mean(own[method]), _describe_method(values, problem, method)) for method in ordered]
        if majority := next(iter(find_values(values, problem, MAJORITY).values()), None):
            shown = show(majority, TEST_ACCURACY)
            lines.append((_mean(majority), [MAJORITY_TITLE, count(majority), shown, *[""] * 7]))
        rows += [[words["title"], *cells] for _, cells in sorted(lines, key=lambda line: -line[0])]
    return Table(STANDINGS, rows)


def _mean(by_seed: BySeed) -> float:
    return sum(by_seed.values()) / len(by_seed)


def _describe_method(values: Values, problem: str, method: str) -> list[str]:
    experiment = name_experiment(method, problem)
    own, worst, common, sent, seconds, rounds = (
        values.get((experiment, number), {}) for number in (OWN, WORST_TENTH, COMMON, MEGABYTES, SECONDS, ROUNDS)
    )
    baseline = values.get((name_experiment(BASELINE, problem), OWN), {})
    difference = compare_by_seed(own, baseline).format() if baseline and method != BASELINE else ""
    shares = [show(each, TEST_ACCURACY, "") for each in (own, worst, common)]
    costs = [f"{_mean(sent):.1f}", f"{_mean(seconds):.0f}", f"{_mean(rounds):.0f}"]
    return [METHODS[method], count(own), *shares, *costs, format_rate(*read_rates(experiment)), difference]


def format_rate(rate: float | None, choices: Sequence[float]) -> str:
    """A rate that trials chose, marked where the best may lie beyond the grid."""
    if rate is None:
        return ""
    edge = {choices[0]: LOWEST, choices[-1]: HIGHEST}.get(rate)
    return f"{rate:g} ({edge})" if edge else f"{rate:g}"


def tabulate_pairs(values: Values) -> Table:
    """A row a pair that decides whether a system wins a problem."""
    rows = []
    for problem, words in PROBLEMS.items():
        own = find_values(values, problem, OWN)
        for pair in judge_pairs(list_system_pairs(_list_rivals(own), SYSTEMS), own):
            shown = [pair.difference.format(), format_p_value(pair.p_value), pair.verdict]
            rows.append([words["title"], METHODS[pair.first], METHODS[pair.second], *shown])
    return Table(PAIRS, rows)


def _list_rivals(own: Mapping[str, BySeed]) -> list[str]:
    return [method for method in own if method not in REFERENCES]


def tabulate_answers(values: Values) -> Table:
    """A row a problem: what is best, what is as good, and the sentence of it."""
    rows = []
    for problem, words in PROBLEMS.items():
        own = find_values(values, problem, OWN)
        rivals = {method: own[method] for method in _list_rivals(own)}
        if not rivals:
            continue
        best = find_best(rivals)
        further = judge_pairs([(best, other) for other in rivals if other != best], rivals)
        as_good = [METHODS[pair.second] for pair in further if pair.verdict == UNDECIDED]
        won = list_winners(judge_pairs(list_system_pairs(list(rivals), SYSTEMS), rivals), SYSTEMS)
        sentence = f"Use {METHODS[best]} when {words['when']}"
        sentence += f"; not decidedly behind: {', '.join(as_good)}." if as_good else "."
        winners = ", ".join(METHODS[system] for system in won) or "none"
        rows.append([words["title"], METHODS[best], ", ".join(as_good), winners, sentence])
    return Table(ANSWERS, rows)


def sum_up(answers: Table) -> str:
    """Whether one of the four systems wins anywhere, in one sentence."""
    won = [(row["problem"], row["systems ahead of all rivals"]) for row in answers.records]
    number = len(won)
    won = [f"{winners} on {problem}" for problem, winners in won if winners != "none"]
    if not won:
        return f"None of the four systems is ahead of all rivals on any of {number} problems."
    return f"A system is ahead of all rivals on {len(won)} of {number} problems: {'; '.join(won)}."


def compose_problems(tables: Mapping[str, Table]) -> list[str]:
    """For each problem that was run its sentence and its table; then what was not run."""
    blocks, absent = [], []
    sentences = {row["problem"]: row["sentence"] for row in tables["answers"].records}
    for words in PROBLEMS.values():
        title = words["title"]
        if title in sentences:
            rows = [row[1:] for row in tables["standings"].rows if row[0] == title]
            blocks += [f"## {title[0].upper()}{title[1:]}", f"{words['what']} **{sentences[title]}**"]
            blocks.append(format_table(Table(STANDINGS[1:], rows)))
        else:
            absent.append(title)
    return [*blocks, f"Not run: {'; '.join(absent)}."] if absent else blocks


def build_league_report(paper: Paper, runs: Sequence[RunRecord]) -> Report:
    """The standings, the pairs and the answers."""
    ended = [run for run in runs if measure(run)]
    values = collect(ended, measure)
    answers = tabulate_answers(values)
    tables = {
        "answer": Table(("about", "sentence"), [["the four systems", sum_up(answers)]]),
        "answers": answers,
        "standings": tabulate_standings(values),
        "pairs": tabulate_pairs(values),
    }
    return compose_report(paper, describe("league", tables), ended, {})


PAPER = Paper(
    "league",
    build_league_report,
    draw=draw_league,
    further_blocks=compose_problems,
    further_metrics="test_token_accuracy|client_test_token_accuracy|client_test(_token)?_accuracy_worst_tenth",
)
