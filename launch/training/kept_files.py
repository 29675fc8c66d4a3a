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
        self._needed: dict[int, Any] = {}  # by round, None for a state that needs no file

    def prune(self, round_num: int, state: State) -> None:
        """Removes the files that no kept state needs, after the state of a round was saved as the newest."""
        newest = self._process.find_kept(state)
        if newest is None:
            return
        self._needed[round_num] = newest
        self._needed = {kept: self._find(kept, state) for kept in self._checkpoints.list_rounds()}
        self._process.forget([needed for needed in self._needed.values() if needed is not None])

    def _find(self, round_num: int, template: State) -> Any:
        """What the state after a round needs; it is read if it was saved before a resume, or between checkpoints."""
        if round_num in self._needed:
            return self._needed[round_num]
        try:
            return self._process.find_kept(self._checkpoints.load_any(round_num, template))
        except Exception:  # of many types, see `Checkpoints.load`; a damaged state is of no use, whatever it needs
            return None
