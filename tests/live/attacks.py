"""Strangers and clients that mean harm, at a live run that trains meanwhile: `.venv/bin/python tests/live/attacks.py`.

A server of `launch.serve` and three clients of join.py run in processes of their own. Two more have links, and lie;
others have none. The server may have 1,024 files open, as is usual. In the end every round must stand once in the
tables, with an answer of each honest client. It prints a row for each attack: how often it was tried, how often it was
refused or did not count, what became of it, and the memory of the server. It takes some minutes; `test_attacks.py` has
it do fewer.
"""

import argparse
import asyncio
import contextlib
import csv
import json
import pathlib
import random
import re
import resource
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import aiohttp
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from launch.live import guard  # noqa: E402
from launch.live.join import digest_description  # noqa: E402
from launch.live.links import read_links  # noqa: E402
from launch.live.messages import VERSION, pack, unpack  # noqa: E402

HONEST, LIARS = 3, 2
OPEN_FILES = 1024
NAMES = "<script>alert(1)</script>", '=HYPERLINK("http://evil","x")'
LIMIT_S = 300.0
SLOWED = """
import sys, time
import join
train = join.Trainer.train
join.Trainer.train = lambda *given: (time.sleep(0.2), train(*given))[1]
sys.exit(join.main())
"""


def write_rows(path, seed):
    draw = random.Random(seed)
    rows = [(draw.gauss(0, 1), draw.gauss(0, 1)) for _ in range(60)]
    lines = [f"{a:.3f},{b:.3f},{'yes' if a + b > 0 else 'no'}\n" for a, b in rows]
    path.write_text("".join(["a,b,ill\n", *lines]), encoding="utf-8")


class Federation:
    """The server and its honest clients."""

    def __init__(self, folder, python, rounds, open_files):
        self.folder, self.run_dir, self.rounds = folder, folder / "run", rounds
        for index in range(HONEST + 1):
            write_rows(folder / f"{index}.csv", index)
        self.log = folder / "server.log"
        flags = ["--algo=fedavg", "--own_data", f"--data={folder / '0.csv'}", "--label_column=ill", "--batch_size=16"]
        flags += [
            f"--start_with={HONEST + LIARS}",
            f"--rounds={rounds}",
            "--round_deadline_s=600",
            "--noresume",
            "--port=0",
        ]
        flags += ["--optimizer=sgd", "--learning_rate=0.01", "--noqr", f"--run_dir={self.run_dir}"]
        with open(self.log, "w", encoding="utf-8") as log:
            command = [sys.executable, "-m", "launch.serve", *flags]
            limit = ["sh", "-c", f'ulimit -n {open_files} && exec "$@"', "sh"]  # of both kinds
            self.server = subprocess.Popen([*limit, *command], cwd=ROOT, stdout=log, stderr=log)
        self.wait_for("join.py is one file")
        self.links = read_links(self.run_dir / "links.txt")
        self.base = self.links["seat 0"].partition("/#")[0]
        self.host, _, port = self.base.removeprefix("http://").partition(":")
        self.port, self.clients = int(port), []
        for index in range(HONEST):
            command = [python, "-c", SLOWED, self.links[f"seat {index}"], f"--data={folder / f'{index + 1}.csv'}"]
            with open(folder / f"client_{index}.log", "w", encoding="utf-8") as log:
                command += [f"--home={folder / f'home_{index}'}"]
                self.clients.append(subprocess.Popen(command, cwd=ROOT / "launch/live", stdout=log, stderr=log))

    def wait_for(self, pattern):
        end_s = time.monotonic() + LIMIT_S
        while not re.search(pattern, self.log.read_text(encoding="utf-8")):
            assert self.server.poll() is None and time.monotonic() < end_s, self.log.read_text()[-3000:]
            time.sleep(0.1)

    def get_token(self, seat):
        return self.links[f"seat {seat}"].partition("#")[2]

    def read_memory(self, what="VmRSS"):
        """MB of the server."""
        status = pathlib.Path(f"/proc/{self.server.pid}/status").read_text(encoding="utf-8")
        return int(re.search(rf"{what}:\s+(\d+)", status)[1]) / 1024

    def end(self):
        for process in (self.server, *self.clients):
            if process.poll() is None:
                process.kill()
            process.wait()


