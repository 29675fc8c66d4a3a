"""What a run says is true of its data and of its rounds."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf
from small_formats import change_format

from datasets.example_format import ExampleWeights
from launch.pages.comparison.compared_run import describe_data_in_words
from launch.runs.round_table import RoundTable
from launch.runs.run_description import describe_data
from launch.runs.run_folder import RunFolder
from launch.runs.stored_data import read_data_section
from launch.runs.task_columns import find_task_columns
from launch.settings.run_config import build_run_config
from launch.training import announcements
from launch.training.announcements import Finding, advise_on_rejected, resume_command, was_all_rejected

NAN = float("nan")
RESULT = {
    "task": "classification",
    "rounds": 2,
    "train_seconds": 1.0,
    "final": {"test_accuracy": 0.5, "client_test_accuracy": 0.5},
    "best": {"test_accuracy": 0.5, "round": 1},
    "clients": {},
}


@pytest.fixture
def folder(tmp_path):
    folder = RunFolder(tmp_path, is_new=True)
    yield folder
    folder.close()


@pytest.fixture
def find_start(folder):
    """(data, flags) -> what is said before training, by its topic; of several notes the texts."""

    def find(data, **flags):
        found = list(announcements.find_start(build_run_config({"algo": "fedavg", **flags}), folder, data))
        return {**dict(found), "note": [text for topic, text in found if topic == "note"]}

    return find


@pytest.fixture
def find_troubles(tmp_path, make_federation):
    """(rows of the rounds, ...) -> the notes on them, and the rounds."""

    def find(*rows, data=None, is_one_model=False):
        table = RoundTable(tmp_path / "metrics.csv")
        for number, row in enumerate(rows, start=1):
            rest = dict.fromkeys(("num_rejected", "train_loss", "test_loss", "test_accuracy"))
            table.append({"round": number, "num_clients": 2, **rest, **row})
        config, data = build_run_config({"algo": "fedavg"}), data or make_federation([4])
        return [text for _, text in announcements.find_troubles(config, data, table, is_one_model)], table

    return find


def test_one_of_something_has_no_plural_and_a_cohort_of_more_than_all_clients_is_said(find_start, make_federation):
    one = find_start(make_federation([100]), rounds=1, cohort_size=1)
    assert one["run"].startswith("fedavg, 1 round, seed 0, in ") and "1, dirichlet" in one["clients"]
    assert one["clients"].endswith("partition, 100 examples each") and one["note"] == []
    two = find_start(make_federation([1, 3]), rounds=2000, cohort_size=50)
    assert two["run"].startswith("fedavg, 2,000 rounds") and two["clients"].endswith("1 to 3 examples each")
    assert two["note"] == ["--cohort_size=50: more than the 2 clients there are, so each round asks all of them"]


def test_what_was_read_is_said_and_written(find_start, make_federation):
    data = make_federation([4, 4])
    subset = dataclasses.replace(data, dataset="cifar10 subset (4 + 1 images)", filled={"age": 1200, "colour": 5})
    subset = change_format(subset, weights=ExampleWeights("dose", 1.25, 0.0, 3.0, 2, 4))
    found, described = find_start(subset, dataset="cifar10"), describe_data(subset)
    assert found["data"].startswith("cifar10 subset (4 + 1 images): 8 train and")
    assert described["dataset"] == "cifar10 subset (4 + 1 images)"
    assert found["weights"].startswith("column dose: 0 to 3, 2 of 4 train examples weigh 0; divided by")
    words = "1,205 missing values, by the median or the most frequent text of the train part, by column: "
    words += "age 1,200, colour 5"
    assert found["filled"] == words and f"Filled in: {words}." in describe_data_in_words(described)
    assert described["filled"] == {"age": 1200, "colour": 5} and "filled" not in describe_data(data)
    assert read_data_section(described, "config.json").weights == subset.format.weights
    assert read_data_section(described, "config.json") == subset.format


def test_of_a_script_s_own_function_no_command_is_printed(folder, find_start, make_federation):
    flags = {"model": "__main__:build", "rounds": 2}
    assert find_start(make_federation([4]), **flags)["note"] == [
        "build: of the script or notebook itself (__main__), from which no evaluate, export or --resume can "
        "import; write it to a module of its own, such as my_module.py beside it, and import it from there "
        "(from my_module import build)"
    ]
    found = list(announcements.find_result(build_run_config({"algo": "fedavg", **flags}), folder, RESULT))
    assert found[-3:-1] == [
        ("next", "in Python, by the Run that fit returns: predict(examples), load_model()"),
        ("", f"fit('fedavg', run_dir='{folder.path}', resume=True, trust_module='__main__', rounds=4)"),
    ]
    own = build_run_config({"algo": "fedavg", "model": "json:build", "rounds": 2})
    assert resume_command(folder, own) == f"python -m launch.train --resume --run_dir={folder.path} --trust_module=json"
    found = list(announcements.find_result(own, folder, RESULT))[-4:-1]
    commands = [(topic, text.partition(" --")[0]) for topic, text in found]
    assert commands == [
        (topic, f"python -m launch.{name}")
        for topic, name in zip(("next", "", ""), ("evaluate", "export", "train"), strict=True)
    ]


def test_what_would_test_on_examples_that_there_are_not_is_not_proposed(folder):
    """As of clients' own data, of which a schema is all that the organiser has."""
    config = build_run_config({"algo": "fedavg", "rounds": 2})
    folder.config.write_text(json.dumps({"flags": {}, "data": {"is_remote": True, "num_test": 0}, "live": {}}))
    found = list(announcements.find_result(config, folder, RESULT))
    assert [topic for topic, text in found if "launch" in text] == ["next"]
    assert found[-2] == ("next", f"python -m launch.serve --resume --run_dir={folder.path} --rounds=4")


