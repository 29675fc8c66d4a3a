"""The five sentences, as somebody reads them who has federated nothing yet."""

import re

import pytest
from made_contests import CLASSES, ERRORS, ROWS, make_measured, make_outcome

from launch.advice.contrasts import find_losers
from launch.advice.decision import ALONE, FEDERATE, NOTHING_LEARNED, UNDECIDED
from launch.advice.measures import Cost
from launch.advice.sentences import Numbers, say_advice
from launch.advice.trivial import ALL, OWN
from launch.advice.verdict import assemble
from launch.pages.report.words import NBSP
from launch.runs.task_columns import find_task_columns

EVEN = (0.0, 0.01, -0.01, 0.02, -0.02, 0.005, -0.005, 0.015, -0.015, 0.0)
UNEVEN = (0.005, 0.01, -0.015, 0.02, -0.015, 0.005, -0.01, 0.015, -0.015, 0.0)
FIXED = {OWN: (0.5, 0.51, 0.49), ALL: (0.4, 0.41, 0.39)}
LOCAL = {"local_only": (0.8, 0.801, 0.799)}
CASES = {
    FEDERATE: {"fedavg": (0.83, 0.832, 0.831), "ifca": (0.87, 0.872, 0.868)},
    "fedavg": {"fedavg": (0.87, 0.87, 0.872), "ifca": (0.88, 0.86, 0.9)},
    ALONE: {"fedavg": (0.7, 0.701, 0.7), "ifca": (0.75, 0.752, 0.748)},
    UNDECIDED: {"fedavg": (0.7, 0.7, 0.7), "ifca": (0.82, 0.84, 0.86)},
    "equal": {"fedavg": (0.801, 0.8, 0.8)},
    NOTHING_LEARNED: {"local_only": (0.45, 0.47, 0.46), "fedavg": (0.51, 0.49, 0.53), "pooled": (0.5, 0.5, 0.5)},
}
WORDS_OF_STATISTICS = re.compile(
    r"\bp-?value|holm|confiden|interval|signific|hypothes|deviation|paired|null|statistic|variance|error rate|"
    r"student|correct(ed|ion)|sample|convex|client drift|hyperparameter|seed|epoch|\bnan\b|none\b(?! is clearly)",
    re.IGNORECASE,
)


def advise(means, task=CLASSES, rows=FIXED, **changes):
    """The advice of methods with these means by seed; `changes` are further fields of some of them."""
    methods = [
        make_measured(name, each, UNEVEN if name == "local_only" else EVEN, **changes.get(name, {}))
        for name, each in means.items()
    ]
    return assemble(
        make_outcome(means, task), methods, [make_measured(name, each, EVEN) for name, each in rows.items()]
    )


def say(*given, **named):
    return [sentence.replace(NBSP, " ") for sentence in say_advice(advise(*given, **named))]


def of(case):
    return say({**LOCAL, **CASES[case]})


def test_federate():
    """0.87 less 0.8 by seed: 7.0, 7.1, 6.9 points; the worst tenth of ten is one, 0.87 - 0.02 and 0.8 - 0.015."""
    what, by_how_much, beside_fedavg, cost, whom = of(FEDERATE)
    assert what == "Federate, with IFCA: several models, and each client uses the one that fits it."
    assert re.fullmatch(
        r"Accuracy on clients' own test examples: 87\.0 % with IFCA, 80\.0 % when each trains alone: "
        r"7\.0 points better \(between 6\.\d and 7\.\d points\)\.",
        by_how_much,
    )
    assert re.fullmatch(
        r"It is between [\d.]+ and [\d.]+ points better than FedAvg \(83\.1 %\): one model for all is not enough\.",
        beside_fedavg,
    )
    assert cost == "IFCA costs 2 MB of traffic a client and 90 s of device time, in 40 rounds."
    assert whom == (
        "No client was worse off with IFCA than with training alone; the worst-off tenth reaches 85.0 %, alone 78.5 %."
    )


def test_fedavg_is_taken_where_another_cannot_be_told_apart():
    what, _, beside, *_ = of("fedavg")
    assert what.startswith("Federate, with FedAvg:")
    assert re.fullmatch(
        r"IFCA cannot be told apart from FedAvg \(it is between [\d.]+ points worse and [\d.]+ points better\), "
        r"so take the simpler FedAvg\.",
        beside,
    )


