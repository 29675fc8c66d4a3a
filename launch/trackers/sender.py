"""Sends runs to MLflow or W&B. It runs in `.venv-track`, which has them, and imports nothing of this project.

Started by `sender_process`, never by hand. A line on standard input is a request, a JSON object whose `do` is "open",
"rounds" or "close" and whose `key` names the run; each is answered by a line, an object that holds `error` if the
request failed. What the libraries print goes to standard error.
"""

import contextlib
import csv
import fcntl
import glob
import json
import os
import re
import shlex
import shutil
import sys
import traceback
import uuid

PROJECT = "federated-suite"  # the experiment or project, unless the request or the tracker's own variable names one
SHORT_TAGS = ("algo", "dataset", "seed")  # by which W&B filters; all of them are in its config
SOURCE_TAGS = {"mlflow.source.name": "launch.train", "mlflow.source.type": "LOCAL"}
SQLITE = "sqlite:///"
BATCH = 1000  # metrics that MLflow takes at once
LONGEST_VALUE = 6000  # characters of a parameter in MLflow
LONGEST_ERROR = 200


class MlflowRun:
    """A run in MLflow; the tracking URI is that of the variables MLFLOW_..., or MLflow's default."""

    def __init__(self, request):
        import mlflow

        self._mlflow = mlflow
        uri = mlflow.get_tracking_uri()
        project = request["project"] or os.environ.get("MLFLOW_EXPERIMENT_NAME") or PROJECT
        with alone_at(uri):
            self._client = mlflow.MlflowClient()
            experiment_id = self._find_experiment(project)
        self.destination = f"{hide_password(uri)} {project}"
        run = self._find_run(request["known"].get(self.destination))
        if run is None:
            run = self._client.create_run(experiment_id, request["start_ms"], run_name=request["name"])
        self.run_id = run.info.run_id
        self._client.update_run(self.run_id, status="RUNNING")
        self._log_settings(request, run.data.params)
        history = self._client.get_metric_history(self.run_id, name_metric(request["witness"]))
        self.last_round = max((metric.step for metric in history), default=0)
        self.title = f"MLflow experiment {project} at {hide_password(uri)}"
        if uri.startswith("http"):
            place = f"{hide_password(uri)}/#/experiments/{experiment_id}/runs/{self.run_id}"
            self.where = f"{place}?workflowType=machine_learning"  # or it opens among the pages for language models
        else:
            self.where = f"{name_program('mlflow')} ui --backend-store-uri {hide_password(uri)}"

    def _find_experiment(self, project):
        if (experiment := self._client.get_experiment_by_name(project)) is not None:
            return experiment.experiment_id
        try:
            return self._client.create_experiment(project)
        except self._mlflow.exceptions.MlflowException:  # another sender was quicker
            if (experiment := self._client.get_experiment_by_name(project)) is None:
                raise
            return experiment.experiment_id

    def _find_run(self, run_id):
        """The run that was sent before; None if there is none, or it was deleted there."""
        if run_id is None:
            return None
        try:
            run = self._client.get_run(run_id)
        except self._mlflow.exceptions.MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            return None
        return run if run.info.lifecycle_stage == "active" else None

    def _log_settings(self, request, known):
        """A parameter can be set once; what a resumed run has changed since, such as its rounds, becomes a tag."""
        values = {name: str(value)[:LONGEST_VALUE] for name, value in request["params"].items()}
        changed = {f"changed.{name}": value for name, value in values.items() if known.get(name, value) != value}
        tags = {**request["tags"], "group": request["group"], **SOURCE_TAGS, **changed}
        if commit := tags.get("git_revision"):
            tags["mlflow.source.git.commit"] = commit.removesuffix("-dirty")
        tags = [self._mlflow.entities.RunTag(name, value) for name, value in tags.items()]
        params = [self._mlflow.entities.Param(name, value) for name, value in values.items() if name not in known]
        for start in range(0, len(params), 100):
            self._client.log_batch(self.run_id, params=params[start : start + 100])
        self._client.log_batch(self.run_id, tags=tags)

    def send_rounds(self, rounds):
        batch = []
        for round_num, time_ms, values in rounds:
            metrics = self._build_metrics(values, time_ms, round_num)
            if batch and len(batch) + len(metrics) > BATCH:
                self._client.log_batch(self.run_id, metrics=batch)
                batch = []
            batch += metrics
        self._send_batch(batch)

    def _build_metrics(self, values, time_ms, step):
        return [self._mlflow.entities.Metric(name_metric(name), value, time_ms, step) for name, value in values.items()]

    def _send_batch(self, metrics):
        for start in range(0, len(metrics), BATCH):
            self._client.log_batch(self.run_id, metrics=metrics[start : start + BATCH])

    def close(self, request):
        values = {name: value for name, value in request["summary"].items() if is_new(name)}
        self._send_batch(self._build_metrics(values, request["end_ms"], request["last_round"]))
        for name, path in existing(request["files"]):
            self._client.log_artifact(self.run_id, path, os.path.dirname(name) or None)
        if request["status"] != "going_on":
            status = "FINISHED" if request["status"] == "finished" else "KILLED"
            self._client.set_terminated(self.run_id, status, request["end_ms"])

    def abandon(self):
        """Nothing: what was sent is there."""


