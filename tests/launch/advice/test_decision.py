"""Every verdict, by small numbers whose p-values are known."""

import pytest
from made_contests import CLASSES, ERRORS, PLAN, make_measured

from launch.advice.choices import choose_row, choose_winner
from launch.advice.decision import ALONE, FEDERATE, NOTHING_LEARNED, UNDECIDED, decide, get_rate, list_open
from launch.advice.measures import Cost
from launch.advice.questions import FEDAVG_MAIN, LEARNED, MAIN, OVER_FEDAVG
from launch.advice.trivial import ALL, OWN

SPREAD = (-0.01, -0.005, 0.0, 0.005, 0.01, 0.02)
OTHER = (0.01, -0.005, 0.005, 0.0, -0.01, 0.02)
FIXED = (0.02, 0.01, 0.005, 0.0, -0.005, -0.01)
ROWS = (make_measured(OWN, (0.5, 0.5, 0.51), FIXED), make_measured(ALL, (0.4, 0.41, 0.4), FIXED))
LOCAL = make_measured("local_only", (0.8, 0.801, 0.799), SPREAD)


def make(name, *means, offsets=OTHER, **fields):
    return make_measured(name, means, offsets, **fields)


def test_federate_with_a_method_that_beats_fedavg():
    methods = [LOCAL, make("fedavg", 0.83, 0.832, 0.831), make("ifca", 0.87, 0.871, 0.869, offsets=SPREAD)]
    found = decide(methods, ROWS, CLASSES)
    assert (found.verdict, found.winner, found.advised, found.alone, found.trivial) == (
        *(FEDERATE, "ifca", "ifca", "local_only", OWN),
    )
    assert found.over_alone.contrast.gain == pytest.approx(0.07) and found.over_fedavg.is_better
    assert list_open(found, methods, CLASSES) == ()


def test_fedavg_is_advised_where_the_winner_cannot_be_told_apart_from_it():
    """0.01, -0.01 and 0.03 more over the seeds: mean 0.01, p = 0.42."""
    methods = [LOCAL, make("fedavg", 0.87, 0.87, 0.87, validation=0.85), make("ifca", 0.88, 0.86, 0.9, validation=0.86)]
    found = decide(methods, ROWS, CLASSES)
    assert (found.verdict, found.winner, found.advised) == (FEDERATE, "ifca", "fedavg")
    assert found.over_alone.first == "fedavg" and found.over_alone.contrast.gain == pytest.approx(0.07)
    assert found.comparisons[OVER_FEDAVG].contrast.gain == pytest.approx(0.01)
    assert set(list_open(found, methods, CLASSES)) == {"ifca", "fedavg"}, "a further seed goes to the two that matter"


def test_the_winner_is_advised_where_fedavg_is_not_itself_better_than_alone():
    """FedAvg gains 0.1, -0.05 and 0.16 over alone: it may be as good as the winner, and as bad as alone."""
    fedavg = make("fedavg", 0.9, 0.75, 0.96, validation=0.84)
    found = decide([LOCAL, fedavg, make("ifca", 0.87, 0.871, 0.869, validation=0.86)], ROWS, CLASSES)
    assert (found.verdict, found.winner, found.advised) == (FEDERATE, "ifca", "ifca")
    assert not found.over_fedavg.is_decided


CALM = make("local_only", 0.7, 0.701, 0.699, offsets=SPREAD)
STEADY = make("fedavg", 0.85, 0.85, 0.85, validation=0.85)
RISKY = make("ifca", 0.9, 0.849, 0.87, validation=0.89)
DITTO = make("ditto", 0.88, 0.882, 0.881, offsets=(0.0, 0.01, -0.005, 0.005, -0.01, 0.02), validation=0.88)


def test_one_model_for_all_is_not_advised_where_several_are_better():
    """IFCA and FedAvg cannot be told apart, but Ditto is beyond doubt better than FedAvg: so it is Ditto, which was
    shown to be, and not IFCA, which was not.
    """
    assert decide([CALM, STEADY, RISKY], ROWS, CLASSES).advised == "fedavg"
    found = decide([CALM, STEADY, RISKY, DITTO], ROWS, CLASSES)
    assert (found.verdict, found.winner, found.advised) == (FEDERATE, "ifca", "ditto")
    assert found.over_alone.contrast.gain == pytest.approx(0.181) and found.over_alone.is_better
    assert found.over_trivial.is_better and found.over_fedavg.is_better
    assert {each.first for each in (found.over_alone, found.over_trivial, found.over_fedavg)} == {"ditto"}


