"""The experiments of protocols that others published are what these say."""

from launch.runs.run_records import resolve_experiment
from launch.settings.experiments import Origin, get_experiment, list_experiments
from launch.settings.run_config import flag_values, shared_fields

NIID_BENCH = get_experiment("protocols/fedavg_mnist_dirichlet0.5")
IFCA = get_experiment("protocols/fedavg_mnist_rotated4")


ALL = [each for each in list_experiments().values() if each.paper == "protocols"]


def test_no_setting_is_called_printed():
    assert len(ALL) == 23
    for each in ALL:
        assert {setting.origin for setting in each.settings} == {Origin.AUTHORS_CODE, Origin.OURS}


def test_algorithms_of_a_protocol_train_alike():
    """But SCAFFOLD, which has no momentum; every group of the oracle is one of IFCA's models."""
    own = ("steps", "epochs", "learning_rate", "momentum", "weight_decay", "optimizer", "client_weighting")
    for kind in (
        "mnist_rotated4",
        "mnist_rotated4_50images",
        "mnist_rotated4_200images_tenth",
        "mnist_dirichlet0.5",
        "mnist_dirichlet0.5_10rounds",
        "cifar10_dirichlet0.5",
    ):
        rows = []
        for each in ALL:
            algo, _, rest = each.name.partition("_")
            if rest == kind and algo != "scaffold":
                values = flag_values(resolve_experiment(each))
                names = [field.name for field in shared_fields() if field.name not in ("algo", "run_dir")]
                rows.append([values[name] for name in (*names, *own)])
        assert len(rows) > 1 and all(row == rows[0] for row in rows), kind


def test_each_size_of_rotated_mnist_has_all_images_in_every_group():
    for each in ALL:
        if "rotated4" in each.name:
            config = resolve_experiment(each)
            assert config.batch_size * config.num_clients == 4 * 60_000 and config.validation_fraction == 0


def test_niid_bench_is_ten_clients_of_ten_epochs():
    values = flag_values(resolve_experiment(NIID_BENCH))
    assert (values["num_clients"], values["rounds"], values["batch_size"]) == (10, 50, 64)
    assert [values[name] for name in ("epochs", "momentum", "learning_rate")] == [10, 0.9, 0.01]
    assert values["variant"] == "none"


def test_rotated_mnist_has_600_clients_of_100_images_a_group():
    config = resolve_experiment(IFCA)
    values = flag_values(config)
    assert config.num_clients // config.variant_groups == 600
    assert config.variant_groups * 60_000 // config.num_clients == config.batch_size == 100
    assert (values["steps"], values["learning_rate"]) == (10, 0.1)


def test_a_smoke_run_of_a_variant_has_a_client_a_group():
    config = resolve_experiment(IFCA, ["--smoke"])
    assert config.num_clients == config.variant_groups == 4


def test_scaffold_is_at_ten_times_the_authors_rate_and_at_theirs():
    ten = flag_values(resolve_experiment(get_experiment("protocols/scaffold_mnist_dirichlet0.5_10rounds")))
    one = flag_values(resolve_experiment(get_experiment("protocols/scaffold_mnist_dirichlet0.5_10rounds_authors_rate")))
    assert ten["learning_rate"] == 0.1 and one == ten | {"learning_rate": 0.01}
