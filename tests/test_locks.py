"""The locks: what they hold beside each other, and that they name no place to download from."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[1]


def read_versions(name: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9][a-z0-9.-]*)==(\S+)", (ROOT / name).read_text(), re.MULTILINE))


def read_plain() -> tuple[dict[str, str], str]:
    """The versions of requirements.lock but for that of TensorFlow, and that: other locks have it by another name."""
    plain = read_versions("requirements.lock")
    assert len(plain) > 50
    return plain, plain.pop("tensorflow-cpu")


def test_a_gpu_takes_the_tensorflow_with_cuda_and_changes_nothing_else():
    plain, tensorflow = read_plain()
    gpu = read_versions("requirements-gpu.lock")
    assert gpu.pop("tensorflow") == tensorflow
    added = gpu.keys() - plain.keys()
    assert added and all(name.startswith("nvidia-") for name in added)
    assert {name: gpu[name] for name in gpu.keys() - added} == plain


@pytest.mark.parametrize(
    ("name", "further"),
    [("requirements-linux-aarch64.lock", "tensorflow-cpu-aws"), ("requirements-macos-arm64.lock", "tensorflow-macos")],
)
def test_another_platform_has_the_same_versions(name, further):
    """There the distribution `tensorflow` has no files of its own, and asks for one that has them."""
    plain, tensorflow = read_plain()
    assert read_versions(name) == plain | {"tensorflow": tensorflow, further: tensorflow}


@pytest.mark.parametrize("path", sorted(ROOT.glob("requirements*.lock")), ids=lambda path: path.name)
def test_tff_is_in_its_own_lock_alone_and_jax_in_none(path):
    """A lock that had TFF would give its worker to whoever installs it by pip alone."""
    versions = read_versions(path.name)
    assert not {"jax", "jaxlib"} & versions.keys()
    of_tff = {"tensorflow-federated": "0.87.0"}
    assert (versions == of_tff) if path.name == "requirements-tff.lock" else not of_tff.keys() & versions.keys()


@pytest.mark.parametrize(("name", "added"), [("ray", "ray"), ("tune", "optuna"), ("completion", "argcomplete")])
def test_an_extra_comes_on_top_as_setup_py_pins_it_and_changes_nothing_else(name, added):
    plain, extra = read_versions("requirements.lock"), read_versions(f"requirements-{name}.lock")
    assert added in extra.keys() - plain.keys() and f'"{added}=={extra[added]}"' in (ROOT / "setup.py").read_text()
    assert plain | extra == extra | plain


@pytest.mark.parametrize("path", sorted(ROOT.glob("*.lock")), ids=lambda path: path.name)
def test_a_lock_names_no_address_and_that_of_tff_a_single_file(path):
    """`tff_package.py` knows this file, whose content it changes."""
    text = path.read_text()
    assert "://" not in text and (path.name != "requirements-tff.lock" or text.count("--hash=sha256:") == 1)
