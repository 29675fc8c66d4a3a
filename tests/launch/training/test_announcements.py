"""What a run says is true of its data and of its rounds."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from small_formats import change_format

from datasets.example_format import ExampleWeights
from launch.comparison.compared_run import describe_data_in_words
from launch.runs.round_table import RoundTable
from launch.runs.run_description import describe_data
from launch.runs.run_folder import RunFolder
from launch.runs.stored_data import read_data_section
from launch.runs.task_columns import find_task_columns
from launch.settings.run_config import build_run_config
from launch.training.announcements import (
    advise_on_rejected,
    announce_data,
    announce_model,
    resume_command,
    say_if_clients_lack_tests,
    say_if_diverged,
    say_if_nobody_took_part,
    say_if_nothing_was_learned,
    say_if_updates_were_rejected,
    say_majority,
    say_result,
    say_text_baselines,
    was_all_rejected,
)


def test_the_name_of_a_subset_is_said_and_written(tmp_path, make_federation, capsys):
    data = dataclasses.replace(make_federation([4]), dataset="cifar10 subset (4 + 1 images)")
    folder = RunFolder(tmp_path, is_new=True)
    announce_data(build_run_config({"algo": "fedavg", "dataset": "cifar10"}), folder, data)
    folder.close()
    assert "data     cifar10 subset (4 + 1 images): 4 train and" in capsys.readouterr().out
    assert describe_data(data)["dataset"] == "cifar10 subset (4 + 1 images)"


def test_weights_of_examples_are_said_and_written(tmp_path, make_federation, capsys):
    data = change_format(make_federation([4]), weights=ExampleWeights("dose", 1.25, 0.0, 3.0, 2, 4))
    folder = RunFolder(tmp_path, is_new=True)
    announce_data(build_run_config({"algo": "fedavg"}), folder, data)
    folder.close()
    assert "weights  column dose: 0 to 3, 2 of 4 train examples weigh 0; divided by" in capsys.readouterr().out
    assert read_data_section(describe_data(data), "config.json").weights == data.format.weights


COMMANDS = (("next    ", "evaluate"), ("        ", "export"), ("        ", "train"))
RESULT = {
    "task": "classification",
    "rounds": 2,
    "train_seconds": 1.0,
    "final": {"test_accuracy": 0.5, "client_test_accuracy": 0.5},
    "best": {"test_accuracy": 0.5, "round": 1},
    "clients": {},
}


def test_of_a_script_s_own_function_no_command_is_printed(tmp_path, make_federation, capsys):
    config = build_run_config({"algo": "fedavg", "model": "__main__:build", "rounds": 2})
    folder = RunFolder(tmp_path, is_new=True)
    announce_data(config, folder, make_federation([4]))
    assert capsys.readouterr().out.splitlines()[-1] == (
        "note     build: of the script or notebook itself (__main__), from which no evaluate, export or --resume can "
        "import; write it to a module of its own, such as my_module.py beside it, and import it from there "
        "(from my_module import build)"
    )
    say_result(config, folder, RESULT)
    assert capsys.readouterr().out.splitlines()[-3:-1] == [
        "next     in Python, by the Run that fit returns: predict(examples), load_model()",
        f"         fit('fedavg', run_dir='{tmp_path}', resume=True, trust_module='__main__', rounds=4)",
    ]
    own = build_run_config({"algo": "fedavg", "model": "json:build", "rounds": 2})
    assert resume_command(folder, own) == f"python -m launch.train --resume --run_dir={tmp_path} --trust_module=json"
    say_result(own, folder, RESULT)
    said = [line.partition(" --")[0] for line in capsys.readouterr().out.splitlines()[-4:-1]]
    assert said == [f"{start} python -m launch.{name}" for start, name in COMMANDS]
    folder.close()


def test_a_script_s_own_loss_is_needed_to_train_alone(tmp_path, make_federation, capsys):
    config = build_run_config({"algo": "fedavg", "model": "json:build", "loss": "__main__:cost", "rounds": 2})
    folder = RunFolder(tmp_path, is_new=True)
    announce_data(config, folder, make_federation([4]))
    assert "cost: of the script or notebook itself (__main__), from which no --resume can" in capsys.readouterr().out
    say_result(config, folder, RESULT)
    folder.close()
    assert capsys.readouterr().out.splitlines()[-4:-1] == [
        f"next     python -m launch.evaluate --run_dir={tmp_path} --trust_module=json",
        f"         python -m launch.export --run_dir={tmp_path} --trust_module=json",
        f"         fit('fedavg', run_dir='{tmp_path}', resume=True, trust_module='json,__main__', rounds=4)",
    ]


@pytest.mark.parametrize(("most", "is_said"), [(0, False), (1, True), (2, False), (1000, False)])
def test_a_sample_of_the_clients_is_announced(tmp_path, make_federation, capsys, most, is_said):
    folder = RunFolder(tmp_path, is_new=True)
    config = build_run_config({"algo": "fedavg", "evaluated_clients": most})
    announce_data(config, folder, make_federation([4, 4]))
    folder.close()
    assert ("examples each; 1 are evaluated in rounds, all at the end" in capsys.readouterr().out) == is_said


@pytest.mark.parametrize(
    ("layers", "is_said"),
    [
        ([tf.keras.layers.BatchNormalization()], True),  # Keras's default is 0.99
        ([tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.BatchNormalization(momentum=0.97)])], True),
        ([tf.keras.layers.BatchNormalization(momentum=0.9)], False),
        ([tf.keras.layers.BatchNormalization(trainable=False)], False),
        ([tf.keras.layers.LayerNormalization()], False),
    ],
)
def test_slow_statistics_of_a_users_model_are_said(linear_spec, capsys, layers, is_said):
    model = tf.keras.Sequential([tf.keras.Input((4,)), *layers, tf.keras.layers.Dense(3)])
    config = build_run_config({"algo": "fedavg"})
    for name in ("my_models:build", "linear"):
        announce_model(config, dataclasses.replace(linear_spec, name=name, build=lambda: model))
        printed = capsys.readouterr().out
        assert printed.startswith(f"model    {name} (")
        assert ("note     batch_norm" in printed and "momentum=0.9 takes few" in printed) == (is_said and ":" in name)


def test_what_was_understood_and_who_is_left_out_are_said(tmp_path, make_federation, capsys):
    words = {"reading": "4 features, as they are", "notes": ("one", "two")}
    data = dataclasses.replace(make_federation([4, 4]), num_clients_left_out=3, **words)
    folder = RunFolder(tmp_path, is_new=True)
    announce_data(build_run_config({"algo": "fedavg"}), folder, data)
    folder.close()
    _, of_data, *notes, of_clients = capsys.readouterr().out.splitlines()
    assert of_data.startswith("data     ") and of_data.endswith("classes; 4 features, as they are")
    assert notes == ["note     one", "note     two"]
    assert of_clients.endswith("; 3 more are left out, since all their examples are held out for the test")
    described = describe_data(data)
    assert (described["reading"], described["notes"]) == ("4 features, as they are", ["one", "two"])
    assert described["num_clients_left_out"] == 3
    assert describe_data_in_words(described) == (
        "Examples: 4 features, as they are.",
        "Clients left out: 3, since all their examples are held out for the test.",
        "Note on the data: one.",
        "Note on the data: two.",
    )
    assert describe_data_in_words({}) == describe_data_in_words({"reading": 3, "notes": "x"}) == ()


def test_what_was_filled_in_is_said_and_written(tmp_path, make_federation, capsys):
    data = dataclasses.replace(make_federation([4, 4]), filled={"age": 1200, "colour": 5})
    folder = RunFolder(tmp_path, is_new=True)
    announce_data(build_run_config({"algo": "fedavg"}), folder, data)
    folder.close()
    words = "1,205 missing values, by the median or the most frequent text of the train part, by column: "
    words += "age 1,200, colour 5"
    assert f"\nfilled   {words}\n" in capsys.readouterr().out
    described = describe_data(data)
    assert described["filled"] == {"age": 1200, "colour": 5} and "filled" not in describe_data(make_federation([4]))
    assert f"Filled in: {words}." in describe_data_in_words(described)
    assert read_data_section(described, "config.json") == data.format


@pytest.mark.parametrize(("num_clients", "is_said"), [((0, 0), True), ((0, 2), False)])
def test_a_run_in_which_nobody_took_part_says_so(tmp_path, capsys, num_clients, is_said):
    table = RoundTable(tmp_path / "metrics.csv")
    for round_num, number in enumerate(num_clients, start=1):
        table.append({"round": round_num, "num_clients": number})
    say_if_nobody_took_part(table)
    assert ("no client was ready within these rounds" in capsys.readouterr().out) == is_said


@pytest.mark.parametrize(
    ("accuracy", "num_clients", "said"),
    [
        (0.25, 1, "the model has learned nothing: its test accuracy is 0.2500"),  # the most frequent label's quarter
        # Two standard errors, of sqrt(0.25 * 0.75 / 100).
        (0.33, 1, "not clear whether the model has learned anything: its test accuracy is 0.3300"),
        (0.34, 1, ""),  # which end at 0.3366
        (float("nan"), 1, "the model has learned nothing: its test accuracy is nan"),
        (None, 1, ""),  # not evaluated
        (0.25, 0, ""),  # nobody took part, which is said by itself
    ],
)
def test_a_model_that_learned_nothing_is_said(tmp_path, capsys, accuracy, num_clients, said):
    table = RoundTable(tmp_path / "metrics.csv")
    table.append({"round": 1, "num_clients": num_clients, "test_accuracy": accuracy})
    say_if_nothing_was_learned(table, np.repeat(np.arange(5, dtype=np.int32), (25, 20, 20, 20, 15)))
    printed = capsys.readouterr().out
    assert said in printed and bool(printed) == bool(said)
    assert not said or "all 100 test examples the same answer reaches 0.2500" in printed
    say_if_nothing_was_learned(table, np.zeros(0, np.int32))
    assert capsys.readouterr().out == ""


NAN = float("nan")
STAYED = ", in {} of them all, so that the models stayed as they were"


@pytest.mark.parametrize(
    ("rounds", "is_all", "said"),
    [
        # (clients, rejected updates, train loss) by round
        ([(2, 0, 0.5), (2, 0, 0.4)], False, None),
        ([(2, 2, NAN), (2, 2, NAN)], True, None),  # ends with an error of its own
        ([(0, 0, NAN), (2, 4, NAN)], True, None),  # two models a client; nobody was ready before
        ([(0, 0, NAN)], False, None),  # nobody took part, which is said by itself
        (
            [(2, 1, 0.5), (2, 0, 0.4)],
            False,
            "1 updates were not finite and do not count, in 1 of 2 rounds (first in round 1);",
        ),
        (
            [(2, 0, 0.5), (2, 1, 0.4), (2, 2, NAN)],
            False,
            "3 updates were not finite and do not count, in 2 of 3 rounds (first in round 2)" + STAYED.format(1),
        ),
        ([(2, 2, 0.5)], False, "2 updates were not finite"),  # those of the teachers, while the students learn
    ],
)
def test_rejected_updates_are_said(tmp_path, make_federation, capsys, rounds, is_all, said):
    table = RoundTable(tmp_path / "metrics.csv")
    for number, (clients, rejected, loss) in enumerate(rounds, start=1):
        table.append({"round": number, "num_clients": clients, "num_rejected": rejected, "train_loss": loss})
    assert was_all_rejected(table) == is_all
    say_if_updates_were_rejected(build_run_config({"algo": "fedavg"}), table, make_federation([4]))
    printed = capsys.readouterr().out
    assert (said in printed and printed.count("\n") == 1) if said else printed == ""


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
def test_a_model_whose_outputs_are_no_numbers_is_said(tmp_path, make_federation, capsys, loss, is_said):
    """Its last step may be what made it so, after which no update can be rejected."""
    table = RoundTable(tmp_path / "metrics.csv")
    table.append({"round": 1, "num_rejected": 0, "test_loss": loss})
    config = build_run_config({"algo": "fedavg"})
    assert say_if_diverged(config, table, make_federation([4])) == is_said
    printed = capsys.readouterr().out
    assert ("the training has diverged" in printed and "lower the learning rate" in printed) == is_said
    assert printed.count("\n") == is_said


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
def test_a_model_is_held_against_the_tables(reached, expected, capsys):
    say_text_baselines(summarise(reached))
    lines = capsys.readouterr().out.splitlines()
    assert "most frequent token 0.2000" in lines[0] and lines[0].endswith("0.3000")
    assert [expected in line for line in lines[1:]] == ([True] if expected else [])


def test_nothing_is_said_of_other_runs(capsys):
    say_text_baselines({"final": {"test_accuracy": 0.5}})
    assert capsys.readouterr().out == ""


def describe_clients(reached, own=0.5):
    clients = {"accuracy_mean": reached, "majority_accuracy": own, "overall_majority_accuracy": 0.25}
    return {"clients": clients, "overall_majority_test_accuracy": 0.125}


@pytest.mark.parametrize(("reached", "is_beaten"), [(0.75, True), (0.5, False), (np.nan, False)])
def test_the_clients_models_are_held_against_their_majority_classes(reached, is_beaten, capsys):
    say_majority(describe_clients(reached), find_task_columns("classification"))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("each client's own 0.5000, that of all 0.2500 (0.1250 on the test set)")
    assert ["do not beat" in line for line in lines[1:]] == ([] if is_beaten else [True])


@pytest.mark.parametrize("summary", [{"clients": {"rmse_mean": 1.0}}, describe_clients(None, None)])
def test_nothing_is_said_of_majorities_where_none_are(summary, capsys):
    say_majority(summary, find_task_columns("classification"))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("num_test", "said"), [([0, 2, 0], "2 of 3 clients have no test"), ([0, 0, 0], ""), ([1, 2, 3], "")]
)
def test_clients_without_test_examples_are_said(make_federation, capsys, num_test, said):
    data = make_federation([4, 4, 4])
    clients = zip(data.clients, num_test, strict=True)
    say_if_clients_lack_tests(
        dataclasses.replace(data, clients=tuple(dataclasses.replace(client, num_test=n) for client, n in clients))
    )
    out = capsys.readouterr().out
    assert said in out and bool(out) == bool(said)