def test_alone():
    what, by_how_much, one_model, cost, whom = of(ALONE)
    assert what == "Do not federate: your clients do better with models that each trains alone."
    assert (
        "80.0 % when each trains alone, 75.0 % with IFCA, the best federated method: alone is 5.0 points" in by_how_much
    )
    assert one_model == "FedAvg, one model for all, reaches 70.0 %."
    assert cost.startswith("Training alone sends nothing, while IFCA would cost 2 MB")
    assert whom.startswith("Every client was worse off with IFCA than with training alone;")


def test_undecided_names_both_and_what_would_decide():
    what, by_how_much, needs, until_then, _ = of(UNDECIDED)
    assert what == "Your data cannot tell whether to federate: it is between IFCA and training alone."
    assert re.search(r"IFCA is between [\d.]+ points worse and [\d.]+ points better\.$", by_how_much)
    assert re.fullmatch(r"To tell a difference of 4\.0 points would take \d+ more repeats\.", needs)
    assert until_then.startswith("Until you know, train alone: that sends nothing, while IFCA would cost")


def test_clearly_better_than_alone_and_not_clearly_than_a_fixed_answer():
    """0.04, 0.06 and 0.08 over the row: p = 0.0351, not below 0.05 / 3; over alone 0.2 and more."""
    means = {"local_only": (0.3, 0.32, 0.34), "fedavg": (0.54, 0.58, 0.56), "ifca": (0.54, 0.56, 0.58)}
    rows = {OWN: (0.5, 0.5, 0.5), ALL: (0.4, 0.4, 0.4)}
    locally = {"local_only": {"validation": 0.6}, "ifca": {"validation": 0.7}}
    what, by_how_much, unclear, *_ = say(means, CLASSES, rows, **locally)
    assert what.startswith("Your data cannot tell") and by_how_much.endswith("points better.")
    assert unclear == (
        "What is not clear is that IFCA beats a fixed answer (always each client's own most frequent class)."
    )


def test_as_good_as_equal():
    means = {**LOCAL, **CASES["equal"]}
    methods = [make_measured(name, each, UNEVEN) for name, each in means.items()]
    methods[1] = make_measured("fedavg", means["fedavg"], [*UNEVEN[:-1], 0.002])
    rows = [make_measured(name, each, EVEN) for name, each in FIXED.items()]
    third = say_advice(assemble(make_outcome(means), methods, rows))[2].replace(NBSP, " ")
    assert third == "They are as good as equal, within 1.0 point, which more data will not change."


def test_nothing_learned():
    what, by_how_much, lead, needs, check = of(NOTHING_LEARNED)
    assert what == (
        "Do not use these models: none is clearly better than a fixed answer (always each client's own most frequent "
        "class)."
    )
    assert "51.0 % with FedAvg, 46.0 % when each trains alone, 50.0 % with the fixed answer" in by_how_much
    assert lead.startswith("FedAvg is between") and "than the fixed answer" in lead
    assert needs.startswith("To tell a difference of 1.0 point would take ")
    assert check.endswith("even all data in one place reach 50.0 %.")


@pytest.mark.parametrize(
    ("rounds", "why", "expected"),
    [
        (5, "others were better", "5 rounds are few"),
        (40, "no time for it: it would take about 2 min", "there was no time for 1 method"),
        (1, "no time for it", "1 round is few and there was no time for 1 method"),
    ],
)
def test_where_nothing_was_learned_in_little_time_that_is_said(rounds, why, expected):
    made = advise({**LOCAL, **CASES[NOTHING_LEARNED]})
    *entered, left_out = made.outcome.entered
    outcome = made.outcome._replace(plan=made.outcome.plan._replace(rounds=rounds))
    outcome = outcome._replace(entered=(*entered, left_out._replace(why_out=why)))
    last = say_advice(made._replace(outcome=outcome))[-1].replace(NBSP, " ")
    assert last == f"That may be the time's fault: {expected}, so give more --minutes, with another --runs_dir."


