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


@pytest.mark.parametrize("path", sorted(ROOT.glob("*.lock")), ids=lambda path: path.name)
def test_a_lock_names_no_address(path):
    assert "://" not in path.read_text()
