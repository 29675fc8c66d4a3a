"""Shows that a change leaves the numbers of every algorithm as they were: `compare_revisions.py --revision=<before>`.

Every setting of `settings.py` is run at that revision, in a temporary `git worktree`, and then by the files that lie
here, committed or not. Both do it on this machine, one after another, with `launch.sweep`, which forks each
`launch.train` from a process that has imported TensorFlow; `--jobs=2` runs two settings at a time, each on its cores.

`metrics.csv`, `clients.csv`, `events.csv` and `fine_tuning.csv` must have the same bytes. Of the last checkpoints it is
only said whether they hold the same numbers: they have all the digits, and their layout may change.

With `--resume`, what the revision before has run is also gone on with for two rounds, once by it and once from here.

The revision before is run by this environment, too, which it may be too old for, or too new. So that each is run by its
own, `--before_environment=<folder>` names another, such as the `.venv` of a checkout of that revision.

`--keep_reference=<folder>` keeps the runs of the revision before, and takes those that are there already.

Exit codes: 0 the same bytes, 1 a difference, or a run failed, 2 the request is wrong, 130 stopped by Ctrl-C.
"""

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

# Run as a script, this file has no other way to the packages of the project.
sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

import numpy as np
from settings import BROKEN_CLIENT, DATA_FOLDER, MORE_ROUNDS, ROUNDS, SETTINGS

from launch.benchmarks.peer_process import THREAD_VARIABLES
from launch.console.progress import format_duration, say
from launch.console.stop_signals import get_stop_code, stop_on_signals
from launch.runtimes.processor import count_cores, name_processor

PROJECT_FOLDER = pathlib.Path(__file__).resolve().parents[2]
TABLES = ("metrics.csv", "clients.csv", "events.csv", "fine_tuning.csv")
# As the sweep calls it.
RUN = "seed_0"
# The last file of a finished run.
SUMMARY = "summary.json"
WRONG_REQUEST = 2
# Characters of a line that differs.
MOST_SHOWN = 160
# What changes how a program starts. The user's would not reach both trees alike.
VARIABLES = (*THREAD_VARIABLES, "PYTHONPATH", "PYTHONSAFEPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")


class Checkout(NamedTuple):
    """A revision's files, the folder of its runs, how many of them go on at a time, each on its cores, and by what."""

    name: str
    tree: pathlib.Path
    folder: pathlib.Path
    jobs: int = 1
    python: str = sys.executable


class CheckError(Exception):
    """Nothing can be compared. The message is one line."""


def run_git(*arguments: str) -> str:
    """What git says. Raises CheckError if it fails."""
    ended = subprocess.run(["git", *arguments], cwd=PROJECT_FOLDER, capture_output=True, encoding="utf-8")
    if ended.returncode:
        raise CheckError(f"git {' '.join(arguments)}: {ended.stderr.strip().splitlines()[-1]}")
    return ended.stdout.strip()


def resolve_revision(revision: str) -> str:
    """The full hash of the commit that a revision names. Raises CheckError if there is none of that name."""
    return run_git("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")


@contextlib.contextmanager
def check_out(commit: str) -> Iterator[pathlib.Path]:
    """A folder with the files of a commit, a temporary worktree. Raises CheckError if git cannot make it."""
    with tempfile.TemporaryDirectory(prefix="revision_") as folder:
        tree = pathlib.Path(folder) / "tree"
        # Hooks of a checkout may install or test something, which is not wanted here.
        run_git("-c", "core.hooksPath=/dev/null", "worktree", "add", "--detach", str(tree), commit)
        try:
            yield tree
        finally:
            run_git("worktree", "remove", "--force", str(tree))


def write_broken_client(path: pathlib.Path) -> None:
    """A file for `--dataset=npz`: 4 clients of 40 examples, (160, 6) float32 in 3 classes, one with huge features."""
    generator = np.random.default_rng(0)
    y = generator.integers(0, 3, 160)
    x = (y[:, None] + generator.normal(0, 0.5, (160, 6))).astype(np.float32)
    client = np.repeat(np.arange(4), 40)
    x[client == 2] *= np.float32(1e36)
    np.savez(path, x=x, y=y, client=client)


def prepare(folder: pathlib.Path, names: Sequence[str]) -> None:
    """Writes the settings' flagfiles and data into a folder; removes what was run there with another flagfile."""
    flagfiles = folder / "flagfiles"
    flagfiles.mkdir(parents=True, exist_ok=True)
    if not (folder / BROKEN_CLIENT).exists():
        write_broken_client(folder / BROKEN_CLIENT)
    for name in names:
        path = flagfiles / f"{name}.flags"
        text = "\n".join(SETTINGS[name]).replace(DATA_FOLDER, str(folder))
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            for runs in ("runs", "resumed"):
                shutil.rmtree(folder / runs / name, ignore_errors=True)
            path.write_text(text, encoding="utf-8")


