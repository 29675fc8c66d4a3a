"""Which models, formats and clients an export takes, and the folder it writes into."""

import pytest

from launch.runs.errors import RunFolderError
from launch.settings.flags import FlagError
from launch.settings.run_config import build_run_config
from launch.tflite.export_plan import open_export_folder, plan_exports, split_names
from launch.tflite.representatives import check_representative_client
from launch.training.finished_run import FinishedRun

CLIENTS = {"client_0": "cluster_0", "client_1": "cluster_1", "client_2": "cluster_1"}
FLOAT_FORMATS = ("float32", "float16", "dynamic", "int8")


@pytest.fixture
def make_run(tmp_path):
    """(**flags) -> a run with two shared models and a teacher."""

    def make(rounds=3, **flags):
        for name in ("cluster_0", "cluster_1", "teacher_0"):
            (tmp_path / "models" / name).mkdir(parents=True, exist_ok=True)
            (tmp_path / "models" / name / "model.keras").touch()
        config = build_run_config({"algo": "fedsikd", **flags})
        return FinishedRun(tmp_path, config, {}, CLIENTS, frozenset({"teacher_0"}), rounds)

    return make


def test_all_are_the_shared_models_with_their_clients(make_run):
    first, second = plan_exports(make_run(), "all", ())
    assert first == ("cluster_0", "cluster_0", False, FLOAT_FORMATS, ("client_0",), False)
    assert second.clients == ("client_1", "client_2")


@pytest.mark.parametrize(
    ("change", "model", "formats", "error", "message"),
    [
        (
            {},
            "cluster_1,client_9",
            (),
            FlagError,
            r"--model=cluster_1,client_9: expected all, or a shared model \(cluster_0, cluster_1\), or a teacher "
            r"\(teacher_0\), or a client \(client_0, client_1, client_2\)$",
        ),
        ({}, "teacher_0", ("qat_int8",), FlagError, "--model=teacher_0: a teacher is a float model"),
        ({"is_personal": True}, "client_2", (), RunFolderError, "its checkpoints are gone"),
        (
            {"client_models": {"client_0": "own"}},
            "client_0",
            (),
            RunFolderError,
            "own, the model of client_0, is not among the saved ones",
        ),
    ],
)
def test_what_cannot_be_exported_is_refused(make_run, change, model, formats, error, message):
    with pytest.raises(error, match=message):
        plan_exports(make_run(quantize="qat")._replace(**change), model, formats)


def test_several_models_are_asked_for_with_commas(make_run):
    exports = plan_exports(make_run(), "cluster_1,client_0,cluster_1", ("float32",))
    assert [export[:2] for export in exports] == [("cluster_1", "cluster_1"), ("client_0", "cluster_0")]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b", ["a,b"]),
        ("a,b,c", ["a,b", "c"]),
        ("a,c,a", ["a", "c"]),
        ("c,a,b", ["c", "a,b"]),
        (",c", ["", "c"]),
        ("", [""]),
        ("a,b,", ["a,b", ""]),
        ("a,d", []),
        ("b", []),
    ],
)
def test_names_with_commas_can_be_asked_for(text, names):
    assert split_names(text, {"a", "a,b", "c", ""}) == names


def test_a_client_stands_for_the_model_it_uses(make_run):
    [export] = plan_exports(make_run(), "client_2", ("int8", "float32"))
    assert export == ("client_2", "cluster_1", False, ("float32", "int8"), ("client_2",), False)


def test_a_client_of_a_personal_run_is_what_it_made_of_the_shared_model(make_run, tmp_path):
    run = make_run()._replace(is_personal=True)
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(RunFolderError, match="its checkpoints are gone"):
        plan_exports(run, "client_2", ())
    (tmp_path / "checkpoints" / "round_3.npz").touch()
    [export] = plan_exports(run, "client_2", ("float32",))
    assert export == ("client_2", "cluster_1", False, ("float32",), ("client_2",), True)
    assert not plan_exports(run, "cluster_1", ())[0].is_personal


def test_a_teacher_is_float_and_has_no_clients(make_run):
    [export] = plan_exports(make_run(quantize="qat"), "teacher_0", ())
    assert export == ("teacher_0", "teacher_0", True, FLOAT_FORMATS, (), False)


@pytest.mark.parametrize(("rounds", "has_qat"), [(4, False), (5, True)])
def test_qat_int8_needs_a_run_that_came_to_quantization(make_run, rounds, has_qat):
    run = make_run(rounds, quantize="qat", qat_start_round=5)
    assert ("qat_int8" in plan_exports(run, "cluster_0", ())[0].formats) == has_qat
    if not has_qat:
        with pytest.raises(FlagError, match="train with --quantize=qat, or take int8"):
            plan_exports(run, "all", ("qat_int8",))


def test_an_unknown_representative_client_is_refused(make_run):
    check_representative_client(make_run(), "")
    with pytest.raises(FlagError, match="no such client; expected one of client_0, client_1, client_2"):
        check_representative_client(make_run(), "client_3")


def list_names(folder):
    return sorted(path.name for path in folder.iterdir())


def fill(folder, *names):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("of before")


