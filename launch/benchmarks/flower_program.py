"""Flower's FedAvg by its simulation, in `.venv-flower-simulation`, with nothing of this project.

Started by `flower_simulation`, never by hand. As for pfl-research, each worker keeps the users' tensors ready to train
on, in PyTorch's channels-last layout, and local Adam is fused into one call. How it is asked is in `torch_student`.
"""

import functools
import os
import traceback

import torch
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from torch_student import ImageStudent, answer_until_next_round, open_orders, read_users

NEVER = 10**9

client_app = ClientApp()


@functools.cache
def prepare(path, scale, offset):
    """(users, test set, model) of this process."""
    torch.set_num_threads(1)  # a worker has a core
    users, test_set = read_users(path, scale, offset, "cpu")
    return users, test_set, ImageStudent().to(memory_format=torch.channels_last)


@client_app.train()
def train(message, context):
    """A user's share of a round: Adam from the round's weights on."""
    settings = message.content["config"]
    users, _, module = prepare(settings["arrays"], settings["scale"], settings["offset"])
    x, y = users[context.node_config["partition-id"]]
    module.load_state_dict(message.content["arrays"].to_torch_state_dict())
    # Keras's epsilon; PyTorch's own is 1e-8.
    optimizer = torch.optim.Adam(module.parameters(), lr=settings["learning_rate"], eps=1e-7, fused=True)
    for _ in range(settings["epochs"]):
        for rows in torch.randperm(len(y)).split(settings["batch_size"]):
            optimizer.zero_grad()
            module.loss(x[rows], y[rows]).backward()
            optimizer.step()
    arrays = ArrayRecord(module.state_dict())
    return Message(RecordDict({"arrays": arrays, "metrics": MetricRecord({"num-examples": len(y)})}), reply_to=message)


def main(settings):
    """Trains until the socket closes. `settings` are those of `asked_program.open_asked` and of `flower_simulation`."""
    channel = open_orders(settings["socket"])
    torch.manual_seed(settings["seed"])
    users, test_set, module = prepare(settings["arrays"], settings["scale"], settings["offset"])
    server_app = ServerApp()

    def wait_for_order(round_num, arrays):
        module.load_state_dict(arrays.to_torch_state_dict())
        answer_until_next_round(channel, module, test_set)

    @server_app.main()
    def run_rounds(grid, context):
        strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=len(users), min_available_nodes=len(users))
        names = ("arrays", "scale", "offset", "batch_size", "epochs", "learning_rate")
        strategy.start(
            grid,
            ArrayRecord(module.state_dict()),
            num_rounds=NEVER,
            train_config=ConfigRecord({name: settings[name] for name in names}),
            evaluate_fn=wait_for_order,  # which is called before the first round and after each one
        )

    workers = settings["num_workers"]
    cluster = {"num_cpus": workers, "_node_ip_address": "127.0.0.1", "_temp_dir": settings["ray_folder"]}
    backend = {"client_resources": {"num_cpus": 1}, "init_args": cluster}
    try:
        run_simulation(server_app, client_app, num_supernodes=len(users), backend_config=backend)
    finally:
        # Without its backend the ServerApp would wait for answers for ever, in a thread of this program.
        traceback.print_exc()
        os._exit(1)
