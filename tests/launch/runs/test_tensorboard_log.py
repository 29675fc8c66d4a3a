"""TensorBoard shows what the metrics table says, also after a resume."""

import pathlib
import sys

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


def test_rows_become_scalars_what_these_cannot_hold_is_infinite_and_a_resume_replaces_them(tmp_path):
    table = RoundTable(tmp_path / "metrics.csv")
    log = TensorBoardLog(tmp_path / "tensorboard")
    for round_num, loss in enumerate((0.5, 1.0, 1e39), 1):
        table.append({"round": round_num, "test_loss": loss, "test_accuracy": None})
        log.add(table.columns, [table.last_row])
    expected = [("test_loss", 1, 0.5), ("test_loss", 2, 1.0), ("test_loss", 3, float("inf"))]
    assert read_scalars(tmp_path / "tensorboard") == expected
    resumed = RoundTable(tmp_path / "metrics.csv", last_round=2)
    TensorBoardLog(tmp_path / "tensorboard", resumed.columns, resumed.iterate_rows())
    assert read_scalars(tmp_path / "tensorboard") == expected[:2]


def test_a_disk_that_takes_no_more_is_an_error_with_a_name(tmp_path):
    log = TensorBoardLog(tmp_path / "tensorboard")
    [file] = (tmp_path / "tensorboard").iterdir()
    file.unlink()
    file.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device") as raised:
        log.add(["round", "loss"], [["1", "0.5"]])
    assert raised.value.filename == str(file)


def test_numbers_leave_no_tensors_behind(tmp_path):
    """By `tf.summary` each of these numbers left ten blocks of memory behind, and made the round slower."""
    log, columns = TensorBoardLog(tmp_path / "tensorboard"), ["round", *map(str, range(10))]
    rows = [[str(round_num), *(str(round_num / (i + 3)) for i in range(10))] for round_num in range(1, 201)]
    log.add(columns, rows)  # what is made once
    before = sys.getallocatedblocks()
    for row in rows:
        log.add(columns, [row])
    assert sys.getallocatedblocks() - before < 5 * len(rows)  # of 20,000; other threads make some as well


def test_tensorboards_tab_of_hyperparameters_sees_the_runs_of_a_sweep(tmp_path):
    """Read by TensorBoard's own code, as it reads the folder that `--logdir` names."""
    for seed, rate in enumerate((0.1, 0.2)):
        run_dir = tmp_path / f"seed_{seed}"
        flags = {"algo": "fedavg", "seed": seed, "rate": rate, "smoke": False, "rounds": 1, "sizes": (1, 2)}
        log = TensorBoardLog(run_dir / "tensorboard", flags={**flags, "run_dir": str(run_dir), "resume": True})
        log.add(["round", "test_accuracy"], [["1", str(0.5 + rate)]])
    found = read_session_groups(tmp_path)
    assert [group["hparams"] for group in found] == [
        {"algo": "fedavg", "seed": seed, "rate": rate, "smoke": False, "rounds": 1, "sizes": "(1, 2)"}
        for seed, rate in enumerate((0.1, 0.2))
    ]
    assert [group["metrics"]["test_accuracy"] for group in found] == [pytest.approx(0.6), pytest.approx(0.7)]


def read_session_groups(folder):
    """The hyperparameters and last metrics of each run, as the plugin HParams would show them."""
    from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
    from tensorboard.context import RequestContext
    from tensorboard.plugins.base_plugin import TBContext
    from tensorboard.plugins.hparams import api_pb2, backend_context, list_session_groups

    multiplexer = plugin_event_multiplexer.EventMultiplexer().AddRunsFromDirectory(str(folder))
    multiplexer.Reload()
    provider = data_provider.MultiplexerDataProvider(multiplexer, str(folder))
    context = backend_context.Context(TBContext(data_provider=provider, multiplexer=multiplexer))
    request = api_pb2.ListSessionGroupsRequest(
        allowed_statuses=[api_pb2.STATUS_UNKNOWN],  # which TensorBoard's page asks for, too
        start_index=0,
        slice_size=10,
    )
    response = list_session_groups.Handler(RequestContext(), context, "", request).run()
    groups = sorted(response.session_groups, key=lambda group: group.hparams["seed"].number_value)
    return [
        {
            "hparams": {name: _read_value(value) for name, value in group.hparams.items()},
            "metrics": {value.name.tag: value.value for value in group.metric_values},
        }
        for group in groups
    ]


def _read_value(value):
    return getattr(value, value.WhichOneof("kind"))
