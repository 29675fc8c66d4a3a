"""Reports: their tables and verdicts; and pages, which are what `page.toml` says, with numbers from tables.

Where the settings of experiments come from, in a table: equal rows are merged, and names told by few patterns.

Run folders are matched with their experiment by name and settings, and refused with a reason.
"""

import dataclasses
import json
import pathlib

import pytest

from launch.runs.run_records import RunRecord
from launch.settings.experiments import Experiment, Origin, Provenance, make_experiment, ours
from reproductions.engine import page
from reproductions.engine.claim_rows import Claim
from reproductions.engine.collection import Cell, PrintedValue
from reproductions.engine.comparisons import Condition
from reproductions.engine.counted_runs import choose_runs, collect_runs, find_experiment_of, read_runs
from reproductions.engine.page import (
    ABSENT,
    PARTS,
    PageError,
    build_further,
    build_verdicts,
    compose_page,
    compose_report,
    find_printed,
    fold,
    look_up,
    split_numbers,
)
from reproductions.engine.paper import Paper, describe_revisions, tabulate_provenance
from reproductions.engine.tables import Section, Table, format_table

PAPER = Paper("mine", lambda *_: None, draw=lambda *_: None)
COLUMNS = ["section", "claim", "rule", "counted_with", "printed_tables", "printed_tables_numbers"]
OPEN = "1 of 2 comparisons open: A 3, B 2: +1.0 [-1, +3], n = 5"
CONSTRUCTED = ("by construction", "B is at most 4")
CLAIMS = Table(
    [*COLUMNS, *(f"{preset}{part}" for preset in ("printed", "tuned") for part in ("", "_numbers", "_printed"))],
    [
        ["1", "A above B", "more", "", "agree", "A 3, B 2", "undecided", OPEN, "", "not run", "", ""],
        ["2", "B at most 4", "", "", "not printed", "", *CONSTRUCTED, "", *CONSTRUCTED, ""],
    ],
)
FURTHER = Table(
    ["comparison", "numbers"],
    [["A above B", "A 3: +1.0 [+0.5, +1.5], n = 3"], ["A above B twice", "2 ± 1"], ["C", "3 (+1*)"]],
)
PAGE = {
    "title": "Mine",
    "figure": "mine.png",
    "plain": "The paper says that A is good. It is, twice: {twice}.",
    "use_when": "you have A. Else do not.",
    "about": "A is claimed to be good.",
    "evidence": ["A is ahead by {lead}.", "C: {bracketed}."],
    "rows": [{"row": "A and B", "experiments": "fedsikd/fed*_mnist_alpha0.1"}],
    "shown_runs": "tuned",
    "shown": [{"claim": "A above", "runs": "printed", "why": "by {lead}"}],
    "numbers": {
        "lead": {"table": "further", "row": {"comparison": "A above B"}, "column": "numbers", "part": "interval"},
        "twice": {"table": "further", "row": {"comparison": "twice"}, "column": "numbers", "part": "mean"},
        "bracketed": {"table": "further", "row": {"comparison": "C"}, "column": "numbers", "part": "mean"},
        "none": {"table": "further", "row": {"comparison": "no such"}, "column": "numbers"},
        "many": {"table": "further", "row": {"comparison": "A"}, "column": "numbers"},
        "wrong": {"table": "further", "row": {"comparison": "A"}, "column": "nothing"},
    },
}
EXPERIMENTS = Table(
    ["experiment", "data", "seeds", "rounds", "planned rounds", "seconds"],
    [
        ["fedsikd/fedavg_mnist_alpha0.1", "mnist", "0, 1", "5", "70", "60.0"],
        ["fedsikd/fedsikd_mnist_alpha0.1", "mnist", "0, 1, 2", "5", "70", "90.4"],
    ],
)
TABLES = {"claims": CLAIMS, "further": FURTHER}


