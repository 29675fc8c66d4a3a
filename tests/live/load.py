"""How much one server holds: `.venv/bin/python tests/live/load.py [--clients=1000] [--rounds=20] [--turns=3]`.

A `launch.serve` of the digits, a model of 17,194 weights, has many light clients: they are connected, fetch what they
are dealt, and answer each task at once by an update of the right form; they train nothing. In turns with it the same
clients have sockets alone, by which the same bytes go both ways, and what comes is added: what must be done at least.
Clients run on the same machine, so seconds of a round have their time in both; seconds of computing are of the server
alone, all its threads together. It prints a line of JSON a turn, and then both ratios with their range.

`--connections=10000` opens so many more at the end of enrolment, and says what becomes of them. Not a test of time:
`test_load.py` looks at the outcome of a small one.
"""

import argparse
import asyncio
import base64
import collections
import contextlib
import hashlib
import itertools
import json
import math
import os
import pathlib
import re
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from launch.live.guard import SPARE_CONNECTIONS  # noqa: E402
from launch.live.links import read_links  # noqa: E402
from launch.live.messages import VERSION, pack, pack_arrays, unpack  # noqa: E402

FLAGS = (
    *("--algo=fedavg", "--dataset=digits", "--model=image_student", "--partition=iid", "--epochs=1"),
    *("--run_page=false", "--noqr", "--noresume", "--round_deadline_s=120"),
)
# Of the model's weights.
SHAPES = (3, 3, 1, 32), (32,), (3, 3, 32, 16), (16,), (3, 3, 16, 16), (16,), (3, 3, 16, 64), (64,), (64, 10), (10,)
STAGES = (0.1, 0.5, 1.0)  # shares of the clients at which memory is read
SETTLED_S = 1.0
PATIENCE_S = 60


class LightClient:
    """Speaks the protocol, and answers at once; `counts` is shared by all of a process."""

    def __init__(self, link, counts):
        self._base, _, self._token = link.partition("/#")
        self._counts, self._missing, self._task = counts, {"file", "part"}, None

    async def run(self, session, has_joined):
        async with session.ws_connect(f"{self._base}/ws", max_msg_size=2**24) as ws:
            header = {"type": "join", "protocol": VERSION, "key": secrets.token_hex(16), "token": self._token}
            header |= {"name": "", "kind": "load", "num_train": 0, "num_test": 0}
            header |= {"columns": None, "round_most_examples": None}
            await ws.send_bytes(pack(header))
            has_joined()
            async for each in ws:
                message = unpack(each.data)
                self._counts[message.type] += 1
                if message.type == "welcome":
                    for what in sorted(self._missing):
                        await ws.send_bytes(pack({"type": "fetch", "what": what}))
                elif message.type in self._missing:
                    self._missing.discard(message.type)
                elif message.type == "train":
                    self._task = message
                elif message.type in ("done", "refused"):
                    return
                if self._task is not None and not self._missing:
                    await ws.send_bytes(self._answer(*self._task))
                    self._task = None

    def _answer(self, header, arrays):
        names = ("run", "number", "client", "file", "task")
        told = {name: header[name] for name in names} | {"num_trained": arrays["order"].size}
        deltas = {name: each * np.float32(1e-3) for name, each in arrays.items() if name != "order"}
        return pack({"type": "answer", **told, "loss_sum": 1.0, "seconds": 0.01}, deltas)


async def be_clients(path, first, number):
    """The clients of these links of a file, until the run is over; prints when all have joined, and what they heard."""
    import aiohttp

    links = [link for whose, link in read_links(pathlib.Path(path)).items() if whose.startswith("seat")]
    counts, waiting = collections.Counter(), [number]

    def has_joined():
        waiting[0] -= 1
        if not waiting[0]:
            print("joined", flush=True)

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(LightClient(link, counts).run(session, has_joined) for link in links[first:][:number]))
    print(json.dumps(counts), flush=True)


def start_clients(links, first, number, processes):
    """Starts the clients of these links of a file, spread over processes; returns these when all have joined."""
    started = spawn_clients(links, first, number, processes)
    for each in started:
        assert each.stdout.readline() == "joined\n"
    return started


