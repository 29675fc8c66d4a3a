"""The league: a table a problem, the pairs that decide, and one sentence each. Imports no TensorFlow."""

from collections.abc import Mapping, Sequence

from launch.comparison.pairs import find_best, judge_pairs, list_pairs, list_winners
from launch.comparison.seed_statistics import UNDECIDED, compare_by_seed, compute_mean
from launch.runs.columns import TEST_ACCURACY
from launch.runs.run_records import RunRecord
from reproductions.engine.markdown import Report, Table, format_measured, format_table
from reproductions.engine.paper import Paper
from reproductions.engine.report import compose_report, format_p_value
from reproductions.engine.tables import BySeed, Values, collect, count, describe, show
from reproductions.league.figure import draw_league
from reproductions.league.measures import (
    COMMON,
    MAJORITY,
    MEGABYTES,
    OWN,
    ROUNDS,
    SECONDS,
    WORST_TENTH,
    find_judged,
    find_values,
    list_missing,
    measure,
    read_rates,
    title_majority,
)
from reproductions.league.problems import METHODS, PROBLEMS, REFERENCES, SYSTEMS, name_experiment

STANDINGS = (
    *("problem", "method", "seeds", "own accuracy (%)", "worst tenth (%)", "common test set (%)"),
    *("MB", "virtual seconds", "rounds", "learning rate", "above FedAvg (points)"),
)
PAIRS = ("problem", "system", "rival", "difference (points)", "p (Holm)", "verdict")
WINNERS, NONE = "systems ahead of all rivals", "none"
SHORT_ANSWERS = (
    "problem",
    "best",
    "not told apart",
    "best of the four systems",
    "its difference to the best other method (points)",
)
ANSWERS = (*SHORT_ANSWERS, WINNERS, "sentence")
BASELINE = "fedavg"
LOWEST, HIGHEST = "lowest", "highest"


def tabulate_standings(values: Values) -> Table:
    """A row a problem and method, best first; the majority class among them."""
    rows = []
    for problem, words in PROBLEMS.items():
        judged = find_judged(values, problem)
        lines = [(each, _describe_method(values, problem, method)) for method, each in judged.items()]
        if majority := next(iter(find_values(values, problem, MAJORITY).values()), None):
            shown = show(majority, TEST_ACCURACY)
            lines.append((majority, [title_majority(problem), count(majority), shown, *[""] * 7]))
        lines.sort(key=lambda line: -compute_mean(line[0].values()))
        rows += [[words["title"], *cells] for _, cells in lines]
    return Table(STANDINGS, rows)


def _describe_method(values: Values, problem: str, method: str) -> list[str]:
    experiment = name_experiment(method, problem)
    numbers = (OWN, WORST_TENTH, COMMON, MEGABYTES, SECONDS, ROUNDS)
    *shares, sent, seconds, rounds = (values.get((experiment, number), {}).values() for number in numbers)
    judged = find_judged(values, problem)
    has_pair = BASELINE in judged and method != BASELINE
    difference = compare_by_seed(judged[method], judged[BASELINE]).format() if has_pair else ""
    shown = [format_measured(TEST_ACCURACY, each, "") for each in shares]
    costs = [f"{compute_mean(sent):.1f}", f"{compute_mean(seconds):.0f}", f"{compute_mean(rounds):.0f}"]
    return [METHODS[method], count(judged[method]), *shown, *costs, format_rate(*read_rates(experiment)), difference]


def format_rate(rate: float | None, choices: Sequence[float]) -> str:
    """A rate that trials chose, marked where the best may lie beyond the grid."""
    if rate is None:
        return ""
    edge = {choices[0]: LOWEST, choices[-1]: HIGHEST}.get(rate)
    return f"{rate:g} ({edge})" if edge else f"{rate:g}"


