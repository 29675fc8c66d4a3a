"""Addresses of workers."""

import socket

import pytest

from launch.settings.worker_addresses import check_address, find_connection_problem


@pytest.mark.parametrize("address", ["", "host", "host:", ":80", "host:port", "host:0", "host:65536", "host:-1"])
def test_malformed_addresses_are_refused(address):
    with pytest.raises(ValueError, match="expected host:port"):
        check_address(address)


def test_whether_something_listens_is_known_at_once(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert find_connection_problem(address) == ""
    problem = find_connection_problem(address)
    assert problem.startswith(f"nothing listens at {address} (connection refused); start the worker there first")
    assert (
        find_connection_problem(f"unix:{tmp_path}/none")
        == f"no socket at {tmp_path}/none; is the ssh that makes it running?"
    )
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        assert find_connection_problem(f"unix:{tmp_path}/socket") == ""


def test_a_machine_that_says_nothing_is_given_up(monkeypatch):
    def wait(address, timeout_s):
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", wait)
    assert find_connection_problem("127.0.0.1:80", 0.5).startswith("127.0.0.1:80 does not answer within 0.5 s; check")
