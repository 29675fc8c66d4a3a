"""A run folder of a stranger names no place that is filled, asked or waited at, unless the user has typed it."""

import json
import os

import pytest

from launch.settings import typed_places
from launch.settings.errors import FlagError
from launch.settings.flags import parse_config, read_stored_flags
from launch.settings.typed_places import check_places, remember_places


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The folder of a user who has typed nothing yet."""
    monkeypatch.setattr(typed_places, "_typed", set())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("FL_DATA_DIR", raising=False)
    return tmp_path / "cache" / "federated_suite"


def start_another_process(monkeypatch):
    monkeypatch.setattr(typed_places, "_typed", set())


def is_right(**stored):
    try:
        check_places({"dataset": "digits", **stored}, "run")
    except FlagError as error:
        (name,) = stored.keys() - {"runtime", "dataset", "smoke"}
        assert f"its config.json names --{name}={stored[name]}, " in str(error) and "\n" not in str(error)
        return False
    return True


def test_what_was_typed_once_is_known_from_then_on_however_it_is_spelled(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    remember_places({"client_dir": "mine", "data_dir": "", "npz": "x.npz", "ray_address": "auto"})
    start_another_process(monkeypatch)
    for spelling in ("mine", "~/mine", f"{tmp_path}/mine/", f"{tmp_path}/other/../mine", "link"):
        assert is_right(client_dir=spelling)
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to(tmp_path / "precious")
    for spelling in ("mine/inner", "~/min", "..", "~", "mine\0", "link"):
        assert not is_right(client_dir=spelling)
    assert not is_right(data_dir="mine", dataset="mnist")  # another flag
    assert not (tmp_path / "mine").exists(), "it is made by nobody here"
    record = tmp_path / "cache" / "federated_suite" / "typed_places" / "typed.json"
    assert json.loads(record.read_text()) == [["client_dir", str(tmp_path / "mine")]]


def test_the_cache_is_the_users_own_and_what_only_looks_so_is_not(tmp_path, cache):
    cache.mkdir(parents=True)
    (cache / "out").symlink_to(tmp_path / "precious")
    assert is_right(client_dir="") and is_right(client_dir=f"{cache}/shards")
    for outside in (f"{cache}/../x", f"{cache}_2/x", f"{cache}/out", f"{cache}/out/x"):
        assert not is_right(client_dir=outside)


def test_downloads_go_to_no_folder_of_a_stranger(tmp_path, monkeypatch):
    place = str(tmp_path / "data")
    assert not is_right(data_dir=place, dataset="mnist")
    assert is_right(data_dir=place, dataset="digits")  # which has no files
    assert is_right(data_dir=place, dataset="mnist", smoke=True)  # nor have random numbers
    monkeypatch.setenv("FL_DATA_DIR", place)
    assert is_right(data_dir=place, dataset="mnist")
    assert not is_right(client_dir=place)


def test_no_cluster_of_a_stranger_is_joined():
    assert is_right(ray_address="192.0.2.7:6379", runtime="in_process")  # which asks none
    for address, known in (("", True), ("auto", True), ("local", True), ("192.0.2.7:6379", False)):
        assert is_right(ray_address=address, runtime="ray") is known
    remember_places({"ray_address": "192.0.2.7:6379"})
    assert is_right(ray_address="192.0.2.7:6379", runtime="ray")
    assert not is_right(ray_address="192.0.2.8:6379", runtime="ray")


@pytest.mark.parametrize("name", ["data", "npz", "device_profiles"])
def test_data_are_read_where_reading_ends(tmp_path, name):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    (tmp_path / "file").write_text("x")
    for place in ("/dev/zero", "/proc/uptime", "/proc", "/", "pipe", "link"):
        assert not is_right(**{name: str(tmp_path / place)})
    for place in ("file", "", "gone", "nul\0"):  # what cannot be opened, its reader names
        assert is_right(**{name: str(tmp_path / place)})


@pytest.mark.parametrize("content", [b"", b"3", b"[3]", b'[["client_dir"]]', b'[["a", 1]]', b"[" * 10**5, b"\xff"])
def test_a_damaged_record_is_an_empty_one_and_written_anew(tmp_path, cache, monkeypatch, content):
    record = cache / "typed_places" / "typed.json"
    record.parent.mkdir(parents=True)
    record.write_bytes(content)
    assert not is_right(client_dir=str(tmp_path / "mine"))
    remember_places({"client_dir": str(tmp_path / "mine")})
    start_another_process(monkeypatch)
    assert is_right(client_dir=str(tmp_path / "mine"))


def test_the_record_is_bounded_and_keeps_what_is_there(tmp_path, monkeypatch):
    monkeypatch.setattr(typed_places, "MOST_RECORDED", 2)
    for name in ("a", "b", "d"):
        (tmp_path / name).mkdir()
    for name in ("a", "gone", "b", "a", "d"):
        remember_places({"client_dir": str(tmp_path / name)})
    start_another_process(monkeypatch)
    assert [name for name in ("a", "gone", "b", "d") if is_right(client_dir=str(tmp_path / name))] == ["a", "d"]


def test_a_cache_that_cannot_be_written_is_no_obstacle(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    remember_places({"client_dir": str(tmp_path / "mine")})
    assert is_right(client_dir=str(tmp_path / "mine"))


def test_a_resumed_run_asks_for_the_flag_unless_it_is_given_waits_at_no_pipe_and_has_no_table_written(
    store_run, refuse, tmp_path
):
    resume, place = store_run({}, client_dir=str(tmp_path / "x")), f"--client_dir={tmp_path / 'y'}"
    assert f"--client_dir={tmp_path / 'x'}, which no run of yours is known to use" in refuse(resume)
    assert parse_config([*resume, place]).client_dir == str(tmp_path / "y")
    os.mkfifo(tmp_path / "pipe")
    said = refuse(store_run({}, device_profiles=str(tmp_path / "pipe")))
    assert f"names --device_profiles={tmp_path}/pipe, a pipe, a device" in said
    store_run({}, dataset="building", building_csv=str(tmp_path / "precious"))
    assert read_stored_flags(str(tmp_path / "run"))["building_csv"] == ""
    os.replace(tmp_path / "pipe", tmp_path / "run" / "config.json")
    assert "no valid config.json" in refuse(str(tmp_path / "run"), lambda words: read_stored_flags(*words))
