"""Searches with Optuna, with a stand-in for training: the same trials again, also after a kill. `make test-tune`."""

import csv
import importlib.util
import json
import pathlib

import pytest

from launch import tune
from launch.runs.errors import RunFolderError
from launch.settings.flags import FlagError
from launch.settings.run_config import flag_values
from launch.sweeps.held_journal import hold_journal
from launch.sweeps.recipes import find_recipe
from launch.sweeps.tuning.request import parse_request
from launch.sweeps.tuning.study import JOURNAL, Study
from launch.sweeps.tuning.trials import State, find_best

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("optuna") is None, reason="Optuna is not installed (make test-tune installs it apart)"
)
ROOT = pathlib.Path(__file__).parents[2]
NAME = "fedavg_mnist_alpha0.1"
SEARCH = "learning_rate=log(0.001,1);epochs=int(1,8);optimizer=sgd|adam"
ROUNDS = 4


def arguments(folder, *more, search=SEARCH, trials=16):
    return [
        *(f"--experiment=fedsikd/{NAME}", f"--search={search}", f"--runs_dir={folder / 'runs'}"),
        *(f"--rounds={ROUNDS}", f"--trials={trials}", "--seeds=100,101", "--sampler=tpe", *more),
    ]


def score(config, round_num):
    """Grows with the rounds; best at a rate of 0.03 and 5 epochs."""
    import math

    training = config.algorithm.training
    distance = abs(math.log10(training.learning_rate / 0.03)) + 0.1 * abs(training.epochs - 5)
    return round_num / (1 + round_num) - 0.1 * distance + 0.0001 * config.seed


class Trainer:
    """Stands in for an engine: a run advances by a round each time it is asked whether it has ended.

    Attributes:
      rounds: how many were trained, by the run's folder below runs_dir.
      kill_after: of rounds over all runs, after which the whole command is killed.
    """

    keeps_logs = False

    def __init__(self, slots=1, kill_after=None, fails=lambda config: False):
        self.slots, self.kill_after, self._fails = slots, kill_after, fails
        self.rounds = {}

    def __call__(self, tasks, jobs):
        self.expected = len(tasks)
        return self

    def start(self, task, slot):
        return TrainerRun(self, task, self._fails(task.config))

    def close(self):
        pass


class Killed(BaseException):
    """What comes between two statements, as SIGKILL does: nothing handles it."""


class TrainerRun:
    def __init__(self, trainer, task, fails):
        self._trainer, self._task, self._fails = trainer, task, fails
        self._exit_code = None
        task.run_dir.mkdir(parents=True, exist_ok=True)
        flags = {name: value for name, value in flag_values(task.config).items() if name != "run_dir"}
        (task.run_dir / "config.json").write_text(json.dumps({"flags": flags}))

    def read_output(self):
        return []

    def poll(self):
        if self._exit_code is None:
            self._train()
        return self._exit_code

    def _train(self):
        task, trainer = self._task, self._trainer
        if self._fails:
            self._exit_code = 1
            return
        table = task.run_dir / "metrics.csv"
        rows = table.read_text().splitlines() if table.exists() else ["round,validation_accuracy"]
        if len(rows) <= ROUNDS:
            rows.append(f"{len(rows)},{score(task.config, len(rows))}")
            table.write_text("\n".join(rows) + "\n")
            name = "/".join(task.run_dir.parts[-2:])
            trainer.rounds[name] = trainer.rounds.get(name, 0) + 1
            if sum(trainer.rounds.values()) == trainer.kill_after:
                raise Killed
        if len(rows) > ROUNDS:
            (task.run_dir / "summary.json").write_text(json.dumps({"rounds": ROUNDS}))
            self._exit_code = 0

    def interrupt(self):
        self._exit_code = 130

    def kill(self):
        self._exit_code = -9


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr("launch.sweeps.pool.POLL_S", 0)


def search(folder, *more, trainer=None, **fields):
    trainer = Trainer() if trainer is None else trainer
    return tune.search(parse_request(arguments(folder, *more, **fields)), trainer), trainer


def read_table(folder):
    return (folder / "runs" / NAME / "trials.csv").read_bytes()


def read_rows(folder):
    return list(csv.DictReader(read_table(folder).decode().splitlines()))


def test_a_search_finds_what_is_good_and_is_the_same_again(tmp_path):
    searched, trainer = search(tmp_path / "a", trials=25)
    assert trainer.expected == 25 * 2 and all(each.state is State.COMPLETE for each in searched.outcomes)
    best, mean = find_best(parse_request(arguments(tmp_path / "a")), searched.outcomes, {})
    assert 0.003 < float(best.settings["learning_rate"]) < 0.3
    assert mean == max(each.mean for each in searched.outcomes)
    first_half, second_half = (
        [each.mean for each in part] for part in (searched.outcomes[:10], searched.outcomes[15:])
    )
    # The first ten are drawn at random: TPE begins to learn after them.
    assert sum(second_half) / 10 > sum(first_half) / 10, "it learns"
    search(tmp_path / "b", trials=25)
    assert read_table(tmp_path / "a") == read_table(tmp_path / "b")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The table of a search of 13 trials with pruning that nothing disturbs, and how many rounds it trains."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("launch.sweeps.pool.POLL_S", 0)
        _, trainer = search(folder, "--pruner=median", trials=13)
    return read_table(folder), sum(trainer.rounds.values())