def test_better_than_fedavg_is_not_enough_for_a_method_with_several_models():
    """Ditto gains 0.1, 0.106 and -0.03 over alone, whose seeds differ: of that p = 0.31."""
    uneasy = make("local_only", 0.78, 0.776, 0.911, offsets=SPREAD)
    found = decide([uneasy, STEADY, RISKY, DITTO], ROWS, CLASSES)
    assert found.comparisons["ditto against FedAvg"].is_better
    assert found.comparisons["ditto against alone"].contrast.p_value == pytest.approx(0.31, abs=0.01)
    assert (found.verdict, found.advised) == (UNDECIDED, None)


def test_all_methods_with_several_models_are_one_question():
    """Beside the winner against alone, against FedAvg, and FedAvg against alone: 4, and of the last each has a half."""
    noisy = [make(name, 0.7, 0.9, 0.5) for name in ("fedavg", "local_only")]
    rivals = [DITTO._replace(name=name, tests=noisy[0].tests) for name in ("ditto", "apfl")]
    found = decide([*noisy, RISKY, *rivals], ROWS, CLASSES)
    rates = {name: each.rate for name, each in found.comparisons.items()}
    assert rates[MAIN] == rates[OVER_FEDAVG] == rates[FEDAVG_MAIN] == pytest.approx(0.05 / 4)
    assert rates["ditto against FedAvg"] == rates["apfl against alone"] == pytest.approx(0.05 / 8)


def test_fedavg_is_advised_where_it_is_better_than_alone_and_the_winner_is_not_shown_to_be():
    """IFCA gains 0.1, 0.045 and 0.2 over alone: t = 2.53, p = 0.127; FedAvg 0.15 with each seed but for 0.001."""
    ifca = make("ifca", 0.8, 0.746, 0.899, validation=0.89)
    found = decide([CALM, STEADY, ifca], ROWS, CLASSES)
    assert found.comparisons[MAIN].contrast.p_value == pytest.approx(0.127, abs=0.001)
    assert (found.verdict, found.winner, found.advised) == (FEDERATE, "ifca", "fedavg")
    assert (found.over_alone.first, found.over_trivial.first) == ("fedavg", "fedavg") and found.over_alone.is_better
    assert set(list_open(found, [CALM, STEADY, ifca], CLASSES)) == {"ifca", "fedavg"}


@pytest.mark.parametrize(("number", "verdict"), [(4, UNDECIDED), (6, FEDERATE)])
def test_errors_of_a_few_clients_decide_nothing(number, verdict):
    rows = [make_measured(OWN, (3.5, 3.5, 3.51), FIXED[:number])]
    local = make("local_only", 2.6, 2.601, 2.599, offsets=SPREAD[:number])
    fedavg = make("fedavg", 2.0, 2.01, 2.005, offsets=OTHER[:number])
    assert decide([local, fedavg], rows, ERRORS).verdict == verdict


def test_each_of_two_looks_has_half_the_error():
    """0.04, 0.06, 0.08 over alone: p = 0.0351, enough for one look and not for one of two."""
    methods = [LOCAL, make("ifca", 0.84, 0.861, 0.879, offsets=SPREAD, validation=0.9)]
    one_look = PLAN._replace(most_seeds=3)
    assert (get_rate(PLAN), get_rate(one_look)) == (0.025, 0.05)
    verdicts = [decide(methods, ROWS, CLASSES, get_rate(plan)).verdict for plan in (PLAN, one_look)]
    assert verdicts == [UNDECIDED, FEDERATE]


def test_rows_are_chosen_without_a_look_at_test_examples():
    rows = [make_measured(OWN, (2.0,) * 3, FIXED, 2.0), make_measured(ALL, (1.0,) * 3, FIXED, 3.0)]
    assert choose_row(rows, ERRORS).name == OWN and choose_row(rows, CLASSES).name == ALL
    blind = [each._replace(validations={}) for each in rows]
    assert choose_row(blind, ERRORS).name == OWN and choose_row([], ERRORS) is None
    assert choose_row([blind[0], rows[1]], ERRORS).name == ALL, "the one of which it is known"


def test_a_shared_winner_gives_way_to_several_models_that_are_better_beyond_doubt():
    fedavg = make("fedavg", 0.85, 0.85, 0.85, validation=0.89)
    ditto = make("ditto", 0.88, 0.882, 0.881, offsets=SPREAD, validation=0.88)
    found = decide([LOCAL, fedavg, ditto], ROWS, CLASSES)
    assert (found.winner, found.advised, found.over_alone.first) == ("fedavg", "ditto", "ditto")
    assert found.over_fedavg.second == "fedavg" and found.over_fedavg.is_better


