"""The made tables hold what their docstrings say: the best known answers, by scikit-learn's logistic regression."""

import re

import numpy as np
import pytest
from made_tables import MADE_TABLES, NUM_CLIENTS, make_shared, write_made_table
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from small_tables import read_split

from datasets.dataset import DatasetOptions
from datasets.formats.csv import FORMAT as CSV

WHO = {
    "Alone": [[client] for client in range(NUM_CLIENTS)],
    "one model": [list(range(NUM_CLIENTS))],
    "two models": [list(range(0, NUM_CLIENTS, 2)), list(range(1, NUM_CLIENTS, 2))],
}


def read(table):
    """(x, y) of all clients, shapes (clients, rows, features) and (clients, rows)."""
    y = (table["label"] == "high").to_numpy().reshape(NUM_CLIENTS, -1)
    return table.filter(regex="^x_").to_numpy().reshape(*y.shape, -1), y


def measure_answers(table):
    """Accuracy in percent by whose rows a model is trained on, and of the most frequent label; means over clients."""
    x, y = read(table)
    first, last = int(0.6 * y.shape[1]), int(0.75 * y.shape[1])
    x_train, y_train, x_test, y_test = x[:, :first], y[:, :first], x[:, last:], y[:, last:]
    answers = {}
    for who, groups in WHO.items():
        scores = []
        for group in groups:
            rows, labels = np.concatenate(x_train[group]), np.concatenate(y_train[group])
            # A regression needs both labels.
            model = LogisticRegression() if len(set(labels)) > 1 else DummyClassifier()
            model.fit(rows, labels)
            scores += [model.score(x_test[client], y_test[client]) for client in group]
        answers[who] = 100 * np.mean(scores)
    most_frequent = y_train.mean(axis=1, keepdims=True) > 0.5
    return answers | {"most frequent label": 100 * np.mean(most_frequent == y_test)}


@pytest.mark.parametrize("name", MADE_TABLES)
def test_the_best_known_answers_are_those_of_the_docstring(name):
    make = MADE_TABLES[name]
    measured = [measure_answers(make(seed)) for seed in range(5)]
    for who in (*WHO, "most frequent label"):
        [told] = re.findall(rf"{who} (\d+) %", make.__doc__)
        assert np.mean([answers[who] for answers in measured]) == pytest.approx(int(told), abs=1)


def test_a_table_is_the_same_for_the_same_seed_and_another_for_another():
    for make in MADE_TABLES.values():
        first, again, other = make(0), make(0), make(1)
        assert first.equals(again) and not first.equals(other)
        assert first.groupby("client").size().nunique() == 1 and first["client"].nunique() == NUM_CLIENTS


def test_a_written_table_is_read_without_a_flag(tmp_path):
    source = CSV.open(write_made_table("shared", tmp_path), DatasetOptions())
    assert len(source.client_names) == NUM_CLIENTS and source.format.class_names == ("high", "low")
    xs, _ = read_split(source)
    np.testing.assert_allclose(xs["client_01"], read(make_shared())[0][0], rtol=1e-6)
