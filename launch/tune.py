"""`python -m launch.tune --experiment=a.flags --search='x=1|2;y=log(1e-4,1e-1)'` tries settings on validation splits.

Each trial is trained with every seed, in `<runs_dir>/<experiment>/trial_<number>/seed_<seed>`, and scored by a
validation accuracy after its last round, as the mean over the seeds. Where `--search` has choices alone, the trials are
drawn at random from their grid, none twice, each flag with two values at least. Ranges, `--pruner=median` and
`--sampler=tpe` leave it to Optuna, which learns from the trials before. `--output` is a table of all trials, written
anew after each run. Finished runs are skipped and interrupted ones resumed, so the same command goes on where it was
stopped. `--confirm_seeds` scores the best trials on seeds that were not searched. The flagfile of the best lies beside
the runs, as do the plots of Optuna's.

`--experiment` takes a flagfile or an experiment of a paper. Keep what is asked for in a file and give it as
`--flagfile`: so the search space is written down before the first trial. Those of the papers lie in `searches.py`,
beside their experiments; `--search=fedsikd/fedavg_mnist_alpha0.1` takes all flags of one.

Exit codes: 0 all trials are scored, 1 some runs failed, 2 the request was wrong, 130 stopped by Ctrl-C, 143 by SIGTERM,
129 by SIGHUP.
"""

import contextlib
import shlex
import sys
from collections.abc import Sequence
from typing import NamedTuple

from datasets.errors import DatasetError
from datasets.partitioners import MINIMUM_EXAMPLES_TO_SPLIT
from launch.command_line import run_command
from launch.console.progress import say
from launch.console.stop_signals import as_stop_after_signal, get_stop_code, leave
from launch.runs.errors import RunStopped
from launch.runs.task_columns import find_task_columns
from launch.settings.flags import FlagError
from launch.sweeps.jobs import open_engine
from launch.sweeps.present_data import PresentData
from launch.sweeps.tuning.adaptive_search import open_study, run_adaptive_search
from launch.sweeps.tuning.request import Flags, Request, parse_request
from launch.sweeps.tuning.scored_runs import (
    OpenEngine,
    ScoresOfTrials,
    build_tasks,
    compute_grid_size,
    confirm_best,
    run_grid_search,
)
from launch.sweeps.tuning.search_plots import HISTORY_PLOT, IMPORTANCE_PLOT, draw_history, draw_importance
from launch.sweeps.tuning.search_space import format_settings
from launch.sweeps.tuning.study import check_installed, hold_folder
from launch.sweeps.tuning.trials import (
    Outcome,
    State,
    build_task,
    find_best,
    name_seeds,
    write_best_flagfile,
    write_trials,
)

PROGRAM = "python -m launch.tune"
# Of its flags, those that --help shows.
COMMON = ("experiment", "search", "seeds", "trials", "objective", "rounds", "runs_dir", "jobs")
BEST_FLAGFILE = "best.flags"


class Searched(NamedTuple):
    """What a search gave: the trials, the scores of the best on further seeds, and a line for each run that failed."""

    outcomes: list[Outcome]
    confirmed: ScoresOfTrials
    failures: list[str]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    usage = f"{PROGRAM} --experiment=<file or name> --search='a=1|2;b=log(1e-4,1e-1)' [--flag=value ...]"
    return run_command(_run, "tune", usage, Flags, argv, common=COMMON)


def _run(arguments: Sequence[str]) -> int:
    request = parse_request(arguments)._replace(present=PresentData())
    if request.is_adaptive:
        check_installed()
    check_validation(request)
    try:
        with as_stop_after_signal():
            searched = search(request)
    except KeyboardInterrupt as error:
        again = f"stopped; go on with: {PROGRAM} {shlex.join(arguments)}"
        raise RunStopped(again, get_stop_code(error)) from None
    best = find_best(request, searched.outcomes, searched.confirmed)
    if best is not None:
        _say_best(request, searched, *best)
    if searched.failures:
        print(f"{len(searched.failures)} runs failed:", *searched.failures, sep="\n  ", file=sys.stderr)
    elif best is None:
        print(f"no trial has a {request.objective}; do the clients have validation examples?", file=sys.stderr)
    return 1 if searched.failures or best is None else 0


