"""Digests are compared between runs that asked for the same data alone."""

import importlib.metadata

import pytest

from launch.runs.data_versions import compare_like, find_code_versions, find_data_versions
from launch.runs.library_versions import find_version

OLD, NEW = "1a2b3c4d" + 56 * "0", "5e6f7a8b" + 56 * "0"


def asked(seed=0, **flags):
    return {"dataset": "table", "partition": "iid", "seed": seed, "algo": "fedavg", **flags}


def table(source, seed=0, **flags):
    """A run on a table: its own digest depends on the seed, that of the source does not."""
    return asked(seed, **flags), {"source_digest": source, "digest": f"{source}{seed}"}


def arrays(content, seed, digest="arrays_digest"):
    """A run on arrays of a loader that may have drawn them by the seed."""
    return asked(seed), {digest: content, "digest": f"{content} {seed}"}


def test_a_corrected_table_is_told_also_between_seeds():
    runs = [table(OLD, 0), table(OLD, 1), table(NEW, 2, algo="ditto"), table(NEW, 0)]
    assert find_data_versions(runs) == ["data 1a2b3c4d", "data 1a2b3c4d", "data 5e6f7a8b", "data 5e6f7a8b"]
    assert compare_like([table(OLD), table(NEW), table(OLD, 1)])[0] == [[0, 2], [1]]


def test_what_asks_for_other_data_is_not_compared():
    same = [table(OLD), table(OLD, 1), table(OLD, 2, partition="dirichlet")]
    other = [table(NEW, dataset="another"), table(NEW, label_column="b")]
    assert find_data_versions([*same, *other]) == [""] * 5
    # Of arrays that may have been drawn by it, none with another seed; places are no difference.
    assert find_data_versions([arrays(OLD, 0), arrays(NEW, 1)]) == ["", ""]
    flags, digests = table(OLD)
    assert find_data_versions([(flags, digests), ({**flags, "data": "/elsewhere/table.csv"}, digests)]) == ["", ""]


def test_arrays_of_a_loader_are_of_one_version_where_their_content_is():
    runs = [arrays(OLD, 0), arrays(OLD, 1), arrays(NEW, 0)]
    assert find_data_versions(runs) == ["data 1a2b3c4d", "data 1a2b3c4d", "data 5e6f7a8b"]


def test_runs_of_earlier_versions_are_compared_by_what_they_have():
    without = asked(3), {}  # as archives have them
    old = asked(), {"digest": f"{OLD}0"}
    assert find_data_versions([without, table(OLD), old]) == ["", "", ""]
    assert find_data_versions([without, table(NEW), old]) == ["", "data 5e6f7a8b", "data 1a2b3c4d"]
    assert find_data_versions([without, without]) == ["", ""]


def test_a_file_written_anew_with_the_same_content_is_no_other_data():
    same = {"digest": "the same"}
    assert find_data_versions([(asked(), same | {"source_digest": each}) for each in (OLD, NEW)]) == ["", ""]


def test_another_file_of_devices_is_told():
    flags, digests = table(OLD, device_profiles="phones.csv")
    runs = [(flags, digests | {"device_profiles": each}) for each in (OLD, NEW)]
    assert find_data_versions(runs) == [
        *("data 1a2b3c4d, devices 1a2b3c4d", "data 1a2b3c4d, devices 5e6f7a8b"),
    ]
    other = {**flags, "device_profiles": "others.csv"}, digests | {"device_profiles": NEW}
    assert find_data_versions([runs[0], other]) == ["", ""]


def test_code_that_has_changed():
    runs = [{}, {"model": OLD, "parts": OLD}, {"model": OLD, "parts": NEW}, {"parts": NEW}, {"other": NEW}]
    versions = find_code_versions(runs)
    assert versions[0] == versions[4] == "" and versions[2] == versions[3] != versions[1]
    assert versions[1].startswith("code ") and find_code_versions([runs[1], runs[1]]) == ["", ""]


@pytest.mark.parametrize(
    ("installed", "expected"),
    [
        ({"tensorflow-cpu": "2.14.1"}, "2.14.1"),
        ({"tensorflow": "2.14.0"}, "2.14.0"),
        ({"tensorflow-cpu": "2.14.1", "tensorflow": "2.14.0"}, "2.14.0"),  # laid over the other, for a GPU
        ({}, None),
    ],
)
def test_tensorflow_is_found_by_each_of_its_distributions(monkeypatch, installed, expected):
    def find(distribution):
        if distribution not in installed:
            raise importlib.metadata.PackageNotFoundError(distribution)
        return installed[distribution]

    monkeypatch.setattr(importlib.metadata, "version", find)
    assert find_version("tensorflow") == find_version("tensorflow-cpu") == expected
    assert find_version("numpy") is None
