"""Small runs as a person makes them: with attackers, with private updates, with a sample of clients evaluated."""

import json

import numpy as np
import pytest
from made_reviews import LABELS, format_reviews, make_reviews

import launch.train
from launch import train
from launch.api import Run
from launch.runs.run_records import read_rows
from launch.training.evaluation import choose_evaluated_clients
from launch.training.finished_run import read_finished_run

pytestmark = pytest.mark.usefixtures("no_plots")
SHARED = ("--runtime=in_process", "--num_clients=5", "--model=perceptron", "--norun_page")
FEDAVG = ("--algo=fedavg", *SHARED, "--steps=2", "--batch_size=16")


NOISY = (*FEDAVG, "--attack=gaussian", "--attack_share=0.4", "--cohort_size=3")


def test_attackers_are_named_and_left_out(train_here, tmp_path):
    whole = tmp_path / "whole"
    code, said, _ = train_here(*NOISY, "--rounds=2", f"--run_dir={whole}")
    assert code == 0
    clients = read_rows(whole / "clients.csv")
    names = [row["client"] for row in clients if row["attacker"] == "1"]
    assert len(names) == 2 and f"attack   gaussian by 2 of 5 clients ({', '.join(names)})" in said
    summary = json.loads((whole / "summary.json").read_text())
    assert summary["attack"] == {"attack": "gaussian", "attackers": names}
    assert all((row["accuracy"] == "") == (row["client"] in names) for row in clients)
    honest = [float(row["accuracy"]) for row in clients if row["accuracy"]]
    assert summary["clients"]["accuracy_mean"] == pytest.approx(sum(honest) / 3)
    last = read_rows(whole / "metrics.csv")[-1]
    assert float(last["client_test_accuracy"]) == pytest.approx(sum(honest) / 3, abs=1e-5)
    assert {int(row["num_attackers"]) for row in read_rows(whole / "metrics.csv")} <= {0, 1, 2}


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


PRIVATE = (
    "--algo=fedavg",
    "--runtime=in_process",
    "--num_clients=6",
    "--model=perceptron",
    "--epochs=1",
    "--cohort_size=3",
    "--participation=bernoulli",
    "--client_weighting=equal",
    "--dp_epsilon=60",
    "--norun_page",
)

DEVICE = {
    "examples_per_s": "100",
    "downlink_bytes_per_s": "1e6",
    "uplink_bytes_per_s": "1e6",
    "joules_per_example": "0.1",
    "joules_per_byte_down": "1e-6",
    "joules_per_byte_up": "1e-6",
}


def test_a_run_that_was_broken_off_goes_on_to_the_same_bytes(train_here, tmp_path):
    """Noise, adaptive clip norm and epsilon: the last round is made again from the checkpoint before it."""
    run_dir = tmp_path / "run"
    adaptive = ("--dp_clipping=adaptive", "--dp_clip_count_noise=1")
    code, said, _ = train_here(*PRIVATE, *adaptive, "--rounds=2", f"--run_dir={run_dir}")
    assert code == 0
    assert "privacy  epsilon 60 at delta 1e-05 hides a client more or less" in said
    assert "simulation only" in said and "Not to be released" in said
    rows = read_rows(run_dir / "metrics.csv")
    spent = [float(row["epsilon_spent"]) for row in rows]
    assert spent == sorted(spent) and 59.9 < spent[-1] <= 60 and len({row["clip_norm"] for row in rows}) == 2
    straight = (run_dir / "metrics.csv").read_bytes()
    # As a kill in round 2 leaves it; the tables still have that round's row.
    (run_dir / "checkpoints" / "round_2.npz").unlink()
    code, _, _ = train_here("--resume", f"--run_dir={run_dir}")
    assert code == 0 and (run_dir / "metrics.csv").read_bytes() == straight
    summary = json.loads((run_dir / "summary.json").read_text())
    assert summary["fedavg"]["privacy"]["epsilon_spent"] == pytest.approx(spent[-1], rel=1e-5)


