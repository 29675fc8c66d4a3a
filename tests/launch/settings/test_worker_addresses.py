"""Addresses of workers."""

import pytest

from launch.settings.worker_addresses import check_address


@pytest.mark.parametrize("address", ["", "host", "host:", ":80", "host:port", "host:0", "host:65536", "host:-1"])
def test_malformed_addresses_are_refused(address):
    with pytest.raises(ValueError, match="expected host:port"):
        check_address(address)
