"""Counts verdicts: a comparison that a paper puts beside several numbers is one claim, which must meet all of them."""

from collections import Counter
from collections.abc import Mapping, Sequence

from reproductions.engine.claims import Claim
from reproductions.engine.judge import (
    BY_CONSTRUCTION,
    NOT_COMPARABLE,
    NOT_REPRODUCED,
    NOT_RUN,
    REPRODUCED,
    UNDECIDED,
    VERDICTS,
)
from reproductions.engine.markdown import Table

COUNTED_WITH = "counted_with"  # the column of the claims' table
# Of several verdicts on claims that count as one, the first of these that is among them.
WEAKEST_FIRST = (NOT_REPRODUCED, NOT_RUN, UNDECIDED, REPRODUCED, BY_CONSTRUCTION, NOT_COMPARABLE)


def find_first_alike(claims: Sequence[Claim]) -> list[str]:
    """Of each claim the words of the first that compares the same results; "" if it is that, or compares nothing."""
    firsts: dict[frozenset, Claim] = {}
    alike = [firsts.setdefault(claim.compared, claim) if claim.conditions else claim for claim in claims]
    return ["" if first is claim else first.text for first, claim in zip(alike, claims, strict=True)]


def list_counted(claims: Table, presets: Sequence[str]) -> list[dict[str, str]]:
    """The verdict of each claim that counts, by preset: the weakest of those that are counted with it."""
    groups: dict[str, list[Mapping[str, str]]] = {}
    for row in claims.records:
        groups.setdefault(row[COUNTED_WITH] or row["claim"], []).append(row)
    return [
        {preset: min((row[preset] for row in rows), key=WEAKEST_FIRST.index) for preset in presets}
        for rows in groups.values()
    ]


def count_verdicts(claims: Table, presets: Mapping[str, str]) -> Table:
    """A row for each kind of runs: how many claims have each verdict."""
    counted, rows = list_counted(claims, list(presets)), []
    for preset, label in presets.items():
        counts = Counter(verdicts[preset] for verdicts in counted)
        rows.append([label, *(str(counts[verdict]) for verdict in VERDICTS)])
    return Table([f"of {len(counted)} claims", *VERDICTS], rows)