def test_a_script_s_own_loss_is_needed_to_train_alone(folder, find_start, make_federation):
    flags = {"model": "json:build", "loss": "__main__:cost", "rounds": 2}
    [note] = find_start(make_federation([4]), **flags)["note"]
    assert note.startswith("cost: of the script or notebook itself (__main__), from which no --resume can")
    found = list(announcements.find_result(build_run_config({"algo": "fedavg", **flags}), folder, RESULT))
    assert [text for _, text in found[-4:-1]] == [
        f"python -m launch.evaluate --run_dir={folder.path} --trust_module=json",
        f"python -m launch.export --run_dir={folder.path} --trust_module=json",
        f"fit('fedavg', run_dir='{folder.path}', resume=True, trust_module='json,__main__', rounds=4)",
    ]


@pytest.mark.parametrize(("most", "is_said"), [(0, False), (1, True), (2, False), (1000, False)])
def test_a_sample_of_the_clients_is_announced(find_start, make_federation, capsys, most, is_said):
    found = find_start(make_federation([4, 4]), evaluated_clients=most)["clients"]
    assert ("4 examples each; 1 is evaluated in rounds, all at the end" in found) == is_said
    announcements.say_findings([Finding("clients", found), Finding("", "more")])
    assert capsys.readouterr().out == f"clients  {found}\n         more\n"


@pytest.mark.parametrize(
    ("layers", "is_said"),
    [
        # Keras's default is 0.99.
        ([tf.keras.layers.BatchNormalization()], True),
        ([tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.BatchNormalization(momentum=0.97)])], True),
        ([tf.keras.layers.BatchNormalization(momentum=0.9)], False),
        ([tf.keras.layers.BatchNormalization(trainable=False)], False),
        ([tf.keras.layers.LayerNormalization()], False),
    ],
)
def test_slow_statistics_of_a_users_model_are_said(linear_spec, layers, is_said):
    model = tf.keras.Sequential([tf.keras.Input((4,)), *layers, tf.keras.layers.Dense(3)])
    config = build_run_config({"algo": "fedavg"})
    for name in ("my_models:build", "linear"):
        spec = dataclasses.replace(linear_spec, name=name, build=lambda: model)
        (topic, text), *notes = announcements.find_models(config, spec)
        assert topic == "model" and text.startswith(f"{name} (")
        said = [text.startswith("batch_norm") and text.endswith("momentum=0.9 takes few") for _, text in notes]
        assert said == [True] * (is_said and ":" in name)


