"""The heads of flagfiles tell what the runs gave."""

import pytest

from launch.papers.engine.heads import compose_heads
from launch.report import collect_runs
from launch.runs.columns import CLIENT_TEST_ACCURACY, TEST_ACCURACY
from launch.runs.run_records import find_flagfile


def read_result(runs_dir, experiment, metric=TEST_ACCURACY):
    """The one sentence on results in the head as it would be written."""
    text = compose_heads(collect_runs(runs_dir)[0], metric, [5])[find_flagfile(experiment)]
    head = " ".join(line.removeprefix("# ") for line in text.split("\n\n")[0].splitlines())
    return head.partition(" Ours: ")[2].partition(" Cost: ")[0]


def test_a_round_that_is_asked_for_and_the_last_one_that_all_seeds_have(tmp_path, write_run):
    """0.01 a round is added: 0.55 and 0.65 after round 5, 0.57 and 0.67 after 7; the deviation of 55 and 65 is 7.07."""
    write_run(tmp_path, "fedavg_mnist_alpha0.1", 0, rounds=8, accuracy=0.5)
    write_run(tmp_path, "fedavg_mnist_alpha0.1", 1, rounds=7, accuracy=0.6)
    assert read_result(tmp_path, "fedavg_mnist_alpha0.1") == (
        "test accuracy 60.00 ± 7.07 % after round 5 and 62.00 ± 7.07 % after round 7, seeds 0 to 1; "
        "of 70 rounds 7 have been run."
    )


def test_one_seed_has_no_deviation_and_a_whole_run_no_rounds_left(tmp_path, write_run):
    write_run(tmp_path, "fedavg_mnist_alpha0.1", 3, rounds=70, accuracy=[0.5] * 70)
    assert read_result(tmp_path, "fedavg_mnist_alpha0.1") == (
        "test accuracy 50.00 % after round 5 and 50.00 % after round 70, seed 3."
    )


def test_seeds_that_are_no_row_are_named(tmp_path, write_run):
    for seed in (0, 2):
        write_run(tmp_path, "fedavg_mnist_alpha0.1", seed, rounds=5, accuracy=[0.5] * 5)
    assert ", seeds 0, 2; of 70" in read_result(tmp_path, "fedavg_mnist_alpha0.1")


def test_data_that_are_a_part_are_named(tmp_path, write_archetype_run):
    experiment = "fedavg_cifar10_hierarchical_cpu"
    write_archetype_run(tmp_path, experiment, [0.4] * 45)
    result = read_result(tmp_path, experiment, CLIENT_TEST_ACCURACY)
    assert result.startswith(
        "the clients' own test accuracy 40.00 % after round 5 and 40.00 % after round 45, seed 0; "
    )
    assert result.endswith("; data: cifar10 subset (20,000 + 5,000 images).")


def test_the_rest_of_a_flagfile_stays(tmp_path, write_run):
    write_run(tmp_path, "fedavg_mnist_alpha0.1", 0, rounds=5)
    path = find_flagfile("fedavg_mnist_alpha0.1")
    ((found, text),) = compose_heads(collect_runs(tmp_path)[0], TEST_ACCURACY, []).items()
    assert found == path
    changed = set(text.splitlines()) ^ set(path.read_text().splitlines())
    assert changed and all("% after round" in line or "rounds" in line for line in changed)
    assert all(line.startswith("# ") and len(line) <= 120 for line in changed)


def test_a_run_without_the_accuracy_tells_nothing(tmp_path, write_run):
    """Empty cells: the clients' own test accuracy was not measured."""
    write_run(tmp_path, "fedavg_mnist_alpha0.1", 0, rounds=5)
    assert compose_heads(collect_runs(tmp_path)[0], CLIENT_TEST_ACCURACY, [5]) == {}


@pytest.fixture
def own_flagfile(tmp_path, monkeypatch):
    """A copy of a flagfile, which the heads are written into."""
    copy = tmp_path / "fedavg_mnist_alpha0.1.flags"
    copy.write_text(find_flagfile("fedavg_mnist_alpha0.1").read_text())
    monkeypatch.setattr("launch.papers.engine.heads.find_flagfile", lambda name: copy)
    return copy
