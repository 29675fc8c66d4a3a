"""Metrics from sums, by hand and against scikit-learn; no TensorFlow."""

import math

import numpy as np
import pytest

from datasets.example_format import LABEL_KINDS
from models.task_kinds import NUM_BINS, TASK_KINDS, compute_auc, compute_f1


def test_tasks_are_named_alike_where_labels_are_stored_and_where_they_are_learned():
    assert list(LABEL_KINDS) == list(TASK_KINDS)
    for name, kind in TASK_KINDS.items():
        assert LABEL_KINDS[name] == (kind.label_dtype, kind.is_labelled_by_class, kind.title)


@pytest.mark.parametrize("kind", TASK_KINDS.values(), ids=TASK_KINDS)
def test_without_examples_every_metric_is_unknown(kind):
    values = kind.finish(np.zeros(kind.num_sums(3)))
    assert list(values) == [metric.name for metric in kind.metrics]
    assert all(math.isnan(value) for value in values.values())


def test_the_main_metric_is_the_first():
    mains = {name: (kind.main_metric.name, kind.main_metric.larger_is_better) for name, kind in TASK_KINDS.items()}
    assert mains == {
        "classification": ("accuracy", True),
        "binary": ("binary_accuracy", True),
        "multi_label": ("auc", True),
        "regression": ("rmse", False),
        "next_token": ("token_accuracy", True),
    }
    [perplexity] = [metric for metric in TASK_KINDS["next_token"].metrics if metric.name == "perplexity"]
    assert (perplexity.larger_is_better, perplexity.factor) == (False, 1)
    assert TASK_KINDS["binary"].metrics[1].factor == 100


def test_auc_counts_pairs_in_order_and_half_of_those_in_one_bin():
    """Positives in bins 2, 1; negatives in bins 1, 0: pairs (2,1), (2,0), (1,0) in order, (1,1) tied: 3.5 of 4."""
    assert compute_auc(np.array([0, 1, 1]), np.array([1, 1, 0])) == 3.5 / 4
    assert math.isnan(compute_auc(np.array([0, 1, 1]), np.zeros(3)))


def test_f1_by_hand():
    """Precision 2 / 3 and recall 2 / 6: 2 p r / (p + r) = 4 / 9."""
    assert compute_f1(2, 1, 4) == pytest.approx(4 / 9)
    assert compute_f1(0, 1, 0) == 0 and math.isnan(compute_f1(0, 0, 0))


HISTOGRAMS = np.zeros((2, NUM_BINS))
HISTOGRAMS[0, [5, 7]], HISTOGRAMS[1, [3, 6]] = 1, 1  # pairs (5,3), (7,3), (7,6) in order, (5,6) not


@pytest.mark.parametrize(
    ("kind", "sums", "expected"),
    [
        ("classification", [8, 6], {"accuracy": 0.75}),
        ("binary", [4, 3, 1, 0, 1, *HISTOGRAMS.ravel()], {"binary_accuracy": 0.75, "auc": 0.75, "f1": 2 / 3}),
        # Labels 1, 2, 3 less 2 and errors 1, 0, -2: squares 5, the spread of the labels 2.
        ("regression", [3, 3, 0, 2, 5], {"rmse": math.sqrt(5 / 3), "mae": 1, "r2": 1 - 5 / 2}),
        # Labels that are all equal, to one whose square is rounded, have no spread.
        ("regression", [3, 0, 3 * 0.1, 3 * 0.1**2, 0], {"rmse": 0, "mae": 0, "r2": math.nan}),
        (
            "next_token",
            [8, 4, 5, 3, 8 * math.log(3)],
            {"token_accuracy": 0.5, "token_accuracy_without_oov": 0.6, "perplexity": 3},
        ),
        (
            "next_token",
            [1, 0, 1, 0, 1e6],
            {"token_accuracy": 0, "token_accuracy_without_oov": 0, "perplexity": math.inf},
        ),
    ],
)
def test_values_by_hand(kind, sums, expected):
    assert TASK_KINDS[kind].finish(np.array(sums)) == pytest.approx(expected, nan_ok=True)
