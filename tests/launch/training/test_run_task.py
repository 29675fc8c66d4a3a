"""The task of a run, from its data and its flags; and what does not go with it, one line."""

import pytest
from small_formats import change_format

from datasets.example_format import LabelFormat
from launch.settings.run_config import build_run_config
from launch.training.announcements import describe_outputs, find_largest_input
from launch.training.federation import build_run_task
from launch.training.training_run import check_task
from tff_algos.settings.config_fields import ConfigError

REGRESSION = LabelFormat("regression", (), 1, (10.0,), (5.0,))
FORMATS = {
    "classification": LabelFormat(),
    "multi_label": LabelFormat("multi_label", (3,), 3),
    "regression": REGRESSION,
    "next_token": LabelFormat("next_token", (4,), 30, padding=-1, oov=1),
}


@pytest.fixture
def make_data(make_federation):
    """(task) -> a federation whose labels are said to be of it."""
    federation = make_federation([4, 6])

    def make(task):
        names = federation.format.class_names if task in ("classification", "multi_label") else ()
        return change_format(federation, labels=FORMATS[task], class_names=names)

    return make


def make_config(**flags):
    return build_run_config({"algo": "fedavg", "dataset": "npz", "npz": "my.npz", "partition": "iid", **flags})


@pytest.mark.parametrize("name", FORMATS)
def test_the_task_of_a_run_is_that_of_its_data(make_data, name):
    data = make_data(name)
    task = build_run_task(make_config(), data.format)
    assert (task.kind.name, task.num_outputs, task.label_shape) == (
        name,
        data.format.num_outputs,
        data.format.labels.shape,
    )
    assert (task.label_offset, task.label_scale) == (data.format.labels.offset, data.format.labels.scale)
    assert (task.padding_label, task.oov_label) == (data.format.labels.padding, data.format.labels.oov)


def test_the_loss_is_that_of_the_flags(make_data):
    example_format = make_data("regression").format
    assert build_run_task(make_config(), example_format).loss == "squared"
    task = build_run_task(make_config(loss="huber", huber_delta=0.25), example_format)
    assert (task.loss, task.huber_delta) == ("huber", 0.25)


@pytest.mark.parametrize(
    ("task", "flags", "message"),
    [
        ("regression", {"target_accuracy": 0.5}, "expected 0, since the task is regression; give --target_metric"),
        (
            "multi_label",
            {"loss": "absolute"},
            "loss=absolute: expected auto or cross_entropy for the task multi-label",
        ),
        ("classification", {"loss": "squared"}, "loss=squared: expected auto or cross_entropy"),
    ],
)
def test_what_the_task_does_not_have_is_one_line(make_data, task, flags, message):
    with pytest.raises(ConfigError) as error:
        check_task(make_config(**flags), make_data(task))
    assert message in str(error.value)


def test_what_the_task_has_is_taken(make_data):
    check_task(make_config(target_accuracy=0.5), make_data("classification"))
    check_task(make_config(target_metric=50.0, loss="absolute"), make_data("regression"))


def test_the_line_on_the_data_says_what_a_model_tells(make_data):
    told = [describe_outputs(make_data(name)) for name in FORMATS]
    assert told == ["3 classes", "3 labels, of which each has any", "a number to tell", "a vocabulary of 30 tokens"]


def test_tokens_are_no_large_numbers(make_data):
    assert find_largest_input(change_format(make_data("next_token"), input_dtype="uint8", takes_tokens=True)) == 0