@pytest.mark.parametrize("rounds", [3, 8, 40, -1])
def test_wherever_it_is_killed_it_ends_with_the_same_trials(tmp_path, whole, rounds):
    """In the first run, after the last round of the first trial, where runs are pruned, at the end."""
    table, total = whole
    rounds %= total
    with pytest.raises(Killed):
        search(tmp_path, "--pruner=median", trials=13, trainer=Trainer(kill_after=rounds))
    _, rest = search(tmp_path, "--pruner=median", trials=13)
    assert read_table(tmp_path) == table and sum(rest.rounds.values()) <= total - rounds


@pytest.mark.parametrize("method", ["ask", "tell"])
@pytest.mark.parametrize("is_done", [False, True])
def test_killed_beside_a_record_of_the_journal_it_ends_with_the_same_trials(
    tmp_path, whole, monkeypatch, method, is_done
):
    """Before or after a trial is asked for, or what came of it is kept: the twelfth, no random one."""
    write, calls = getattr(Study, method), []

    def write_and_die(study, *arguments):
        calls.append(method)
        if len(calls) == 12 and not is_done:
            raise Killed
        result = write(study, *arguments)
        if len(calls) == 12:
            raise Killed
        return result

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Study, method, write_and_die)
        search(tmp_path, "--pruner=median", trials=13)
    search(tmp_path, "--pruner=median", trials=13)
    assert read_table(tmp_path) == whole[0]


def test_the_first_trial_has_the_settings_of_the_flagfile_if_they_are_searched(tmp_path):
    searched, _ = search(tmp_path / "a", search="learning_rate=log(1e-5,1);epochs=int(1,9)", trials=2)
    request = parse_request(arguments(tmp_path))
    config = request.experiment.resolve(request.arguments)
    first, second = (each.settings for each in searched.outcomes)
    training = config.algorithm.training
    assert first == {"learning_rate": str(training.learning_rate), "epochs": str(training.epochs)}
    assert second != first
    outside, _ = search(tmp_path / "b", search="learning_rate=log(0.5,1);epochs=int(1,9)", trials=1)
    assert float(outside.outcomes[0].settings["learning_rate"]) >= 0.5


def test_what_is_finished_is_not_made_again_and_more_trials_go_on(tmp_path):
    search(tmp_path, trials=6)
    (again, trainer), before = search(tmp_path, trials=6), read_rows(tmp_path)
    assert trainer.rounds == {} and len(again.outcomes) == 6
    searched, trainer = search(tmp_path, trials=8)
    assert read_rows(tmp_path)[:6] == before and len(searched.outcomes) == 8 and len(trainer.rounds) == 2 * 2
    fewer, _ = search(tmp_path, trials=5)
    assert [each.number for each in fewer.outcomes] == [1, 2, 3, 4, 5]


def test_runs_below_the_median_are_stopped_and_marked(tmp_path):
    searched, trainer = search(tmp_path, "--pruner=median", "--first_pruning_round=2", trials=20)
    states = [each.state for each in searched.outcomes]
    assert states[:5] == [State.COMPLETE] * 5 and State.PRUNED in states
    for row, outcome in zip(read_rows(tmp_path), searched.outcomes, strict=True):
        folder = tmp_path / "runs" / NAME / f"trial_{outcome.number}"
        assert row["state"] == outcome.state
        if outcome.state is State.COMPLETE:
            assert row["pruned_after_round"] == "" and not list(folder.rglob("pruned.json"))
            continue
        earlier = [each for each in searched.outcomes[: outcome.number - 1] if each.state is State.COMPLETE]
        round_num, value = outcome.pruned
        assert round_num in (2, 3) and trainer.rounds[f"trial_{outcome.number}/seed_100"] == round_num
        values = sorted(each.curves["100"][round_num] for each in earlier)
        middle = len(values) // 2
        median = (values[middle] + values[~middle]) / 2
        assert value < median and row["mean"] == "" and float(row["value_then"]) == pytest.approx(value, abs=1e-6)
        mark = json.loads((folder / "seed_100" / "pruned.json").read_text())
        assert (mark["round_num"], mark["value"], mark["median"]) == (round_num, value, pytest.approx(median))
        assert not (folder / "seed_101").exists(), "its other seed was not begun"
    best, _ = find_best(parse_request(arguments(tmp_path)), searched.outcomes, {})
    assert best.mean == max(each.mean for each in searched.outcomes if each.state is State.COMPLETE)


def test_several_at_a_time_make_all_trials_and_prune_both_seeds(tmp_path):
    searched, trainer = search(tmp_path, "--pruner=median", trials=20, trainer=Trainer(slots=4))
    assert [each.number for each in searched.outcomes] == list(range(1, 21))
    assert all(each.state in (State.COMPLETE, State.PRUNED) for each in searched.outcomes)
    assert any(each.state is State.PRUNED for each in searched.outcomes)
    assert sum(trainer.rounds.values()) < 20 * 2 * ROUNDS


