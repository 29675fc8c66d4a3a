"""Where the settings of experiments come from, in a table: equal rows are merged, and names told by few patterns."""

import pathlib

from launch.runs.run_records import RunRecord
from launch.settings.experiments import Experiment, Origin, Provenance
from reproductions.engine.provenance import describe_revisions, tabulate_provenance


def make_experiments(**flags):
    """Experiments by name, each with the flags of two origins."""
    return [
        Experiment(
            name,
            "An experiment.",
            (
                *(Provenance(*pair.split("="), Origin.PRINTED, "section 3", "") for pair in printed.split()),
                *(Provenance(*pair.split("="), Origin.OURS, "a guess", "With a note.") for pair in ours.split()),
            ),
        )
        for name, (printed, ours) in flags.items()
    ]


def test_equal_settings_share_a_row_and_a_value_names_its_experiments():
    experiments = make_experiments(
        fedcd_small=("algo=fedcd rounds=45", "fedcd_epochs=2 seed=0"),
        fedcd_large=("algo=fedcd rounds=45", "fedcd_epochs=3 seed=0"),
        fedavg_small=("algo=fedavg rounds=45", "fedavg_epochs=2 seed=0"),
        fedavg_large=("algo=fedavg rounds=45", "fedavg_epochs=2 seed=0 augment=none"),
    )
    columns, rows = tabulate_provenance(experiments)
    assert columns == ("setting", "value", "origin", "source")
    assert rows == [
        ["algo", "fedcd (`fedcd*`), fedavg (`fedavg*`)", "printed", "section 3"],
        ["rounds", "45", "printed", "section 3"],
        # FedAvg has no such flag, so that its experiments need not be told apart.
        ["fedcd_epochs", "2 (`fedcd_small`), 3 (`fedcd_large`)", "ours", "a guess"],
        ["seed", "0", "ours", "a guess"],
        ["fedavg_epochs", "2", "ours", "a guess"],
        ["augment", "none (`fedavg_large`)", "ours", "a guess"],
    ]


def test_a_setting_of_two_origins_has_two_rows():
    experiments = make_experiments(
        run_one=("algo=fedavg rounds=45", "seed=0"),
        run_two=("algo=fedavg rounds=45", "seed=0"),
        run_three=("algo=fedavg rounds=45", "seed=0"),
        run_long=("algo=fedavg", "rounds=300 seed=0"),
    )
    rows = [row for row in tabulate_provenance(experiments).rows if row[0] == "rounds"]
    assert rows == [
        ["rounds", "45 (all but `run_long`)", "printed", "section 3"],
        ["rounds", "300 (`run_long`)", "ours", "a guess"],
    ]


def test_names_that_no_pattern_tells_apart_are_written_out():
    names = {"a_low": 1, "a_low_long": 2, "b_low": 2, "b_low_long": 1}
    experiments = make_experiments(**{name: ("algo=fedavg", f"rounds={rounds}") for name, rounds in names.items()})
    [row] = [row for row in tabulate_provenance(experiments).rows if row[0] == "rounds"]
    assert row[1] == "1 (`a_low`, `b_low_long`), 2 (`a_low_long`, `b_low`)"


def test_runs_are_counted_by_the_revision_that_made_them():
    runs = [
        RunRecord(pathlib.Path("run"), {}, "", {}, revision=each)
        for each in ("0123456789abcdef", "fedcba9876543210-dirty", "0123456789abcdef", "")
    ]
    assert describe_revisions(runs) == (
        "Runs by revision of the code: 0123456 (2), fedcba9-dirty (1), unknown (1). *Dirty*: with changes that were "
        "not committed."
    )
    assert describe_revisions(runs[::-1]) == describe_revisions(runs), "equal counts do not hang on the order of runs"
    assert describe_revisions(runs[:1]) == "Runs by revision of the code: 0123456 (1)."
    assert describe_revisions([]) == ""


def test_no_experiments_give_no_rows():
    assert list(tabulate_provenance([]).rows) == []
