"""The command `launch.report` from its arguments to its files."""

import json
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from PIL import Image

from launch.runs.run_records import read_rows
from launch.runs.tables import write_table
from reproductions import report
from reproductions.registry import PAPERS
from reproductions.report import COLORS, main, reduce_colors

CELLS = tuple(f"async_periodic_mnist_iid_random_{kind}" for kind in ("fresh", "equal", "old", "synchronous"))


@pytest.fixture
def runs_dir(tmp_path, write_run):
    """Two seeds of whole runs, and one with a rate that is not its flagfile's."""
    for experiment, accuracy in zip(CELLS, (0.5, 0.4, 0.3, 0.2), strict=True):
        for seed in range(2):
            write_run(tmp_path / "runs", experiment, seed, rounds=40, accuracy=accuracy)
    deviating = ["--proximal_weight=0.5"]
    write_run(tmp_path / "runs", "async_periodic_mnist_iid_frequency_old", 0, rounds=1, arguments=deviating)
    return tmp_path / "runs"


def test_the_report_is_printed_and_written_and_a_zip_gives_the_same(runs_dir, tmp_path, capsys):
    """A picture of somebody else's beside it stays; and until the figure is drawn, that is said."""
    output, archive = tmp_path / "out", tmp_path / "runs.zip"
    output.mkdir()
    (output / "async_mine.png").write_bytes(b"no PNG of ours")
    arguments = ["--tables=async", f"--runs_dir={runs_dir}", f"--output={output}"]
    told = "not drawn: async.png, which the page shows; --figure draws it\n"
    assert main(arguments) == 0 and told in capsys.readouterr().err
    assert main([*arguments, "--figure", f"--archive={archive}"]) == 0
    printed = capsys.readouterr()
    words = 'generally outperforms FedAvg", IID, FedAvg with the same policy |'
    (claim,) = [line for line in printed.out.splitlines() if words in line]
    assert claim.split(" | ")[4] == "not run" and told not in printed.err
    assert "not counted: " in printed.err and "--proximal_weight=0.5, not 0.02" in printed.err
    made = {path.name: path.read_bytes() for path in output.iterdir()}
    assert made.pop("async_mine.png") == b"no PNG of ours"
    tables = ("claims", "legend", "levels", "results", "settings", "shares")
    assert sorted(made) == ["async.md", "async.png", *(f"async_{table}.csv" for table in tables)]
    assert made["async.md"].decode() == printed.out.removesuffix("\n") and "](async.png)" in printed.out
    rows = read_rows(output / "async_results.csv")
    assert [row["final"] for row in rows if row["scheduling"] == "frequency"] == ["not run"] * 10
    assert rows[0]["seeds"] == "2" and {"90.00 ± 0.00"} < {row["final"] for row in rows}
    again, kept = tmp_path / "again", archive.read_bytes()
    arguments = [f"--runs_dir={archive}", f"--archive={archive}", f"--output={again}", "--figure"]
    assert main(["--tables=async", *arguments]) == 0 and capsys.readouterr().out == printed.out
    assert {path.name: path.read_bytes() for path in again.iterdir()} == made and archive.read_bytes() == kept


def test_runs_of_another_paper_are_named(runs_dir, capsys):
    assert main(["--tables=fedcd", f"--runs_dir={runs_dir}"]) == 0
    assert "not counted: runs of 4 experiments of other tables; see --tables=async\n" in capsys.readouterr().err


def test_an_archive_gives_the_same_report_and_names_no_place(runs_dir, tmp_path, capsys):
    archive = tmp_path / "archive"
    assert main(["--tables=async", f"--runs_dir={runs_dir}", f"--archive={archive}"]) == 0
    expected = capsys.readouterr().out
    assert main(["--tables=async", f"--runs_dir={archive}", f"--archive={archive}"]) == 0
    assert capsys.readouterr().out == expected
    runs = sorted(str(path.relative_to(archive)) for path in archive.glob("*/*"))
    assert runs == sorted(f"{cell}/seed_{seed}" for cell in CELLS for seed in range(2))
    for config in archive.rglob("config.json"):
        assert str(tmp_path) not in config.read_text() and "data_dir" not in config.read_text()


def test_runs_of_several_places_are_counted_together(runs_dir, tmp_path, capsys):
    archive = tmp_path / "runs.zip"
    assert main(["--tables=async", f"--runs_dir={runs_dir}", f"--archive={archive}"]) == 0
    whole = capsys.readouterr().out
    for seed in range(2):
        shutil.rmtree(runs_dir / CELLS[seed] / f"seed_{seed}")
    assert main(["--tables=async", f"--runs_dir={runs_dir}"]) == 0
    assert capsys.readouterr().out != whole
    assert main(["--tables=async", f"--runs_dir={runs_dir}", f"--runs_dir={archive}"]) == 0
    assert capsys.readouterr().out == whole


def test_a_zip_of_the_wrong_kind_is_one_line(tmp_path, capsys):
    (tmp_path / "text.zip").write_text("no zip")
    with zipfile.ZipFile(tmp_path / "foreign.zip", "w") as archive:
        archive.writestr("readme.txt", "hello")
    for name, message in (("text", "cannot be read as a zip"), ("foreign", "a zip without runs")):
        assert main(["--tables=async", f"--runs_dir={tmp_path / name}.zip"]) == 2
        printed = capsys.readouterr()
        assert message in printed.err and printed.err.count("\n") == 1


