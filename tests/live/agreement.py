"""How near live rounds are to their simulation: `.venv/bin/python tests/live/agreement.py [names of settings]`.

Each setting is run live, with join.py in processes of their own, while a copy is taken of each round's checkpoint, and
once more by `--replay`, free and round by round from the live states. It prints largest differences of weights as
shares of the largest weight, the accuracies, and seconds and bytes a round. Not a test: it takes minutes.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

SGD = ["--optimizer=sgd", "--learning_rate=0.05"]
SETTINGS = {
    "fedavg_adam": ["--algo=fedavg"],
    "fedavg_sgd": ["--algo=fedavg", *SGD],
    "fedavg_momentum": [
        *("--algo=fedavg", "--optimizer=sgd", "--learning_rate=0.01", "--momentum=0.9", "--weight_decay=0.001")
    ],
    "fedprox": ["--algo=fedavg", *SGD, "--proximal_weight=0.1"],
    "fedadam": ["--algo=fedadam"],
    "median": ["--algo=fedavg", *SGD, "--aggregator=median"],
    "multi_krum": [
        *("--algo=fedavg", *SGD, "--num_clients=7", "--partition=iid", "--aggregator=multi_krum"),
        *("--attack=sign_flip", "--attack_share=0.14"),
    ],
    "cohort": ["--algo=fedavg", *SGD, "--cohort_size=3"],
    "async_periodic": ["--algo=async_periodic", "--max_training_s=1.6", "--period_fraction=0.25", "--max_scheduled=3"],
    "buffered": ["--algo=buffered", "--buffer_size=3", "--concurrency=4"],
}
# Seconds that clients of asynchronous settings wait before they answer: three speeds. One leaves and comes back.
SLOWED = """
import sys, time
import join
train = join.Trainer.train
join.Trainer.train = lambda *given: (time.sleep({delay_s}), train(*given))[1]
sys.exit(join.main())
"""
DELAYS_S = (0.0, 0.1, 0.1, 0.4, 0.4)


def run_live(flags, python, folder, delays=(), num_python=None, start_others=None):
    """Runs the setting with clients; (folder of the run, the state after each round as its leaves).

    `start_others` makes processes of the links of all seats but the first `num_python`.
    """
    run_dir, states, is_over = folder / "live", {}, threading.Event()

    def copy():
        from launch.runs.checkpoints import _read, find_checkpoints

        while not is_over.wait(0.02):
            for round_num, path in find_checkpoints(run_dir / "checkpoints").items():
                try:
                    states[round_num] = states[round_num] if round_num in states else _read(path)[0]
                except (OSError, ValueError):
                    continue  # it went meanwhile

    command = [sys.executable, "-m", "launch.serve", *flags, "--port=0", f"--run_dir={run_dir}", "--away_after_s=0.5"]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, bufsize=1)
    lines = [""]
    while "join.py is one file" not in lines[-1]:
        lines.append(server.stdout.readline())
        assert lines[-1], "".join(lines)
    from launch.live.links import read_links

    links = read_links(run_dir / "links.txt")
    num_clients = next((int(flag.split("=")[1]) for flag in flags if flag.startswith("--num_clients=")), 5)

    def start(index):
        program = SLOWED.format(delay_s=delays[index] if delays else 0.0)
        command = [python, "-c", program, links[f"seat {index}"], "--home", str(folder / f"home_{index}")]
        with open(folder / f"client_{index}.log", "a", encoding="utf-8") as log:
            return subprocess.Popen(command, cwd=ROOT / "launch/live", stdout=log, stderr=log)

    clients = [start(index) for index in range(num_clients if num_python is None else num_python)]
    clients += (
        start_others([links[f"seat {index}"] for index in range(num_python, num_clients)]) if start_others else []
    )
    watcher = threading.Thread(target=copy)
    watcher.start()
    for line in server.stdout:
        lines.append(line)
        if delays and line.startswith("round 8/"):
            clients[1].kill()
            clients[1].wait()
            threading.Timer(2.0, lambda: clients.append(start(1))).start()
    is_over.set()
    watcher.join()
    assert server.wait() == 0, "".join(lines)
    for client in clients:
        client.wait(20)
    return run_dir, states


def repeat(run_dir, folder, states):
    """Runs the twin; differences by round of one that runs freely, and of one that begins each round alike.

    The third are those of the simulation to itself, begun with weights that differ in their last digit: what a rule
    makes of rounding alone.
    """
    from launch.runs.checkpoints import pack_state
    from launch.settings.flags import parse_config
    from launch.training import training_run
    from launch.training.replaying import Replay

    free, stepwise, rounded = {}, {}, {}

    def measure(found, expected):
        weights = [process.get_models(state)["global"] for process, state in (found, expected)]
        largest = max(np.abs(array).max() for array in weights[1])
        return max(float(np.abs(a - b).max()) for a, b in zip(*weights, strict=True)) / float(largest)

    class Compared(Replay):
        def join(self, process, *arguments):
            process = super().join(process, *arguments)
            take_step = process.next

            def next_and_compare(state):
                round_num = int(getattr(state, "inner", state).round_num) + 1
                output = take_step(state)
                live = {each: pack_state(state, states[each]) for each in (round_num - 1, round_num) if each in states}
                if round_num in live:
                    free[round_num] = measure((process, output.state), (process, live[round_num]))
                    if hasattr(state, "inner"):  # whose clock has no pending events
                        before = live.get(round_num - 1, state if round_num == 1 else None)
                        if before is not None:
                            again = take_step(before).state
                            stepwise[round_num] = measure((process, again), (process, live[round_num]))
                            rounded[round_num] = measure((process, take_step(jitter(before)).state), (process, again))
                return output

            object.__setattr__(process, "next", next_and_compare)
            return process

    training_run.Replay = Compared
    training_run.run_training(parse_config([f"--replay={run_dir}", f"--run_dir={folder / 'twin'}"]))
    return free, stepwise, rounded


def jitter(state):
    """The state with each weight moved to the next float32."""
    models = tuple(np.nextafter(array, np.float32(1e9), dtype=array.dtype) for array in state.inner.models)
    return state._replace(inner=state.inner._replace(models=models))


def read_rows(path):
    lines = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]


def report(name, folder, free, stepwise, rounded, run_dir):
    live, twin = (read_rows(each / "metrics.csv") for each in (run_dir, folder / "twin"))
    # Those that do not depend on the last digits of weights.
    names = [each for each in live[0] if not re.search("loss|accuracy|drift|norm", each)]
    differing = {each for a, b in zip(live, twin, strict=True) for each in names if a[each] != b[each]}
    times = np.diff([0.0, *(float(row["virtual_time_s"]) for row in live)])
    traffic = read_rows(run_dir / "traffic.csv")
    shown = {
        "setting": name,
        "rounds": len(live),
        "compared": len(stepwise),
        "largest_stepwise": max(stepwise.values(), default=None),
        "median_stepwise": float(np.median(list(stepwise.values()))) if stepwise else None,
        "rounds_above_1e-6_and_1e-5": [sum(each > most for each in stepwise.values()) for most in (1e-6, 1e-5)],
        "largest_by_rounding": max(rounded.values(), default=None),
        "median_by_rounding": float(np.median(list(rounded.values()))) if rounded else None,
        "largest_free": max(free.values()),
        "free_by_round": {each: f"{free[each]:.1e}" for each in sorted(free) if each in (1, 2, 5, 10, 20, 40, 60)},
        "accuracies": [live[-1]["test_accuracy"], twin[-1]["test_accuracy"]],
        "columns_that_differ": sorted(differing),
        "median_s": round(float(np.median(times)), 3),
        "bytes_down_up": [traffic[-1]["bytes_down"], traffic[-1]["bytes_up"]],
    }
    print(json.dumps(shown), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[], help=", ".join(SETTINGS))
    parser.add_argument("--python", default=str(ROOT / ".venv-live/bin/python"))
    parser.add_argument("--rounds", type=int, default=60)
    asked = parser.parse_args()
    for name in asked.names or SETTINGS:
        flags = [f"--rounds={asked.rounds}", "--noresume", "--noqr", *SETTINGS[name]]
        flags += [] if any(flag.startswith("--num_clients") for flag in flags) else ["--num_clients=5"]
        folder = pathlib.Path(tempfile.mkdtemp(prefix=f"agreement_{name}_"))
        try:
            is_asynchronous = name in ("async_periodic", "buffered")
            run_dir, states = run_live(flags, asked.python, folder, DELAYS_S if is_asynchronous else ())
            free, stepwise, rounded = repeat(run_dir, folder, states)
            report(name, folder, free, stepwise, rounded, run_dir)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
