"""The command `launch.compare` from its arguments to its page."""

import pytest

from launch.compare import main
from launch.pages.comparison import page


@pytest.fixture
def runs_dir(tmp_path, write_run, monkeypatch):
    """Two seeds of a run, and a stand-in for Plotly, which keeps the tests quick."""
    (tmp_path / "plotly.min.js").write_text("")
    monkeypatch.setattr(page, "find_plotly", lambda: tmp_path / "plotly.min.js")
    monkeypatch.chdir(tmp_path)
    for seed in range(2):
        write_run(tmp_path / "runs", "fedsikd_mnist_alpha0.1", seed, rounds=2)
    return tmp_path / "runs"


def test_by_default_the_runs_under_runs_are_compared(runs_dir, capsys):
    assert main([]) == 0
    assert page.is_our_page(runs_dir.parent / "compare.html")
    assert capsys.readouterr().out.startswith("2 runs in compare.html (0.")
    assert main([]) == 0, "a page is replaced"


def test_a_figure_and_a_table_come_alone_or_beside_a_page(runs_dir, capsys):
    folder = runs_dir.parent
    assert main(["--figure=a.svg", "--table=a.tex"]) == 0
    assert capsys.readouterr().out == "2 runs in a.svg\n2 runs in a.tex\n"
    assert not (folder / "compare.html").exists()
    arguments = ["--table=a.csv", "--metric=test_loss,total_drift", "--at=1", "--group_by=seed", "--baseline=seed 1"]
    assert main(["--output=b.html", *arguments]) == 0
    assert [line.split(",")[:3] for line in (folder / "a.csv").read_text().splitlines()[1:]] == [
        [f"seed {seed}", column, "1"] for column in ("test_loss", "total_drift") for seed in (0, 1)
    ]
    assert page.is_our_page(folder / "b.html")
    assert main(["--figure=a.svg", "--table=a.tex"]) == 0, "they are replaced"


def test_flags_that_vary_inside_groups_are_noted(runs_dir, write_run, capsys):
    write_run(runs_dir, "fedsikd_mnist_alpha0.1", 2, rounds=2, arguments=["--temperature=2", "--batch_size=9"])
    assert main(["--table=a.md", "--group_by=algo"]) == 0
    noted = "note     inside groups, these flags vary as well: batch_size, temperature; see --group_by\n"
    assert capsys.readouterr().err == noted


def test_what_is_not_compared_is_named(runs_dir, capsys):
    (runs_dir / "fedsikd_mnist_alpha0.1" / "seed_1" / "summary.json").unlink()
    assert main(["--runs=runs"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("1 run in compare.html")
    assert printed.err == "not compared: runs/fedsikd_mnist_alpha0.1/seed_1: not finished\n"


def test_only_a_comparison_needs_plotly(runs_dir, monkeypatch, capsys):
    """The page of the one run in whose folder it lies has no script."""
    monkeypatch.setattr(page, "find_plotly", lambda: None)
    run_dir = runs_dir / "fedsikd_mnist_alpha0.1" / "seed_0"
    assert main([f"--runs={run_dir}", f"--output={run_dir / 'report.html'}"]) == 0
    assert "<script" not in (run_dir / "report.html").read_text()
    capsys.readouterr()
    assert main([f"--runs={run_dir}", f"--output={run_dir / 'other.html'}"]) == 2
    assert "Plotly" in capsys.readouterr().err and not (run_dir / "other.html").exists()


def test_a_folder_with_an_experiments_name_runs_nothing_of_its_paper(runs_dir, monkeypatch):
    """Papers are code, which only a name that somebody types may run."""
    for asks in (
        "_list_all",
        "find_experiment",
        "import_reproduction",
    ):  # the first two, since rows that are read are kept
        monkeypatch.setattr(f"launch.settings.experiments.{asks}", lambda *given: pytest.fail(f"{given} is looked for"))
    assert main(["--runs=runs", "--table=a.csv"]) == 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--runs=nothing/*"], "--runs=nothing/*: nothing there; expected folders of runs, as 'runs/*'"),
        (["--runs=empty"], "--runs=empty: no finished run: no folder there holds a run"),
        (["--archive=none.zip"], "none.zip: no such folder or archive"),
        (["--archive=bad.zip"], "bad.zip: cannot be read as a zip archive of runs"),
        (["--output=gone/a.html"], "--output=gone/a.html: there is no folder gone; make it first"),
        (["--output=a.txt"], "--output=a.txt: expected the name of a .html file"),
        (["--output=own.html"], "--output=own.html: exists and is no page of this command; choose another name"),
        (["--output=folder.html"], "--output=folder.html: exists and is no page of this command"),
        (["--figure=a.jpg"], "--figure=a.jpg: expected the name of a .pdf or .svg or .png file"),
        (["--table=a.xlsx"], "--table=a.xlsx: expected the name of a .tex or .csv or .md file"),
        (["--table=gone/a.tex"], "--table=gone/a.tex: there is no folder gone; make it first"),
        (["--table=own.csv"], "--table=own.csv: exists and is no table of this command; choose another name"),
        (["--figure=own.png"], "--figure=own.png: exists and is no figure of this command; choose another name"),
        (["--metric=test_loss"], "--metric: does nothing without --figure or --table"),
        (["--table=a.tex", "--smooth=3"], "--smooth: does nothing without --figure"),
        (["--table=a.tex", "--details=x"], "--details: does nothing without --output"),
        (["--table=a.tex", "--at=first"], "--at=first: expected last, best, or the number of a round"),
        (["--table=a.tex", "--metric=acc"], "--metric=acc: no run has such a column; expected one of round, "),
        (["--table=a.tex", "--group_by=alg"], "--group_by=alg: did you mean algo? no run has such a flag"),
        (["--figure=a.pdf", "--baseline=x"], "--baseline=x: no group is called so; expected one of "),
        (["--details=nope"], "--details=nope: no run is called so; expected names as seed_0"),
        (["--", "x"], "nothing is expected after --"),
        (["--run=a"], "--run: did you mean --runs? unknown flag"),
    ],
)
def test_a_wrong_request_is_one_line(runs_dir, capsys, arguments, expected):
    folder = runs_dir.parent
    (folder / "empty").mkdir()
    (folder / "folder.html").mkdir()
    (folder / "bad.zip").write_text("no zip")
    for name in ("own.html", "own.csv", "own.png"):
        (folder / name).write_text("<html>mine</html>")
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ") and expected in err and err.count("\n") == 1
    assert not [name for name in ("compare.html", "a.tex", "a.pdf") if (folder / name).exists()]


def test_a_page_that_cannot_be_written_is_one_line(runs_dir, capsys, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device", "compare.html")

    monkeypatch.setattr(page, "write_text", fail)
    assert main([]) == 1
    assert capsys.readouterr().err == "error: cannot write compare.html: No space left on device\n"
