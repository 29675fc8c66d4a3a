"""The command `launch.report` from its arguments to its files."""

import dataclasses
import json
import math
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from PIL import Image

from launch.runs.run_records import RunRecord, read_rows
from reproductions import report
from reproductions.engine.page import list_remarks
from reproductions.engine.paper import Paper
from reproductions.engine.tables import Table
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


@pytest.fixture
def report_async(runs_dir, capsys):
    """(arguments) -> what the command prints, and what it says beside; of the runs unless the arguments name others."""

    def make(*arguments):
        others = any(each.startswith("--runs_dir") for each in arguments)
        assert main(["--tables=async", *([] if others else [f"--runs_dir={runs_dir}"]), *arguments]) == 0
        return capsys.readouterr()

    return make


def test_the_report_is_printed_and_written_and_a_zip_gives_the_same(report_async, tmp_path):
    """A picture of somebody else's beside it stays; and until the figure is drawn, that is said."""
    output, archive, again = tmp_path / "out", tmp_path / "runs.zip", tmp_path / "again"
    output.mkdir()
    (output / "async_mine.png").write_bytes(b"no PNG of ours")
    told = "not drawn: async.png, which the page shows; --figure draws it\n"
    assert told in report_async(f"--output={output}").err
    printed = report_async(f"--output={output}", "--figure", f"--archive={archive}")
    words = 'generally outperforms FedAvg", IID, FedAvg with the same policy |'
    (claim,) = [line for line in printed.out.splitlines() if words in line]
    assert claim.split(" | ")[4] == "**not run** |" and told not in printed.err
    assert "not counted: " in printed.err and "--proximal_weight=0.5, not 0.02" in printed.err
    made = {path.name: path.read_bytes() for path in output.iterdir()}
    assert made.pop("async_mine.png") == b"no PNG of ours"
    tables = ("claims", "experiments", "legend", "levels", "results", "settings", "shares")
    assert sorted(made) == ["async.md", "async.png", *(f"async_{table}.csv" for table in tables)]
    assert made["async.md"].decode() == printed.out.removesuffix("\n") and "](async.png)" in printed.out
    rows = read_rows(output / "async_results.csv")
    assert [row["final"] for row in rows if row["scheduling"] == "frequency"] == ["not run"] * 10
    assert rows[0]["seeds"] == "2" and {"90.00 ± 0.00"} < {row["final"] for row in rows}
    kept = archive.read_bytes()
    arguments = [f"--runs_dir={archive}", f"--archive={archive}", f"--output={again}", "--figure"]
    assert report_async(*arguments).out == printed.out and archive.read_bytes() == kept
    assert {path.name: path.read_bytes() for path in again.iterdir()} == made


def test_runs_of_another_paper_are_named(runs_dir, capsys):
    assert main(["--tables=fedcd", f"--runs_dir={runs_dir}"]) == 0
    assert "not counted: runs of 4 experiments of other tables; see --tables=async\n" in capsys.readouterr().err


def test_runs_of_several_places_are_counted_together(report_async, runs_dir, tmp_path):
    archive = tmp_path / "runs.zip"
    whole = report_async(f"--archive={archive}").out
    for seed in range(2):
        shutil.rmtree(runs_dir / CELLS[seed] / f"seed_{seed}")
    assert report_async().out != whole == report_async(f"--runs_dir={runs_dir}", f"--runs_dir={archive}").out


def test_runs_on_a_subset_are_named_also_from_an_archive(report_async, runs_dir, tmp_path):
    path = runs_dir / CELLS[0] / "seed_1" / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "data": {"dataset": "mnist subset (10 + 2 images)", "digest": "x"}}))
    archive = tmp_path / "archive"
    for folder in (runs_dir, archive):
        printed = report_async(f"--runs_dir={folder}", f"--archive={archive}").out
        assert "1 of the runs with `--dataset=mnist` had mnist subset (10 + 2 images)." in printed


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_run_that_diverged_is_named(loss):
    rounds = {number: {"test_accuracy": 0.5, "test_loss": loss if number > 37 else 1.0} for number in range(1, 41)}
    runs = [RunRecord(None, {"seed": 1, "dataset": ""}, name, rounds) for name in ("calm", "lost")]
    calm = dataclasses.replace(runs[0], rounds={number: rounds[number] for number in range(1, 38)})
    assert list_remarks([calm, runs[1]]) == [
        "Diverged: lost, seed 1: the test loss is no finite number in 3 of 40 rounds, first in round 38. All its "
        "accuracies count."
    ]


