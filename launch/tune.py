"""`python -m launch.tune --algo=fedavg --data=my.csv --search='learning_rate=0.01|0.03|0.1'` tries settings.

Each trial is trained with every seed, in `<runs_dir>/<algorithm>_<data>/trial_<number>/seed_<seed>`, and scored by
validation examples after its last round, as the mean over the seeds. Flags of `launch.train` go to every run; several
algorithms, as `--algo=fedavg,ditto`, are tuned one after the other, each on what `--search` has of its settings, or
without it on the list of what matters in its paper, with as many trials. Where `--search` has choices alone, the trials
are drawn at random from their grid, none twice, each flag with two values at least; with ranges, they lie evenly
between these. The first are the same for any `--trials`. Trial 0 has the settings that were given, unless the search
holds them, too. `--pruner=median` and `--sampler=tpe` leave the choice to Optuna, which learns from the trials before.
`--output` is a table of all trials, written anew after each run. Finished runs are skipped and interrupted ones
resumed, so the same command goes on where it was stopped. `--confirm_seeds` scores the best trials on seeds that were
not searched. The flagfile of the best lies beside the runs, as do the plots of Optuna's.

`--experiment=<file or name>` in the place of `--algo` starts from a flagfile or an experiment of a paper, whose
settings count unless a flag beside it says something else. Keep what is asked for in a file and give it as
`--flagfile`: so the search space is written down before the first trial. Those of the papers lie in `searches.py`,
beside their experiments; `--search=fedsikd/fedavg_mnist_alpha0.1` takes all flags of one.

Exit codes: 0 all trials are scored, 1 some runs failed, 2 the request was wrong, 130 stopped by Ctrl-C, 143 by SIGTERM,
129 by SIGHUP.
"""

import contextlib
import functools
import shlex
import sys
from collections.abc import Sequence
from typing import NamedTuple

from datasets.errors import DatasetError
from datasets.partitioners import MINIMUM_EXAMPLES_TO_SPLIT
from launch.command_line import run_command
from launch.console.progress import say
from launch.console.shown_text import format_count
from launch.console.stop_signals import as_stop_after_signal, get_stop_code, leave
from launch.runs.errors import RunStopped
from launch.runs.task_columns import find_task_columns
from launch.settings.flags import FlagError
from launch.sweeps.held_journal import hold_journal
from launch.sweeps.jobs import open_engine
from launch.sweeps.present_data import PresentData
from launch.sweeps.tuning.adaptive_search import open_study, run_adaptive_search
from launch.sweeps.tuning.answer import MOST_ROWS, name_flagfile, say_best, say_next
from launch.sweeps.tuning.request import EVEN, Flags, Request, check_output, parse_requests
from launch.sweeps.tuning.scored_runs import (
    OpenEngine,
    ScoresOfTrials,
    build_tasks,
    compute_grid_size,
    confirm_best,
    run_grid_search,
)
from launch.sweeps.tuning.search_plots import HISTORY_PLOT, IMPORTANCE_PLOT, draw_history, draw_importance
from launch.sweeps.tuning.search_space import format_search
from launch.sweeps.tuning.study import JOURNAL, check_installed
from launch.sweeps.tuning.trials import (
    Outcome,
    State,
    build_task,
    find_best,
    write_best_flagfile,
    write_trials,
)

PROGRAM = "python -m launch.tune"
# Of its flags, those that --help shows.
COMMON = ("algo", "experiment", "search", "seeds", "trials", "objective", "rounds", "runs_dir", "jobs")

# The runs' own output would bury what is said of the trials.
OPEN_ENGINE = functools.partial(open_engine, keeps_logs=True)


class Searched(NamedTuple):
    """What a search gave: the trials, the scores of the best on further seeds, and a line for each run that failed."""

    outcomes: list[Outcome]
    confirmed: ScoresOfTrials
    failures: list[str]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    usage = (
        f"{PROGRAM} --algo=<algorithms>|--experiment=<file or name> --search='a=1|2;b=log(1e-4,1e-1)' "
        "[--flag=value ...] [--flag of train ...]"
    )
    return run_command(_run, "tune", usage, Flags, argv, common=COMMON)