class Liar:
    """A client with a seat, whose answers are what `plan` says, one after another, and then right ones.

    It answers the last rounds when the attacks are over, so that the run outlasts them.
    """

    def __init__(self, federation, seat, name, plan, are_over):
        self._are_over, self._last_round = are_over, federation.rounds - 5
        self._token, self._name, self.plan, self._base = federation.get_token(seat), name, plan, federation.base
        self.key, self.sent, self.last, self.socket = secrets.token_hex(16), dict[str, int](), None, None

    async def run(self, session):
        async with session.ws_connect(f"{self._base}/ws", max_msg_size=0) as ws:
            self.socket = ws
            caller = {"key": self.key, "token": self._token}
            await ws.send_bytes(pack({"type": "fetch", "what": "description", **caller}))
            async for each in ws:
                if each.type != aiohttp.WSMsgType.BINARY:
                    break
                message = unpack(each.data)
                if message.type == "description":
                    columns = digest_description(message.header["description"])
                    header = {"type": "join", "protocol": VERSION, **caller, "name": self._name, "kind": "liar"}
                    await ws.send_bytes(pack(header | {"num_train": 40, "num_test": 0, "columns": columns}))
                elif message.type == "train":
                    answering = asyncio.create_task(self._answer(ws, message))  # pings are answered meanwhile
                elif message.type in ("done", "refused"):
                    await answering
                    return message.header
        return {"type": "closed"}

    async def _answer(self, ws, task):
        what = self.plan.pop(0) if self.plan else "right"
        value = {"nan": np.nan, "1e30": 1e30, "right": 0.0}[what]
        deltas = {n: np.full(a.shape, value, np.float32) for n, a in task.arrays.items() if n.startswith("weight_")}
        header = {name: task.header[name] for name in ("run", "number", "client", "file", "task")}
        header |= {"type": "answer", "num_trained": task.arrays["order"].size, "loss_sum": 1.0, "seconds": 0.1}
        if task.header["round"] >= self._last_round:
            await self._are_over.wait()
        self.last = pack(header, deltas)
        self.sent[what] = self.sent.get(what, 0) + 1
        await ws.send_bytes(self.last)


# --- What strangers do: each returns (tried, of no use to them, how that was seen) ---


async def say_first(session, federation, content):
    """What a connection is told after its first message; "" if it is closed without a word."""
    try:
        async with session.ws_connect(f"{federation.base}/ws", max_msg_size=0) as ws:
            await ws.send_bytes(content)
            got = await ws.receive(timeout=30)
            return unpack(got.data).header.get("reason", "let in") if got.type == aiohttp.WSMsgType.BINARY else ""
    except (aiohttp.ClientError, ConnectionError):
        return ""


def make_join(token, key=""):
    header = {"type": "join", "protocol": VERSION, "key": key or secrets.token_hex(16), "token": token, "name": "x"}
    return pack(header | {"kind": "x", "num_train": 5, "num_test": 0, "columns": None})


async def guess_tokens(session, federation, number):
    said = [await say_first(session, federation, make_join(secrets.token_urlsafe(16))) for _ in range(number)]
    told = sum("has begun" in each or "not one of this run's" in each for each in said)
    return number, number - said.count("let in"), f"{told} told why, {said.count('')} closed unheard"


async def use_token_twice(session, federation, number):
    said = [await say_first(session, federation, make_join(federation.get_token(0))) for _ in range(number)]
    return number, sum("has begun" in each or "link is taken" in each for each in said), said[0]


