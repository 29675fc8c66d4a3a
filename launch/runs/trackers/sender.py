"""Sends runs to MLflow or W&B. It runs in `.venv-track`, which has them, and imports nothing of this project.

`order.py` starts it, with an order on standard input. It reads the run folders as anybody may. What it says goes to
standard output, an error to standard error, and what the libraries print to a log in the first run's folder.
"""

import contextlib
import csv
import fcntl
import json
import os
import pathlib
import re
import sys
import time
import traceback
import uuid
from typing import NamedTuple

DEFAULTS = {
    "MLFLOW_EXPERIMENT_NAME": "federated-suite",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "WANDB_PROJECT": "federated-suite",
    "WANDB_ERROR_REPORTING": "false",
}
POLL_S, RETRY_S = 1.0, 10.0
GOING_ON, FINISHED, STOPPED = "going on", "finished", "stopped"
LOCK, METRICS, TIMING, SUMMARY, TRACKING = ".lock", "metrics.csv", "timing.csv", "summary.json", "tracking"
FILES = ("*.json", "*.csv", "*.sha256", "*.html", "plots/*.png", "export/**/*", "models/**/*")


class Round(NamedTuple):
    """A round's numbers, and when it ended, in milliseconds since 1970, as far as the tables tell."""

    number: int
    time_ms: int
    values: dict[str, float]


def find_state(path):
    """Whether a run goes on, has all its rounds, or was stopped before: it holds a lock as long as it goes on."""
    try:
        with open(path / LOCK, "rb") as lock:
            # Shared, so that two senders that look at once do not take each other for the run.
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return GOING_ON
    except FileNotFoundError:  # copied from elsewhere
        pass
    return FINISHED if read_summary(path).get("rounds") == len(read_table(path / METRICS)) else STOPPED


def read_rounds(path):
    """The rounds of a run that are done; the numbers of `timing.csv` become "timing/...".

    When one ended is reckoned back from the time of `metrics.csv`, by the seconds of the later ones.
    """
    rows, timing, rounds = read_table(path / METRICS), read_table(path / TIMING), []
    time_s = os.path.getmtime(path / METRICS) if rows else 0.0
    for number, values in reversed(rows.items()):
        seconds = timing.get(number, {})
        values |= {f"timing/{name}": value for name, value in seconds.items()}
        rounds.insert(0, Round(number, int(1000 * time_s), values))
        time_s -= sum(value for name, value in seconds.items() if name.endswith("_s"))
    return rounds


def read_table(path):
    """The numbers of a table with a row a round, {round: {column: number}}; empty if there is none.

    A last line without its end is left out: it is being written.
    """
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(line for line in file if line.endswith("\n")))
        return {int(row.pop("round")): {name: float(cell) for name, cell in row.items() if cell} for row in rows}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: damaged ({error})") from None


