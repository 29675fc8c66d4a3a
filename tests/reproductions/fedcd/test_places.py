"""At which places of the report FedCD's experiments stand."""

from launch.runs.run_records import resolve_experiment
from reproductions.engine.collection import Place
from reproductions.fedcd.measures import count_rounds, find_place
from reproductions.registry import PAPERS

FEDCD_CPU = "fedcd_cifar10_hierarchical_cpu"


def test_experiments_have_their_places():
    assert find_place(FEDCD_CPU) == Place("cpu", "hierarchical", "", "fedcd")
    assert find_place("fedavg_cifar10_hypergeometric_paper_150rounds") == Place("paper", "hypergeometric", "", "fedavg")
    assert find_place(f"{FEDCD_CPU}_bias0.35") == Place("cpu", "hierarchical", "bias0.35", "fedcd")
    assert find_place("fedcd_cifar10_hierarchical_paper_8bits").setting == "8bits"
    assert find_place("fedavg_cifar10_hierarchical_authors_small_8bits") == Place(
        "authors_small", "hierarchical", "8bits", "fedavg"
    )
    assert find_place("fedcd_cifar10_hierarchical_authors_shared") == Place(
        "authors", "hierarchical", "shared", "fedcd"
    )
    full = Place("authors_full", "hierarchical", "", "fedcd")
    assert find_place("fedcd_cifar10_hierarchical_authors_full_9rounds") == full
    assert find_place("fedavg_cifar10_hierarchical_authors_full") == full._replace(algo="fedavg")
    assert find_place(f"{FEDCD_CPU}_below_mean").setting == "below_mean"


def test_every_experiment_has_its_place():
    places = [find_place(name) for name in PAPERS["fedcd"].experiments]
    assert len(places) == 68, "15 of each printed size, 9 causes, 6 of cohorts, 23 trained as by the authors"
    assert len(set(places)) == 58, "ten differ from another in their rounds alone"


def test_a_place_has_the_rounds_that_its_experiments_ask_for():
    for name, each in PAPERS["fedcd"].experiments.items():
        place, asked = find_place(name), resolve_experiment(each).rounds
        if name.endswith("_full_9rounds"):  # what 2 cores do of the full size, for the curves
            assert asked == 9
        else:
            is_longer = name.endswith("rounds")
            assert asked > count_rounds(place) if is_longer else asked == count_rounds(place), name