def check_validation(request: Request) -> None:
    """Loads the data of a new search's first trial, to find at once whether it could be scored.

    Raises:
      FlagError: settings that `launch.train` would refuse.
      DatasetError: the data cannot be read, or give no client an example to validate on.
    """
    # It was looked at when the search began.
    if request.folder.exists():
        return
    from launch.training.federation import load_federated_data
    from launch.training.run_needs import check_needs

    tasks = [build_task(request, 0, {}, request.seeds[0])] if request.is_adaptive else build_tasks(request).values()
    config = next(iter(tasks)).config
    check_needs(config)
    data = load_federated_data(config)
    task = find_task_columns(data.format.labels.task)
    if request.objective not in (task.validation, task.client_validation):
        raise FlagError(
            f"--objective={request.objective}: the task of {request.experiment.shown} is {task.kind.title}; expected "
            f"{task.validation} or {task.client_validation}"
        )
    if not any(client.num_validation for client in data.everyone):
        raise DatasetError(
            f"{request.experiment.shown}: its clients have no validation examples, by which trials are scored; give "
            f"--validation_fraction and clients of at least {MINIMUM_EXAMPLES_TO_SPLIT} examples"
        )


def search(request: Request, open_engine: OpenEngine = open_engine) -> Searched:
    """Makes the trials that are left and scores the best of them on further seeds, if there are any.

    Raises:
      FlagError: settings that `launch.train` would refuse.
      RunFolderError: the folder of the search is that of another one, or in use.
    """
    with contextlib.ExitStack() as stack:
        if request.is_adaptive:
            stack.enter_context(hold_folder(request.folder))
            study = open_study(request)
            outcomes, failures = run_adaptive_search(request, open_engine, study)
            draw_history(request.folder / HISTORY_PLOT, outcomes, request.objective, request.sign)
            if importance := study.compute_importance():
                draw_importance(request.folder / IMPORTANCE_PLOT, importance, request.objective)
        else:
            outcomes, failures = run_grid_search(request, open_engine)
        confirmed: dict = {}

        def keep(scores: ScoresOfTrials) -> None:
            confirmed.update(scores)
            write_trials(request, outcomes, confirmed)

        return Searched(outcomes, confirmed, failures + confirm_best(request, outcomes, open_engine, keep))


def _say_best(request: Request, searched: Searched, best: Outcome, score: float) -> None:
    path = request.folder / BEST_FLAGFILE
    described = _describe_trials(request, searched.outcomes)
    confirmed_mean = score if request.confirm_seeds else None
    write_best_flagfile(path, request, best, confirmed_mean, described)
    of_seeds = f"{best.mean:.4f}, the mean over {name_seeds(request.seeds)}"
    if confirmed_mean is not None:
        of_seeds += f"; {score:.4f} over {name_seeds(request.confirm_seeds)}, not searched before"
    say(f"best     trial {best.number}: {request.objective} {of_seeds}; {described} are in {request.output}")
    print(*format_settings(best.settings), sep="\n")
    used = ", ".join((*request.seeds, *request.confirm_seeds))
    say(
        f"next     {path} has these lines in a copy of {request.experiment.shown}; report it on other seeds than {used}"
    )


def _describe_trials(request: Request, outcomes: Sequence[Outcome]) -> str:
    """How many trials there were, and what chose them."""
    count = len(outcomes)
    if not request.is_adaptive:
        size = compute_grid_size(request.space)
        return f"{'all' if count == size else f'{count} of the {size}'} points of the grid"
    counts = {state: sum(outcome.state is state for outcome in outcomes) for state in (State.PRUNED, State.REFUSED)}
    parts = ", ".join(f"{number} {state}" for state, number in counts.items() if number)
    return f"{count} trials chosen by TPE{parts and f' ({parts})'}"


if __name__ == "__main__":
    leave(main())