def test_files_appear_together_and_what_a_killed_export_left_goes(make_run):
    run = make_run()
    fill(run.path / "export", "mine")
    fill(run.path / ".999999999.export", "half.tflite")
    with open_export_folder(run) as folder:
        fill(folder, "a")
        assert list_names(run.path / "export") == ["mine"]
    assert list_names(run.path / "export") == ["a", "mine"]
    assert list_names(run.path) == ["export", "models"]


def test_an_export_replaces_an_earlier_one(make_run, capsys):
    """Also of one of an earlier version, and of models that the run has no more; what is no export's stays."""
    run = make_run()
    folder = run.path / "export"
    own = ["README.md", "mine.int8.tflite", "cluster_0.int8.old.tflite", "notes.json", "cluster_0.tflite", "a.csv"]
    of_one = ["cluster_0.int8", "client_2.training", "teacher_0.float16", "cluster_7.qat_int8"]
    fill(folder, *own, *(f"{name}.{end}" for name in of_one for end in ("tflite", "json", "confusions.png")))
    fill(folder, "cluster_0.int8.layers.csv", "report.md", "report.csv", "report_clients.csv", "report_teachers.csv")
    fill(folder, "card.md", "labels.txt", "test_set.npz", "page.html")
    (folder / "card.json").write_text('{"files": [{"file": "cluster_7.qat_int8.tflite"}]}')
    fill(folder / "best", "card.json", "cluster_0.int8.tflite")
    before = list_names(folder)
    with open_export_folder(run) as new:
        fill(new, "cluster_0.float32.tflite", "report.md", "report.csv", "card.json")
    now = sorted([*own, "best", "cluster_0.float32.tflite", "report.md", "report.csv", "card.json"])
    assert list_names(folder) == now and list_names(folder / "best") == ["card.json", "cluster_0.int8.tflite"]
    gone = sorted({*before} - {*now})
    assert len(gone) == 19 and capsys.readouterr().out == (
        f"removed  19 files of an earlier export, which this one does not have: {gone[0]}, {gone[1]}, ..., {gone[-1]}\n"
    )


def test_an_export_of_the_best_round_leaves_that_of_the_last(make_run, capsys):
    run = make_run()
    fill(run.path / "export", "cluster_0.int8.tflite", "report.csv")
    fill(run.path / "export" / "best", "client_1.int8.tflite", "page.html")
    with open_export_folder(run._replace(is_best=True)) as new:
        fill(new, "report.csv")
    assert list_names(run.path / "export") == ["best", "cluster_0.int8.tflite", "report.csv"]
    assert list_names(run.path / "export" / "best") == ["report.csv"]
    assert capsys.readouterr().out.endswith("does not have: client_1.int8.tflite, page.html\n")


@pytest.mark.parametrize("card", ["", "{", "[]", '{"files": 3}', '{"files": [3, {}]}', '{"files": [{"file": ["x"]}]}'])
def test_a_damaged_card_of_before_changes_nothing(make_run, card):
    run = make_run()
    fill(run.path / "export", "client_1.int8.tflite", "mine.int8.tflite")
    (run.path / "export" / "card.json").write_text(card)
    with open_export_folder(run) as new:
        fill(new, "report.csv")
    assert list_names(run.path / "export") == ["mine.int8.tflite", "report.csv"]


def test_nothing_outside_of_the_folder_is_removed(make_run, tmp_path):
    """Of links the links go; a folder that lies elsewhere is refused, and one instead of a file stops all."""
    run, outside = make_run(), tmp_path.parent / f"{tmp_path.name}_outside"
    folder = run.path / "export"
    fill(outside, "cluster_0.int8.tflite", "report.csv")
    folder.symlink_to(outside)
    with pytest.raises(RunFolderError, match="its export folder lies elsewhere, by a link"), open_export_folder(run):
        pass
    folder.unlink()
    folder.mkdir()
    for path in outside.iterdir():
        (folder / path.name).symlink_to(path)
    with open_export_folder(run) as new:
        (new / "report.csv").write_text("new")
    assert list_names(folder) == ["report.csv"]
    assert {path.read_text() for path in outside.iterdir()} == {"of before"} and len(list_names(outside)) == 2
    (folder / "card.json").mkdir()
    fill(folder, "client_0.int8.tflite")
    with pytest.raises(RunFolderError, match=r"card\.json: is a folder"), open_export_folder(run) as new:
        fill(new, "a", "card.json")
    assert list_names(folder) == ["card.json", "client_0.int8.tflite", "report.csv"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_after_an_error_nothing_is_left(make_run, error):
    run = make_run()
    with pytest.raises(error), open_export_folder(run) as folder:
        fill(folder, "a")
        raise error
    assert list_names(run.path) == ["models"]


def test_a_folder_that_cannot_be_written_is_one_line(make_run, monkeypatch):
    run = make_run()

    def refuse(message, run=run):
        with pytest.raises(RunFolderError, match=message), open_export_folder(run):
            pass

    (run.path / "export").touch()
    refuse("export is a file there")
    (run.path / "export").unlink()
    (run.path / "export").mkdir()
    monkeypatch.setattr("os.access", lambda path, mode: False)
    refuse("cannot write into its export folder")
    refuse("cannot write there", run._replace(path=run.path / "gone"))
