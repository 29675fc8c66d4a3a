"""`python -m reproductions.contests.run --problems=har --equal=seconds` runs the league's contests on some problems.

Each goes into `<runs_dir>/<equal>/<problem>`, a folder of runs with its journal. Whatever is finished stays, so that
the same command goes on where it was stopped.

Exit codes: 0 done, 1 a contest cannot be run, 2 the request was wrong, 130 stopped by Ctrl-C, 143 by SIGTERM.
"""

import dataclasses
import pathlib
from collections.abc import Sequence

from launch.command_line import format_command_help, list_fields, parse_flags, run_main
from launch.console.progress import format_duration, say
from launch.console.shown_text import format_count
from launch.console.stop_signals import as_stop_after_signal, get_stop_code, leave
from launch.contests.contest import run_contest
from launch.contests.plan import NO_LIMIT_S
from launch.pages.comparison.seed_statistics import compute_mean
from launch.runs.errors import RunStopped
from launch.settings.errors import FlagError
from launch.sweeps.jobs import JobsFlags
from reproductions.contests.contests import EQUAL, build_chooser, build_contest, collect_judged, title_methods
from reproductions.contests.experiments import TABLE
from reproductions.contests.keeping import ARCHIVE, keep_runs, keep_trials
from reproductions.contests.predictions import PREDICTIONS
from reproductions.contests.problems import PROBLEMS
from tff_algos.settings.config_fields import setting, texts

USAGE = "python -m reproductions.contests.run [--problems=<name>,...] [--equal=seconds|bytes|rounds] [--flag=value ...]"


@dataclasses.dataclass(frozen=True)
class Flags(JobsFlags):
    """The flags of this command."""

    problems: tuple[str, ...] = texts((), "Which problems; by default all.")
    equal: str = setting("seconds", "What all methods may have as much of as FedAvg.", choices=tuple(EQUAL))
    runs_dir: str = setting("runs/league", "Folder for the contests.")
    keep: bool = setting(False, "Keep the trials and the runs of each contest in docs/results when it has ended.")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (by default this program's) and returns the exit code."""
    return run_main(_run, lambda: format_command_help(USAGE, list_fields(Flags)), argv)


def _run(arguments: Sequence[str]) -> int:
    values = parse_flags(Flags, arguments)
    there = [name for name in PROBLEMS if name in PREDICTIONS[values.equal]]
    if unknown := [name for name in values.problems if name not in there]:
        raise FlagError(f"--problems={','.join(values.problems)}: {unknown[0]}: expected some of {', '.join(there)}")
    try:
        with as_stop_after_signal():
            for name in values.problems or there:
                _compete(name, values)
    except KeyboardInterrupt as error:
        raise RunStopped("stopped; the same command goes on", get_stop_code(error)) from None
    return 0


def _compete(name: str, values: Flags) -> None:
    """Runs a contest, or what is left of it, and says where its methods ended."""
    say(f"problem  {name}, at equal {values.equal}")
    league = build_contest(name)
    outcome = run_contest(
        league.problem,
        league.methods,
        pathlib.Path(values.runs_dir) / values.equal / name,
        seconds=NO_LIMIT_S,
        jobs=values.jobs,
        always=[method.name for method in league.methods],
        plan=league.plan,
        equal=EQUAL[values.equal],
        limits_alone=True,
        choose_more=build_chooser(league, values.equal),
    )
    titles, reached = title_methods(outcome), collect_judged(outcome, league)
    means = {name: compute_mean(values.values()) for name, values in reached.items()}
    for each in sorted(means, key=means.get, reverse=True):
        say(f"         {titles[each]}: {means[each]:.4f}, mean of {format_count(len(reached[each]), 'seed')}")
    if values.keep:
        keep_trials(outcome, values.equal, TABLE)
        keep_runs(outcome, values.equal, ARCHIVE)
    say(f"done     {name}, in {format_duration(outcome.seconds)}")


if __name__ == "__main__":
    leave(main())
