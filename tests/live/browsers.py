"""Browsers in live runs: `.venv/bin/python tests/live/browsers.py [--visit]`, by `make test-web` with --visit.

Without it, four Chromium pages, a Firefox and two clients of Python train in one federation, which is then run again by
`--replay`, and compared as in agreement.py; it takes minutes. With --visit one page is used as a careful person would,
see visit_page.mjs, beside a client of Python, while the server is killed and started again. $BROWSER is the Chromium,
$FIREFOX the Firefox, $SHOTS a folder for screenshots.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from agreement import ROOT, SGD, repeat, report, run_live
from kills import Federation

from launch.live.links import read_links

NUM_CHROMIUM, NUM_PYTHON = 4, 2
NUM_CLIENTS = NUM_CHROMIUM + NUM_PYTHON + 1
# Holds the answer of one round back, as long as a file is there.
HELD = """
import os, sys, time
import join
train = join.Trainer.train
def train_later(self, task, *given):
    while task.header["round"] == 3 and os.path.exists({path!r}):
        time.sleep(0.05)
    return train(self, task, *given)
join.Trainer.train = train_later
sys.exit(join.main())
"""


def start_browsers(links, shots):
    """Four Chromium pages and a Firefox that take part by these links."""
    chromium = ["node", "tests/live/browsers.mjs", *links[:NUM_CHROMIUM]]
    firefox = [sys.executable, "tests/live/firefox.py", links[NUM_CHROMIUM], *([f"{shots}/firefox"] if shots else [])]
    environment = os.environ | ({"SHOTS": f"{shots}/chromium"} if shots else {})
    return [subprocess.Popen(command, cwd=ROOT, env=environment) for command in (chromium, firefox)]


def compare(python, rounds, folder, shots):
    flags = [f"--rounds={rounds}", "--noresume", "--noqr", "--algo=fedavg", *SGD, f"--num_clients={NUM_CLIENTS}"]
    browsers = []

    def start_others(links):
        browsers.extend(start_browsers(links, shots))
        return browsers

    flags.append("--round_deadline_s=600")
    run_dir, states = run_live(flags, python, folder, num_python=NUM_PYTHON, start_others=start_others)
    report("browsers", folder, *repeat(run_dir, folder, states), run_dir)
    return max(browser.returncode for browser in browsers)


class Visited(Federation):
    """A run of a page and a client of Python, which holds its answer of round 3 back as long as `held` is there."""

    def __init__(self, folder, python):
        flags = ["--algo=fedavg", *SGD, "--num_clients=2", "--rounds=5", "--round_deadline_s=600", "--away_after_s=60"]
        super().__init__(folder, python, flags, ())
        self.held = folder / "held"
        self.held.touch()

    def start_client(self, index):
        home, program = str(self.folder / "home"), HELD.format(path=str(self.held))
        command = [self._python, "-c", program, self.links[index], "--home", home]
        with open(self.folder / "client.log", "a", encoding="utf-8") as log:
            self.clients[index] = subprocess.Popen(command, cwd=ROOT / "launch/live", stdout=log, stderr=log)


def visit(python, folder):
    """The exit code of visit_page.mjs."""
    federation = Visited(folder, python)
    try:
        federation.start_server()
        federation.wait_for("join.py is one file")
        links = read_links(federation.run_dir / "links.txt")
        federation.links = [links[f"seat {index}"] for index in range(2)]
        federation.start_client(1)
        command = ["node", "tests/live/visit_page.mjs", federation.links[0]]
        federation.clients[0] = page = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for line in page.stdout:
            print(line, end="", flush=True)
            if line == "held\n":
                federation.server.kill()
                federation.server.wait()
                federation.start_server()
            elif line == "stage the server is away\n":
                federation.held.unlink()
        code = page.wait()
        if code == 0:
            federation.server.wait()
            code = federation.server.returncode
        if code != 0:
            print(federation.log.read_text(encoding="utf-8")[-3000:])
        return code
    finally:
        federation.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=str(ROOT / ".venv-live/bin/python"))
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--visit", action="store_true")
    asked = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="browsers_"))
    try:
        if asked.visit:
            return visit(asked.python, folder)
        return compare(asked.python, asked.rounds, folder, os.environ.get("SHOTS", ""))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
