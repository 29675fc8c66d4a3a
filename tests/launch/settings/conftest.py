"""What the tests of settings share: command lines that are refused, and run folders with nothing but their flags."""

import json

import pytest

from launch.settings.flags import FlagError, parse_config
from launch.settings.run_config import build_run_config, flag_values


@pytest.fixture
def refuse():
    """(arguments, function that reads them) -> the one line that they are answered with."""

    def read(arguments, function=parse_config):
        with pytest.raises(FlagError) as caught:
            function(arguments.split() if isinstance(arguments, str) else arguments)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    return read


@pytest.fixture
def store_run(tmp_path):
    """(flags, those that its version did not know, further ones) -> the arguments that resume a run with them."""

    def store(values, lacking=(), **further):
        flags = flag_values(build_run_config({"algo": "fedavg", **values})) | further
        stored = {name: value for name, value in flags.items() if name not in lacking}
        (tmp_path / "run").mkdir(exist_ok=True)
        (tmp_path / "run" / "config.json").write_text(json.dumps({"flags": stored, "data": {}}))
        return ["--resume", f"--run_dir={tmp_path / 'run'}"]

    return store
