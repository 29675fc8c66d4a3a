"""Evaluation against hand-worked numbers, and how often models are evaluated."""

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf
from small_formats import change_format, make_format, make_spec

from datasets.example_format import LabelFormat
from datasets.federated_data import Archetypes, ClientFiles, DeviceProfiles, FederatedData
from launch.runs.archetype_metrics import count_mixed, name_archetype_metrics
from launch.runs.task_columns import find_task_columns
from launch.training.evaluation import (
    Evaluation,
    StateEvaluation,
    build_evaluator,
    choose_evaluated_clients,
    evaluate_clients,
)
from models.model_spec import ModelSpec
from models.task import build_format_task, build_task
from tff_algos.protocol import FederatedProcess


def build_identity_model():
    return tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(2)])


SPEC = ModelSpec("dense", build_identity_model, make_format((2,), "uint8", 2, scale=0.5))
STRAIGHT = (np.eye(2, dtype=np.float32), np.zeros(2, np.float32))  # the larger input wins
SWAPPED = (np.eye(2, dtype=np.float32)[::-1].copy(), np.zeros(2, np.float32))  # the smaller input wins
X = np.array([[2, 0], [0, 2], [4, 0]], np.uint8)
Y = np.array([0, 0, 0], np.int32)
LOSSES = [math.log1p(math.exp(-1)), math.log1p(math.e), math.log1p(math.exp(-2))]


@pytest.fixture(scope="module")
def evaluate():
    return build_evaluator(SPEC, batch_size=2)


def test_hand_worked(evaluate):
    """Scaled by 0.5, logits are (1, 0), (0, 1), (2, 0) for label 0: losses ln(1 + e^-1), ln(1 + e), ln(1 + e^-2)."""
    result = evaluate(STRAIGHT, X, Y)
    assert (result.loss.dtype, result.sums.dtype) == (np.float32, np.float64)
    assert result.sums.tolist() == [3, 2], "examples, correct ones"
    np.testing.assert_allclose(result.loss, LOSSES, rtol=1e-6)
    assert result.mean_loss == pytest.approx(sum(LOSSES) / 3)
    reached = [evaluate(weights, X, Y).metric for weights in (STRAIGHT, SWAPPED, STRAIGHT)]
    assert reached == pytest.approx([2 / 3, 1 / 3, 2 / 3])


def test_a_model_that_has_diverged_is_right_on_nothing_and_its_loss_infinite(evaluate):
    """NaN is for what is unknown: of it, a comparison would take the last round before, as if it had not diverged."""
    result = evaluate((np.full((2, 2), np.nan, np.float32), np.zeros(2, np.float32)), X, Y)
    assert (result.metric, result.mean_loss) == (0, math.inf)


def test_weights_are_evaluated_as_the_model_that_they_belong_to(evaluate):
    """A peer that only adds a layer: its weights have shapes of their own."""

    def build():
        return tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(2), tf.keras.layers.Dense(2)])

    peer = dataclasses.replace(SPEC, name="two", build=build)
    evaluate_both = build_evaluator(dataclasses.replace(SPEC, peers=(peer,)))
    for weights in (STRAIGHT, SWAPPED):
        for own in (weights, (*STRAIGHT, *weights)):
            np.testing.assert_array_equal(evaluate_both(own, X, Y).loss, evaluate(weights, X, Y).loss)


def test_split(evaluate):
    """The second part is empty, and the third lies in two batches."""
    parts = evaluate.split(STRAIGHT, X, Y, [1, 0, 2])
    assert [part.sums.tolist() for part in parts] == [[1, 1], [0, 0], [2, 1]]
    assert [len(part.loss) for part in parts] == [1, 0, 2]
    for nothing in (parts[1], evaluate(STRAIGHT, X[:0], Y[:0])):
        assert nothing.loss.shape == (0,) and math.isnan(nothing.metric) and math.isnan(nothing.mean_loss)


