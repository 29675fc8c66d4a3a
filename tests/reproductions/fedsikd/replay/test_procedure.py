"""The procedure of the published scripts: who trains, what is averaged, and how examples are drawn."""

import types

import numpy as np
import pytest
from small_formats import format_of

from datasets.arrays import make_array_dataset
from datasets.example_format import Preprocessing
from reproductions.fedsikd.replay import procedure
from reproductions.fedsikd.replay.procedure import (
    Bench,
    Side,
    average,
    build_bench,
    draw_owners,
    replay,
    split_clients,
)


def test_an_average_is_weighted():
    (found,) = average([(np.array([1.0], np.float32),), (np.array([4.0], np.float32),)], [200, 100])
    np.testing.assert_allclose(found, [2])


def test_examples_are_drawn_by_the_shares_of_their_label():
    labels = np.repeat([0, 1], 20_000)
    owners = draw_owners(labels, 4, 1e6, np.random.default_rng(0))
    assert owners.shape == labels.shape
    for label in (0, 1):  # all shares are a quarter, and the counts binomial: 5 deviations of 61
        counts = np.bincount(owners[labels == label], minlength=4)
        assert np.all(np.abs(counts - 5000) < 5 * 61) and len(set(counts)) > 1


def test_a_small_alpha_gives_a_label_to_few():
    labels = np.zeros(1000, np.int64)
    few = np.bincount(draw_owners(labels, 40, 0.01, np.random.default_rng(0)), minlength=40)
    many = np.bincount(draw_owners(labels, 40, 10.0, np.random.default_rng(0)), minlength=40)
    assert few.max() > 500 > 100 > many.max()


@pytest.fixture
def arrays():
    """200 labelled points of a feature vector; the tests below train on nothing but their number."""
    rng = np.random.default_rng(0)
    part = rng.normal(size=(200, 2)).astype(np.float32), rng.integers(0, 2, 200)
    return make_array_dataset("points", part, part, format_of(part[0], ("a", "b")))


@pytest.fixture
def bench(arrays, monkeypatch):
    """A model of one weight, which starts at 0 and to which training adds the client's number of examples."""
    monkeypatch.setattr(procedure, "initialize_weights", lambda spec, seed: (np.zeros(1, np.float32),))
    side = Side(
        None,
        lambda weights, x, y, seed: (weights[0] + len(y),),
        lambda weights: types.SimpleNamespace(mean_loss=float(weights[0][0])),
    )
    return Bench(arrays, side, side)


def get_sizes(arrays):
    return [len(y) for _, y in split_clients(arrays, 0.5, 3)]


def test_client_0_trains_alone(bench, arrays):
    size = get_sizes(arrays)[0]
    assert [result.mean_loss for result in replay("client_0", bench, 0.5, 3, 3)] == [size, 2 * size, 3 * size]


def test_four_leaders_train(bench, arrays):
    """From w each leader makes w + its examples, so a round adds 9/10 of the mean number of the leaders' examples."""
    sizes = get_sizes(arrays)
    step = 0.9 * (sizes[1] + sizes[11] + sizes[21] + sizes[31]) / 4
    assert [result.mean_loss for result in replay("leaders", bench, 0.5, 3, 2)] == pytest.approx([step, 2 * step])


def test_in_a_correct_fedavg_all_train(bench, arrays):
    """Weights count by examples: a round adds sum(n * n) / sum(n)."""
    sizes = np.array(get_sizes(arrays))
    step = (sizes * sizes).sum() / 200
    assert [result.mean_loss for result in replay("fedavg", bench, 0.5, 3, 2)] == pytest.approx([step, 2 * step])


def test_every_round_of_fl_hc_starts_from_the_first_weights(bench, arrays):
    """From 0 the mean is sum(n * n) / sum(n), in each round, and it is added twice."""
    sizes = np.array(get_sizes(arrays))
    twice = 2 * (sizes * sizes).sum() / 200
    assert [result.mean_loss for result in replay("fl_hc", bench, 0.5, 3, 3)] == pytest.approx([twice] * 3)


def test_splits_differ_and_repeat(arrays):
    first, again = (np.concatenate([y for _, y in split_clients(arrays, 0.5, 3)]) for _ in range(2))
    other = np.concatenate([y for _, y in split_clients(arrays, 0.5, 4)])
    assert len(first) == 200 and np.array_equal(first, again) and not np.array_equal(first, other)


def test_the_model_learns():
    """Two constant images: three epochs of three steps separate them; a client without examples changes nothing."""
    x = np.repeat(np.array([0, 255], np.uint8), 48)[:, None, None, None] * np.ones((1, 8, 8, 1), np.uint8)
    y = np.repeat([0, 1], 48).astype(np.int32)
    bench = build_bench(
        make_array_dataset("images", (x, y), (x, y), format_of(x, ("dark", "light"), Preprocessing(1 / 255))), (3, 3)
    )
    seed = np.zeros(2, np.int32)
    side = bench.student
    weights = procedure.initialize_weights(side.spec, 0)
    kept = side.train(weights, x[:0], y[:0], seed)
    assert all(map(np.array_equal, kept, weights))
    before, after = (side.test(each) for each in (weights, side.train(weights, x, y, seed)))
    assert after.mean_loss < before.mean_loss and after.metric == 1
    assert bench.teacher.spec.name == "image_teacher"