def test_alone():
    methods = [LOCAL, make("fedavg", 0.7, 0.7, 0.701), make("ifca", 0.75, 0.751, 0.749)]
    found = decide(methods, ROWS, CLASSES)
    assert (found.verdict, found.winner, found.advised) == (ALONE, "ifca", "local_only")
    assert found.over_alone.is_worse and list_open(found, methods, CLASSES) == ()


def test_undecided_names_the_two_that_a_further_seed_goes_to():
    """0.02, 0.04 and 0.06 over alone: p = 0.074 over the seeds."""
    methods = [LOCAL, make("fedavg", 0.7, 0.7, 0.7), make("ifca", 0.82, 0.841, 0.859)]
    found = decide(methods, ROWS, CLASSES)
    assert (found.verdict, found.advised) == (UNDECIDED, None)
    assert found.comparisons[MAIN].contrast.p_value == pytest.approx(0.0742, abs=1e-4)
    assert list_open(found, methods, CLASSES) == ("ifca", "local_only")


def test_no_further_seed_where_the_two_are_as_good_as_equal():
    methods = [LOCAL, make("fedavg", 0.801, 0.8, 0.8, offsets=[*SPREAD[:4], 0.011, 0.019])]
    found = decide(methods, ROWS, CLASSES)
    assert found.verdict == UNDECIDED and found.comparisons[MAIN].is_within(0.01)
    assert list_open(found, methods, CLASSES) == ()


def test_nothing_learned_where_no_model_beats_a_fixed_answer():
    """FedAvg gains 0.01, -0.01, 0.02 over the row, local training less than nothing."""
    local = make("local_only", 0.45, 0.47, 0.46)
    methods = [local, make("fedavg", 0.51, 0.49, 0.53)]
    found = decide(methods, ROWS, CLASSES)
    assert (found.verdict, found.alone, found.trivial, found.advised) == (NOTHING_LEARNED, OWN, OWN, None)


def test_better_than_alone_alone_is_not_enough_to_federate():
    """Far better than alone, and 0.02, 0.04, 0.06 over always the same: of that p = 0.074, nothing is learned yet."""
    local = make("local_only", 0.3, 0.301, 0.299, validation=0.6)
    found = decide([local, make("fedavg", 0.52, 0.54, 0.57, offsets=SPREAD)], ROWS, CLASSES)
    assert found.alone == "local_only" and found.comparisons[MAIN].is_better
    assert found.comparisons[LEARNED].contrast.p_value > 0.05 and found.verdict == NOTHING_LEARNED


def test_alone_is_the_better_of_both_in_validation():
    """Local training is behind each client's own most frequent class: that is what federation must beat."""
    rows = [make_measured(OWN, (0.9, 0.9, 0.901), FIXED), make_measured(ALL, (0.4, 0.4, 0.4), FIXED)]
    found = decide([LOCAL, make("fedavg", 0.87, 0.871, 0.869)], rows, CLASSES)
    assert (found.alone, found.verdict) == (OWN, NOTHING_LEARNED)


def test_holm_counts_the_questions():
    """0.04, 0.06, 0.08 over alone: t = 5.196, p = 1 - t / sqrt(29) = 0.0351, below 0.05 and not below 0.05 / 3.

    The winner against FedAvg is open as well, so that Holm ends at the smallest of three.
    """
    ifca = make("ifca", 0.84, 0.861, 0.879, offsets=SPREAD, validation=0.9)
    alone = decide([LOCAL, ifca], ROWS, CLASSES)
    assert alone.comparisons[MAIN].contrast.p_value == pytest.approx(0.0351, abs=1e-4)
    assert (alone.verdict, alone.advised, alone.comparisons[MAIN].rate) == (FEDERATE, "ifca", 0.05)
    both = decide([LOCAL, make("fedavg", 0.84, 0.87, 0.85), ifca], ROWS, CLASSES)
    assert both.verdict == UNDECIDED and both.comparisons[MAIN].rate == pytest.approx(0.05 / 3)
    low, high = both.comparisons[MAIN].ends
    assert low < 0 < high, "the range says the same as the verdict"


