"""A live run whose server and clients are killed: `.venv/bin/python tests/live/kills.py`.

Clients and the server get SIGKILL at random moments and are started again, the server by --resume. One client doubles
its answers, gives older ones again, names another file, or is late. In the end each round must stand once in the
tables, none may have taken longer than its deadline, and `--replay` must give the same weights. It prints a line of
JSON a setting. It takes minutes; `test_serve.py` has it do a few.
"""

import argparse
import json
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
from agreement import SLOWED, read_rows

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

NUM_CLIENTS, DEADLINE_S, AWAY_AFTER_S = 5, 3.0, 1.0
LATER_S = 1.0  # after its deadline a round may end on a machine that has much else to do
LIMIT_S = 120.0  # in which something must happen
SGD = ["--optimizer=sgd", "--learning_rate=0.05"]
SETTINGS = {
    "waiting": ["--algo=fedavg", *SGD, f"--round_deadline_s={DEADLINE_S}"],
    "periodic": ["--algo=async_periodic", *SGD, "--max_training_s=1", "--period_fraction=0.4", "--max_scheduled=4"],
    "buffered": ["--algo=buffered", *SGD, "--buffer_size=3", "--concurrency=4"],
}
ROUNDS = {"waiting": 200, "periodic": 900, "buffered": 900}  # which last longer than the kills
# Of asynchronous settings, so that rounds are no faster than a person would have them: seconds before each answer.
DELAYS_S = (0.5, 0.5, 0.7, 1.0, 0.5)
# Of five answers one is sent twice, one after an older one, one after a copy of another file, one too late.
UNRULY = f"""
import asyncio, random
import aiohttp, join
draw, sent = random.Random(1), []
send = aiohttp.ClientWebSocketResponse.send_bytes
async def send_more(self, content, *given, **named):
    message = join.unpack(content)
    if message.header["type"] == "answer":
        way = draw.choice(["plain", "twice", "older", "other file", "late"])
        if way == "late":
            await asyncio.sleep({DEADLINE_S} + 0.3)
        if way == "older" and sent:
            await send(self, sent[0])
        if way == "other file":
            await send(self, join.pack({{**message.header, "file": "0" * 64}}, message.arrays))
        if way == "twice":
            await send(self, content)
        sent.append(content)
    await send(self, content, *given, **named)
aiohttp.ClientWebSocketResponse.send_bytes = send_more
"""


class Federation:
    """The processes of a run."""

    def __init__(self, folder, python, flags, delays_s):
        self._delays_s = delays_s
        self.folder, self.run_dir, self._python, self._flags = folder, folder / "run", python, flags
        self.log, self.server, self.clients, self._links = folder / "server.log", None, {}, {}
        self.log.touch()

    def start_server(self):
        flags = ["--resume", f"--run_dir={self.run_dir}"]
        if self.server is None:
            flags = ["--noresume", "--noqr", "--port=0", "--rounds_per_checkpoint=1", *flags[1:]]
            flags += [f"--num_clients={NUM_CLIENTS}", f"--away_after_s={AWAY_AFTER_S}", *self._flags]
        with open(self.log, "a", encoding="utf-8") as log:
            command = [sys.executable, "-m", "launch.serve", *flags]
            self.server = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)

    def start_client(self, index):
        program = (UNRULY if index == NUM_CLIENTS - 1 else "") + SLOWED.format(delay_s=self._delays_s[index])
        command = [
            self._python,
            "-c",
            program,
            self._links[f"seat {index}"],
            "--home",
            str(self.folder / f"home_{index}"),
        ]
        with open(self.folder / f"client_{index}.log", "a", encoding="utf-8") as log:
            self.clients[index] = subprocess.Popen(command, cwd=ROOT / "launch/live", stdout=log, stderr=log)

    def find(self, pattern):
        return re.findall(pattern, self.log.read_text(encoding="utf-8"))

    def wait_for(self, pattern, count=1):
        """Until the pattern is there so often, or the server has ended."""
        end_s = time.monotonic() + LIMIT_S
        while len(found := self.find(pattern)) < count and self.server.poll() is None:
            assert time.monotonic() < end_s, f"{pattern}: not in {self.log.read_text()[-2000:]}"
            time.sleep(0.05)
        return found

    def open(self):
        self.start_server()
        self.wait_for(r"join.py is one file")
        from launch.live.links import read_links

        self._links = read_links(self.run_dir / "links.txt")
        for index in range(NUM_CLIENTS):
            self.start_client(index)
        self.wait_for("round 1/")

    def close(self):
        for process in (self.server, *self.clients.values()):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()


