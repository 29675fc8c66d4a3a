"""What is measured of a sample and what looks odd, on data small enough to look at."""

import numpy as np
import pytest
from small_formats import format_of

from datasets import inspection as samples
from datasets.arrays import make_array_dataset
from datasets.client_source import ClientSource
from datasets.example_format import ExampleFormat, LabelFormat, Preprocessing
from datasets.inspection import draw_sample, find_suspicions, measure

RNG = np.random.default_rng(0)
NOISE = RNG.normal(size=(40, 2)).astype(np.float32)
LABELS = np.arange(40) % 2
WHOSE = np.arange(40) % 4


def make(x=NOISE, y=LABELS, test=None, names=("a", "b"), **fields):
    x, y = np.asarray(x), np.asarray(y)
    x = x if x.dtype == np.uint8 else x.astype(np.float32)
    test = test or (RNG.normal(size=(4, *x.shape[1:])).astype(x.dtype), y[:4])
    described = {name: fields.pop(name) for name in ("preprocessing", "labels", "takes_tokens") if name in fields}
    return make_array_dataset("mine", (x, y), test, format_of(x, names, **described), **fields)


def measure_of(*arguments, **fields):
    return measure(draw_sample(make(*arguments, **fields)))


def look(*arguments, **fields):
    sample = draw_sample(make(*arguments, **fields))
    return find_suspicions(sample, measure(sample))


def with_column(values):
    return np.column_stack([NOISE, np.asarray(values, np.float32)])


def test_part(last, label=0):
    """A test example that fits `with_column`: its third feature is as given."""
    return {"test": (np.array([[9, 9, last]], np.float32), np.array([label]))}


test_part.__test__ = False


def make_source(sizes=(3, 1)):
    def read(client, split):
        count = sizes[client] if split == "train" else 1
        x = np.full((count, 1), client + (0.5 if split == "test" else 0), np.float32)
        return x, np.full(count, client % 2, np.int32)

    counts = {"train": np.array(sizes), "test": np.ones(len(sizes), np.int64)}
    example_format = ExampleFormat((1,), "float32", ("a", "b"))
    return ClientSource("mine", example_format, tuple(f"c{i}" for i in range(len(sizes))), counts, read, "d" * 64)


def test_shares_of_the_most_frequent_classes_by_hand():
    """Client 0 has classes 0 0 1, client 1 has 1: shares of 2/3 and 1. Of equals, class 0 is that of all."""
    test = (np.zeros((4, 2), np.float32), np.array([0, 1, 1, 1]))
    named = measure_of(NOISE[:4], [0, 0, 1, 1], test, clients=[0, 0, 0, 1]).majority
    assert named == pytest.approx((0.25, 5 / 6))
    assert measure_of(NOISE[:4], [0, 0, 1, 1], test).majority == (0.25, None)


def test_features_by_hand():
    found = measure_of([[1, 7], [3, 7], [5, 7]], [0, 1, 0], (np.array([[7, 7]], np.float32), [1]))
    first, second = found.features
    assert first == ("feature 0", 1.0, 7.0, 4.0, 5**0.5) and second == ("feature 1", 7.0, 7.0, 7.0, 0.0)
    assert second.is_constant and not first.is_constant
    assert [each.tolist() for each in found.class_counts] == [[2, 1], [0, 1]]


def test_a_large_mean_keeps_its_digits_and_bytes_are_counted():
    column = 1e6 + np.array([0, 1, 2, 3] * 10)
    feature = measure_of(with_column(column), **test_part(1e6)).features[2]
    assert feature.deviation == pytest.approx(np.append(column, 1e6).std(), rel=1e-12)
    image = np.array([[[[0, 200]]], [[[2, 100]]]], np.uint8)
    low, high = measure_of(image, [0, 1], (image[:1], np.array([0]))).features
    assert low == ("channel 0", 0.0, 2.0, pytest.approx(2 / 3), pytest.approx(np.std([0, 2, 0])))
    assert high.deviation == pytest.approx(np.std([200, 100, 200]))


def test_a_regressions_labels_and_tokens():
    labels = LabelFormat("regression", (), 1, (0.0,), (1.0,))
    found = measure_of(y=np.float32(LABELS), names=(), labels=labels, test=(NOISE[:1], np.float32([2])))
    assert found.labels[:4] == ("labels", 0.0, 2.0, pytest.approx(22 / 41)) and found.class_counts is None
    tokens = np.array([[1, 2], [3, 9]], np.uint8)
    next_token = LabelFormat("next_token", (2,), 10, padding=-1)
    found = measure_of(tokens, tokens, (tokens, tokens), (), labels=next_token, takes_tokens=True)
    assert (found.largest_token, found.features) == (9, ())


