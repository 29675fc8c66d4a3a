"""The transport over sockets: what a connection may do."""

import contextlib
import socket
import ssl
import struct
import time
import types

import aiohttp
import pytest
from certificates import make_certificate
from live_sockets import PATIENCE_S, connect, run_client

from launch.live import guard, watching
from launch.live import transport as module
from launch.live.door import HERE, Door
from launch.live.served import ServedFile
from launch.live.transport import WebSocketTransport
from tff_algos.rounds.network import TICK_S
from tff_algos.settings.config_fields import ConfigError

SECONDS = round(1 / TICK_S)
# Without and with one of its own.
POLICIES = [["default-src 'none'; frame-ancestors 'none'"], ["default-src 'self'", "frame-ancestors 'none'"]]
HANDSHAKE = (
    "GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


@contextlib.contextmanager
def listen(most_bytes=1000, most_connections=4, files=None, port=0, watch_token="", num_seats=0, door=HERE):
    transport = WebSocketTransport(port, most_bytes, most_connections, files, watch_token, door, num_seats)
    transport.start()
    try:
        yield transport
    finally:
        transport.stop()


def take(transport):
    return transport.receive(transport.now_ticks() + PATIENCE_S * SECONDS)


def wait_for(is_so):
    end_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def test_of_who_sends_more_than_is_received_only_a_few_messages_are_held():
    async def flood(port):
        async with connect(port) as ws:
            await ws.send_bytes(b"hello")
            await ws.receive()
            for number in range(100):
                await ws.send_bytes(number.to_bytes(4) + bytes(2**18))
            return (await ws.receive()).data

    with listen(most_bytes=2**20) as transport:
        done = run_client(flood(transport.port))
        hello = take(transport).connection
        transport.admit(hello)
        transport.send(hello, b"go on")
        first = take(transport)
        unread = transport._connections[hello].unread
        wait_for(lambda: unread.locked() and transport._received.qsize() == module.MOST_UNREAD)  # and no more is read
        received = [first, *(take(transport) for _ in range(99))]
        assert [int.from_bytes(each.content[:4]) for each in received] == list(range(100))
        transport.close(first.connection, b"enough")
        assert done.result(PATIENCE_S) == b"enough"


def test_messages_go_both_ways_in_order_and_an_end_is_heard():
    async def talk(port):
        async with connect(port) as ws:
            for content in (b"1", b"2"):
                await ws.send_bytes(content)
            return [(await ws.receive_bytes()) for _ in range(3)], (await ws.receive()).type

    with listen() as transport:
        before = transport.now_ticks()
        client = run_client(talk(transport.port))
        first, second = take(transport), take(transport)
        assert [first.content, second.content] == [b"1", b"2"] and first.connection == second.connection
        assert before <= first.ticks <= second.ticks <= transport.now_ticks()
        for content in (b"a", b"b" * 100_000):
            transport.send(first.connection, content)
        transport.close(first.connection, b"c")
        transport.send(first.connection, b"too late")
        heard, last = client.result(PATIENCE_S)
        assert heard == [b"a", b"b" * 100_000, b"c"] and last == aiohttp.WSMsgType.CLOSE
        assert take(transport)[::2] == (first.connection, None)
        transport.send(first.connection, b"gone")
        assert transport.receive(transport.now_ticks() + 1000) is None


def test_a_message_beyond_the_limit_ends_its_connection():
    async def send(port, *sizes):
        async with connect(port) as ws:
            for size in sizes:
                await ws.send_bytes(b"x" * size)
            return (await ws.receive()).data

    with listen(most_bytes=1000) as transport:
        client = run_client(send(transport.port, 1000, 1001))
        assert len(take(transport).content) == 1000
        assert take(transport).content is None
        assert client.result(PATIENCE_S) == aiohttp.WSCloseCode.MESSAGE_TOO_BIG


def test_a_header_that_says_too_much_is_enough_to_refuse():
    """Not a byte of the content is sent."""
    with listen(most_bytes=1000) as transport, socket.create_connection(("127.0.0.1", transport.port)) as plain:
        plain.settimeout(PATIENCE_S)
        plain.sendall(HANDSHAKE.encode())
        assert b"101 Switching" in plain.recv(4096)
        plain.sendall(b"\x82\xff" + (2**40).to_bytes(8, "big") + b"\0" * 4)
        assert plain.recv(4096)[:1] == b"\x88"  # a frame that closes
        assert take(transport).content is None


def test_text_ends_a_connection():
    async def send(port):
        async with connect(port) as ws:
            await ws.send_str("hello")
            return (await ws.receive()).type

    with listen() as transport:
        client = run_client(send(transport.port))
        assert take(transport).content is None
        assert client.result(PATIENCE_S) in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)


