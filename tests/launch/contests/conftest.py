"""A contest of made-up methods."""

import pytest
from scripted_contest import ALWAYS, METHODS, compete


@pytest.fixture
def run(tmp_path, monkeypatch):
    """(world, seconds, ...) -> outcome of a contest of `METHODS`, by default in the one folder of the test."""

    def compete_here(world, seconds=900.0, folder="c", methods=METHODS, **settings):
        settings = {"always": ALWAYS, **settings}
        return compete(world, methods, tmp_path / folder, monkeypatch, seconds, **settings)

    return compete_here
