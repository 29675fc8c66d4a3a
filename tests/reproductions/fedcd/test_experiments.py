"""FedCD's experiments, and FedAvg's beside them, differ only where they should, and fit what the report says."""

import pytest

from launch.runs.run_records import resolve_experiment
from launch.settings.experiments import get_experiment, match_experiments
from launch.settings.run_config import flag_values
from reproductions.fedcd.measures import AXES, COMPARED_ROUNDS, MILESTONES, find_place
from reproductions.registry import PAPERS


def resolve_stem(stem):
    return flag_values(resolve_experiment(get_experiment(stem)))


CIFAR10_SIZES = {"paper": (5000, 1.0, 3), "cpu": (200, 0.25, 2)}  # images of a device, width, epochs
CIFAR10_ARCHETYPES = {"hierarchical": (3, 45), "hypergeometric": (5, 80)}  # devices an archetype, rounds
FEDCD_VARIANTS = {
    **{f"{bits}bits": {"compression_bits": bits} for bits in (8, 4)},
    **{f"bias{bias}": {"bias_min": bias, "bias_max": bias} for bias in (0.2, 0.35, 0.5, 0.65, 0.8)},
}


def resolve_cifar10(algo, partition, size, variant=""):
    stem = f"{algo}_cifar10_{partition}_{size}" + (f"_{variant}" if variant else "")
    return resolve_stem(stem)


@pytest.mark.parametrize("size", CIFAR10_SIZES)
@pytest.mark.parametrize("partition", CIFAR10_ARCHETYPES)
def test_fedavg_trains_as_fedcd_does_on_the_same_devices(partition, size):
    fedcd, fedavg = resolve_cifar10("fedcd", partition, size), resolve_cifar10("fedavg", partition, size)
    images, width, epochs = CIFAR10_SIZES[size]
    clients, rounds = CIFAR10_ARCHETYPES[partition]
    printed = {"partition": partition, "clients_per_archetype": clients, "rounds": rounds, "dataset": "cifar10"}
    expected = printed | {"train_per_client": images, "width": width, "epochs": epochs, "cohort_size": 15}
    expected |= {"milestones": "5,15,25,30", "compression_bits": 32, "bias_min": 0.6, "bias_max": 0.7}
    assert {name: fedcd[name] for name in expected} == expected
    both = fedcd.keys() & fedavg.keys() - {"algo"}
    assert {"cohort_size", "epochs", "optimizer", "learning_rate", "momentum", "proximal_weight"} <= both
    assert [name for name in both if fedavg[name] != fedcd[name]] == []
    assert (fedavg["client_weighting"], fedavg["server_learning_rate"]) == ("equal", 1.0)
    assert fedavg["participation"] == "fixed"
    for longer in (150, 300):
        assert resolve_cifar10("fedavg", partition, size, f"{longer}rounds") == fedavg | {"rounds": longer}


@pytest.mark.parametrize("size", CIFAR10_SIZES)
@pytest.mark.parametrize("variant", FEDCD_VARIANTS)
def test_a_variant_of_fedcd_differs_in_its_bits_or_bias_alone(variant, size):
    expected = resolve_cifar10("fedcd", "hierarchical", size) | FEDCD_VARIANTS[variant]
    assert resolve_cifar10("fedcd", "hierarchical", size, variant) == expected


AUTHORS_TRAINING = {
    "optimizer": "sgd",
    "learning_rate": 0.1,
    "momentum": 0.9,
    "weight_decay": 5e-4,
    "learning_rate_steps": "25,50,75",
    "learning_rate_step_factor": 0.1,
}
AUTHORS_RULES = {
    "clone_score": "complement_of_accuracy",
    "clone_history": "complement",
    "short_history": "latest",
    "deletion": "below_mean",
    "late_round": 15,
}
AUTHORS_SIZES = {  # images of a device to train, validate and test on, epochs, batch, rounds
    ("hierarchical", "authors"): (2000, 500, 500, 3, 64, 60),
    ("hypergeometric", "authors"): (1000, 250, 250, 3, 64, 80),
    ("hierarchical", "authors_small"): (200, 100, 300, 2, 32, 45),
}