def test_who_says_nothing_at_first_is_closed(monkeypatch):
    monkeypatch.setattr(module, "GREETING_S", 0.2)

    async def talk(port):
        async with connect(port) as ws:
            return (await ws.receive()).type

    with listen() as transport:
        client = run_client(talk(transport.port))
        assert client.result(PATIENCE_S) == aiohttp.WSMsgType.CLOSE
        assert take(transport).content is None


def test_strangers_give_way_to_each_other_and_clients_to_nobody():
    async def hold(port):
        async with connect(port) as ws:
            await ws.send_bytes(b"client")
            return (await ws.receive()).data

    with listen(most_connections=2) as transport, contextlib.ExitStack() as stack:
        client = run_client(hold(transport.port))
        admitted = take(transport).connection
        transport.admit(admitted)
        strangers = []
        for _ in range(20):
            strangers.append(stack.enter_context(socket.create_connection(("127.0.0.1", transport.port))))
            strangers[-1].settimeout(PATIENCE_S)
        for each in strangers[:-1]:
            with contextlib.suppress(ConnectionError):
                assert each.recv(1) == b""
        transport.send(admitted, b"still there")
        assert client.result(PATIENCE_S) == b"still there"
        assert transport.take_refused() == {guard.TOO_MANY: 19}


def test_strangers_give_way_to_each_other_while_tls_is_not_agreed(tmp_path, caplog):
    door = Door("127.0.0.1", *make_certificate(tmp_path))
    with contextlib.ExitStack() as stack, listen(most_connections=2, door=door) as transport:
        strangers = [
            stack.enter_context(socket.create_connection(("127.0.0.1", transport.port), PATIENCE_S)) for _ in range(20)
        ]
        for each in strangers[:-2]:
            with contextlib.suppress(ConnectionError):
                assert each.recv(1) == b""
        strangers[-1].sendall(b"GET / HTTP/1.1\r\n\r\n")
        wait_for(lambda: transport._guard.counts[guard.NO_TLS])
        assert transport.take_refused() == {guard.TOO_MANY: 18, guard.NO_TLS: 1}
    assert not caplog.records


def test_before_a_seat_little_is_read_and_then_as_much_as_a_message_may_have():
    async def send(port, sizes):
        async with connect(port) as ws:
            for size in sizes:
                await ws.send_bytes(b"x" * size)
            return (await ws.receive()).type

    with listen(most_bytes=2**22) as transport:
        client = run_client(send(transport.port, [2**20]))
        with contextlib.suppress(ConnectionError):
            assert client.result(PATIENCE_S) != aiohttp.WSMsgType.BINARY
        assert take(transport).content is None
        assert transport.take_refused() == {guard.TOO_LARGE: 1} and not transport.take_refused()
        client = run_client(send(transport.port, [10]))
        first = take(transport)
        transport.admit(first.connection)
        transport.send(first.connection, b"welcome")
        assert client.result(PATIENCE_S) == aiohttp.WSMsgType.BINARY


def test_an_address_that_is_refused_too_often_is_not_heard_for_a_while_but_who_is_known_is(monkeypatch):
    monkeypatch.setattr(guard, "SPARE_REFUSED", 2)
    monkeypatch.setattr(guard, "REFUSED_PER_S", 0.0)

    async def greet(port, first):
        async with connect(port) as ws:
            await ws.send_bytes(first)
            return (await ws.receive()).data

    async def watch(port, token):
        async with connect(port, "/watch") as ws:
            await ws.send_str(token)
            return (await ws.receive()).data

    with listen(num_seats=1, watch_token="organiser") as transport:
        transport.show(b"{}")
        transport.know(lambda content: content == b"known")
        for first in [b"known", *3 * [b"x"], b"known", b"known"]:
            client = run_client(greet(transport.port, first))
            connection = take(transport).connection
            transport.close(connection, b"answer")
            assert client.result(PATIENCE_S) == b"answer" and take(transport).content is None
        client = run_client(greet(transport.port, b"x"))
        assert client.result(PATIENCE_S) == aiohttp.WSCloseCode.TRY_AGAIN_LATER
        assert run_client(watch(transport.port, "guessed")).result(PATIENCE_S) == aiohttp.WSCloseCode.POLICY_VIOLATION
        assert run_client(watch(transport.port, "organiser")).result(PATIENCE_S) == "{}"
        assert transport.take_refused() == {guard.TOO_OFTEN: 2}


