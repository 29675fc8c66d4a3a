"""The types that carry client data from the loaders to the algorithms.

An algorithm never sees a client's examples. It hands a `ClientFiles` (a path and three counts) to a TFF computation,
which reads the files in its graph. Client files are raw little-endian arrays in C order, one for each client, split and
array: `<path>.<split>.x` with the dtype of the examples in `FederatedData.format`, `<path>.<split>.y` with that of the
labels, int32 where they are classes; `<path>.train.w`, float32, where the format has weights.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from datasets.example_format import ExampleFormat, Padding

# The settings of algorithms name these types, and `--help` needs no NumPy.
if TYPE_CHECKING:
    import numpy as np

SPLITS = ("train", "validation", "test")
DAY_S = 86400.0


class EnergyRates(NamedTuple):
    """What a device spends, in joules: on an example that it trains on, and on a byte that it receives or sends.

    Each is float64, shape (clients,), at least 0.
    """

    joules_per_example: np.ndarray
    joules_per_byte_down: np.ndarray
    joules_per_byte_up: np.ndarray


class Windows(NamedTuple):
    """When a device can be reached, every day alike: from each start on for the length beside it.

    Starts are in [0, `DAY_S`) seconds of the day, lengths at most a day, and a device's windows do not overlap; one
    that goes on past midnight is one window. Both are float64, shape (clients, windows), padded by windows of length 0.
    A run begins at second 0 of a day.
    """

    starts_s: np.ndarray
    lengths_s: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class DeviceProfiles:
    """The simulated devices; every array is float64 and has one entry for each client, shape (clients,).

    Attributes:
      examples_per_s: training speed, examples a second of the reference model.
      downlink_bytes_per_s: server to client.
      uplink_bytes_per_s: client to server.
      availability: chance in (0, 1] that the device is reachable when asked.
      names: what kind of device each client has, if the devices come from a file; None if they are drawn.
      energy: what they spend; None if nothing is known of it.
      windows: when they can be reached; None: always.
      resources: AMFL-P's R_i in (0, 1]; None if the algorithm draws them.
      digest: of the file; "" without one.
    """

    examples_per_s: np.ndarray
    downlink_bytes_per_s: np.ndarray
    uplink_bytes_per_s: np.ndarray
    availability: np.ndarray
    names: tuple[str, ...] | None = None
    energy: EnergyRates | None = None
    windows: Windows | None = None
    resources: np.ndarray | None = None
    digest: str = ""

    def choose(self, order: np.ndarray) -> DeviceProfiles:
        """Those of the clients at these places, int (clients,), in this order."""
        return dataclasses.replace(
            self,
            examples_per_s=self.examples_per_s[order],
            downlink_bytes_per_s=self.downlink_bytes_per_s[order],
            uplink_bytes_per_s=self.uplink_bytes_per_s[order],
            availability=self.availability[order],
            names=self.names and tuple(self.names[client] for client in order.tolist()),
            energy=self.energy and EnergyRates(*(rates[order] for rates in self.energy)),
            windows=self.windows and Windows(*(times[order] for times in self.windows)),
            resources=None if self.resources is None else self.resources[order],
        )


@dataclasses.dataclass(frozen=True)
class Archetypes:
    """Which kind of client each one is, where the partition or the variant makes clients of a few kinds.

    Attributes:
      names: one for each archetype, for example "cat" or "K=45".
      meta_archetypes: the group of similar archetypes that each archetype belongs to, 0-based; all 0 without groups.
      of_clients: the archetype of each client, 0-based, those that come when training is over included.
    """

    names: tuple[str, ...]
    meta_archetypes: tuple[int, ...]
    of_clients: tuple[int, ...]

    @property
    def meta_of_clients(self) -> tuple[int, ...]:
        """The meta-archetype of each client."""
        return tuple(self.meta_archetypes[archetype] for archetype in self.of_clients)

    def choose(self, order: np.ndarray) -> Archetypes:
        """With the clients at these places, int (clients,), in this order."""
        return dataclasses.replace(self, of_clients=tuple(self.of_clients[client] for client in order.tolist()))


# With slots, since a federation may have hundreds of thousands of these.
@dataclasses.dataclass(frozen=True, slots=True)
class ClientFiles:
    """One client: its place in the federation and where its examples lie.

    Attributes:
      index: position in `FederatedData.clients`, 0-based.
      name: how reports call it, for example "client_7".
      prefix: absolute path prefix of its files, whether they are there or not.
      num_train: examples in the train split, at least 1.
      num_validation: examples in its own validation split, possibly 0.
      num_test: examples in its own test split, possibly 0.
      write: writes the files unless they are there; None: they are.
    """

    index: int
    name: str
    prefix: str
    num_train: int
    num_validation: int
    num_test: int
    write: Callable[[], None] | None = dataclasses.field(default=None, repr=False, compare=False)

    @property
    def path(self) -> str:
        """The path prefix of the files, which are there from now on. Raises DatasetError: if they cannot be."""
        if self.write is not None:
            self.write()
        return self.prefix


@dataclasses.dataclass(frozen=True, eq=False)
class FederatedData:
    """A partitioned data set: the clients, the global test set and what is needed to read an example.

    Attributes:
      dataset: its name, for example "mnist".
      format: of the examples and their labels, as stored in the files.
      clients: in ascending order of index.
      label_counts: int64, shape (clients, classes), over the train splits; (clients, 0) where labels are no classes, or
        where clients are too many to read them all.
      test_x: global test set, shape (examples, *input_shape).
      test_y: its labels, as in the files, shape (examples, *labels.shape).
      profiles: the simulated devices.
      digest: of the source data, the partition and the splits; names the folder of the client files.
      source_digests: further ones by name, of the data before they were divided.
      num_dropped: examples that the loader left out because a reading was missing.
      archetypes: the kinds of `everyone`, if the data know any; else None.
      new_clients: clients that take no part in training and come when it is over; their indices go on after those of
        `clients`. `profiles` has their devices and `archetypes` their kinds, too; nothing else here
        counts them.
      num_clients_left_out: natural clients that are not here, since they have no example to train on.
      reading: how the examples were understood, in words.
      notes: what may have been meant otherwise, a line each.
      filled: how many values were missing and are filled in, by column of a table.
      feature_means: of each feature or channel, after the preprocessing, that a model takes from them; () for none.
      feature_deviations: that it divides them by then, as many.
      feature_padding: the steps that stay as they are meanwhile; None if there are none.
      class_weights: of each class, what multiplies the loss of its examples in training; () for none.
      reader: (client, split) -> (x, y) as stored, of data whose files are written when they are needed; None reads the
        files.
      is_remote: whether the clients' examples lie on machines of their own: `reader` gives none of them.
    """

    dataset: str
    format: ExampleFormat
    clients: tuple[ClientFiles, ...]
    label_counts: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    profiles: DeviceProfiles
    digest: str = ""
    source_digests: Mapping[str, str] = dataclasses.field(default_factory=dict)
    num_dropped: int = 0
    archetypes: Archetypes | None = None
    new_clients: tuple[ClientFiles, ...] = ()
    num_clients_left_out: int = 0
    reading: str = ""
    notes: tuple[str, ...] = ()
    filled: Mapping[str, int] = dataclasses.field(default_factory=dict)
    feature_means: tuple[float, ...] = ()
    feature_deviations: tuple[float, ...] = ()
    feature_padding: Padding | None = None
    class_weights: tuple[float, ...] = ()
    reader: Callable[[ClientFiles, str], tuple[np.ndarray, np.ndarray]] | None = None
    is_remote: bool = False

    @functools.cached_property
    def everyone(self) -> tuple[ClientFiles, ...]:
        """The clients and, after them, the new ones."""
        return self.clients + self.new_clients

    @functools.cached_property
    def num_train(self) -> np.ndarray:
        """Train examples of each client, int64, shape (clients,)."""
        import numpy as np

        return np.array([client.num_train for client in self.clients], np.int64)

    def count(self, client: ClientFiles, split: str) -> int:
        """How many examples `read_split` gives: of clients far away none, however many these have."""
        sizes = {"train": client.num_train, "validation": client.num_validation, "test": client.num_test}
        return 0 if self.is_remote else sizes[split]

    def read_split(self, client: ClientFiles, split: str) -> tuple[np.ndarray, np.ndarray]:
        """One client's examples on the host, for evaluation and plots: (x, y) as stored."""
        import numpy as np

        if self.reader is not None:
            return self.reader(client, split)
        x = np.fromfile(f"{client.path}.{split}.x", self.format.input_dtype)
        return x.reshape((-1, *self.format.input_shape)), self.read_labels(client, split)

    def read_labels(self, client: ClientFiles, split: str) -> np.ndarray:
        """One client's labels on the host, in the stored dtype, shape (examples, *labels.shape)."""
        import numpy as np

        if self.reader is not None:
            return self.reader(client, split)[1]
        labels = self.format.labels
        return np.fromfile(f"{client.path}.{split}.y", labels.dtype).reshape(-1, *labels.shape)

    def read_pooled(self, clients: Iterable[ClientFiles], split: str) -> tuple[np.ndarray, np.ndarray]:
        """The same split of several clients, concatenated in the order given."""
        import numpy as np

        clients = list(clients)
        # Those without any need no file read, but for the arrays' form.
        having = [client for client in clients if self.count(client, split)] or clients[:1]
        parts = [self.read_split(client, split) for client in having]
        return np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts])
