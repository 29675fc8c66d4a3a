"""What a finished run leaves behind, with a made-up process."""

import dataclasses
import functools
import json
import warnings

import numpy as np
import pytest

from datasets.baselines import MajorityAccuracies
from launch.pages.plots.personal_plots import draw_fine_tuning
from launch.runs.file_names import decode_names, encode_name
from launch.runs.round_table import RoundTable
from launch.runs.run_folder import RunFolder
from launch.runs.run_records import read_columns, read_rows
from launch.runs.tables import write_json
from launch.runs.task_columns import find_task_columns
from launch.settings.own_algorithm import SUMMARY_KEYS
from launch.settings.run_config import build_run_config, flag_values, shared_fields
from launch.training.announcements import find_worth_of_start
from launch.training.evaluation import ClientResults, StateEvaluation, build_evaluator, evaluate_clients
from launch.training.finished_run import read_finished_run
from launch.training.results import (
    build_summary,
    compute_client_statistics,
    compute_relative_change,
    count_undefined,
    describe_majority,
    measure_curve,
    measure_start,
    write_clients,
    write_results,
)
from launch.training.training_run import build_process
from models.saved_models import load_weights
from tff_algos.fed_avg.config import FineTunedConfig
from tff_algos.fed_avg.process import build_fine_tuned_process
from tff_algos.protocol import FederatedProcess
from tff_algos.settings.config_fields import ConfigError
from tff_algos.settings.fine_tuning import FineTuningConfig
from tff_algos.settings.local_training import LocalTrainingConfig

DESCRIBED = {"input_shape": [4], "input_dtype": "float32", "scale": 1.0, "offset": 0.0, "class_names": ["a", "b"]}
ROWS = [
    {"round": 1, "bytes_up": 10, "bytes_down": 20, "virtual_time_s": 1.5, "test_loss": 2.0, "test_accuracy": 0.25},
    {"round": 2, "bytes_up": 10, "bytes_down": 20, "virtual_time_s": 3.0, "test_loss": 1.0, "test_accuracy": 0.75},
    {"round": 3, "bytes_up": 10, "bytes_down": 20, "virtual_time_s": 4.5, "test_loss": 1.5, "test_accuracy": 0.5},
]

TASK = find_task_columns("classification")


@pytest.fixture
def folder(tmp_path):
    made = RunFolder(tmp_path, is_new=True)
    metrics, timing = RoundTable(made.metrics), RoundTable(made.timing)
    for row in ROWS:
        metrics.append({**row, "client_test_accuracy": None, "client_validation_accuracy": None})
        timing.append({"round": row["round"], "round_s": 0.5})
    yield made
    made.close()


def test_summary_of_the_tables(folder):
    config = build_run_config({"algo": "fedavg", "seed": 4})
    summary = build_summary(config, RoundTable(folder.metrics, 3), RoundTable(folder.timing, 3), TASK)
    assert summary == {
        "algo": "fedavg",
        "dataset": "digits",
        "seed": 4,
        "rounds": 3,
        "final": {"test_accuracy": 0.5, "test_loss": 1.5, "client_test_accuracy": None},
        "best": {"round": 2, "test_accuracy": 0.75},
        "clients": {},
        "bytes_up": 30,
        "bytes_down": 60,
        "virtual_time_s": 4.5,
        "train_seconds": 1.5,
        "seconds_per_round": 0.5,
    }
    # The algorithm's own object is added under its name, so none of these may be a name.
    assert set(summary) <= SUMMARY_KEYS | {field.name for field in shared_fields()}


def test_client_statistics_pass_over_clients_without_a_test_split():
    accuracy = np.array([0.0, 0.5, np.nan, 1.0])
    # mean 1.5 / 3; deviation sqrt((0.25 + 0 + 0.25) / 3); percentile 10 of 0, 0.5, 1 lies a fifth of the way to 0.5
    assert compute_client_statistics(accuracy, TASK) == pytest.approx(
        {"accuracy_mean": 0.5, "accuracy_std": np.sqrt(1 / 6), "accuracy_p10": 0.1, "accuracy_worst_tenth": 0.0}
    )
    assert set(compute_client_statistics(np.array([np.nan]), TASK).values()) == {None}


def test_a_client_whose_errors_are_infinite_is_not_left_out():
    # NumPy would warn of inf - inf, which a person would see at the end of each such run.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = compute_client_statistics(np.array([1.0, np.inf, np.nan]), find_task_columns("regression"))
    assert (found["rmse_mean"], found["rmse_worst_tenth"]) == (np.inf, np.inf) and np.isnan(found["rmse_std"])