def test_what_was_understood_and_who_is_left_out_are_said(find_start, make_federation):
    words = {"reading": "4 features, as they are", "notes": ("one", "two")}
    data = dataclasses.replace(make_federation([4, 4]), num_clients_left_out=3, **words)
    found, described = find_start(data), describe_data(data)
    assert found["data"].endswith("classes; 4 features, as they are") and found["note"] == ["one", "two"]
    assert found["clients"].endswith("; 3 more are left out, since all their examples are held out for the test")
    assert (described["reading"], described["notes"]) == ("4 features, as they are", ["one", "two"])
    assert described["num_clients_left_out"] == 3
    assert describe_data_in_words(described) == (
        "Examples: 4 features, as they are.",
        "Clients left out: 3, since all their examples are held out for the test.",
        "Note on the data: one.",
        "Note on the data: two.",
    )
    assert describe_data_in_words({}) == describe_data_in_words({"reading": 3, "notes": "x"}) == ()


@pytest.mark.parametrize(
    ("accuracy", "num_clients", "said"),
    [
        # The most frequent label's quarter.
        (0.25, 1, "the model has learned nothing: its test accuracy is 0.2500"),
        # Two standard errors, of sqrt(0.25 * 0.75 / 100).
        (0.33, 1, "it is not clear whether the model has learned anything: its test accuracy is 0.3300"),
        # The two standard errors end at 0.3366.
        (0.34, 1, ""),
        (NAN, 1, "the model has learned nothing: its test accuracy is nan"),
        (None, 1, ""),  # not evaluated
        # Nobody took part, which is said by itself.
        (0.25, 0, ""),
    ],
)
def test_a_model_that_learned_nothing_is_said(find_troubles, accuracy, num_clients, said):
    _, table = find_troubles({"num_clients": num_clients, "test_accuracy": accuracy})
    labels = np.repeat(np.arange(5, dtype=np.int32), (25, 20, 20, 20, 15))
    found = [text for _, text in announcements.find_lack_of_learning(table, labels)]
    same_answer = "all 100 test examples the same answer reaches 0.2500"
    assert [text.startswith(said) and same_answer in text for text in found] == [True] * bool(said)
    assert not list(announcements.find_lack_of_learning(table, np.zeros(0, np.int32)))


@pytest.mark.parametrize("accuracy", [0.25, 0.33])
def test_of_a_private_model_that_learned_nothing_the_noise_is_named(find_troubles, accuracy):
    _, table = find_troubles({"num_clients": 1, "test_accuracy": accuracy, "epsilon_spent": 8.0})
    [(_, text)] = announcements.find_lack_of_learning(table, np.arange(100, dtype=np.int32) % 4)
    assert "noise may be too large: take more clients, a smaller model or a larger --dp_epsilon" in text
    assert "luck" not in text and "lower the rate" not in text


STAYED = ", in {} of them all, so that the models stayed as they were"


@pytest.mark.parametrize(
    ("rounds", "is_all", "said"),
    [
        # (clients, rejected updates, train loss) by round
        ([(2, 0, 0.5), (2, 0, 0.4)], False, None),
        # The run ends with an error of its own.
        ([(2, 2, NAN), (2, 2, NAN)], True, None),
        # Two models a client; nobody was ready before.
        ([(0, 0, NAN), (2, 4, NAN)], True, None),
        # Nobody took part, which is said by itself.
        ([(0, 0, NAN)], False, None),
        (
            [(2, 1, 0.5), (2, 0, 0.4)],
            False,
            "1 update was not finite and does not count, in 1 of 2 rounds (first in round 1);",
        ),
        (
            [(2, 0, 0.5), (2, 1, 0.4), (2, 2, NAN)],
            False,
            "3 updates were not finite and do not count, in 2 of 3 rounds (first in round 2)" + STAYED.format(1),
        ),
        # The updates of the teachers, while the students learn.
        ([(2, 2, 0.5)], False, "2 updates were not finite"),
    ],
)
def test_rejected_updates_are_said(find_troubles, rounds, is_all, said):
    names = ("num_clients", "num_rejected", "train_loss")
    notes, table = find_troubles(*(dict(zip(names, row, strict=True)) for row in rounds))
    assert was_all_rejected(table) == is_all
    assert [said in note for note in notes if "no client was ready" not in note] == [True] * bool(said)


def test_the_advice_on_rejected_updates_fits_the_numbers(make_federation):
    config = build_run_config({"algo": "fedavg", "learning_rate": 7.0})
    data = make_federation([4])
    assert advise_on_rejected(config, data) == ("lower the learning rate (--learning_rate=7, --server_learning_rate=1)")
    far = dataclasses.replace(data.format.preprocessing, offset=1e6)
    assert advise_on_rejected(config, change_format(data, preprocessing=far)).startswith(
        "the examples have numbers up to 1e+06: give --standardize=federated"
    )
    scaled = build_run_config({"algo": "fedavg", "standardize": "federated"})
    assert advise_on_rejected(scaled, change_format(data, preprocessing=far)).startswith("lower the learning")


