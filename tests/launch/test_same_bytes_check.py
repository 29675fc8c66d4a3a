"""The check of `make test-same-bytes`: its settings resolve, and it finds what differs; stand-ins make the runs."""

import contextlib
import importlib.util
import json
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

from launch.benchmarks.revisions import RevisionError
from launch.settings.flags import parse_config

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "same_bytes"
ALGORITHMS = (
    *("fedavg", "fedsikd", "random_cluster", "fl_hc", "fedcd", "async_periodic", "fed_async", "buffered", "amfl_p"),
    *("fine_tuning", "local_only"),
)
RESOLVE_ALL = """
import sys
sys.path.insert(0, "tests/same_bytes")
from settings import SETTINGS
from launch.settings.flags import parse_config
for name, arguments in SETTINGS.items():
    try:
        parse_config(arguments)
    except ValueError as error:
        sys.exit(f"{name}: {error}")
loaded = {"tensorflow", "tensorflow_federated", "sklearn", "matplotlib"} & sys.modules.keys()
sys.exit(f"imported: {loaded}" if loaded else 0)
"""


@pytest.fixture(scope="module")
def modules():
    """The script and its settings, as (check, settings)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        loaded = []
        for name in ("settings", "compare_revisions"):
            spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
            loaded.append(importlib.util.module_from_spec(spec))
            patch.setitem(sys.modules, name, loaded[-1])
            spec.loader.exec_module(loaded[-1])
        settings, check = loaded
        yield check, settings


@pytest.fixture
def check(modules):
    return modules[0]


def write_run(folder, metrics="round,loss\n1,0.5\n", rounds=3, weights=(1.0, 2.0), **others):
    """A run folder with these tables, a summary and a checkpoint."""
    (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
    for name, text in {"metrics": metrics, **others}.items():
        (folder / f"{name}.csv").write_text(text)
    (folder / "summary.json").write_text(json.dumps({"rounds": rounds}))
    for number in (9, 10):
        np.savez(folder / "checkpoints" / f"round_{number}.npz", np.float32(weights) * (number == 10))
    return folder


def test_every_setting_resolves_without_tensorflow():
    ended = subprocess.run([sys.executable, "-c", RESOLVE_ALL], cwd=ROOT, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_settings_are_named_after_their_algorithm_and_small(modules):
    _, settings = modules
    assert set(ALGORITHMS) <= settings.SETTINGS.keys()
    for name, arguments in settings.SETTINGS.items():
        config = parse_config(arguments)
        assert re.fullmatch(rf"{config.algo}(_[a-z0-9_]+)?", name)
        assert config.rounds == settings.ROUNDS < settings.MORE_ROUNDS
        assert config.num_clients <= 10
        assert not config.run_page
        assert config.runtime == ("tff" if name.endswith("_worker") else "in_process")


def test_no_two_settings_are_the_same(modules):
    _, settings = modules
    assert len({tuple(sorted(arguments)) for arguments in settings.SETTINGS.values()}) == len(settings.SETTINGS)


def test_the_same_tables_are_the_same(check, tmp_path):
    runs = [write_run(tmp_path / name, clients="a\n", events="b\n") for name in ("before", "here")]
    assert check.find_difference(*runs) == ""
    assert check.describe_checkpoints(*runs) == "checkpoint too"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"metrics": "round,loss\n1,0.6\n"}, "metrics.csv, line 2:\n    before  1,0.5\n    here    1,0.6"),
        ({"metrics": "round,loss\n"}, "metrics.csv, line 2:\n    before  1,0.5\n    here    "),
        ({"metrics": "round,loss\n1,0.5\n2"}, "metrics.csv, line 3:\n    before  \n    here    2"),
        ({"metrics": "round,loss\n1,0.5"}, "metrics.csv, line 3:\n    before  \n    here    no such line"),
        (
            {"metrics": "round,loss\r\n1,0.5\n"},
            "metrics.csv, line 1:\n    before  round,loss\n    here    round,loss\r",
        ),
        ({"clients": "b\n"}, "clients.csv, line 1:\n    before  a\n    here    b"),
        ({"events": "b\n"}, "events.csv is missing at the revision before"),
    ],
)
def test_the_first_line_that_differs_is_shown(changed, said, check, tmp_path):
    before = write_run(tmp_path / "before", clients="a\n")
    here = write_run(tmp_path / "here", **{"clients": "a\n", **changed})
    assert check.find_difference(before, here) == said


def test_a_run_that_is_not_there_is_a_difference(check, tmp_path):
    run = write_run(tmp_path / "run")
    assert check.find_difference(run, tmp_path / "none") == "metrics.csv is missing here"
    assert check.find_difference(tmp_path / "none", run) == "metrics.csv is missing at the revision before"
    assert check.find_difference(tmp_path / "none", tmp_path / "none") == "neither revision could run it"


def test_the_last_checkpoints_are_compared_bit_by_bit(check, tmp_path):
    before = write_run(tmp_path / "before", weights=(1.0, 0.0))
    after = [write_run(tmp_path / "minus_zero", weights=(1.0, -0.0)), write_run(tmp_path / "longer", weights=(1, 0, 0))]
    assert {check.describe_checkpoints(before, run) for run in after} == {"1 of 1 arrays of the checkpoints differ"}
    assert check.describe_checkpoints(before, tmp_path / "none") == "checkpoints hold 1 and 0 arrays"


def test_a_run_without_all_its_rounds_is_made_again(check, tmp_path):
    write_run(tmp_path / "whole" / "seed_0")
    write_run(tmp_path / "short" / "seed_0", rounds=2)
    spent = write_run(tmp_path / "spent" / "seed_0")
    (spent / "summary.json").write_text('{"rounds": 2, "budget_spent": true}')
    assert check.find_unfinished(tmp_path, ["whole", "short", "spent", "none"], 3) == ["short", "none"]


def test_kept_runs_of_other_flags_are_removed(check, tmp_path, monkeypatch):
    names = ["fedavg", "fedcd"]
    check.prepare(tmp_path, names)
    for name in names:
        write_run(tmp_path / "runs" / name / "seed_0")
    monkeypatch.setitem(check.SETTINGS, "fedcd", (*check.SETTINGS["fedcd"], "--seed=1"))
    check.prepare(tmp_path, names)
    assert check.find_unfinished(tmp_path / "runs", names, 3) == ["fedcd"]
    assert (tmp_path / "flagfiles" / "fedcd.flags").read_text().splitlines()[-1] == "--seed=1"


def test_a_flagfile_names_the_data_in_its_folder(check, tmp_path):
    check.prepare(tmp_path, ["fedavg_broken_client"])
    flags = (tmp_path / "flagfiles" / "fedavg_broken_client.flags").read_text()
    with np.load(re.search("--npz=(.*)", flags)[1]) as data:
        assert data["x"].dtype == np.float32
        assert np.isfinite(data["x"]).all()
        assert set(data["client"][np.abs(data["x"]).max(1) > 1e30]) == {2}


def test_settings_are_chosen_by_name_and_beginning(check):
    assert check.choose("") == list(check.SETTINGS)
    assert check.choose("fedcd, fedavg") == ["fedavg", "fedcd"]
    chosen = check.choose("fl_hc*,fedavg")
    assert chosen[:2] == ["fedavg", "fl_hc"]
    assert len(chosen) == 1 + sum(name.startswith("fl_hc") for name in check.SETTINGS)
    with pytest.raises(check.CheckError, match=r"^--only: fedavgg is no setting"):
        check.choose("fedavg,fedavgg")


def test_a_kept_reference_is_of_one_commit_and_machine(check, tmp_path, monkeypatch):
    check.claim_reference(tmp_path, "a" * 40)
    check.claim_reference(tmp_path, "a" * 40)
    with pytest.raises(check.CheckError, match=f"it has runs of commit {'a' * 40}, not {'b' * 40}; choose another"):
        check.claim_reference(tmp_path, "b" * 40)
    monkeypatch.setattr(check, "describe_machine", lambda: {"cores": 1000})
    with pytest.raises(check.CheckError, match=r"it has runs of cores \d+, not 1000; choose another"):
        check.claim_reference(tmp_path, "a" * 40)


@pytest.fixture
def revisions(check, tmp_path, monkeypatch):
    """Two trees that stand in for revisions: (calls of the sweep, {tree: what its runs' metrics end with})."""
    calls, ends = [], {"old": "", check.PROJECT_FOLDER.name: ""}

    def sweep(place, flagfiles, names, runs, rounds):
        calls.append((place.tree.name, runs, list(names)))
        for name in names:
            run = place.folder / runs / name / "seed_0"
            started = (run / "metrics.csv").read_text() if run.exists() else (flagfiles / f"{name}.flags").read_text()
            write_run(run, f"{started}\n{rounds}{ends[place.tree.name]}", rounds)

    monkeypatch.setattr(check, "sweep", sweep)
    monkeypatch.setattr(check, "resolve_revision", lambda revision: revision * 40)
    monkeypatch.setattr(check, "check_out", lambda commit: contextlib.nullcontext(tmp_path / "old"))
    return calls, ends


def test_two_revisions_that_do_the_same_pass(check, revisions, capsys):
    here = check.PROJECT_FOLDER.name
    assert check.main(["--revision=a", "--only=fedavg,fedcd"]) == 0
    assert revisions[0] == [("old", "runs", ["fedavg", "fedcd"]), (here, "runs", ["fedavg", "fedcd"])]
    assert capsys.readouterr().out.splitlines() == [
        *("runs:", "fedavg: same, checkpoint too", "fedcd: same, checkpoint too", "all the same")
    ]


def test_a_difference_is_exit_code_1(check, revisions, capsys):
    revisions[1][check.PROJECT_FOLDER.name] = "!"
    assert check.main(["--revision=a", "--only=fedavg,fedcd"]) == 1
    shown = capsys.readouterr().out
    assert "fedavg: DIFFERENT, metrics.csv, line" in shown
    assert shown.endswith("    here    3!\n2 of 2 differ: fedavg, fedcd\n")


def test_a_kept_reference_is_not_made_again(check, revisions, tmp_path):
    calls, here = revisions[0], check.PROJECT_FOLDER.name
    kept = ["--revision=a", f"--keep_reference={tmp_path / 'kept'}"]
    assert check.main([*kept, "--only=fedavg", "--only_reference"]) == 0
    assert calls == [("old", "runs", ["fedavg"])]
    calls.clear()
    assert check.main([*kept, "--only=fedavg,fedcd"]) == 0
    assert calls == [("old", "runs", ["fedcd"]), (here, "runs", ["fedavg", "fedcd"])]


def test_runs_of_the_revision_before_are_gone_on_with_from_here(check, revisions, tmp_path, capsys):
    calls, ends = revisions
    here = check.PROJECT_FOLDER.name
    command = ["--revision=a", "--only=fedavg", "--resume", f"--output={tmp_path / 'output'}"]
    assert check.main(command) == 0
    assert calls == [(tree, runs, ["fedavg"]) for tree in ("old", here) for runs in ("runs", "resumed")]
    resumed = tmp_path / "output" / "here" / "resumed" / "fedavg" / "seed_0" / "metrics.csv"
    assert resumed.read_text().splitlines()[-2:] == ["3", "5"]
    ends[here] = "!"
    assert check.main(command) == 1  # from the old one's run, so that only its own end differs
    assert resumed.read_text().splitlines()[-2:] == ["3", "5!"]
    assert capsys.readouterr().out.endswith("2 of 2 differ: fedavg, fedavg\n")


def test_a_wrong_request_is_one_line(check, monkeypatch, capsys):
    def refuse(revision):
        raise RevisionError("expected a revision of this repository; git log lists them")

    monkeypatch.setattr(check, "resolve_revision", refuse)
    assert check.main(["--revision=nope"]) == 2
    assert check.main(["--revision=nope", "--only=nope"]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first == "error: --revision=nope: expected a revision of this repository; git log lists them"
    assert second.startswith("error: --only: nope is no setting; expected")


def test_a_setting_that_the_revision_refuses_is_named(check, tmp_path):
    """The real sweep, which answers before it imports TensorFlow."""
    (tmp_path / "wrong.flags").write_text("--algo=fedavg\n--fedavg_steps=-1\n")
    place = check.Place("there", ROOT, tmp_path)
    with pytest.raises(check.CheckError, match=r"^there: error: .*wrong\.flags.*fedavg_steps=-1"):
        check.sweep(place, tmp_path, ["wrong"], "runs", 3)
