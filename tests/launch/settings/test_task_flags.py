"""The flags of the task: where they do something, and what a run of an earlier version did."""

import pytest

from launch.settings.data_flags import HUBER
from launch.settings.flags import parse_config, read_stored_flags
from launch.settings.run_config import build_run_config, find_idle
from models.task_kinds import LOSSES, TASK_NAMES

OWN = ["--algo=fedavg", "--dataset=npz", "--npz=my.npz", "--partition=iid"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--algo=fedavg", "--dataset=digits", "--task=binary"], "--task: does nothing with --dataset=digits"),
        (
            ["--algo=fedavg", "--loss=hubert"],
            "--loss=hubert: expected one of auto, cross_entropy, squared, absolute, huber, "
            "or your own as module:function",
        ),
        ([*OWN, "--task=ranking"], "--task=ranking: expected one of auto, classification, binary"),
        ([*OWN, "--huber_delta=2"], "--huber_delta: does nothing with --loss=auto; leave it out, or give --loss=huber"),
        ([*OWN, "--loss=huber", "--huber_delta=0"], "--huber_delta=0: expected a number above 0"),
        ([*OWN, "--channel_axis"], "--channel_axis: does nothing with --model=auto"),
        ([*OWN, "--target_metric=-1"], "--target_metric=-1: expected a number at least 0"),
        ([*OWN, "--target_metric=1", "--target_accuracy=0.5"], "either --target_accuracy or --target_metric, not both"),
        (
            [*OWN, "--target_metric=9", "--dp_epsilon=2", "--client_weighting=equal"],
            "0 with private updates: a result without noise",
        ),
    ],
)
def test_a_wrong_request_is_one_line(refuse, arguments, message):
    assert message in refuse(arguments)


def test_the_choices_are_those_of_the_tasks():
    for name in TASK_NAMES:
        assert parse_config([*OWN, f"--task={name}"]).task == name
    assert HUBER in LOSSES
    assert parse_config([*OWN, "--loss=huber", "--huber_delta=0.5"]).huber_delta == 0.5


LATER = ("task", "loss", "huber_delta", "class_weights", "channel_axis", "target_metric")


def test_an_old_run_classified_and_gave_own_models_the_axis_of_the_channel(store_run, tmp_path):
    own = {"dataset": "npz", "npz": "my.npz", "model": "models.perceptron:build_perceptron"}
    resume = store_run({"partition": "iid", **own}, LATER)
    stored = read_stored_flags(str(tmp_path / "run"))
    assert (stored["task"], stored["loss"], stored["channel_axis"]) == ("classification", "auto", True)
    resumed = parse_config([*resume, "--rounds=30"])
    assert (resumed.task, resumed.channel_axis, resumed.target_metric) == ("classification", True, 0)
    assert parse_config([*OWN, "--model=models.perceptron:build_perceptron"]).channel_axis is False


def test_an_old_run_of_ours_is_like_a_new_one_and_its_target_may_change(store_run, tmp_path):
    resume = store_run({"partition": "iid", "dataset": "digits"}, LATER)
    stored = read_stored_flags(str(tmp_path / "run"))
    assert not {"task", "channel_axis"} & stored.keys()
    assert (stored["loss"], stored["class_weights"]) == ("auto", "none")
    assert {"task", "huber_delta", "channel_axis"} <= find_idle(build_run_config(stored)).keys()
    assert parse_config([*resume, "--target_metric=0.9"]).target_metric == 0.9
