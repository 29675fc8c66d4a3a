"""The locks: what they hold beside each other, and that they name no place to download from."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[1]


def read_versions(name: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9][a-z0-9.-]*)==(\S+)", (ROOT / name).read_text(), re.MULTILINE))


def test_a_gpu_adds_cuda_and_changes_nothing_else():
    plain, gpu = read_versions("requirements.lock"), read_versions("requirements-gpu.lock")
    assert len(plain) > 50
    assert {name: gpu.get(name) for name in plain} == plain
    added = gpu.keys() - plain.keys()
    assert added and all(name.startswith("nvidia-") for name in added)


def test_ray_comes_on_top_and_changes_nothing_else():
    plain, ray = read_versions("requirements.lock"), read_versions("requirements-ray.lock")
    assert {name: plain[name] for name in ray.keys() & plain.keys()} == {
        name: ray[name] for name in ray.keys() & plain.keys()
    }
    assert len(ray.keys() - plain.keys()) == 9
    assert f'"ray=={ray["ray"]}"' in (ROOT / "setup.py").read_text()


def test_optuna_comes_on_top_and_changes_nothing_else():
    plain, tune = read_versions("requirements.lock"), read_versions("requirements-tune.lock")
    assert {name: plain[name] for name in tune.keys() & plain.keys()} == {
        name: tune[name] for name in tune.keys() & plain.keys()
    }
    assert "optuna" in tune.keys() - plain.keys()
    assert f'"optuna=={tune["optuna"]}"' in (ROOT / "setup.py").read_text()


def test_the_completion_of_a_shell_is_pinned_as_the_extra_says():
    completion = read_versions("requirements-completion.lock")
    assert completion.keys() == {"argcomplete"}
    assert f'"argcomplete=={completion["argcomplete"]}"' in (ROOT / "setup.py").read_text()


@pytest.mark.parametrize("path", sorted(ROOT.glob("*.lock")), ids=lambda path: path.name)
def test_a_lock_names_no_address(path):
    assert "://" not in path.read_text()
