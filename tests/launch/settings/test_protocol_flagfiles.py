"""The flagfiles of protocols that others published: every flag has an origin, and the config is the protocol's."""

import pathlib

import pytest

from launch.papers.engine.provenance import Origin, read_provenance
from launch.settings.flags import parse_config
from launch.settings.run_config import flag_values

EXPERIMENTS = pathlib.Path(__file__).parents[3] / "launch" / "experiments"
NIID_BENCH = EXPERIMENTS / "niid_bench" / "fedavg_mnist_dirichlet0.5.flags"
IFCA = EXPERIMENTS / "ifca" / "fedavg_mnist_rotated4.flags"


@pytest.mark.parametrize("flagfile", [NIID_BENCH, IFCA], ids=lambda path: path.parent.name)
def test_every_flag_has_an_origin(flagfile):
    found = read_provenance(flagfile)
    assert {each.origin for each in found} == {Origin.AUTHORS_CODE, Origin.OURS}
    assert [line for line in flagfile.read_text().splitlines() if len(line) > 120] == []


def test_niid_bench_is_ten_clients_of_ten_epochs():
    values = flag_values(parse_config([f"--flagfile={NIID_BENCH}"]))
    assert (values["num_clients"], values["rounds"], values["batch_size"]) == (10, 50, 64)
    assert [values[f"fedavg_{name}"] for name in ("epochs", "momentum", "learning_rate")] == [10, 0.9, 0.01]
    assert values["variant"] == "none"


def test_rotated_mnist_has_600_clients_of_100_images_a_group():
    config = parse_config([f"--flagfile={IFCA}"])
    values = flag_values(config)
    assert config.num_clients // config.variant_groups == 600
    assert config.variant_groups * 60_000 // config.num_clients == config.batch_size == 100
    assert (values["fedavg_steps"], values["fedavg_learning_rate"]) == (10, 0.1)


def test_a_smoke_run_of_a_variant_has_a_client_a_group():
    config = parse_config([f"--flagfile={IFCA}", "--smoke"])
    assert config.num_clients == config.variant_groups == 4
