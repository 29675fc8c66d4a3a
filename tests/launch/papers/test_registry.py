"""The registry's rows, and the committed pages: they are what the committed archives of runs give."""

import pathlib

import pytest

from launch.papers.registry import PAPERS
from launch.report import collect_runs, main
from launch.runs.run_archive import open_runs

ROOT = pathlib.Path(__file__).parents[3]
RESULTS = ROOT / "docs" / "results"
CLAIMS = [(name, claim) for name, paper in PAPERS.items() for claim in paper.claims]


@pytest.mark.parametrize("name", PAPERS)
def test_the_committed_pages_are_those_of_the_archive(name, tmp_path):
    archive = RESULTS / f"{name}.zip"
    arguments = [f"--runs_dir={archive}", f"--output={tmp_path / 'out'}", f"--archive={tmp_path / 'again.zip'}"]
    assert main([f"--tables={name}", *arguments]) == 0
    made = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "out").iterdir()}
    assert made == {file: (RESULTS / file).read_text(encoding="utf-8") for file in made}
    assert (tmp_path / "again.zip").read_bytes() == archive.read_bytes()


@pytest.mark.parametrize("name", PAPERS)
def test_all_runs_of_an_archive_are_counted(name):
    runs, left_out = collect_runs(open_runs(RESULTS / f"{name}.zip"))
    assert left_out == []
    assert len(PAPERS[name].build_report(runs).runs) == len(runs) > 0


@pytest.mark.parametrize("name", PAPERS)
def test_printed_tables_are_there_and_have_rows(name):
    paper = PAPERS[name]
    assert bool(paper.read_printed_rows()) == bool(paper.printed_files)


def test_no_claim_stands_twice():
    texts = [(name, claim.section, claim.text) for name, claim in CLAIMS]
    assert len(set(texts)) == len(texts) > 50


@pytest.mark.parametrize("name", PAPERS)
def test_a_report_that_draws_a_figure_shows_it(name):
    paper = PAPERS[name]
    assert bool(paper.figure) == (paper.draw is not None)
    assert not paper.figure or (RESULTS / paper.figure).is_file()


@pytest.mark.parametrize("name", PAPERS)
def test_a_further_comparison_is_one_of_ours(name):
    assert all(claim.conditions and not claim.section for claim in PAPERS[name].further)


@pytest.mark.parametrize("name", PAPERS)
def test_other_runs_do_not_count(name, tmp_path, write_run):
    foreign = "fedavg_building_low" if name != "amfl_p" else "fedavg_mnist_alpha0.1"
    write_run(tmp_path, foreign, 0, rounds=1)
    assert list(PAPERS[name].build_report(collect_runs(tmp_path)[0]).runs) == []
