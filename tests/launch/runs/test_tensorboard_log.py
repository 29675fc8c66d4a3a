"""TensorBoard shows what the metrics table says, also after a resume."""

import pathlib

import pytest
import tensorflow as tf

from launch.runs.round_table import RoundTable
from launch.runs.tensorboard_log import TensorBoardLog


def read_scalars(path: pathlib.Path):
    files = sorted(path.glob("events.*"))
    events = [event for file in files for event in tf.compat.v1.train.summary_iterator(str(file))]
    return [
        (value.tag, event.step, round(float(tf.make_ndarray(value.tensor)), 6))
        for event in events
        for value in event.summary.value
    ]


def test_rows_become_scalars_and_a_resume_replaces_them(tmp_path):
    table = RoundTable(tmp_path / "metrics.csv")
    log = TensorBoardLog(tmp_path / "tensorboard", table)
    for round_num in (1, 2, 3):
        table.append({"round": round_num, "test_loss": round_num / 2, "test_accuracy": None})
        log.update()
    log.close()
    assert read_scalars(tmp_path / "tensorboard") == [
        ("test_loss", 1, 0.5),
        ("test_loss", 2, 1.0),
        ("test_loss", 3, 1.5),
    ]
    TensorBoardLog(tmp_path / "tensorboard", RoundTable(tmp_path / "metrics.csv", last_round=2)).close()
    assert read_scalars(tmp_path / "tensorboard") == [("test_loss", 1, 0.5), ("test_loss", 2, 1.0)]


@pytest.mark.parametrize(
    ("error", "reason"),
    [(tf.errors.ResourceExhaustedError, "No space left on device"), (tf.errors.PermissionDeniedError, "Input/output")],
)
def test_a_disk_that_takes_no_more_is_an_error_of_the_system_with_a_name(tmp_path, monkeypatch, error, reason):
    log = TensorBoardLog(tmp_path / "tensorboard", RoundTable(tmp_path / "metrics.csv"))

    def fail(writer):
        raise error(None, None, "two\nlines")

    monkeypatch.setattr(type(log._writer), "flush", fail)
    with pytest.raises(OSError, match=reason) as raised:
        log.update()
    assert raised.value.filename == str(tmp_path / "tensorboard")