def test_the_advice_in_an_attacked_run_names_the_attack(make_federation):
    """A huge attack never reaches the aggregator, so that any would look robust; the clients' rate is not to blame."""
    flags = {"algo": "fedavg", "attack": "sign_flip", "attack_scale": 1e30}
    advice = advise_on_rejected(build_run_config(flags), make_federation([4]))
    assert "lower --attack_scale=1e+30; or lower the learning rate (--learning_rate=" in advice
    flipped = build_run_config({"algo": "fedavg", "attack": "label_flip"})
    assert advise_on_rejected(flipped, make_federation([4])).startswith("lower the learning rate")


@pytest.mark.parametrize(("loss", "is_said"), [(float("inf"), True), (0.5, False), (NAN, False), (None, False)])
def test_a_model_whose_outputs_are_no_numbers_is_said(find_troubles, loss, is_said):
    """Its last step may be what made it so, after which no update can be rejected; then nothing else is said."""
    notes, _ = find_troubles({"num_rejected": 0, "test_loss": loss, "test_accuracy": 0.0}, is_one_model=True)
    assert ["learned nothing" in note for note in notes] == [not is_said]
    said = [
        note for note in notes if note.startswith("the training has diverged") and "lower the learning rate" in note
    ]
    assert len(said) == is_said


def summarise(reached, **further):
    return {
        "task": "next_token",
        "final": {"test_token_accuracy": reached},
        "token_baselines": {"unigram_accuracy": 0.2, "bigram_accuracy": 0.3},
        **further,
    }


@pytest.mark.parametrize(
    ("reached", "expected"),
    [
        (0.1, "has learned nothing"),
        (np.nan, "has learned nothing"),
        (None, "has learned nothing"),
        (0.25, "not learned more than which token follows which"),
        (0.4, None),
    ],
)
def test_a_model_is_held_against_the_tables(reached, expected):
    first, *notes = announcements.compare_with_tables(summarise(reached))
    assert "most frequent token 0.2000" in first.text and first.text.endswith("0.3000")
    assert [expected in note.text for note in notes] == [True] * bool(expected)
    assert not list(announcements.compare_with_tables({"final": {"test_accuracy": 0.5}}))


def describe_clients(reached, own=0.5):
    clients = {"accuracy_mean": reached, "majority_accuracy": own, "overall_majority_accuracy": 0.25}
    return {"clients": clients, "overall_majority_test_accuracy": 0.125}


@pytest.mark.parametrize(("reached", "is_beaten"), [(0.75, True), (0.5, False), (np.nan, False)])
def test_the_clients_models_are_held_against_their_majority_classes(reached, is_beaten):
    task = find_task_columns("classification")
    first, *notes = announcements.compare_with_majority(describe_clients(reached), task)
    assert first.text.endswith("each client's own 0.5000, that of all 0.2500 (0.1250 on the test set)")
    assert ["do not beat" in note.text for note in notes] == [True] * (not is_beaten)
    for summary in ({"clients": {"rmse_mean": 1.0}}, describe_clients(None, None)):
        assert not list(announcements.compare_with_majority(summary, task))


@pytest.mark.parametrize(
    ("num_test", "rows", "said"),
    [
        ([0, 2, 0], [{}], ["2 of 3 clients have no test"]),
        ([0, 0, 0], [{}], []),
        ([1, 2, 3], [{}], []),
        ([1, 2, 3], [{"num_clients": 0}] * 2, ["no client was ready within these rounds"]),
        ([1, 2, 3], [{"num_clients": 0}, {"num_clients": 2}], []),
    ],
)
def test_clients_without_test_examples_and_rounds_without_clients_are_said(
    find_troubles, make_federation, num_test, rows, said
):
    data = make_federation([4, 4, 4])
    clients = (dataclasses.replace(each, num_test=n) for each, n in zip(data.clients, num_test, strict=True))
    notes, _ = find_troubles(*rows, data=dataclasses.replace(data, clients=tuple(clients)))
    assert [note[: len(start)] for note, start in zip(notes, said, strict=True)] == said
