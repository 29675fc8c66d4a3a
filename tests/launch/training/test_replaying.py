"""A whole twin of a live run whose folder was made by hand, what it says, and how both are compared."""

import json
import re
import shutil

import pytest

import launch.compare
import launch.train
from files.digests import compute_sum
from launch.live.record import TICKS_A_SECOND, RecordLog, read_record
from launch.pages.comparison.collection import collect_runs
from launch.pages.comparison.compared_run import read_compared_run
from launch.pages.comparison.content import build_content
from launch.pages.report.live import describe_live
from launch.pages.report.page import assemble_page
from launch.runs.run_records import read_columns, read_rows
from tff_algos.rounds.synchronous import SynchronousProcess
from tff_algos.simulation.event_clock import LogRow

pytestmark = pytest.mark.usefixtures("no_plots")
TINY = (
    *("--algo=fedavg", "--num_clients=3", "--model=perceptron", "--steps=1", "--rounds=2", "--partition=iid"),
    "--norun_page",
)
TRAFFIC = "round,bytes_down,bytes_up,num_present,num_asked,num_late,num_missing\n1,900,800,3,3,0,0\n2,900,500,3,3,1,1\n"


def make_rows(round_num, begin_s, used):
    """A round that waits: all three are asked, these answer, and it ends after two seconds."""
    end_s, missing = begin_s + 2.0, sorted({0, 1, 2} - set(used))
    return [
        *(LogRow(begin_s, client, "start", round_num) for client in range(3)),
        *(LogRow(begin_s + 0.5 + client / 4, client, "ready", round_num) for client in used),
        *(LogRow(end_s, client, "missing", round_num) for client in missing),
        *(LogRow(end_s, client, "received", round_num) for client in used),
    ]


RECORD = {1: make_rows(1, 0.0, (0, 1, 2)), 2: make_rows(2, 2.0, (0, 2))}


def call_live(folder, record):
    """Lets a run of three clients say that these answered over the network."""
    (folder / "checksums.sha256").unlink()
    config = json.loads((folder / "config.json").read_text())
    config["live"] = {"protocol": 1, "seats": 3, "own_data": False}
    (folder / "config.json").write_text(json.dumps(config))
    log = RecordLog(folder / "record.csv")
    for round_num, rows in record.items():
        log.append(round_num, rows)


@pytest.fixture(scope="module")
def made_live(tmp_path_factory):
    """The folder of a run whose clients, as it says, answered over the network."""
    folder = tmp_path_factory.mktemp("runs") / "live"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder.parent / "cache"))
        assert launch.train.main((*TINY, f"--run_dir={folder}")) == 0
    call_live(folder, RECORD)
    (folder / "traffic.csv").write_text(TRAFFIC)
    return folder


@pytest.fixture
def live(made_live, tmp_path):
    return shutil.copytree(made_live, tmp_path / "live")


@pytest.fixture
def asked(monkeypatch):
    """What the processes of a test are asked to repeat; they train as ever."""
    seen = []
    ask = property(lambda self: lambda partners: seen.append(partners.record) or self)
    monkeypatch.setattr(SynchronousProcess, "ask", ask, raising=False)
    return seen


def test_a_twin_repeats_the_record_and_is_compared_with_its_run(asked, live, train_here, tmp_path, capsys):
    twin = tmp_path / "twin"
    code, said, wrong = train_here(f"--replay={live}", "--rounds=1", f"--run_dir={twin}")
    assert code == 0, wrong
    assert f"twin     of {live}, 2 rounds, with the same parts of data" in said
    assert asked == [RECORD] == [read_record(live / "record.csv", 3)]
    config = json.loads((twin / "config.json").read_text())
    assert config["twin_of"] == {"run": "live", "record": compute_sum(live / "record.csv")}
    assert config["flags"]["replay"] == str(live) and "live" not in config
    # It goes on by itself, to all rounds of the record and no further, and only with the record that it began with.
    code, _, wrong = train_here("--resume", f"--run_dir={twin}", "--rounds=3")
    assert code == 2 and "--rounds=3: expected at most 2, as many as --replay=" in wrong
    assert "its weights and the live run's" not in said  # which has done another round
    code, said, wrong = train_here("--resume", f"--run_dir={twin}", "--rounds=2")
    assert code == 0, wrong
    assert "twin     its weights and the live run's are the same (SGD: expect" in said
    assert (twin / "metrics.csv").read_bytes() == (live / "metrics.csv").read_bytes(), "all trained in both"
    content = (live / "record.csv").read_text()
    (live / "record.csv").write_text(content.replace("missing", "dropped"))
    code, _, wrong = train_here("--resume", f"--run_dir={twin}", "--rounds=2")
    assert code == 2 and "is another one than it began with; restore that" in wrong
    (live / "record.csv").write_text(content)

    table = tmp_path / "table.csv"
    arguments = (f"--runs={live}", f"--runs={twin}", f"--table={table}", "--metric=virtual_time_s")
    capsys.readouterr()
    assert launch.compare.main(arguments) == 0
    assert "note     Who took part in twin, and when, is read from the record of a live run" in capsys.readouterr().err
    rows = [line.split(",") for line in table.read_text().splitlines()[1:]]
    assert [(row[0], row[3]) for row in rows] == [("FedAvg (live)", "1"), ("FedAvg (twin of live)", "1")]
    content = build_content(collect_runs([str(live), str(twin)]), {}, tmp_path / "compare.html")
    assert content["algorithms"] == {"fedavg (live)": "FedAvg (live)", "fedavg (twin of live)": "FedAvg (twin of live)"}
    assert content["grouping"] == ["algo"] and len(content["changed"]) == 1 and not content["fedavg"]
    assert {"test_accuracy", "virtual_time_s", "bytes_up", "bytes_down", "total_bytes"} <= set(content["metrics"])
    assert content["runs"][1]["heading"].startswith("FedAvg (twin of live) on ")
    told = describe_live(read_compared_run(twin, "twin"), config, twin)
    assert told.sentence.startswith("A simulation that repeats the live run live") and told.rounds is None