def _run(arguments: Sequence[str]) -> int:
    requests = [each._replace(present=PresentData()) for each in parse_requests(arguments)]
    if any(request.is_adaptive for request in requests):
        check_installed()
    # All of them before the first is trained.
    requests = [check_validation(request) for request in requests]
    try:
        with as_stop_after_signal():
            searches = [(request, _search_aloud(request, is_one_of_many=len(requests) > 1)) for request in requests]
    except KeyboardInterrupt as error:
        again = f"stopped; go on with: {PROGRAM} {shlex.join(arguments)}"
        raise RunStopped(again, get_stop_code(error)) from None
    found = []
    for request, searched in searches:
        if best := find_best(request, searched.outcomes, searched.confirmed):
            found.append(request)
            _say_best(request, searched, *best, most_rows=max(MOST_ROWS // len(requests), 1))
    if found:
        say_next(found)
    failures = [failure for _, searched in searches for failure in searched.failures]
    if failures:
        print(f"{format_count(len(failures), 'run')} failed:", *failures, sep="\n  ", file=sys.stderr)
    for request in (each for each, searched in searches if each not in found and not searched.failures):
        name = request.experiment.name
        print(f"{name}: no trial has a {request.objective}; do the clients have validation examples?", file=sys.stderr)
    return 1 if failures or len(found) < len(requests) else 0


def _search_aloud(request: Request, is_one_of_many: bool) -> Searched:
    if is_one_of_many or request.is_own_list:
        of = f" of {format_search(request.space)}" if request.is_own_list else ""
        say(f"search   {request.experiment.name}: {format_count(request.num_trials, 'trial')}{of}")
    return search(request)


def check_validation(request: Request) -> Request:
    """Loads the data of a search that is new or has no objective, to find at once whether it can be scored.

    Returns:
      The request with its objective: if none was asked for, the clients' own main metric.

    Raises:
      FlagError: settings that `launch.train` would refuse.
      DatasetError: the data cannot be read, or give no client an example to validate on.
    """
    tasks = [build_task(request, 0, {}, request.seeds[0])] if request.is_adaptive else build_tasks(request).values()
    # The data were looked at when the search began.
    if request.folder.exists() and request.objective:
        return request
    from launch.training.federation import load_federated_data
    from launch.training.run_needs import check_needs

    config = next(iter(tasks)).config
    check_needs(config)
    data = load_federated_data(config)
    task = find_task_columns(data.format.labels.task)
    if not request.objective:
        request = request._replace(objective=task.client_validation)
        check_output(request)
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
    return request


def search(request: Request, open_engine: OpenEngine = OPEN_ENGINE) -> Searched:
    """Makes the trials that are left and scores the best of them on further seeds, if there are any.

    Raises:
      FlagError: settings that `launch.train` would refuse.
      RunFolderError: the folder of the search is that of another one, or in use.
    """
    with contextlib.ExitStack() as stack:
        if request.is_adaptive:
            stack.enter_context(hold_journal(request.folder, JOURNAL, "search"))
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


def _say_best(request: Request, searched: Searched, best: Outcome, score: float, most_rows: int) -> None:
    described = _describe_trials(request, searched.outcomes)
    confirmed_mean = score if request.confirm_seeds else None
    write_best_flagfile(name_flagfile(request), request, best, confirmed_mean, described)
    say_best(request, searched.outcomes, searched.confirmed, best, described, most_rows)


def _describe_trials(request: Request, outcomes: Sequence[Outcome]) -> str:
    """How many trials there were, and what chose them."""
    # Trial 0 is none of the grid's.
    count = sum(outcome.number > 0 for outcome in outcomes)
    if request.sampler == EVEN:
        return f"{format_count(count, 'trial')} whose settings lie evenly"
    if not request.is_adaptive:
        size = compute_grid_size(request.space)
        return f"{'all' if count == size else f'{count} of the'} {format_count(size, 'point')} of the grid"
    counts = {state: sum(outcome.state is state for outcome in outcomes) for state in (State.PRUNED, State.REFUSED)}
    parts = ", ".join(f"{number} {state}" for state, number in counts.items() if number)
    return f"{format_count(count, 'trial')} chosen by TPE{parts and f' ({parts})'}"


if __name__ == "__main__":
    leave(main())
