"""`python -m launch.advise my.csv --minutes=30` says whether to federate these data, and with what.

It looks at the data as `launch.inspect` does, prints what it will try and what not, and why; tries methods with several
settings each, chosen on validation examples, and runs the few that are left on fresh seeds. It ends with five
sentences, a page and the commands that come next, and keeps to its minutes. The same command goes on where it was
stopped. Its runs are ordinary run folders, below `<runs_dir>/<data>`.

Exit codes: 0 there is advice, 1 it failed, 2 the request was wrong, 130 stopped by Ctrl-C, 143 by SIGTERM, 129 by
SIGHUP.
"""

import shlex
import time
from collections.abc import Sequence

from launch.advice.candidates import ALWAYS, choose_methods, describe_choice
from launch.advice.inspection import describe_facts, look_at
from launch.advice.request import COMMON, PROGRAM, USAGE, Flags, parse_request
from launch.command_line import run_command
from launch.console.progress import say
from launch.console.stop_signals import as_stop_after_signal, get_stop_code, leave
from launch.contests.contest import run_contest
from launch.contests.problem import Problem
from launch.runs.errors import RunStopped
from launch.runs.run_folder import name_data


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    return run_command(_run, "advise", USAGE, Flags, argv, common=COMMON)


def _run(arguments: Sequence[str]) -> None:
    start_s = time.monotonic()
    request = parse_request(arguments)
    flags, facts = look_at(request.given)
    chosen = choose_methods(facts, request.methods, request.has_pooled)
    for line in (*describe_facts(facts), *describe_choice(chosen)):
        say(line)
    if request.is_plan_alone:
        return
    problem = Problem(name_data(facts.config), tuple(f"--{name}={value}" for name, value in flags.items()), facts.task)
    try:
        with as_stop_after_signal():
            outcome = run_contest(
                problem,
                chosen.methods,
                request.runs_dir / problem.name,
                seconds=request.seconds,
                jobs=request.jobs,
                always=[method.name for method in chosen.methods if method.name in ALWAYS],
                rounds=request.rounds,
                spent_s=time.monotonic() - start_s,
            )
    except KeyboardInterrupt as error:
        again = f"stopped; go on with: {PROGRAM} {shlex.join(arguments)}"
        raise RunStopped(again, get_stop_code(error)) from None
    print(outcome)


if __name__ == "__main__":
    leave(main())