def test_majority_statistics_by_hand():
    """Of 11 clients with a test split, the worst tenth are two; the new client, the last one, is a part of its own."""
    own, overall = np.array([0.0, 0.25, *[0.75] * 9, np.nan, 1.0]), np.array([0.5, 0.5, *[0.5] * 9, np.nan, 0.0])
    majority = MajorityAccuracies(own, overall, 0.1)
    assert describe_majority(majority, slice(12), TASK) == {
        "majority_accuracy": pytest.approx(7 / 11),
        "majority_accuracy_worst_tenth": 0.125,
        "overall_majority_accuracy": 0.5,
        "overall_majority_accuracy_worst_tenth": 0.5,
    }
    assert describe_majority(majority, slice(12, None), TASK)["majority_accuracy"] == 1
    assert set(describe_majority(majority, slice(11, 12), TASK).values()) == {None}


@dataclasses.dataclass
class TaughtProcess(FederatedProcess):
    weights: tuple
    teacher_weights: tuple

    def initialize(self):
        return self.weights

    def next(self, state):
        raise AssertionError("the results are those of a state, without another round")

    def get_models(self, state):
        return {"global": state}

    def client_model(self, state):
        return ["global", "global"]

    def get_teachers(self, state):
        return {"teacher_0": self.teacher_weights}

    def summarize(self, state):
        return {"k": np.int64(2)}

    def client_columns(self, state):
        return {"cluster": [1, 0]}


@pytest.fixture
def write(folder, linear_spec):
    """(data, kind of process, flags) -> (the summary, the weights, those of the teacher) of three rounds of FedSiKD."""

    def write(data, kind=TaughtProcess, **flags):
        weights, teacher_weights = (tuple(spec.build().get_weights()) for spec in (linear_spec, linear_spec.teacher))
        config = build_run_config({"algo": "fedsikd", "rounds": 3, **flags})
        write_json(folder.config, {"flags": flag_values(config), "data": DESCRIBED})
        process, evaluate = kind(weights, teacher_weights), build_evaluator(linear_spec)
        tables = RoundTable(folder.metrics, 3), RoundTable(folder.timing, 3)
        test_clients = functools.partial(StateEvaluation(process, data, evaluate).test_clients, is_last=False)
        summary = write_results(
            folder, config, data, linear_spec, process, weights, evaluate, *tables, TASK, test_clients
        )
        return summary, weights, teacher_weights

    return write


def test_results_are_written_with_models_and_teachers(write, folder, make_federation, linear_spec):
    data = make_federation([4, 6])
    summary, weights, teacher_weights = write(data)
    rows = read_rows(folder.clients)
    # The first has no test split of its own.
    assert [[row[name] for name in ("client", "num_train", "model", "cluster")] for row in rows] == [
        ["client_0", "4", "global", "1"],
        ["client_1", "6", "global", "0"],
    ]
    assert rows[0]["accuracy"] == ""
    stored = json.loads(folder.summary.read_text())
    # The data's own name, and not the flag's.
    assert stored["fedsikd"]["k"] == 2 and stored["dataset"] == "blobs"
    expected = build_evaluator(linear_spec.teacher)(teacher_weights, data.test_x, data.test_y).metric
    assert stored["fedsikd"]["teachers_test_accuracy"] == {"teacher_0": pytest.approx(expected)}
    assert list(stored) == list(summary)
    for spec, name, wanted in ((linear_spec, "global", weights), (linear_spec.teacher, "teacher_0", teacher_weights)):
        for got, want in zip(load_weights(spec, folder.models / name), wanted, strict=True):
            np.testing.assert_array_equal(got, want)


def test_no_name_of_a_model_is_a_path(write, folder, make_federation, tmp_path):
    names = ["../../outside", "/etc/x", "a/b", "W", "w", "", "x" * 300, "a\nb", "=1"]

    class NamedProcess(TaughtProcess):
        def get_models(self, state):
            return dict.fromkeys(names, state)

        def client_model(self, state):
            return names[:2]

        def get_teachers(self, state):
            return {"../teacher": self.teacher_weights}

    before = set(tmp_path.parent.rglob("model.keras"))
    write(make_federation([4, 6]), NamedProcess)
    saved = [path.parent for path in set(tmp_path.parent.rglob("model.keras")) - before]
    assert {path.parent for path in saved} == {folder.models} and len(saved) == len(names) + 1
    assert decode_names([path.name for path in saved if path.name == encode_name("../teacher")]) == ["../teacher"]
    run = read_finished_run(str(tmp_path))
    assert set(run.client_models.values()) == set(names[:2]) and run.teachers == {"../teacher"}
    folders = {name: folder.models / encode_name(name) for name in [*names, "../teacher"]}
    # No record names the long one, since no client uses it.
    folders[encode_name("x" * 300)] = folders.pop("x" * 300)
    assert run.find_model_folders() == folders


