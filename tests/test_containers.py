"""The container and the dev container are small and set up by `make`. No test builds them, which takes a registry."""

import json
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
DEV_CONTAINER = ROOT / ".devcontainer" / "devcontainer.json"
MOST_LINES = 24


@pytest.fixture
def dev_container():
    """What its file says, without the comments that JSON of dev containers may have."""
    return json.loads(re.sub(r"^\s*//.*$", "", DEV_CONTAINER.read_text(encoding="utf-8"), flags=re.MULTILINE))


def test_both_are_small():
    assert len(DOCKERFILE.splitlines()) <= MOST_LINES
    assert len(DEV_CONTAINER.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def test_the_container_is_set_up_by_make_and_not_as_root():
    lines = DOCKERFILE.splitlines()
    assert lines.index("USER 1000") < lines.index("COPY --chown=suite . .") < lines.index("RUN make setup")
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert {"setup", "train"} == set(re.findall(r'make[", ]+([\w-]+)', DOCKERFILE)) <= set(targets)


def test_the_dev_container_is_the_same_one_with_the_checkout_mounted(dev_container):
    assert dev_container["postCreateCommand"] == "make setup"
    assert f"AS {dev_container['build']['target']}\n" in DOCKERFILE
    assert f" {dev_container['remoteUser']} " in DOCKERFILE
    assert (DEV_CONTAINER.parent / dev_container["build"]["dockerfile"]).resolve() == ROOT / "Dockerfile"


def test_no_environment_of_this_machine_gets_into_the_container():
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    of_git = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    folders = {name.strip("/") for name in of_git if name.endswith("/") and "*" not in name and "pycache" not in name}
    assert {".venv*", *folders} <= set(ignored)
