"""The experiments of all papers: each resolves, and says where its settings come from."""

import pathlib
import re
import subprocess
import sys

import pytest

from launch.settings.experiments import NOT_KEPT, Origin, list_experiments, list_searches, list_trials
from launch.train import main
from reproductions.registry import PAPERS as REPORTS

ROOT = pathlib.Path(__file__).parents[2]
EXPERIMENTS = list_experiments()
FEDSIKD_CODE = "github.com/SimuEnv/FedSiKD, commit 7e47aa4"
AUTHORS_CODE = {  # of the papers whose authors published any; the runs of quantization are FedSiKD's
    "fedsikd": {FEDSIKD_CODE},
    "quantization": {FEDSIKD_CODE},
    "fedcd": {"github.com/jessijzhao/FedCD, commit cea256a"},
    "protocols": {
        "github.com/jichan3751/ifca/mnist, commit 97db9d1",
        "github.com/adap/flower/baselines/niid_bench, commit 09d72eb",
    },
}
SECTIONS = r"sections? [\w.-]+((, [\w.-]+)* and [\w.-]+)?"

RESOLVE_ALL = """
import sys
from launch.runs.run_records import resolve_experiment
from launch.settings.experiments import list_experiments
for experiment in list_experiments().values():
    resolve_experiment(experiment)
loaded = {"tensorflow", "tensorflow_federated", "sklearn", "scipy", "matplotlib", "pandas"} & sys.modules.keys()
sys.exit(f"imported: {loaded}" if loaded else 0)
"""


def test_all_resolve_without_tensorflow():
    run = subprocess.run([sys.executable, "-c", RESOLVE_ALL], capture_output=True, text=True, timeout=600, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    assert len(EXPERIMENTS) > 250


def test_each_lies_with_the_paper_whose_report_counts_it():
    for each in EXPERIMENTS.values():
        covering = [report.path.name for report in REPORTS.values() if each.name in report.experiments]
        assert covering == [each.paper], each.full_name


def test_each_says_what_it_is_and_what_is_printed():
    for each in EXPERIMENTS.values():
        assert each.about.endswith(".") and "{" not in each.about, each.full_name
        assert re.search("Table|Figure|protocol|league", each.about), each.full_name
        assert each.printed or each.name.endswith(("_control", "_tuned")) or "_tuned_" in each.name, each.full_name


def test_sources_are_sections_commits_or_reasons():
    for each in EXPERIMENTS.values():
        for setting in each.settings:
            where = f"{each.full_name} {setting}"
            assert setting.source and not setting.source.endswith("."), where
            if setting.origin is Origin.PRINTED:
                assert re.fullmatch(SECTIONS, setting.source), where
            if setting.origin is Origin.AUTHORS_CODE:
                assert setting.source in AUTHORS_CODE[each.paper], where


def test_a_tuned_setting_names_grid_seeds_and_trials():
    texts = {f"{s.source}. {s.note}" for each in EXPERIMENTS.values() for s in each.settings}
    tuned = [text for text in texts if re.search(r"(?<!not )\btuned (by|on)\b", text)]
    for text in tuned:
        assert re.search(r"\bgrid\b|\bsearch space\b", text) and re.search(r"\bseeds?\b", text), text
        assert list_trials(text) or NOT_KEPT in text, text
    named = [trials for text in texts for trials in list_trials(text)]
    assert len(tuned) > 15 and [trials for trials in named if not (ROOT / trials).is_file()] == []
    searches = {name for text in texts for name in re.findall(r"the search \w+/([\w.]*\w)", text)}
    assert searches <= list_searches().keys() and len(searches) > 15


QUICK = "amfl_p/ablation_dynamic_building_medium"  # a paper's own algorithm on data of its own


@pytest.mark.parametrize("is_quick", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_they_run(is_quick):
    names = [each.full_name for each in EXPERIMENTS.values() if (each.full_name == QUICK) == is_quick]
    failed = [name for name in names if main([f"--experiment={name}", "--smoke", "--run_page=false"]) != 0]
    assert names and failed == []