def test_why_a_client_lacks_a_metric_stands_beside_it(folder, make_federation, linear_spec):
    """Of three clients one has both classes, one has one alone, and one has no test example."""
    data, task = make_federation([4, 6, 5]), find_task_columns("binary")
    nothing = float("nan")
    further = {"auc": np.array([0.75, nothing, nothing]), "f1": np.array([0.5, 0.25, nothing])}
    undefined = {1: {"auc": "are all of one class"}}
    results = ClientResults(np.array([0.5, 1, nothing]), np.array([0.25, 0.5, nothing]), further, undefined)

    class Process(TaughtProcess):
        def client_model(self, state):
            return ["global"] * 3

        def client_columns(self, state):
            return {}

    write_clients(folder, data, results, Process((), ()), (), task)
    rows = read_rows(folder.clients)
    names = ("binary_accuracy", "loss", "auc", "f1", "undefined")
    assert [[row[name] for name in names] for row in rows] == [
        ["0.5", "0.25", "0.75", "0.5", ""],
        ["1", "0.5", "", "0.25", "auc: its test examples are all of one class"],
        ["", "", "", "", ""],
    ]
    # As plots and pages read it.
    numbers = read_columns(folder.clients)
    assert {"auc", "f1"} <= numbers.keys() and np.isnan(numbers["auc"]).tolist() == [False, True, True]
    assert "undefined" not in numbers
    counts = count_undefined(results, [0, 1, 2])
    assert counts == {"undefined": {"auc": {"are all of one class": 1}}, "num_evaluated": 3}
    assert task.say_undefined(counts["undefined"], 3) == [
        "AUC is undefined for 1 of 3 clients, whose test examples are all of one class"
    ]
    assert count_undefined(results, [0, 2]) == {} and task.say_undefined(None, 0) == []
    write_clients(folder, data, results._replace(undefined={}), Process((), ()), (), task)
    assert "undefined" not in read_rows(folder.clients)[0]


@pytest.mark.parametrize("counts", [3, {"auc": 3}, {"auc": {"x": "y"}}, {"other": {"x": 1}}])
def test_a_summary_of_somebody_else_says_nothing_of_what_is_undefined(counts):
    assert find_task_columns("binary").say_undefined(counts, 3) == []


@pytest.mark.parametrize(("evaluated_clients", "is_of_all"), [(1, True), (2, False), (0, False)])
def test_the_end_is_that_of_all_clients_where_rounds_have_a_sample(
    write, folder, make_federation, evaluated_clients, is_of_all
):
    """One client has a test split, of two examples with different labels. The table of the rounds says nothing."""
    data = make_federation([4, 6])
    client = dataclasses.replace(data.clients[1], num_test=2)
    np.zeros((2, *data.format.input_shape), data.format.input_dtype).tofile(f"{client.path}.test.x")
    np.array([0, 1], np.int32).tofile(f"{client.path}.test.y")
    data = dataclasses.replace(data, clients=(data.clients[0], client))
    summary, *_ = write(data, evaluated_clients=evaluated_clients)
    mean, in_rounds = summary["clients"]["accuracy_mean"], None
    assert mean in (0.0, 0.5) and summary["final"]["client_test_accuracy"] == (mean if is_of_all else in_rounds)
    assert summary["clients"]["majority_accuracy"] == 0.5 and summary["overall_majority_test_accuracy"] == 1 / 3


STEPS = 6


@pytest.fixture(scope="module")
def federation(build_federation, tmp_path_factory):
    """Four clients, the last one new, whose test splits are their train splits."""
    data = build_federation(tmp_path_factory.mktemp("federation"), [8, 12, 16, 20])
    everyone = []
    for client in data.clients:
        for part in "xy":
            with (
                open(f"{client.path}.train.{part}", "rb") as source,
                open(f"{client.path}.test.{part}", "wb") as target,
            ):
                target.write(source.read())
        everyone.append(dataclasses.replace(client, num_test=client.num_train))
    return dataclasses.replace(data, clients=tuple(everyone[:3]), new_clients=tuple(everyone[3:]))