def test_examples_that_are_there_twice():
    """Rows 0, 1 and 2 are alike, row 2 with another label; a test row is row 0, two are new."""
    x, y = NOISE.copy(), LABELS.copy()
    x[1] = x[2] = x[0]
    y[:3] = 0, 0, 1
    repeats = measure_of(x, y, (np.concatenate([x[:1], x[:2] + 1]), [0, 1, 0])).repeats
    assert (repeats.in_train, repeats.with_other_labels, repeats.in_both, repeats.clients) == (2, 1, 1, ())


def test_a_client_in_both_splits():
    """Client 0 is tested on its own train examples, client 1 on one of client 0, which is another matter."""
    tests = {"test": (NOISE[[0, 4, 8, 0]], np.zeros(4, int)), "test_clients": np.array([0, 0, 0, 1]), "clients": WHOSE}
    sample = draw_sample(make(**tests))
    assert measure(sample).repeats[2:] == (4, (0,))
    lines = find_suspicions(sample, measure(sample))
    assert any(line.endswith("at least half: client_0") for line in lines)
    assert any(line.startswith("4 of 4 test examples are train examples") for line in lines)


def test_of_large_data_a_sample_is_drawn_by_the_seed(monkeypatch):
    monkeypatch.setattr(samples, "MOST_EXAMPLES", 10)
    first, again, other = (draw_sample(make(), seed) for seed in (0, 0, 1))
    assert len(first.y) == 10 and not first.is_whole
    np.testing.assert_array_equal(first.x[first.choose("train")], again.x[again.choose("train")])
    assert not np.array_equal(first.x, other.x)
    of_source = draw_sample(make_source([3] * 30))
    assert of_source.num_clients_read < 30 and not of_source.is_whole and 10 <= len(of_source.y) <= 16
    assert of_source.num_examples["train"].sum() == 90


def test_a_source_is_read_by_client_and_split():
    sample = draw_sample(make_source())
    assert sample.is_whole and sample.clients.tolist() == [0, 0, 0, 0, 1, 1]
    assert sample.x[:, 0].tolist() == [0, 0, 0, 0.5, 1, 1.5] and sample.choose("test").tolist() == [0, 0, 0, 1, 0, 1]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"names": ("1", "2")}, "labels start at 1: class 1 is the model's answer 0"),
        ({"y": LABELS + 1, "names": ("0", "1", "2")}, "class 0 has no example: if labels start at 1"),
        ({"y": LABELS * 0, "test": (NOISE[:2] + 9, [0, 1])}, "all train examples are of one class, a"),
        ({"y": (np.arange(40) < 2).astype(int)}, "95.0 % of the train examples are of class a"),
        ({"y": LABELS * 2, "names": ("a", "b", "c")}, "no train example is of class b"),
        ({"x": with_column([1e6] * 39 + [2e6]), **test_part(1e6)}, "--standardize=federated"),
        ({"x": with_column([7] * 40), **test_part(7)}, "the same in every example: feature 2"),
        ({"x": with_column(5 - 3 * LABELS), **test_part(5)}, "tells the label by itself: feature 2"),
        ({"x": with_column(RNG.permutation(40)), **test_part(40)}, "a different whole number in every row: feature 2"),
        ({"x": with_column([4, 9, 1, 7] * 10), **test_part(4), "clients": WHOSE}, "one number for each client"),
        ({"clients": np.arange(40) // 30}, "client client_0 has 75 % of all train examples"),
        ({"clients": WHOSE}, "4 of 4 clients have fewer than 12 examples"),
        ({"x": NOISE[:1].repeat(40, 0)}, "like an earlier one but have another label: 20"),
    ],
)  # fmt: skip
def test_what_looks_odd_is_said(fields, said):
    lines = look(**fields)
    assert any(said in line for line in lines), lines


def test_one_of_several_classes_and_a_regression_can_leak():
    y = np.arange(40) % 3
    lines = look(with_column(y == 1), y, (np.array([[9, 9, 0]], np.float32), [2]), ("a", "b", "c"))
    assert any("tells the label by itself: feature 2" in line for line in lines)
    numbers = LabelFormat("regression", (), 1)
    y = RNG.normal(size=40).astype(np.float32)
    own = {"y": y, "names": (), "labels": numbers}
    (line,) = look(with_column(2 - y / 4), test=(np.float32([[9, 9, 1.5]]), np.float32([2])), **own)
    assert line.startswith("tells the label by itself: feature 2")
    assert look(with_column(y + RNG.normal(size=40)), test=(np.float32([[9, 9, 1.5]]), np.float32([2])), **own) == []


def test_black_images():
    x = RNG.integers(1, 255, (40, 4, 4, 1)).astype(np.uint8)
    x[[3, 5]] = 0  # of the same class
    lines = look(x, LABELS, (x[:1] + np.uint8(1), [0]), preprocessing=Preprocessing(1 / 255))
    assert lines == ["images of one number everywhere, such as all black: 2"]


def test_plain_data_have_nothing_odd():
    assert look() == []
    source = draw_sample(make_source((12, 14)))
    assert not any("fewer than" in line for line in find_suspicions(source, measure(source)))