def test_errors_are_spoken_of_in_their_unit_and_lower_is_better():
    means = {"local_only": (2.6, 2.61, 2.59), "fedavg": (2.3, 2.31, 2.3), "ditto": (2.1, 2.11, 2.1)}
    rows = {OWN: (3.5, 3.5, 3.51), ALL: (3.9, 3.9, 3.9)}
    what, by_how_much, beside, *_ = say(means, ERRORS, rows)
    assert what.startswith("Federate, with Ditto")
    assert by_how_much.startswith(
        "RMSE on clients' own test examples (lower is better): 2.10 with Ditto, 2.60 when each"
    )
    assert "0.50 better (between 0.4" in by_how_much and "point" not in by_how_much + beside


def test_new_clients_and_names_of_those_who_are_worse_off():
    """Two of ten have 0.87 - 0.27 and 0.87 - 0.18, which alone have 0.705 and 0.71."""
    offsets = [-0.27, -0.18, *EVEN[2:]]
    methods = [
        make_measured("local_only", (0.7, 0.7, 0.701), UNEVEN),
        make_measured("fedavg", (0.87, 0.871, 0.87), offsets, new={0: {"x": 0.8, "y": 0.9}}, sizes={}),
    ]
    rows = [make_measured(name, each, EVEN) for name, each in FIXED.items()]
    advice = assemble(make_outcome(["local_only", "fedavg"]), methods, rows)
    whom = say_advice(advice)[-1].replace(NBSP, " ")
    assert advice.worse_off == ("site 0", "site 1")
    assert whom.startswith("2 of 10 clients were worse off with FedAvg than with training alone (site 0 and site 1);")
    assert whom.endswith(", and 2 new clients reach 85.0 % with it.")
    drawn = [each._replace(is_natural=False) for each in methods]
    assert "site" not in say_advice(assemble(make_outcome(["local_only", "fedavg"]), drawn, rows))[-1]


def advise_unequal(task, means, offsets, rows, **fields):
    methods = [
        make_measured("local_only", means[0], UNEVEN, **fields),
        make_measured("fedavg", means[1], offsets, **fields),
    ]
    return assemble(
        make_outcome(["local_only", "fedavg"], task),
        methods,
        [make_measured(name, each, EVEN) for name, each in rows.items()],
    )


def test_how_many_answers_a_client_is_worse_off_by():
    """0.87 - 0.27 for 0.705 is 0.105 of 20 examples in three repeats: 6.3 answers of 60; 0.69 for 0.71 is 1.2."""
    given = (CLASSES, ((0.7,) * 3, (0.87,) * 3), [-0.27, -0.18, *EVEN[2:]], FIXED)
    whom = say_advice(advise_unequal(*given))[-1].replace(NBSP, " ")
    assert "training alone (site 0 by 6 answers of 60 and site 1 by 1 answer of 60);" in whom
    whom = say_advice(advise_unequal(*given, is_natural=False))[-1].replace(NBSP, " ")
    assert "2 of 10 clients were worse off with FedAvg than with training alone (at most by 6 answers of 60);" in whom


def test_by_errors_only_those_are_worse_off_who_are_beyond_doubt():
    """All differ by the same with each seed but one, who is 0.1, 0.4 and 0.1 worse: t = 2, p = 0.18."""
    advice = advise_unequal(ERRORS, ((2.6,) * 3, (2.3,) * 3), [0.5, 0.5, *EVEN[2:]], {OWN: (3.5,) * 3})
    assert set(advice.worse_off) == {"site 0", "site 1"}
    assert "2 of 10 clients were clearly worse off" in say_advice(advice)[-1].replace(NBSP, " ")
    assert find_losers({0: {"a": 2.1}, 1: {"a": 2.4}, 2: {"a": 2.1}}, {s: {"a": 2.0} for s in range(3)}, -1) == set()
    assert find_losers({0: {"a": 2.4}}, {0: {"a": 2.0}}, -1) == set(), "one seed tells nothing"
    blind = advise_unequal(ERRORS, ((2.6, 2.5, 2.7), (2.3, 2.5, 2.1)), [0.31, *EVEN[1:]], {OWN: (3.5,) * 3})
    assert blind.worse_off == () and say_advice(blind)[-1].startswith("No client was clearly worse off")