def test_errors_are_better_if_they_are_lower():
    rows = [make_measured(OWN, (3.5, 3.5, 3.51), FIXED), make_measured(ALL, (3.9, 3.9, 3.9), FIXED)]
    local = make("local_only", 2.6, 2.601, 2.599, offsets=SPREAD)
    found = decide([local, make("fedavg", 2.3, 2.301, 2.302), make("ditto", 2.0, 2.01, 2.005)], rows, ERRORS)
    assert (found.verdict, found.winner, found.advised, found.trivial) == (FEDERATE, "ditto", "ditto", OWN)
    assert found.over_alone.contrast.gain == pytest.approx(0.595)
    worse = decide([local, make("fedavg", 3.0, 3.001, 3.002)], rows, ERRORS)
    assert worse.verdict == ALONE


def test_few_clients_can_be_enough_if_they_have_many_examples():
    """Two clients: 0.1 more on 2 x 20 examples is chance, on 2 x 2,000 it is not."""
    few = {"sizes": {"site 0": 20, "site 1": 20}}
    rows = [make_measured(OWN, (0.5, 0.5, 0.51), (0, 0.01))]
    for sizes, verdict in ((few, UNDECIDED), ({"sizes": {"site 0": 2000, "site 1": 2000}}, FEDERATE)):
        methods = [make("local_only", 0.8, 0.801, 0.799, offsets=(0, 0.01), **sizes)]
        methods.append(make("fedavg", 0.9, 0.901, 0.902, offsets=(0, 0.01), **sizes))
        assert decide(methods, rows, CLASSES).verdict == verdict


def test_two_seeds_decide_nothing():
    methods = [make("local_only", 0.5, 0.5), make("fedavg", 0.9, 0.9)]
    rows = [make_measured(OWN, (0.4, 0.4), SPREAD)]
    found = decide(methods, rows, CLASSES)
    assert found.verdict == UNDECIDED and found.over_alone.ends is None


@pytest.mark.parametrize(
    ("methods", "missing"),
    [([], "a federated method"), ([LOCAL], "a federated method"), ([make("fedavg", 0.8, 0.8, 0.8)], "training alone")],
)
def test_what_has_no_run_is_named(methods, missing):
    found = decide(methods, [], CLASSES)
    assert found.verdict == UNDECIDED and found.why == f"a finished run of {missing} on a fresh seed"
    assert list_open(found, methods, CLASSES) == tuple(each.name for each in methods)


def test_without_rows_the_better_one_is_advised():
    found = decide([LOCAL, make("fedavg", 0.87, 0.871, 0.869)], [], CLASSES)
    assert (found.verdict, found.trivial, found.over_trivial) == (FEDERATE, None, None)


def test_of_methods_within_a_tenth_of_a_point_the_one_that_sends_least_wins():
    dear = make("ifca", 0.9, 0.9, 0.9, validation=0.9008, cost=Cost(4e6))
    cheap = make("fedavg", 0.8, 0.8, 0.8, validation=0.9, cost=Cost(1e6))
    assert choose_winner([dear, cheap], CLASSES).name == "fedavg"
    assert choose_winner([dear._replace(validations=dict.fromkeys(range(3), 0.9012)), cheap], CLASSES).name == "ifca"


def test_the_winner_is_chosen_without_a_look_at_test_examples():
    methods = [make("fedavg", 0.9, 0.9, 0.9, validation=0.8), make("ifca", 0.1, 0.1, 0.1, validation=0.9)]
    assert choose_winner(methods, CLASSES).name == "ifca"


def test_a_further_seed_makes_no_winner():
    """Over the two seeds that all have, IFCA reaches 0.9; FedAvg has 0.7, and its third seed beside it."""
    best = make("ifca", 0.9, 0.9, validation=0.9)
    worst = make("fedavg", 0.7, 0.7, 0.7, validation=0.7)
    other = make("ditto", 0.8, 0.8, validation=0.8)
    assert choose_winner([worst, best, other], CLASSES).name == "ifca"
    shining = worst._replace(validations={0: 0.7, 1: 0.7, 2: 1.0})
    assert choose_winner([shining, best], CLASSES).name == "ifca", "a seed that others lack is not counted"
    first, second = best._replace(validations={0: 0.9}), worst._replace(validations={1: 0.7})
    assert choose_winner([second, first], CLASSES).name == "ifca", "without a common seed each has its own mean"


def test_a_winner_with_too_few_seeds_leaves_fedavg_what_it_has_shown():
    methods = [LOCAL, make("fedavg", 0.87, 0.871, 0.869, validation=0.86), make("ifca", 0.9, 0.9, validation=0.89)]
    found = decide(methods, ROWS, CLASSES)
    assert (found.verdict, found.winner, found.advised) == (FEDERATE, "ifca", "fedavg")
    assert found.over_fedavg.ends is None and set(list_open(found, methods, CLASSES)) == {"ifca", "fedavg"}