def test_the_page_of_a_live_run_says_who_answered_and_needs_no_list_of_seats(live):
    shown = assemble_page(live)
    assert "A live run: its clients answered over the network, and got their parts of the data from the server" in shown
    assert "<dt>Seats</dt><dd>3</dd>" in shown
    assert "<dt>Answers that came too late</dt><dd>1 in all rounds</dd>" in shown
    assert "<dt>Clients that did not answer</dt><dd>1 in all rounds</dd>" in shown
    run, config = read_compared_run(live, "live"), json.loads((live / "config.json").read_text())
    (live / "traffic.csv").write_text("round,num_late\n1\n")
    assert "Its traffic.csv cannot be read" in describe_live(run, config, live).sentence
    (live / "traffic.csv").unlink()
    assert describe_live(run, config, live).facts == [("Seats", "3")]


def test_wrong_requests_are_one_line_and_write_nothing(asked, live, train_here, tmp_path):
    twin = f"--run_dir={tmp_path / 'twin'}"

    def refuse(*arguments):
        code, _, wrong = train_here(f"--replay={live}", twin, *arguments)
        assert code == 2 and wrong.count("\n") == 1 and not (tmp_path / "twin").exists()
        return wrong

    line = refuse("--num_clients=4")
    assert "--num_clients=4: expected as many clients as the run in --replay=" in line and "had, 3" in line
    config = json.loads((live / "config.json").read_text())
    config["data"]["digest"] = "0" * 64
    (live / "config.json").write_text(json.dumps(config))
    assert "its federation was another one than the same flags give now" in refuse()
    (live / "record.csv").write_text((live / "record.csv").read_text() + "2,0,0,start,1\n")
    assert "record.csv: damaged or edited: line" in refuse()
    (live / "record.csv").unlink()
    assert "its record.csv is gone" in refuse()


def test_what_has_no_live_runs_is_refused(live, train_here, tmp_path, monkeypatch):
    monkeypatch.setattr(SynchronousProcess, "ask", None, raising=False)
    code, _, wrong = train_here(f"--replay={live}", f"--run_dir={tmp_path / 'twin'}")
    assert code == 2 and "expected none with --algo=fedavg and these settings" in wrong


@pytest.mark.slow
def test_the_events_of_asynchronous_devices_are_repeated_to_the_tick(train_here, tmp_path):
    """A simulated run stands for the live one; its times are put on ticks. Its seeds are other ones, so its models."""
    live, twin = tmp_path / "live", tmp_path / "twin"
    assert train_here("--algo=async_periodic", *TINY[1:], "--rounds=3", f"--run_dir={live}")[0] == 0
    record = {}
    for row in read_rows(live / "events.csv"):
        time_s = round(float(row["time_s"]) * TICKS_A_SECOND) / TICKS_A_SECOND
        event = LogRow(time_s, int(row["client"]), row["what"], int(row["model"]))
        record.setdefault(int(row["round"]), []).append(event)
    call_live(live, record)
    code, said, wrong = train_here(f"--replay={live}", f"--run_dir={twin}")
    assert code == 0, wrong
    assert re.search(r"twin     its weights and the live run's are within \S+ of the largest \(SGD", said)
    events = [(int(row["client"]), row["what"], int(row["model"])) for row in read_rows(twin / "events.csv")]
    assert events == [row[1:] for rows in record.values() for row in rows]
    for name in ("virtual_time_s", "num_clients", "bytes_down", "bytes_up", "num_ready", "mean_age", "max_age"):
        assert read_columns(twin / "metrics.csv")[name].tolist() == read_columns(live / "metrics.csv")[name].tolist()