@pytest.fixture(scope="module")
def tuned(tff_runtime, federation, linear_spec):
    """A function (rule, start) -> (process, its state after a round)."""

    @functools.cache
    def build(rule, start="trained"):
        tuning = FineTuningConfig(
            steps=STEPS, learning_rate=0.01, batch_size=4, rule=rule, start=start, curve=(0, 2, STEPS)
        )
        training = LocalTrainingConfig(epochs=1, batch_size=4, learning_rate=0.1)
        config = FineTunedConfig(training=training, fine_tuning=tuning)
        process = build_fine_tuned_process(linear_spec, federation, config, seed=2)
        return process, process.next(process.initialize()).state

    return build


def test_relative_change_by_hand():
    """|(3, 4) - (0, 4)| = 3 and |2 - 6| = 4 make 5; the norm before is |(0, 4, 2)|; counters do not count."""
    before = {"a": (np.array([0.0, 4.0], np.float32), np.array(7)), "b": (np.array([2.0], np.float32),)}
    after = {"a": (np.array([3.0, 4.0], np.float32), np.array(9)), "b": (np.array([6.0], np.float32),)}
    assert compute_relative_change(before, after) == pytest.approx(5 / 20**0.5)


@pytest.mark.parametrize("rule", ["same", "resources"])
def test_the_row_of_all_steps_is_the_run_s_own_result(tuned, federation, linear_spec, rule):
    process, state = tuned(rule)
    evaluate = build_evaluator(linear_spec)
    accuracy = evaluate_clients(process, state, federation, evaluate, clients=federation.everyone)["test"].metric
    rows = [
        dict(zip(TASK.fine_tuning_columns, row, strict=True))
        for row in measure_curve(process, state, federation, federation.clients, evaluate, TASK)
    ]
    assert [(row["client_group"], row["most_steps"]) for row in rows] == [
        (group, steps) for group in ("members", "new") for steps in (0, 2, STEPS)
    ]
    for row, part in ((rows[2], accuracy[:3]), (rows[5], accuracy[3:])):
        assert row["trained_start_accuracy"] == part.mean()
        assert row["trained_start_accuracy_worst_tenth"] == TASK.compute_worst_tenth(part)
    # Without a step, everyone has the shared model.
    shared, x, y = process.get_models(state)["global"], *federation.read_split(federation.new_clients[0], "train")
    assert rows[3]["trained_start_accuracy"] == evaluate(shared, x, y).metric
    assert rows[3]["random_start_accuracy"] == evaluate(process.initial_weights, x, y).metric


def test_the_gain_is_over_random_weights_whichever_start_the_run_has(tuned, federation, linear_spec):
    evaluate = build_evaluator(linear_spec)
    measured = []
    for start in ("trained", "initial"):
        process, state = tuned("same", start)
        own = evaluate_clients(process, state, federation, evaluate, clients=federation.everyone)["test"].metric
        measured.append(measure_start(process, state, federation, federation.clients, evaluate, own, TASK))
        chosen = {"trained": "trained_start_accuracy", "initial": "random_start_accuracy"}[start]
        assert measured[-1][chosen] == own[:3].mean()
    assert measured[0] == measured[1]
    start = measured[0]
    gain = start["trained_start_accuracy"] - start["random_start_accuracy"]
    assert start["gain_over_random_start"] == gain > 0


def test_an_algorithm_without_a_shared_model_takes_no_new_clients(tff_runtime, federation, linear_spec):
    config = build_run_config({"algo": "local_only", "new_clients": 1})
    with pytest.raises(ConfigError, match="new_clients=1: expected 0 with --algo=local_only"):
        build_process(config, linear_spec, federation)


@pytest.mark.parametrize(("change", "is_said"), [(0.0099, True), (0.01, False)])
def test_a_start_that_did_not_move_is_said(change, is_said):
    accuracies = {"trained_start_accuracy": 0.75, "random_start_accuracy": 0.7, "gain_over_random_start": 0.05}
    *notes, (topic, text) = find_worth_of_start({"relative_change": change, **accuracies}, TASK)
    assert ["less than 1%" in note.text for note in notes] == [True] * is_said
    assert topic == "start" and "the start gains +5.00 points" in text


def test_the_curve_is_drawn(tmp_path):
    rows = [
        dict(zip(TASK.fine_tuning_columns, (group, str(steps), "0.5", "0.4", "0.3", "0.2"), strict=True))
        for group in ("members", "new")
        for steps in (0, 5)
    ]
    assert draw_fine_tuning(rows, TASK, "a run", tmp_path / "fine_tuning.png").stat().st_size > 5000
