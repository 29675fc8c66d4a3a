"""Runs rounds of a checkout of this project by its own code: `python -P drive.py '{...}'`, the checkout in PYTHONPATH.

The checkout may be older or newer than this file, so only what is the same in all of them is used: the settings of a
run and the steps of `launch.train` from there to `process.next`.

It reads "go" lines and answers each with a line, "done", once a round is over; it says "ready" before, and what went
wrong instead. The first round makes the process as well, tracing included. The end of the input is its end.
"""

import dataclasses
import importlib.util
import json
import os
import pathlib
import sys
import traceback
from collections.abc import Iterable
from typing import Any, TextIO

RANDOM_EXAMPLES = "launch.benchmarks.random_examples"
# Of the run that a round is one of: a long run may be compiled, a short one is not.
MANY_ROUNDS = 10**6


def lend_random_examples() -> None:
    """Lets a checkout that has no random examples find this one's."""
    if importlib.util.find_spec(RANDOM_EXAMPLES):
        return
    path = pathlib.Path(__file__).with_name("random_examples.py")
    spec = importlib.util.spec_from_file_location(RANDOM_EXAMPLES, path)
    sys.modules[RANDOM_EXAMPLES] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


def run_rounds(given: dict[str, Any], orders: Iterable[str], answers: TextIO) -> None:
    """A round for each order.

    Args:
      given: the `arguments` of the run, the `log_path`, and `clients_at_a_time`, which runs
        so many in this process, or None for what the runtime chooses.
      orders: what is read.
      answers: what is written.
    """
    from launch.runs.run_description import describe_data
    from launch.settings.flags import parse_config
    from launch.training.federation import build_spec, load_federated_data
    from launch.training.run_runtime import open_run_runtime, settle_device
    from launch.training.training_run import build_process

    def open_runtime():
        if not given["clients_at_a_time"]:
            return open_run_runtime(config, given["log_path"])
        from launch.runtimes.in_process import run_in_process

        return run_in_process(given["log_path"], config.device, given["clients_at_a_time"])

    # As of a flagfile, in which a setting that does nothing is no mistake.
    config = parse_config([], given["arguments"])
    data = load_federated_data(config)
    config = settle_device(config)
    # An earlier version's data have no format, and its model is built by their description.
    spec = build_spec(config, data.format if hasattr(data, "format") else describe_data(data))
    if hasattr(config, "compile"):
        from launch.training.run_runtime import settle_compilation

        # As the run of a person would be, whose rounds are many; the few that are timed would not pay for it.
        _, spec = settle_compilation(dataclasses.replace(config, rounds=MANY_ROUNDS), spec, data)
    with open_runtime():
        print("ready", file=answers, flush=True)
        process = state = None
        for _ in orders:
            if process is None:
                # In the first round, so that its time has all that is done once.
                process = build_process(config, spec, data)
                state = process.initialize()
            state = process.next(state)[0]
            print("done", file=answers, flush=True)


def main() -> None:
    """Runs the command line; what is printed by others goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # The answers have a descriptor of their own, so that what TensorFlow prints is not taken for one.
    os.dup2(2, 1)
    lend_random_examples()
    try:
        run_rounds(json.loads(sys.argv[1]), sys.stdin, answers)
    except Exception as error:
        traceback.print_exc()
        print(" ".join(f"{type(error).__name__}: {error}".split()), file=answers, flush=True)


if __name__ == "__main__":
    main()
