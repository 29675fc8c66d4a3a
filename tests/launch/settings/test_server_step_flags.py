"""The flags of the server's step: which do something, and what runs of earlier versions mean by those they have."""

import json

import pytest

from launch.runs.run_records import list_other_settings
from launch.settings.flags import read_stored_flags
from launch.settings.run_config import build_run_config
from tff_algos.settings.aggregation import ServerStepConfig

NEW_FLAGS = ("optimizer", "momentum", "nesterov", "beta_1", "beta_2", "epsilon", "initial_accumulator", "decay")


@pytest.fixture
def read_old_run(store_run, tmp_path):
    """(flags, names) -> the flags in a run's `config.json` that lacks these, and what is read of them."""

    def read(values, lacking):
        store_run(values, lacking)
        stored = json.loads((tmp_path / "run" / "config.json").read_text())["flags"]
        return stored, read_stored_flags(str(tmp_path / "run"))

    return read


@pytest.mark.parametrize("algo", ["fedavg", "fine_tuning", "buffered"])
def test_a_run_from_before_the_optimizers_had_only_a_rate(read_old_run, algo):
    values = {"algo": algo, "server_learning_rate": 0.5}
    stored, read = read_old_run(values, {f"server_{name}" for name in NEW_FLAGS})
    assert [name for name in stored if "server_" in name] == ["server_learning_rate"]
    config = build_run_config(read)
    assert config.algorithm.server == ServerStepConfig(learning_rate=0.5)
    assert config.algorithm.server.is_plain
    assert config == build_run_config(values)
    assert list_other_settings(stored, config) == []
    assert list_other_settings(stored, build_run_config({**values, "server_momentum": 0.9})) == [
        "--server_momentum=0.0, not 0.9"
    ]


@pytest.mark.parametrize("algo", ["fedsikd", "random_cluster", "fedcd", "fl_hc", "async_periodic"])
def test_a_run_from_before_the_step_averaged_plainly(read_old_run, algo):
    stored, read = read_old_run({"algo": algo}, {f"server_{name}" for name in (*NEW_FLAGS, "learning_rate")})
    assert not any("server_" in name for name in stored)
    config = build_run_config(read)
    assert config.algorithm.server == ServerStepConfig()
    assert list_other_settings(stored, config) == []


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("sgd", ServerStepConfig(learning_rate=0.02, beta_2=0.999, epsilon=1e-7)),
        ("momentum", ServerStepConfig(learning_rate=0.02, momentum=0.9, beta_2=0.999, epsilon=1e-7)),
        ("adam", ServerStepConfig("adam", learning_rate=0.02, beta_2=0.999, epsilon=1e-7)),
    ],
)
def test_an_old_run_of_amfl_p_has_the_step_that_it_had(read_old_run, choice, expected):
    values = {"algo": "amfl_p", "server_optimizer": choice, "meta_learning_rate": 0.02}
    lacking = {f"server_{name}" for name in NEW_FLAGS} - {"server_optimizer"}
    stored, read = read_old_run(values, lacking)
    assert [name for name in stored if "server_" in name] == ["server_optimizer"]
    config = build_run_config(read)
    assert config.algorithm.server == expected
    assert list_other_settings(stored, config) == []


@pytest.mark.parametrize("name", ["yogi", "adagrad", "rmsprop"])
def test_amfl_p_has_the_other_optimizers(name):
    server = build_run_config({"algo": "amfl_p", "server_optimizer": name, "server_epsilon": 0.01}).algorithm.server
    assert (server.optimizer, server.learning_rate, server.epsilon) == (name, 0.01, 0.01)


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ("server_beta_1=0.5", "does nothing with --server_optimizer=sgd"),
        ("server_epsilon=0.5", "give --server_optimizer=adam or yogi or adagrad or rmsprop"),
        ("server_nesterov", "does nothing with --server_momentum=0.0; leave it out, or give"),
        ("server_optimizer=adam server_momentum=0.5", "give --server_optimizer=sgd or rmsprop"),
        ("server_optimizer=rmsprop server_momentum=0.5 server_nesterov", "give --server_optimizer=sgd"),
        ("server_optimizer=adam server_initial_accumulator=1", "give --server_optimizer=adagrad"),
        ("server_optimizer=adam server_decay=0.5", "give --server_optimizer=rmsprop"),
        ("server_momentum=1", "a number at least 0 and below 1"),
        ("server_optimizer=adam server_epsilon=0", "a number above 0"),
        ("server_optimizer=lamb", "one of sgd, adam, yogi, adagrad, rmsprop"),
    ],
)
def test_what_does_nothing_or_cannot_be_is_refused(refuse, flags, reason):
    assert reason in refuse(["--algo=fedavg", *(f"--fedavg_{flag}" for flag in flags.split())])


def test_the_rows_have_the_steps_of_their_names():
    servers = {algo: build_run_config({"algo": algo}).algorithm.server for algo in ("fedadam", "fedyogi", "fedavgm")}
    assert [servers[algo].optimizer for algo in servers] == ["adam", "yogi", "sgd"]
    assert servers["fedavgm"].momentum == 0.9
    for algo in ("fedadam", "fedyogi"):
        assert (servers[algo].beta_1, servers[algo].beta_2, servers[algo].epsilon) == (0.9, 0.99, 1e-3)
