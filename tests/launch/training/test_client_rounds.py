"""The clients' results by round: what stands there, and that neither a kill nor a resume changes a byte."""

import gzip
import types

import numpy as np
import pandas as pd
import pytest
from made_up_process import MadeUpProcess

from launch.runs.client_rounds import ClientRounds, read_clients_by_round
from launch.runs.errors import RunFolderError
from launch.runs.task_columns import find_task_columns
from tff_algos.protocol import COMMON_METRICS, RoundOutput

CLIENTS = [types.SimpleNamespace(index=0, name="ward 1,5"), types.SimpleNamespace(index=2, name="=2")]
TABLE = """round,client,model,test_loss,test_accuracy,validation_loss,validation_accuracy
1,"ward 1,5",a,0.5,0.25,,
1,'=2,b,1.5,0.75,,1
3,"ward 1,5",a,0.125,0.25,,
3,'=2,b,1.125,0.75,,1
"""


def note(table, loss):
    """What a round of three clients gives, of which the second is not evaluated, and the first has no validation."""
    none = np.full(3, np.nan)
    test = types.SimpleNamespace(loss=np.array([loss, 0, 1 + loss]), metric=np.array([0.25, 0, 0.75]), further={})
    validation = types.SimpleNamespace(loss=none, metric=np.array([np.nan, 0, 1]), further={})
    table.take(["a", "a", "b"], {"validation": validation, "test": test})


def begin(path, last_round=0):
    table = ClientRounds(CLIENTS, find_task_columns("classification"))
    table.begin(path, last_round)
    return table


def write(path, last_round=0, rounds=((1, 0.5), (3, 0.125))):
    table = begin(path, last_round)
    for round_num, loss in rounds:
        note(table, loss)
        table.append(round_num)
    return table


def test_each_evaluated_round_has_a_row_for_each_evaluated_client(tmp_path):
    path = tmp_path / "clients_by_round.csv.gz"
    path.write_bytes(b"of another run")
    write(path)
    assert gzip.decompress(path.read_bytes()).decode() == read_clients_by_round(path) == TABLE
    assert pd.read_csv(path)["test_loss"].tolist() == [0.5, 1.5, 0.125, 1.125]


def test_a_run_that_was_killed_at_any_byte_goes_on_to_the_same_bytes(tmp_path):
    path = tmp_path / "straight.gz"
    straight = write(path)
    whole = path.read_bytes()
    first_bytes = len(write(tmp_path / "first.gz", rounds=[(1, 0.5)]) and (tmp_path / "first.gz").read_bytes())
    assert first_bytes < len(whole)
    broken = tmp_path / "broken.gz"
    for num_bytes in range(first_bytes, len(whole) + 1):
        broken.write_bytes(whole[:num_bytes])
        resumed = write(broken, last_round=2, rounds=[(3, 0.125)])
        assert broken.read_bytes() == whole and resumed.digest() == straight.digest()
    inode = broken.stat().st_ino
    assert begin(broken, last_round=3).digest() == straight.digest() and broken.stat().st_ino == inode
    # Of a run whose first evaluation comes after its checkpoint.
    begin(broken, last_round=0)
    assert not broken.exists()


def test_the_rounds_of_a_run_are_written_and_checked(tmp_path, open_loop):
    """Rounds 2, 4 and 5 are evaluated; the run that is killed in round 5 has a checkpoint of round 3."""

    def run(name, rounds=5, **values):
        table = ClientRounds(CLIENTS, find_task_columns("classification"))

        def evaluate(state, previous, with_shared):
            if state == fatal_round:
                raise ZeroDivisionError
            note(table, float(state))
            return {}

        process = MadeUpProcess(lambda state: RoundOutput(state + 1, dict.fromkeys(COMMON_METRICS, 0.0)), np.array(0))
        values |= {"rounds": rounds, "rounds_per_evaluation": 2, "clients_by_round": table}
        loop = open_loop(process, evaluate, name, **values)
        loop.run()
        return (tmp_path / name / "clients_by_round.csv.gz").read_bytes()

    fatal_round = None
    straight = run("straight")
    assert [line[:1] for line in gzip.decompress(straight).decode().splitlines()[1::2]] == ["2", "4", "5"]
    fatal_round = 4
    with pytest.raises(ZeroDivisionError):
        run("broken")
    fatal_round = None
    assert run("broken") == straight
    path = tmp_path / "broken" / "clients_by_round.csv.gz"
    path.write_bytes(gzip.compress(gzip.decompress(straight).replace(b"0.25", b"0.75")))
    with pytest.raises(RunFolderError, match="changed since its checkpoint was made"):
        run("broken", rounds=6)


@pytest.mark.parametrize("place", [0, 12, -6])
def test_a_damaged_file_is_refused(tmp_path, place):
    path = tmp_path / "clients_by_round.csv.gz"
    write(path)
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(RunFolderError, match=r"clients_by_round\.csv\.gz: damaged; restore it, or start a new run"):
        begin(path, last_round=3)
