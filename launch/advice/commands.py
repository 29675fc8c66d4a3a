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
from launch.live.training_file import check_can_train
from launch.pages.comparison.compared_run import ComparedRun, read_compared_run
from launch.runs.columns import ROUND
from launch.settings.flags import FlagError, parse_config
from launch.settings.run_config import find_algorithm
from launch.settings.trusted_modules import spell_trust
from launch.sweeps.tuning.search_space import format_settings
from tff_algos.settings.config_fields import ConfigError

FINE_TUNING = "fine_tuning"
TRAINED = "trained"  # the folder beside the contest's own
OF_THE_END = ("steps", "learning_rate")  # of fine-tuning; of FedAvg they are those of its rounds


def list_commands(advice: Advice) -> Iterator[tuple[str, str]]:
    """(what for, command): those of the advised method, if any is, and the comparison of all runs."""
    method = advice.find(advice.decision.advised)
    entered = {each.method.name: each.method for each in advice.outcome.entered}
    if method is not None and method.runs:
        yield f"Train as it was done here, by {method.title}", spell_training(advice, method, entered[method.name])
        first = next(iter(method.runs.values()))
        run = read_compared_run(first, first.name)
        trust = shlex.split(spell_trust(run.asked))
        yield (
            f"Bring the models of its first run onto phones{_say_files(method)}",
            _spell("export", [f"--run_dir={_shorten(first)}", *trust]),
        )
        flags = spell_live(list_flags(advice, method, entered[method.name]))
        # Of those that join each one takes part.
        live = [
            *(each for each in flags if not each.partition("=")[0].endswith("new_clients")),
            f"--rounds={count_rounds(run)}",
        ]
        if can_be_live(advice, live):
            yield "Train it with real devices, which join by a link", _spell("serve", live)
    elif advice.decision.verdict == UNDECIDED and (alone := advice.alone) and alone.role == ALONE and alone.runs:
        yield "Until you know, train each client alone", spell_training(advice, alone, entered[alone.name])
    any_run = next((path for each in advice.methods for path in each.runs.values()), None)
    if any_run is not None:
        yield "Look at all runs, in charts", _spell("compare", [f"--runs={_shorten(any_run.parents[1])}"])


def spell_training(advice: Advice, measured: Measured, method: Method) -> str:
    """The command that does the method's first run again, with its number of rounds in place of its limits."""
    seed, first = next(iter(measured.runs.items()))
    rounds = count_rounds(read_compared_run(first, first.name))
    # In the advice's folder, so that two of the same data do not collide.
    folder = _shorten(first.parents[2] / TRAINED / measured.name)
    own = [*([f"--seed={seed}"] if seed else []), f"--rounds={rounds}", "--fairness", f"--run_dir={folder}"]
    return _spell("train", [*list_flags(advice, measured, method), *own])


def count_rounds(run: ComparedRun) -> int:
    """The rounds that the run had, whatever ended it."""
    return int(run.columns[ROUND][-1])


def _say_files(method: Measured) -> str:
    """What is exported of several models."""
    number = len(set(method.used.values()))
    if number <= 1:
        return ""
    return (
        ", a file a client"
        if number == len(method.used)
        else ", a file a model; each client uses the one that fits its data"
    )


def list_flags(advice: Advice, measured: Measured, method: Method) -> list[str]:
    """The flags of a run of this method with its chosen settings, without its length."""
    chosen = format_settings(measured.settings)
    return [f"--algo={method.algo}", *advice.outcome.problem.arguments, *method.fixed, *chosen]


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