def find_unfinished(runs: pathlib.Path, names: Sequence[str], rounds: int) -> list[str]:
    """The settings without a run of so many rounds; one that spent its budget of privacy before is finished, too."""

    def is_finished(name: str) -> bool:
        try:
            summary = json.loads((runs / name / RUN / SUMMARY).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return summary["rounds"] >= rounds or bool(summary.get("budget_spent"))

    return [name for name in names if not is_finished(name)]


def sweep(checkout: Checkout, flagfiles: pathlib.Path, names: Sequence[str], runs: str, rounds: int) -> None:
    """Runs settings with a revision's files; a run that fails leaves no summary.

    Raises:
      CheckError: the revision refuses a setting, so that nothing was run.
    """
    paths = ",".join(str(flagfiles / f"{name}.flags") for name in names)
    command = [
        "-m",
        "launch.sweep",
        f"--flagfiles={paths}",
        f"--runs_dir={checkout.folder / runs}",
        f"--rounds={rounds}",
    ]
    # Earlier revisions call the flag otherwise.
    flag = "client_dir" if (checkout.tree / "datasets" / "client_files.py").exists() else "shard_dir"
    own = [f"--jobs={checkout.jobs}", "--", f"--{flag}={checkout.folder / 'shards'}"]
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    log = checkout.folder / f"{runs}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    say(f"{checkout.name}: {len(names)} {runs}, what they print goes to {log}")
    start_s = time.perf_counter()
    with open(log, "a", encoding="utf-8") as output:
        ended = subprocess.run(
            [checkout.python, *command, *own],
            cwd=checkout.tree,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    if ended.returncode not in (0, 1):
        raise CheckError(f"{checkout.name}: {log.read_text(encoding='utf-8').strip().splitlines()[-1]}")
    say(f"{checkout.name}: done in {format_duration(time.perf_counter() - start_s)}")


def resume(checkout: Checkout, started: pathlib.Path, flagfiles: pathlib.Path, names: Sequence[str]) -> None:
    """Goes on with copies of the runs in `started`, which stay as they are."""
    for name in find_unfinished(checkout.folder / "resumed", names, MORE_ROUNDS):
        shutil.rmtree(checkout.folder / "resumed" / name, ignore_errors=True)
        if (started / name).exists():
            shutil.copytree(started / name, checkout.folder / "resumed" / name)
    sweep(checkout, flagfiles, names, "resumed", MORE_ROUNDS)


def run_all(checkout: Checkout, before: pathlib.Path, names: Sequence[str], resumes: bool) -> None:
    """Runs what is missing in a checkout's folder; with `resumes`, goes on with those of `before` as well."""
    flagfiles = before / "flagfiles"
    if missing := find_unfinished(checkout.folder / "runs", names, ROUNDS):
        sweep(checkout, flagfiles, missing, "runs", ROUNDS)
    if resumes and (missing := find_unfinished(checkout.folder / "resumed", names, MORE_ROUNDS)):
        resume(checkout, before / "runs", flagfiles, missing)


def find_difference(before: pathlib.Path, here: pathlib.Path) -> str:
    """In which line of which table two run folders differ first, and how; "" if their tables have the same bytes."""
    if not (before / TABLES[0]).exists() and not (here / TABLES[0]).exists():
        return "neither revision could run it"
    for name in TABLES:
        contents = [(folder / name).read_bytes() if (folder / name).exists() else None for folder in (before, here)]
        if contents[0] == contents[1]:
            continue
        if None in contents:
            return f"{name} is missing {'here' if contents[1] is None else 'at the revision before'}"
        pairs = itertools.zip_longest(*(content.decode("utf-8", "replace").split("\n") for content in contents))
        number, (old, new) = next((number, pair) for number, pair in enumerate(pairs, 1) if pair[0] != pair[1])
        shown = ["no such line" if line is None else line[:MOST_SHOWN] for line in (old, new)]
        return f"{name}, line {number}:\n    before  {shown[0]}\n    here    {shown[1]}"
    return ""


def list_arrays(run: pathlib.Path) -> list[np.ndarray]:
    """What the last checkpoint of a run holds, in order; empty if there is none."""
    paths = sorted((run / "checkpoints").glob("round_*.npz"), key=lambda path: int(path.stem.removeprefix("round_")))
    if not paths:
        return []
    with np.load(paths[-1]) as stored:
        return [stored[key] for key in stored.files]


def describe_checkpoints(before: pathlib.Path, here: pathlib.Path) -> str:
    """Whether the last checkpoints of two run folders hold the same numbers, bit by bit."""
    old, new = list_arrays(before), list_arrays(here)
    if len(old) != len(new):
        return f"checkpoints hold {len(old)} and {len(new)} arrays"
    pairs = zip(old, new, strict=True)
    # By bytes, since NaN is not equal to itself and -0 is to 0.
    same = [a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs]
    return "checkpoint too" if all(same) else f"{same.count(False)} of {len(same)} arrays of the checkpoints differ"


def compare(before: pathlib.Path, here: pathlib.Path, names: Sequence[str]) -> Iterator[str]:
    """Says for every setting whether its two runs have the same bytes; yields the names of those that differ."""
    for name in names:
        runs = before / name / RUN, here / name / RUN
        difference = find_difference(*runs)
        said = f"DIFFERENT, {difference}" if difference else f"same, {describe_checkpoints(*runs)}"
        say(f"{name}: {said}")
        if difference:
            yield name


def describe_machine() -> dict[str, str | int]:
    """What the last bits of a sum may depend on."""
    return {"processor": name_processor(), "cores": count_cores()}


def find_python(environment: str) -> str:
    """The Python of an environment, by its folder; "" is this one. Raises CheckError if there is none."""
    if not environment:
        return sys.executable
    path = pathlib.Path(environment).absolute() / "bin" / "python"
    if not os.access(path, os.X_OK):
        raise CheckError(f"--before_environment={environment}: expected the folder of an environment, with bin/python")
    return str(path)


def claim_reference(folder: pathlib.Path, commit: str, environment: str) -> None:
    """Says in a folder of whose runs it is, or looks whether they are of this commit, environment and machine.

    Raises:
      CheckError: they are not.
    """
    path, wanted = folder / "reference.json", {"commit": commit, "environment": environment, **describe_machine()}
    if path.exists():
        found = {"environment": "", **json.loads(path.read_text(encoding="utf-8"))}
        other = [f"{key} {found.get(key)!r}, not {value!r}" for key, value in wanted.items() if found.get(key) != value]
        if other:
            raise CheckError(f"--keep_reference={folder}: it has runs of {'; '.join(other)}; choose another folder")
        return
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(wanted, indent=2), encoding="utf-8")


def choose(only: str) -> list[str]:
    """The settings that are asked for, in their order; a name that ends with * stands for all that begin so."""
    asked = [name.strip() for name in only.split(",") if name.strip()]
    for name in asked:
        if not _find(name):
            raise CheckError(
                f"--only: {name} is no setting; expected names of settings.py, or their beginnings with a *"
            )
    return [name for name in SETTINGS if not asked or any(name in _find(each) for each in asked)]


def _find(pattern: str) -> list[str]:
    if pattern.endswith("*"):
        return [name for name in SETTINGS if name.startswith(pattern[:-1])]
    return [pattern] if pattern in SETTINGS else []


def check(options: argparse.Namespace, folder: pathlib.Path) -> int:
    """Runs and compares what the options ask for; what is kept nowhere else goes into `folder`. The exit code."""
    names, commit = choose(options.only), resolve_revision(options.revision)
    python = find_python(options.before_environment)
    before = pathlib.Path(options.keep_reference or folder / "before").absolute()
    claim_reference(before, commit, options.before_environment)
    prepare(before, names)
    kinds = [("runs", ROUNDS), ("resumed", MORE_ROUNDS)][: 1 + options.resume]
    if any(find_unfinished(before / runs, names, rounds) for runs, rounds in kinds):
        with check_out(commit) as tree:
            run_all(Checkout(commit[:10], tree, before, options.jobs, python), before, names, options.resume)
    if options.only_reference:
        return 0
    here = folder / "here"
    for runs, _ in kinds:
        shutil.rmtree(here / runs, ignore_errors=True)
    run_all(Checkout("here", PROJECT_FOLDER, here, options.jobs), before, names, options.resume)
    different = []
    for runs, _ in kinds:
        say(f"{runs}:")
        different += compare(before / runs, here / runs, names)
    say(
        f"{len(different)} of {len(kinds) * len(names)} differ: {', '.join(different)}" if different else "all the same"
    )
    return 1 if different else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--revision", required=True, help="the revision before, as git names it")
    parser.add_argument("--only", default="", help="settings, with commas between; fedcd* stands for all of FedCD's")
    parser.add_argument("--output", default="", help="folder that keeps the runs; by default they are removed")
    parser.add_argument(
        "--keep_reference", default="", help="folder of the runs of the revision before, made if need be"
    )
    parser.add_argument(
        "--before_environment", default="", help="folder of the environment that runs it; by default this one"
    )
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, each on its share of the cores")
    parser.add_argument("--only_reference", action="store_true", help="make these, and compare nothing")
    parser.add_argument("--resume", action="store_true", help="go on with the runs of the revision before as well")
    options = parser.parse_args(argv)
    try:
        with stop_on_signals(), contextlib.ExitStack() as stack:
            temporary = options.output or stack.enter_context(tempfile.TemporaryDirectory(prefix="same_bytes_"))
            return check(options, pathlib.Path(temporary).absolute())
    except KeyboardInterrupt as error:
        return get_stop_code(error)
    except CheckError as error:
        print(f"error: {error}", file=sys.stderr)
        return WRONG_REQUEST


if __name__ == "__main__":
    sys.exit(main())