@pytest.mark.parametrize(("partition", "size"), AUTHORS_SIZES)
def test_fedavg_has_the_authors_training_as_fedcd_does(partition, size):
    fedcd, fedavg = resolve_cifar10("fedcd", partition, size), resolve_cifar10("fedavg", partition, size)
    train, validation, test, epochs, batch, rounds = AUTHORS_SIZES[partition, size]
    shared = {"train_per_client": train, "validation_per_client": validation, "test_per_client": test, "width": 0.25}
    shared |= {"batch_size": batch, "rounds": rounds, "augment": "crop_flip", "partition": partition}
    assert {name: fedcd[name] for name in shared} == shared
    assert {name for name in fedcd.keys() & fedavg.keys() - {"algo"} if fedcd[name] != fedavg[name]} == set()
    for algo, values in (("fedcd", fedcd), ("fedavg", fedavg)):
        for name, value in (AUTHORS_TRAINING | {"epochs": epochs, "cohort_size": 15}).items():
            assert values[name] == value, (algo, name)
    schedule = "shared" if size == "authors_small" else "anew"
    for name, value in (AUTHORS_RULES | {"clone_schedule": schedule, "milestones": "5,15,25,30"}).items():
        assert fedcd[name] == value, name


def test_variants_of_the_authors_training_differ_in_what_they_are_named_after():
    medium, small = (resolve_cifar10("fedcd", "hierarchical", size) for size in ("authors", "authors_small"))
    shared = resolve_cifar10("fedcd", "hierarchical", "authors", "shared")
    assert shared == medium | {"clone_schedule": "shared", "rounds": 45}
    fedavg = resolve_cifar10("fedavg", "hierarchical", "authors")
    assert resolve_cifar10("fedavg", "hierarchical", "authors", "150rounds") == fedavg | {"rounds": 150}
    variants = FEDCD_VARIANTS | {"1milestone": {"milestones": "5"}}
    variants |= {f"scores{number}": {"score_rounds": number} for number in (1, 5)}
    for bits in (8, 4):
        variants[f"{bits}bits"] = FEDCD_VARIANTS[f"{bits}bits"] | {"compression_rounding": "stochastic"}
    for variant, changes in variants.items():
        assert resolve_cifar10("fedcd", "hierarchical", "authors_small", variant) == small | changes, variant
    fedavg = resolve_cifar10("fedavg", "hierarchical", "authors_small")
    for bits in (8, 4):
        changed = resolve_cifar10("fedavg", "hierarchical", "authors_small", f"{bits}bits")
        assert changed == fedavg | {"compression_bits": bits, "compression_rounding": "stochastic"}


def test_the_full_size_is_the_authors_run_and_its_first_nine_rounds_differ_in_rounds_and_milestones_alone():
    full, medium = (resolve_cifar10("fedcd", "hierarchical", size) for size in ("authors_full", "authors"))
    changes = {"rounds": 53, "train_per_client": 5000, "validation_per_client": 1000, "width": 1.0, "batch_size": 128}
    changes |= {"precision": "bfloat16", "rounds_per_checkpoint": 1}
    bits = {"compression_bits": 8, "compression_rounding": "stochastic"}
    assert full == medium | changes | bits
    nine = resolve_cifar10("fedcd", "hierarchical", "authors_full", "9rounds")
    assert nine == full | {"rounds": 9, "milestones": "5"}
    fedavg = resolve_cifar10("fedavg", "hierarchical", "authors")
    assert resolve_cifar10("fedavg", "hierarchical", "authors_full") == fedavg | changes | bits


