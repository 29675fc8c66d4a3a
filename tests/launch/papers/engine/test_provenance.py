"""Where a flagfile's settings come from: headings are read, mistakes named with their line, equal rows merged."""

import pathlib

import pytest

from launch.papers.engine.provenance import (
    Origin,
    describe_revisions,
    list_trials,
    read_provenance,
    tabulate_provenance,
)
from launch.runs.run_records import RunRecord
from launch.settings.errors import FlagError

HEAD = "# An experiment: Table 1 of a paper.\n# Ours: 90 %.\n\n"
CODE = "github.com/SimuEnv/FedSiKD, commit 7e47aa4"


def write(folder, text, name="a.flags"):
    path = folder / name
    path.write_text(text)
    return path


def test_a_flag_belongs_to_the_heading_above_it(tmp_path):
    path = write(
        tmp_path,
        HEAD + "# Printed (sections V-A1 and V-A2).\n--algo=fedavg\n--rounds=3\n\n--batch_size=4\n\n"
        f"# From the authors' code ({CODE}). It trains with\n# another batch size.\n--fedavg_epochs=6\n"
        "# Ours: 0.5 is our guess, because\n# the paper prints none.\n--smoke\n",
    )
    assert read_provenance(path) == [
        ("algo", "fedavg", Origin.PRINTED, "sections V-A1 and V-A2", ""),
        ("rounds", "3", Origin.PRINTED, "sections V-A1 and V-A2", ""),
        ("batch_size", "4", Origin.PRINTED, "sections V-A1 and V-A2", ""),
        ("fedavg_epochs", "6", Origin.AUTHORS_CODE, CODE, "It trains with another batch size."),
        ("smoke", "true", Origin.OURS, "0.5 is our guess, because the paper prints none", ""),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# A head.\n--algo=fedavg\n", "a.flags:2: --algo=fedavg stands under no heading"),
        ("--algo=fedavg\n", "a.flags:1: --algo=fedavg stands under no heading"),
        # What would be a heading below the head is a part of it here.
        ("# A head.\n# Ours: a guess.\n--algo=fedavg\n", "a.flags:3: --algo=fedavg stands under no heading"),
        (HEAD + "# Chosen by us.\n--rounds=3\n", "a.flags:4: .*no heading: 'Chosen by us.'"),
        (HEAD + "# Ours: a guess.\n--rounds=3\n\n# A remark.\n", "a.flags:7: .*no heading: 'A remark.'"),
        (HEAD + "# Printed.\n--rounds=3\n", "no heading"),
        (HEAD + "# Printed ().\n--rounds=3\n", "no heading"),
        (HEAD + "# Printed (section ).\n--rounds=3\n", "no heading"),
        (HEAD + "# Printed (section 3)\n--rounds=3\n", "no heading"),
        (HEAD + "# From the authors' code.\n--rounds=3\n", "no heading"),
        (HEAD + "# From the authors' code (github.com/SimuEnv/FedSiKD).\n--rounds=3\n", "no heading"),
        (HEAD + "# From the authors' code (github.com/SimuEnv/FedSiKD, commit 7e47aa).\n--rounds=3\n", "no heading"),
        (HEAD + "# From the authors' code (github.com/SimuEnv/FedSiKD, commit master).\n--rounds=3\n", "no heading"),
        (HEAD + "# From the authors' code (commit 7e47aa4).\n--rounds=3\n", "no heading"),
        (HEAD + "# Ours:\n--rounds=3\n", "no heading"),
        (HEAD + "# Ours: .\n--rounds=3\n", "no heading"),
        (HEAD + "# Ours: a guess.\nrounds=3\n", "a.flags:5: 'rounds=3'; expected a comment or --flag=value"),
        (
            HEAD + "# Ours: tuned.\n--rounds=3\n",
            "a.flags:4: .* does not name the grid or search space; the seeds; the CSV",
        ),
        (HEAD + "# Ours: tuned on a grid, seed 0.\n--rounds=3\n", "does not name the CSV of its trials"),
        (
            HEAD + "# Ours: tuned, seeds 0 and 1; the trials were not kept.\n--rounds=3\n",
            "name the grid or search space$",
        ),
        (HEAD + "# Ours: tuned on a grid; the trials were not kept.\n--rounds=3\n", "does not name the seeds$"),
    ],
)
def test_a_flag_without_a_proper_heading_is_refused(tmp_path, text, message):
    with pytest.raises(FlagError, match=message):
        read_provenance(write(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "trials"),
    [
        ("Ours: tuned, the grid and all trials in docs/results/tuning/a_b.csv, seeds 100 and 101.", ["a_b"]),
        ("Ours: tuned, seed 0. Neither grid nor score is left; the trials were not kept.", []),
        ("Ours: one is the simplest multiple and is not tuned.", []),
    ],
)
def test_a_tuned_setting_names_its_trials(tmp_path, text, trials):
    [setting] = read_provenance(write(tmp_path, f"{HEAD}# {text}\n--rounds=3\n"))
    assert setting.origin is Origin.OURS
    assert list_trials(text) == [f"docs/results/tuning/{name}.csv" for name in trials]


def write_experiments(folder, **flags):
    """Flagfiles by name, each with the flags of its two headings."""
    return [
        write(
            folder,
            f"{HEAD}# Printed (section 3).\n{printed}\n\n# Ours: a guess. With a note.\n{ours}\n",
            f"{name}.flags",
        )
        for name, (printed, ours) in flags.items()
    ]


def test_equal_settings_share_a_row_and_a_value_names_its_experiments(tmp_path):
    paths = write_experiments(
        tmp_path,
        fedcd_small=("--algo=fedcd\n--rounds=45", "--fedcd_epochs=2\n--seed=0"),
        fedcd_large=("--algo=fedcd\n--rounds=45", "--fedcd_epochs=3\n--seed=0"),
        fedavg_small=("--algo=fedavg\n--rounds=45", "--fedavg_epochs=2\n--seed=0"),
        fedavg_large=("--algo=fedavg\n--rounds=45", "--fedavg_epochs=2\n--seed=0\n--augment=none"),
    )
    columns, rows = tabulate_provenance(paths)
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


def test_a_setting_of_two_origins_has_two_rows(tmp_path):
    paths = write_experiments(
        tmp_path,
        run_one=("--algo=fedavg\n--rounds=45", "--seed=0"),
        run_two=("--algo=fedavg\n--rounds=45", "--seed=0"),
        run_three=("--algo=fedavg\n--rounds=45", "--seed=0"),
        run_long=("--algo=fedavg", "--rounds=300\n--seed=0"),
    )
    rows = [row for row in tabulate_provenance(paths).rows if row[0] == "rounds"]
    assert rows == [
        ["rounds", "45 (all but `run_long`)", "printed", "section 3"],
        ["rounds", "300 (`run_long`)", "ours", "a guess"],
    ]


def test_names_that_no_pattern_tells_apart_are_written_out(tmp_path):
    names = {"a_low": 1, "a_low_long": 2, "b_low": 2, "b_low_long": 1}
    paths = write_experiments(
        tmp_path, **{name: ("--algo=fedavg", f"--rounds={rounds}") for name, rounds in names.items()}
    )
    [row] = [row for row in tabulate_provenance(paths).rows if row[0] == "rounds"]
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


def test_no_flagfiles_give_no_rows():
    assert list(tabulate_provenance([]).rows) == []
