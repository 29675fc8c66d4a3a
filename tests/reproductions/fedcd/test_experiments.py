"""FedCD's experiments, and FedAvg's beside them, differ only where they should, and fit what the report says.

What each has is in the committed table of settings, which a test compares; here is what must be alike.
"""

import pytest
from experiment_flags import read_flags

from launch.runs.run_records import resolve_experiment
from launch.settings.experiments import match_experiments
from reproductions.fedcd.measures import AXES, COMPARED_ROUNDS, MILESTONES, count_rounds, find_place
from reproductions.fedcd.rivals import RIVALS
from reproductions.registry import PAPERS

PAPER = PAPERS["fedcd"]
BITS = {f"{bits}bits": {"compression_bits": bits} for bits in (8, 4)}
BIASES = {f"bias{bias}": {"bias_min": bias, "bias_max": bias} for bias in (0.2, 0.35, 0.5, 0.65, 0.8)}
ROUNDED = {"compression_rounding": "stochastic"}
ROUNDED_BITS = {name: changes | ROUNDED for name, changes in BITS.items()}
LONGER = {f"{rounds}rounds": {"rounds": rounds} for rounds in (150, 300)}
RATES = {"learning_rate": 0.1, "learning_rate_steps": "25,50,75"}
CAUSES = {
    "steps": RATES,
    "steps_anew": RATES | {"clone_schedule": "anew"},
    "validation500": {"validation_per_client": 500},
    "clone_history": {"clone_history": "complement"},
    "below_mean": {"deletion": "below_mean"},
    "augmented": {"augment": "crop_flip"},
    "weight_decay": {"weight_decay": 5e-4},
    "clone_score": {"clone_score": "complement_of_accuracy"},
}
TOGETHER = {flag: value for changes in CAUSES.values() for flag, value in changes.items()} | {"short_history": "latest"}
STRATIFIED, STUDENT = {"participation": "stratified"}, {"model": "image_student", "activation": "relu"}
STUDENT |= {"width": 1.0, "batch_size": 10, "learning_rate": 0.1, "momentum": 0.0}
EVEN = STRATIFIED | {"cohort_size": 20}
COHORTS = {
    "stratified": STRATIFIED,
    "group_norm": {"model": "image_cnn10_gn"},
    "even": EVEN,
    "student": STUDENT,
    "student_stratified": STRATIFIED | STUDENT,
    "student_even": EVEN | STUDENT,
}
FULL = {"rounds": 53, "train_per_client": 5000, "validation_per_client": 1000, "width": 1.0, "batch_size": 128}
FULL |= {"precision": "bfloat16", "rounds_per_checkpoint": 1} | ROUNDED_BITS["8bits"]
SCORES = {f"scores{number}": {"score_rounds": number} for number in (1, 5)}
VARIANTS = {  # by the experiment that they are compared with: how each differs
    **{f"fedavg_{kind}_{size}": LONGER for kind in COMPARED_ROUNDS for size in ("cpu", "paper")},
    "fedavg_hierarchical_cpu": LONGER | COHORTS,
    "fedavg_hierarchical_authors": {"150rounds": LONGER["150rounds"], "full": FULL},
    "fedavg_hierarchical_authors_small": ROUNDED_BITS,
    "fedcd_hierarchical_cpu": BITS | BIASES | CAUSES | {"together": TOGETHER},
    "fedcd_hierarchical_paper": BITS | BIASES,
    "fedcd_hierarchical_authors": {"shared": {"clone_schedule": "shared", "rounds": 45}, "full": FULL},
    "fedcd_hierarchical_authors_small": ROUNDED_BITS | BIASES | SCORES | {"1milestone": {"milestones": "5"}},
    "fedcd_hierarchical_authors_full": {"9rounds": {"rounds": 9, "milestones": "5"}},
}


def resolve(name):
    algo, _, rest = name.partition("_")
    return read_flags(f"fedcd/{algo}_cifar10_{rest}")


@pytest.mark.parametrize("base", VARIANTS)
def test_variants_differ_in_what_they_are_named_after_alone(base):
    flags = resolve(base)
    for variant, changes in VARIANTS[base].items():
        assert resolve(f"{base}_{variant}") == flags | changes, variant