def spawn_clients(links, first, number, processes):
    ends = [first + number * index // processes for index in range(processes + 1)]
    spans = [(str(start), str(end - start)) for start, end in itertools.pairwise(ends) if end > start]
    command = [sys.executable, __file__, "be_clients", str(links)]
    return [subprocess.Popen([*command, *span], stdout=subprocess.PIPE, text=True, bufsize=1) for span in spans]


def read_memory(pid, name):
    """Of the process, in MB: VmRSS now, VmHWM at most."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(rf"{name}:\s+(\d+) kB", text)[1]) / 1000


def read_cpu(pid):
    """Seconds that the process has computed, with its threads."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run_live(asked):
    """A run; what was measured of it."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="load_"))
    flags = [*FLAGS, f"--num_clients={asked.clients}", f"--rounds={asked.rounds}", f"--run_dir={folder / 'run'}"]
    command = [sys.executable, "-u", "-m", "launch.serve", *flags, "--port=0", *asked.flags]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, bufsize=1)
    lines, times, computed, found, clients = [], [], [], {"clients": asked.clients}, []
    try:
        for line in server.stdout:
            lines.append(line)
            if line.startswith("watch"):
                before, links = read_memory(server.pid, "VmRSS"), folder / "run/links.txt"
                found |= enrol(asked, server.pid, links, clients)
                if asked.connections:
                    base = line.split()[-1].rpartition("/")[0]
                    may_stay = 2 * asked.clients + SPARE_CONNECTIONS - (asked.clients - 1)  # see the guard
                    knocking = knock(base, asked.connections, may_stay, server.pid)
                    found["connections"] = asyncio.run(knocking)
                times.append(time.perf_counter())
                clients += start_clients(links, asked.clients - 1, 1, 1)  # for whom the run has waited
            elif line.startswith("round"):
                times.append(time.perf_counter())
                computed.append(read_cpu(server.pid))
                found["most_mb"] = round(read_memory(server.pid, "VmHWM") - before, 1)
        found["exit_code"] = server.wait()
        heard = collections.Counter()
        for each in clients:
            heard.update(json.loads(each.stdout.readline()))
        names, *rows = [line.split(",") for line in (folder / "run/traffic.csv").read_text().splitlines()]
        totals = {name: sum(int(row[index]) for row in rows) for index, name in enumerate(names)}
    finally:
        for each in (server, *clients):
            each.kill()
            each.wait()
    seconds = np.diff(times)
    found |= {"first_round_s": round(seconds[0], 2), "round_s": round(statistics.median(seconds[1:]), 3)}
    found["server_cpu_s"] = round(statistics.median(np.diff(computed)), 3)
    found |= {"heard": heard} | {name: totals[f"num_{name}"] for name in ("answered", "late", "rejected", "missing")}
    return found | {"bytes_down": int(rows[-1][names.index("bytes_down")])}, lines


def enrol(asked, pid, links, clients):
    """Has all but one join; seconds of that, and what of memory and files the server has taken by stages."""
    memory, there, seconds, files = [(0, read_memory(pid, "VmRSS"))], 0, 0.0, []
    for share in STAGES:
        more = round(share * asked.clients) - 1 - there
        start = time.perf_counter()
        clients += start_clients(links, there, more, asked.processes)
        seconds, there = seconds + time.perf_counter() - start, there + more
        time.sleep(SETTLED_S)
        memory.append((there, read_memory(pid, "VmRSS")))
        files.append(len(os.listdir(f"/proc/{pid}/fd")))
    (few, first), (many, last) = memory[1], memory[-1]
    kilobytes = round(1000 * (last - first) / (many - few))
    shown = {number: round(each, 1) for number, each in memory}
    return {"joining_s": round(seconds, 2), "mb": shown, "kb_per_connection": kilobytes, "open_files": files}


async def knock(base, number, may_stay, pid):
    """Opens so many connections beside the clients', which say nothing; what became of them when few enough are left.

    The server closes the oldest for each one that is too many, before or after that has got its answer.
    """
    import aiohttp

    counts, sockets, listening = collections.Counter(), [], []

    async def connect(session):
        try:
            ws = await session.ws_connect(f"{base}/ws")
        except (aiohttp.ClientError, OSError) as error:
            counts[type(error).__name__] += 1
            return
        sockets.append(ws)
        listening.append(asyncio.create_task(ws.receive()))  # its end: the server says nothing

    start = time.perf_counter()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        for first in range(0, number, 500):
            await asyncio.gather(*(connect(session) for _ in range(min(500, number - first))))
        seconds = round(time.perf_counter() - start, 1)
        async with asyncio.timeout(PATIENCE_S):
            while (left := sum(not each.done() for each in listening)) > may_stay:
                await asyncio.sleep(0.05)
        found = {"number": number, **counts, "closed": len(listening) - left, "open": left, "seconds": seconds}
        found |= {"mb": round(read_memory(pid, "VmRSS"), 1), "open_files": len(os.listdir(f"/proc/{pid}/fd"))}
        for each in listening:
            each.cancel()
        await asyncio.gather(*listening, return_exceptions=True)
        for each in sockets:
            await each.close()
    return found


# --- The same clients and bytes without a server ---


def frame(content):
    """A binary message of WebSockets, as a server sends it."""
    return b"\x82\x7f" + len(content).to_bytes(8, "big") + content


def receive(connection, size):
    buffer = bytearray(size)
    assert connection.recv_into(buffer, size, socket.MSG_WAITALL) == size
    return buffer


def receive_message(connection):
    """The content of a message of a client, as 32-bit words; it comes masked."""
    length = receive(connection, 2)[1] & 127
    if length > 125:
        length = int.from_bytes(receive(connection, 2 if length == 126 else 8), "big")
    mask = np.frombuffer(receive(connection, 4), np.uint32)
    return np.frombuffer(receive(connection, length), np.uint32) ^ mask


def accept(listening):
    """A client's connection, of which the greeting of WebSockets is done."""
    connection, request = listening.accept()[0], b""
    while not request.endswith(b"\r\n\r\n"):
        request += connection.recv(4096)
    key = re.search(rb"(?i)sec-websocket-key: (\S+)", request)[1]
    answer = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n")
    connection.sendall(b"Sec-WebSocket-Accept: " + answer + b"\r\n\r\n")
    return connection


def make_task():
    """The message of a task of the digits, as a run sends it."""
    header = {"type": "train", "learning_rate": 0.05, "steps": 1, "batch_size": 32, "run": "0" * 32, "client": 100}
    header |= {"file": "0" * 64, "number": 10, "round": 10, "task": "0" * 16}
    weights = {f"weight_{index}": np.zeros(shape, np.float32) for index, shape in enumerate(SHAPES)}
    return pack(header, {"order": np.zeros((1, 1), np.uint16)}, pack_arrays(weights))


def run_bare(asked, size):
    """A round of the same clients beside sockets alone: its seconds, and those of computing without the clients.

    One thread sends tasks of about `size` bytes, another one receives and adds.
    """
    import selectors

    task, number = make_task(), sum(map(math.prod, SHAPES))
    assert abs(len(task) - size) < 100, (len(task), size)
    with contextlib.ExitStack() as stack, tempfile.NamedTemporaryFile("w", suffix=".txt") as links:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=1024))
        base = f"http://127.0.0.1:{listening.getsockname()[1]}/#none"
        links.write("".join(f"seat {seat} {base}\n" for seat in range(asked.clients)))
        links.flush()
        clients = spawn_clients(links.name, 0, asked.clients, asked.processes)
        connections = [stack.enter_context(accept(listening)) for _ in range(asked.clients)]
        selector = stack.enter_context(selectors.DefaultSelector())
        for each in connections:
            receive_message(each)  # to join
            each.sendall(frame(pack({"type": "file"})) + frame(pack({"type": "part"})))
            selector.register(each, selectors.EVENT_READ)
        content, seconds, before = frame(task), [], time.process_time()
        for _ in range(asked.rounds):
            start, total, missing = time.perf_counter(), np.zeros(number, np.float32), asked.clients
            sender = threading.Thread(target=lambda: [each.sendall(content) for each in connections])
            sender.start()
            while missing:
                for key, _ in selector.select():
                    total += np.float32(0.5) * receive_message(key.fileobj)[-number:].view(np.float32)
                    missing -= 1
            sender.join()
            seconds.append(time.perf_counter() - start)
        computed = (time.process_time() - before) / asked.rounds
        for each in connections:
            each.sendall(frame(pack({"type": "done"})))
        for each in clients:
            each.communicate()
    return statistics.median(seconds), computed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--connections", type=int, default=0, help="that are opened beside the clients'")
    parser.add_argument("--show", action="store_true", help="what the server prints")
    asked, asked.flags = parser.parse_known_args()
    ratios = {"ratio": [], "cpu_ratio": []}
    for _ in range(asked.turns):
        found, lines = run_live(asked)
        if asked.show:
            print("".join(lines), end="")
        bare_s, bare_cpu_s = run_bare(asked, found["bytes_down"] // asked.clients)
        ratios["ratio"].append(found["round_s"] / bare_s)
        ratios["cpu_ratio"].append(found["server_cpu_s"] / bare_cpu_s)
        found |= {"bare_s": round(bare_s, 4), "bare_cpu_s": round(bare_cpu_s, 4)}
        print(json.dumps(found | {name: round(each[-1], 2) for name, each in ratios.items()}), flush=True)
    shown = {
        name: {"median": round(statistics.median(each), 2), "least": round(min(each), 2), "most": round(max(each), 2)}
        for name, each in ratios.items()
    }
    print(json.dumps(shown))


if __name__ == "__main__":
    if sys.argv[1:2] == ["be_clients"]:
        asyncio.run(be_clients(sys.argv[2], *map(int, sys.argv[3:])))
    else:
        main()