def disturb(federation, draw, client_kills, server_kills):
    """Kills until so many are dead, and starts them again; how many of the server's were before it listened again."""
    before_it_listened, waiting = 0, {}
    while client_kills or server_kills:
        assert federation.server.poll() is None, federation.log.read_text()[-3000:]
        if client_kills and (not server_kills or draw.random() < client_kills / (client_kills + server_kills)):
            time.sleep(draw.uniform(0.0, 1.0))
            index = draw.randrange(NUM_CLIENTS)
            if index not in waiting:
                federation.clients[index].send_signal(signal.SIGKILL)
                federation.clients[index].wait()
                waiting[index] = time.monotonic() + draw.choice([0.0, 0.5, 3 * AWAY_AFTER_S])
                client_kills -= 1
        else:
            time.sleep(draw.uniform(0.0, 2.0))
            links = len(federation.find("\nlink "))
            federation.server.send_signal(signal.SIGKILL)
            federation.server.wait()
            federation.start_server()
            server_kills -= 1
            if draw.random() < 0.8:
                federation.wait_for("\nlink ", links + 1)
            else:
                before_it_listened += 1
                time.sleep(draw.uniform(0.0, 5.0))
        for index in [index for index, when_s in waiting.items() if when_s <= time.monotonic()]:
            del waiting[index]
            federation.start_client(index)
    for index in waiting:
        federation.start_client(index)
    return before_it_listened


def measure_rounds(run_dir):
    """Seconds of each round, from its tasks to its last row, by the record."""
    times = {}
    for row in read_rows(run_dir / "record.csv"):
        times.setdefault(int(row["round"]), []).append(int(row["tick"]))
    return {round_num: (max(each) - min(each)) / 2**20 for round_num, each in times.items()}


def compare_weights(run_dir, twin):
    """The largest difference of the last weights, as a share of the largest one."""
    from launch.api import load_run

    weights = [load_run(str(folder)).load_model().get_weights() for folder in (run_dir, twin)]
    largest = max(np.abs(array).max() for array in weights[0])
    return max(float(np.abs(a - b).max()) for a, b in zip(*weights, strict=True)) / float(largest)


def check(federation, name, num_rounds):
    """What became of the run; raises AssertionError where something is lost."""
    run_dir, twin = federation.run_dir, federation.folder / "twin"
    metrics, traffic = read_rows(run_dir / "metrics.csv"), read_rows(run_dir / "traffic.csv")
    for rows in (metrics, traffic):
        assert [int(row["round"]) for row in rows] == list(range(1, num_rounds + 1))
    longest_s = max(measure_rounds(run_dir).values())
    assert name != "waiting" or longest_s <= DEADLINE_S + LATER_S, longest_s
    command = [sys.executable, "-m", "launch.train", f"--replay={run_dir}", f"--run_dir={twin}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    repeated = read_rows(twin / "metrics.csv")
    # Those that do not depend on the last digits of weights.
    names = [each for each in metrics[0] if not re.search("loss|accuracy|drift|norm", each)]
    differing = sorted({each for a, b in zip(metrics, repeated, strict=True) for each in names if a[each] != b[each]})
    assert not differing, differing
    difference = compare_weights(run_dir, twin)
    # After 900 rounds of FedBuff two simulations of a record differ by 1e-5, if one is compiled.
    assert difference < (1e-4 if name == "buffered" else 1e-5), difference
    counted = ("num_answered", "num_late", "num_rejected", "num_missing", "num_returns")
    return {
        "longest_round_s": round(longest_s, 2),
        "difference": difference,
        "accuracies": [metrics[-1]["test_accuracy"], repeated[-1]["test_accuracy"]],
        **{each: sum(int(row[each]) for row in traffic) for each in counted},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[], help=", ".join(SETTINGS))
    parser.add_argument("--python", default=str(ROOT / ".venv-live/bin/python"))
    parser.add_argument("--client_kills", type=int, default=50)
    parser.add_argument("--server_kills", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=0, help="0: as many as last longer than the kills")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    for name in asked.names or SETTINGS:
        folder = pathlib.Path(tempfile.mkdtemp(prefix=f"kills_{name}_"))
        num_rounds = asked.rounds or ROUNDS[name]
        delays_s = [0.0] * NUM_CLIENTS if name == "waiting" else DELAYS_S
        federation = Federation(folder, asked.python, [*SETTINGS[name], f"--rounds={num_rounds}"], delays_s)
        try:
            federation.open()
            kills = asked.client_kills, asked.server_kills
            before_it_listened = disturb(federation, random.Random(asked.seed), *kills)
            assert federation.server.wait() == 0, federation.log.read_text()[-3000:]
            codes = [client.wait(60) for client in federation.clients.values()]
            assert not any(codes), codes
            shown = {"setting": name, "client_kills": kills[0], "server_kills": kills[1]}
            shown |= {"before_it_listened": before_it_listened, "rounds": num_rounds}
            print(json.dumps({**shown, **check(federation, name, num_rounds)}), flush=True)
        except BaseException:
            print(f"its folder is kept: {folder}", file=sys.stderr)
            federation.close()
            raise
        federation.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
