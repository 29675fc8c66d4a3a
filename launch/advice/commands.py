"""What to type after the advice: commands that work as they stand, from where the contest ran. No TensorFlow."""

import os
import pathlib
import shlex
from collections.abc import Iterator, Sequence

from launch.advice.choices import FEDAVG
from launch.advice.decision import UNDECIDED
from launch.advice.measures import Measured
from launch.advice.verdict import Advice
from launch.contests.methods import ALONE, Method
from launch.contests.problem import Limits
from launch.live.training_file import check_can_train
from launch.pages.comparison.compared_run import read_compared_run
from launch.settings.flags import FlagError, parse_config
from launch.settings.run_config import find_algorithm
from launch.settings.trusted_modules import spell_trust
from launch.sweeps.tuning.search_space import format_settings
from tff_algos.settings.config_fields import ConfigError

FINE_TUNING = "fine_tuning"
OF_THE_END = ("steps", "learning_rate")  # of fine-tuning; of FedAvg they are those of its rounds


def list_commands(advice: Advice) -> Iterator[tuple[str, str]]:
    """(what for, command): those of the advised method, if any is, and the comparison of all runs."""
    method = advice.find(advice.decision.advised)
    entered = {each.method.name: each.method for each in advice.outcome.entered}
    if method is not None and method.runs:
        rounds = max(1, round(method.cost.rounds))
        settings = list_flags(advice, method, entered[method.name])
        folder = pathlib.Path("runs") / f"{advice.outcome.problem.name}_{method.name}"
        yield f"Train as it was done here, by {method.title}", _spell("train", [*settings, f"--run_dir={folder}"])
        first = next(iter(method.runs.values()))
        trust = shlex.split(spell_trust(read_compared_run(first, first.name).asked))
        yield (
            "Bring the models of its first run onto phones",
            _spell("export", [f"--run_dir={_shorten(first)}", *trust]),
        )
        flags = spell_live(list_flags(advice, method, entered[method.name], is_limited=False))
        # Of those that join each one takes part.
        live = [
            *(each for each in flags if not each.partition("=")[0].endswith("new_clients")),
            f"--rounds={rounds}",
        ]
        if can_be_live(advice, live):
            yield "Train it with real devices, which join by a link", _spell("serve", live)
    elif advice.decision.verdict == UNDECIDED and (alone := advice.alone) is not None and alone.role == ALONE:
        folder = pathlib.Path("runs") / f"{advice.outcome.problem.name}_{alone.name}"
        flags = [*list_flags(advice, alone, entered[alone.name]), f"--run_dir={folder}"]
        yield "Until you know, train each client alone", _spell("train", flags)
    any_run = next((path for each in advice.methods for path in each.runs.values()), None)
    if any_run is not None:
        yield "Look at all runs, in charts", _spell("compare", [f"--runs={_shorten(any_run.parents[1])}"])


def list_flags(advice: Advice, measured: Measured, method: Method, is_limited: bool = True) -> list[str]:
    """The flags of a run of this method with its chosen settings."""
    limits = advice.outcome.limits.get(measured.name, Limits(round(measured.cost.rounds)))
    chosen = format_settings(measured.settings)
    # 0 is no limit, which needs no flag.
    given = [flag for flag in limits.arguments if float(flag.partition("=")[2])] if is_limited else []
    return [f"--algo={method.algo}", *advice.outcome.problem.arguments, *method.fixed, *chosen, *given]


def spell_live(flags: Sequence[str]) -> list[str]:
    """The flags as a live run takes them: of FedAvg with steps at the end, those of fine-tuning, which are the same."""
    given = dict(flag.removeprefix("--").split("=", 1) for flag in flags)
    if given["algo"] != FEDAVG or not int(given.get("final_steps", "0")):
        return list(flags)
    tuned = find_algorithm(FINE_TUNING).names
    # What both have under one name, but for these two, means the same; the rest is that of the rounds.
    of_rounds = {name for name in find_algorithm(FEDAVG).names if name not in tuned or name in OF_THE_END}
    renamed = {"final_steps": "steps", "final_learning_rate": "learning_rate"}
    renamed |= {name: f"local_{name}" for name in of_rounds}
    given["algo"] = FINE_TUNING
    return [f"--{renamed.get(name, name)}={value}" for name, value in given.items()]


def can_be_live(advice: Advice, flags: Sequence[str]) -> bool:
    """Whether `launch.serve` takes these flags."""
    try:
        check_can_train(parse_config(flags))
    except (ConfigError, FlagError):
        return False
    return advice.task.is_classification


def _spell(command: str, flags: list[str]) -> str:
    return f"python -m launch.{command} {shlex.join(flags)}"


def _shorten(path: pathlib.Path) -> str:
    """The path from here, if it lies below."""
    whole, here = path.resolve(), pathlib.Path.cwd().resolve()
    return os.fspath(whole.relative_to(here) if whole.is_relative_to(here) else path)
