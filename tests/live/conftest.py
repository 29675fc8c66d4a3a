"""Live rounds over sockets: collected where they are asked for, as by `make test-live`, and not by `make test`."""

import os
import pathlib

import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]


def pytest_ignore_collect(collection_path, config):
    named = [pathlib.Path(argument.split("::")[0]) for argument in config.args]
    is_named = any((config.invocation_params.dir / path).resolve().is_relative_to(HERE) for path in named)
    return None if is_named else True


@pytest.fixture(scope="session")
def live_python():
    """The Python of a client: it has ai-edge-litert, NumPy and aiohttp."""
    path = pathlib.Path(os.environ.get("LIVE_PYTHON", ROOT / ".venv-live" / "bin" / "python"))
    if not path.exists():
        pytest.skip(f"{path}: run make test-live, which makes it")
    return str(path)