class WandbRun:
    """A run in W&B; the variables WANDB_... say where, and whether offline."""

    def __init__(self, request):
        import wandb

        self._wandb = wandb
        project = request["project"] or os.environ.get("WANDB_PROJECT") or PROJECT
        base = wandb.setup().settings.base_url
        self.destination = f"{hide_password(base)} {os.environ.get('WANDB_ENTITY', '')}/{project}"
        self.run_id = request["known"].get(self.destination) or uuid.uuid4().hex[:12]
        # The program here is no training: its load, its output and its code say nothing of the run.
        settings = wandb.Settings(
            console="off",
            silent=True,
            disable_git=True,
            save_code=False,
            init_timeout=30,
            x_disable_stats=True,
            x_save_requirements=False,
            x_disable_meta=True,
        )
        self._run = wandb.init(
            project=project,
            id=self.run_id,
            resume="allow",
            reinit="create_new",
            name=request["name"],
            group=request["group"],
            tags=[f"{name}: {value}"[:64] for name, value in request["tags"].items() if name in SHORT_TAGS],
            settings=settings,
        )
        self._run.config.update({**request["params"], **request["tags"]}, allow_val_change=True)
        self.title = f"W&B project {project}" + (", offline" if self._run.offline else f" at {hide_password(base)}")
        self.last_round = max(self._run.step - 1, 0)
        self._sent_up_to = 0
        folder = os.path.dirname(self._run.dir)
        self.where = f"{name_program('wandb')} sync {os.path.relpath(folder)}" if self._run.offline else self._run.url

    def send_rounds(self, rounds):
        for round_num, time_ms, values in rounds:
            self._run.log({**values, "_timestamp": time_ms / 1000}, step=round_num)
            self._sent_up_to = round_num

    def close(self, request):
        files = dict(existing(request["files"]))
        if self._sent_up_to:  # a row of the past takes nothing more, and a row of its own would be one a call
            self._run.log(self._build_media(files, request["tables"]), step=self._sent_up_to)
        self._run.summary.update({f"summary/{name}": value for name, value in request["summary"].items()})
        artifact = self._wandb.Artifact(f"run-{self.run_id}", "run-folder")
        for name, path in files.items():
            artifact.add_file(path, name=name)
        self._run.log_artifact(artifact)
        self._run.finish(exit_code=0 if request["status"] != "stopped" else 1)
        if self._run.offline:
            self._remove_earlier()

    def _build_media(self, files, tables):
        media = {}
        for name, path in files.items():
            if name.endswith(".png"):
                media[name.removesuffix(".png")] = self._wandb.Image(path)
            elif name.endswith(".html"):
                with open(path, encoding="utf-8") as page:
                    media[name.removesuffix(".html")] = self._wandb.Html(page.read(), inject=False)
            elif name in tables:
                with open(path, newline="", encoding="utf-8") as table:
                    columns, *rows = list(csv.reader(table))
                media[name.removesuffix(".csv")] = self._wandb.Table(columns=columns, data=rows)
        return media

    def _remove_earlier(self):
        """What earlier calls wrote offline of the same run, unless it was synced: this call has written all of it."""
        own = os.path.dirname(self._run.dir)
        for folder in glob.glob(os.path.join(glob.escape(os.path.dirname(own)), f"offline-run-*-{self.run_id}")):
            if folder != own and not glob.glob(os.path.join(glob.escape(folder), "*.synced")):
                shutil.rmtree(folder, ignore_errors=True)

    def abandon(self):
        self._run.finish()


TRACKERS = {"mlflow": MlflowRun, "wandb": WandbRun}


@contextlib.contextmanager
def alone_at(uri):
    """Inside, no other sender is here too: two that make the tables of a database file disturb each other."""
    folder = os.path.dirname(uri.removeprefix(SQLITE)) or "."
    if not uri.startswith(SQLITE) or not os.path.isdir(folder):
        yield
        return
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def name_metric(name):
    """What MLflow calls a metric: with the characters that it takes; seconds and memory go to its system metrics."""
    return re.sub(r"[^/\w.\- :]", "_", re.sub("^timing/", "system/", name), flags=re.ASCII)


def is_new(name):
    """Whether a number of summary.json says what the last round does not: MLflow draws a chart for each."""
    return "." in name and not name.startswith("final.")


def hide_password(uri):
    """An address without the user and password that may stand in it."""
    return re.sub(r"://[^/@]*@", "://", uri)


def name_program(name):
    """How to type a program that is beside this Python."""
    return shlex.quote(os.path.join(os.path.dirname(sys.executable), name))


def existing(files):
    """(name, path) of the files that are there: a run that is resumed or replaced may remove some."""
    return [(name, path) for name, path in files.items() if os.path.isfile(path)]


def answer(request, tracker, runs):
    """Does what a request asks for, and returns what to say."""
    key = request["key"]
    if request["do"] == "open":
        run = runs[key] = tracker(request)
        return {name: getattr(run, name) for name in ("destination", "run_id", "title", "where", "last_round")}
    if request["do"] == "rounds":
        runs[key].send_rounds(request["rounds"])
    else:
        runs.pop(key).close(request)
    return {}


def describe(error):
    """An error in one short line."""
    return hide_password(" ".join(f"{type(error).__name__}: {error}".split()))[:LONGEST_ERROR]


def main():
    """Answers requests until standard input ends."""
    requests, replies = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # a library that wants to ask somebody finds nobody
    os.dup2(2, 1)
    tracker, runs = TRACKERS[sys.argv[1]], {}
    for line in requests:
        try:
            reply = answer(json.loads(line), tracker, runs)
        except Exception as error:
            print(hide_password(traceback.format_exc()), file=sys.stderr, flush=True)
            reply = {"error": describe(error)}
        print(json.dumps(reply), file=replies, flush=True)
    for run in runs.values():
        run.abandon()


if __name__ == "__main__":
    main()
