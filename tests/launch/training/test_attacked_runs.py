"""A run with attackers as a person makes it: what it says of them, whom it leaves out, and what is refused."""

import csv
import json

import pytest

import launch.train

pytestmark = pytest.mark.usefixtures("no_plots")
SHARED = ("--runtime=in_process", "--num_clients=5", "--model=perceptron", "--norun_page")
FEDAVG = ("--algo=fedavg", *SHARED, "--steps=2", "--batch_size=16")


NOISY = (*FEDAVG, "--attack=gaussian", "--attack_share=0.4", "--cohort_size=3")


@pytest.fixture
def train_here(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def run(*arguments):
        code = launch.train.main(arguments)
        return code, *capsys.readouterr()

    return run


def read_table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_attackers_are_named_and_left_out(train_here, tmp_path):
    whole = tmp_path / "whole"
    code, said, _ = train_here(*NOISY, "--rounds=2", f"--run_dir={whole}")
    assert code == 0
    clients = read_table(whole / "clients.csv")
    names = [row["client"] for row in clients if row["attacker"] == "1"]
    assert len(names) == 2 and f"attack   gaussian by 2 of 5 clients ({', '.join(names)})" in said
    summary = json.loads((whole / "summary.json").read_text())
    assert summary["attack"] == {"attack": "gaussian", "attackers": names}
    assert all((row["accuracy"] == "") == (row["client"] in names) for row in clients)
    honest = [float(row["accuracy"]) for row in clients if row["accuracy"]]
    assert summary["clients"]["accuracy_mean"] == pytest.approx(sum(honest) / 3)
    last = read_table(whole / "metrics.csv")[-1]
    assert float(last["client_test_accuracy"]) == pytest.approx(sum(honest) / 3, abs=1e-5)
    assert {int(row["num_attackers"]) for row in read_table(whole / "metrics.csv")} <= {0, 1, 2}


@pytest.mark.slow
def test_a_resumed_run_has_the_same_bytes(train_here, tmp_path):
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    for run_dir, rounds in ((whole, 3), (resumed, 2)):
        train_here(*NOISY, f"--rounds={rounds}", f"--run_dir={run_dir}")
    assert train_here("--resume", f"--run_dir={resumed}", "--rounds=3")[0] == 0
    for name in ("metrics.csv", "clients.csv"):
        assert (resumed / name).read_bytes() == (whole / name).read_bytes()
    assert launch.train.main(["--resume", f"--run_dir={resumed}", "--rounds=4", "--attack=alie"]) == 2


@pytest.mark.slow
def test_a_share_of_zero_changes_no_byte(train_here, tmp_path):
    for name, flags in (("plain", ()), ("zero", ("--attack=sign_flip", "--attack_share=0"))):
        assert train_here(*FEDAVG, "--rounds=1", f"--run_dir={tmp_path / name}", *flags)[0] == 0
    for name in ("metrics.csv", "clients.csv"):
        assert (tmp_path / "plain" / name).read_bytes() == (tmp_path / "zero" / name).read_bytes()


def test_flipped_labels_are_trained_on(train_here, tmp_path):
    """All but one client flip theirs, so what is learned of a digit is its complement."""
    iid = ("--algo=fedavg", *SHARED, "--partition=iid", "--epochs=8", "--rounds=1")
    flips = ("--attack=label_flip", "--attack_share=0.7", "--client_weighting=equal")
    assert train_here(*iid, *flips, f"--run_dir={tmp_path / 'run'}")[0] == 0
    # By chance it were 0.1; without an attack it is more than 0.6.
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["final"]["test_accuracy"] < 0.1


def test_what_makes_no_sense_is_one_line(train_here, tmp_path):
    rows = "".join(f"{i},{i % 7},{i * 0.5}\n" for i in range(60))
    (tmp_path / "prices.csv").write_text(f"rooms,floor,price\n{rows}")
    prices = ("--algo=fedavg", "--num_clients=5", f"--data={tmp_path / 'prices.csv'}", "--label_column=price")
    cases = (
        ((*prices, "--task=regression", "--attack=label_flip"), "an example of regression has not one class"),
        ((*FEDAVG, "--attack_share=0.1"), "--attack"),
        ((*FEDAVG, "--attack=alie", "--attack_scale=2"), "--attack=sign_flip"),
        (("--algo=fed_async", *SHARED, "--fed_async_attack=alie"), "unknown flag"),
    )
    for flags, words in cases:
        code, _, said = train_here(*flags, f"--run_dir={tmp_path / 'run'}")
        assert code == 2 and words in said and said.strip().count("\n") == 0, said
        assert not (tmp_path / "run").exists()
