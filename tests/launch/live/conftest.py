"""What tests of live runs share."""

import pytest
from live_network import Run


@pytest.fixture
def run(tmp_path):
    """A run of two clients, and a seat that is free."""
    return Run(tmp_path)
