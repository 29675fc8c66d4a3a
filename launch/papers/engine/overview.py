"""`docs/results.md`: the verdicts and key numbers of all papers, each from the tables of its report."""

from collections.abc import Mapping, Sequence

from launch.papers.engine.judge import NOT_COMPARABLE, NOT_RUN, REPRODUCED, VERDICTS
from launch.papers.engine.markdown import Table, format_table, join_blocks
from launch.papers.engine.page import Titles, count_verdicts, fill, read_page
from launch.papers.engine.verdicts import HOW_DECIDED, HOW_FURTHER, HOW_TO_READ, ON_PRINTED

INTRODUCTION = """\
What our runs show beside what four papers print, and two comparisons of ours. Each page has the paper's claims with
what is printed, ours, the interval and the verdict; every number comes from the runs that are kept beside it. Numbers
are means over seeds with 95 % intervals, differences between runs of the same seed.

`python -m launch.report --tables=all --runs_dir=docs/results --output=docs/results` makes all of these pages."""
COMPARED = """\
Tuned is what trials on validation examples chose, with as many trials for each method ([the trials](results/tuning)).
The [published code of FedSiKD](results/fedsikd_published_code.md) was replayed once."""

Tables = Mapping[str, Table]


def compose_overview(papers: Sequence[tuple[Titles, Tables]]) -> str:
    """The page as Markdown, for all papers in their order."""
    blocks = ["# Results", INTRODUCTION, summarize(papers)]
    judged = [(titles, tables) for titles, tables in papers if "claims" in tables]
    columns = ["page", "runs", "claims", *VERDICTS]
    rows = [
        [name_page(titles), label, str(len(tables["claims"].rows)), *counts]
        for titles, tables in judged
        for label, *counts in count_verdicts(tables["claims"], titles.presets).rows
    ]
    others = [name_page(titles) for titles, tables in papers if "claims" not in tables]
    blocks += ["## Verdicts", format_table(Table(columns, rows)), f"Without claims of a paper: {', '.join(others)}."]
    key = [
        [name_page(titles), each["what"], fill(each["value"], read_page(titles.folder), tables)]
        for titles, tables in papers
        for each in read_page(titles.folder)["key"]
    ]
    blocks += ["## Key numbers", format_table(Table(["page", "what", "ours"], key)), COMPARED, "## Use it?"]
    blocks += [
        "\n".join(
            f"- {name_page(titles)}: {fill(read_page(titles.folder)['use_it'], read_page(titles.folder), tables)}"
            for titles, tables in papers
        )
    ]
    decided = join_blocks([HOW_TO_READ, ON_PRINTED, HOW_DECIDED, f"Our further comparisons: {HOW_FURTHER}"])
    blocks.append(f"<details><summary>How a claim is decided</summary>\n\n{decided}\n\n</details>")
    return join_blocks(blocks) + "\n"


def name_page(titles: Titles) -> str:
    """A link to a paper's page from `docs/`."""
    return f"[{titles.title.partition(':')[0]}](results/{titles.name}.md)"


def summarize(papers: Sequence[tuple[Titles, Tables]]) -> str:
    """The results in one sentence, which the README has as well.

    A claim counts once, by the best that runs of any setting say for it.
    """
    claims = reproduced = decided = judged = 0
    for titles, tables in papers:
        if "claims" in tables:
            judged += 1
            columns = tables["claims"].columns
            places = [list(columns).index(preset) for preset in titles.presets]
            verdicts = [{row[place] for place in places} for row in tables["claims"].rows]
            claims += len(verdicts)
            reproduced += sum(REPRODUCED in each for each in verdicts)
            decided += sum(not each <= {NOT_RUN, NOT_COMPARABLE} for each in verdicts)
    return (
        f"Of {claims} claims of {judged} papers, our runs could test {decided}, and reproduced {reproduced} "
        "in at least one setting."
    )
