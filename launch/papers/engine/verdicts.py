"""The verdicts of a report as a table, a row a claim with the numbers that decide; and how a reader takes them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from launch.papers.engine.claims import Claim, Outcome, ask_printed_tables
from launch.papers.engine.collection import PrintedValue, SeedResults
from launch.papers.engine.judge import Further, decide, decide_further
from launch.papers.engine.markdown import Section, Table

HOW_TO_READ = (
    "A claim is one comparison of means over seeds, or several that must all hold. Runs with the same seed share their "
    "split and their first weights, so algorithms are compared seed by seed. The 95 % interval (Student's t) of the "
    "mean difference decides:\n\n"
    "- *reproduced*: every interval lies on the claimed side;\n"
    "- *not reproduced*: an interval lies on the other side, at the level 1 - 0.05/m for m comparisons. One is enough, "
    "even if others have no runs;\n"
    "- *undecided*: anything else, and always with fewer than three seeds;\n"
    "- *by construction*: the claim follows from the algorithm, so no run decides it. It is not counted as "
    "reproduced;\n"
    "- *not comparable*: no run can decide it;\n"
    "- *not run*: runs that the claim needs are missing, all or some; or it follows from the algorithm with other "
    "settings than these, and nothing measures it here. This speaks neither for the claim nor against it.\n\n"
    "The intervals cover other splits and starts on this test set, not new data."
)
ON_PRINTED = (
    "*Printed tables*: whether the paper's own numbers agree with the claim; *not printed* if it needs others than "
    "those."
)
HOW_DECIDED = (
    "After a comparison, `+1.20 [+0.40, +2.00], n = 5` is the mean difference, its 95 % interval and the number of "
    "seeds; a difference of accuracies is in points. If one quantity is compared with a bound, the interval is that of "
    "its mean. Such an interval knows no limits, so that it can pass 0 or 100 %. *Near* a printed number is a mean "
    "whose interval lies within the claim's margin of it, *far* one whose interval lies outside; beside it stands "
    "where one more run would lie, with 95 % probability. Where all seeds give the same number there is no interval: "
    "three seeds decide, but a tie in all of them decides nothing. Where some runs never reach an accuracy, the exact "
    "sign test over the seeds decides, which cannot decide anything below six seeds, and the numbers are medians. A "
    "claim of several comparisons can be open though a 95 % interval lies on the other side, since one of many will by "
    "accident."
)
HOW_FURTHER = (
    "The paper does not make these comparisons, or not one by one. *Yes*: the comparison holds; *no*: its opposite "
    "does. Those of one kind of runs are a family: their p-values are Holm's, so that the chance of any false verdict "
    "among those with a p-value is at most 5 %. Where all seeds give the same difference there is none. The intervals "
    "are those of each comparison alone, 95 %."
)


class Judgement(NamedTuple):
    """A claim put to the paper's tables and to our runs, by preset."""

    claim: Claim
    printed: Outcome
    ours: Mapping[str, Outcome]


def judge(claim: Claim, printed: Sequence[PrintedValue], results: SeedResults) -> Judgement:
    """Decides a claim for each source."""
    paper = {value.cell: value.value for value in printed}
    ours = {preset: decide(claim, values, preset) for preset, values in results.items()}
    return Judgement(claim, ask_printed_tables(claim, paper.get), ours)


def build_verdicts(judgements: Sequence[Judgement], labels: Mapping[str, str]) -> Table:
    """A row a claim: its rule, its verdict by the printed tables and by each kind of runs, and the numbers that decide.

    Args:
      judgements: of all claims.
      labels: what each preset is called.
    """
    columns = ["section", "claim", "rule", "printed_tables", "printed_tables_numbers"]
    columns += [f"{preset}{part}" for preset in labels for part in ("", "_numbers")]
    rows = []
    for claim, printed, ours in judgements:
        verdicts = [text for preset in labels for text in ours[preset]]
        rows.append([claim.section, claim.text, claim.rule, *printed, *verdicts])
    return Table(columns, rows)


def build_further(claims: Sequence[Claim], results: SeedResults, labels: Mapping[str, str]) -> Section | None:
    """Our further comparisons, a family a preset; None if there are none."""
    if not claims:
        return None
    columns = ["runs", "comparison", "verdict", "p (Holm)", "numbers"]
    rows, left = [], {}
    for preset, label in labels.items():
        decided = [each for each in decide_further(claims, results[preset]) if each.numbers]
        rows += [[label, each.claim.text, each.verdict, _show_p_value(each), each.numbers] for each in decided]
        left[label] = len(claims) - len(decided)
    if not rows:
        return None
    table = Table(columns, rows)
    texts = [HOW_FURTHER]
    if not_run := ", ".join(f"{number} of {len(claims)} ({label})" for label, number in left.items() if number):
        texts.append(f"Planned and not run yet: {not_run}. When they are, the p-values of their family can grow.")
    return Section("Our further comparisons", table, "\n\n".join(texts))


def _show_p_value(further: Further) -> str:
    return "" if further.p_value is None else format_p_value(further.p_value)


def format_p_value(p_value: float) -> str:
    """Four decimals, or that it is less."""
    return "< 0.0001" if p_value < 0.0001 else f"{p_value:.4f}"
