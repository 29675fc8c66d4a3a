"""A short form of `poison.py`: what two attackers among ten do in a few rounds, and who withstands them."""

import pathlib
import runpy

import pytest

measure = runpy.run_path(str(pathlib.Path(__file__).with_name("poison.py")))["measure"]
ROUNDS = 6
pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_long_updates_ruin_the_mean_and_not_multi_krum_or_a_norm_bound():
    """An honest model has about 0.94 then. The mean goes backwards: 8 updates less 2 times 10 of them."""
    found = {name: measure("sign flipped, times 10", name, ROUNDS, 0) for name in ("mean", "multi-Krum", "norm bound")}
    assert found["mean"][0] < 0.5 < 0.85 < min(found["multi-Krum"][0], found["norm bound"][0])
    assert found["norm bound"][1] == 10  # after five each, nobody asks them


def test_absurd_updates_are_rejected_without_a_flag():
    accuracy, rejected = measure("times 1e30", "mean", ROUNDS, 0)
    assert accuracy > 0.85 and rejected == 10
