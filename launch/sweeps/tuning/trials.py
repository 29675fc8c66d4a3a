"""Trials: the runs that each consists of, what came of it, the table of all, which are the best, and their flagfile."""

import enum
import itertools
import pathlib
import types
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from datasets.partition_settings import ARCHETYPE_PARTITIONS
from files.writing import write_text
from launch.pages.comparison.seed_statistics import compute_mean
from launch.runs.columns import METRICS_FILE
from launch.runs.run_records import RunPath, read_rounds
from launch.runs.tables import write_table
from launch.settings.algorithms import Algorithm
from launch.settings.experiments import NOT_KEPT, list_trials, wrap_comment
from launch.settings.flags import FlagError, parse_config
from launch.settings.run_config import RunConfig
from launch.settings.run_flags import NO_PLOTS
from launch.settings.setting_names import get_flag, read_name
from launch.sweeps.present_data import PresentData
from launch.sweeps.recipes import Recipe
from launch.sweeps.tasks import Task, is_finished
from launch.sweeps.tuning.request import MEDIAN, Request, name_scores
from launch.sweeps.tuning.search_space import (
    Settings,
    describe_settings,
    format_search,
    format_settings,
    list_names,
    refuse_search,
)

MEAN, CONFIRMED_MEAN = "mean", "confirmed_mean"
STATE, PRUNED_ROUND, PRUNED_VALUE = "state", "pruned_after_round", "value_then"

# Nobody looks at each trial, and its page and plots are a fair share of a short run.
UNSEEN = ("--norun_page", f"--plot_formats={NO_PLOTS}")
NONE_YET: Mapping = types.MappingProxyType({})

# The objective by round.
Curve = Mapping[int, float]
# The objective after the last round, by seed.
Scores = Mapping[str, float]


class State(enum.StrEnum):
    """How far a trial is."""

    OPEN = ""
    COMPLETE = "complete"
    PRUNED = "pruned"
    # launch.train would refuse its settings.
    REFUSED = "refused"


class Outcome(NamedTuple):
    """A trial and what is known of it.

    Attributes:
      number: from 1.
      settings: its flags.
      state: how far it is.
      scores: of the seeds whose runs have all their rounds.
      curves: by seed, where the sampler or the pruner asks for them; those of a pruned run up to that round.
      pruned: the round after which it was stopped, and the objective then; None if it was not.
    """

    number: int
    settings: Settings
    state: State = State.OPEN
    scores: Scores = NONE_YET
    curves: Mapping[str, Curve] = NONE_YET
    pruned: tuple[int, float] | None = None

    @property
    def mean(self) -> float | None:
        """The mean of the scores over all seeds; None if the trial is not complete."""
        return compute_mean(self.scores.values()) if self.state is State.COMPLETE else None


def build_task(request: Request, number: int, settings: Settings, seed: str) -> Task:
    """A trial's run with one seed.

    Raises:
      FlagError: settings that `launch.train` would refuse.
    """
    run_dir = request.folder / f"trial_{number}" / f"seed_{seed}"
    arguments = (f"--seed={seed}", f"--run_dir={run_dir}", *UNSEEN, *request.arguments, *format_settings(settings))
    config = _resolve(request.experiment, arguments, settings)
    label = f"trial {number} ({describe_settings(settings)})"
    return Task(request.experiment, arguments, run_dir, config, label=label, present=request.present or PresentData())


def _resolve(recipe: Recipe, arguments: Sequence[str], settings: Settings) -> RunConfig:
    try:
        config = parse_config([recipe.argument, *arguments])
    except FlagError as error:
        raise refuse_search(error, settings) from None
    # Partitions by archetype count examples, all others take a fraction.
    flag = "validation_per_client" if config.partition in ARCHETYPE_PARTITIONS else "validation_fraction"
    if not getattr(config, flag):
        fix = 10 if flag == "validation_per_client" else 0.1
        raise FlagError(f"--{flag}=0: trials are scored on validation examples; give --{flag}={fix}")
    return config


def read_curve(run_dir: RunPath, objective: str) -> dict[int, float]:
    """The objective by round, of the rounds that have one; empty if there is no table yet."""
    try:
        rounds = read_rounds(run_dir / METRICS_FILE)
    except (OSError, ValueError, KeyError):
        return {}
    return {number: row[objective] for number, row in sorted(rounds.items()) if objective in row}


def read_score(task: Task, objective: str) -> float | None:
    """The objective after the last round of a finished run; None if it is not finished."""
    if not is_finished(task):
        return None
    rounds = read_rounds(task.run_dir / METRICS_FILE)
    return rounds[max(rounds)].get(objective)


