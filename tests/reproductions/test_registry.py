"""The registry's rows, and the committed pages: they are what the kept runs give, which all count."""

import pathlib

import pytest

from launch.runs.run_archive import open_runs
from reproductions.engine.counted_runs import collect_runs
from reproductions.registry import PAPERS
from reproductions.report import Flags, write_report

ROOT = pathlib.Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
CLAIMS = [(name, claim) for name, paper in PAPERS.items() for claim in paper.claims]


@pytest.mark.parametrize("name", PAPERS)
def test_the_kept_runs_give_the_committed_page_and_tables_and_all_count(name, tmp_path):
    runs, left_out = collect_runs(open_runs(RESULTS / f"{name}.zip"))
    report = PAPERS[name].build_report(runs)
    assert left_out == [] and len(report.runs) == len(runs) > 0
    assert not [line for line in report.left_out if "in no table, only in curves" not in line]
    write_report(report, Flags(tables=name, output=str(tmp_path)))
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert made == {file: (RESULTS / file).read_bytes() for file in made}


def test_no_claim_stands_twice():
    texts = [(name, claim.section, claim.text) for name, claim in CLAIMS]
    assert len(set(texts)) == len(texts) > 50


def test_a_report_that_draws_a_figure_shows_it():
    figures = {name: paper.page["figure"] for name, paper in PAPERS.items() if "figure" in paper.page}
    assert figures.keys() == {name for name, paper in PAPERS.items() if paper.draw is not None}
    assert all((RESULTS / figure).is_file() for figure in figures.values())


def test_a_further_comparison_is_one_of_ours():
    further = [claim for paper in PAPERS.values() for claim in paper.further]
    assert [claim.text for claim in further if claim.section or not claim.conditions] == []


@pytest.mark.parametrize("name", PAPERS)
def test_there_is_a_report_and_a_figure_of_no_runs(name, tmp_path, figures, assert_is_picture):
    paper = PAPERS[name]
    report = paper.build_report([])
    assert report.runs == [] and "not run" in report.markdown.lower()
    if paper.draw is not None:
        assert_is_picture(paper.draw([], tmp_path))
        assert [path.name for path in tmp_path.iterdir()] == [paper.page["figure"]]


def test_other_runs_do_not_count(tmp_path, write_run):
    write_run(tmp_path, "fedavg_building_low", 0, rounds=1)
    runs = collect_runs(tmp_path)[0]
    assert [name for name, paper in PAPERS.items() if paper.build_report(runs).runs] == ["amfl_p"]
