"""What `--runtime=ray` keeps: graphs from run to run, what was loaded from round to round, and compiled training.

`make test-ray` runs these, on a Ray of their own.
"""

import numpy as np
import pytest
import tree
from small_runs import assert_close

from launch.runtimes.in_process import run_in_process
from launch.runtimes.ray_cluster import is_ray_installed
from launch.runtimes.ray_runtime import run_ray
from launch.settings.run_config import build_run_config
from launch.training.federation import build_spec, load_federated_data
from launch.training.training_run import build_process

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not is_ray_installed(), reason="Ray is not installed (make test-ray installs it apart)"),
]
SHARES, ROUNDS = 4, 3
ASKED = 16  # tasks, so that each of the few processes that compute shares gets one


def ask_processes(mark):
    """{process: what it keeps} of processes that compute shares: (marks, compiled functions) of each graph there."""
    import ray

    # Within this function: Ray sends such a one whole, where one of a module would be looked for at the node.
    def look(mark):
        import os
        import time

        from launch.runtimes import ray_runtime

        kept = []
        for runner in ray_runtime._runners.values():
            runner.marks = [*getattr(runner, "marks", []), mark]
            functions = runner._work._sessions[0].graph.as_graph_def().library.function
            kept.append((runner.marks, sum(each.attr["_XlaMustCompile"].b for each in functions)))
        time.sleep(0.2)  # so that the next task goes to another process
        return os.getpid(), kept

    answers = ray.get([ray.remote(num_cpus=1)(look).remote(mark) for _ in range(ASKED)])
    return {process: kept for process, kept in answers if kept}


def train(config, after_round=lambda round_num: None):
    """The arrays of the state after the rounds of a new process, in the runtime that is TFF's default."""
    data = load_federated_data(config)
    process = build_process(config, build_spec(config, data.format), data)
    state = process.initialize()
    for round_num in range(1, ROUNDS + 1):
        state = process.next(state).state
        after_round(round_num)
    return [np.asarray(leaf) for leaf in tree.flatten(state) if leaf is not None]


def test_a_second_run_traces_nothing_and_nodes_compile_once(tmp_path, monkeypatch):
    def build_config(compile_mode):
        settings = {"algo": "fedavg", "model": "perceptron", "smoke": True, "compile": compile_mode}
        return build_run_config({**settings, "client_dir": str(tmp_path / "shards")})

    def train_on_ray(after_round=lambda round_num: None):
        graph_dir = str(tmp_path / "graphs")
        with run_ray(str(tmp_path / "worker.log"), num_shares=SHARES, graph_dir=graph_dir):
            return train(build_config("on"), after_round)

    seen = {}
    first = train_on_ray(lambda round_num: seen.update({round_num: ask_processes(round_num)}))
    again = seen[1].keys() & seen[ROUNDS].keys()
    assert again, "no process computed in the first round and was there in the last"
    for process in again:
        for marks, num_compiled in seen[ROUNDS][process]:
            assert 1 in marks, "graphs were loaded anew after the first round"
            assert num_compiled > 0

    kept = {path.name: path.read_bytes() for path in (tmp_path / "graphs").iterdir()}
    assert kept
    with monkeypatch.context() as patch:
        patch.setattr("tff_algos.late_computation.LateComputation.made", property(lambda late: pytest.fail("traced")))
        second = train_on_ray()
    assert [array.tobytes() for array in second] == [array.tobytes() for array in first]
    assert {path.name: path.read_bytes() for path in (tmp_path / "graphs").iterdir()} == kept

    with run_in_process(str(tmp_path / "worker.log")):
        for compile_mode in ("on", "off"):
            assert_close(first, train(build_config(compile_mode)), atol=1e-5)
