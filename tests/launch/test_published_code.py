"""The command that replays the published scripts: it completes a file, makes the page, and refuses in one line."""

import pytest

from datasets.catalog import DATASETS, DatasetOptions
from datasets.smoke import make_random_arrays
from launch import published_code
from launch.papers.fedsikd.published_code import ARMS, REPLAY_FILE, Place, Run, read_replay, write_replay
from launch.published_code import main

RUN = Run((0.1, 0.2, 0.3, 0.4, 0.5), (5.0, 4.0, 3.0, 2.0, 1.0), 10.0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "replay.csv"


def test_a_stopped_command_goes_on(path, monkeypatch, capsys):
    computed = []

    def compute(bench, place, split):
        computed.append((place, split))
        if len(computed) == 3:
            raise KeyboardInterrupt
        return RUN

    monkeypatch.setattr(published_code, "_load_bench", lambda dataset, data_dir: None)
    monkeypatch.setattr(published_code, "_compute_run", compute)
    arguments = [f"--csv={path}", "--datasets=mnist", "--alphas=0.5", "--splits=2", "--fedavg_splits=1"]
    assert main(arguments) == 130
    client_0, leaders, fl_hc, fedavg = (Place("mnist", "0.5", arm) for arm in ARMS)
    assert {place: list(runs) for place, runs in read_replay(path).items()} == {client_0: [0, 1]}
    assert main([*arguments, f"--page={path.with_name('page.md')}"]) == 0
    assert computed[2:] == [(leaders, 0), (leaders, 0), (leaders, 1), (fl_hc, 0), (fl_hc, 1), (fedavg, 0)]
    assert "5/5 mnist 0.5 fedavg split 0: 10.0 20.0 30.0 40.0 50.0 (10 s CPU)" in capsys.readouterr().out
    assert read_replay(path)[fedavg][0].losses == RUN.losses
    assert "| MNIST | FedAvg of all clients | 1 of 12 |" in path.with_name("page.md").read_text()


@pytest.mark.slow
def test_random_arrays_are_trained_on(path, monkeypatch):
    """All arms on noise of MNIST's shape, through models, training and evaluation."""
    seen = []

    def load(dataset, options):
        seen.append(options)
        return make_random_arrays(DATASETS[dataset], options)

    monkeypatch.setattr(published_code, "load_arrays", load)
    arguments = [
        f"--csv={path}",
        "--datasets=mnist",
        "--alphas=2",
        "--splits=1",
        "--fedavg_splits=1",
        "--data_dir=here",
    ]
    assert main(arguments) == 0
    assert seen == [DatasetOptions(data_dir="here", har_features="inertial")]
    replay = read_replay(path)
    assert len(replay) == len(ARMS) and all(list(runs) == [0] for runs in replay.values())
    assert len({runs[0].losses for runs in replay.values()}) == len(ARMS)
    assert all(0 <= accuracy <= 0.5 for runs in replay.values() for accuracy in runs[0].accuracies)


def test_the_page_alone_needs_no_data(path):
    write_replay({Place("har", "2", "leaders"): {0: RUN}}, path)
    before = path.read_bytes()
    page = path.with_name("page.md")
    assert main(["--notrain", f"--csv={path}", f"--page={page}"]) == 0
    assert path.read_bytes() == before and "| HAR | four leaders' teachers | 1 of 40 | 10 s |" in page.read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--datasets=mnist,cifar10"],
        ["--alphas=0.3"],
        ["--alphas="],
        ["--arms=fl"],
        ["--splits=-1"],
        ["--notrain"],
        ["--split=3"],
        ["--", "x"],
        [f"--csv={REPLAY_FILE.with_name('table_v.csv')}", "--notrain", "--page=page.md"],
    ],
)
def test_a_wrong_request_is_one_line(arguments, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(published_code, "_complete", None)  # nothing is trained before the request is checked
    assert main(arguments) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_missing_data_are_one_line(path, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("datasets.download.urllib.request.urlopen", _refuse)
    assert main([f"--csv={path}", "--datasets=har", f"--data_dir={tmp_path}"]) == 2
    *progress, last = capsys.readouterr().err.strip().splitlines()
    assert last.startswith("error: ") and "no network here" in last and not path.exists()
    assert all(line.startswith("downloading ") for line in progress)


def _refuse(*arguments, **options):
    raise OSError("no network here")