def write_trials(request: Request, outcomes: Collection[Outcome], confirmed: Mapping[int, Scores] = NONE_YET) -> None:
    """Writes the table of trials. One that is there stays until a trial has a score.

    So a search in which every run fails, as it does where the data are missing, takes away no table that is there.
    """
    if any(outcome.scores for outcome in outcomes) or not request.output.exists():
        write_table(request.output, *tabulate(request, outcomes, confirmed))


def tabulate(
    request: Request, outcomes: Collection[Outcome], confirmed: Mapping[int, Scores]
) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of the table of trials: settings, score of each seed, their mean if all are there.

    What became of a trial, and the scores of the best on further seeds, have columns only where they are asked for.
    """
    names = list_names(outcome.settings for outcome in outcomes)
    columns = ["trial", *names, *name_scores(request.objective, request.seeds), MEAN]
    if request.is_adaptive:
        columns += [STATE, PRUNED_ROUND, PRUNED_VALUE]
    if request.confirm_seeds:
        columns += [*name_scores(request.objective, request.confirm_seeds), CONFIRMED_MEAN]
    rows = []
    for outcome in outcomes:
        row = [str(outcome.number), *(outcome.settings.get(name, "") for name in names)]
        row += _format_scores(outcome.scores, request.seeds)
        if request.is_adaptive:
            round_num, value = outcome.pruned or ("", None)
            row += [outcome.state, str(round_num), _format(value)]
        if request.confirm_seeds:
            row += _format_scores(confirmed.get(outcome.number, {}), request.confirm_seeds)
        rows.append(row)
    return columns, rows


def _format_scores(scores: Scores, seeds: Sequence[str]) -> list[str]:
    """The score of each seed, and their mean if all are there."""
    found = [scores.get(seed) for seed in seeds]
    return [*map(_format, found), _format(None if None in found else compute_mean(found))]


def _format(score: float | None) -> str:
    return "" if score is None else f"{score:.6g}"


def name_seeds(seeds: Sequence[str]) -> str:
    """The words "the seed 100", or "the seeds 100, 101"."""
    return f"the seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)}"


def rank(outcomes: Iterable[Outcome], sign: int = 1) -> list[Outcome]:
    """The complete trials, the best mean first, of equal ones the first; of equal settings one alone.

    `sign` is 1 if a larger mean is better, -1 if a lower one is.
    """
    found: dict[tuple, Outcome] = {}
    for each in sorted(
        (each for each in outcomes if each.mean is not None), key=lambda each: (-sign * each.mean, each.number)
    ):
        found.setdefault(tuple(each.settings.items()), each)
    return list(found.values())


def find_best(
    request: Request, outcomes: Iterable[Outcome], confirmed: Mapping[int, Scores]
) -> tuple[Outcome, float] | None:
    """The first trial with the best mean, and that: on the further seeds if there are any, else on those searched.

    None if no trial has all its scores.
    """
    ranked = rank(outcomes, request.sign)
    if not request.confirm_seeds:
        return (ranked[0], ranked[0].mean) if ranked else None
    means = [
        (each, compute_mean(confirmed[each.number].values()))
        for each in ranked
        if len(confirmed.get(each.number, ())) == len(request.confirm_seeds)
    ]
    return max(means, key=lambda pair: request.sign * pair[1], default=None)


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
    algorithm = request.experiment.algorithm
    # With an experiment, trials may be shorter than what is reported.
    given = request.arguments if request.is_plain else request.fixed
    fixed = _leave_out("\n".join(given), best.settings, algorithm)
    body = _leave_out(request.experiment.read(), [*best.settings, *map(get_flag, given)], algorithm)
    body, fixed = ([], [*body, *fixed]) if request.is_plain else (body, fixed)
    parts = [wrap_comment(head)]
    if body:
        # Flags that stand under no heading of the experiment's get one.
        parts.append(body if body[0].startswith("#") else [*wrap_comment(f"Ours: as {name} has them."), *body])
    if fixed:
        parts.append([*wrap_comment("Ours: as they were given to launch.tune."), *fixed])
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
    others = [line for line in lines if read_name(get_flag(line), algorithm) not in left_out]
    blocks = "\n".join(others).split("\n\n")
    with_flags = [block.strip("\n") for block in blocks if any(line.startswith("-") for line in block.splitlines())]
    return "\n\n".join(with_flags).splitlines()