def test_a_winner_of_which_too_few_repeats_ended():
    what, _, beside, *_ = say({**CALM, "ifca": (0.9, 0.9)}, ifca={"validation": 0.89})
    assert what.startswith("Federate, with FedAvg")
    assert beside == "IFCA did best on validation examples, but too few repeats of it ended in time to advise it."


def test_too_little_time():
    means = {"local_only": (0.8, 0.8), "fedavg": (0.9, 0.9)}
    what, by_how_much, needs, *_ = say(means)
    assert what == "Too little time to tell whether to federate: it is between FedAvg and training alone."
    assert by_how_much == (
        "FedAvg leads: 90.0 %, alone 80.0 % (accuracy on clients' own test examples), but only 2 repeats of both ended "
        "in time."
    )
    assert needs == "A verdict needs 3 repeats: give the same command more --minutes, and it goes on from here."
    means = {"local_only": (0.9, 0.9, 0.6), "fedavg": (0.8, 0.8)}
    assert say(means)[1].startswith("Training alone leads: 90.0 %, FedAvg 80.0 % (accuracy"), "on the seeds of both"
    nothing = say({"local_only": (0.8,)})
    assert nothing[1] == "What is missing: a finished run of a federated method on a fresh seed."


def test_fedavg_beside_nothing_and_beside_what_did_no_better():
    local = {"local_only": (0.7, 0.701, 0.7)}
    third = say({**local, "fedavg": (0.87, 0.87, 0.872)})[2]
    assert third == "No other federated method was run beside FedAvg."
    third = say({**local, "fedavg": (0.87, 0.87, 0.872), "ifca": (0.8, 0.8, 0.8), "ditto": (0.8, 0.8, 0.8)})[2]
    assert third == "IFCA and Ditto were no better than FedAvg on validation examples of the same runs."
    assert say({"local_only": (0.7, 0.701, 0.7), "ifca": (0.87, 0.87, 0.872)})[2].startswith("FedAvg, the usual method")


CALM = {"local_only": (0.7, 0.701, 0.699), "fedavg": (0.85, 0.85, 0.85)}


def test_a_method_with_several_models_that_is_shown_to_be_better_than_one():
    """The best on validation examples is IFCA, then FedAvg; beyond doubt better than FedAvg is Ditto alone."""
    means = {**CALM, "ifca": (0.9, 0.849, 0.87), "ditto": (0.88, 0.882, 0.881)}
    what, _, several, *_ = say(means, ifca={"validation": 0.89})
    assert what.startswith("Federate, with Ditto")
    assert re.fullmatch(
        r"It is between [\d.]+ and [\d.]+ points better than FedAvg \(85\.0 %\), one model for all; IFCA did best "
        r"on validation examples, but is not clearly better\.",
        several,
    )
    what, _, several, *_ = say(means, ifca={"validation": 0.8}, fedavg={"validation": 0.9})
    assert what.startswith("Federate, with Ditto")
    assert re.fullmatch(
        r"FedAvg, one model for all, did best on validation examples, but on test examples Ditto is between [\d.]+ "
        r"and [\d.]+ points better\.",
        several,
    )


def test_fedavg_is_clearly_better_than_alone_and_the_winner_is_not():
    what, _, beside, *_ = say({**CALM, "ifca": (0.8, 0.746, 0.899)}, ifca={"validation": 0.89})
    assert what.startswith("Federate, with FedAvg:") and beside.startswith("IFCA cannot be told apart from FedAvg (")


def test_training_alone_that_was_still_improving():
    means = {**LOCAL, **CASES[FEDERATE]}
    outcome = make_outcome(means)
    local = outcome.entered[0]._replace(
        trials=(outcome.entered[0].trials[0]._replace(scores=({100: 0.6}, {100: 0.7, 101: 0.7})),)
    )
    methods = [make_measured(name, each, EVEN if name != "local_only" else UNEVEN) for name, each in means.items()]
    rows = [make_measured(name, each, EVEN) for name, each in FIXED.items()]
    advice = assemble(outcome._replace(entered=(local, *outcome.entered[1:])), methods, rows)
    second = say_advice(advice)[1]
    assert second.endswith("points), but training alone was still improving.") and len(second.split()) <= 45


