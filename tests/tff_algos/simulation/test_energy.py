"""Joules by hand, and that nothing is lost or counted twice."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasets.federated_data import EnergyRates
from tff_algos.protocol import ClientWork
from tff_algos.simulation.energy import compute_joules

NUM_CLIENTS = 4
COUNTS = st.integers(0, 10**9)


def test_joules_by_hand():
    """Client 0: 8 x 0.5 + 100 x 0.01 = 5; client 1: 4 x 2 + 100 x 0.02 + 50 x 0.1 = 15, and 3 x 2 in a second part."""
    rates = EnergyRates(np.array([0.5, 2.0, 9.0]), np.array([0.01, 0.02, 9.0]), np.array([9.0, 0.1, 9.0]))
    first = ClientWork(np.array([1, 0]), np.array([4, 8]), 100, np.array([50, 0]))
    assert compute_joules(rates, [first]).tolist() == [5, 15, 0]
    assert compute_joules(rates, [first, ClientWork(np.array([1]), 3)]).tolist() == [5, 21, 0]
    assert compute_joules(rates, []).tolist() == [0, 0, 0]


@st.composite
def draw_part(draw):
    clients = draw(st.lists(st.integers(0, NUM_CLIENTS - 1), max_size=6))  # a client may be named twice
    counts = [np.array(draw(st.lists(COUNTS, min_size=len(clients), max_size=len(clients)))) for _ in range(3)]
    return ClientWork(np.array(clients, np.int64), *counts)


RATE = st.lists(st.floats(0, 10), min_size=NUM_CLIENTS, max_size=NUM_CLIENTS)


@given(RATE, RATE, RATE, st.lists(draw_part(), max_size=4))
def test_a_rounds_joules_are_the_sum_of_what_each_client_did(examples, down, up, parts):
    rates = EnergyRates(*map(np.array, (examples, down, up)))
    joules = compute_joules(rates, parts)
    plain = sum(
        part.num_examples[i] * examples[client] + part.bytes_down[i] * down[client] + part.bytes_up[i] * up[client]
        for part in parts
        for i, client in enumerate(part.clients.tolist())
    )
    assert joules.sum() == pytest.approx(plain) and (joules >= 0).all()
    idle = set(range(NUM_CLIENTS)) - {client for part in parts for client in part.clients.tolist()}
    assert not joules[list(idle)].any()
    np.testing.assert_allclose(joules, sum((compute_joules(rates, [part]) for part in parts), np.zeros(NUM_CLIENTS)))
