"""Watches a live run by the organiser's page in $BROWSER: `.venv/bin/python tests/live/watch.py [<pictures>]`.

Three clients of this process answer without training: one at once, one of whose answers takes seconds, and one at first
with numbers that are not finite; the last two are named as scripts. `watch.mjs` opens the page, says a line when it has
seen something, and is told by a line when to go on. Meanwhile the server is killed and started again. What the page
showed must be what the run's tables say. `make test-web` calls it for each browser.
"""

import asyncio
import contextlib
import json
import os
import pathlib
import re
import sys
import tempfile

import aiohttp
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from launch.live.messages import VERSION, pack, unpack  # noqa: E402
from launch.runs.round_table import read_round_table  # noqa: E402

ROUNDS, LIMIT_S = 12, 240.0
SLOW_ANSWER, SLOW_S = 3, 6.0  # which answer of the slow client takes so long
NUM_WRONG = 4  # answers that are not finite; a client is not heard for ever that sends no others
NAMES = ("Ann", "<img src=x onerror=hacked=1>", "<script>hacked=1</script>")
FLAGS = (
    *("--algo=fedavg", "--dataset=digits", "--num_clients=3", "--model=logistic_regression", f"--rounds={ROUNDS}"),
    *("--optimizer=sgd", "--port=0", "--noqr", "--rounds_per_checkpoint=1", "--start_with=3"),
)


class Client:
    """A client that answers every task by an update drawn at random, or by one that is not finite."""

    def __init__(self, index, link, gate):
        self._index, self._gate, self._num_answers = index, gate, 0
        base, _, self._token = link.partition("#")
        self._address = re.sub("^http", "ws", base.rstrip("/")) + "/ws"
        self._draw = np.random.default_rng(index)

    async def run(self):
        """Until the run is over; through times without a server. It connects while the gate is open."""
        while True:
            await self._gate.wait()
            with contextlib.suppress(aiohttp.ClientError, OSError):
                async with aiohttp.ClientSession() as session, session.ws_connect(self._address, max_msg_size=0) as ws:
                    if await self._take_part(ws):
                        return
            await asyncio.sleep(0.2)

    async def _take_part(self, ws):
        join = {"type": "join", "protocol": VERSION, "key": f"{self._index:02x}" * 16, "name": NAMES[self._index]}
        join |= {"token": self._token, "kind": "test", "num_train": 0, "num_test": 0, "columns": None}
        await ws.send_bytes(pack({**join, "round_most_examples": None}, {}))
        async for received in ws:
            message = unpack(received.data)
            assert message.type != "refused", message.header
            if message.type == "train":
                await self._answer(ws, message)
            if message.type == "done":
                return True
        return False

    async def _answer(self, ws, task):
        self._num_answers += 1
        await asyncio.sleep(SLOW_S if (self._index, self._num_answers) == (1, SLOW_ANSWER) else 0.4)
        scale = np.nan if self._index == 2 and self._num_answers <= NUM_WRONG else 0.01
        names = [name for name in task.arrays if name.startswith("weight_")]
        deltas = {name: scale * self._draw.normal(size=task.arrays[name].shape).astype(np.float32) for name in names}
        header = {name: task.header[name] for name in ("run", "number", "client", "file", "task")}
        header |= {"type": "answer", "num_trained": int(task.arrays["order"].size), "loss_sum": 2.5, "seconds": 0.1}
        await ws.send_bytes(pack(header, deltas))


async def serve(log, *flags):
    command = (sys.executable, "-m", "launch.serve", *flags)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with open(log, "w") as file:
        return await asyncio.create_subprocess_exec(*command, cwd=log.parent, stdout=file, stderr=file, env=environment)


async def find(log, pattern):
    """What the pattern finds in a log, all of it, as soon as it is there."""
    async with asyncio.timeout(LIMIT_S):
        while not (found := re.findall(pattern, log.read_text())):
            await asyncio.sleep(0.1)
    return found


class Viewer:
    """`watch.mjs`."""

    def __init__(self, process):
        self._process = process

    async def see(self):
        """What it has seen next."""
        async with asyncio.timeout(LIMIT_S):
            line = await self._process.stdout.readline()
        assert line, "watch.mjs has ended"
        return json.loads(line)

    def go_on(self):
        self._process.stdin.write(b"\n")


