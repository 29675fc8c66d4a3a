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


def test_tensorboards_tab_of_hyperparameters_sees_the_runs_of_a_sweep(tmp_path):
    """Read by TensorBoard's own code, as it reads the folder that `--logdir` names."""
    for seed, rate in enumerate((0.1, 0.2)):
        run_dir = tmp_path / f"seed_{seed}"
        table = RoundTable(run_dir / "metrics.csv")
        flags = {"algo": "fedavg", "seed": seed, "rate": rate, "smoke": False, "rounds": 1, "sizes": (1, 2)}
        log = TensorBoardLog(run_dir / "tensorboard", table, {**flags, "run_dir": str(run_dir), "resume": True})
        table.append({"round": 1, "test_accuracy": 0.5 + rate})
        log.update()
        log.close()
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
