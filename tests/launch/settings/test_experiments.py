"""How experiments are read from a paper's file, named, listed and written out; on a file of the test's own."""

import pytest

from launch import report, train
from launch.settings.errors import FlagError
from launch.settings.experiments import (
    Origin,
    expand_experiments,
    find_experiment,
    format_flagfile,
    format_list,
    get_experiment,
    get_search,
    list_experiments,
    match_experiments,
)
from launch.settings.flags import parse_config

FILE = """
from launch.settings.experiments import from_code, make_experiment, ours, printed

REPORT = "tables_of_mine"
TITLES = {"fedavg": "FedAvg", "fl_hc": "FL+HC"}


def settings(algo, *more):
    yield printed("section 3", num_clients=40, rounds=5, algo=algo)
    epochs = 2 if algo == "fedavg" else 3
    yield from_code("github.com/a/b, commit 0123456", "As they train.", epochs=epochs, run_page=False)
    yield from more


EXPERIMENTS = [
    make_experiment(
        f"{algo}_digits_alpha{alpha}",
        f"{title} on digits, alpha {alpha}: Table 1.",
        *settings(algo, *([ours("a guess", rounds=7)] if (algo, alpha) == ("fl_hc", 0.1) else [])),
        printed="90 %." if alpha == 0.1 else "nothing.",
        short="small" if (algo, alpha) == ("fedavg", 0.1) else "",
    )
    for alpha in (0.1, 0.5)
    for algo, title in TITLES.items()
]
"""
OTHER = """
from launch.settings.experiments import make_experiment
EXPERIMENTS = [make_experiment("fedavg_digits_alpha0.1", "Mine.")]
"""


@pytest.fixture
def papers(tmp_path, monkeypatch):
    """A folder of papers with one of them, in the place of ours; and a function that adds another."""
    folder = tmp_path / f"papers_{tmp_path.name}"  # a package, of a name that no other test has imported

    def add(paper, text):
        (folder / paper).mkdir(parents=True)
        for package in (folder, folder / paper):
            (package / "__init__.py").touch()
        (folder / paper / "experiments.py").write_text(text)

    monkeypatch.setattr("launch.settings.experiments.REPRODUCTIONS", folder)
    add("mine", FILE)
    return add


def test_a_setting_has_its_origin_the_last_one_counts_and_a_flagfile_says_the_same(papers, tmp_path):
    experiment = get_experiment("mine/fl_hc_digits_alpha0.1")
    assert experiment.settings == (
        ("algo", "fl_hc", Origin.PRINTED, "section 3", ""),
        ("num_clients", "40", Origin.PRINTED, "section 3", ""),
        ("rounds", "7", Origin.OURS, "a guess", ""),
        ("epochs", "3", Origin.AUTHORS_CODE, "github.com/a/b, commit 0123456", "As they train."),
        ("run_page", "false", Origin.AUTHORS_CODE, "github.com/a/b, commit 0123456", "As they train."),
    )
    assert get_experiment("fedavg_digits_alpha0.5").flags["rounds"] == "5"
    text = format_flagfile(experiment)
    assert text == (
        "# FL+HC on digits, alpha 0.1: Table 1.\n# Printed: 90 %.\n\n"
        "# Printed (section 3).\n--algo=fl_hc\n--num_clients=40\n\n"
        "# Ours: a guess.\n--rounds=7\n\n"
        "# From the authors' code (github.com/a/b, commit 0123456). As they train.\n--epochs=3\n--run_page=false\n"
    )
    (tmp_path / "a.flags").write_text(text)
    assert parse_config([f"--flagfile={tmp_path / 'a.flags'}"]) == parse_config(experiment.arguments)


