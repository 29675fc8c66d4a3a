"""The worked example of an algorithm of one's own: FedDyn by hand, and through the program."""

import pathlib

import numpy as np
import pytest

import launch.train
from tff_algos.settings.local_training import LocalTrainingConfig

RATE, ALPHA = 0.2, 0.5
ONE_STEP = LocalTrainingConfig(epochs=1, optimizer="sgd", learning_rate=RATE, batch_size=100)


@pytest.fixture
def build(tff_runtime, linear_spec):
    """A function (data, fields of the config) -> process."""
    from examples import fed_dyn

    def build(data, **fields):
        config = fed_dyn.FedDynConfig(ONE_STEP, client_weighting="equal", alpha=ALPHA, **fields)
        return fed_dyn.build_fed_dyn_process(linear_spec, data, config, seed=1)

    return build


def test_two_rounds_by_hand(build, make_federation, linear_spec, descend, break_client):
    """One step on all examples: d_k = -rate (grad L_k(w) - g_k), as the pull is 0 at its start. Client 2 diverges.

    w' = w + mean d_k - h' / alpha, g_k' = g_k - alpha d_k, h' = h - alpha / 3 (d_0 + d_1).
    """
    data = make_federation([12, 5, 7])
    break_client(data, 2)
    process, splits = build(data), [data.read_split(client, "train") for client in data.clients[:2]]
    state = process.initialize()
    model, h = process.get_models(state)["global"], [np.zeros((4, 3)), np.zeros(3)]
    kept = [[np.zeros((4, 3)), np.zeros(3)] for _ in splits]

    def step(model, split):
        return descend(linear_spec, model, *split, RATE)

    for _ in range(2):
        updates = [
            [after - w + RATE * g for after, w, g in zip(step(model, split), model, own, strict=True)]
            for split, own in zip(splits, kept, strict=True)
        ]
        kept = [
            [g - ALPHA * d for g, d in zip(own, moved, strict=True)] for own, moved in zip(kept, updates, strict=True)
        ]
        h = [was - ALPHA / 3 * (a + b) for was, a, b in zip(h, *updates, strict=True)]
        model = [w + (a + b) / 2 - now / ALPHA for w, a, b, now in zip(model, *updates, h, strict=True)]
        state, metrics = process.next(state)
        assert metrics["num_rejected"] == 1
        for found, expected in zip(process.get_models(state)["global"], model, strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-5)
        for found, expected in zip(state.own, h, strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-5)
    rows = process.store.read(state.kept, np.arange(3))
    for row, expected in zip(rows, [*kept, [np.zeros((4, 3)), np.zeros(3)]], strict=True):
        for found, own in zip(row, expected, strict=True):
            np.testing.assert_allclose(found, own, atol=1e-5)


@pytest.mark.slow
def test_it_runs_by_its_name(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(pathlib.Path(__file__).parents[2])
    arguments = "--algo=examples/fed_dyn.py", "--smoke", f"--run_dir={tmp_path / 'run'}"
    assert launch.train.main(arguments) == 0, capsys.readouterr().err
