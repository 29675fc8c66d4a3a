"""Whom a run works with in place of simulated clients: what `run_training` asks of them, in this order.

The methods have what does nothing as their default, for partners that need less. Imports no TensorFlow.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from datasets.federated_data import FederatedData
from launch.runs.errors import RunFolderError
from launch.runs.run_folder import RunFolder
from launch.runs.task_columns import TaskColumns
from launch.settings.run_config import RunConfig
from launch.settings.serving import is_live_run
from tff_algos.protocol import FederatedProcess, State

if TYPE_CHECKING:
    from launch.training.evaluation import EvaluateState
    from models.model_spec import ModelSpec

Lines = Iterable[tuple[str, str]]  # findings, see `launch.training.announcements`


class Partners(Protocol):
    """The clients of a run that are asked over a network, or read from a record.

    Attributes:
      is_live: whether they are asked: then the events of the run are its record.
      data_name: what a new folder calls their data, once these are loaded, if no flag of the run names them; else "".
    """

    is_live: bool = False
    data_name: str = ""

    def load_data(self, config: RunConfig, load: Callable[[RunConfig], FederatedData]) -> FederatedData:
        """The federation, which `load` gives of an ordinary run; nothing is written yet."""
        return load(config)

    def check(self, config: RunConfig, data: FederatedData) -> None:
        """Raises what a user's mistake raises, if the run cannot be made with them."""

    def describe(self) -> Lines:
        """What is said of them at the beginning."""
        return ()

    def gather(
        self, config: RunConfig, folder: RunFolder, data: FederatedData, dealt: FederatedData, spec: "ModelSpec"
    ) -> FederatedData:
        """Waits until they are there; returns the federation that they make.

        Args:
          config: of the run.
          folder: whose run has not begun: it is removed if the run is stopped here.
          data: the federation.
          dealt: the same as the clients have it, with attackers' labels.
          spec: the model.
        """
        return data

    def join(
        self, process: FederatedProcess, config: RunConfig, spec: "ModelSpec", data: FederatedData, folder: RunFolder
    ) -> FederatedProcess:
        """The process whose clients they are. Raises ConfigError if it cannot have them."""
        return process

    def evaluate(
        self, process: FederatedProcess, evaluate_state: "EvaluateState", task: TaskColumns
    ) -> "EvaluateState":
        """What evaluates a state in place of `evaluate_state`."""
        return evaluate_state

    def describe_run(self) -> Mapping[str, Any]:
        """What `config.json` says of them, by key."""
        return {}

    def begin(self, folder: RunFolder, last_round: int) -> None:
        """Goes on with tables of their own, after this round; 0 starts anew."""

    def note_round(self, round_num: int, events: Sequence[tuple[float, int, str, int]]) -> None:
        """Adds a round to their tables, before its checkpoint."""

    def list_digests(self) -> Mapping[str, str]:
        """The digests of their tables by file, as the checkpoint of a round keeps them."""
        return {}

    def describe_round(self) -> str:
        """A few words on the last round for the line of progress; "" for none."""
        return ""

    def finish(self, process: FederatedProcess, state: State, data: FederatedData) -> FederatedData:
        """Ends their part after the last round, before results are written, which are of the federation it returns."""
        return data

    def describe_end(self) -> Lines:
        """What is said of them at the end."""
        return ()


def check_resumed(config: RunConfig, is_live: bool) -> None:
    """Raises RunFolderError if a run goes on that the other of `launch.train` and `launch.serve` has begun."""
    if not config.resume or is_live_run(config.run_dir) == is_live:
        return
    begun, command = ("launch.train", "train") if is_live else ("launch.serve, with clients on the network", "serve")
    raise RunFolderError(
        f"--run_dir={config.run_dir}: its run was begun by {begun}; go on with: python -m launch.{command} --resume "
        f"--run_dir={config.run_dir}"
    )
