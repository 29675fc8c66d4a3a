"""Archives of runs: the same bytes from the same runs, read like folders, refused with a reason when damaged."""

import io
import json
import os
import zipfile

import pytest

from launch.pages.plots.archetype_plots import read_preferences
from launch.runs import run_archive
from launch.runs.columns import PREFERS
from launch.runs.errors import RunFolderError
from launch.runs.round_table import EventLog
from launch.runs.run_archive import CONTENTS, Kept, archive_runs, compute_digest, open_runs, pack
from launch.runs.run_records import find_run_dirs, read_columns
from launch.runs.tables import write_json, write_table
from launch.settings.resuming import PLACES
from reproductions.engine.counted_runs import read_runs

CELL = "fedsikd_mnist_alpha0.1"


def read_all(runs):
    return read_runs(runs)[0]


def archive(tmp_path, name="kept", *, of="runs"):
    """Archives all runs of a folder into another one, and returns the folder of one run there."""
    archive_runs(read_all(tmp_path / of), tmp_path / name)
    return tmp_path / name / CELL / "seed_0"


def read_files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def open_contents(path):
    """The zip inside an archive."""
    with zipfile.ZipFile(path) as archive:
        return zipfile.ZipFile(io.BytesIO(archive.read(CONTENTS)))


def read_contents(path):
    """{name: content} of an archive."""
    with open_contents(path) as contents:
        return {name: contents.read(name) for name in contents.namelist()}


@pytest.fixture
def runs(tmp_path, write_run):
    for seed in (0, 1, 10):
        write_run(tmp_path / "runs", CELL, seed, rounds=2 + seed)
    write_run(tmp_path / "runs", CELL, 2, rounds=1, is_finished=False)
    return read_all(tmp_path / "runs")


def test_the_same_runs_give_the_same_contents_and_are_not_written_again(runs, tmp_path):
    path = tmp_path / "a.zip"
    archive_runs(runs, path)
    for each in (tmp_path / "runs").rglob("*"):
        os.utime(each, (0, 0))
        each.chmod(0o700)
    before = path.stat().st_mtime_ns
    archive_runs(reversed(runs), tmp_path / "b.zip")
    archive_runs(reversed(runs), path)
    assert path.stat().st_mtime_ns == before
    with zipfile.ZipFile(path) as first, zipfile.ZipFile(tmp_path / "b.zip") as second:
        (entry,) = first.infolist()
        assert entry.compress_type == zipfile.ZIP_LZMA
        assert first.comment == second.comment == compute_digest(first.read(CONTENTS)).encode()
    with open_contents(path) as contents:
        entries = contents.infolist()
    names = [entry.filename.rsplit("/", 1)[::-1] for entry in entries]
    assert names == sorted(names), "files of a kind side by side"
    assert {(entry.date_time, entry.compress_type, entry.external_attr >> 16) for entry in entries} == {
        ((1980, 1, 1, 0, 0, 0), zipfile.ZIP_STORED, 0o100644)
    }
    archive_runs(runs[:1], path)
    assert len(read_all(open_runs(path))) == 1


def test_only_what_a_report_reads_is_kept_and_no_path_of_one_machine(runs, tmp_path):
    for run in runs:
        write_table(run.path / "timing.csv", ["round", "round_s"], [["1", "2.5"]])
        config = json.loads((run.path / "config.json").read_text())
        write_json(run.path / "config.json", {**config, "flags": config["flags"] | dict.fromkeys(PLACES, "/somewhere")})
    before = read_files(tmp_path / "runs")
    archive_runs(runs, tmp_path / "runs")
    assert read_files(tmp_path / "runs") == before, "archived onto itself, a run must not lose what resuming needs"
    archive_runs(runs, tmp_path / "kept", Kept("test_accuracy|total_.*", ()))
    folder = tmp_path / "kept" / CELL / "seed_0"
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "metrics.csv", "summary.json"]
    flags = json.loads((folder / "config.json").read_text())["flags"]
    assert flags == {name: value for name, value in runs[0].flags.items() if name not in PLACES}
    whole = [{name: row[name] for name in ("round", "test_accuracy", "total_drift")} for row in runs[0].rounds.values()]
    assert list(read_all(tmp_path / "kept")[0].rounds.values()) == whole


def test_a_zip_and_a_folder_hold_the_same_and_are_read_alike(runs, tmp_path):
    archive_runs(runs, tmp_path / "a.zip")
    archive_runs(runs, tmp_path / "folder.zip.d")
    folder = (tmp_path / "folder.zip.d").rename(tmp_path / "folder.zip")  # a folder, however it is called
    zipped = read_contents(tmp_path / "a.zip")
    assert zipped == read_files(folder)
    (tmp_path / "old.zip").write_bytes(pack(zipped, zipfile.ZIP_STORED))  # as earlier versions made them
    ways = [read_all(open_runs(path)) for path in (tmp_path / "a.zip", folder, tmp_path / "old.zip")]
    first, *others = [[(run.experiment, run.flags, run.rounds) for run in way] for way in ways]
    assert others == [first] * 2
    of_zip = ways[0]
    assert [run.flags["seed"] for run in of_zip] == [0, 1, 10], "without the one that is not finished"
    assert str(of_zip[0].path).rstrip("/") == f"{tmp_path / 'a.zip'}/{CELL}/seed_0"
    assert read_columns(of_zip[1].path / "metrics.csv")["round"].tolist() == [1, 2, 3]
    assert not (of_zip[0].path / "events.csv").exists()


