"""What an answer must be to count."""

import types

import numpy as np
import pytest

from launch.live.messages import Message, MessageError
from launch.live.referee import (
    DAMAGED,
    EXAMPLES,
    MOST_LINES,
    NOT_FINITE,
    SHAPE,
    TOO_LARGE,
    Asked,
    Conduct,
    Limits,
    Referee,
    Rejection,
    Sums,
    measure_norm,
)

# Two kernels that the file trains, a counter, and a float weight that the file leaves as it is.
WEIGHTS = [np.zeros((2, 2), np.float32), np.int64(0), np.ones(3, np.float32), np.zeros(2, np.float32)]
FILE = types.SimpleNamespace(
    content=b"file", sha256="f" * 64, names=("weight_0", "weight_3"), shapes=((2, 2), (2,)), positions=(0, 3)
)
ASKED = Asked("task", client=4, number=7, num_trained=12)
HEADER = {
    "type": "answer",
    "run": "run",
    "number": 7,
    "client": 4,
    "file": FILE.sha256,
    "task": "task",
    "num_trained": 12,
    "loss_sum": 1.5,
    "seconds": 0.5,
}
ARRAYS = {"weight_3": np.array([3, 4], np.float32), "weight_0": np.full((2, 2), 0.5, np.float32)}


@pytest.fixture
def referee():
    return Referee("run", FILE, WEIGHTS)


def test_an_update_has_the_order_of_the_model_and_zeros_where_the_file_changes_nothing(referee):
    result = referee.judge(Message(HEADER, ARRAYS), ASKED)
    for delta, expected in zip(result.weights_delta, ([[0.5, 0.5], [0.5, 0.5]], [0, 0, 0], [3, 4]), strict=True):
        assert delta.dtype == np.float32
        np.testing.assert_array_equal(delta, expected)
    assert result[1:] == (26.0, 1.5, 12.0, True)
    assert [each.dtype for each in result[1:]] == [np.float32] * 3 + [np.bool_]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"run": "older"}, "of another run"),
        ({"file": "e" * 64}, "of another file"),
        ({"file": None}, "file: expected a text"),
        ({"task": "before"}, "of another task"),
        ({"client": 3}, "of another client"),
        ({"client": 4.0}, "client: expected a whole number"),
        ({"number": 6}, "of another number"),
        ({"num_trained": 11}, "trained on 11 examples, expected 12"),
        ({"num_trained": -1}, "num_trained: expected a whole number"),
        ({"loss_sum": float("nan")}, "loss_sum: expected a finite number"),
        ({"loss_sum": float("inf")}, "loss_sum: expected a finite number"),
        ({"loss_sum": 10**400}, "loss_sum: expected a finite number"),
        ({"loss_sum": 1e39}, "not finite"),  # in float32
        ({"loss_sum": None}, "loss_sum: expected a finite number"),
        ({"loss_sum": True}, "loss_sum: expected a finite number"),
        ({"seconds": -1}, "seconds: expected seconds"),
        ({"seconds": "1"}, "seconds: expected a finite number"),
    ],
)
def test_a_header_that_is_not_the_task_s_does_not_count(referee, changes, reason):
    with pytest.raises(MessageError, match=reason):
        referee.judge(Message(HEADER | changes, ARRAYS), ASKED)


def replace(name, array):
    return ARRAYS | {name: np.asarray(array)}


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({}, "not the weights"),
        ({"weight_0": ARRAYS["weight_0"]}, "not the weights"),
        (replace("weight_2", np.ones(3, np.float32)), "not the weights"),
        (replace("weight_3", np.ones(3, np.float32)), "weight_3 is float32 of shape \\(3,\\)"),
        (replace("weight_3", np.ones((2, 1), np.float32)), "weight_3"),
        (replace("weight_3", np.ones(2, np.int32)), "weight_3 is int32"),
        (replace("weight_3", np.array([1, np.nan], np.float32)), "not finite"),
        (replace("weight_3", np.array([np.inf, 1], np.float32)), "not finite"),
        (replace("weight_3", np.array([1e25, 1], np.float32)), r"the norm 1e\+25, of at most 1\.84e\+19"),  # its square
    ],
)
def test_arrays_that_are_no_update_do_not_count(referee, arrays, reason):
    with pytest.raises(MessageError, match=reason):
        referee.judge(Message(HEADER, arrays), ASKED)


def test_the_norm_is_summed_in_more_digits_than_float32_has():
    """4 million squares of 1e-4: float32 would lose some of them."""
    size = 2**22
    file = types.SimpleNamespace(sha256="f" * 64, names=("weight_0",), shapes=((size,),), positions=(0,))
    referee = Referee("run", file, [np.zeros(size, np.float32)])
    arrays = {"weight_0": np.full(size, 1e-2, np.float32)}
    expected = np.float32(size * float(np.float32(1e-2) * np.float32(1e-2)))
    assert referee.judge(Message(HEADER, arrays), ASKED).squared_norm == expected


SUMS = {"num": 5, "correct": 4, "loss_sum": 0.5}


def test_sums_are_of_the_whole_test_part(referee):
    asked = Asked("task", 4)
    assert referee.judge_sums(HEADER | SUMS, asked, 5) == Sums(5, 4, 0.5)
    tuned = HEADER | {"before": SUMS, "after": SUMS | {"correct": 5}}
    assert referee.judge_tuning(tuned, asked, 5) == (Sums(5, 4, 0.5), Sums(5, 5, 0.5))
    for changes in ({"num": 4}, {"correct": 6}, {"loss_sum": float("nan")}, {"client": 1}, {"file": "x"}):
        with pytest.raises(MessageError):
            referee.judge_sums(HEADER | SUMS | changes, asked, 5)
    for changes in ({"before": None}, {"after": SUMS | {"num": 6}}, {"after": [5, 4, 0.5]}):
        with pytest.raises(MessageError):
            referee.judge_tuning(tuned | changes, asked, 5)