RATES = {"learning_rate": 0.1, "learning_rate_steps": "25,50,75"}
FEDCD_CAUSES = {
    "steps": RATES,
    "steps_anew": RATES | {"clone_schedule": "anew"},
    "validation500": {"validation_per_client": 500},
    "clone_history": {"clone_history": "complement"},
    "below_mean": {"deletion": "below_mean"},
    "augmented": {"augment": "crop_flip"},
    "weight_decay": {"weight_decay": 5e-4},
    "clone_score": {"clone_score": "complement_of_accuracy"},
}
FEDCD_CAUSES["together"] = {flag: value for changes in FEDCD_CAUSES.values() for flag, value in changes.items()}
FEDCD_CAUSES["together"]["short_history"] = "latest"


@pytest.mark.parametrize("cause", FEDCD_CAUSES)
def test_a_cause_is_the_small_size_with_one_thing_of_the_authors_code(cause):
    assert set(FEDCD_CAUSES) == set(AXES["cause"])
    small = resolve_cifar10("fedcd", "hierarchical", "cpu")
    assert resolve_cifar10("fedcd", "hierarchical", "cpu", cause) == small | FEDCD_CAUSES[cause]


def test_fedavg_has_other_cohorts_and_another_network_and_nothing_else():
    """The student is trained as in the league."""
    stratified, student = {"participation": "stratified"}, {"model": "image_student", "activation": "relu"}
    student |= {"width": 1.0, "batch_size": 10, "learning_rate": 0.1, "momentum": 0.0}
    changes = {"stratified": stratified, "group_norm": {"model": "image_cnn10_gn"}}
    even = stratified | {"cohort_size": 20}
    changes |= {"even": even, "student": student, "student_stratified": stratified | student}
    changes |= {"student_even": even | student}
    assert set(changes) == set(AXES["cohort"])
    small = resolve_cifar10("fedavg", "hierarchical", "cpu")
    assert small["participation"] == "fixed" and small["model"] == "image_cnn10"
    for variant, changed in changes.items():
        assert resolve_cifar10("fedavg", "hierarchical", "cpu", variant) == small | changed
    league = resolve_stem("fedavg_league_archetypes65")
    trained = ("learning_rate", "momentum", "epochs", "optimizer", "cohort_size", "server_learning_rate")
    assert all(league[name] == (small | student)[name] for name in [*trained, *list(student)[:4]])


@pytest.mark.parametrize("algo", ["fedcd", "fedavg"])
def test_the_papers_hypergeometric_devices_have_ten_draws(algo):
    values = resolve_cifar10(algo, "hypergeometric", "paper")
    assert (values["hypergeometric_draws"], values["hypergeometric_last_outcome"]) == (10, "drop")
    assert (values["validation_pool"], values["validation_per_client"]) == (0.05, 250)


def test_experiments_clone_at_the_milestones_that_texts_and_measures_have():
    for each in match_experiments("fedcd/fedcd_*"):
        expected = MILESTONES[:1] if each.name.endswith(("1milestone", "_full_9rounds")) else MILESTONES
        assert each.flags["milestones"] == ",".join(map(str, expected)), each.name


@pytest.mark.parametrize("size", sorted({size for claim in PAPERS["fedcd"].claims for size in claim.constructed_in}))
def test_the_settings_of_a_size_leave_two_models_on_a_device(size):
    """Each round after the last milestone takes one of three or more: of 16 models, 14 rounds leave two."""
    for each in match_experiments(f"fedcd/fedcd_cifar10_*_{size}*"):
        flags = flag_values(resolve_experiment(each))
        is_cause = find_place(each.name).setting in AXES["cause"]  # of which no claim is asked
        assert is_cause or flags["deletion"] == "below_best", "or more than two could stay"
        assert flags["protected_models"] == 2, "that many stay, at least and at most"
        assert flags["late_round"] > MILESTONES[1], "so that the second milestone makes four of two"
        assert COMPARED_ROUNDS[flags["partition"]] - MILESTONES[-1] >= 2 ** len(MILESTONES) - 2
