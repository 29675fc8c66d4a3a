"""`docs/results.md`: the verdicts and key numbers of all papers, each from the tables of its report."""

from collections.abc import Mapping, Sequence

from reproductions.engine.folder import WORDS
from reproductions.engine.judge import NOT_COMPARABLE, NOT_RUN, REPRODUCED, VERDICTS, count_verdicts, list_counted
from reproductions.engine.page import fill
from reproductions.engine.paper import Paper
from reproductions.engine.tables import Table, format_table

Tables = Mapping[str, Table]


def compose_overview(papers: Sequence[tuple[Paper, Tables]]) -> str:
    """The page as Markdown, for all papers in their order."""
    blocks = ["# Results", WORDS["introduction"], summarize(papers)]
    columns = ["page", "runs", "claims", *VERDICTS]
    verdicts, others, key, uses = [], [], [], []
    for paper, tables in papers:
        page = paper.page
        name = f"[{page['title'].partition(':')[0]}](results/{paper.name}.md)"
        if "claims" in tables:
            counts = count_verdicts(tables["claims"], paper.presets).rows
            number = str(len(list_counted(tables["claims"], list(paper.presets))))
            verdicts += [[name, label, number, *each] for label, *each in counts]
        else:
            others.append(name)
        key += [[name, each["what"], fill(each["value"], page, tables)] for each in page["key"]]
        uses.append(f"- {name}: {fill(page['use_it'], page, tables)}")
    blocks += ["## Verdicts", format_table(Table(columns, verdicts))]
    blocks += [f"Without claims of a paper: {', '.join(others)}."]
    blocks += ["## Key numbers", format_table(Table(["page", "what", "ours"], key)), WORDS["compared"]]
    blocks += ["## Use it?", "\n".join(uses)]
    decided = "\n\n".join(
        [*map(WORDS.get, ("read", "printed", "decided")), f"Our further comparisons: {WORDS['further']}"]
    )
    blocks.append(f"<details><summary>How a claim is decided</summary>\n\n{decided}\n\n</details>")
    return "\n\n".join(blocks) + "\n"


def summarize(papers: Sequence[tuple[Paper, Tables]]) -> str:
    """The results in one sentence, which the README has as well.

    A claim counts once, by the best that runs of any setting say for it.
    """
    claims = reproduced = decided = judged = 0
    for paper, tables in papers:
        if "claims" in tables:
            judged += 1
            verdicts = [set(each.values()) for each in list_counted(tables["claims"], list(paper.presets))]
            claims += len(verdicts)
            reproduced += sum(REPRODUCED in each for each in verdicts)
            decided += sum(not each <= {NOT_RUN, NOT_COMPARABLE} for each in verdicts)
    return (
        f"Of {claims} claims of {judged} papers, our runs could test {decided}, and reproduced {reproduced} "
        "in at least one setting."
    )