def test_an_empty_folder_gives_a_report_of_what_is_not_run(report_async, tmp_path):
    (tmp_path / "none").mkdir()
    said = report_async(f"--runs_dir={tmp_path / 'none'}", f"--output={tmp_path / 'out'}").err
    printed = {row["printed"] for row in read_rows(tmp_path / "out" / "async_claims.csv")}
    assert printed == {"not run", "by construction"}
    assert f"no runs of these tables in {tmp_path / 'none'}; make some with" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--tables is missing"),
        (["--tables=nope"], "nope"),
        (["--tables=fedsikd", "--runs_dir=/no/such"], "no such folder or archive"),
        (["--tables=fedsikd", "--runs_dir=/no/such.zip"], "no such folder or archive"),
        (["--tables=fedsikd", "--runs_dir=text.zip"], "cannot be read as a zip"),
        (["--tables=fedsikd", "--runs_dir=foreign.zip"], "a zip without runs"),
        (["--tables=quantization", "--runs_dir=.", "--output=x", "--figure"], "has no figure"),
        (["--tables=fedsikd", "--runs_dir=.", "--figure"], "--figure needs --output"),
        (["--tables=fedsikd", "--output=text.zip"], "a file; expected a folder"),
        (["--tables=fedsikd", "--archive=text"], "a file; expected a folder or a name that ends in .zip"),
        (["--tables=all"], "needs --output"),
        (["--tables=all", "--output=x", "--archive=y"], "no --archive"),
        (["--tables=all", "--output=x", "--runs_dir=."], "fedsikd.zip: no such folder or archive"),
        (["--table=fedsikd"], "did you mean --tables?"),
        (["--tables=fedsikd", "stray"], "stray: expected flags only"),
        (["--tables=fedsikd", "--runs_dir=.", "--output=text/out"], "cannot write"),
    ],
)
def test_a_wrong_request_is_one_line(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("text", "text.zip"):
        (tmp_path / name).write_text("no zip")
    with zipfile.ZipFile("foreign.zip", "w") as archive:
        archive.writestr("readme.txt", "hello")
    could_begin = message == "cannot write"
    assert main(arguments) == (1 if could_begin else 2)
    lines = capsys.readouterr().err.splitlines()
    assert message in lines[-1] and (could_begin or len(lines) == 1)


def test_a_claim_counts_once_and_what_follows_by_construction_is_not_tested():
    """By the first of the verdicts; the second claim is counted with the first, whose weaker verdict it takes."""
    columns = ["claim", "counted_with", "printed", "tuned"]
    rows = [
        ["A", "", "reproduced", "not run"],
        ["B", "A", "undecided", "not run"],
        ["C", "", "not reproduced", "undecided"],
        ["D", "", "not reproduced", "reproduced"],
        ["E", "", "by construction", "not run"],
        ["F", "", "not comparable", "not comparable"],
    ]
    paper = Paper("mine", lambda *_: None)
    papers = [(paper, {"claims": Table(columns, rows)}), (paper, {})]
    assert report.summarize(papers) == (
        "Of 5 claims of 1 papers, our runs test 3: 1 reproduced, 1 not reproduced and 1 undecided."
    )
    assert report.count_claims(papers) == {
        **dict.fromkeys(("reproduced", "not reproduced", "undecided"), 1),
        "by construction": 1,
        "not comparable": 1,
    }


def test_all_pages_are_made_at_once(tmp_path, monkeypatch, capsys):
    """Each of its own archive; and beside their folder the page of all, of the tables that they have."""
    asked = []

    def make(flags, runs_dirs):
        asked.append((flags.tables, *runs_dirs))
        return PAPERS[flags.tables].build_report([])

    monkeypatch.setattr(report, "open_runs", lambda path: path.name)
    monkeypatch.setattr(report, "make_report", make)
    assert main(["--tables=all", f"--runs_dir={tmp_path}", f"--output={tmp_path / 'results'}"]) == 0
    assert asked == [(name, f"{name}.zip") for name in PAPERS]
    text = (tmp_path / "results.md").read_text()
    assert (
        all(f"](results/{name}.md)" in text for name in PAPERS)
        and ": 0 reproduced, 0 not reproduced and 0 undecided" in text
    )
    assert f"written: {tmp_path / 'results.md'}\n" in capsys.readouterr().err


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


def test_help_imports_nothing_heavy():
    heavy = "sys.modules.keys() & {'tensorflow', 'matplotlib'}"
    code = f"import sys, launch.report as r; r.main(['--help']); print({heavy})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.stdout.splitlines()[-1] == "set()" and "--runs_dir [runs]" in run.stdout
