"""Contests with made-up numbers: as they are measured, and as run folders."""

import pathlib

import numpy as np

from launch.advice.measures import TRIVIAL, Cost, Measured
from launch.advice.trivial import ALL, OWN
from launch.contests.contest import Entered, Outcome, TrialResult
from launch.contests.methods import ALONE, GROUPS, PERSONAL, POOLED, SHARED, Method
from launch.contests.plan import Plan
from launch.contests.problem import Limits, Problem
from launch.runs.tables import write_json, write_table
from launch.runs.task_columns import find_task_columns

CLASSES, ERRORS = find_task_columns("classification"), find_task_columns("regression")
METHODS = {
    "local_only": Method("local_only", "Local training", "local_only", role=ALONE),
    "fedavg": Method("fedavg", "FedAvg", "fedavg", role=SHARED),
    "ifca": Method("ifca", "IFCA", "ifca", role=GROUPS),
    "ditto": Method("ditto", "Ditto", "ditto", role=PERSONAL),
    "pooled": Method("pooled", "Pooled data", "local_only", role=POOLED),
}
ROWS = {OWN: "always each client's own most frequent class", ALL: "always the most frequent class"}
PLAN = Plan(40, 6, 0.3, 2, (100, 101), 5, (0, 1, 2), 5)


def make_results(means, offsets):
    """{seed: {client: mean of the seed + offset of the client}}; both are sequences."""
    return {seed: {f"site {i}": mean + offset for i, offset in enumerate(offsets)} for seed, mean in enumerate(means)}


def make_measured(name, means, offsets, validation=None, **fields):
    """A method, or a row without a model, of `METHODS` or `ROWS`; its validation mean is by default its first one."""
    is_row = name in ROWS
    title, role = (ROWS[name], TRIVIAL) if is_row else (METHODS[name].title, METHODS[name].role)
    tests = make_results(means, offsets)
    validations = dict.fromkeys(tests, means[0] if validation is None else validation)
    if not is_row:
        fields = {
            "cost": Cost(2e6, 90.0, 0.0, 40.0),
            "sizes": {f"site {i}": 20.0 for i in range(len(offsets))},
            **fields,
        }
    return Measured(name, title, role, tests, validations, **fields)


def make_outcome(names, task=CLASSES, arguments=("--dataset=digits",), runs=None, is_cut=False):
    """The outcome of these methods; `runs` are {name: {seed: folder}}."""
    entered = []
    for name in names:
        trials = (TrialResult(0, {"learning_rate": "0.05"}, ({100: 0.6}, {100: 0.605, 101: 0.62})),)
        entered.append(Entered(METHODS[name], trials, {"learning_rate": "0.05"}, "", (runs or {}).get(name, {})))
    left_out = Method("fedcd", "FedCD", "fedcd", role=GROUPS)
    entered.append(Entered(left_out, (), None, "its runs would take 12 minutes, which are not there"))
    limits = {name: Limits(40) for name in names}
    return Outcome(Problem("wards", tuple(arguments), task), PLAN, limits, tuple(entered), 1740.0, is_cut)


def write_seed(folder, algo, seed, results, validation, flags, task=CLASSES, new=(), summary=None, model="global"):
    """A finished run folder: the results of its clients are {client: value}, those of `new` took no part."""
    run_dir = pathlib.Path(folder) / f"seed_{seed}"
    labels = {} if task is CLASSES else {"task": {"kind": task.kind.name}}
    write_json(run_dir / "config.json", {"flags": {**flags, "algo": algo, "seed": seed}, "data": labels})
    mean = float(np.mean(list(results.values())))
    row = {"round": 40, "virtual_time_s": 90, "bytes_down": 1000 * len(results), "bytes_up": 500 * len(results)}
    row |= {task.client_test: mean, task.client_validation: validation}
    write_table(run_dir / "metrics.csv", list(row), [[str(value) for value in row.values()]])
    columns = ["client", "num_test", "model", task.of_client, "took_part"]
    cells = [(name, value, "1") for name, value in results.items()] + [(name, value, "0") for name, value in new]
    models = model if isinstance(model, dict) else dict.fromkeys(results, model)
    rows = [[name, "20", models.get(name, "global"), str(value), took] for name, value, took in cells]
    write_table(run_dir / "clients.csv", columns, rows)
    write_json(run_dir / "summary.json", {"rounds": 40, **(summary or {})})
    return run_dir
