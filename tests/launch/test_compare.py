"""The command `launch.compare` from its arguments to its page."""

import pytest

from launch.compare import main
from launch.comparison import page


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


def test_what_is_not_compared_is_named(runs_dir, capsys):
    (runs_dir / "fedsikd_mnist_alpha0.1" / "seed_1" / "summary.json").unlink()
    assert main(["--runs=runs"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("1 run in compare.html")
    assert printed.err == "not compared: runs/fedsikd_mnist_alpha0.1/seed_1: not finished\n"


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
        (["--details=nope"], "--details=nope: no run is called so; expected names as seed_0"),
        (["--", "x"], "nothing is expected after --"),
        (["--run=a"], "--run: unknown flag; did you mean --runs?"),
    ],
)
def test_a_wrong_request_is_one_line(runs_dir, capsys, arguments, expected):
    folder = runs_dir.parent
    (folder / "empty").mkdir()
    (folder / "folder.html").mkdir()
    (folder / "bad.zip").write_text("no zip")
    (folder / "own.html").write_text("<html>mine</html>")
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ") and expected in err and err.count("\n") == 1
    assert not (folder / "compare.html").exists()


def test_a_page_that_cannot_be_written_is_one_line(runs_dir, capsys, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device", "compare.html")

    monkeypatch.setattr(page, "write_text", fail)
    assert main([]) == 1
    assert capsys.readouterr().err == "error: cannot write compare.html: No space left on device\n"


def test_help_names_every_flag(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"--{name}" in out for name in ("runs", "archive", "output", "details"))
