"""The bounds on strangers: by what an address is counted, what a bucket forgets, and what is no end of the server."""

import asyncio
import errno
import socket
import types

import pytest

from launch.live import accepting, guard
from launch.live.accepting import accept_all
from launch.live.guard import Guard, name_address


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", ("127.0.0.1", True)),
        ("::1", ("::1", True)),
        ("::ffff:127.0.0.1", ("127.0.0.1", True)),
        ("::ffff:192.0.2.7", ("192.0.2.7", False)),
        ("192.0.2.7", ("192.0.2.7", False)),
        ("2001:db8:1:2:3:4:5:6", ("2001:db8:1:2::/64", False)),
        ("fe80::7%eth0", ("fe80::/64", False)),
        ("", ("", False)),
    ],
)
def test_an_address_is_counted_by_its_network_where_one_person_has_that_whole(host, expected):
    assert name_address(host) == expected


def come(bounds, host):
    """A connection of this host: what `Guard` is asked about later; None if it is not let in."""
    guarded = bounds.let_in(host, asyncio.Protocol)
    return guarded and types.SimpleNamespace(get_protocol=lambda: guarded, abort=lambda: None)


def test_all_of_a_network_of_ipv6_have_as_many_connections_as_one_address(monkeypatch):
    monkeypatch.setattr(guard, "SPARE_OF_ADDRESS", 2)

    async def open_some():
        bounds = Guard(num_seats=1, most_open=100)
        found = [come(bounds, f"2001:db8::{index}") is not None for index in range(5)]
        return found, come(bounds, "2001:db8:0:1::") is not None, dict(bounds.counts)

    assert asyncio.run(open_some()) == ([True] * 3 + [False] * 2, True, {guard.TOO_MANY_OF_ADDRESS: 2})


def test_many_addresses_do_not_free_each_other_of_what_they_were_refused(monkeypatch):
    monkeypatch.setattr(guard, "SPARE_REFUSED", 1)
    monkeypatch.setattr(guard, "REFUSED_PER_S", 1.0)
    monkeypatch.setattr(guard, "MOST_ADDRESSES", 2)
    now_s = 100.0

    async def speak():
        nonlocal now_s
        bounds = Guard(num_seats=1, most_open=100)
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now_s)
        hear = {host: come(bounds, f"192.0.2.{host}") for host in range(5)}
        first = [bounds.hear(hear[0], False) for _ in range(3)]
        others = [bounds.hear(hear[host], False) for host in (1, 2, 3, 4)]  # the last three have one bucket together
        again = [bounds.hear(hear[host], is_known) for host, is_known in ((0, False), (0, True), (4, False))]
        now_s += 5.0  # in which all are full again
        later = [bounds.hear(hear[host], False) for host in (3, 3, 3, 0)]
        return first, others, again, later

    first, others, again, later = asyncio.run(speak())
    assert first == [True, True, False] and others == [True, True, True, False]
    assert again == [False, True, False] and later == [True, True, False, True]


def test_a_system_without_a_file_for_a_connection_ends_nothing(monkeypatch):
    monkeypatch.setattr(accepting, "NO_FILE_S", 0.0)
    errors = [errno.EMFILE, errno.ECONNABORTED, errno.ENFILE, None, errno.EBADF]
    pairs = []

    async def accept(listening):
        if (number := errors.pop(0)) is not None:
            raise OSError(number, "as the system says")
        pairs.append(socket.socketpair())
        return pairs[0][0], ("192.0.2.1", 1)

    async def serve():
        bounds, loop = Guard(num_seats=1, most_open=0), asyncio.get_running_loop()
        monkeypatch.setattr(loop, "sock_accept", accept)
        with pytest.raises(OSError, match="as the system says"):
            await accept_all(socket.socket(), bounds, asyncio.Protocol, None, 1.0)
        return dict(bounds.counts)

    assert asyncio.run(serve()) == {guard.NO_FILE: 2, guard.TOO_MANY: 1} and not errors
    with pairs[0][1] as other:
        assert other.recv(1) == b""  # closed, since none may be open
