"""`python -m launch.advise my.csv --minutes=30` says whether to federate these data, and with what.

It looks at the data as `launch.inspect` does, prints what it will try and what not, and why; tries methods with several
settings each, chosen on validation examples, and runs the few that are left on fresh seeds. It ends with five
sentences, a page and the commands that come next, and keeps to its minutes. The same command goes on where it was
stopped. Its runs are ordinary run folders, below `<runs_dir>/<data>`.

Exit codes: 0 there is advice, 1 it failed or the minutes were too few for any advice, 2 the request was wrong, 130
stopped by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP.
"""

import pathlib
import shlex
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from launch.advice.candidates import ALWAYS, Chosen, choose_methods, describe_left_out, name_as_chosen
from launch.advice.inspection import describe_facts, look_at
from launch.advice.request import COMMON, PROGRAM, USAGE, Flags, Request, parse_request
from launch.command_line import run_command
from launch.console.progress import say
from launch.console.stop_signals import as_stop_after_signal, get_stop_code, leave
from launch.contests.contest import Entered, Outcome, run_contest
from launch.contests.problem import Problem
from launch.runs.errors import RunStopped
from launch.runs.run_folder import name_data

if TYPE_CHECKING:
    from launch.advice.trivial import Row

PAGE, JSON = "advice.html", "advice.json"
# Of the minutes, for the page and for what it needs of the data of further seeds.
RESERVED_SHARE, MOST_RESERVED_S = 0.03, 60.0
INDENT = " " * len("advice   ")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    return run_command(_run, "advise", USAGE, Flags, argv, common=COMMON)


def _run(arguments: Sequence[str]) -> int:
    start_s = time.monotonic()
    request = parse_request(arguments)
    flags, facts = look_at(request.given)
    chosen = choose_methods(facts, request.methods, request.has_pooled)
    for line in (*describe_facts(facts), *describe_left_out(chosen)):
        say(line)
    problem = Problem(name_data(facts.config), tuple(f"--{name}={value}" for name, value in flags.items()), facts.task)
    # What is reached without a model, by seed: read for the contest, and for the advice.
    rows: dict[int, Mapping[str, Row]] = {}
    try:
        with as_stop_after_signal():
            outcome = _contest(request, problem, chosen, time.monotonic() - start_s, rows)
    except KeyboardInterrupt as error:
        again = f"stopped; go on with: {PROGRAM} {shlex.join(arguments)}"
        raise RunStopped(again, get_stop_code(error)) from None
    return 0 if request.is_plan_alone else _advise(outcome, request.runs_dir / problem.name, rows, facts.notes)


def _contest(
    request: Request, problem: Problem, chosen: Chosen, spent_s: float, rows: dict[int, Mapping[str, "Row"]]
) -> Outcome:
    """The contest, with the methods that were not to enter it among those that did not."""
    # Here, since a request that is wrong has no need of it.
    from launch.advice.verdict import build_chooser

    reserved_s = min(RESERVED_SHARE * request.seconds, MOST_RESERVED_S)
    outcome = run_contest(
        problem,
        chosen.methods,
        request.runs_dir / problem.name,
        seconds=request.seconds - reserved_s,
        reserved_s=reserved_s,
        jobs=request.jobs,
        always=[method.name for method in chosen.methods if method.name in ALWAYS],
        rounds=request.rounds,
        choose_more=build_chooser(rows),
        spent_s=spent_s,
        plan_only=request.is_plan_alone,
    )
    entered = (each._replace(method=name_as_chosen(each.method, each.chosen)) for each in outcome.entered)
    left_out = (Entered(method, why_out=reason) for method, reason in chosen.left_out)
    return outcome._replace(entered=(*entered, *left_out))


def _advise(
    outcome: Outcome, folder: pathlib.Path, rows: dict[int, Mapping[str, "Row"]], notes: tuple[str, ...]
) -> int:
    """Judges, and writes and says what follows; returns the exit code."""
    from launch.advice.commands import list_commands
    from launch.advice.facts import write_facts
    from launch.advice.page import write_page
    from launch.advice.sentences import say_advice
    from launch.advice.verdict import judge

    advice = judge(outcome, rows, notes)
    write_page(advice, folder / PAGE)
    write_facts(advice, folder / JSON)
    _say("advice", say_advice(advice))
    _say("page", [f"{folder / PAGE}; the same for programs: {folder / JSON}"])
    _say("next", [f"{what}:\n{INDENT}  {command}" for what, command in list_commands(advice)])
    return 0 if advice.decision.comparisons else 1


def _say(name: str, lines: Sequence[str]) -> None:
    """Prints lines below each other, the name before the first."""
    for number, line in enumerate(lines):
        say(f"{'' if number else name:{len(INDENT)}}{line}")


if __name__ == "__main__":
    leave(main())
