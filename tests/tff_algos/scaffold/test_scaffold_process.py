"""SCAFFOLD: two rounds by hand, what clients keep, and who does not count."""

import dataclasses

import numpy as np
import pytest

from tff_algos.settings.aggregation import ServerStepConfig
from tff_algos.settings.local_training import LocalTrainingConfig

RATE = 0.5
TWO_STEPS = LocalTrainingConfig(epochs=2, optimizer="sgd", learning_rate=RATE, batch_size=8)


@pytest.fixture
def build(build_algorithm, scalar_spec, linear_spec):
    """A function (data, training, fields of the config) -> process; of one weight where the data have one feature."""

    def build(data, training=TWO_STEPS, **fields):
        spec = scalar_spec if data.format.input_shape == scalar_spec.format.input_shape else linear_spec
        return build_algorithm("scaffold", data, training, spec, **fields)

    return build


def get_kept(process, state):
    """What each client keeps of a model of one weight."""
    return [float(row[0]) for row in process.store.read(state.kept, process.everyone)]


def sigmoid(value):
    return 1 / (1 + np.exp(-value))


def compute_rounds(clients, num_rounds, num_steps, global_rate):
    """Algorithm 1 with option II on one weight, all clients in each round, in NumPy: a row (x, c, [c_i]) a round."""
    x, c, kept, rows = 0.0, 0.0, [0.0] * len(clients), []
    for _ in range(num_rounds):
        moves, differences = [], []
        for i, (feature, label) in enumerate(clients):
            y = x
            for _ in range(num_steps):
                y -= RATE * ((sigmoid(y * feature) - label) * feature - kept[i] + c)
            new = kept[i] - c + (x - y) / (num_steps * RATE)
            moves.append(y - x)
            differences.append(new - kept[i])
            kept[i] = new
        x += global_rate * np.mean(moves)
        c += np.sum(differences) / len(clients)
        rows.append((x, c, list(kept)))
    return rows


def test_two_rounds_by_hand(build, make_scalar_federation, run):
    """Client 0 has x = 1, y = 1, client 1 x = 2, y = 0; eta = 1/2, K = 2, all start at 0.

    Round 1, no correction yet:
      client 0: y = 0 + 0.5 * 0.5 = 0.25, then 0.25 + 0.5 * (1 - sigmoid(0.25)) = 0.468912; c_0 = -0.468912
      client 1: y = 0 - 0.5 * 0.5 * 2 = -0.5, then -0.5 - sigmoid(-1) = -0.768941; c_1 = 0.768941
      x = (0.468912 - 0.768941) / 2 = -0.150015; c = (-0.468912 + 0.768941) / 2 = 0.150015
    Round 2, along g_i - c_i + c, where -c_0 + c = 0.618927 and -c_1 + c = -0.618927:
      client 0: y = -0.150015 - 0.5 * (sigmoid(-0.150015) - 1 + 0.618927) = -0.190761, then likewise -0.226452
      client 1: y = -0.150015 - 0.5 * (2 sigmoid(-0.300029) - 0.618927) = -0.266102, then likewise -0.326642
    Then c_i becomes c_i - c + (x - y), as K eta = 1.
    """
    process = build(make_scalar_federation([(1, 1, 4), (2, 0, 4)]))
    (_, first, second), _ = run(process, 2)
    assert first.models[0].item() == pytest.approx(-0.150015, abs=2e-6)
    assert first.own[0].item() == pytest.approx(0.150015, abs=2e-6)
    assert get_kept(process, first) == pytest.approx([-0.468912, 0.768941], abs=2e-6)
    assert second.models[0].item() == pytest.approx((-0.226452 - 0.326642) / 2, abs=2e-6)
    moves = [0.226452 - 0.150015, 0.326642 - 0.150015]
    assert get_kept(process, second) == pytest.approx(
        [-0.468912 - 0.150015 + moves[0], 0.768941 - 0.150015 + moves[1]], abs=4e-6
    )