def test_a_run_stops_at_its_budget_and_is_not_to_be_led_beyond(train_here, tmp_path):
    run_dir = tmp_path / "run"
    # With joules the algorithm is wrapped, and its budget must count all the same.
    devices = tmp_path / "devices.csv"
    devices.write_text(f"{','.join(DEVICE)}\n{','.join(DEVICE.values())}\n")
    given = ("--dp_noise_multiplier=0.4", "--rounds=20", "--rounds_per_evaluation=7")
    code, said, _ = train_here(*PRIVATE, *given, f"--device_profiles={devices}", f"--run_dir={run_dir}")
    rows = read_rows(run_dir / "metrics.csv")
    assert code == 0 and 1 < len(rows) < 20
    assert f"spent    after round {len(rows)}: a further one would exceed the budget" in said
    assert float(rows[-1]["epsilon_spent"]) <= 60
    assert rows[-1]["joules"] and "privacy  epsilon 60" in said
    assert json.loads((run_dir / "summary.json").read_text())["budget_spent"] is True
    # The last round is evaluated, whichever it is.
    assert rows[-1]["test_accuracy"]
    code, said, _ = train_here("--resume", f"--run_dir={run_dir}", "--rounds=40")
    assert code == 0 and read_rows(run_dir / "metrics.csv") == rows and "spent    after round" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--dp_clip_norm=0",), "--dp_clip_norm=0: expected a number above 0"),
        (("--dp_clip_quantile=0.3",), "does nothing with --dp_clipping=fixed"),
        (("--dp_delta=0.2",), "--dp_delta=0.2: expected below 1 / clients"),
        (("--dp_noise_multiplier=0.05",), "one round costs with it"),
        (("--dp_clipping=adaptive", "--dp_noise_multiplier=0.5"), "the count alone would cost more"),
        (("--target_accuracy=0.9",), "--target_accuracy=0.9: expected 0 with private updates"),
    ],
)
def test_a_wrong_request_is_one_line(train_here, tmp_path, arguments, message):
    code, _, error = train_here(*PRIVATE, *arguments, f"--run_dir={tmp_path / 'run'}")
    assert code == 2 and error.count("\n") == 1 and message in error and "Traceback" not in error
    assert not (tmp_path / "run").exists()


NUM_CLIENTS, NUM_EVALUATED = 4, 2
FLAGS = (
    *("--algo=fedavg", "--model=perceptron", "--partition=iid", "--rounds=1", "--runtime=in_process", "--norun_page"),
    *(f"--num_clients={NUM_CLIENTS}", f"--evaluated_clients={NUM_EVALUATED}"),
)


def test_the_round_is_of_the_sample_and_the_end_of_all_clients(tmp_path):
    run_dir = tmp_path / "run"
    assert train.main([*FLAGS, f"--run_dir={run_dir}", f"--client_dir={tmp_path / 'shards'}"]) == 0
    accuracies = {row["client"]: float(row["accuracy"]) for row in read_rows(run_dir / "clients.csv")}
    sample = choose_evaluated_clients(read_finished_run(str(run_dir)).load_data(), NUM_EVALUATED, seed=0)
    of_sample = np.mean([accuracies[client.name] for client in sample])
    of_all = np.mean(list(accuracies.values()))
    assert len(accuracies) == NUM_CLIENTS and of_sample != pytest.approx(of_all, abs=1e-4)
    (metrics,) = read_rows(run_dir / "metrics.csv")
    assert float(metrics["client_test_accuracy"]) == pytest.approx(of_sample, abs=1e-5)
    summary = json.loads((run_dir / "summary.json").read_text())
    assert summary["final"]["client_test_accuracy"] == pytest.approx(of_all, abs=1e-5)
    assert summary["final"]["test_accuracy"] == float(metrics["test_accuracy"])


ROUNDS, FATAL_ROUND = 4, 3


@pytest.mark.slow
def test_two_rounds_of_each_through_the_program(tmp_path, monkeypatch, capsys):
    """What these do is tested in `tff_algos`, and how the program treats an algorithm by others."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    up = {}
    for algo in ("ditto", "apfl", "pfedme", "partial", "scaffold", "fednova", "moon", "ifca", "cfl"):
        arguments = f"--algo={algo}", "--smoke", f"--run_dir={tmp_path / algo}"
        assert launch.train.main(arguments) == 0, capsys.readouterr().err
        rows = read_rows(tmp_path / algo / "metrics.csv")
        assert [row["round"] for row in rows] == ["1", "2"]
        assert all(np.isfinite(float(row["train_loss"])) and row["num_rejected"] == "0" for row in rows)
        # SCAFFOLD sends control variates beside its weights, partial models only a part of theirs.
        up[algo] = int(rows[0]["bytes_up"])
    assert capsys.readouterr().err == ""
    assert (
        up["scaffold"]
        == 2 * up["ditto"]
        == 2 * up["fednova"]
        == 2 * up["moon"]
        == 2 * up["ifca"]
        == 2 * up["pfedme"]
        == 2 * up["apfl"]
        > 2 * up["partial"]
    )


def test_reviews_are_told_apart_by_their_words(train_here, tmp_path):
    """The run keeps the vocabulary, so that it reads texts of nobody that it has seen."""
    (tmp_path / "reviews.csv").write_text(format_reviews(make_reviews()))
    flags = ("--algo=fedavg", f"--data={tmp_path / 'reviews.csv'}", "--runtime=in_process", "--norun_page")
    code, said, _ = train_here(*flags, "--text_column=review", "--rounds=10", f"--run_dir={tmp_path / 'run'}")
    assert code == 0 and "model    text_mean" in said
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["final"]["test_accuracy"] > 0.9
    logits = Run(tmp_path / "run").predict(["A perfect umbrella, zweifellos", "useless"])
    assert [LABELS[place] for place in logits.argmax(axis=1)] == ["good", "bad"]