def test_every_variant_of_the_axes_is_among_them():
    causes, cohorts = ({find_place(each.replace("_", "_cifar10_", 1) + f"_{variant}").setting for variant in
                        VARIANTS[each]} for each in ("fedcd_hierarchical_cpu", "fedavg_hierarchical_cpu"))  # fmt: skip
    assert set(AXES["cause"]) == causes - BITS.keys() - BIASES.keys() and set(AXES["cohort"]) == cohorts - {""}


@pytest.mark.parametrize(
    "size", ["hierarchical_cpu", "hierarchical_paper", "hierarchical_authors", "hierarchical_authors_small",
             "hierarchical_authors_full", "hypergeometric_cpu", "hypergeometric_paper", "hypergeometric_authors"]
)  # fmt: skip
def test_fedavg_trains_as_fedcd_does_on_the_same_devices(size):
    fedcd, fedavg = resolve(f"fedcd_{size}"), resolve(f"fedavg_{size}")
    both = fedcd.keys() & fedavg.keys() - {"algo"}
    assert {"cohort_size", "epochs", "optimizer", "learning_rate", "momentum", "proximal_weight"} <= both
    assert [name for name in both if fedavg[name] != fedcd[name]] == []
    assert (fedavg["client_weighting"], fedavg["server_learning_rate"]) == ("equal", 1.0)


def test_the_student_is_trained_as_in_the_league():
    league = read_flags("fedavg_league_archetypes65")
    trained = (*STUDENT, "epochs", "optimizer", "cohort_size", "server_learning_rate")
    student = resolve("fedavg_hierarchical_cpu_student")
    assert {name: league[name] for name in trained} == {name: student[name] for name in trained}


def test_experiments_clone_at_the_milestones_that_texts_and_measures_have():
    for each in match_experiments("fedcd/fedcd_*"):
        expected = MILESTONES[:1] if each.name.endswith(("1milestone", "_full_9rounds")) else MILESTONES
        assert each.flags["milestones"] == ",".join(map(str, expected)), each.name


@pytest.mark.parametrize("size", sorted({size for claim in PAPER.claims for size in claim.constructed_in}))
def test_the_settings_of_a_size_leave_two_models_on_a_device(size):
    """Each round after the last milestone takes one of three or more: of 16 models, 14 rounds leave two."""
    for each in match_experiments(f"fedcd/fedcd_cifar10_*_{size}*"):
        flags = read_flags(each.full_name)
        is_cause = find_place(each.name).setting in AXES["cause"]  # of which no claim is asked
        assert is_cause or flags["deletion"] == "below_best", "or more than two could stay"
        assert flags["protected_models"] == 2, "that many stay, at least and at most"
        assert flags["late_round"] > MILESTONES[1], "so that the second milestone makes four of two"
        assert COMPARED_ROUNDS[flags["partition"]] - MILESTONES[-1] >= 2 ** len(MILESTONES) - 2


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("fedcd_cifar10_hierarchical_cpu", ("cpu", "hierarchical", "", "fedcd")),
        ("fedavg_cifar10_hypergeometric_paper_150rounds", ("paper", "hypergeometric", "", "fedavg")),
        ("fedcd_cifar10_hierarchical_cpu_bias0.35", ("cpu", "hierarchical", "bias0.35", "fedcd")),
        ("fedavg_cifar10_hierarchical_authors_small_8bits", ("authors_small", "hierarchical", "8bits", "fedavg")),
        ("fedcd_cifar10_hierarchical_authors_shared", ("authors", "hierarchical", "shared", "fedcd")),
        ("fedcd_cifar10_hierarchical_authors_full_9rounds", ("authors_full", "hierarchical", "", "fedcd")),
        ("fedcd_cifar10_hierarchical_cpu_below_mean", ("cpu", "hierarchical", "below_mean", "fedcd")),
    ],
)
def test_experiments_have_their_places(name, place):
    assert find_place(name) == place


def test_every_experiment_has_a_place_with_the_rounds_that_it_asks_for():
    assert PAPER.experiments.keys() >= RIVALS
    places = {name: find_place(name) for name in PAPER.experiments if name not in RIVALS}
    assert len(places) == 68, "15 of each printed size, 9 causes, 6 of cohorts, 23 trained as by the authors"
    assert len(set(places.values())) == 58, "ten differ from another in their rounds alone"
    for name, place in places.items():
        asked, rounds = resolve_experiment(PAPER.experiments[name]).rounds, count_rounds(place)
        if not name.endswith("_full_9rounds"):  # what 2 cores do of the full size, for the curves
            assert asked > rounds if name.endswith("rounds") else asked == rounds, name