@pytest.mark.parametrize(
    ("clients", "batch_size", "num_steps", "global_rate"),
    [
        ([(1, 1), (2, 0)], 8, 2, 1.0),
        ([(1, 1), (2, 0)], 2, 4, 0.5),  # two epochs of two batches; the server's rate is the model's alone
        ([(1, 1)], 8, 2, 1.0),  # alone, c_0 = c after each round, so it is never corrected
    ],
)
def test_three_rounds_in_numpy(build, make_scalar_federation, run, clients, batch_size, num_steps, global_rate):
    """4 examples each, all alike."""
    training, server = (
        dataclasses.replace(TWO_STEPS, batch_size=batch_size),
        ServerStepConfig(learning_rate=global_rate),
    )
    process = build(make_scalar_federation([(*client, 4) for client in clients]), training, server=server)
    states, _ = run(process, 3)
    for state, (x, c, kept) in zip(states[1:], compute_rounds(clients, 3, num_steps, global_rate), strict=True):
        found = [state.models[0].item(), state.own[0].item(), *get_kept(process, state)]
        assert found == pytest.approx([x, c, *kept], abs=1e-6)
    if len(clients) == 1:
        assert kept == [pytest.approx(c)]


def test_only_who_takes_part_keeps_something_and_c_is_over_all_clients(build, make_federation, run):
    """With one client of three a round, c moves by a third of its difference; the others have zeros and no row."""
    process = build(make_federation([5, 8, 3]), cohort_size=1)
    (before, after), _ = run(process, 1)
    (client,) = process.choose_cohort(before)[1]
    assert before.kept.clients.size == 0 and after.kept.clients.tolist() == [client]
    assert after.kept.versions.tolist() == [1]
    rows = process.store.read(after.kept, process.everyone)
    for position, array in enumerate(after.own):
        assert np.abs(array).max() > 1e-3
        np.testing.assert_allclose(array, rows[client][position] / 3, rtol=1e-6)
        assert array.shape == rows[client][position].shape == process.initial_weights[position].shape
    others = [row for index, row in enumerate(rows) if index != client]
    assert not any(array.any() for row in others for array in row)


def test_a_broken_client_keeps_its_variate_and_does_not_count(build, make_federation, break_client, run):
    data = make_federation([8, 8])
    process = build(data)
    (_, first), _ = run(process, 1)
    break_client(data, 1)
    second, _ = process.next(first)
    (own, broken), (own_before, broken_before) = (
        process.store.read(state.kept, process.everyone) for state in (second, first)
    )
    assert [array.tobytes() for array in broken] == [array.tobytes() for array in broken_before]
    # The model is that of client 0 alone, and c moved by its difference over both clients.
    for old, new, c_before, c in zip(own_before, own, first.own, second.own, strict=True):
        assert np.abs(new - old).max() > 1e-4
        np.testing.assert_allclose(c, c_before + (new - old) / 2, atol=1e-6)
    pairs = zip(first.models, second.models, own_before, own, first.own, strict=True)
    for w, w_next, c_0, new, c in pairs:  # (x - y) / (K eta) = c_i+ - c_i + c, and x+ = y
        np.testing.assert_allclose(w - w_next, (new - c_0 + c)[np.newaxis] * 2 * RATE, atol=1e-6)


def test_a_client_without_examples_changes_nothing(build, make_scalar_federation, run):
    process = build(make_scalar_federation([(1, 1, 4), (2, 0, 0)]))
    states, rows = run(process, 2)
    assert [row["num_rejected"] for row in rows] == [0, 0] and np.isfinite(states[2].own[0]).all()
    # Its difference is zero, so c is half of the other's.
    first, empty = get_kept(process, states[1])
    assert empty == 0 and states[1].own[0].item() == pytest.approx(first / 2, abs=1e-7)
