"""Verdicts are counted by what is compared, not by how often a paper says it."""

from reproductions.engine.counts import WEAKEST_FIRST, count_verdicts, list_counted
from reproductions.engine.judge import VERDICTS
from reproductions.engine.markdown import Table

PRESETS = {"small": "small runs", "large": "large runs"}
CLAIMS = Table(
    ["claim", "counted_with", *PRESETS],
    [
        ["by round 35", "", "undecided", "reproduced"],
        ["more accurate", "", "reproduced", "reproduced"],
        ["by round 45", "by round 35", "reproduced", "not run"],
        ["by round 50", "by round 35", "reproduced", "not comparable"],
    ],
)


def test_claims_with_one_comparison_count_once_with_the_weakest_verdict():
    assert list_counted(CLAIMS, list(PRESETS)) == [
        {"small": "undecided", "large": "not run"},
        {"small": "reproduced", "large": "reproduced"},
    ]
    columns, rows = count_verdicts(CLAIMS, PRESETS)
    assert columns == ["of 2 claims", *VERDICTS]
    assert rows == [["small runs", "1", "0", "1", "0", "0", "0"], ["large runs", "1", "0", "0", "0", "0", "1"]]


def test_every_verdict_has_its_place():
    assert sorted(WEAKEST_FIRST) == sorted(VERDICTS)
