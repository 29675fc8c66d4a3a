"""The ServerApp: begins with the weights of `model.json`, adds up as Flower does, and keeps the weights of rounds."""

import base64
import io
import json
import pathlib

import numpy as np
from flwr.common import ndarrays_to_parameters
from flwr.server import LegacyContext, ServerConfig, strategy
from flwr.server.workflow import DefaultWorkflow, SecAggPlusWorkflow
from flwr.serverapp import ServerApp

MODEL = json.loads(pathlib.Path(__file__).with_name("model.json").read_text(encoding="utf-8"))
NAMES = MODEL["weights"]
# Strategies that take the mean of the nodes' weights, which is all that secure aggregation shows, and others.
OF_MEANS = ("FedAvg", "FedAvgM", "FedAdagrad", "FedAdam", "FedYogi")
OF_EACH = ("FedMedian", "FedTrimmedAvg", "Krum", "Bulyan")

app = ServerApp()


def average(results):
    """The mean of each metric over the nodes, by their examples."""
    total = sum(num for num, _ in results)
    return {name: sum(num * found[name] for num, found in results) / total for name in results[0][1]}


def read_start():
    """The weights that the run ended with, in the order of NAMES."""
    with np.load(io.BytesIO(base64.b64decode(MODEL["start"]))) as file:
        return [file[name] for name in NAMES]


def make_strategy(settings, start, folder):
    """The strategy of this name, with the settings below its name in pyproject.toml."""
    name, known = settings["strategy"], OF_MEANS if settings["secure"] else (*OF_MEANS, *OF_EACH)
    if name not in known:
        raise ValueError(f"strategy={name!r} with secure={settings['secure']}: expected one of {', '.join(known)}")

    def keep(round_num, weights, _):
        np.savez(folder / f"round_{round_num}.npz", **dict(zip(NAMES, weights, strict=True)))

    return getattr(strategy, name)(
        fraction_fit=settings["fraction-fit"],
        fraction_evaluate=settings["fraction-evaluate"],
        min_fit_clients=settings["least-nodes"],
        min_evaluate_clients=settings["least-nodes"] if settings["fraction-evaluate"] else 0,
        min_available_clients=settings["least-nodes"],
        initial_parameters=ndarrays_to_parameters(start),
        evaluate_fn=keep,
        on_fit_config_fn=lambda round_num: {"round": round_num},
        fit_metrics_aggregation_fn=average,
        evaluate_metrics_aggregation_fn=average,
        **{key.partition(".")[2]: value for key, value in settings.items() if key.startswith(f"{name}.")},
    )


@app.main()
def main(grid, context):
    """Runs all rounds; `round_<n>.npz` has the weights after round n, by their names in the training file."""
    settings, folder = context.run_config, pathlib.Path(context.run_config["output"]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    start = read_start()
    rounds = ServerConfig(num_rounds=settings["rounds"])
    legacy = LegacyContext(context, config=rounds, strategy=make_strategy(settings, start, folder))
    secure = SecAggPlusWorkflow(
        num_shares=1.0,  # every node of a round has a share of each other's key
        reconstruction_threshold=settings["secure-threshold"],
        max_weight=settings["secure-most-examples"],
        clipping_range=settings["secure-clipping-range"],
    )
    DefaultWorkflow(fit_workflow=secure if settings["secure"] else None)(grid, legacy)
    print(f"weights of each round: {folder}", flush=True)