async def watch(folder, shots):
    logs = folder / "first.log", folder / "second.log"
    gate = asyncio.Event()
    gate.set()
    processes, clients = [await serve(logs[0], *FLAGS, "--run_dir=run")], []
    try:
        [link] = await find(logs[0], r"watch +(\S+)")
        # Each client its own link, or all the same.
        links = (await find(logs[0], r"(?m)^(?:link)? +(http\S+)$")) * len(NAMES)
        command = ("node", str(ROOT / "tests/live/watch.mjs"), link, shots)
        pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
        processes.append(await asyncio.create_subprocess_exec(*command, cwd=ROOT, **pipes))
        viewer = Viewer(processes[-1])
        clients.append(asyncio.create_task(Client(0, links[0], gate).run()))
        check_waiting(await viewer.see())
        for index in (1, 2):
            await asyncio.sleep(0.5)  # so that each takes its seat
            clients.append(asyncio.create_task(Client(index, links[index], gate).run()))
        check_running(await viewer.see())
        gate.clear()
        processes[0].kill()
        await processes[0].wait()
        lost = await viewer.see()
        assert re.fullmatch(r"Connection to the server lost; shows round (\d+)\. Trying again …", lost["trouble"]), lost
        processes.append(await serve(logs[1], "--resume", "--run_dir=run"))
        viewer.go_on()
        back = await viewer.see()
        assert (back["here"], back["expected"]) == ("0", "3 more clients have to come"), back
        assert int(back["round"]) >= 2 and back["hasCurve"], "the rounds that were done are there again"
        gate.set()
        check_over(await viewer.see(), folder / "run")
        async with asyncio.timeout(LIMIT_S):
            assert [await process.wait() for process in processes[1:]] == [0, 0], logs[1].read_text()
            await asyncio.gather(*clients)
        check_lines(logs)
    except BaseException:
        print(*(log.read_text()[-3000:] for log in logs if log.exists()), sep="\n", file=sys.stderr)
        raise
    finally:
        for client in clients:
            client.cancel()
        for process in processes:
            if process.returncode is None:
                process.kill()
                await process.wait()


def check_waiting(seen):
    assert seen["problems"] == [] and seen["hash"] == "", seen
    assert (seen["here"], seen["seats"], seen["expected"]) == ("1", "of 3", "2 more clients have to come"), seen
    assert seen["link"].startswith("http://127.0.0.1:") and seen["code"] > 100, seen
    assert seen["isLarge"] and not seen["isLargeAfterEscape"], "the large code opens and closes by keys"
    assert "not the organiser's link" in seen["wrong"] and "not whole" in seen["none"], seen


def check_running(seen):
    assert seen["problems"] == [] and sorted(seen["names"]) == sorted(NAMES), seen
    assert seen["slow"].startswith(f"Waiting for {NAMES[1]} ("), seen
    assert seen["rejected"].startswith(f"Did not count {NAMES[2]} ("), seen
    assert any("not finite" in line for line in seen["notices"]), seen
    assert seen["injected"] == 0 and seen["hacked"] is False, seen
    assert seen["faint"] == [] and seen["overflow"] == [], seen
    assert min(seen["sizes"]) >= 48, seen


def check_over(seen, run):
    names, rows = read_round_table(run / "metrics.csv", ROUNDS)
    accuracies = [float(row[names.index("test_accuracy")]) for row in rows]
    assert seen["problems"] == [] and seen["trouble"] == "", seen
    assert (seen["round"], seen["rounds"], seen["progress"]) == (str(ROUNDS), f"of {ROUNDS}", 1), seen
    assert seen["accuracy"] == f"{100 * accuracies[-1]:.1f}", (seen, accuracies)
    heights = np.array([float(point.split(",")[1]) for point in seen["points"].split()])
    top, bottom = seen["axis"]
    np.testing.assert_allclose((bottom - heights) / (bottom - top), accuracies, atol=1e-3)
    names, rows = read_round_table(run / "traffic.csv", ROUNDS)
    for column, shown in (("bytes_down", seen["down"]), ("bytes_up", seen["up"])):
        count = sum(int(row[names.index(column)]) for row in rows)
        assert shown == (f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{round(count / 1e3)} kB"), (shown, count)
    page, twin, *_, compare = seen["commands"]
    assert page == "python -m webbrowser run/report.html" and " --replay=run " in twin, seen
    assert compare.startswith("python -m launch.compare --runs=run --runs=run_twin"), seen
    assert "after round " in seen["others"] and seen["lastTick"] == str(ROUNDS), seen
    assert seen["pace"].startswith("done, ") and seen["here-title"] == "Clients at the end", seen
    assert set(seen["states"]) == {"till the end"}, seen


def check_lines(logs):
    """The terminal said who came and left, and the names steer nothing."""
    first, second = (log.read_text() for log in logs)
    assert f"round {ROUNDS}/{ROUNDS}" in second and "3 of 3 clients are here" in first
    assert f"{NAMES[2]} (seat 2): its answer does not count" in first + second


def main():
    shots = sys.argv[1] if len(sys.argv) > 1 else ""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(watch(pathlib.Path(folder), shots))
    print("the organiser's page showed what the tables say")


if __name__ == "__main__":
    main()
