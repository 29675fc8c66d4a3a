"""`--replay=<run>` takes over what a live run was asked for; what cannot be repeated is a line."""

import json

import pytest

from launch.settings.flags import parse_config
from launch.settings.replaying import is_stand_in, read_live_run
from launch.settings.run_config import build_run_config, flag_values
from launch.sweep import parse_request

LIVE = {"protocol": 1, "seats": 4, "own_data": False}
ASKED = {
    "algo": "fedavg",
    "rounds": 9,
    "num_clients": 4,
    "seed": 7,
    "learning_rate": 0.25,
    "steps": 3,
    "partition": "iid",
    "dataset": "digits",
    "track": "tensorboard_dir",
    "run_dir": "somewhere",
}


@pytest.fixture
def live(tmp_path):
    """(rounds done, what is said of the live run, data section's further entries, further flags) -> its folder."""

    def write(num_rounds=5, live=LIVE, **flags):
        folder = tmp_path / "live"
        folder.mkdir(exist_ok=True)
        asked = {name: value for name, value in ASKED.items() if name != "track"} | flags
        stored = flag_values(build_run_config(asked))
        said = {"live": live} if live else {}
        data = {"num_clients": 4, "digest": "d1"}
        (folder / "config.json").write_text(json.dumps({"flags": stored, **said, "data": data}))
        (folder / "metrics.csv").write_text("round,x\n" + "".join(f"{i},0\n" for i in range(1, num_rounds + 1)) + "99")
        (folder / "record.csv").write_text("round,tick,client,what,version\n1,0,0,start,1\n")
        return folder

    return write


def test_it_alone_repeats_the_settings_and_the_rounds_that_were_done(live):
    folder = live()
    config = parse_config([f"--replay={folder}"])
    assert (config.algo, config.rounds, config.num_clients, config.seed, config.partition) == ("fedavg", 5, 4, 7, "iid")
    assert (config.algorithm.training.learning_rate, config.algorithm.training.steps) == (0.25, 3)
    assert (config.run_dir, config.resume, config.replay) == ("", False, str(folder))
    assert not is_stand_in(read_live_run(str(folder)), flag_values(config))


def test_typed_flags_override_and_other_data_bring_their_own_settings(live):
    folder = live(dataset="digits", rounds=9)
    config = parse_config([f"--replay={folder}", "--rounds=2", "--learning_rate=0.5", "--run_dir=twin"])
    assert (config.rounds, config.algorithm.training.learning_rate, config.run_dir) == (2, 0.5, "twin")
    other = parse_config([f"--replay={folder}", "--dataset=mnist"])
    assert (other.dataset, other.num_clients, other.partition) == ("mnist", 4, "iid")
    assert is_stand_in(read_live_run(str(folder)), flag_values(other))


def test_of_own_data_others_must_stand_in(live, refuse):
    folder = live(live={**LIVE, "own_data": True})
    line = refuse([f"--replay={folder}"])
    assert line.startswith(f"--replay={folder}: its data stayed with its 4 clients; expected others in their place")
    config = parse_config([f"--replay={folder}", "--dataset=digits"])
    assert (config.num_clients, config.seed) == (4, 7)
    assert is_stand_in(read_live_run(str(folder)), flag_values(config))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--rounds=6"], "--rounds=6: expected at most 5, as many as --replay="),
        (["--algo=fedadam"], "--algo=fedadam: expected fedavg, of which --replay="),
        (["--smoke"], "expected no --smoke beside it"),
        (["--device_profiles=phones"], "--device_profiles: does nothing with --replay="),
        (["--learning_rte=1"], "--learning_rte: "),
    ],
)
def test_what_cannot_be_repeated(live, refuse, arguments, expected):
    assert expected in refuse([f"--replay={live()}", *arguments])


def test_what_is_no_live_run(live, refuse, tmp_path):
    nowhere = tmp_path / "nowhere"
    assert refuse([f"--replay={nowhere}"]) == (
        f"--replay={nowhere}: no run to read there; expected the folder of a run of launch.serve"
    )
    folder = live(live=None)
    assert "a run without people, which has no record; expected the folder" in refuse([f"--replay={folder}"])
    assert "its metrics.csv has no round yet" in refuse([f"--replay={live(num_rounds=0)}"])
    (live() / "record.csv").unlink()
    assert refuse([f"--replay={folder}"]).endswith("its record.csv is gone, without which the run cannot be repeated")
    for content in ("", "[]", "{}", '{"flags": {}, "data": 3}', '{"flags": 1, "data": {"num_clients": true}}'):
        (folder / "config.json").write_text(content)
        assert "no run to read there" in refuse([f"--replay={folder}"])


def test_settings_of_a_stranger_are_said_to_be_those_of_replay(live, refuse):
    folder = live()
    content = json.loads((folder / "config.json").read_text())
    content["flags"]["client_dir"] = "/elsewhere/clients"
    (folder / "config.json").write_text(json.dumps(content))
    assert refuse([f"--replay={folder}"]).startswith(f"--replay={folder}: its config.json names --client_dir=")


def test_sweeps_and_searches_do_not_repeat(live, refuse, tmp_path):
    flag, runs = f"--replay={live()}", f"--runs_dir={tmp_path / 'runs'}"
    assert "repeats one run; expected launch.train alone" in refuse(["--algos=fedavg", runs, flag], parse_request)