def test_runs_on_a_subset_are_named_also_from_an_archive(runs_dir, tmp_path, capsys):
    path = runs_dir / CELLS[0] / "seed_1" / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "data": {"dataset": "mnist subset (10 + 2 images)", "digest": "x"}}))
    said = "1 of the runs with `--dataset=mnist` had mnist subset (10 + 2 images)."
    for folder in (runs_dir, tmp_path / "archive"):
        arguments = [f"--runs_dir={folder}", f"--archive={tmp_path / 'archive'}", f"--output={tmp_path / 'out'}"]
        assert main(["--tables=async", *arguments]) == 0
        assert said in capsys.readouterr().out and said in (tmp_path / "out" / "async.md").read_text()


@pytest.mark.parametrize("loss", ["nan", "inf"])
def test_a_run_that_diverged_is_named(loss, runs_dir, capsys):
    arguments = ["--tables=async", f"--runs_dir={runs_dir}"]
    assert main(arguments) == 0 and "Diverged" not in capsys.readouterr().out
    path = runs_dir / CELLS[2] / "seed_1" / "metrics.csv"
    rows = read_rows(path)
    for row in rows[37:]:
        row["test_loss"] = loss
    write_table(path, list(rows[0]), [list(row.values()) for row in rows])
    assert main(arguments) == 0
    said = f"Diverged: {CELLS[2]}, seed 1: the test loss is no finite number in 3 of 40 rounds, first in round 38. "
    printed = capsys.readouterr().out
    assert said in printed and printed.count("Diverged") == 1


def test_an_empty_folder_gives_a_report_of_what_is_not_run(tmp_path, capsys):
    (tmp_path / "runs").mkdir()
    assert main(["--tables=async", f"--runs_dir={tmp_path / 'runs'}", f"--output={tmp_path / 'out'}"]) == 0
    assert {row["printed"] for row in read_rows(tmp_path / "out" / "async_claims.csv")} == {
        "not run",
        "by construction",
    }
    assert f"no runs of these tables in {tmp_path / 'runs'}; make some with" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--tables is missing"),
        (["--tables=nope"], "nope"),
        (["--tables=fedsikd", "--runs_dir=/no/such"], "no such folder or archive"),
        (["--tables=fedsikd", "--runs_dir=/no/such.zip"], "no such folder or archive"),
        (["--tables=quantization", "--runs_dir=.", "--output=x", "--figure"], "has no figure"),
        (["--tables=fedsikd", "--runs_dir=.", "--figure"], "--figure needs --output"),
        (["--tables=fedsikd", f"--output={__file__}"], "a file; expected a folder"),
        (["--tables=fedsikd", f"--archive={__file__}"], "a file; expected a folder or a name that ends in .zip"),
        (["--tables=all"], "needs --output"),
        (["--tables=all", "--output=x", "--archive=y"], "no --archive"),
        (["--tables=all", "--output=x", "--runs_dir=."], "fedsikd.zip: no such folder or archive"),
        (["--table=fedsikd"], "did you mean --tables?"),
        (["--tables=fedsikd", "stray"], "stray: expected flags only"),
    ],
)
def test_a_wrong_request_is_one_line_and_exit_code_2(arguments, message, capsys):
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1


def test_all_pages_are_made_at_once(tmp_path, monkeypatch, capsys):
    """Each of its own archive; and beside their folder the page of all, of the tables that they have."""
    asked = []

    def make(request):
        asked.append((request.tables, *request.runs_dirs))
        return PAPERS[request.tables].build_report([])

    monkeypatch.setattr(report, "open_runs", lambda path: path.name)
    monkeypatch.setattr(report, "make_report", make)
    assert main(["--tables=all", f"--runs_dir={tmp_path}", f"--output={tmp_path / 'results'}"]) == 0
    assert asked == [(name, f"{name}.zip") for name in PAPERS]
    text = (tmp_path / "results.md").read_text()
    assert all(f"](results/{name}.md)" in text for name in PAPERS) and "reproduced 0 in at least one setting" in text
    assert f"written: {tmp_path / 'results.md'}\n" in capsys.readouterr().err


def test_an_output_that_cannot_be_written_is_one_line(runs_dir, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["--tables=async", f"--runs_dir={runs_dir}", f"--output={tmp_path / 'file' / 'out'}"]) == 1
    assert "cannot write" in capsys.readouterr().err


def test_help_is_quick_and_imports_nothing_heavy():
    code = (
        "import sys, launch.report as r; r.main(['--help']); print(sys.modules.keys() & {'tensorflow', 'matplotlib'})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    assert run.stdout.splitlines()[-1] == "set()"
    assert "--runs_dir [runs]" in run.stdout


def test_a_figure_keeps_its_colours_and_is_the_same_again(tmp_path):
    path = tmp_path / "figure.png"
    pixels = np.full((40, 60, 4), 255, np.uint8)
    pixels[10:20, 5:50, :3] = (200, 30, 30)
    Image.fromarray(pixels).save(path)
    reduce_colors(path)
    with Image.open(path) as image:
        assert image.mode == "P" and len(image.getcolors()) <= COLORS
        assert np.array_equal(np.array(image.convert("RGB")), pixels[..., :3])
    before = path.read_bytes()
    reduce_colors(path)
    assert path.read_bytes() == before