def tabulate_pairs(values: Values) -> Table:
    """A row a pair of a system and another method."""
    rows = []
    for problem, words in PROBLEMS.items():
        rivals = _find_rivals(values, problem)
        for pair in judge_pairs(list_pairs(list(rivals), SYSTEMS), rivals):
            shown = [pair.difference.format(), format_p_value(pair.p_value), pair.verdict]
            rows.append([words["title"], METHODS[pair.first], METHODS[pair.second], *shown])
    return Table(PAIRS, rows)


def _find_rivals(values: Values, problem: str) -> dict[str, BySeed]:
    judged = find_judged(values, problem)
    return {method: by_seed for method, by_seed in judged.items() if method not in REFERENCES}


def tabulate_answers(values: Values) -> Table:
    """A row a problem that was run: what is best, what cannot be told from it, and the sentence of it.

    Nothing is best where a method has no run with a seed that others have.
    """
    rows = []
    for problem, words in PROBLEMS.items():
        rivals = _find_rivals(values, problem)
        if missing := list_missing(values, problem) if rivals else []:
            names = ", ".join(METHODS[method] for method in missing)
            sentence = f"Not decided, since runs are missing: {names}."
            rows.append([words["title"], *[""] * (len(ANSWERS) - 2), sentence])
        elif rivals:
            rows.append([words["title"], *_answer(rivals, words["when"])])
    return Table(ANSWERS, rows)


def _answer(rivals: Mapping[str, BySeed], when: str) -> list[str]:
    best = find_best(rivals)
    pairs = judge_pairs([(best, other) for other in rivals if other != best], rivals)
    alike = ", ".join(METHODS[pair.second] for pair in pairs if pair.verdict == UNDECIDED)
    winners = ", ".join(METHODS[system] for system in list_winners(rivals, SYSTEMS)) or NONE
    sentence = f"Use {METHODS[best]} when {when}"
    sentence += f"; the seeds do not tell it from: {alike}." if alike else "."
    return [METHODS[best], alike, *_place_systems(rivals), winners, sentence]


def _place_systems(rivals: Mapping[str, BySeed]) -> list[str]:
    """The best of the four systems, and how far it is ahead of the best other method, by seed."""
    found = {method: by_seed for method, by_seed in rivals.items() if method in SYSTEMS}
    if not found:
        return ["", ""]
    system = find_best(found)
    others = {method: by_seed for method, by_seed in rivals.items() if method != system}
    lead = compare_by_seed(rivals[system], others[find_best(others)]).format() if others else ""
    return [METHODS[system], lead]


def sum_up(answers: Table, standings: Table) -> str:
    """Whether one of the four systems wins anywhere, and on how many of the problems each ran."""
    rows = [row for row in answers.records if row["best"]]
    won = [f"{row[WINNERS]} on {row['problem']}" for row in rows if row[WINNERS] != NONE]
    answer = f"None of the four systems is shown to be ahead of all rivals on any of {len(rows)} problems."
    if won:
        answer = f"A system is ahead of all rivals on {len(won)} of {len(rows)} problems: {'; '.join(won)}."
    decided = {row["problem"] for row in rows}
    ran = [row["method"] for row in standings.records if row["problem"] in decided]
    counts = [f"{METHODS[system]} {ran.count(METHODS[system])}" for system in SYSTEMS]
    return f"{answer} Problems run: {', '.join(counts)}."


def compose_problems(tables: Mapping[str, Table]) -> list[str]:
    """All answers in short; for each problem that was run its sentence and its table; then what was not run."""
    answers, absent = tables["answers"], []
    blocks = [format_table(Table(SHORT_ANSWERS, [row[: len(SHORT_ANSWERS)] for row in answers.rows]))]
    sentences = {row["problem"]: row["sentence"] for row in answers.records}
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
    answers, standings = tabulate_answers(values), tabulate_standings(values)
    tables = {
        "answer": Table(("about", "sentence"), [["the four systems", sum_up(answers, standings)]]),
        "answers": answers,
        "standings": standings,
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