def test_same_bits_and_no_dropout():
    spec = make_spec("auto", (15, 3), "float32", 4)
    evaluate = build_evaluator(spec, batch_size=64)
    generator = np.random.default_rng(0)
    weights = tuple(generator.normal(size=w.shape).astype(np.float32) / 10 for w in spec.build().weights)
    x, y = generator.normal(size=(150, 15, 3)).astype(np.float32), generator.integers(0, 4, 150)
    built_again = build_evaluator(spec, batch_size=64)
    assert len({each(weights, x, y).loss.tobytes() for each in (evaluate, evaluate, built_again)}) == 1


CLIENT_X = np.array([[2, 0], [0, 2], [0, 2], [0, 2]], np.uint8)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Four clients, all labels 0, with 1, 0, 2 and 4 own test examples: the first rows of CLIENT_X."""
    folder = tmp_path_factory.mktemp("shards")
    clients = []
    for index, num_test in enumerate((1, 0, 2, 4)):
        for split, count in (("test", num_test), ("validation", min(num_test, 1))):
            CLIENT_X[:count].tofile(folder / f"{index}.{split}.x")
            np.zeros(count, np.int32).tofile(folder / f"{index}.{split}.y")
        clients.append(ClientFiles(index, f"client_{index}", str(folder / str(index)), 5, min(num_test, 1), num_test))
    ones = np.ones(4)
    profiles = DeviceProfiles(ones, ones, ones, ones)
    counts = np.zeros((4, 2), np.int64)
    return FederatedData("tiny", make_format((2,), "uint8", 2, 0.5), tuple(clients), counts, X, Y, profiles)


@dataclasses.dataclass
class FixedProcess(FederatedProcess):
    """Models and names as they are given; a name for each state, if `names` is a function."""

    models: dict
    names: list | Callable
    own_personalize: Callable | None = None
    is_personal: bool = False

    def initialize(self):
        return ()

    def next(self, state):
        raise AssertionError("an evaluation makes no round")

    def get_models(self, state):
        return self.models

    def client_model(self, state):
        return self.names(state) if callable(self.names) else self.names

    def personalize(self, state, clients):
        return self.own_personalize(state, clients) if self.own_personalize else super().personalize(state, clients)


@pytest.fixture
def counted(evaluate):
    """An evaluator that notes the number of examples of each pass in `passes`."""

    class Counting:
        kind, passes = evaluate.kind, []

        def __call__(self, weights, x, y):
            self.passes.append(len(y))
            return evaluate(weights, x, y)

        def split(self, weights, x, y, sizes):
            self.passes.append(len(y))
            return evaluate.split(weights, x, y, sizes)

    return Counting()


SHARED = FixedProcess({"global": STRAIGHT}, ["global"] * 4)
PERSONAL = dataclasses.replace(SHARED, is_personal=True)
CLUSTERS = FixedProcess({"a": STRAIGHT, "b": SWAPPED, "unused": STRAIGHT}, ["a", "a", "b", "a"])


@pytest.mark.parametrize(
    ("process", "sample", "options", "with_shared", "expected", "passes"),
    [
        # Own accuracies: client 0 has 1/1, client 2 has 1/2, client 3 has 1/4; their mean, not that of the examples.
        # The passes: the global test set, all validation examples, the clients' splits.
        (
            SHARED,
            None,
            {},
            True,
            {
                "test_loss": sum(LOSSES) / 3,
                "test_accuracy": 2 / 3,
                "validation_accuracy": 1,
                "client_test_accuracy": (1 + 1 / 2 + 1 / 4) / 3,
                "client_validation_accuracy": 1,  # one example each for clients 0, 2 and 3, all correct
            },
            [3, 3, 7, 3],
        ),
        # STRAIGHT scores 2/3 and serves three clients, SWAPPED 1/3 and one; a model nobody uses is not evaluated. Own
        # accuracies: 1/1 and 1/4 with STRAIGHT, and 1/2 with SWAPPED (client 2). The three validation examples are
        # [2, 0], [2, 0], [2, 0], labels 0: STRAIGHT has all, SWAPPED none. Both models on the test set and on all
        # validation examples; then each on its own clients' splits, where clients 0 and 3 share passes though client 2
        # lies between them.
        (
            CLUSTERS,
            None,
            {},
            True,
            {
                "test_loss": (4 * sum(LOSSES) + 2) / 12,  # SWAPPED has ln(1 + e^2) for the last, which is 2 more
                "test_accuracy": (3 * 2 / 3 + 1 / 3) / 4,
                "validation_accuracy": 3 / 4,
                "client_test_accuracy": (1 + 1 / 4 + 1 / 2) / 3,
                "client_validation_accuracy": 2 / 3,
            },
            [3, 3, 3, 3, 5, 2, 2, 1],
        ),
        # Accuracies 1, 1/2 and 1/4: mean 7/12, deviation sqrt(7/72); the worst tenth of three is one of them. Neither
        # the global test set nor the pooled validation examples are looked at.
        (
            PERSONAL,
            None,
            {},
            False,
            {
                "client_test_accuracy": 7 / 12,
                "client_validation_accuracy": 1,
                "client_test_accuracy_std": math.sqrt(7 / 72),
                "client_test_accuracy_worst_tenth": 1 / 4,
            },
            [7, 3],
        ),
        # Clients 0 and 3 of the four have 1/1 and 1/4; the shared model is on the whole test set all the same, and
        # nothing of the other two is looked at. The spread is asked for.
        (
            SHARED,
            (0, 3),
            {"with_spread": True},
            True,
            {
                "test_loss": sum(LOSSES) / 3,
                "test_accuracy": 2 / 3,
                "validation_accuracy": 1,
                "client_test_accuracy": (1 + 1 / 4) / 2,
                "client_validation_accuracy": 1,
                "client_test_accuracy_std": 3 / 8,
                "client_test_accuracy_worst_tenth": 1 / 4,
            },
            [3, 2, 5, 2],
        ),
    ],
    ids=["one model", "clusters", "personal models", "a sample"],
)
def test_columns_of_a_state(data, counted, process, sample, options, with_shared, expected, passes):
    clients = None if sample is None else tuple(data.clients[index] for index in sample)
    evaluate_state = StateEvaluation(process, data, counted, clients, **options)
    assert evaluate_state((), None, with_shared) == pytest.approx(expected)
    assert counted.passes == passes
    assert evaluate_state((), (), with_shared) == pytest.approx(expected), "no change to measure without archetypes"


def test_nobody_has_the_split(data, evaluate):
    lone = dataclasses.replace(data, clients=data.clients[1:2])
    # the only client keeps its index 1, so names are given for two
    process = FixedProcess({"global": STRAIGHT}, ["global"] * 2, is_personal=True)
    metrics = StateEvaluation(process, lone, evaluate)((), None)
    own = [value for name, value in metrics.items() if name.startswith("client_")]
    assert len(own) == 4 and all(map(math.isnan, own))


def copy_weights(weights):
    return tuple(weight.copy() for weight in weights)


@pytest.mark.parametrize(
    ("choose", "accuracies", "losses", "passes"),
    [
        # Client 3 gets weights of its own, and is right on three of four instead of one.
        (
            lambda index: SWAPPED if index == 3 else STRAIGHT,
            [1, np.nan, 1 / 2, 3 / 4],
            [LOSSES[0], np.nan, sum(LOSSES[:2]) / 2, (LOSSES[1] + 3 * LOSSES[0]) / 4],
            [3, 4],
        ),
        # An iterator may free each client's weights; a later object at the same address must not be taken for it.
        (
            lambda index: copy_weights(STRAIGHT if index else SWAPPED),
            [0, np.nan, 1 / 2, 1 / 4],
            [LOSSES[1], np.nan, sum(LOSSES[:2]) / 2, (LOSSES[0] + 3 * LOSSES[1]) / 4],
            [1, 2, 4],
        ),
    ],
)
def test_personalized_weights_are_pooled_by_their_object(data, counted, choose, accuracies, losses, passes):
    def personalize(state, clients):
        return ((client, choose(client.index)) for client in clients)

    process = dataclasses.replace(SHARED, own_personalize=personalize)
    results = evaluate_clients(process, (), data, counted)["test"]
    np.testing.assert_allclose(results.metric, accuracies)
    np.testing.assert_allclose(results.loss, losses, rtol=1e-6)
    assert counted.passes == passes


BINARY = LabelFormat("binary")
MULTI_LABEL = LabelFormat("multi_label", (2,), 2)
REGRESSION = LabelFormat("regression", (), 1, (0.0,), (1.0,))
TOKENS = LabelFormat("next_token", (2,), 3, padding=-1, oov=1)
ONE_CLASS, NO_POSITIVE = "are all of one class", "have no positive label, true or predicted"


@pytest.mark.parametrize(
    ("labels", "y", "outputs", "expected"),
    [
        (BINARY, [0, 1], [-1, 1], {}),
        (BINARY, [1, 1], [-1, 1], {"auc": ONE_CLASS}),
        (BINARY, [0, 0], [-1, 1], {"auc": ONE_CLASS}),  # a false alarm: F1 is 0
        (BINARY, [0, 0], [-1, -1], {"auc": ONE_CLASS, "f1": NO_POSITIVE}),
        (BINARY, [], [], {}),  # without examples nothing is said beside their number
        (MULTI_LABEL, [[1, 1]], [[1, 1]], {"auc": "have only positive labels, or only negative ones"}),
        (
            MULTI_LABEL,
            [[0, 0]],
            [[-1, -1]],
            {
                "auc": "have only positive labels, or only negative ones",
                "f1": NO_POSITIVE,
                "recall_at_5": "have no positive label",
            },
        ),
        (REGRESSION, [2.0, 3.0], [2, 2], {}),
        (REGRESSION, [2.0], [2], {"r2": "are one, or all labelled alike"}),
        (REGRESSION, [3.0, 3.0], [2, 3], {"r2": "are one, or all labelled alike"}),
        (REGRESSION, [2.0, 3.0], [np.nan, 2], {}),  # infinitely wrong, which is known
        (TOKENS, [[0, -1]], [[[1, 0, 0]] * 2], {}),
        (
            TOKENS,
            [[1, -1]],
            [[[1, 0, 0]] * 2],
            {"token_accuracy_without_oov": "have no token of the vocabulary to tell"},
        ),
    ],
)
def test_what_is_undefined_is_known_with_the_reason(labels, y, outputs, expected):
    """The sums are those of a model with these outputs."""
    names = ("a", "b", "c") if labels.task == "next_token" else ("a", "b")
    names = () if labels.task == "regression" else names
    example_format = dataclasses.replace(SPEC.format, labels=labels, class_names=names)
    task = build_format_task(example_format)
    y = np.array(y, task.label_dtype).reshape(-1, *task.label_shape)
    outputs = np.array(outputs, np.float32).reshape(len(y), *task.output_shape)
    result = Evaluation(
        task.kind,
        task.compute_losses(y, outputs).numpy(),
        np.ones(len(y), np.float32) if task.kind.weighs_examples else None,
        task.compute_sums(y, outputs).numpy(),
    )
    assert result.undefined == expected
    lacking = {name for name, value in result.metrics.items() if math.isnan(value)}
    assert lacking == (set(expected) if len(y) else result.metrics.keys())


@pytest.mark.parametrize(("number", "expected"), [(1, 0), (10, 0), (11, 0.5), (20, 0.5), (21, 1)])
def test_worst_tenth(number, expected):
    assert find_task_columns("classification").compute_worst_tenth(np.arange(number)[::-1]) == expected


def test_archetypes_have_columns_and_the_change_from_the_state_before(data, counted):
    """Clients 0, 2 and 3 are right on 1/1, 1/2, 1/4 with STRAIGHT, on 0, 1/2, 3/4 with SWAPPED: |1|, |0|, |1/2|."""
    kinds = Archetypes(("x", "y", "z"), (0, 1, 1), (0, 1, 1, 0))
    with_kinds = dataclasses.replace(data, archetypes=kinds)
    models = {"a": STRAIGHT, "b": SWAPPED}
    process = FixedProcess(models, lambda state: [state] * 4)
    evaluate_state = StateEvaluation(process, with_kinds, counted)
    first = evaluate_state("a", None)
    assert list(first)[5:] == list(name_archetype_metrics(kinds))
    assert first["client_accuracy_change"] is None
    assert first["mixed_models"] == 1, "the one model serves x and y, which are of two meta-archetypes"
    assert first["archetype_0_accuracy"] == pytest.approx((1 + 1 / 4) / 2)
    assert first["archetype_1_accuracy"] == pytest.approx(1 / 2)
    assert math.isnan(first["archetype_2_accuracy"])
    counted.passes.clear()
    second = evaluate_state("b", "a")
    assert second["client_accuracy_change"] == pytest.approx((1 + 0 + 1 / 2) / 3)
    assert counted.passes == [3, 3, 7, 3], "what is known of the state before is not evaluated again"
    resumed = StateEvaluation(process, with_kinds, counted)("b", "a")
    assert resumed == pytest.approx(second, nan_ok=True)
    sampled = StateEvaluation(process, with_kinds, counted, (data.clients[0], data.clients[2]))("b", "a")
    assert sampled["client_accuracy_change"] == pytest.approx((1 + 0) / 2), "that of the same clients after a resume"


def test_what_clients_reach_in_the_last_state_is_known(data, counted):
    process = FixedProcess({"a": STRAIGHT, "b": SWAPPED}, lambda state: [state] * 4)
    of_states = StateEvaluation(process, data, counted)
    of_states("b", None, with_shared=False)
    counted.passes.clear()
    known = of_states.test_clients("b", data.clients, is_last=True)
    assert counted.passes == [] and known.metric == pytest.approx([0, np.nan, 1 / 2, 3 / 4], nan_ok=True)
    assert of_states.test_clients("a", data.clients, is_last=False).metric == pytest.approx(
        [1, np.nan, 1 / 2, 1 / 4], nan_ok=True
    )
    assert len(counted.passes) == 1, "another state"
    of_one = of_states.test_clients("b", data.clients[3:], is_last=True).metric
    assert of_one == pytest.approx([np.nan, np.nan, np.nan, 3 / 4], nan_ok=True), "other clients"


def test_models_are_mixed_across_meta_archetypes_not_archetypes():
    kinds = Archetypes(("x", "y", "z"), (0, 0, 1), (0, 1, 2, 2))
    assert count_mixed(kinds, ["a", "a", "b", "b"]) == 0
    assert count_mixed(kinds, ["a", "b", "b", "b"]) == 1
    assert count_mixed(kinds, ["a", "b", "a", "b"]) == 2


def test_the_sample_hangs_on_the_seed_alone(data):
    for most in (0, 4, 5):
        assert choose_evaluated_clients(data, most, 0) == data.clients
    drawn = [choose_evaluated_clients(data, 2, seed) for seed in range(20)]
    assert all(len(set(clients)) == 2 and clients == tuple(sorted(clients, key=lambda c: c.index)) for clients in drawn)
    assert len(set(drawn)) == 6, "every pair is drawn by one seed or another"
    assert choose_evaluated_clients(data, 2, 0) == drawn[0]


NUMBERS = build_task("regression", 1, label_offset=(10.0,), label_scale=(5.0,))


@pytest.fixture(scope="module")
def evaluate_numbers():
    """A model that puts out half the first value: 0, 2, 4 give 0, 1, 2, which are 10, 15, 20 in the labels' unit."""
    return build_evaluator(dataclasses.replace(SPEC, build=build_one_output, task=NUMBERS), batch_size=2)


