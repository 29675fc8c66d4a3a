"""The experiments of protocols that others published are what these say."""

import pytest
from experiment_flags import find_experiments, read_flags

from launch.runs.run_records import resolve_experiment
from launch.settings.experiments import Origin, get_experiment
from launch.settings.run_config import shared_fields

ALL = find_experiments("protocols")


def test_no_setting_is_called_printed():
    assert len(ALL) == 24
    assert {setting.origin for each in ALL for setting in each.settings} == {Origin.AUTHORS_CODE, Origin.OURS}


@pytest.mark.parametrize(
    "kind",
    [
        *("mnist_rotated4", "mnist_rotated4_50images", "mnist_rotated4_200images_tenth"),
        *("mnist_dirichlet0.5", "mnist_dirichlet0.5_10rounds", "cifar10_dirichlet0.5"),
    ],
)
def test_algorithms_of_a_protocol_train_alike(kind):
    """But SCAFFOLD, which has no momentum; every group of the oracle is one of IFCA's models."""
    names = {field.name for field in shared_fields()} - {"algo", "run_dir"}
    names |= {"steps", "epochs", "learning_rate", "momentum", "weight_decay", "optimizer", "client_weighting"}
    alike = [each.name for each in ALL if each.name.partition("_")[2] == kind and not each.name.startswith("scaffold")]
    first, *others = ({name: flags[name] for name in names} for flags in map(read_flags, alike))
    assert others and all(other == first for other in others)


def test_each_size_of_rotated_mnist_has_all_images_in_every_group():
    for flags in (read_flags(each.name) for each in ALL if "rotated4" in each.name):
        assert flags["batch_size"] * flags["num_clients"] == 4 * 60_000 and flags["validation_fraction"] == 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("fedavg_mnist_dirichlet0.5", {"num_clients": 10, "rounds": 50, "batch_size": 64, "epochs": 10}),
        ("fedavg_mnist_dirichlet0.5", {"momentum": 0.9, "learning_rate": 0.01, "variant": "none"}),
        # 600 clients of 100 images a group.
        ("fedavg_mnist_rotated4", {"num_clients": 2400, "variant_groups": 4, "batch_size": 100, "steps": 10}),
        ("fedavg_mnist_rotated4", {"learning_rate": 0.1}),
    ],
)
def test_a_protocol_has_the_settings_that_its_authors_say(name, expected):
    flags = read_flags(f"protocols/{name}")
    assert {flag: flags[flag] for flag in expected} == expected


def test_a_smoke_run_of_a_variant_has_a_client_a_group():
    config = resolve_experiment(get_experiment("protocols/fedavg_mnist_rotated4"), ["--smoke"])
    assert config.num_clients == config.variant_groups == 4


def test_scaffold_is_at_ten_times_the_authors_rate_and_at_theirs():
    ten, one = (read_flags(f"scaffold_mnist_dirichlet0.5_10rounds{end}") for end in ("", "_authors_rate"))
    assert ten["learning_rate"] == 0.1 and one == ten | {"learning_rate": 0.01}