async def get(session, federation, path, **headers):
    reader, writer = await asyncio.open_connection(federation.host, federation.port)
    named = {"Host": f"{federation.host}:{federation.port}", **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    writer.write(f"GET {path} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n".encode())
    try:
        return await asyncio.wait_for(reader.read(), 30)
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def come_from_elsewhere(session, federation, number, **headers):
    paths = ("/ws", "/", "/join.py", "/watch")
    got = [await get(session, federation, paths[i % 4], **headers) for i in range(number)]
    return number, sum(each.startswith(b"HTTP/1.1 403") for each in got), "403"


async def play_with_paths(session, federation, number):
    tricks = [
        *("/../../../../etc/passwd", "/page/../../links.txt", "/page/..%2f..%2flinks.txt", "//etc/passwd"),
        *("/links.txt", "/%2e%2e/%2e%2e/etc/passwd", "/join.py/../links.txt", "/join.py%00.txt", "/.git/config"),
        *("/page/....//....//etc/passwd", "/roster.json", "/organiser/../roster.json", "\\..\\links.txt"),
        *("/ws/../../proc/self/environ", "http://evil/links.txt", "/page/%5c..%5clinks.txt"),
    ]
    got = [await get(session, federation, tricks[i % len(tricks)]) for i in range(number)]
    statuses = sorted({each[9:12].decode() for each in got})
    return (
        number,
        sum(each[9:12] in (b"400", b"403", b"404") and b"root:" not in each for each in got),
        ", ".join(statuses),
    )


HANDSHAKE = (
    "GET /ws HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


async def boast(session, federation, number):
    """A gigabyte is announced, and sent as far as it is taken."""
    refused, most_sent = 0, 0
    for _ in range(number):
        reader, writer = await asyncio.open_connection(federation.host, federation.port)
        writer.write(HANDSHAKE.format(host=federation.host, port=federation.port).encode())
        await reader.readuntil(b"\r\n\r\n")
        sent = 0
        with contextlib.suppress(ConnectionError):
            writer.write(b"\x82\xff" + (2**30).to_bytes(8, "big") + bytes(4))
            while sent < 2**30 and not reader.at_eof():
                writer.write(bytes(2**16))
                await writer.drain()
                await asyncio.sleep(0)
                sent += 2**16
        refused, most_sent = refused + (sent < 2**30), max(most_sent, sent)
        writer.close()
    return number, refused, f"closed after at most {most_sent / 1e6:.1f} MB went into the socket"


async def be_slow(session, federation, number):
    """A header, a byte now and then."""
    begun = time.monotonic()

    async def drip():
        reader, writer = await asyncio.open_connection(federation.host, federation.port)
        with contextlib.suppress(ConnectionError):
            writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
            while not reader.at_eof() and time.monotonic() - begun < 60:
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.5)
        writer.close()
        return time.monotonic() - begun

    took = await asyncio.gather(*(drip() for _ in range(number)))
    return number, sum(each < 55 for each in took), f"closed after {min(took):.0f} to {max(took):.0f} s"


async def open_many(session, federation, number):
    """Connections that say nothing, all held open."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    number = min(number, hard - 200) if hard != resource.RLIM_INFINITY else number
    opened = []
    for _ in range(number):
        with contextlib.suppress(OSError):
            opened.append(socket.create_connection((federation.host, federation.port), timeout=30))
        if len(opened) % 100 == 0:
            await asyncio.sleep(0)
    peak = federation.read_memory()
    held = 2 * (HONEST + LIARS) + guard.SPARE_CONNECTIONS - HONEST - LIARS
    begun, closed = time.monotonic(), 0
    oldest = opened[: max(number - held, 0)]  # which give way
    for each in oldest:
        each.settimeout(max(begun + 30 - time.monotonic(), 0.001))
        try:
            closed += each.recv(1) == b""
        except TimeoutError:
            pass
        except OSError:
            closed += 1
    for each in opened:
        each.close()
    return (
        len(opened[: max(number - held, 0)]),
        closed,
        f"{number:,} opened, {held} may be held; {peak:.0f} MB meanwhile",
    )


async def replay(session, federation, liar, number):
    """An answer of before is sent again, in a connection that has the seat, and in one that has none."""
    content = liar.last
    for _ in range(number):
        await liar.socket.send_bytes(content)
    said = [await say_first(session, federation, content) for _ in range(number)]
    return 2 * number, number + sum("first one must be to join" in each for each in said), "late, or from nobody"


# --- The whole ---


async def attack(federation, scale, show):
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        plan = 2 * ["nan", "nan", "right", "1e30", "1e30", "right"]
        over, plans = asyncio.Event(), (plan, [])
        liars = [Liar(federation, HONEST + i, NAMES[i], plans[i], over) for i in range(LIARS)]
        lives = [asyncio.create_task(liar.run(session)) for liar in liars]
        while not re.search(r"round 3/", federation.log.read_text(encoding="utf-8")):
            await asyncio.sleep(0.1)
            assert federation.server.poll() is None, federation.log.read_text()[-3000:]
        few, many = round(50 * scale), round(200 * scale)
        for name, attempt in {
            "1 GB announced": lambda: boast(session, federation, few),
            "another origin": lambda: come_from_elsewhere(session, federation, many, Origin="http://evil.example"),
            "another host": lambda: come_from_elsewhere(session, federation, many, Host="evil.example"),
            "path tricks": lambda: play_with_paths(session, federation, many),
            "replayed messages": lambda: replay(session, federation, liars[1], few),
            "a token used twice": lambda: use_token_twice(session, federation, few),
            "connections": lambda: open_many(session, federation, round(10_000 * scale)),
            "slow headers": lambda: be_slow(session, federation, many),
            "wrong token": lambda: guess_tokens(session, federation, many),
        }.items():
            show(name, *await attempt())
        over.set()
        ends = await asyncio.gather(*lives)
    return liars, ends


def check(federation, liars, show):
    """Raises AssertionError where something is lost."""
    log = federation.log.read_text(encoding="utf-8")
    assert federation.server.wait() == 0 and "Traceback" not in log, log[-3000:]
    assert [client.wait(60) for client in federation.clients] == [0] * HONEST
    tables = {}
    for name in ("metrics", "traffic"):
        with open(federation.run_dir / f"{name}.csv", encoding="utf-8", newline="") as file:
            tables[name] = list(csv.DictReader(file))
        assert [int(row["round"]) for row in tables[name]] == list(range(1, federation.rounds + 1))
    sums = {
        name: sum(int(row[name]) for row in tables["traffic"]) for name in ("num_rejected", "num_missing", "num_late")
    }
    for what in ("nan", "1e30"):
        show(what, liars[0].sent[what], liars[0].sent[what], "answers that did not count")
    lies = liars[0].sent["nan"] + liars[0].sent["1e30"]
    assert (lies, sums["num_rejected"], sums["num_missing"]) == (8, 8, 0) and sums["num_late"] > 0, sums
    trained = []
    for index in range(HONEST):
        said = (federation.folder / f"client_{index}.log").read_text(encoding="utf-8")
        trained.append(len(set(re.findall(r"round (\d+) of \d+: trained", said))))
        assert "trying again" not in said, said[-2000:]
    assert trained == [federation.rounds] * HONEST, trained
    texts = [path.read_text(encoding="utf-8") for path in federation.run_dir.rglob("*.csv")]
    cells = [cell for text in texts for row in csv.reader(text.splitlines()) for cell in row]
    formulas = [cell for cell in cells if re.match(r"[=+@\t\r]|-(?![\d.]|inf|nan)", cell)]
    pages = [path.read_text(encoding="utf-8") for path in federation.run_dir.rglob("*.html")]
    assert not formulas and pages and not any("<script>alert(1)" in page for page in pages), formulas
    named = [cell for cell in cells if "HYPERLINK" in cell or "alert(1)" in cell]
    show("scripts and formulas", len(named), len(named), "names in tables, as text; none in a page as code")
    kept = b"".join(path.read_bytes() for path in federation.run_dir.rglob("*") if path.is_file())
    assert not [link for link in federation.links.values() if link.partition("#")[2].encode() in kept]
    return {"rounds": federation.rounds, "answers_of_each_honest_client": trained, **sums,
            "notes": [line[9:] for line in log.splitlines() if line.startswith("note     refused")]}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=str(ROOT / ".venv-live/bin/python"))
    parser.add_argument("--rounds", type=int, default=60, help="of which the last wait for the end of the attacks")
    parser.add_argument("--open_files", type=int, default=OPEN_FILES, help="that the server may have")
    parser.add_argument("--scale", type=float, default=1.0, help="of how often each is tried")
    asked = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="attacks_"))
    federation = Federation(folder, asked.python, asked.rounds, asked.open_files)

    def show(name, tried, refused, how):
        memory = f"{federation.read_memory():6.0f} MB" if federation.server.poll() is None else ""
        print(f"{name:<22}{tried:>7,} tried{refused:>7,} of no use  {memory:<10} {how}", flush=True)
        assert tried == refused, name

    try:
        federation.wait_for("are here|link")
        before = federation.read_memory()
        liars, ends = asyncio.run(attack(federation, asked.scale, show))
        peak = federation.read_memory("VmHWM") if federation.server.poll() is None else 0
        found = check(federation, liars, show)
        print(json.dumps({**found, "memory_mb": [round(before), round(peak)], "told": [each["type"] for each in ends]}))
    except BaseException:
        print(f"its folder is kept: {folder}", file=sys.stderr)
        federation.end()
        raise
    federation.end()
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
