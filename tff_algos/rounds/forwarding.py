"""Processes around another one, which changes some of what it says and passes on the rest."""

import operator
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from tff_algos.protocol import FederatedProcess, State


def _pass_on(name: str) -> Callable:
    """A method that asks the process whose turn it is for what it says under this name."""

    def ask(self: "ForwardingProcess", state: State, *arguments: Any, **named: Any) -> Any:
        process, inner = self.find_current(state)
        return getattr(process, name)(inner, *arguments, **named)

    return ask


class ForwardingProcess(FederatedProcess):
    """What a process around another extends: all that it does not define itself, the other says.

    Attributes:
      process: the other, which says what is the same in every round.
    """

    process: FederatedProcess

    def find_current(self, state: State) -> tuple[FederatedProcess, State]:
        """The process that made this state, and the state as that process knows it; by default `process`, `inner`."""
        return self.process, state.inner

    # Everything public is passed on by name, since a default inherited from the base class would hide what the process
    # inside says; a test fails for a name that is missing here.
    is_personal = property(operator.attrgetter("process.is_personal"))
    fine_tuning_start = property(operator.attrgetter("process.fine_tuning_start"))
    curve = property(operator.attrgetter("process.curve"))
    takes_new_clients = property(operator.attrgetter("process.takes_new_clients"))

    get_models = _pass_on("get_models")
    client_model = _pass_on("client_model")
    personalize = _pass_on("personalize")
    personalize_from = _pass_on("personalize_from")
    get_teachers = _pass_on("get_teachers")
    summarize = _pass_on("summarize")
    client_columns = _pass_on("client_columns")
    is_spent = _pass_on("is_spent")
    get_notes = _pass_on("get_notes")
    get_events = _pass_on("get_events")
    find_kept = _pass_on("find_kept")

    def keep_in(self, folder: pathlib.Path) -> None:
        self.process.keep_in(folder)

    def forget(self, needed: Sequence[Any]) -> None:
        self.process.forget(needed)
