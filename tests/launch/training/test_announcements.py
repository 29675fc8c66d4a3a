"""What a run says is true of its data and of its rounds."""

import dataclasses

import numpy as np
import pytest

from launch.runs.round_table import RoundTable
from launch.runs.run_description import describe_data
from launch.runs.run_folder import RunFolder
from launch.settings.run_config import build_run_config
from launch.training.announcements import (
    advise_on_rejected,
    announce_data,
    say_if_nobody_took_part,
    say_if_nothing_was_learned,
    say_if_updates_were_rejected,
    was_all_rejected,
)


def test_the_name_of_a_subset_is_said_and_written(tmp_path, make_federation, capsys):
    data = dataclasses.replace(make_federation([4]), dataset="cifar10 subset (4 + 1 images)")
    folder = RunFolder(tmp_path, is_new=True)
    announce_data(build_run_config({"algo": "fedavg", "dataset": "cifar10"}), folder, data)
    folder.close()
    assert "data     cifar10 subset (4 + 1 images): 4 train and" in capsys.readouterr().out
    assert describe_data(data)["dataset"] == "cifar10 subset (4 + 1 images)"


@pytest.mark.parametrize(("most", "is_said"), [(0, False), (1, True), (2, False), (1000, False)])
def test_a_sample_of_the_clients_is_announced(tmp_path, make_federation, capsys, most, is_said):
    folder = RunFolder(tmp_path, is_new=True)
    config = build_run_config({"algo": "fedavg", "evaluated_clients": most})
    announce_data(config, folder, make_federation([4, 4]))
    folder.close()
    assert ("examples each; 1 are evaluated in rounds, all at the end" in capsys.readouterr().out) == is_said


@pytest.mark.parametrize(("num_clients", "is_said"), [((0, 0), True), ((0, 2), False)])
def test_a_run_in_which_nobody_took_part_says_so(tmp_path, capsys, num_clients, is_said):
    table = RoundTable(tmp_path / "metrics.csv")
    for round_num, number in enumerate(num_clients, start=1):
        table.append({"round": round_num, "num_clients": number})
    say_if_nobody_took_part(table)
    assert ("no client was ready within these rounds" in capsys.readouterr().out) == is_said


@pytest.mark.parametrize(
    ("accuracy", "num_clients", "is_said"),
    [
        (0.25, 1, True),  # always the most frequent label, a quarter of these
        (0.33, 1, True),  # two standard errors, of sqrt(0.25 * 0.75 / 100), end at 0.3366
        (0.34, 1, False),
        (float("nan"), 1, True),
        (None, 1, False),  # not evaluated
        (0.25, 0, False),  # nobody took part, which is said by itself
    ],
)
def test_a_model_that_learned_nothing_is_said(tmp_path, capsys, accuracy, num_clients, is_said):
    table = RoundTable(tmp_path / "metrics.csv")
    table.append({"round": 1, "num_clients": num_clients, "test_accuracy": accuracy})
    say_if_nothing_was_learned(table, np.repeat(np.arange(5, dtype=np.int32), (25, 20, 20, 20, 15)))
    printed = capsys.readouterr().out
    assert ("the same answer (0.2500): the model has learned nothing" in printed) == is_said
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
    config = build_run_config({"algo": "fedavg", "fedavg_learning_rate": 7.0})
    data = make_federation([4])
    assert advise_on_rejected(config, data) == (
        "lower the learning rate (--fedavg_learning_rate=7, --fedavg_server_learning_rate=1)"
    )
    far = dataclasses.replace(data.preprocessing, offset=1e6)
    assert advise_on_rejected(config, dataclasses.replace(data, preprocessing=far)).startswith(
        "the examples have numbers up to 1e+06: standardise them"
    )
