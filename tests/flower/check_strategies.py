"""`check_strategies.py <app>`, by the Python of .venv-flower: each strategy of the app adds up, by its settings.

Of seven nodes' weights, one of them far off, the mean and the median are what NumPy computes, and Krum takes no mean.
"""

import pathlib
import sys
import tempfile
import tomllib

import numpy as np

APP = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(APP))
NUM_NODES = 7  # of which Bulyan, with one malicious one, takes no fewer


def main() -> None:
    from federated_app import server_app
    from flwr.common import Code, FitRes, Status, ndarrays_to_parameters, parameters_to_ndarrays
    from flwr.common.config import flatten_dict

    config = tomllib.loads((APP / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]
    settings, start = flatten_dict(config), server_app.read_start()
    random = np.random.default_rng(0)
    nodes = [[array + random.normal(0, 0.01, array.shape) for array in start] for _ in range(NUM_NODES - 1)]
    nodes.append([array + 100 for array in start])
    status = Status(Code.OK, "")
    results = [(None, FitRes(status, ndarrays_to_parameters(node), 10, {"loss": 1.0})) for node in nodes]
    mean, median = (
        [combine(arrays, axis=0) for arrays in zip(*nodes, strict=True)] for combine in (np.mean, np.median)
    )
    for name in (*server_app.OF_MEANS, *server_app.OF_EACH):
        with tempfile.TemporaryDirectory() as folder:
            strategy = server_app.make_strategy({**settings, "strategy": name}, start, pathlib.Path(folder))
            # Those that step on their own know where from.
            strategy.initialize_parameters(None)
            parameters, metrics = strategy.aggregate_fit(1, results, [])
        found = parameters_to_ndarrays(parameters)
        assert metrics == {"loss": 1.0} and len(found) == len(start), name
        moved = max(float(np.abs(a - b).max()) for a, b in zip(found, start, strict=True))
        print(f"{name:<16} moves weights by up to {moved:.3g}")
        for expected, of in ((mean, "FedAvg"), (median, "FedMedian")):
            if name == of:
                assert all(np.allclose(a, b, atol=1e-4) for a, b in zip(found, expected, strict=True)), name
        assert 0 < moved < (1 if name in server_app.OF_EACH else 101), name


if __name__ == "__main__":
    main()
