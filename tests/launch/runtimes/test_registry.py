"""The rows of the runtimes, and the devices that they compute on."""

import dataclasses
import sys
from unittest import mock

import pytest

import launch
from launch.runtimes import device, registry
from launch.runtimes.device import DeviceError, use_device
from launch.runtimes.ray_runtime import split_evenly
from launch.settings import runtimes
from launch.settings.flags import FlagError
from launch.settings.run_config import build_run_config
from launch.training import run_runtime
from launch.training.run_needs import check_needs
from launch.training.run_runtime import settle_device, settle_device_again


def test_every_name_opens_a_runtime_and_a_config_its_own_with_its_options(monkeypatch, tmp_path):
    for name in runtimes.RUNTIMES:
        assert registry.open_runtime(name, str(tmp_path / "log"))  # it starts when it is entered
    opened = []
    monkeypatch.setattr(run_runtime, "open_runtime", lambda *arguments, **graphs: opened.append(arguments))
    for options in ({}, {"runtime": "ray", "ray_address": "a:1"}):
        run_runtime.open_run_runtime(build_run_config({"algo": "fedavg", **options}), "x.log")
    assert opened == [("in_process", "x.log", "cpu", "", 16), ("ray", "x.log", "cpu", "a:1", 16)]
    assert [split_evenly("abcdefg", 3), split_evenly("ab", 5), split_evenly([], 5)] == [
        ["ab", "cd", "efg"],
        ["a", "b"],
        [],
    ]


def test_graphs_are_kept_by_commands_and_of_our_own_code_alone(monkeypatch):
    opened = []
    monkeypatch.setattr(run_runtime, "open_runtime", lambda *arguments, graph_dir: opened.append(graph_dir))
    monkeypatch.setattr(run_runtime, "default_graph_dir", lambda: "graphs")
    config = build_run_config({"algo": "fedavg"})
    for is_command, own in ((False, {}), (True, {}), (True, {"model": "nets:build"}), (True, {"dataset": "mine:DATA"})):
        monkeypatch.setattr(launch, "IS_COMMAND", is_command)
        run_runtime.open_run_runtime(dataclasses.replace(config, **own), "x.log")
    assert opened == ["", "graphs", "", ""]


@pytest.fixture
def pretend(monkeypatch):
    """A function (number of GPUs) that puts a stand-in in TensorFlow's place; returns its `config`."""

    def put(num_gpus):
        fake = mock.Mock()
        fake.config.list_physical_devices.return_value = fake.config.get_visible_devices.return_value = [
            f"gpu {i}" for i in range(num_gpus)
        ]
        monkeypatch.setitem(sys.modules, "tensorflow", fake)
        return fake.config

    return put


@pytest.mark.parametrize("device", ["gpu", "auto"])
def test_a_gpu_is_used_repeatably_and_not_filled_at_once(pretend, device):
    config = pretend(2)
    assert use_device(device) == "gpu"
    assert config.experimental.mock_calls == [
        *(mock.call.set_memory_growth(f"gpu {i}", True) for i in range(2)),
        mock.call.enable_op_determinism(),
    ]
    config.set_visible_devices.assert_not_called()


def test_on_the_cpu_no_gpu_is_seen_and_one_in_use_cannot_be_hidden(pretend):
    assert pretend(0) and use_device("auto") == use_device("cpu") == "cpu"
    config = pretend(1)
    assert use_device("cpu") == "cpu"
    config.set_visible_devices.assert_called_once_with([], "GPU")
    config.set_visible_devices.side_effect = RuntimeError("cannot be modified after being initialized")
    with pytest.raises(DeviceError, match="start another"):
        use_device("cpu")


def test_without_a_driver_no_gpu_is_asked_for_and_whatever_may_lead_to_one_is_left_to_tensorflow(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    drivers = mock.Mock(side_effect=OSError)
    monkeypatch.setattr(device.ctypes, "CDLL", drivers)
    monkeypatch.setattr(device.glob, "glob", lambda pattern: [])
    assert not device.may_have_gpu()
    config = build_run_config({"algo": "fedavg", "device": "gpu"})
    with pytest.raises(FlagError, match=r"^--device=gpu: TensorFlow sees no GPU here"):
        check_needs(config)
    drivers.side_effect = None  # as where only the driver's library tells of it
    assert device.may_have_gpu()
    drivers.side_effect = OSError
    monkeypatch.setattr(device.glob, "glob", lambda pattern: ["/dev/nvidia0"] if "nvidia" in pattern else [])
    assert device.may_have_gpu()
    monkeypatch.undo()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert device.may_have_gpu()


def test_a_gpu_that_is_not_there_is_one_line(pretend):
    pretend(0)
    config = build_run_config({"algo": "fedavg", "runtime": "in_process", "device": "gpu"})
    with pytest.raises(FlagError, match=r"^--device=gpu: TensorFlow sees no GPU here; .* give --device=cpu$"):
        settle_device(config)
    assert settle_device_again(config).device == "cpu"  # the models of a finished run may be looked at anywhere