def build_one_output():
    return tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])


FIRST = (np.array([[1], [0]], np.float32), np.zeros(1, np.float32))


def test_a_regression_is_measured_in_the_unit_of_its_labels(evaluate_numbers):
    """Predicted 15, 10, 20 of 15, 14, 23: errors 0, 4, 3; losses are squares of errors / 5."""
    result = evaluate_numbers(FIRST, X, np.array([15, 14, 23], np.float32))
    np.testing.assert_allclose(result.loss, [0, 0.64, 0.36], rtol=1e-5)
    assert [result.mean_loss, result.metrics["mae"]] == pytest.approx([1 / 3, 7 / 3])
    assert result.metrics["rmse"] == result.metric == pytest.approx(math.sqrt(25 / 3))
    parts = evaluate_numbers.split(FIRST, X, np.array([15, 14, 23], np.float32), [2, 1])
    assert [part.metric for part in parts] == pytest.approx([math.sqrt(8), 3])


def test_where_lower_is_better_the_worst_tenth_is_the_largest_error(data, evaluate_numbers, tmp_path):
    """CLIENT_X is predicted as 15, 10, 10, 10, and all labels are 14: errors 1 and 4.

    Client 0 has 1, client 2 the root of (1 + 16) / 2, client 3 that of (1 + 3 * 16) / 4.
    """
    labels = LabelFormat("regression", (), 1, (10.0,), (5.0,))
    clients = tuple(dataclasses.replace(client, prefix=str(tmp_path / str(client.index))) for client in data.clients)
    for client in clients:
        for split, count in (("test", client.num_test), ("validation", client.num_validation)):
            CLIENT_X[:count].tofile(f"{client.path}.{split}.x")
            np.full(count, 14, np.float32).tofile(f"{client.path}.{split}.y")
    numbers = dataclasses.replace(
        change_format(data, labels=labels, class_names=()), clients=clients, test_y=np.array([15, 14, 23], np.float32)
    )
    process = FixedProcess({"global": FIRST}, ["global"] * 4, is_personal=True)
    measured = StateEvaluation(process, numbers, evaluate_numbers)((), None)
    errors = [1, math.sqrt(17 / 2), math.sqrt(49 / 4)]
    own = {name: value for name, value in measured.items() if "client" in name or "validation" in name}
    assert own == pytest.approx(
        {
            "client_test_rmse": np.mean(errors),
            "client_test_rmse_worst_tenth": errors[2],
            "client_test_rmse_std": np.std(errors),
            "validation_rmse": 1,
            "client_validation_rmse": 1,
        }
    )
    task = find_task_columns("regression")
    assert sorted(measured) == sorted((*task.evaluation, *task.spread))


def build_next_token():
    return tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.RepeatVector(2), tf.keras.layers.Dense(2)])


def test_tokens_weigh_alike_whatever_sequence_they_are_in():
    """Logits (1, 0) at both positions of the first, (0, 1) of the second: losses ln(1 + e^-1), ln(1 + e) of token 0.

    The first has one token, the second two, so the mean is over three, of which one is right.
    """
    task = build_task("next_token", 2, (2,), padding_label=-1)
    spec = dataclasses.replace(SPEC, build=build_next_token, task=task)
    result = build_evaluator(spec)(STRAIGHT, X[:2], np.array([[0, -1], [0, 0]], np.int32))
    assert result.weights.tolist() == [1, 2]
    assert result.metric == pytest.approx(1 / 3)
    assert result.mean_loss == pytest.approx((math.log1p(math.exp(-1)) + 2 * math.log1p(math.e)) / 3)
    assert result.metrics["perplexity"] == pytest.approx(math.exp(result.mean_loss))