def test_settings_that_come_again_are_not_trained_again(tmp_path, capsys):
    searched, trainer = search(tmp_path, search="epochs=int(1,3)", trials=8)
    assert len(trainer.rounds) == 3 * 2 and len({each.mean for each in searched.outcomes}) == 3
    assert capsys.readouterr().out.count("and so its result") == 5
    assert len(read_rows(tmp_path)) == 8


def test_settings_that_training_would_refuse_are_a_trial_without_runs(tmp_path):
    """A flag that does nothing with another one's value is refused where it is given."""
    space = "quantize=none|qat;qat_start_round=int(1,3)"
    searched, trainer = search(tmp_path, search=space, trials=6)
    for each in searched.outcomes:
        is_refused = each.settings["quantize"] == "none"
        assert each.state is (State.REFUSED if is_refused else State.COMPLETE)
        assert (f"trial_{each.number}/seed_100" in trainer.rounds) <= (not is_refused)
    assert {each.state for each in searched.outcomes} == {State.REFUSED, State.COMPLETE}


def test_a_run_that_fails_is_tried_again_by_the_same_command(tmp_path):
    fails = Trainer(fails=lambda config: config.algorithm.training.optimizer == "sgd")
    searched, _ = search(tmp_path, trainer=fails, trials=6)
    failed = [each.number for each in searched.outcomes if each.state is State.OPEN]
    assert failed and len(searched.failures) == 2 * len(failed)
    again, trainer = search(tmp_path, trials=6)
    assert again.failures == [] and len(trainer.rounds) == 2 * len(failed)
    assert all(each.state is State.COMPLETE for each in again.outcomes)


def test_another_search_in_the_same_folder_is_refused(tmp_path):
    search(tmp_path, trials=1)
    for more, fields, named in (
        ((), {"search": "epochs=int(1,3)"}, "--search learning_rate=log"),
        (("--seeds=100",), {}, "--seeds 100,101, not 100"),
        (("--pruner=median",), {}, "--pruner none from round 1, not median from round 1"),
        (("--objective=client_validation_accuracy",), {}, "--objective validation_accuracy, not client_"),
        (("--rounds=5",), {}, "--rounds 4, not 5"),
    ):
        with pytest.raises(RunFolderError, match="choose another --runs_dir") as refused:
            search(tmp_path, *more, **fields)
        assert named in str(refused.value) and "\n" not in str(refused.value)
    own = tmp_path / "elsewhere" / f"{NAME}.flags"
    own.parent.mkdir()
    own.write_text(find_recipe(NAME).read().replace("--batch_size=64", "--batch_size=32"))
    with pytest.raises(RunFolderError, match="--batch_size=64, not 32"):
        tune.search(parse_request([*arguments(tmp_path), f"--experiment={own}"]), Trainer())


def test_two_commands_do_not_search_in_one_folder(tmp_path):
    held = hold_journal(tmp_path / "runs" / NAME, JOURNAL, "search")
    with held, pytest.raises(RunFolderError, match="a search goes on there"):
        search(tmp_path, trials=1)


def test_a_journal_is_read_whatever_a_crash_has_left_of_its_last_line(tmp_path):
    search(tmp_path, trials=3)
    before = read_table(tmp_path)
    journal = tmp_path / "runs" / NAME / "optuna.journal"
    journal.write_bytes(journal.read_bytes() + b'{"op_code": 4, "wor')
    search(tmp_path, trials=3)
    assert read_table(tmp_path) == before
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([lines[0], b"nonsense\n", *lines[1:]]))
    with pytest.raises(RunFolderError, match="damaged; move it away"):
        search(tmp_path, trials=3)


def test_a_range_beyond_that_of_the_flag_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(FlagError, match="--epochs=0: expected an integer at least 1"):
        search(tmp_path, search="epochs=int(0,4)")
    assert not list(tmp_path.rglob("*.journal")) and not list(tmp_path.rglob("*.csv"))


def test_plots_and_the_flagfile_of_the_best_are_written(tmp_path, capsys, monkeypatch):
    # Nothing is trained, and nothing loaded.
    monkeypatch.setattr(tune, "check_validation", lambda request: request)
    monkeypatch.setattr(tune.search, "__defaults__", (Trainer(),))
    assert tune.main(arguments(tmp_path, "--pruner=median", "--confirm_seeds=200", "--confirm_trials=2")) == 0
    folder = tmp_path / "runs" / NAME
    from PIL import Image

    for name in ("history.png", "importance.png"):
        with Image.open(folder / name) as image:
            assert image.format == "PNG" and min(image.size) > 100
    printed = capsys.readouterr().out
    assert "16 trials chosen by TPE (" in printed and "interval over the seed 200\n" in printed
    assert "log(0.001,1.0)" in (folder / f"{NAME}_tuned.flags").read_text()
    drawn = (folder / "importance.png").read_bytes()
    assert tune.main(arguments(tmp_path, "--pruner=median", "--confirm_seeds=200", "--confirm_trials=2")) == 0
    assert (folder / "importance.png").read_bytes() == drawn