@pytest.fixture(autouse=True)
def own_page(monkeypatch):
    monkeypatch.setattr(Paper, "page", PAGE)


def test_a_page_shows_claims_counts_numbers_and_links():
    text = compose_page(PAPER, TABLES)
    assert (
        "| of 2 claims | reproduced | not reproduced | undecided | by construction | not comparable | not run |" in text
    )
    assert "| ours, tuned | 0 | 0 | 0 | 1 | 0 | 1 |" in text
    assert "| claim | printed | ours, tuned | interval | verdict |" in text
    shown = "| A above B | A 3, B 2 | *ours*: A 3, B 2 | +1.0 [-1, +3], n = 5 (1 of 2 open) |"
    assert f"{shown} **undecided**: by +1.0 [+0.5, +1.5] |" in text
    assert "These are 1 of the 2 claims; [every claim, its rule and numbers](mine_claims.csv)." in text
    assert "- A is ahead by +1.0 [+0.5, +1.5].\n- C: 3.\n" in text
    assert "[![Mine](mine.png)](mine.png)" in text and "[further](mine_further.csv)" in text


def test_a_page_opens_in_plain_words_then_shows_what_is_printed_then_the_claims(monkeypatch):
    monkeypatch.setattr(Paper, "page", {**PAGE, "beside": "Table 1", "beside_note": "In C."})
    paper = dataclasses.replace(PAPER, beside=lambda tables: Table(["printed", "ours"], [["5", "4"]]))
    blocks = compose_page(paper, TABLES).split("\n\n")
    assert blocks[:3] == [
        "# Mine",
        "**In short.** The paper says that A is good. It is, twice: 2.",
        "**Use it when** you have A. Else do not.",
    ]
    assert blocks[3:8] == [
        "## Table 1",
        "| printed | ours |\n| --- | --- |\n| 5 | 4 |",
        "In C.",
        "[![Mine](mine.png)](mine.png)",
        "## Claims",
    ]


def test_a_folded_table_is_one_on_the_site_too():
    """With the extensions that mkdocs.yml names for it."""
    markdown = pytest.importorskip("markdown")
    text = fold("More", format_table(Table(["a", "b"], [["1", "2"]])), "*Last*.")
    html = markdown.markdown(text, extensions=["tables", "md_in_html"])
    assert "<td>1</td>" in html and "<em>Last</em>" in html and "<summary>More</summary>" in html


def test_what_can_be_run_again_has_its_command_its_data_and_its_duration():
    """Of the seeds that both have, the last; 60 and 90.4 seconds."""
    text = compose_page(PAPER, {**TABLES, "experiments": EXPERIMENTS})
    command = "python -m launch.sweep --experiments='fedsikd/fed*_mnist_alpha0.1' --seeds=1"
    assert f"| A and B | `{command} --same_data_as=docs/results/mine.zip` | mnist | 2 | 2 min 30 s |" in text


def test_what_was_not_kept_can_be_run_for_the_first_time(monkeypatch):
    pattern = "fedsikd/fl_hc_mnist_alpha0.1"
    monkeypatch.setattr(Paper, "page", {**PAGE, "rows": [{"row": "C", "experiments": pattern}]})
    text = compose_page(PAPER, {**TABLES, "experiments": EXPERIMENTS})
    assert f"| C | `python -m launch.sweep --experiments={pattern} --seeds=0 --same_data_as=" in text
    assert "| not run | 1 | not run |" in text


def test_an_experiment_that_there_is_not_is_an_error(monkeypatch):
    monkeypatch.setattr(Paper, "page", {**PAGE, "rows": [{"row": "C", "experiments": "fedsikd/nothing*"}]})
    with pytest.raises(PageError, match="no such experiment"):
        compose_page(PAPER, {**TABLES, "experiments": EXPERIMENTS})