def test_of_tables_that_grow_with_clients_and_rounds_what_readers_ask_for_is_kept(tmp_path, write_run):
    """All clients of asynchronous runs are evaluated together: a table of names and sizes alone says nothing."""
    run_dir = write_run(tmp_path / "runs", CELL, 0, rounds=2)
    clients = [["a", "60", "0.5", "1", ""], ["b, c", "61", "", "0", ""]]
    write_table(run_dir / "clients.csv", ["client", "num_train", "accuracy", "cluster", "loss"], clients)
    write_table(run_dir / "timing.csv", ["round", "round_s", "host_memory_bytes"], [["1", "2.5", "9"], ["2", "3", "9"]])
    kept = archive(tmp_path)
    assert (kept / "clients.csv").read_text() == 'client,num_train,accuracy,cluster\na,60,0.5,1\n"b, c",61,,0\n'
    assert (kept / "timing.csv").read_text() == "round,round_s\n1,2.5\n2,3\n"
    assert read_files(archive(tmp_path, "again", of="kept")) == read_files(kept)
    write_table(run_dir / "clients.csv", ["client", "num_train", "accuracy"], [["a", "60", ""], ["b", "61", ""]])
    assert not (archive(tmp_path, "names") / "clients.csv").exists()


def test_of_events_the_changes_of_preference_and_the_last_round_are_kept(tmp_path, write_run):
    run_dir = write_run(tmp_path / "runs", CELL, 0, rounds=4)
    preferred = [[0, 0], [0, 2], [0, 2], [1, 2]]
    log = EventLog(run_dir / "events.csv")
    for i, (first, second) in enumerate(preferred):
        log.append(i + 1, [(1.5, 0, "cloned", 7), (1.5, 0, PREFERS, first), (1.5, 1, PREFERS, second)])
    assert not (archive(tmp_path, "without archetypes") / "events.csv").exists()
    config = json.loads((run_dir / "config.json").read_text())
    write_json(run_dir / "config.json", config | {"data": {"archetypes": {"of": [0, 0]}}})
    events = archive(tmp_path) / "events.csv"
    rows = ["1,0,prefers,0", "1,1,prefers,0", "2,1,prefers,2", "4,0,prefers,1", "4,1,prefers,2"]
    assert events.read_text().splitlines() == ["round,client,what,model", *rows]
    assert read_preferences(events).tolist() == read_preferences(run_dir / "events.csv").tolist() == preferred
    assert read_files(archive(tmp_path, "again", of="kept")) == read_files(events.parent)


def test_folders_in_a_zip_are_in_the_order_of_paths(tmp_path):
    names = ["a-b/seed_0", "a/seed_10", "a/seed_2", "deep/er/run"]
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name in names:
            archive.writestr(f"{name}/config.json", "{}")
            (tmp_path / "folder" / name).mkdir(parents=True)
            (tmp_path / "folder" / name / "config.json").write_text("{}")
    of_zip = [str(path).rstrip("/").split(".zip/")[1] for path in find_run_dirs(open_runs(tmp_path / "a.zip"))]
    assert of_zip == [str(path.relative_to(tmp_path / "folder")) for path in find_run_dirs(tmp_path / "folder")]


def test_any_damage_is_one_line(runs, tmp_path, monkeypatch):
    """A flipped or missing byte anywhere is either refused or changes nothing that is read; so is a bomb refused."""
    path, damaged, refused = tmp_path / "a.zip", tmp_path / "damaged.zip", 0
    archive_runs(runs[:1], path)
    content = path.read_bytes()
    expected = [(run.flags, run.rounds) for run in read_all(open_runs(path))]
    for place in range(0, len(content), 23):
        for bad in (content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :], content[:place]):
            damaged.write_bytes(bad)
            try:
                runs_read = open_runs(damaged)
            except RunFolderError as error:
                assert str(damaged) in str(error) and "\n" not in str(error)
                refused += 1
            else:
                assert [(run.flags, run.rounds) for run in read_all(runs_read)] in (expected, [])
    assert refused > len(content) / 23
    contents = pack(read_contents(path), zipfile.ZIP_STORED)
    path.write_bytes(pack({CONTENTS: contents}, zipfile.ZIP_LZMA, compute_digest(contents + b"x")))
    with pytest.raises(RunFolderError, match="damaged"):
        open_runs(path)
    monkeypatch.setattr(run_archive, "MAX_UNPACKED_BYTES", 10**3)
    path.write_bytes(pack({CONTENTS: bytes(10**6)}, zipfile.ZIP_LZMA))
    with pytest.raises(RunFolderError, match=r"a\.zip: cannot be read as a zip .*\(it unpacks to more"):
        open_runs(path)
