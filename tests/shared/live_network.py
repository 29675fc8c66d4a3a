"""A live network over a transport in memory, whose time a test sets, and its clients."""

import hashlib
import types

import numpy as np
from memory_transport import MemoryTransport, ScriptedClient, open_roster

from launch.live.network import LiveNetwork
from launch.live.offers import Offer
from tff_algos.rounds.network import Task
from tff_algos.seeds import derive_seed
from tff_algos.settings.local_training import LocalTrainingConfig

WEIGHTS = [np.full((2, 2), 0.5, np.float32), np.int64(3), np.ones(2, np.float32)]
CONTENT = b"a file"
FILE = types.SimpleNamespace(
    content=CONTENT,
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    names=("weight_0", "weight_2"),
    shapes=((2, 2), (2,)),
    positions=(0, 2),
)
OFFER = Offer(
    "FedAvg, digits", FILE, LocalTrainingConfig(epochs=2, batch_size=4), WEIGHTS, (8, 8, 1), 2, ["a", "b"], 60
)
DEALT = [(10, 2), (6, 1), (3, 0)]
GRACE_S = 10.0


def make_key(index):
    return f"{index:02x}" * 16


class Run:
    """A server and its clients."""

    def __init__(self, folder, num_clients=2, dealt=DEALT, time_s=0.0, **options):
        self.transport = MemoryTransport()
        self.roster = open_roster(self.transport, folder / "roster.json", dealt)
        self.parts = {"load_part": self.load_part}
        self.network = LiveNetwork(self.transport, self.roster, GRACE_S, **self.parts, **options)
        self.clients = [ScriptedClient(self.transport, make_key(index)).join() for index in range(num_clients)]
        self.network.enrol(num_clients)
        self.network.publish(OFFER)
        self.network.start_clock(time_s)

    @staticmethod
    def load_part(client):
        return {"train_x": np.full((2, 3), client, np.float32)}

    def ask(self, client, number=1, version=1):
        seed = derive_seed(0, "training", number, client)
        self.network.ask(Task(client, number, version, tuple(WEIGHTS), seed, np.float32(0.1)))
        return (self.clients[client].list_heard("train") or [None])[-1]

    def take(self, until_s=None):
        happening = self.network.take(until_s)
        return happening and (happening.time_s, happening.client, happening.what, happening.number)

    def count(self, **expected):
        traffic = self.network.take_traffic()._asdict()
        assert {name: traffic[name] for name in expected} == expected