def test_a_fixed_answer_in_place_of_training_alone():
    """Each client's own most frequent class is ahead of local training; FedAvg gains 0.02, 0.04 and 0.06."""
    means = {"local_only": (0.7, 0.7, 0.7), "fedavg": (0.82, 0.84, 0.86), "ifca": (0.86, 0.84, 0.8)}
    rows = {OWN: (0.8, 0.8, 0.8), ALL: (0.4, 0.4, 0.4)}
    methods = [make_measured(name, each, EVEN, 0.7 if name == "local_only" else 0.9) for name, each in means.items()]
    advice = assemble(make_outcome(means), methods, [make_measured(name, each, UNEVEN) for name, each in rows.items()])
    advice = advice._replace(decision=advice.decision._replace(verdict=UNDECIDED))
    *_, until, whom = (sentence.replace(NBSP, " ") for sentence in say_advice(advice))
    assert until.startswith("Until you know, answer always each client's own most frequent class: that sends nothing")
    assert "with the fixed answer 78.5 %" in whom and "train alone" not in until


def test_too_few_clients_for_errors():
    means, offsets = {"local_only": (2.6, 2.61, 2.59), "fedavg": (2.3, 2.31, 2.3)}, (0.0, 0.1, -0.1)
    methods = [make_measured(name, each, offsets) for name, each in means.items()]
    rows = [make_measured(OWN, (3.5, 3.5, 3.51), offsets)]
    what, by_how_much, why, *_ = say_advice(assemble(make_outcome(means, ERRORS), methods, rows))
    assert what.startswith("Your data cannot tell") and by_how_much.endswith("from so few clients no range follows.")
    assert why == "A verdict needs 5 clients with test examples, and there are 3."


def test_tokens_and_areas_are_shares():
    for task, word in (("next_token", "Token accuracy"), ("multi_label", "AUC")):
        _, by_how_much, *_ = say({**LOCAL, **CASES[FEDERATE]}, find_task_columns(task))
        assert by_how_much.startswith(f"{word} on clients' own test examples: 87.0 % with IFCA")


def test_fine_tuning_is_in_the_device_time():
    changes = {"ifca": {"cost": Cost(2e6, 90.0, 12.0, 40.0)}}
    assert "90 s of device time with 12 s of fine-tuning" in say({**LOCAL, **CASES[FEDERATE]}, **changes)[3]


@pytest.mark.parametrize("case", CASES)
def test_a_first_reader_understands_them(case):
    """Five sentences, each short, without a word of statistics; the first says alone what to do."""
    sentences = of(case)
    assert len(sentences) == 5
    first = sentences[0]
    assert re.match(r"(Federate, with |Do not |Your data cannot tell)", first) and len(first.split()) <= 20
    for sentence in sentences:
        assert sentence.endswith(".") and (sentence[0].isupper() or sentence[0].isdigit())
        assert not re.search(r"\. [A-Z]", sentence), "one sentence, not two"
        assert len(sentence.split()) <= 40, sentence
        assert not WORDS_OF_STATISTICS.search(sentence), sentence
        assert sentence.count("(") == sentence.count(")") and "  " not in sentence
    names = set(re.findall(r"IFCA|FedAvg|Ditto", " ".join(sentences)))
    assert len(names) <= 2, "no list of methods to choose from"


def test_ranges_in_words():
    shares, errors = Numbers(CLASSES, 0.8), Numbers(ERRORS, 21.0)
    shown = [shares.show_range(ends).replace(NBSP, " ") for ends in ((0.021, 0.049), (-0.01, 0.02), (-0.049, -0.021))]
    assert shown == [
        "between 2.1 and 4.9 points better",
        "between 1.0 point worse and 2.0 points better",
        "between 2.1 and 4.9 points worse",
    ]
    assert shares.show_range((0.02, 0.02)).replace(NBSP, " ") == "2.0 points better"
    assert errors.show_range((0.21, 4.04)).replace(NBSP, " ") == "between 0.2 and 4.0 better"
    assert (Numbers(ERRORS, 2100.0).show(2123.4), Numbers(ERRORS, 0.0123).show(0.0123)) == ("2,123", "0.0123")
    assert ROWS[OWN].startswith("always")
