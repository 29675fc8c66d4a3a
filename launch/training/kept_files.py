"""The files of what clients keep between rounds: those that no kept state needs are removed. Imports no TensorFlow.

The states are those of the checkpoints, the older one too, and of the best rounds. See `tff_algos.rounds.client_store`.
"""

from typing import Any

from launch.runs.checkpoints import Checkpoints
from tff_algos.protocol import FederatedProcess, State


class KeptFiles:
    """Knows what each state needs that is kept.

    Args:
      process: the algorithm, told where its files lie.
      checkpoints: those of the run.
    """

    def __init__(self, process: FederatedProcess, checkpoints: Checkpoints):
        self._process, self._checkpoints = process, checkpoints
        self._needed: dict[int, Any] = {}  # by round; None for a state that needs none

    def note(self, round_num: int, state: State) -> None:
        """Notes what the state after a round needs, which may come to be kept."""
        self._needed[round_num] = self._process.find_kept(state)

    def prune(self, state: State) -> None:
        """Removes the files that no kept state needs, after `state` was saved as the newest."""
        if self._process.find_kept(state) is None:
            self._needed = {}
            return
        rounds = self._checkpoints.list_rounds()
        # Those of rounds before a resume are not noted yet.
        self._needed = {round_num: self._find(round_num, state) for round_num in rounds}
        self._process.forget([needed for needed in self._needed.values() if needed is not None])

    def _find(self, round_num: int, template: State) -> Any:
        if round_num in self._needed:
            return self._needed[round_num]
        try:
            return self._process.find_kept(self._checkpoints.load_any(round_num, template))
        except Exception:  # of many types, see `Checkpoints.load`; a damaged state is of no use, whatever it needs
            return None
