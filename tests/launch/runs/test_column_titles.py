"""Columns have names that people read."""

import pytest

from launch.runs.column_titles import title_column


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("num_clients", "Clients that took part"),
        ("live_models", "Models on the server"),
        ("my_own_norm", "My own norm"),
        ("num_hops", "Number of hops"),
        ("wait_s", "Wait, s"),
        ("client_test_rmse_std", "Client test RMSE deviation"),
        ("_", "_"),
    ],
)
def test_a_column_in_words(name, expected):
    assert title_column(name) == expected
