"""How experiments are read from a paper's file, named, listed and written out; on a file of the test's own."""

import pytest

from launch import train
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
report = "mine"

[experiments]
"{fedavg,fl_hc}_digits_alpha{0.1,0.5}" = "{1} on digits, alpha {2}: Table 1."
"fedavg_digits_alpha0.1_{tuned=with settings of ours}" = "FedAvg {1}."

[short]
small = "fedavg_digits_alpha0.1"

[words]
fedavg = "FedAvg"
fl_hc = "FL+HC"

[printed]
"*" = "nothing."
"*_alpha0.1" = "90 %."

[[settings]]
printed = "section 3"
algo = { "fedavg*" = "fedavg", "fl_hc*" = "fl_hc" }
num_clients = 40
rounds = 5

[[settings]]
code = "github.com/a/b, commit 0123456"
note = "As they train."
fedavg_epochs = 2
fl_hc_epochs = 3
run_page = false

[[settings]]
ours = "a guess"
of = ["*_tuned", "fl_hc_*_alpha{0.1,0.7}"]
rounds = 7
fedavg_learning_rate = 1e-3
"""


@pytest.fixture
def papers(tmp_path, monkeypatch):
    """A folder of papers with one of them, in the place of ours."""
    monkeypatch.setattr("launch.settings.experiments.REPRODUCTIONS", tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "experiments.toml").write_text(FILE)
    return tmp_path


def test_names_are_expanded_and_told_in_words(papers):
    found = list_experiments()
    assert [*found] == [
        *("fedavg_digits_alpha0.1", "fl_hc_digits_alpha0.1", "fedavg_digits_alpha0.5", "fl_hc_digits_alpha0.5"),
        "fedavg_digits_alpha0.1_tuned",
    ]
    assert found["fl_hc_digits_alpha0.5"].about == "FL+HC on digits, alpha 0.5: Table 1."
    assert found["fedavg_digits_alpha0.1_tuned"].about == "FedAvg with settings of ours."
    assert {name: each.printed for name, each in found.items() if each.printed != "nothing."} == {
        f"{algo}_digits_alpha0.1": "90 %." for algo in ("fedavg", "fl_hc")
    }
    assert {(each.paper, each.report) for each in found.values()} == {("mine", "mine")}


def test_a_short_name_stands_beside_its_paper(papers):
    [first, *others] = list_experiments().values()
    assert find_experiment("mine/small") is first and match_experiments("mine/small") == [first]
    assert find_experiment("small") is None and find_experiment("mine/") is None
    assert format_list("alpha0.1").startswith("mine/fedavg_digits_alpha0.1 or mine/small  FedAvg on digits")
    assert not any(each.short for each in others)
    with pytest.raises(FlagError, match=r"mine/smal: no such experiment; did you mean mine/small\?"):
        get_experiment("mine/smal")
    (papers / "other").mkdir()
    (papers / "other" / "experiments.toml").write_text(FILE.replace('small = "fedavg_', 'small = "nobody_'))
    with pytest.raises(FlagError, match=r"\[short\] names nobody_digits_alpha0.1, which is not in \[experiments\]"):
        find_experiment("other/small")


def test_a_setting_has_its_origin_and_the_last_one_counts(papers):
    assert get_experiment("mine/fl_hc_digits_alpha0.1").settings == (
        ("algo", "fl_hc", Origin.PRINTED, "section 3", ""),
        ("num_clients", "40", Origin.PRINTED, "section 3", ""),
        ("rounds", "7", Origin.OURS, "a guess", ""),
        ("epochs", "3", Origin.AUTHORS_CODE, "github.com/a/b, commit 0123456", "As they train."),
        ("run_page", "false", Origin.AUTHORS_CODE, "github.com/a/b, commit 0123456", "As they train."),
    )
    assert get_experiment("fedavg_digits_alpha0.5").flags["rounds"] == "5"


@pytest.mark.parametrize(
    ("added", "message"),
    [
        ("[", "cannot be read"),
        ('[[settings]]\nof = "*"\nseed = 1\n', "expected one of printed, code, ours in each of"),
        ('[[settings]]\nours = "a"\ncode = "b"\n', "expected one of printed, code, ours in each of"),
        ('[[settings]]\nours = "a"\nof = "*_alpha9"\nseed = 1\n', r"\*_alpha9 is like no name in \[experiments\]"),
        ('[[settings]]\nours = "a"\nseed = { "x*" = 1 }\n', r"x\* is like no name"),
    ],
)
def test_what_cannot_be_is_one_line_with_the_file(papers, added, message):
    path = papers / "mine" / "experiments.toml"
    path.write_text(FILE + added)
    with pytest.raises(FlagError, match=message) as error:
        list_experiments()
    assert str(path) in str(error.value) and "\n" not in str(error.value)


def test_a_name_is_found_with_and_without_its_paper(papers):
    short, full = (find_experiment(name) for name in ("fl_hc_digits_alpha0.5", "mine/fl_hc_digits_alpha0.5"))
    assert short is full and full.full_name == "mine/fl_hc_digits_alpha0.5"
    assert find_experiment("other/fl_hc_digits_alpha0.5") is None and find_experiment("") is None
    with pytest.raises(FlagError, match=r"^fl_hc_digts_alpha0\.5: no such experiment; did you mean mine/fl_hc_digits"):
        get_experiment("fl_hc_digts_alpha0.5")
    assert [each.name for each in match_experiments("mine/*alpha0.5")] == [
        *("fedavg_digits_alpha0.5", "fl_hc_digits_alpha0.5"),
    ]
    with pytest.raises(FlagError, match="no such experiment"):
        match_experiments("*cifar10*")


def test_two_of_one_name_are_refused(papers):
    (papers / "other").mkdir()
    (papers / "other" / "experiments.toml").write_text('[experiments]\n"fedavg_digits_alpha0.1" = "Mine."\n')
    with pytest.raises(FlagError, match=r"other.experiments.toml: fedavg_digits_alpha0\.1 is in mine, too"):
        list_experiments()


def test_a_list_has_a_line_for_each(papers):
    lines = format_list("fl_hc").splitlines()
    assert lines[0] == "mine/fl_hc_digits_alpha0.1  FL+HC on digits, alpha 0.1: Table 1." and len(lines) == 2
    assert len(format_list("").splitlines()) == 5


def test_a_flagfile_says_the_same(papers, tmp_path):
    experiment = get_experiment("fl_hc_digits_alpha0.1")
    text = format_flagfile(experiment)
    assert text.splitlines()[:5] == [
        "# FL+HC on digits, alpha 0.1: Table 1.",
        "# Printed: 90 %.",
        "",
        "# Printed (section 3).",
        "--algo=fl_hc",
    ]
    assert "# From the authors' code (github.com/a/b, commit 0123456). As they train.\n--epochs=3\n" in text
    assert "# Ours: a guess.\n--rounds=7\n" in text
    (tmp_path / "a.flags").write_text(text)
    assert parse_config([f"--flagfile={tmp_path / 'a.flags'}"]) == parse_config(experiment.arguments)


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
        ("--list_experiment=fedcd", "unknown flag; did you mean --list_experiments"),
    ],
)
def test_a_wrong_name_is_one_line(argument, message, capsys):
    assert train.main([argument]) == 2
    printed = capsys.readouterr().err
    assert message in printed and printed.count("\n") == 1


def test_the_command_lists_and_shows(capsys):
    assert train.main(["--list_experiments=protocols"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names[0] == "protocols/fedavg_mnist_rotated4" and "protocols/fednova_cifar10_dirichlet0.5" in names
    assert train.main(["--show_experiment=fedavg_mnist_rotated4"]) == 0
    assert "\n--variant=rotated\n" in capsys.readouterr().out
    assert train.main(["--list_experiments", "--seed=1"]) == 2
    assert "expected nothing else beside it" in capsys.readouterr().err


def test_a_search_has_flags_without_origins():
    found = get_search("fedsikd/fl_hc_mnist_printed").flags
    assert found["experiment"] == "fedsikd/fl_hc_mnist_alpha0.1" and found["trials"] == "5"
    with pytest.raises(FlagError, match="no such search; did you mean fedsikd/fl_hc_mnist_printed"):
        get_search("fl_hc_mnist_printd")
