"""The command `launch.report` from its arguments to its files."""

import csv
import json
import shutil
import subprocess
import sys
import zipfile

import pytest

from launch.report import main

CELLS = ("fedsikd_mnist_alpha0.1", "fedavg_mnist_alpha0.1", "fl_hc_mnist_alpha0.1", "random_cluster_mnist_alpha0.1")


@pytest.fixture
def runs_dir(tmp_path, write_run):
    for experiment, accuracy in zip(CELLS, (0.9, 0.6, 0.5, 0.4), strict=True):
        for seed in range(2):
            write_run(tmp_path / "runs", experiment, seed, rounds=5, accuracy=accuracy)
    write_run(tmp_path / "runs", "fedsikd_har_alpha0.1", 0, rounds=1, arguments=["--fedsikd_label_weight=0.1"])
    return tmp_path / "runs"


def test_the_report_is_printed_and_written(runs_dir, tmp_path, capsys):
    assert main(["--tables=fedsikd", f"--runs_dir={runs_dir}", f"--output={tmp_path / 'out'}", "--figure"]) == 0
    printed = capsys.readouterr()
    assert "|  | ours (n = 2) | 91.00 ± 0.00 | 92.00 ± 0.00 |" in printed.out
    assert "| MNIST, highly skewed: FedSiKD outperforms the baselines | contradict it | reproduced |" in printed.out
    assert "not counted: " in printed.err and "--fedsikd_label_weight=0.1, not 0.5" in printed.err
    names = ["fedsikd.md", "fedsikd_claims.csv", "fedsikd_tables.csv", "figure_3.png"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    with open(tmp_path / "out" / "fedsikd_tables.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 64 + 320
    assert [row["ours_mean"] for row in rows if row["algo"] == "fedsikd" and row["round"] == "70"] == [""] * 4


def test_an_archive_gives_the_same_report_and_names_no_place(runs_dir, tmp_path, capsys):
    archive = tmp_path / "archive"
    assert main(["--tables=fedsikd", f"--runs_dir={runs_dir}", f"--archive={archive}"]) == 0
    expected = capsys.readouterr().out
    assert main(["--tables=fedsikd", f"--runs_dir={archive}", f"--archive={archive}"]) == 0
    assert capsys.readouterr().out == expected
    runs = sorted(str(path.relative_to(archive)) for path in archive.glob("*/*"))
    assert runs == sorted(f"{cell}/seed_{seed}" for cell in CELLS for seed in range(2))
    for config in archive.rglob("config.json"):
        assert str(tmp_path) not in config.read_text() and "data_dir" not in config.read_text()


def test_a_zip_gives_the_same_report_tables_and_figure_and_can_be_archived_onto_itself(runs_dir, tmp_path, capsys):
    archive, outputs = tmp_path / "runs.zip", []
    for place in (runs_dir, archive):
        output = tmp_path / f"of_{place.name}"
        arguments = [f"--runs_dir={place}", f"--archive={archive}", f"--output={output}", "--figure"]
        assert main(["--tables=fedsikd", *arguments]) == 0
        printed = capsys.readouterr().out
        outputs.append((printed, archive.read_bytes(), {path.name: path.read_bytes() for path in output.iterdir()}))
    assert outputs[0] == outputs[1]


def test_runs_of_several_places_are_counted_together(runs_dir, tmp_path, capsys):
    whole, archive = [], tmp_path / "runs.zip"
    assert main(["--tables=fedsikd", f"--runs_dir={runs_dir}", f"--archive={archive}"]) == 0
    whole = capsys.readouterr().out
    for seed in range(2):
        shutil.rmtree(runs_dir / CELLS[seed] / f"seed_{seed}")
    assert main(["--tables=fedsikd", f"--runs_dir={runs_dir}"]) == 0
    assert capsys.readouterr().out != whole
    assert main(["--tables=fedsikd", f"--runs_dir={runs_dir}", f"--runs_dir={archive}"]) == 0
    assert capsys.readouterr().out == whole


def test_a_zip_of_the_wrong_kind_is_one_line(tmp_path, capsys):
    (tmp_path / "text.zip").write_text("no zip")
    with zipfile.ZipFile(tmp_path / "foreign.zip", "w") as archive:
        archive.writestr("readme.txt", "hello")
    for name, message in (("text", "cannot be read as a zip"), ("foreign", "a zip without runs")):
        assert main(["--tables=fedsikd", f"--runs_dir={tmp_path / name}.zip"]) == 2
        printed = capsys.readouterr()
        assert message in printed.err and printed.err.count("\n") == 1


def test_runs_on_a_subset_are_named_also_from_an_archive(runs_dir, tmp_path, capsys):
    path = runs_dir / CELLS[0] / "seed_1" / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "data": {"dataset": "mnist subset (10 + 2 images)", "digest": "x"}}))
    said = "1 of the runs with `--dataset=mnist` had mnist subset (10 + 2 images)."
    for folder in (runs_dir, tmp_path / "archive"):
        arguments = [f"--runs_dir={folder}", f"--archive={tmp_path / 'archive'}", f"--output={tmp_path / 'out'}"]
        assert main(["--tables=fedsikd", *arguments]) == 0
        assert said in capsys.readouterr().out and said in (tmp_path / "out" / "fedsikd.md").read_text()


def test_an_empty_folder_gives_a_report_of_what_is_not_run(tmp_path, capsys):
    assert main(["--tables=fedsikd", f"--runs_dir={tmp_path}"]) == 0
    assert "reproduced |" not in capsys.readouterr().out.replace("not reproduced |", "reproduced |")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--tables is missing"),
        (["--tables=nope"], "nope"),
        (["--tables=fedsikd", "--runs_dir=/no/such"], "no such folder or archive"),
        (["--tables=fedsikd", "--runs_dir=/no/such.zip"], "no such folder or archive"),
        (["--tables=quantization", "--runs_dir=.", "--output=x", "--figure"], "has no figure"),
        (["--tables=fedsikd", "--runs_dir=.", "--figure"], "--figure needs --output"),
        (["--table=fedsikd"], "did you mean --tables?"),
        (["--tables=fedsikd", "stray"], "stray: expected flags only"),
    ],
)
def test_a_wrong_request_is_one_line_and_exit_code_2(arguments, message, capsys):
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1


def test_an_output_that_cannot_be_written_is_one_line(runs_dir, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["--tables=fedsikd", f"--runs_dir={runs_dir}", f"--output={tmp_path / 'file'}"]) == 1
    assert "cannot write" in capsys.readouterr().err


def test_help_is_quick_and_imports_nothing_heavy():
    code = (
        "import sys, launch.report as r; r.main(['--help']); print(sys.modules.keys() & {'tensorflow', 'matplotlib'})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    assert run.stdout.splitlines()[-1] == "set()"
    assert "--runs_dir [runs]" in run.stdout
