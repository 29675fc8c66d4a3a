"""A finished run as it is read back."""

from types import SimpleNamespace

from launch.training.finished_run import FinishedRun


def test_a_saved_model_is_of_the_architecture_that_its_clients_name(tmp_path):
    specs = {name: SimpleNamespace(name=name) for name in ("small", "large", "teacher")}
    spec = SimpleNamespace(name="small", peers=(specs["large"],), teacher=specs["teacher"])
    architectures = {"client_0": "small", "client_1": "large", "client_2": "of another version"}
    run = FinishedRun(tmp_path, None, {}, {}, frozenset({"t"}), 1, architectures=architectures)
    assert run.choose_spec(spec, "client_1") is specs["large"] and run.choose_spec(spec, "t") is specs["teacher"]
    assert all(run.choose_spec(spec, name) is spec for name in ("client_0", "client_2", "global"))
