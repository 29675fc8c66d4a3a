"""Starts the program that speaks to a tracker, with an order: which runs, and what each of them is.

MLflow and W&B of today do not fit beside TensorFlow Federated. So `sender.py` runs in another Python, reads the run
folders itself, and needs nothing more of this process. Imports no TensorFlow.
"""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from datasets.options import is_users_own
from launch.console.temporary_folder import find_shared_folder
from launch.runs.columns import SOURCE_DIGEST, TRACKING
from launch.runs.run_folder import keep_inside
from launch.runs.run_records import RunRecordError, find_stored_idle, read_settings
from launch.settings.flags import FlagError
from launch.settings.resuming import CHANGEABLE_ON_RESUME, MEANS_OF_COMPUTING, PLACES, REQUESTS

SENDER = pathlib.Path(__file__).with_name("sender.py")
ENVIRONMENT = pathlib.Path(__file__).resolve().parents[3] / ".venv-track"
PYTHON_VARIABLE = "FL_TRACK_PYTHON"
PARTS = ("seed_", "trial_")  # how the folders inside an experiment's are called
SIZES = "num_"  # how the sizes of the data begin in config.json


def find_python(flag: str) -> str:
    """The Python that has the trackers: what FL_TRACK_PYTHON names, or that of `.venv-track`.

    Raises:
      FlagError: there is none; it names the flag that asks for one.
    """
    if named := os.environ.get(PYTHON_VARIABLE):
        if (program := shutil.which(named)) is None:
            raise FlagError(f"{PYTHON_VARIABLE}={named}: no such program; expected a Python that has MLflow or W&B")
        return program
    if not (ENVIRONMENT / "setup_done").exists():
        raise FlagError(
            f"{flag}: {ENVIRONMENT.name} is not set up; make it with: make setup-track, or let {PYTHON_VARIABLE} name "
            "a Python that has the tracker"
        )
    return str(ENVIRONMENT / "bin" / "python")


def start_sender(
    python: str, tracker: str, runs: Sequence[Mapping], follow: bool, models: bool, again: str, **options: Any
) -> subprocess.Popen:
    """Starts to send runs.

    Args:
      python: what has the tracker.
      tracker: "mlflow" or "wandb".
      runs: what `describe_run` says of them.
      follow: whether runs that go on are followed until they end.
      models: whether models are sent, too.
      again: what to do after a failure, in words that end the sender's error.
      options: of `subprocess.Popen`.

    Raises:
      OSError: a run folder cannot be written, or the program cannot be started.
    """
    for run in runs:
        pathlib.Path(run["path"], TRACKING).mkdir(exist_ok=True)
    # A pipe would have to be fed by a process that waits, and this one may train meanwhile.
    with tempfile.TemporaryFile("w+") as file:
        json.dump({"tracker": tracker, "follow": follow, "models": models, "again": again, "runs": runs}, file)
        file.seek(0)
        environment = {**os.environ, "TMPDIR": str(find_shared_folder())}  # our own goes with us
        return subprocess.Popen([python, "-I", str(SENDER)], stdin=file, env=environment, **options)


def describe_run(run_dir: pathlib.Path) -> dict[str, Any]:
    """What the run in a folder is.

    Returns:
      path: the folder, in full.
      name: its name, with that of its experiment.
      group: the same for runs that differ in nothing but the seed: a readable start, and a digest of the other flags.
      params: the flags that have a value and do something in this run, but for those that say how it was started.
      tags: what else is known of it, as text.

    Raises:
      FlagError: there is no run, its config is damaged, or a file is not as the run left it when it ended.
      RunFolderError: something in its folder is a link, which would be written through, or whose target would be sent.
    """
    keep_inside(run_dir)
    try:
        settings = read_settings(run_dir)
    except RunRecordError as error:
        raise FlagError(str(error)) from None
    flags, data, revision = settings.flags, settings.data, settings.revision
    path = run_dir.absolute()
    first = next(i for i, part in enumerate(reversed(path.parts), 1) if not part.startswith(PARTS))
    parts = path.parts[-first:]
    tags = {
        "algo": settings.algorithm.name,
        "dataset": data.get("dataset") or flags.get("dataset", ""),
        "seed": flags["seed"],
        "run_dir": path,
        "git_revision": revision,
        "mlflow.source.git.commit": revision.removesuffix("-dirty"),
        **{f"data.{name}": value for name, value in data.items() if name.startswith(SIZES)},
    }
    same = {"seed"} | CHANGEABLE_ON_RESUME | MEANS_OF_COMPUTING
    kept = sorted((name, value) for name, value in flags.items() if name not in same)
    kept += sorted(settings.modules.items())  # a user's own code and, whatever the seed, data
    if is_users_own(str(flags.get("dataset"))) and (source := settings.digests.get(SOURCE_DIGEST)):
        kept.append((SOURCE_DIGEST, source))
    digest = hashlib.sha256(json.dumps(kept).encode()).hexdigest()[:6]
    start = parts[0] if len(parts) > 1 else f"{tags['algo']}_{tags['dataset']}"
    skipped = PLACES | REQUESTS | find_stored_idle(flags)
    return {
        "path": str(path),
        "name": "/".join(parts),
        "group": f"{start}_{digest}",
        "params": {name: value for name, value in flags.items() if name not in skipped and value not in ("", None)},
        "tags": {name: str(value) for name, value in tags.items() if value != ""},
    }