def test_a_plain_number_is_rounded_as_people_do():
    assert [PARTS["whole"](cell) for cell in ("86.50 ± 1.78", "90.49", "3", "never", "")] == [
        *("86.5", "90", "3", "never", ABSENT)
    ]
    assert PARTS["percent"]("0.334") == "33"
    assert [PARTS["sentence"](cell) for cell in ("It wins 1.5. More.", "It wins.")] == ["It wins 1.5.", "It wins."]


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ("", ("", "")),
        ("A 1 %, B 2 % (x): -1.00 [-2.00, +0.50], n = 3", ("A 1 %, B 2 % (x)", "-1.00 [-2.00, +0.50], n = 3")),
        (
            "all 2 comparisons, the closest: A 1: +1 [0, 2], n = 3",
            ("A 1", "+1 [0, 2], n = 3 (closest of 2)"),
        ),
        ("A 53.72 %: undecided; mean [34.26, 73.17], n = 3; margin [1, 2]", ("A 53.72 %", "[34.26, 73.17], n = 3")),
        ("models 2.00: the same in all 3 seeds; more", ("models 2.00", "the same in all 3 seeds")),
        (
            "1 of 2 comparisons open: A 5, B never: 1 of 8 seeds on the claimed side, 2 ties",
            ("A 5, B never", "1 of 8 seeds on the claimed side, 2 ties (1 of 2 open)"),
        ),
        (
            "2 of 3 comparisons on the other side: A 1, B 2: -1 [-2, -1], n = 3; more",
            ("A 1, B 2", "-1 [-2, -1], n = 3 (2 of 3 fail)"),
        ),
        ("all by Table 3: A 20 %", ("all by Table 3: A 20 %", "")),
        ("points 34.58: [7.12, 62.04], n = 3", ("points 34.58", "[7.12, 62.04], n = 3")),
    ],
)
def test_numbers_of_a_claim_are_split(numbers, expected):
    assert split_numbers(numbers) == expected


@pytest.mark.parametrize(
    ("numbers", "shown"),
    [("B is 4; A is not", "|  |  |"), ("B is 4; models 3.00: [2, 4], n = 3", "| models 3.00 | [2, 4]")],
)
def test_a_claim_by_construction_shows_its_measures_alone(monkeypatch, numbers, shown):
    claims = Table(
        CLAIMS.columns, [["2", "B at most 4", "", "", "not printed", "", *["by construction", numbers, ""] * 2]]
    )
    wanted = [{"claim": "B at most", "runs": "tuned", "why": "so it is"}]
    monkeypatch.setattr(Paper, "page", {**PAGE, "shown": wanted})
    text = compose_page(PAPER, {**TABLES, "claims": claims})
    assert f"| B at most 4 |  {shown}" in text and "A is not" not in text


@pytest.mark.parametrize(("name", "tables"), [("none", TABLES), ("lead", {})])
def test_what_was_not_run_is_said(name, tables):
    assert look_up(name, PAGE, tables) == ABSENT


@pytest.mark.parametrize("name", ["many", "wrong", "unknown"])
def test_a_wrong_name_of_a_number_is_an_error(name):
    with pytest.raises(PageError):
        look_up(name, PAGE, TABLES)


def test_a_claim_that_there_is_not_is_an_error(monkeypatch):
    wrong = [{"claim": "C", "runs": "printed", "why": ""}]
    monkeypatch.setattr(Paper, "page", {**PAGE, "shown": wrong})
    with pytest.raises(PageError, match="0 claims"):
        compose_page(PAPER, TABLES)


OURS, OTHER, BEST = (Cell("mnist", "0.1", name, 5, "test_accuracy") for name in ("ours", "other", "best"))
LABELS = {"printed": "ours", "tuned": "ours, tuned"}
PRINTED = [PrintedValue("VI", OURS, 0.9), PrintedValue("VI", OTHER, 0.8)]


def three(mean):
    """Three seeds whose mean has the 95 % interval mean +- 0.0248."""
    return {0: mean - 0.01, 1: mean, 2: mean + 0.01}


