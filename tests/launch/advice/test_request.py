"""What is typed: flags of the data and the model go to all runs, settings of algorithms to none."""

import pytest

from launch.advice.request import DATA_NAMES, parse_request


def test_a_file_alone_and_flags_of_data_and_model():
    request = parse_request(["my.csv", "--minutes=2.5", "--label_column=sick", "--model=logistic_regression"])
    assert request.given == {"data": "my.csv", "label_column": "sick", "model": "logistic_regression"}
    assert request.seconds == 150 and request.has_pooled and not request.methods and str(request.runs_dir)
    request = parse_request(["--dataset=har", "--no_pooled", "--methods=ifca,scaffold", "--rounds=9", "--jobs=1"])
    assert request.given == {"dataset": "har"} and not request.has_pooled
    assert (request.methods, request.rounds, request.jobs) == (("ifca", "scaffold"), 9, 1)
    assert parse_request(["my.csv", "--plan_only"]).is_plan_alone


def test_which_flags_of_runs_it_has():
    assert {"batch_size", "new_clients", "device_profiles", "teacher_model", "loss", "client_dir"} <= {*DATA_NAMES}
    assert not {"seed", "run_dir", "algo", "resume", "smoke", "fairness", "most_bytes", "replay"} & {*DATA_NAMES}


def test_of_an_experiment_data_and_model_are_taken(tmp_path):
    given = parse_request(["--experiment=league/fedcd_league_archetypes20"]).given
    assert given["dataset"] == "cifar10" and given["partition"] == "hierarchical" and given["model"] == "image_student"
    assert given["bias_min"] == 0.2 and not {"learning_rate", "milestones", "rounds", "fairness"} & set(given)
    # What FedCD clients are by default is what its experiments mean, and so it is said.
    (tmp_path / "mine.flags").write_text("--algo=fedcd\n--milestones=2\n--train_per_client=50\n")
    given = parse_request([f"--experiment={tmp_path / 'mine.flags'}", "--train_per_client=40"]).given
    assert given == {"dataset": "digits", "partition": "hierarchical", "train_per_client": 40}
    # With a file in the place of its data.
    (tmp_path / "mine.flags").write_text("--algo=fedavg\n--dataset=npz\n--npz=a.npz\n--model=perceptron\n--epochs=3\n")
    given = parse_request([f"--experiment={tmp_path / 'mine.flags'}", "my.csv"]).given
    assert given == {"data": "my.csv", "model": "perceptron"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("a.csv --minutes=0.5", "--minutes=0.5: expected a number at least 1"),
        ("a.csv --seed=1", "--seed: is a flag of launch.train; the methods get their settings from trials"),
        ("a.csv --learning_rate=1", "--learning_rate: is a flag of launch.train"),
        ("a.csv --methods=ifka", "--methods=ifka: ifka: expected some of local_only, fedavg, "),
        ("a.csv --methods=fedavg_finetuned", "did you mean fedavg_fine_tuned?"),
        ("a.csv --methods=FedProx", "FedProx is fedavg with --proximal_weight"),
        ("a.csv --label=x", "did you mean --label_column?"),
        ("a.csv --client=x", "did you mean --client_column?"),
        ("a.csv b.csv", "a.csv b.csv: expected one file or folder"),
        ("a.csv --new_clients=3 --partition=hierarchical", "--new_clients: does nothing with --partition=hierarchical"),
    ],
)
def test_wrong_requests(arguments, said, refuse):
    assert said in refuse(arguments, parse_request)
