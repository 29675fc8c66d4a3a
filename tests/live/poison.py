"""What poisoned updates do to a live run: `.venv/bin/python tests/live/poison.py [--rounds=30] [--seeds=0,1,2]`.

Ten clients have the digits among them; two of them send something else than they have trained, in every round. The
server, its network and its judge of answers are those of `launch.serve`; clients are in its process, and train the file
that it gives them. The table has the test accuracy after the last round, by how the server adds up: mean over seeds,
and the least and the largest. Not a test: it takes minutes. `test_poison.py` runs a short form.
"""

import argparse
import contextlib
import io
import os
import pathlib
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/shared")]
NUM_CLIENTS, NUM_ATTACKERS = 10, 2
FLAGS = [
    *("--algo=fedavg", "--dataset=digits", f"--num_clients={NUM_CLIENTS}", "--partition=iid", "--run_page=false"),
    *(
        "--model=perceptron",
        "--optimizer=sgd",
        "--learning_rate=0.1",
        "--batch_size=16",
        "--noqr",
        "--rounds_per_evaluation=10",
    ),
]
# What attackers send, as a factor on what they have trained.
ATTACKS = {"nobody attacks": 1.0, "sign flipped": -1.0, "sign flipped, times 10": -10.0, "times 1e30": 1e30}
NORM_BOUND = 4.0  # twice the largest norm of an honest update, that of round 2
DEFENCES = {
    "mean": [],
    "median": ["--aggregator=median"],
    "multi-Krum": ["--aggregator=multi_krum", f"--aggregator_num_byzantine={NUM_ATTACKERS}"],
    "norm bound": [f"--most_norm={NORM_BOUND}"],
}


def run_live(flags, factor, folder):
    """Runs a federation whose first clients attack; rows of its metrics and of its traffic, by column."""
    from memory_transport import MemoryTransport
    from training_client import TrainingClient

    from launch.live.session import Session
    from launch.serve import parse_request
    from launch.training.training_run import run_training

    transport = MemoryTransport()
    transport.port = 0

    def forge(deltas):
        return {name: array * array.dtype.type(factor) for name, array in deltas.items()}

    def open_transport(**_):
        for index, link in enumerate(session._links.find_free()):
            kind = forge if index < NUM_ATTACKERS else lambda deltas: deltas
            TrainingClient(transport, f"{index:02x}", kind).join(token=link.partition("#")[2])
        return transport

    config, serve_flags, given = parse_request([*FLAGS, *flags, f"--run_dir={folder}"])
    with Session(serve_flags, given, open_transport) as session:
        run_training(config, session)
    return tuple(read_rows(folder / f"{name}.csv") for name in ("metrics", "traffic"))


def read_rows(path):
    lines = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]


def measure(attack, defence, rounds, seed):
    """(test accuracy after the last round, answers rejected in all)."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        flags = [*DEFENCES[defence], f"--rounds={rounds}", f"--seed={seed}"]
        metrics, traffic = run_live(flags, ATTACKS[attack], pathlib.Path(folder) / "run")
    return float(metrics[-1]["test_accuracy"]), sum(int(row["num_rejected"]) for row in traffic)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seeds", default="0,1,2")
    asked = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    seeds = [int(each) for each in asked.seeds.split(",")]
    print(f"{NUM_ATTACKERS} of {NUM_CLIENTS} clients attack, {asked.rounds} rounds, seeds {asked.seeds}\n")
    print("| attack | server | test accuracy | least to largest | rejected a run |\n|---|---|---|---|---|", flush=True)
    for attack in ATTACKS:
        for defence in DEFENCES:
            found = [measure(attack, defence, asked.rounds, seed) for seed in seeds]
            accuracies, rejected = zip(*found, strict=True)
            print(
                f"| {attack} | {defence} | {statistics.mean(accuracies):.3f} "
                f"| {min(accuracies):.3f} to {max(accuracies):.3f} | {statistics.mean(rejected):.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