LEVEL = dict.fromkeys(range(3), 0.5)
RESULTS = {
    "printed": {OURS: three(0.6), OTHER: LEVEL},  # 0.1 +- 0.0248
    "tuned": {OURS: three(0.4), OTHER: LEVEL, BEST: three(0.51)},
}


def lead_of(first, second, **fields):
    text = f"{first.algo} leads {second.algo}"
    shown = f"{first.algo} {{0}}, {second.algo} {{1}}"
    return Claim("V", text, "at round 5", (Condition(((1, first), (-1, second)), shown, above=0),), **fields)


LEADS, BEST_LEADS = lead_of(OURS, OTHER), lead_of(BEST, OTHER)
FOLLOWS = lead_of(OTHER, OURS, by_construction="it cannot be otherwise")
THREE_CLAIMS = (LEADS, BEST_LEADS, FOLLOWS)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ("ours 1.00 %, other 9.00 % (round 5): +1 [0, 2], n = 3", "ours 90.00 %, other 80.00 % (round 5)"),
        (
            "1 of 2 comparisons open: ours 1 %, other 2 % (round 5): +1 [0, 2], n = 3",
            "ours 90.00 %, other 80.00 % (round 5)",
        ),
        ("best 1.00 %, other 2.00 % (round 5): +1 [0, 2], n = 3", ""),  # no number of best is printed
        ("ours 1.00 %, other 2.00 % (round 3): +1 [0, 2], n = 3", ""),  # not compared
        ("", ""),
    ],
)
def test_the_printed_comparison_beside_ours_is_the_same_if_it_is_printed(numbers, expected):
    conditions = [
        Condition(((1, first), (-1, OTHER)), f"{first.algo} {{0}}, other {{1}} (round 5)", above=0)
        for first in (BEST, OURS)
    ]
    claim = Claim("V", "both lead", "at round 5", tuple(conditions))
    assert find_printed(claim, {value.cell: value.value for value in PRINTED}.get, numbers) == expected


SMALL_PAGE = {
    "title": "A paper",
    "figure": "figure.png",
    "plain": "Ours leads. It does.",
    "use_when": "ever you like.",
    "evidence": ["It does."],
    "shown_runs": "printed",
    "shown": [{"claim": "ours leads", "why": "it does"}],
}


@pytest.fixture
def compose(monkeypatch):
    """(what a paper has) -> its report."""
    monkeypatch.setattr(Paper, "page", SMALL_PAGE)
    texts = {"legend": "How to read {things}.", "presets": "Ours: mine."}
    monkeypatch.setattr(page, "read_toml", lambda *place: {("one", "tables.toml"): texts}[place])

    def make_report(**fields):
        tables = {"results": Section("Table VI", Table(["a"], [["1"]]), "Round 5.")}
        return compose_report(Paper("one", lambda *_: None, **fields), tables, [], RESULTS, [], things="them")

    return make_report


def test_a_report_has_tables_claims_and_a_legend(compose):
    report = compose(claims=(LEADS,), further=(LEADS,), draw=lambda *_: None)
    assert list(report.tables) == ["results", "claims", "further", "experiments", "legend"]
    legend = {row[0]: row[1:] for row in report.tables["legend"].rows}
    assert legend["all"] == ["", "How to read them."] and legend["runs"] == ["", "Ours: mine."]
    assert legend["results"] == ["Table VI", "Round 5."] and legend["claims"][0] == "Verdicts"
    assert "| ours leads other |  | ours 60.00 %, other 50.00 % |" in report.markdown
    assert "](figure.png)" in report.markdown and "[results](one_results.csv)" in report.markdown


