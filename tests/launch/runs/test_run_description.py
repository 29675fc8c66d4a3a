"""Into how many shares a run's clients are cut is settled when it begins."""

import json

import pytest

from launch.runs.errors import RunFolderError
from launch.runs.run_description import find_num_shares
from launch.runs.run_folder import RunFolder
from launch.settings.run_config import build_run_config


def find_shares_of(folder, workers, is_new=False):
    return find_num_shares(RunFolder(folder, is_new), build_run_config({"algo": "fedavg", "workers": workers}))


@pytest.mark.parametrize(("workers", "num_shares"), [("", 1), ("a:1", 1), ("a:1, b:2,unix:/c", 3)])
def test_a_new_run_has_a_share_for_each_worker(tmp_path, workers, num_shares):
    assert find_shares_of(tmp_path, workers, is_new=True) == num_shares


@pytest.mark.parametrize("workers", ["", "a:1", "a:1,b:2,c:3"])
def test_a_resumed_run_keeps_its_shares_whatever_workers_it_has(tmp_path, workers):
    (tmp_path / "config.json").write_text(json.dumps({"flags": {"workers": "z:9"}, "num_shares": 2}))
    assert find_shares_of(tmp_path, workers) == 2


def test_a_resumed_run_of_another_runtime_has_one(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"flags": {}}))
    assert find_shares_of(tmp_path, "") == 1


@pytest.mark.parametrize("num_shares", [0, -1, 1.5, "2", True, None, 10**9, [2]])
def test_a_damaged_number_is_one_line(tmp_path, num_shares):
    (tmp_path / "config.json").write_text(json.dumps({"flags": {}, "num_shares": num_shares}))
    with pytest.raises(RunFolderError, match=r"config.json: damaged, num_shares=.*; start a new run$"):
        find_shares_of(tmp_path, "")


@pytest.mark.parametrize("text", ["", "[]"])
def test_a_damaged_file_is_one_line(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(RunFolderError, match=r"config.json: damaged"):
        find_shares_of(tmp_path, "")
