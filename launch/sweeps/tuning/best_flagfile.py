"""The flagfile of the best trial: the experiment's own, with the settings that were found and where they come from."""

import itertools
import pathlib
from collections.abc import Iterable

from files.writing import write_text
from launch.settings.algorithms import Algorithm
from launch.settings.experiments import NOT_KEPT, list_trials, wrap_comment
from launch.settings.setting_names import get_flag, read_name
from launch.sweeps.tuning.request import MEDIAN, Request
from launch.sweeps.tuning.search_space import format_search, format_settings
from launch.sweeps.tuning.trials import Outcome, name_seeds


def write_best_flagfile(
    path: pathlib.Path, request: Request, best: Outcome, confirmed_mean: float | None, described: str
) -> None:
    """Writes it, with a comment on where the settings come from above each group of them.

    Args:
      best: the trial; its settings replace those of the experiment.
      confirmed_mean: its score on the seeds that were not searched; None if there are none.
      described: how many trials there were and what chose them, in words.
    """
    name = pathlib.PurePath(request.experiment.shown).name
    head = f"{name} with the settings of trial {best.number} of a search."
    body = _leave_out(request.experiment.read(), best.settings, request.experiment.algorithm)
    parts = [wrap_comment(head)]
    if body:
        # Flags that stand under no heading of the experiment's get one.
        parts.append(body if body[0].startswith("#") else [*wrap_comment(f"Ours: as {name} has them."), *body])
    parts.append([*wrap_comment(_explain(request, best, confirmed_mean, described)), *format_settings(best.settings)])
    write_text(path, "\n\n".join("\n".join(part) for part in parts) + "\n")


def _explain(request: Request, best: Outcome, confirmed_mean: float | None, described: str) -> str:
    table = str(request.output)
    sentences = [
        "Ours: tuned by launch.tune on the clients' validation examples.",
        f"The search space is {format_search(request.space)}; {described}, each trained with "
        f"{name_seeds(request.seeds)}{'' if request.rounds is None else f' for --rounds={request.rounds}'}.",
    ]
    if request.pruner == MEDIAN:
        side = "below" if request.sign > 0 else "above"
        sentences.append(f"Runs {side} the median were stopped, from round {request.first_pruning_round} on.")
    sentences.append(f"The mean {request.objective} after the last round is {best.mean:.4f}.")
    if confirmed_mean is not None:
        sentences.append(f"It is {confirmed_mean:.4f} on {name_seeds(request.confirm_seeds)}, not searched before.")
    if list_trials(table):
        sentences.append(f"Trials: {list_trials(table)[0]}.")
    else:
        sentences.append(f"The {NOT_KEPT} with the project; they are in {table}.")
    return " ".join(sentences)


def _leave_out(text: str, names: Iterable[str], algorithm: Algorithm) -> list[str]:
    """The lines of a flagfile without its head, these flags, and the headings under which no other flag stands."""
    left_out = {read_name(name, algorithm) for name in names}
    lines = [line.strip() for line in text.splitlines()]
    lines = list(itertools.dropwhile(lambda line: line.startswith("#"), lines))
    kept = [line for line in lines if read_name(get_flag(line), algorithm) not in left_out]
    blocks = "\n".join(kept).split("\n\n")
    with_flags = [block.strip("\n") for block in blocks if any(line.startswith("-") for line in block.splitlines())]
    return "\n\n".join(with_flags).splitlines()