def test_a_row_a_claim_with_the_numbers():
    table = build_verdicts(THREE_CLAIMS, PRINTED, RESULTS, list(LABELS))
    rows = table.records
    assert len(set(table.columns)) == len(table.columns)
    assert [[row[name] for name in ("printed_tables", *LABELS)] for row in rows] == [
        ["agree", "reproduced", "not reproduced"],
        ["not printed", "not run", "undecided"],
        ["contradict it", "by construction", "by construction"],
    ]
    assert rows[0]["printed_tables_numbers"] == "ours 90.00 %, other 80.00 %"
    assert rows[0]["tuned_numbers"] == "ours 40.00 %, other 50.00 %: -10.00 [-12.48, -7.52], n = 3"
    assert rows[1]["printed_numbers"] == ""
    assert rows[2]["printed_numbers"].startswith("it cannot be otherwise; other 50.00 %, ours 60.00 %: -10.00")


def test_a_claim_that_compares_what_an_earlier_one_does_names_it():
    far = Claim("VI", "ours leads by far", "", (dataclasses.replace(LEADS.conditions[0], above=0.2),))
    rows = build_verdicts([LEADS, far, BEST_LEADS], PRINTED, RESULTS, list(LABELS)).records
    assert [row["counted_with"] for row in rows] == ["", "ours leads other", ""]


def test_our_further_comparisons_are_a_family_a_preset():
    """0.01 +- 0.0248 is undecided; 0.1 either way has t = 17.3, p = 0.0033, which Holm doubles in a family of two."""
    _, rows = build_further([LEADS, BEST_LEADS], RESULTS, LABELS).table
    assert [row[:4] for row in rows] == [
        ["ours", "ours leads other", "yes", "0.0033"],
        ["ours, tuned", "ours leads other", "no", "0.0066"],
        ["ours, tuned", "best leads other", "undecided", "0.2254"],
    ]
    assert build_further([], {}, LABELS) is None
    assert build_further([LEADS], {"printed": {}, "tuned": {}}, LABELS) is None


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


REVISIONS = ("0123456789abcdef", "fedcba9876543210-dirty", "0123456789abcdef", "")
COUNTED = (
    "Runs by revision of the code: 0123456 (2), fedcba9-dirty (1), unknown (1). *Dirty*: with changes that were not "
    "committed."
)


@pytest.mark.parametrize(
    ("revisions", "text"),
    [
        (REVISIONS, COUNTED),
        (REVISIONS[::-1], COUNTED),  # equal counts do not hang on the order of runs
        (REVISIONS[:1], "Runs by revision of the code: 0123456 (1)."),
        ((), ""),
    ],
)
def test_runs_are_counted_by_the_revision_that_made_them(revisions, text):
    assert describe_revisions([RunRecord(None, {}, "", {}, revision=each) for each in revisions]) == text


CELL = "fedsikd_mnist_alpha0.1"


def test_a_run_is_matched_by_its_folder_and_its_settings(tmp_path, write_run):
    """The folder around it bears the experiment's name, or it does itself."""
    run_dir = write_run(tmp_path, CELL, seed=2, rounds=3)
    [record], left_out = read_runs(tmp_path)
    assert (record.path, record.experiment, record.flags["seed"], left_out) == (run_dir, CELL, 2, [])
    assert sorted(record.rounds) == [1, 2, 3]
    run_dir.rename(tmp_path / "moved")
    (tmp_path / CELL).rmdir()
    (tmp_path / "moved").rename(tmp_path / CELL)
    assert read_runs(tmp_path)[0][0].experiment == CELL


@pytest.mark.parametrize("arguments", [["--temperature=1"], ["--smoke"], ["--activation=relu"]])
def test_a_run_with_other_settings_is_refused(tmp_path, write_run, arguments):
    write_run(tmp_path, CELL, seed=0, rounds=1, arguments=arguments)
    records, [reason] = read_runs(tmp_path)
    assert records == [] and "other settings than fedsikd/fedsikd_mnist_alpha0.1 " in reason and "\n" not in reason