def test_slow_headers_end_their_connection(monkeypatch):
    monkeypatch.setattr(guard, "HEADER_S", 0.2)
    with listen() as transport, socket.create_connection(("127.0.0.1", transport.port)) as plain:
        plain.settimeout(PATIENCE_S)
        with contextlib.suppress(ConnectionError):
            plain.sendall(b"GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
            assert plain.recv(1) == b""
        assert transport.take_refused() == {guard.TOO_SLOW: 1}


def test_what_is_no_http_is_counted_and_nothing_else_is_said_of_it(caplog):
    many = b"".join(b"x%d: 1\r\n" % number for number in range(module.MOST_HEADERS + 1))
    with listen() as transport:
        for line in (b"GET \\..\\x HTTP/1.1\r\n", b"GET / HTTP/9\r\n", b"GET / HTTP/1.1\r\n" + many):
            with socket.create_connection(("127.0.0.1", transport.port)) as plain:
                plain.settimeout(PATIENCE_S)
                plain.sendall(line + b"\r\n")
                assert plain.recv(12) == b"HTTP/1.0 400"
        assert transport.take_refused() == {guard.MALFORMED: 3} and not caplog.records


HOSTS = b"127.0.0.1:99999", b"127.0.0.1:abc", b"127.0.0.1:80/evil", b"\xff"


@pytest.mark.parametrize("host", HOSTS)
def test_a_host_that_is_none_is_refused_and_counted(host, caplog):
    with listen(files={"/x": ServedFile(b"x", "text/plain")}) as transport:
        with socket.create_connection(("127.0.0.1", transport.port), PATIENCE_S) as plain:
            plain.sendall(b"GET /x HTTP/1.1\r\nHost: %s\r\n\r\n" % host)
            assert plain.recv(12) == b"HTTP/1.1 400"
        assert transport.take_refused() == {guard.MALFORMED: 1} and not caplog.records


@pytest.mark.parametrize("path", ["/ws", "/watch", "/x"])
def test_nothing_is_said_of_requests_whose_sender_is_gone(path, caplog):
    request = HANDSHAKE.replace("/ws", path).encode()
    with listen(most_connections=50, files={"/x": ServedFile(b"x", "text/plain")}) as transport:
        for _ in range(40):
            with socket.create_connection(("127.0.0.1", transport.port), PATIENCE_S) as plain:
                plain.sendall(request)
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closed by a reset
        with socket.create_connection(("127.0.0.1", transport.port), PATIENCE_S) as plain:
            plain.sendall(request)
            assert plain.recv(9) == b"HTTP/1.1 "
        wait_for(lambda: not transport._connections)
    assert not caplog.records


def test_a_request_that_fails_is_counted_and_no_traceback_is_shown(caplog):
    def fail(name):
        raise LookupError(name)

    door = types.SimpleNamespace(host="127.0.0.1", open_tls=lambda: None, has_name=fail)
    with listen(door=door) as transport:
        with socket.create_connection(("127.0.0.1", transport.port), PATIENCE_S) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert plain.recv(12) == b"HTTP/1.1 500"
        assert transport.take_refused() == {guard.FAILED.format("LookupError"): 1} and not caplog.records


def test_a_connection_may_carry_many_requests():
    request = b"GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: " + 1000 * b"a" + b"\r\n\r\n"
    with listen(files={"/x": ServedFile(b"x", "text/plain")}) as transport:
        with socket.create_connection(("127.0.0.1", transport.port), PATIENCE_S) as plain:
            answers = plain.makefile("rb")
            for _ in range(2 * guard.MOST_EARLY_BYTES // len(request)):
                plain.sendall(request)
                assert answers.readline() == b"HTTP/1.1 200 OK\r\n"
                while answers.readline() != b"\r\n":
                    pass
                assert answers.read(1) == b"x"
            answers.close()
        assert not transport.take_refused()


def test_who_sends_too_many_messages_is_closed(monkeypatch):
    monkeypatch.setattr(module, "MOST_MESSAGES", 3)
    monkeypatch.setattr(module, "MESSAGES_PER_S", 0.0)

    async def send(port):
        async with connect(port) as ws:
            for _ in range(5):
                await ws.send_bytes(b"x")
            return (await ws.receive()).data

    with listen() as transport:
        client = run_client(send(transport.port))
        assert [take(transport).content for _ in range(4)] == [b"x"] * 3 + [None]
        assert client.result(PATIENCE_S) == aiohttp.WSCloseCode.POLICY_VIOLATION
        assert transport.take_refused() == {guard.TOO_TALKATIVE: 1}


def test_with_a_certificate_it_speaks_tls_and_its_own_pages_are_those_of_https(tmp_path):
    files = make_certificate(tmp_path)
    transport = WebSocketTransport(0, 1000, 4, {"/x": ServedFile(b"x", "text/plain")}, door=Door("127.0.0.1", *files))

    async def ask(port):
        trusted = ssl.create_default_context(cafile=files[0])
        found = []
        async with aiohttp.ClientSession() as session:
            for origin in ("https", "http"):
                headers = {"Origin": f"{origin}://localhost:{port}"}
                async with session.get(f"https://localhost:{port}/x", ssl=trusted, headers=headers) as response:
                    found.append(response.status)
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await session.get(f"https://localhost:{port}/x")
            async with session.ws_connect(f"https://localhost:{port}/ws", ssl=trusted) as ws:
                await ws.send_bytes(b"hello")
                await ws.receive()
        return found

    transport.start()
    try:
        client = run_client(ask(transport.port))
        first = take(transport)
        assert first.content == b"hello"
        transport.admit(first.connection)
        transport.close(first.connection)
        assert client.result(PATIENCE_S) == [200, 403]
    finally:
        transport.stop()


def test_it_answers_its_own_pages_and_programs_of_this_machine_alone():
    async def ask(port):
        found, other = [], f"http://127.0.0.1:{port}"  # by another name, the page of another site
        async with aiohttp.ClientSession() as session:
            origins = {}, {"Origin": f"http://localhost:{port}"}, {"Origin": other}, {"Origin": "null"}
            hosts = {"Host": "example.org"}, {"Host": "example.org", "Origin": "http://example.org"}
            for headers in (*origins, *hosts):
                for path in ("/join.py", "/ws", "/other"):
                    async with session.get(f"http://localhost:{port}{path}", headers=headers) as response:
                        found.append(response.status)
                        content = await response.read()
                        assert (content == b"print()") == (response.status == 200)
                        assert response.headers["X-Content-Type-Options"] == "nosniff"
                        assert response.headers.getall("Content-Security-Policy") == POLICIES[response.status == 200]
        return found

    file = ServedFile(b"print()", "text/x-python; charset=utf-8", {"Content-Security-Policy": "default-src 'self'"})
    with listen(files={"/join.py": file}) as transport:
        statuses = run_client(ask(transport.port)).result(PATIENCE_S)
        assert statuses == 2 * [200, 400, 404] + 12 * [403]
        listening = socket.create_connection(("127.0.0.1", transport.port))
        assert listening.getpeername()[0] == "127.0.0.1"
        listening.close()


def test_who_has_the_token_watches_the_newest_status_and_nobody_else_does(monkeypatch):
    monkeypatch.setattr(watching, "PAUSE_S", 0.0)

    async def watch(port, first, count):
        async with connect(port, "/watch") as ws:
            await ws.send_str(first)
            shown = [await ws.receive_str() for _ in range(count)]
            return shown, (await ws.receive()).data

    with listen(watch_token="organiser") as transport:
        for first in ("", "organise", "organiser "):
            assert run_client(watch(transport.port, first, 0)).result(PATIENCE_S) == ([], 1008)
        transport.show(b"older")
        transport.show('{"name": "ü"}'.encode())
        client = run_client(watch(transport.port, "organiser", 1))
        wait_for(lambda: transport._watching.watchers)
        transport.stop()
        assert client.result(PATIENCE_S) == (['{"name": "ü"}'], 1000)
    with listen() as transport:
        assert run_client(watch(transport.port, "", 0)).result(PATIENCE_S) == ([], 1008)


def test_a_port_that_is_taken_is_a_line_and_a_port_that_was_left_is_free():
    with listen() as transport:
        port = transport.port
        with pytest.raises(ConfigError) as error:
            WebSocketTransport(port, 1000, 4).start()
        assert str(error.value).startswith(f"port={port}: expected one on which no other program listens")
    with listen(port=port) as transport:
        assert transport.port == port
    transport.stop()  # again


def test_a_wait_ends_at_its_time_and_a_failure_wakes():
    with listen() as transport:
        until = transport.now_ticks() + 1000
        assert transport.receive(until) is None and transport.now_ticks() >= until
        transport._failure = OSError("the disk is full")
        with pytest.raises(RuntimeError):
            transport.receive(None)
        transport._failure = None


# --- The network ---