def test_the_norm_of_an_update_is_bounded(referee):
    """The update's is sqrt(26) = 5.099."""
    assert referee.judge(Message(HEADER, ARRAYS), ASKED._replace(most_norm=5.1)).squared_norm == 26.0
    with pytest.raises(Rejection, match=r"^its update has the norm 5\.1, of at most 5 \(--most_norm\)$") as rejected:
        referee.judge(Message(HEADER, ARRAYS), ASKED._replace(most_norm=5.0))
    assert rejected.value.kind == TOO_LARGE


@pytest.mark.parametrize(
    ("header", "arrays", "kind"),
    [
        ({"run": "older"}, ARRAYS, DAMAGED),
        ({"seconds": -1}, ARRAYS, DAMAGED),
        ({"num_trained": 10**6}, ARRAYS, EXAMPLES),
        ({}, {}, SHAPE),
        ({}, replace("weight_3", np.ones(3, np.float32)), SHAPE),
        ({}, replace("weight_3", np.array([np.nan, 0], np.float32)), NOT_FINITE),
        ({}, replace("weight_3", np.array([1e30, 0], np.float32)), TOO_LARGE),
    ],
)
def test_a_rejection_has_a_kind(referee, header, arrays, kind):
    with pytest.raises(Rejection) as rejected:
        referee.judge(Message(HEADER | header, arrays), ASKED)
    assert rejected.value.kind == kind


def test_without_a_bound_it_is_a_thousand_times_the_models_norm():
    """|(3, 4)| = 5, of floats alone; a model of zeros counts as 1. The norm is that of the newest version."""
    conduct = Conduct(Limits())
    assert conduct.find_most_norm(1, [np.array([3, 4], np.float32), np.int64(10**9)]) == 5000.0
    assert conduct.find_most_norm(1, [np.zeros(2, np.float32)]) == 5000.0  # the same version: not measured again
    assert conduct.find_most_norm(2, [np.zeros(2, np.float32)]) == 1000.0
    assert Conduct(Limits(most_norm=0.5)).find_most_norm(3, [np.ones(2, np.float32)]) == 0.5


def reject(conduct, client, kind=NOT_FINITE, num_seated=100):
    return conduct.reject(client, f"seat {client}", Rejection(kind, "why"), num_seated)


def test_who_is_rejected_again_and_again_while_others_count_is_asked_no_more():
    conduct = Conduct(Limits(most_rejected=3))
    lines = [reject(conduct, 1) for _ in range(3)]
    assert lines == [["seat 1: its answer does not count: why"]] * 3 and not conduct.expelled  # nobody's counts
    conduct.accept(0)
    assert reject(conduct, 1)[1:] == ["seat 1 is asked no more: 4 answers in a row did not count, and others' did"]
    assert conduct.expelled == {1}


def test_nobody_is_sent_away_without_whom_a_round_would_wait_for_ever():
    conduct = Conduct(Limits(most_rejected=1, least_clients=2))
    for _ in range(4):
        conduct.accept(0)
        for client in (1, 2):
            reject(conduct, client, num_seated=3)
    assert conduct.expelled == {1}
    assert reject(conduct, 2, num_seated=4)[1:] == [
        "seat 2 is asked no more: 5 answers in a row did not count, and others' did"
    ]


def test_who_is_asked_further_for_want_of_others_is_told_once():
    conduct = Conduct(Limits(most_rejected=2, least_clients=2))
    conduct.accept(0)
    lines = [[]]
    for _ in range(4):
        lines.append(reject(conduct, 1, num_seated=2)[1:])
        conduct.accept(0)
    told = "seat 1 is asked further, though 2 answers in a row did not count, and others' did: a round needs 2 clients"
    assert lines == [[], [], [f"{told} (--least_answers), and no more are left"], [], []]


def test_an_answer_that_counts_begins_the_row_anew():
    conduct = Conduct(Limits(most_rejected=2))
    for _ in range(3):
        conduct.accept(0)
        assert len(reject(conduct, 1)) == 1
        conduct.accept(1)
    assert not conduct.expelled
    anybody = Conduct(Limits())
    for _ in range(50):
        anybody.accept(0)
        reject(anybody, 1)
    assert not anybody.expelled


def test_of_many_rejections_the_later_are_told_by_their_kinds():
    conduct = Conduct(Limits())
    lines = [reject(conduct, client, TOO_LARGE if client < 12 else SHAPE) for client in range(MOST_LINES + 5)]
    assert [len(each) for each in lines] == [1] * MOST_LINES + [0] * 5
    assert conduct.take_lines() == ["5 more answers do not count: 3 of another shape, 2 beyond the norm bound"]
    assert conduct.take_lines() == [] and len(reject(conduct, 0)) == 1


def test_a_norm_of_what_is_not_finite_is_not():
    assert np.isnan(measure_norm([np.array([np.nan], np.float32)])) and np.isinf(measure_norm([np.array([np.inf])]))
    assert measure_norm([np.float32([3e38, 4e38 / 2])]) == pytest.approx(np.hypot(3e38, 2e38))