def find_stamp(path):
    """What changes whenever a table grows; None if there is none. Two writes can be of one moment, so the size, too."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_size


def read_summary(path):
    """`summary.json`; empty if the run has none."""
    summary = path / SUMMARY
    return json.loads(summary.read_text(encoding="utf-8")) if summary.exists() else {}


def read_numbers(path):
    """The numbers in the parts of `summary.json`, {"summary/best.test_accuracy": 0.9}."""
    parts = {part: values for part, values in read_summary(path).items() if isinstance(values, dict)}
    numbers = {f"{part}.{name}": value for part, values in parts.items() for name, value in values.items()}
    return {f"summary/{name}": value for name, value in numbers.items() if isinstance(value, int | float)}


def list_files(path, with_models):
    """The files that a tracker keeps, {name in the folder: path}: no checkpoints, logs and event files.

    Nor links: a run folder may come from a stranger, and what lies outside of it is not theirs to have sent.
    """
    found = {file.relative_to(path).as_posix(): str(file) for each in FILES for file in path.glob(each)}
    skipped = r"\.|.*/\." if with_models else r"\.|.*/\.|models/|.*\.tflite$"
    kept = {name: file for name, file in sorted(found.items()) if not re.match(skipped, name)}
    return {name: file for name, file in kept.items() if os.path.isfile(file) and not os.path.islink(file)}


class MlflowRun:
    """A run in MLflow; the variables MLFLOW_... say where.

    Attributes:
      destination: names the place, in the folder's list of places.
      run_id: the run there.
      where: how to look at it.
      last_round: the last one that is there.
    """

    def __init__(self, run, places, rounds):
        import mlflow

        uri = mlflow.get_tracking_uri()
        with contextlib.ExitStack() as stack:
            if uri.startswith("sqlite:"):  # two senders that make the tables of one database disturb each other
                folder = os.open(".", os.O_RDONLY)
                stack.callback(os.close, folder)
                fcntl.flock(folder, fcntl.LOCK_EX)
            experiment = mlflow.set_experiment(os.environ["MLFLOW_EXPERIMENT_NAME"])
        self._entities, self._client = mlflow.entities, mlflow.MlflowClient()
        self.destination = f"{hide_password(uri)} {experiment.name}"
        known = f"attributes.run_id = '{places.get(self.destination, {}).get('run_id', '')}'"
        found = self._client.search_runs([experiment.experiment_id], known)  # not if it was deleted there
        start_ms = rounds[0].time_ms if rounds else int(1000 * time.time())
        sent = found[0] if found else self._client.create_run(experiment.experiment_id, start_ms, run_name=run["name"])
        self.run_id = sent.info.run_id
        self._client.update_run(self.run_id, status="RUNNING")
        params = {name: value for name, value in run["params"].items() if name not in sent.data.params}  # set once
        tags = {**run["tags"], "group": run["group"], "mlflow.source.name": "launch.train"}
        self._client.log_batch(
            self.run_id,
            params=[self._entities.Param(name, str(value)) for name, value in params.items()],
            tags=[self._entities.RunTag(name, value) for name, value in tags.items()],
        )
        witness = [name_metric(next(iter(rounds[0].values)))] if rounds else []  # every round has the first column
        history = [metric for name in witness for metric in self._client.get_metric_history(self.run_id, name)]
        self.last_round = max((metric.step for metric in history), default=0)
        page, program = f"{uri}/#/experiments/{experiment.experiment_id}/runs/{self.run_id}", f"{sys.prefix}/bin/mlflow"
        self.where = hide_password(page if uri.startswith("http") else f"{program} ui --backend-store-uri {uri}")

    def send_rounds(self, rounds):
        # The first column last: where it is, the whole round is.
        metrics = [
            self._entities.Metric(name_metric(name), value, each.time_ms, each.number)
            for each in rounds
            for name, value in reversed(each.values.items())
        ]
        self._client.log_batch(self.run_id, metrics=metrics)

    def close(self, state, last, summary, files):
        """Sends what a run has at its end, or has by now; `last` is its last round."""
        self.send_rounds([last._replace(values=summary)])
        for name, file in files.items():
            self._client.log_artifact(self.run_id, file, os.path.dirname(name) or None)
        if state != GOING_ON:
            self._client.set_terminated(self.run_id, "FINISHED" if state == FINISHED else "KILLED", last.time_ms)

    def abandon(self):
        """Nothing: what was sent is there."""


class WandbRun:
    """The same in W&B; the variables WANDB_... say where, and whether offline."""

    def __init__(self, run, places, rounds):
        import wandb

        self._wandb, base = wandb, hide_password(wandb.setup().settings.base_url)
        self.destination = f"{base} {os.environ.get('WANDB_ENTITY', '')}/{os.environ['WANDB_PROJECT']}"
        self.run_id = places.get(self.destination, {}).get("run_id") or uuid.uuid4().hex[:12]
        # The program here is no training: its load, its output and its code say nothing of the run.
        settings = {"console": "off", "silent": True, "disable_git": True, "save_code": False, "init_timeout": 30}
        settings |= {"x_disable_stats": True, "x_save_requirements": False, "x_disable_meta": True}
        place = {"id": self.run_id, "resume": "allow", "reinit": "create_new", "settings": settings}
        tags = [f"{name}: {run['tags'][name]}"[:64] for name in ("algo", "dataset", "seed")]
        self._run = wandb.init(**place, name=run["name"], group=run["group"], tags=tags)
        self._run.config.update({**run["params"], **run["tags"]}, allow_val_change=True)
        self.last_round, self._has_sent = max(self._run.step - 1, 0), False
        folder = pathlib.Path(self._run.dir).parent
        self.where = f"{sys.prefix}/bin/wandb sync {folder}" if self._run.offline else self._run.url

    def send_rounds(self, rounds):
        for each in rounds:
            self._run.log({**each.values, "_timestamp": each.time_ms / 1000}, step=each.number)
            self._has_sent = True

    def close(self, state, last, summary, files):
        if self._has_sent:  # a row of the past takes nothing more, and a row of its own would be one a call
            pictures = {name: self._wandb.Image(file) for name, file in files.items() if name.endswith(".png")}
            self._run.log(pictures, step=last.number)
        self._run.summary.update(summary)
        artifact = self._wandb.Artifact(f"run-{self.run_id}", "run-folder")
        for name, file in files.items():
            artifact.add_file(file, name=name)
        self._run.log_artifact(artifact)
        self._run.finish(exit_code=int(state == STOPPED))

    def abandon(self):
        with contextlib.suppress(Exception):
            self._wandb.teardown()


TRACKERS = {"mlflow": MlflowRun, "wandb": WandbRun}


class Sending:
    """A run on its way to a tracker. One process at a time holds the file that knows its places there."""

    def __init__(self, run, order):
        self.path = pathlib.Path(run["path"])
        self._run, self._order = run, order
        self._places, self._sent = None, None  # the file, from the first step to the last, and the run in the tracker

    def advance(self, say):
        """Sends what is new, and the files of a run that has ended or is not followed; returns whether that is all."""
        places = self.path / TRACKING / f"{self._order['tracker']}.json"
        if self._places is None:
            self._places = open(places, "a+", encoding="utf-8")  # noqa: SIM115 (until the run is sent)
        # A run that replaces this one has a file of its own under the same name.
        if not places.exists() or not os.path.samestat(places.stat(), os.fstat(self._places.fileno())):
            say(f"note     {self.path}: removed, or replaced by another run; it is not sent any more")
            return True
        state = find_state(self.path)  # first, so that what is read of a run that has ended is all of it
        if self._sent is None:
            self._open(say)
        seen = find_stamp(self.path / METRICS)
        if seen != self._seen:
            rounds = [each for each in read_rounds(self.path) if each.number > self._last.number]
            self._sent.send_rounds(rounds)
            self._last = [self._last, *rounds][-1]
        self._seen = seen
        if state == GOING_ON and self._order["follow"]:
            return False
        summary = read_numbers(self.path) if state == FINISHED else {}
        self._sent.close(state, self._last, summary, list_files(self.path, self._order["models"]))
        self._places.close()
        more = "; --follow would send the rest" if state == GOING_ON else ""
        say(f"sent     {self._run['name']}: {self._last.number} rounds, {state}{more}; look: {self._sent.where}")
        return True

    def _open(self, say):
        try:
            fcntl.flock(self._places, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError(f"another process sends {self.path}") from None
        self._places.seek(0)
        places = json.loads(self._places.read() or "{}")
        rounds = read_rounds(self.path)
        sent = TRACKERS[self._order["tracker"]](self._run, places, rounds)
        places[sent.destination] = {"run_id": sent.run_id, "where": sent.where}
        self._places.truncate(0)
        print(json.dumps(places, indent=2), file=self._places, flush=True)
        before = [each for each in rounds if each.number <= sent.last_round]
        self._sent, self._seen, self._last = sent, (), [Round(0, int(1000 * time.time()), {}), *before][-1]
        say(f"send     {self._run['name']}, from round {sent.last_round + 1}; look: {sent.where}")

    def abandon(self):
        """Lets go of the run in the tracker after a failure; the next step opens it anew."""
        sent, self._sent = self._sent, None
        if sent is not None:
            sent.abandon()


def send_all(order, say):
    """Sends the runs of an order. A tracker that fails while a run that is followed goes on is tried again."""
    runs, said = [Sending(run, order) for run in order["runs"]], ""
    while runs:
        goes_on = order["follow"] and any(find_state(run.path) == GOING_ON for run in runs)
        try:
            for run in list(runs):
                if run.advance(say):
                    runs.remove(run)
            time.sleep(POLL_S if runs else 0)
        except Exception as error:
            if not goes_on:
                raise
            if said != (said := describe(error)):
                say(f"warning  {order['tracker']}: {said}; trying again")
            for run in runs:
                run.abandon()
            time.sleep(RETRY_S)


def name_metric(name):
    """What MLflow calls a metric: with the characters that it takes; seconds and memory go to its system metrics."""
    return re.sub(r"[^/\w.\- :]", "_", re.sub("^timing/", "system/", name), flags=re.ASCII)


def hide_password(text):
    """The text without the user and password that may stand in an address."""
    return re.sub(r"://[^/@\s]*@", "://", text)


def describe(error):
    """An error in one short line."""
    return hide_password(" ".join(f"{type(error).__name__}: {error}".split()))[:200]


def main():
    """Does what the order says, and returns the exit code."""
    order = json.load(sys.stdin)
    out, errors = (os.fdopen(os.dup(number), "w", buffering=1) for number in (1, 2))
    path = pathlib.Path(order["runs"][0]["path"]) / TRACKING / f"{order['tracker']}.log"
    with open(path, "ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    os.environ.update({**DEFAULTS, **os.environ})
    try:
        send_all(order, lambda line: print(line, file=out))
    except Exception as error:
        print(hide_password(traceback.format_exc()), file=sys.stderr)
        print(f"error: {order['tracker']}: {describe(error)}; {order['again']}", file=errors)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
