"""The report of a paper: its claims and our further comparisons, its tables, and the page of these."""

from collections.abc import Mapping, Sequence

from launch.runs.run_records import RunRecord
from reproductions.engine.claims import Claim, ask_printed_tables
from reproductions.engine.collection import PrintedValue, SeedResults
from reproductions.engine.counts import COUNTED_WITH, find_first_alike
from reproductions.engine.folder import WORDS, read_toml
from reproductions.engine.judge import decide_all, decide_further
from reproductions.engine.markdown import Report, Section, Table, tabulate_legend
from reproductions.engine.page import compose_page
from reproductions.engine.paper import Paper
from reproductions.engine.provenance import describe_revisions
from reproductions.engine.remarks import list_remarks


def compose_report(
    paper: Paper,
    tables: Mapping[str, Section],
    runs: Sequence[RunRecord],
    results: SeedResults,
    printed: Sequence[PrintedValue] = (),
    **numbers: object,
) -> Report:
    """The report: claims, further comparisons, the paper's tables, where settings come from, and the page of these.

    Args:
      paper: whose.
      tables: the paper's tables by the names of their CSV files.
      runs: the runs that count.
      results: our numbers by preset, cell and seed.
      printed: the numbers that the paper prints.
      numbers: what the legend of `tables.toml` says as `{name}`.
    """
    sections = dict(tables)
    if paper.claims:
        sections["claims"] = Section("Verdicts", build_verdicts(paper.claims, printed, results, list(paper.presets)))
    shown = paper.further_presets or paper.presets
    labels = {name: label for name, label in paper.presets.items() if name in shown}
    if further := build_further(paper.further, results, labels):
        sections["further"] = further
    csv_tables = {name: section.table for name, section in sections.items()}
    if paper.experiments:
        csv_tables["settings"] = paper.settings
    words = read_toml(paper.path.name, "tables.toml")
    texts = {"all": words["legend"].format(**numbers), "runs": words.get("presets", "")}
    texts["revisions"] = describe_revisions(runs)
    csv_tables["legend"] = tabulate_legend(texts, sections)
    return Report(compose_page(paper, csv_tables, list_remarks(runs)), csv_tables, runs)


def build_verdicts(
    claims: Sequence[Claim], printed: Sequence[PrintedValue], results: SeedResults, presets: Sequence[str]
) -> Table:
    """A row a claim: its rule, its verdict by the printed tables and by each kind of runs, and the numbers that decide.

    A claim that puts a comparison of an earlier one beside another number names that one, with which it is counted.

    Args:
      claims: those of a paper.
      printed: the numbers that it prints.
      results: ours, by preset.
      presets: the kinds of runs that have columns.
    """
    columns = ["section", "claim", "rule", COUNTED_WITH, "printed_tables", "printed_tables_numbers"]
    columns += [f"{preset}{part}" for preset in presets for part in ("", "_numbers")]
    paper = {value.cell: value.value for value in printed}
    outcomes = [[ask_printed_tables(claim, paper.get) for claim in claims]]
    outcomes += [decide_all(claims, results[preset], preset) for preset in presets]
    rows = [
        [claim.section, claim.text, claim.rule, first, *(text for outcome in of_claim for text in outcome)]
        for claim, first, *of_claim in zip(claims, find_first_alike(claims), *outcomes, strict=True)
    ]
    return Table(columns, rows)


def build_further(claims: Sequence[Claim], results: SeedResults, labels: Mapping[str, str]) -> Section | None:
    """Our further comparisons, a family a preset, by what each is called; None if none was run."""
    columns = ["runs", "comparison", "verdict", "p (Holm)", "numbers"]
    rows, left = [], {}
    for preset, label in labels.items() if claims else ():
        decided = [each for each in decide_further(claims, results[preset]) if each.numbers]
        rows += [[label, each.claim.text, each.verdict, format_p_value(each.p_value), each.numbers] for each in decided]
        left[label] = len(claims) - len(decided)
    texts = [WORDS["further"]]
    if not_run := ", ".join(f"{number} of {len(claims)} ({label})" for label, number in left.items() if number):
        texts.append(f"Planned and not run yet: {not_run}. When they are, the p-values of their family can grow.")
    return Section("Our further comparisons", Table(columns, rows), "\n\n".join(texts)) if rows else None


def format_p_value(p_value: float | None) -> str:
    """Four decimals, or that it is less; "" without one."""
    return "" if p_value is None else "< 0.0001" if p_value < 0.0001 else f"{p_value:.4f}"
