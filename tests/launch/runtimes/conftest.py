"""What tests of runtimes share: programs that an ordinary user runs."""

import os
import pathlib
import shutil
import tempfile

import numpy as np
import pytest

ORDINARY_USER = 12345


@pytest.fixture(params=[pytest.param("our user", marks=pytest.mark.slow), "an ordinary user"])
def as_user(request):
    """What stands before a command, so that our user runs it, or one without any right but to read all files.

    That right is needed where Python lies in root's home. It does not help to make namespaces.
    """
    if request.param == "our user" or os.getuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("needs setpriv of util-linux to become somebody else")
    user = [f"--reuid={ORDINARY_USER}", f"--regid={ORDINARY_USER}", "--clear-groups"]
    rights = [
        "--inh-caps=-all,+dac_read_search",
        "--ambient-caps=+dac_read_search",
        "--bounding-set=-all,+dac_read_search",
    ]
    return ["setpriv", *user, *rights]


@pytest.fixture
def open_folder():
    """A folder that everybody may enter and write to; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o777)
        yield folder


@pytest.fixture(scope="session")
def run_for_ever():
    """A federated computation of numbers that does not end."""
    import tensorflow as tf
    import tensorflow_federated as tff

    @tff.tensorflow.computation(np.float32)
    def never_end(x):
        return tf.while_loop(lambda x: x < 2.0, lambda x: (tf.sin(x),), (x,))[0]

    @tff.federated_computation(tff.FederatedType(np.float32, tff.CLIENTS))
    def run(values):
        return tff.federated_sum(tff.federated_map(never_end, values))

    return run
