"""Every rule of the judge is put to hand-made runs that must give each of its verdicts."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reproductions.engine.claim_rows import Claim
from reproductions.engine.collection import Cell
from reproductions.engine.comparisons import SLACK, Condition
from reproductions.engine.judge import (
    BY_CONSTRUCTION,
    NOT_COMPARABLE,
    NOT_REPRODUCED,
    NOT_RUN,
    REPRODUCED,
    UNDECIDED,
    VERDICTS,
    WEAKEST_FIRST,
    count_verdicts,
    decide,
    decide_all,
    decide_further,
    gather,
    list_counted,
)
from reproductions.engine.tables import Table

OURS = Cell("mnist", "0.1", "ours", 5, "test_accuracy")
OTHER = OURS._replace(algo="other")
LOSS, OTHER_LOSS = OURS._replace(metric="test_loss"), OTHER._replace(metric="test_loss")


def bounded(cell, text, **bounds):
    return Condition(((1, cell),), text, **bounds)


def at_most(cell, text, most):
    return bounded(cell, text, below=most + SLACK)


def exceeds(first, second, text):
    return Condition(((1, first), (-1, second)), text, above=0)


LEADS = exceeds(OURS, OTHER, "ours {0}, other {1}")


def claim_of(*conditions, **fields):
    return Claim("V", "we lead", "we lead", conditions, **fields)


def by_seed(*values):
    return dict(enumerate(values))


def rule(condition, ours, other=None):
    """The verdict and numbers of a claim of one comparison."""
    metric = condition.cells[0].metric
    values = {OURS._replace(metric=metric): by_seed(*ours)}
    if other is not None:
        values[OTHER._replace(metric=metric)] = by_seed(*other)
    return decide(claim_of(condition), values)


IN_ALL = ": the same difference in all 3 seeds"


@pytest.mark.parametrize(
    ("ours", "other", "verdict", "words"),
    [
        # Differences 0.01, 0.02, 0.03: the interval is 0.02 +- 0.0248, as in test_intervals.
        ((0.81, 0.82, 0.83), (0.8, 0.8, 0.8), UNDECIDED, "+2.00 [-0.48, +4.48], n = 3"),
        ((0.84, 0.85, 0.86), (0.8, 0.8, 0.8), REPRODUCED, "ours 85.00 %, other 80.00 %: +5.00 [+2.52, +7.48], n = 3"),
        ((0.74, 0.75, 0.76), (0.8, 0.8, 0.8), NOT_REPRODUCED, "-5.00 [-7.48, -2.52], n = 3"),
        ((0.9, 0.95), (0.1, 0.2), UNDECIDED, "ours 92.50 %, other 15.00 %: 2 seeds"),  # which decide nothing
        ((0.2, 0.5, 0.8), (0.19, 0.48, 0.77), UNDECIDED, "+2.00 [-0.48, +4.48], n = 3"),  # in pairs
        ((0.25, 0.55, 0.86), (0.2, 0.49, 0.79), REPRODUCED, ", n = 3"),  # far apart by seed, but alike in pairs
        # The same in all seeds needs no interval, and nor does a tie, which may be off by rounding.
        ((0.75, 0.5, 0.25), (0.5, 0.25, 0.0), REPRODUCED, IN_ALL),
        ((0.5, 0.25, 0.0), (0.75, 0.5, 0.25), NOT_REPRODUCED, IN_ALL),
        ((0.1 + 0.2, 0.3, 0.3), (0.3, 0.3, 0.3), UNDECIDED, ": a tie in all 3 seeds"),
    ],
)
def test_a_lead_is_judged_by_pairs(ours, other, verdict, words):
    outcome = rule(LEADS, ours, other)
    assert outcome.verdict == verdict and outcome.numbers.endswith(words)


def test_only_seeds_that_both_have_are_paired():
    values = {OURS: {0: 0.84, 1: 0.85, 2: 0.86, 9: 0.0}, OTHER: {0: 0.8, 1: 0.8, 2: 0.8, 7: 1.0}}
    outcome = decide(claim_of(LEADS), values)
    assert outcome.verdict == REPRODUCED and outcome.numbers.endswith("n = 3")


ALIKE = Condition(((1, OURS), (-1, OTHER)), "{0} {1}", above=-0.02, below=0.02)


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ((0.001, 0.002, 0.003), REPRODUCED),  # 0.002 +- 0.0025
        ((0.01, 0.02, 0.03), UNDECIDED),
        ((0.05, 0.06, 0.07), NOT_REPRODUCED),  # 0.06 +- 0.0248
        ((-0.07, -0.06, -0.05), NOT_REPRODUCED),
    ],
)
def test_alike_needs_the_interval_between_the_bounds(differences, verdict):
    assert rule(ALIKE, differences, (0, 0, 0)).verdict == verdict


NEAR = bounded(LOSS, "ours {0}", above=1.45 - 0.25, below=1.45 + 0.25, is_near=True)


@pytest.mark.parametrize(
    ("losses", "verdict", "word"),
    [
        ((1.41, 1.42, 1.43), REPRODUCED, "near"),  # 1.42 +- 0.025
        ((1.1, 1.2, 1.3), UNDECIDED, "undecided"),  # 1.2 +- 0.25
        ((0.7, 0.8, 0.9), NOT_REPRODUCED, "far"),  # 0.8 +- 0.25
    ],
)
def test_a_printed_number_is_near_or_far(losses, verdict, word):
    outcome = rule(NEAR, losses)
    assert outcome.verdict == verdict and f": {word}; mean [" in outcome.numbers


def test_a_printed_number_stands_beside_the_interval_of_one_run():
    """0.8, deviation 0.1: the mean within 0.248, one run within 0.497 of it."""
    text = "ours 0.80: far; mean [0.55, 1.05], n = 3; margin [1.20, 1.70]; one run [0.30, 1.30]"
    assert rule(NEAR, (0.7, 0.8, 0.9)).numbers == text


FEW = at_most(OURS._replace(metric="models"), "models {0}", 6)


@pytest.mark.parametrize(
    ("models", "verdict"), [((6, 6, 6), REPRODUCED), ((7, 7, 7), NOT_REPRODUCED), ((6, 6), UNDECIDED)]
)
def test_the_same_in_all_seeds_needs_no_interval(models, verdict):
    outcome = rule(FEW, models)
    assert outcome.verdict == verdict
    assert outcome.numbers.endswith("the same in all 3 seeds" if len(models) == 3 else "2 seeds")


ROUNDS = OURS._replace(metric="rounds")
FASTER = exceeds(ROUNDS._replace(algo="other"), ROUNDS, "other {0}, ours {1} rounds")
NEVER = math.inf


@pytest.mark.parametrize(
    ("ours", "other", "verdict", "words"),
    [
        ((9,) * 6, (NEVER,) * 6, REPRODUCED, "6 of 6 seeds"),  # 0.025 ** (1/6) is above 1/2
        ((9,) * 5, (NEVER,) * 5, UNDECIDED, "5 of 5 seeds"),
        ((NEVER,) * 6, (9,) * 6, NOT_REPRODUCED, "0 of 6 seeds"),
        ((9, 9, 9, 9, 9, NEVER), (NEVER,) * 6, UNDECIDED, "5 of 5 seeds on the claimed side, 1 tie"),
        ((NEVER,) * 6, (NEVER,) * 6, UNDECIDED, "0 of 0 seeds on the claimed side, 6 ties"),
        ((9,) * 6 + (NEVER,), (9,) * 7, UNDECIDED, "0 of 1 seeds on the claimed side, 6 ties"),
        # A tie lies on neither side, also one that is off by rounding. The text has medians.
        ((9, 9, 9), (9, 9, 9), UNDECIDED, ": a tie in all 3 seeds"),
        ((7, 8, 9), (7, 8, 9), UNDECIDED, ": a tie in all 3 seeds"),
        ((9, 9, 9), (NEVER, 9 + 1e-12, 9 + 1e-12), UNDECIDED, ": 1 of 1 seeds on the claimed side, 2 ties"),
        ((9, 11, NEVER), (NEVER, NEVER, 20), UNDECIDED, "other never, ours 11.00 rounds: 2 of 3 seeds on the claimed"),
        # Rounds that all reach have an interval.
        ((9, 10, 11), (20, 20, 20), REPRODUCED, "+10.00 [+7.52, +12.48], n = 3"),
    ],
)
def test_what_some_runs_never_reach_is_judged_by_signs(ours, other, verdict, words):
    outcome = rule(FASTER, ours, other)
    assert outcome.verdict == verdict and words in outcome.numbers


BY_ROUND = at_most(ROUNDS, "round {0}", 35)


@pytest.mark.parametrize(
    ("rounds", "verdict"),
    [
        ((NEVER, NEVER, NEVER), NOT_REPRODUCED),
        ((20, 21, NEVER), UNDECIDED),
        ((20, 21, 22), REPRODUCED),
        ((20, NEVER), UNDECIDED),
    ],
)
def test_a_round_that_some_runs_never_reach(rounds, verdict):
    assert rule(BY_ROUND, rounds).verdict == verdict


def three(mean):
    """Three seeds whose mean has the 95 % interval mean +- 0.0248."""
    return by_seed(mean - 0.01, mean, mean + 0.01)


A, B, C = (OURS._replace(round_num=i) for i in (1, 2, 3))


def lead_of(cell):
    return bounded(cell, "{0}", above=0)


@pytest.mark.parametrize(
    ("means", "verdict"),
    [
        ((0.05, 0.05, 0.05), REPRODUCED),
        ((0.05, 0.05, 0.02), UNDECIDED),
        # One of three must lie on the other side at 1 - 0.05/3: t of 2 degrees is 7.65, so +- 0.0442.
        ((0.05, 0.05, -0.03), UNDECIDED),
        ((0.05, 0.05, -0.05), NOT_REPRODUCED),
    ],
)
def test_a_claim_of_three_comparisons(means, verdict):
    values = dict(zip((A, B, C), map(three, means), strict=True))
    assert decide(claim_of(*map(lead_of, (A, B, C))), values).verdict == verdict


def test_alone_that_comparison_lies_on_the_other_side():
    assert decide(claim_of(lead_of(C)), {C: three(-0.03)}).verdict == NOT_REPRODUCED


def test_what_is_open_or_against_is_listed_and_of_a_long_claim_the_closest():
    values = {A: three(0.05), B: three(0.02), C: three(-0.05)}
    claim = claim_of(*map(lead_of, (A, B, C)))
    assert decide(claim, values).numbers == "1 of 3 comparisons on the other side: -5.00 %: [-7.48, -2.52], n = 3"
    assert decide(claim, values | {C: three(0.03)}).numbers.startswith("1 of 3 comparisons open: 2.00 %: [-0.48")
    closest = decide(claim, values | {B: three(0.03), C: three(0.04)}).numbers
    assert closest == "all 3 comparisons, the closest: 3.00 %: [0.52, 5.48], n = 3"


@pytest.mark.parametrize(
    ("values", "verdict", "numbers"),
    [
        ({}, NOT_RUN, ""),
        ({A: three(0.05)}, NOT_RUN, "1 of 2 comparisons have their runs"),
        ({A: three(-0.06)}, NOT_REPRODUCED, "-6.00 %: [-8.48, -3.52], n = 3"),
        # Of two, missing ones counted, at 0.975: +- 0.0358.
        ({A: three(-0.03)}, NOT_RUN, "1 of 2 comparisons have their runs"),
    ],
)
def test_missing_runs_leave_a_claim_open_unless_others_decide_against_it(values, verdict, numbers):
    assert decide(claim_of(*map(lead_of, (A, B))), values) == (verdict, numbers)


@pytest.mark.parametrize(
    ("constructed_in", "values", "preset", "verdict", "numbers"),
    [
        ({"cpu"}, {A: three(-0.05)}, "cpu", BY_CONSTRUCTION, "it is so; -5.00 %: [-7.48, -2.52], n = 3"),
        ({"cpu"}, {}, "cpu", BY_CONSTRUCTION, "it is so"),
        ({"cpu"}, {A: three(-0.05)}, "paper", NOT_REPRODUCED, "-5.00 %: [-7.48, -2.52], n = 3"),
        (set(), {}, "any", BY_CONSTRUCTION, "it is so"),
    ],
)
def test_what_follows_from_the_algorithm_is_not_decided_by_runs(constructed_in, values, preset, verdict, numbers):
    claim = claim_of(lead_of(A), by_construction="it is so", constructed_in=frozenset(constructed_in))
    assert decide(claim, values, preset) == (verdict, numbers)


def test_our_own_comparisons_are_corrected_as_a_family():
    """Alone 0.03 +- 0.0248 would decide at 5 %: p = 0.0351. In a family of two it is doubled, and decides nothing."""
    values = {A: three(0.03), B: three(0.03), C: three(-0.2)}
    claims = [claim_of(lead_of(cell)) for cell in (A, B, C)]
    assert decide_further(claims[:1], values)[0].verdict == "yes"
    first, second, third = decide_further(claims, values)
    assert (first.verdict, second.verdict, third.verdict) == (UNDECIDED, UNDECIDED, "no")
    assert (first.p_value, second.p_value) == pytest.approx((0.0701, 0.0701), abs=1e-4)


@pytest.mark.parametrize(
    ("first", "second", "verdict", "p_value"),
    [
        (0.2, 0.03, "yes", 0.0351),
        (0.03, 0.2, "yes", 0.0351),
        (0.2, 0.02, UNDECIDED, 0.0742),
        (0.2, -0.03, UNDECIDED, 0.0701),
        (0.03, -0.2, "no", 2 * 0.000832),
        (-0.03, -0.2, "no", 2 * 0.000832),
    ],
)
def test_of_several_conditions_of_our_own_comparison_all_must_hold(first, second, verdict, p_value):
    """0.2 +- 0.0248 and 0.03: the weaker has p = 0.0351. Against one of two it counts twice; without runs of all, none.

    -0.03 has 0.0351 as well, so 0.0701; -0.2 has 1 - t / sqrt(t^2 + 2) with t = 0.2 sqrt(3) / 0.01, 0.000832.
    """
    claim = claim_of(lead_of(A), lead_of(B))
    (found,) = decide_further([claim], {A: three(first), B: three(second)})
    assert (found.verdict, found.p_value) == (verdict, pytest.approx(p_value, abs=1e-4))
    assert found.numbers.count("n = 3") == 2 and decide_further([claim], {A: three(first)})[0].verdict == NOT_RUN


def test_our_own_comparisons_by_signs_and_counts():
    values = {ROUNDS: by_seed(*[9] * 6), ROUNDS._replace(algo="other"): by_seed(*[NEVER] * 6)}
    (decided,) = decide_further([claim_of(FASTER)], values)
    assert (decided.verdict, decided.p_value) == ("yes", pytest.approx(2 / 64))
    same, none = decide_further([claim_of(FEW), claim_of(lead_of(A))], {FEW.cells[0]: by_seed(7, 7, 7)})
    assert (same.verdict, same.p_value) == ("no", None) and none.verdict == NOT_RUN
    (two,) = decide_further([claim_of(lead_of(A))], {A: by_seed(0.1, 0.2)})
    assert two.verdict == UNDECIDED


@pytest.mark.parametrize(
    ("differences", "p_value", "verdict"),
    [
        ((-0.01, 0.0, 0.01), 0.0741, UNDECIDED),  # 0.02 from either bound: t = 2 sqrt(3)
        ((0.004, 0.014, 0.024), 0.4078, UNDECIDED),  # 0.006 from the nearer bound: t = 0.6 sqrt(3)
        ((0.001, 0.002, 0.003), 0.0010, "yes"),  # 0.018 from the nearer: t = 18 sqrt(3)
        ((0.05, 0.06, 0.07), 0.0202, "no"),  # 0.04 from the nearer: t = 4 sqrt(3)
    ],
)
def test_of_two_bounds_the_nearer_one_decides(differences, p_value, verdict):
    """Two-sided p of t with 2 degrees of freedom: 1 - t / sqrt(t^2 + 2)."""
    (found,) = decide_further([claim_of(ALIKE)], {OURS: by_seed(*differences), OTHER: by_seed(0, 0, 0)})
    assert (found.verdict, found.p_value) == (verdict, pytest.approx(p_value, abs=1e-4))


def test_of_ours_too_a_tie_in_all_seeds_decides_nothing():
    (tie,) = decide_further([claim_of(LEADS)], {OURS: by_seed(0.5, 0.6, 0.7), OTHER: by_seed(0.5, 0.6, 0.7)})
    assert (tie.verdict, tie.p_value) == (UNDECIDED, None)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=8), st.floats(-1, 1))
def test_sides_agree_with_levels_and_with_the_mirrored_claim(values, bound):
    evidence = gather(bounded(OURS, "{0}", above=bound), {OURS: by_seed(*values)})
    assert evidence.find_side(0.99) in (0, evidence.find_side(0.95)), "a higher level decides less, and nothing else"
    mirrored = gather(bounded(OURS, "{0}", below=bound), {OURS: by_seed(*values)})
    assert evidence.find_side(0.95) == -mirrored.find_side(0.95)


def test_a_claim_that_contains_another_cannot_be_open_where_that_one_is_not_reproduced():
    """-3 points +- 2.48 at 95 % are on the other side; +- 3.58 at 97.5 %, the level of two comparisons, are not."""
    more = [exceeds(OURS._replace(round_num=r), OTHER, "") for r in range(6, 15)]
    values = {OURS: by_seed(0.5, 0.49, 0.51), OTHER: by_seed(0.53, 0.53, 0.53)}
    values |= {OURS._replace(round_num=r): by_seed(0.9, 0.91, 0.92) for r in range(6, 15)}
    part, whole = claim_of(LEADS), claim_of(LEADS, *more)
    assert [decide(claim, values).verdict for claim in (part, whole)] == [NOT_REPRODUCED, UNDECIDED]
    found = decide_all([whole, part], values)
    assert [outcome.verdict for outcome in found] == [NOT_REPRODUCED] * 2
    assert found[0].numbers.startswith(found[1].numbers) and found[0].numbers.endswith("not reproduced: we lead")
    without_runs = claim_of(LEADS, exceeds(LOSS, OTHER_LOSS, ""))
    assert decide_all([without_runs], values)[0].verdict == NOT_RUN
    assert decide_all([without_runs, part], values)[0].verdict == NOT_REPRODUCED
    constructed = claim_of(LEADS, by_construction="so it is")
    assert decide_all([constructed, part], values)[0].verdict == BY_CONSTRUCTION


def test_what_runs_cannot_decide_has_its_reason_and_its_numbers():
    values = {OURS: by_seed(0.5, 0.6, 0.7)}
    claim = claim_of(
        bounded(OURS, "ours {0}", above=0.9), not_comparable="too small", not_comparable_in=frozenset({"cpu"})
    )
    verdict, numbers = decide(claim, values, "cpu")
    assert verdict == NOT_COMPARABLE and numbers == "too small; ours 60.00 %: [35.16, 84.84], n = 3"
    assert decide(claim, values, "paper").verdict == NOT_REPRODUCED


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
