"""The rows of the runtimes, and the devices that they compute on."""

import dataclasses
import sys
from types import SimpleNamespace

import pytest

import launch
from launch.runtimes import registry
from launch.runtimes.device import DeviceError, use_device
from launch.settings import runtimes
from launch.settings.flags import FlagError
from launch.settings.run_config import build_run_config
from launch.training import run_runtime
from launch.training.run_runtime import settle_device, settle_device_again


def test_every_name_opens_a_runtime(tmp_path):
    for name in runtimes.RUNTIMES:
        assert registry.open_runtime(name, str(tmp_path / "log"))  # it starts when it is entered
    with pytest.raises(ValueError, match="no runtime is called spark"):
        registry.open_runtime("spark", str(tmp_path / "log"))


def test_a_config_opens_its_runtime_with_its_options(monkeypatch):
    opened = []
    monkeypatch.setattr(run_runtime, "open_runtime", lambda *arguments, **graphs: opened.append(arguments))
    run_runtime.open_run_runtime(build_run_config({"algo": "fedavg"}), "x.log")
    config = build_run_config({"algo": "fedavg", "runtime": "ray", "ray_address": "a:1"})
    run_runtime.open_run_runtime(config, "x.log")
    assert opened == [("in_process", "x.log", "cpu", "", 16), ("ray", "x.log", "cpu", "a:1", 16)]


def test_graphs_are_kept_by_commands_and_of_our_own_code_alone(monkeypatch):
    opened = []
    monkeypatch.setattr(run_runtime, "open_runtime", lambda *arguments, graph_dir: opened.append(graph_dir))
    monkeypatch.setattr(run_runtime, "default_graph_dir", lambda: "graphs")
    config = build_run_config({"algo": "fedavg"})
    for is_command, own in ((False, {}), (True, {}), (True, {"model": "nets:build"}), (True, {"dataset": "mine:DATA"})):
        monkeypatch.setattr(launch, "IS_COMMAND", is_command)
        run_runtime.open_run_runtime(dataclasses.replace(config, **own), "x.log")
    assert opened == ["", "graphs", "", ""]


class FakeTensorFlow:
    """As much of `tf.config` as choosing a device needs."""

    def __init__(self, num_gpus: int, is_initialized: bool = False):
        self.gpus = [f"gpu {i}" for i in range(num_gpus)]
        self.visible, self.growing, self.is_deterministic = list(self.gpus), [], False
        self.is_initialized = is_initialized
        experimental = SimpleNamespace(
            set_memory_growth=lambda gpu, grows: self.growing.append(gpu),
            enable_op_determinism=lambda: setattr(self, "is_deterministic", True),
        )
        self.config = SimpleNamespace(
            list_physical_devices=lambda kind: self.gpus,
            get_visible_devices=lambda kind: self.visible,
            set_visible_devices=self.set_visible,
            experimental=experimental,
        )

    def set_visible(self, devices, kind):
        if self.is_initialized:
            raise RuntimeError("Visible devices cannot be modified after being initialized")
        self.visible = list(devices)


@pytest.fixture
def pretend(monkeypatch):
    """A function that puts a fake TensorFlow in place of the real one."""

    def put(*arguments):
        fake = FakeTensorFlow(*arguments)
        monkeypatch.setitem(sys.modules, "tensorflow", fake)
        return fake

    return put


@pytest.mark.parametrize("device", ["gpu", "auto"])
def test_a_gpu_is_used_repeatably_and_not_filled_at_once(pretend, device):
    fake = pretend(2)
    assert use_device(device) == "gpu"
    assert (fake.growing, fake.is_deterministic, fake.visible) == (fake.gpus, True, fake.gpus)


@pytest.mark.parametrize(("device", "num_gpus"), [("cpu", 0), ("cpu", 1), ("auto", 0)])
def test_on_the_cpu_no_gpu_is_seen(pretend, device, num_gpus):
    fake = pretend(num_gpus)
    assert use_device(device) == "cpu"
    assert (fake.visible, fake.is_deterministic) == ([], False)


def test_a_gpu_in_use_cannot_be_hidden(pretend):
    pretend(1, True)
    with pytest.raises(DeviceError, match="start another"):
        use_device("cpu")


def test_a_gpu_that_is_not_there_is_one_line(pretend):
    pretend(0)
    config = build_run_config({"algo": "fedavg", "runtime": "in_process", "device": "gpu"})
    with pytest.raises(FlagError, match=r"^--device=gpu: TensorFlow sees no GPU here; .* give --device=cpu$"):
        settle_device(config)
    assert settle_device_again(config).device == "cpu"  # the models of a finished run may be looked at anywhere
