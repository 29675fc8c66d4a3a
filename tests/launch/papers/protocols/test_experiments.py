"""The experiments of protocols that others published are what these say."""

from launch.runs.run_records import resolve_experiment
from launch.settings.experiments import Origin, get_experiment
from launch.settings.run_config import flag_values

NIID_BENCH = get_experiment("protocols/fedavg_mnist_dirichlet0.5")
IFCA = get_experiment("protocols/fedavg_mnist_rotated4")


def test_no_setting_is_called_printed():
    for each in (NIID_BENCH, IFCA):
        assert {setting.origin for setting in each.settings} == {Origin.AUTHORS_CODE, Origin.OURS}


def test_niid_bench_is_ten_clients_of_ten_epochs():
    values = flag_values(resolve_experiment(NIID_BENCH))
    assert (values["num_clients"], values["rounds"], values["batch_size"]) == (10, 50, 64)
    assert [values[f"fedavg_{name}"] for name in ("epochs", "momentum", "learning_rate")] == [10, 0.9, 0.01]
    assert values["variant"] == "none"


def test_rotated_mnist_has_600_clients_of_100_images_a_group():
    config = resolve_experiment(IFCA)
    values = flag_values(config)
    assert config.num_clients // config.variant_groups == 600
    assert config.variant_groups * 60_000 // config.num_clients == config.batch_size == 100
    assert (values["fedavg_steps"], values["fedavg_learning_rate"]) == (10, 0.1)


def test_a_smoke_run_of_a_variant_has_a_client_a_group():
    config = resolve_experiment(IFCA, ["--smoke"])
    assert config.num_clients == config.variant_groups == 4
