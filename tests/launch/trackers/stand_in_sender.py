"""A tracker for tests: answers like `launch/trackers/sender.py` and keeps every request, a line each, in $REQUESTS.

It remembers runs and their rounds in $REQUESTS.json, as a tracker does. While $REQUESTS.down exists, it cannot be
reached; while $REQUESTS.dies exists, it ends without an answer.
"""

import json
import os
import pathlib
import sys

REQUESTS = os.environ["REQUESTS"]
STORE = pathlib.Path(f"{REQUESTS}.json")
DOWN, DIES = pathlib.Path(f"{REQUESTS}.down"), pathlib.Path(f"{REQUESTS}.dies")


def answer(request, runs, keys):
    if request["do"] == "open":
        run_id = request["known"].get("here") or f"run_{len(runs)}"
        keys[request["key"]] = run_id
        rounds = runs.setdefault(run_id, [])
        return {
            "destination": "here", "run_id": run_id, "title": "stand-in", "where": f"http://there/{run_id}",
            "last_round": max(rounds, default=0),
        }  # fmt: skip
    if request["do"] == "rounds":
        runs[keys[request["key"]]] += [number for number, _, _ in request["rounds"]]
    return {}


keys = {}
for line in sys.stdin:
    if DIES.exists():
        sys.exit(1)
    if DOWN.exists():
        print(json.dumps({"error": "ConnectionError: refused"}), flush=True)
        continue
    runs = json.loads(STORE.read_text()) if STORE.exists() else {}
    reply = answer(json.loads(line), runs, keys)
    STORE.write_text(json.dumps(runs))
    with open(REQUESTS, "a", encoding="utf-8") as file:
        file.write(line)
    print(json.dumps(reply), flush=True)
