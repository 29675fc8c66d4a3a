"""What `make test-web` checks of a page of launch.compare, with made-up answers."""

import copy
import importlib.util
import pathlib

import pytest

from launch.runs.tables import write_json

ROOT = pathlib.Path(__file__).parents[2]
EXPERIMENT = "fedsikd_mnist_alpha0.1"


@pytest.fixture(scope="module")
def check_compare():
    spec = importlib.util.spec_from_file_location("check_compare", ROOT / "tests" / "web" / "check_compare.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run_check(check_compare, tmp_path, capsys, write_run):
    """(change of the answers) -> (exit code, stderr): two temperatures, three seeds whose accuracies are 0.1 apart."""
    for temperature in (2, 3):
        for seed in range(3):
            flags = [f"--fedsikd_temperature={temperature}"]
            write_run(tmp_path / f"T{temperature}", EXPERIMENT, seed, 1, [temperature / 10 + seed / 10], flags)
    table = {"all": 6, "afterReset": 6, "filtered": 3, "count": "3 of 6"}
    table |= {"once": ["0.5", "0.4"], "twice": ["0.4", "0.5"]}
    # Deviation 0.1, standard error 0.0577, quantile 4.3027: half width 0.2484.
    groups = [
        ["fedsikd_temperature", "Mean", "95 % interval", "Seeds"],
        ["3", "0.4000", "0.1516 to 0.6484", "3"],
        ["2", "0.3000", "0.0516 to 0.5484", "3"],
    ]
    visit = {"name": "desktop_light", "seconds": 1.0, "problems": [], "hover": "0.3", "pictures": [], "groups": groups}
    visit["buttons"] = ["Seed", "Download plot as a png", "Zoom in"]

    def run(change=lambda visit: None):
        changed = copy.deepcopy(visit | {"table": table})
        change(changed)
        write_json(tmp_path / "answers.json", {"size": 1, "visits": [changed]})
        exit_code = check_compare.main([str(tmp_path / "answers.json"), f"--runs={tmp_path}/T*"])
        return exit_code, capsys.readouterr().err

    return run


def test_a_page_that_shows_what_the_reports_compute_passes(run_check):
    assert run_check() == (0, "")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda visit: visit["groups"][1].__setitem__(2, "0.1516 to 0.6485"), "group 3: "),
        (lambda visit: visit["groups"].pop(), "group 2: None"),
        (lambda visit: visit.update(hover=""), "a pointer over a curve reads nothing"),
        (lambda visit: visit.update(pictures=[0]), "a plot is not shown"),
        (lambda visit: visit.update(buttons=["Seed"]), "no button of a chart was pressed"),
        (lambda visit: visit["buttons"].append("Share chart..."), "a button says Share chart..."),
        (lambda visit: visit.update(problems=["request: x"]), "request: x"),
        (lambda visit: visit["table"].update(once=["0.4", "0.5"]), "does not sort"),
        (lambda visit: visit["table"].update(filtered=6), "a filter leaves 6 of 6"),
        (lambda visit: visit["table"].update(afterReset=5), "5 once put back"),
    ],
)
def test_what_is_wrong_is_named(run_check, change, expected):
    exit_code, err = run_check(change)
    assert exit_code == 1 and err.startswith("WRONG desktop_light: ") and expected in err


def test_what_cannot_be_checked_is_one_line(check_compare, tmp_path, capsys):
    assert check_compare.main([]) == 2
    assert check_compare.main([str(tmp_path / "none.json"), "--runs=x"]) == 2
    assert capsys.readouterr().err.count("\n") == 2
