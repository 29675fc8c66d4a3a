"""The container and the dev container are small and set up by `make`. No test builds them, which takes a registry."""

import json
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
DEV_CONTAINER = ROOT / ".devcontainer" / "devcontainer.json"
MOST_LINES = 24


def test_the_container_is_small_set_up_by_make_not_as_root_and_has_no_environment_of_this_machine():
    lines = DOCKERFILE.splitlines()
    assert len(lines) <= MOST_LINES
    assert lines.index("USER 1000") < lines.index("COPY --chown=suite . .") < lines.index("RUN make setup")
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert {"setup", "train"} == set(re.findall(r'make[", ]+([\w-]+)', DOCKERFILE)) <= set(targets)
    ignored, of_git = ((ROOT / name).read_text(encoding="utf-8").split() for name in (".dockerignore", ".gitignore"))
    folders = {name.strip("/") for name in of_git if name.endswith("/") and "*" not in name and "pycache" not in name}
    assert {".venv*", *folders} <= set(ignored)


def test_the_dev_container_is_the_same_one_with_the_checkout_mounted():
    text = DEV_CONTAINER.read_text(encoding="utf-8")
    described = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))  # JSON of dev containers has comments
    assert len(text.splitlines()) <= MOST_LINES
    assert described["postCreateCommand"] == "make setup"
    assert f"AS {described['build']['target']}\n" in DOCKERFILE and f" {described['remoteUser']} " in DOCKERFILE
    assert (DEV_CONTAINER.parent / described["build"]["dockerfile"]).resolve() == ROOT / "Dockerfile"