@pytest.mark.parametrize("arguments", [["--rounds=5", "--data_dir=elsewhere"], ["--runtime=in_process"]])
def test_rounds_places_and_the_means_of_computing_are_no_other_settings(tmp_path, write_run, arguments):
    write_run(tmp_path, CELL, seed=0, rounds=1, arguments=arguments)
    assert len(read_runs(tmp_path)[0]) == 1


def test_a_run_on_other_data_than_most_is_left_out_and_named(tmp_path, write_run):
    rivals = ["fedavg_mnist_alpha0.1", "fl_hc_mnist_alpha0.1", CELL]
    for experiment, digest in zip(rivals, ("new", "new", "old"), strict=True):
        config = write_run(tmp_path, experiment, seed=0, rounds=1) / "config.json"
        config.write_text(json.dumps({**json.loads(config.read_text()), "data": {"digest": digest}}))
    write_run(tmp_path, CELL, seed=1, rounds=1)  # of an earlier version
    runs, left_out = collect_runs(tmp_path)
    assert sorted((run.experiment, run.flags["seed"]) for run in runs) == [(rivals[0], 0), (CELL, 1), (rivals[1], 0)]
    [reason] = left_out
    assert reason.startswith(f"{tmp_path / CELL / 'seed_0'}: other data than {tmp_path / rivals[0] / 'seed_0'}")


def test_broken_and_foreign_folders_are_named_with_the_reason(tmp_path, write_run):
    (write_run(tmp_path, CELL, seed=0, rounds=1) / "config.json").write_text("{")
    (write_run(tmp_path, CELL, seed=1, rounds=1) / "metrics.csv").write_text("")
    write_run(tmp_path, CELL, seed=2, rounds=1).rename(tmp_path / "my_run")
    named = (("seed_0", "config.json"), ("seed_1", "metrics.csv"), ("my_run", "not named after an experiment"))
    for reason, words in zip(read_runs(tmp_path)[1], named, strict=True):
        assert all(word in reason for word in words)


def test_a_run_is_of_the_experiment_after_which_the_folder_of_its_seeds_is_called(tmp_path, write_run, monkeypatch):
    settings = ours("a guess", algo="fedavg", rounds=1)
    mine = {"my_own_tuned": make_experiment("my_own_tuned", "Mine.", settings)}
    monkeypatch.setattr("launch.settings.experiments._list_all", lambda kind, folder: mine)
    write_run(tmp_path / "runs", "my_own_tuned", seed=0, rounds=1)
    [record], _ = read_runs(tmp_path / "runs")
    assert record.experiment == "my_own_tuned"
    assert find_experiment_of(tmp_path / "runs" / "my_own_tuned").name == "my_own_tuned"
    assert find_experiment_of(tmp_path / "runs" / "my_own") is None


def test_a_seed_counts_once_with_its_longest_run(tmp_path, write_run):
    short = write_run(tmp_path / "a", "fedsikd_mnist_alpha0.1", 0, rounds=2)
    long = write_run(tmp_path / "b", "fedsikd_mnist_alpha0.1", 0, rounds=5)
    chosen, left_out = choose_runs(read_runs(tmp_path)[0])
    assert [run.path for run in chosen] == [long]
    assert len(left_out) == 1
    assert left_out[0].startswith(str(short)) and left_out[0].endswith("as many rounds or more")


def test_a_shorter_run_with_other_results_is_told_from_a_repeated_one():
    def run(name, *accuracies):
        rounds = {number: {"test_accuracy": accuracy} for number, accuracy in enumerate(accuracies, 1)}
        return RunRecord(pathlib.Path(name), {"seed": 0}, CELL, rounds)

    chosen, left_out = choose_runs([run("short", 0.5, 0.7), run("long", 0.5, 0.6, 0.8)])
    assert [each.path.name for each in chosen] == ["long"]
    assert left_out[0].startswith("short") and left_out[0].endswith("and other accuracies in those that both have")
