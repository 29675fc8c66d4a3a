"""How many runs go on at a time, and where."""

import os
from types import SimpleNamespace

import psutil
import pytest

from launch.runs.run_records import resolve_experiment
from launch.settings.experiments import get_experiment
from launch.settings.run_config import build_run_config
from launch.sweeps import jobs
from launch.sweeps.recipes import Recipe
from launch.sweeps.tasks import Task

GIGABYTE = 2**30
SMALL = build_run_config({"algo": "fedavg"})


def resolve(name, *arguments):
    return resolve_experiment(get_experiment(name), arguments)


@pytest.mark.parametrize(
    ("count", "number", "shares"),
    [
        (2, 1, [[0, 1]]),
        (2, 2, [[0], [1]]),
        (8, 3, [[0, 1], [2, 3, 4], [5, 6, 7]]),
        (2, 5, [[0], [1], [0], [1], [0]]),
    ],
)
def test_cores_are_shared_evenly(count, number, shares):
    assert jobs.share_cores(range(count), number) == shares


def test_as_many_jobs_as_cores_and_runs_if_memory_allows():
    assert jobs.choose_jobs([SMALL] * 10, 4, 100 * GIGABYTE) == 4
    assert jobs.choose_jobs([SMALL] * 3, 4, 100 * GIGABYTE) == 3
    needed = jobs.estimate_memory_bytes(SMALL, 2)
    assert jobs.choose_jobs([SMALL] * 10, 4, int(2.5 * needed)) == 2
    assert jobs.choose_jobs([SMALL] * 10, 4, 1) == 1
    assert jobs.choose_jobs([], 4, 100 * GIGABYTE) == 1
    large = resolve("fedcd_cifar10_hierarchical_paper")  # the largest runs decide
    needed = jobs.estimate_memory_bytes(large, 1)
    assert jobs.choose_jobs([SMALL, SMALL, large, large], 2, int(1.9 * needed)) == 1
    assert jobs.choose_jobs([SMALL, SMALL, large], 2, int(1.9 * needed)) == 2
    on_gpu = SimpleNamespace(**{**vars(SMALL), "device": "gpu"})  # which is not shared unasked
    assert jobs.choose_jobs([SMALL, on_gpu], 4, 100 * GIGABYTE) == 1


def test_the_largest_of_the_clients_models_decides():
    sizes = [
        jobs.estimate_memory_bytes(build_run_config({"algo": "fedproto", "models": models}), 2)
        for models in ("perceptron", "perceptron,emnist_cnn", "emnist_cnn", "auto")
    ]
    assert sizes[0] < sizes[1] == sizes[2] and sizes[3] == jobs.estimate_memory_bytes(
        build_run_config({"algo": "fedproto"}), 2
    )


@pytest.mark.parametrize(
    ("name", "measured_gb"),
    [
        # The peaks of host and worker together in kept runs, in the head of a flagfile, or in a round on two cores.
        ("amfl_p_building_low", 0.78),
        ("fed_async_mnist_iid", 1.45),
        ("async_periodic_mnist_iid_significance_synchronous", 1.61),
        ("fedcd_cifar10_hierarchical_cpu", 1.48),
        ("fedcd_cifar10_hierarchical_paper", 2.3),
        ("fl_hc_mnist_alpha0.1", 0.94),
        ("fedsikd_har_alpha0.1", 4.83),
    ],
)
def test_the_estimate_is_no_less_than_what_was_measured_and_no_extravagance(name, measured_gb):
    estimate = jobs.estimate_memory_bytes(resolve(name), 2) / 1e9
    assert measured_gb <= estimate <= 2.5 * measured_gb


def test_a_model_that_is_not_known_counts_as_a_large_one():
    own = build_run_config({"algo": "fedavg", "model": "mine:build"})
    assert jobs.estimate_memory_bytes(own, 2) > jobs.estimate_memory_bytes(SMALL, 2) + GIGABYTE


def test_finished_runs_need_no_share(tmp_path, write_run, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {2, 3, 5})
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"available": 64 * GIGABYTE}))
    name = "fedsikd_mnist_alpha0.1"
    tasks = [
        Task(
            Recipe(name, f"--experiment={name}"), (), tmp_path / name / f"seed_{seed}", resolve(name, f"--seed={seed}")
        )
        for seed in range(3)
    ]
    assert [jobs.open_engine(tasks, number).slots for number in (None, 1, 2, 7)] == [3, 1, 2, 3]
    write_run(tmp_path, name, seed=0, rounds=70)
    write_run(tmp_path, name, seed=1, rounds=70)
    one = jobs.open_engine(tasks, None)
    assert (one.slots, one.keeps_logs) == (1, False), "a run alone has all cores, and prints to our output"
    assert one.shares == [[2, 3, 5]]
