"""A file of TFF's form with as many clients as Stack Overflow has: the time to open it, and the memory."""

import json
import pathlib
import sqlite3
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[3]
NUM_CLIENTS, NUM_HELD_OUT, NUM_TESTED = 342_477, 38_758, 204_088  # of the real file
MEGABYTES = 2000
OPEN = """
import json, resource, sys, time
start = time.monotonic()
from datasets.dataset import DatasetOptions
from datasets.federate import PartitionSettings, build_federated_data
from datasets.file_formats import open_data
source = open_data(DatasetOptions(data=sys.argv[1]))
data = build_federated_data(source, PartitionSettings("natural"), sys.argv[2], most_test_examples=1000)
opened = time.monotonic()
cohort = [data.clients[place] for place in range(0, len(data.clients), len(data.clients) // 50)]
sizes = [len(data.read_split(client, "train")[1]) for client in cohort]
told = [client.num_train for client in cohort]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"open_s": opened - start, "cohort_s": time.monotonic() - opened, "peak_mb": peak,
                  "clients": len(data.clients), "tested": len(data.test_y), "agree": sizes == told}))
"""


def write_large_file(path, encode_record):
    """Small examples of Stack Overflow's form; a client in seven has more than one."""
    texts = [f"word_{number} is a word of user {number} .".encode() for number in range(100)]
    features = {"title": b"a title", "tags": b"c|c++", "type": b"answer", "creation_date": b"2010", "score": 1}
    records = [encode_record({**features, "tokens": text}) for text in texts]
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE examples (split_name TEXT, client_id TEXT, serialized_example_proto BLOB)")
    connection.execute("CREATE TABLE client_metadata (client_id TEXT, split_name TEXT, num_examples INTEGER)")
    splits = {"train": range(NUM_CLIENTS), "heldout": range(10**6, 10**6 + NUM_HELD_OUT), "test": range(NUM_TESTED)}
    with connection:
        for split, clients in splits.items():
            sizes = [(client, 3 if client % 7 == 0 else 1) for client in clients]
            connection.executemany(
                "INSERT INTO client_metadata VALUES (?, ?, ?)",
                ((f"{client:08}", split, size) for client, size in sizes),
            )
            connection.executemany(
                "INSERT INTO examples VALUES (?, ?, ?)",
                (
                    (split, f"{client:08}", records[(client + row) % 100])
                    for client, size in sizes
                    for row in range(size)
                ),
            )
        connection.execute("CREATE INDEX by_client ON examples (client_id, split_name)")
    connection.close()


@pytest.mark.slow
def test_as_many_clients_as_stack_overflow_has_open_within_two_gigabytes(tmp_path, encode_record):
    """The seconds are printed, since a test that depends on them would fail on a busy machine."""
    write_large_file(tmp_path / "stackoverflow.sqlite", encode_record)
    command = [sys.executable, "-c", OPEN, str(tmp_path / "stackoverflow.sqlite"), str(tmp_path / "shards")]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 0, run.stderr
    measured = json.loads(run.stdout.splitlines()[-1])
    print(measured)
    assert measured["clients"] == NUM_CLIENTS
    assert measured["agree"]
    assert measured["tested"] == 1000
    assert measured["peak_mb"] < MEGABYTES