def test_a_name_is_found_with_and_without_its_paper_and_a_short_one_beside_it_alone(papers):
    first, _, _, last = found = list(list_experiments().values())
    assert [(each.full_name, each.short, each.report) for each in found] == [
        ("mine/fedavg_digits_alpha0.1", "small", "tables_of_mine"),
        ("mine/fl_hc_digits_alpha0.1", "", "tables_of_mine"),
        ("mine/fedavg_digits_alpha0.5", "", "tables_of_mine"),
        ("mine/fl_hc_digits_alpha0.5", "", "tables_of_mine"),
    ]
    assert match_experiments("mine/small") == [first] and match_experiments("mine/*alpha0.5") == found[2:]
    names = (
        "mine/small",
        "fl_hc_digits_alpha0.5",
        "mine/fl_hc_digits_alpha0.5",
        "small",
        "mine/",
        "",
        f"other/{last.name}",
    )
    assert list(map(find_experiment, names)) == [first, last, last, None, None, None, None]
    of_small = "mine/fedavg_digits_alpha0.1 or mine/small  FedAvg on digits, alpha 0.1: Table 1."
    assert format_list("alpha0.1").splitlines() == [
        *(of_small, "mine/fl_hc_digits_alpha0.1  FL+HC on digits, alpha 0.1: Table 1."),
    ]
    for wrong, said in (
        ("mine/smal", r"mine/smal: no such experiment; did you mean mine/small\?"),
        ("fl_hc_digts_alpha0.5", r"fl_hc_digts_alpha0\.5: no such experiment; did you mean mine/fl_hc_digits"),
        ("*cifar10*", "no such experiment"),
    ):
        with pytest.raises(FlagError, match=said):
            match_experiments(wrong)


def test_no_paper_runs_before_one_of_it_is_asked_for_and_two_of_one_name_are_refused(papers):
    papers("other", "raise AssertionError('it runs')")
    assert find_experiment("mine/small").name == "fedavg_digits_alpha0.1"
    with pytest.raises(AssertionError, match="it runs"):
        list_experiments()
    papers("another", OTHER)
    with pytest.raises(FlagError, match=r"mine.experiments.py: fedavg_digits_alpha0\.1 is in another, too"):
        list_experiments()


def test_flags_after_it_override_it_and_it_may_stand_in_a_flagfile(tmp_path):
    name = "fedsikd/fedavg_mnist_alpha0.1"
    (tmp_path / "a.flags").write_text(f"--experiment={name}\n--rounds=3\n")
    for argv in ([f"--experiment={name}", "--rounds=3"], ["--experiment", name, "--rounds=3"]):
        assert parse_config(argv) == parse_config([f"--flagfile={tmp_path / 'a.flags'}"])
    assert parse_config([f"--experiment={name}"]).rounds == 70
    assert expand_experiments(["--", "--experiment=x"]) == ["--", "--experiment=x"]


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--experiment=fedcd/fedcd_cifar10_hierarchical", "did you mean fedcd/fedcd_cifar10_hierarchical_"),
        ("--experiment=zzz", "no such experiment; launch.train --list_experiments shows all"),
        ("--experiment=", "--experiment: no value"),
        ("--show_experiment=zzz", "--show_experiment=zzz: no such experiment"),
        ("--list_experiments=zzz", "--list_experiments=zzz: no such experiment"),
        ("--list_experiment=fedcd", "did you mean --list_experiments? unknown flag"),
        ("--list_experiments --seed=1", "expected nothing else beside it"),
        *(
            (
                argument,
                "no folder reproductions/ beside the tool; papers lie in a checkout",
            )  # of a wheel, which has none
            for argument in ("--experiment=fedcd/a", "--experiment=a", "--list_experiments", "--tables=fedcd")
        ),
    ],
)
def test_a_wrong_name_is_one_line(argument, message, monkeypatch, tmp_path, capsys):
    if message.startswith("no folder"):
        monkeypatch.setattr("launch.settings.experiments.REPRODUCTIONS", tmp_path / "nowhere" / "reproductions")
    assert (report if argument.startswith("--tables") else train).main(argument.split()) == 2
    printed = capsys.readouterr().err
    assert message in printed and printed.count("\n") == 1


def test_the_command_lists_and_shows(capsys):
    assert train.main(["--list_experiments=protocols"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names[0] == "protocols/fedavg_mnist_rotated4" and "protocols/fednova_cifar10_dirichlet0.5" in names
    assert train.main(["--show_experiment=fedavg_mnist_rotated4"]) == 0
    assert "\n--variant=rotated\n" in capsys.readouterr().out
    found = get_search("fedsikd/fl_hc_mnist_printed").flags  # which has no origins
    assert found["experiment"] == "fedsikd/fl_hc_mnist_alpha0.1" and found["trials"] == "5"
    with pytest.raises(FlagError, match="no such search; did you mean fedsikd/fl_hc_mnist_printed"):
        get_search("fl_hc_mnist_printd")
