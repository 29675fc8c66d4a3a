"""The results that README and docs/ quote are those of the generated reports in docs/results/."""

import csv
import itertools
import pathlib
import re
import shlex
from collections import Counter

import pytest

from launch.papers.amfl_p.measures import AXES
from launch.papers.amfl_p.tables import START_COLUMNS
from launch.papers.async_periodic.measures import CITY
from launch.papers.engine.judge import NOT_COMPARABLE, VERDICTS
from launch.papers.fedcd.measures import SIZES
from launch.runs.run_records import EXPERIMENTS
from launch.settings.algorithms import ALGORITHMS
from launch.sweep import parse_tasks

ROOT = pathlib.Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
REPLAY = RESULTS / "fedsikd_published_code.md"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MEASURED = re.compile(r"\d+\.\d+ ± \d+\.\d+")
INTERVAL = re.compile(r"[+-]?[\d.]+\s\[[+-]?[\d.]+,\s[+-]?[\d.]+\]")
WEIGHTS = ("equal weights", "fresher favoured", "older favoured")


def read_rows(name):
    with open(RESULTS / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def split_cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def read_table(page, first_cells):
    """The rows below the header that begins with these cells, of the one such table of a page in docs/."""
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    (start,) = [i for i, line in enumerate(lines) if split_cells(line)[: len(first_cells)] == first_cells]
    below = itertools.takewhile(lambda line: line.startswith("|"), lines[start + 2 :])
    return [split_cells(line) for line in below]


def show(row, prefix):
    """Mean and deviation of a row of fedsikd_tables.csv, accuracies in per cent; "" where there is none."""
    if not row[f"{prefix}_mean"]:
        return ""
    text = show_number(row, f"{prefix}_mean")
    many = int(row[f"{prefix}_seeds"]) > 1
    return f"{text} ± {show_number(row, f'{prefix}_deviation')}" if many else text


def show_number(row, column):
    return f"{find_factor(row) * float(row[column]):.2f}"


def find_factor(row):
    return 100 if row["metric"] == "test_accuracy" else 1


def find_fedsikd(dataset, alpha, algo, round_num, metric):
    """The row of a result; a printed one, if any, is the same in every table that has it."""
    wanted = (dataset, alpha, algo, round_num, metric)
    rows = [
        row
        for row in read_rows("fedsikd_tables.csv")
        if (row["dataset"], float(row["dirichlet_alpha"]), row["algo"], int(row["round"]), row["metric"]) == wanted
    ]
    return next((row for row in rows if row["printed"]), rows[0])


def check_fedsikd(quoted, places, metric="test_accuracy"):
    """Each algorithm has a row of what is printed, one of ours, and one of ours tuned where there is any."""
    expected = []
    for algo in ("fedsikd", "random_cluster", "fl_hc", "fedavg"):
        found = [find_fedsikd(dataset, alpha, algo, round_num, metric) for dataset, alpha, round_num in places]
        expected.append([ALGORITHMS[algo].title, *(show_number(row, "printed") for row in found)])
        by_source = [[show(row, prefix) for row in found] for prefix in ("ours", "authors", "tuned")]
        expected += [["", *values] for values in by_source if any(values)]
    assert [[row[0], *row[2:]] for row in quoted] == expected


def test_fedsikd_by_round():
    rows = read_table("results.md", ["algorithm", "", "round 1"])
    check_fedsikd(rows, [("mnist", 0.1, round_num) for round_num in range(1, 6)])


def test_fedsikd_loss_by_round():
    rows = read_table("results.md", ["algorithm, loss", "", "round 1"])
    check_fedsikd(rows, [("mnist", 0.1, round_num) for round_num in range(1, 6)], "test_loss")


def test_fedsikd_at_round_5():
    rows = read_table("results.md", ["algorithm", "", "MNIST 0.1"])
    cells = [(dataset, alpha) for dataset in ("mnist", "har") for alpha in (0.1, 0.5, 1.0, 2.0)]
    check_fedsikd(rows, [(*cell, 5) for cell in [*cells, ("har_windows", 0.1), ("har_windows", 0.5)]])


def test_fedsikd_verdicts():
    """The first table of the section; other papers may have one like it below."""
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8").split("## FedSiKD")[1].split("\n## ")[0]
    kinds = ["reproduced", "not reproduced", "undecided", "by construction", "not run"]
    assert f"| runs | {' | '.join(kinds)} |\n" in page
    claims = read_rows("fedsikd_claims.csv")
    for preset, label in (("printed", "ours"), ("authors", "ours, the authors' values"), ("tuned", "ours, tuned")):
        counts = Counter(claim[preset] for claim in claims)
        assert "| " + " | ".join([label, *(str(counts[kind]) for kind in kinds)]) + " |\n" in page


def read_async():
    return {(row["data"], row["scheduling"], row["weights"]): row for row in read_rows("async_results.csv")}


def test_asynchronous_combinations():
    results = read_async()
    rows = read_table("results.md", ["accuracy (%) after 10 T_max", "scheduling"])
    assert len(rows) == len({key[:2] for key in results if key[1] != "none"})
    for data, scheduling, *values in rows:
        at_equal_time = [results[data, scheduling, weights]["at equal time"] for weights in WEIGHTS]
        nothing = {"at equal time": "", "final": ""}
        fedavg = [results.get((data, scheduling, name), nothing) for name in ("FedAvg", "FedAvg with Eq. (8)")]
        assert values == [*at_equal_time, *(each[name] for each in fedavg for name in nothing)]


def test_asynchronous_algorithms():
    results = read_async()
    expected = []
    for data in ("IID", "non-IID"):
        for scheduling, weights in (("none", "FedAsync"), ("none", "FedBuff"), ("random", "fresher favoured")):
            name = weights if scheduling == "none" else f"periodic, {scheduling}, {weights}"
            found = results[data, scheduling, weights]
            expected.append([f"{data}, {name}", found["at equal time"], found["at equal uploads"]])
    assert read_table("results.md", ["accuracy (%)", "after 10 T_max"]) == expected


def test_the_sweeps_of_asynchronous_fl_leave_out_no_flagfile(monkeypatch):
    """Those that go on from the kept runs: each flagfile on one set of seeds, and none on those of the trials."""
    monkeypatch.chdir(ROOT)
    section = (ROOT / "docs" / "results.md").read_text(encoding="utf-8").split("\n## Asynchronous FL\n")[1]
    lines = [line for line in section.split("\n## ")[0].splitlines() if line.startswith("python -m launch.sweep ")]
    seeds = {}
    for line in lines:
        for task in parse_tasks(shlex.split(line)[3:]) if "--finished=docs/results/async.zip" in line else []:
            seeds.setdefault(task.flagfile.stem, []).append(task.config.seed)
    stems = {path.stem for path in (EXPERIMENTS / "async_periodic").glob("*.flags")} - {CITY}
    assert seeds == {stem: [*range(5 if "_iid" in stem else 20)] for stem in stems}


def test_amfl_p():
    printed, tuned_steps = {}, {}
    for row in read_rows("amfl_p_table_1.csv"):
        if row["source"] == "printed":
            printed[row["algorithm"]] = row
        elif row["source"] == "ours, tuned":
            tuned_steps[row["algorithm"]] = round(float(row["mean fine-tuning steps"].split(" ")[0]))
    by_level = {(row["algorithm"], row["source"]): row for row in read_rows("amfl_p_table_2.csv")}
    rows = read_table("results.md", ["accuracy (%)", "printed", "medium, paper's rates"])
    assert [row[0].split(":")[0] for row in rows] == [
        "AMFL-P",
        "Fine-Tuning",
        "FedAvg",
        "local training",
        "majority class",
        "pooled reference",
    ]
    for name, *values, steps in rows:
        if name.startswith(("pooled reference", "majority class")):
            source = "data" if name.startswith("majority class") else "pooled trees"
            tuned, expected = by_level[name.split(":")[0], source], ["", ""]
        else:
            tuned = by_level[name, "ours, tuned"]
            rates = by_level[name, "ours, paper's rates"]["medium"]
            expected = [printed[name]["accuracy"] if name in printed else "", rates]
            assert steps.split(" ")[0] == (str(tuned_steps[name]) if tuned_steps[name] else "none")
        assert values == [*expected, *(tuned[level] for level in ("low", "medium", "high"))]
    assert rows[0][-1].endswith(f"(printed: {float(printed['AMFL-P']['mean fine-tuning steps']):.0f})")


def test_amfl_p_without_flags():
    """The page leaves out the verdicts, which are in the report."""
    rows, pairs = read_rows("amfl_p_defaults.csv"), read_rows("amfl_p_defaults_pairs.csv")
    titles = (*AXES["default"].values(), "majority class")
    accuracies = [
        [row["data"], "yes" * (row["chosen on it"] == "yes"), *(row[title] for title in titles)] for row in rows
    ]
    assert read_table("results.md", ["data", "in the choice"]) == accuracies
    differences = [[*pair.values(), row[START_COLUMNS[0]]] for pair, row in zip(pairs, rows, strict=True)]
    assert read_table("results.md", ["data, points"]) == [
        [place, *(re.sub(r"(?<=]) .*", "", cell) for cell in cells)] for place, *cells in differences
    ]


def test_fedcd():
    rows = read_rows("fedcd_cpu_results.csv")
    results = {(row["archetypes"], row["variant"], row["algorithm"]): row for row in rows}
    rows = read_table("results.md", ["archetypes", "", "algorithm", "seeds"])
    assert len(rows) == len(results)
    for archetypes, variant, algorithm, seeds, rounds, *values in rows:
        found = results[archetypes, variant or "32 bits", algorithm]
        assert seeds == found["seeds"] and rounds == found["rounds"].split(", ")[-1]
        expected = [found[name] for name in ("final accuracy", "last", "change", "models left", "preferred")]
        assert values == [text.removesuffix(".00") if "±" not in text else text for text in expected]


def test_fedcd_verdicts():
    """The counts, and our further comparisons."""
    counted = {label: Counter(row[size] for row in read_rows("fedcd_claims.csv")) for size, label in SIZES.items()}
    rows = read_table("results.md", ["FedCD: runs", "reproduced"])
    verdicts = [verdict for verdict in VERDICTS if verdict != NOT_COMPARABLE]
    assert rows == [[label, *(str(counts[verdict]) for verdict in verdicts)] for label, counts in counted.items()]
    further = [list(row.values()) for row in read_rows("fedcd_further.csv")]
    assert read_table("results.md", ["runs", "FedCD: comparison"]) == further


def test_fedcd_causes():
    found = {row["what differs"]: row for row in read_rows("fedcd_causes.csv")}
    names = ("last", "change", "last change", "converges at round", "models left")
    rows = read_table("results.md", ["what differs", "last ten"])
    assert len(rows) == len(found) - 1  # the page leaves out the row beside another cause
    for cause, *values in rows:
        row = found[cause.removesuffix(", three seeds")]
        assert values == [row[name] for name in names], cause


def test_fedcd_trained_as_in_the_authors_code():
    found = {(row["variant"], row["algorithm"]): row for row in read_rows("fedcd_authors_small_results.csv")}
    names = ("final accuracy", "last", "change", "last change", "converges at round", "models left", "preferred")
    rows = read_table("results.md", ["", "algorithm", "at the end"])
    assert len(rows) == 6
    for variant, algorithm, *values in rows:
        row = found[variant, algorithm]
        assert values == [row[name] for name in (*names, "MB a round")], (variant, algorithm)
    rows = read_table("results.md", ["", "at the end", "last ten"])
    assert len(rows) == 6
    for variant, *values in rows:
        row = found[variant, "FedCD"]
        assert values == [row[name] for name in (*names, "score deviation")], variant


def test_fedcd_of_medium_size():
    found = [row for row in read_rows("fedcd_authors_results.csv") if row["seeds"] != "not run"]
    names = ("archetypes", "variant", "algorithm", "final accuracy", "last", "change", "last change")
    names += ("change, rounds 51 to 60", "converges at round", "models left", "preferred")
    names += ("left at the end", "preferred at the end", "MB a round")
    assert read_table("results.md", ["archetypes", "medium"]) == [[row[name] for name in names] for row in found]


@pytest.mark.parametrize("header", [["experiment", "format"], ["experiment", "seeds", "rounds"]])
def test_quantization(header):
    generated = (RESULTS / "quantization.md").read_text(encoding="utf-8")
    rows = read_table("phones.md", header)
    assert rows
    for row in rows:
        assert "| " + " | ".join(row) + " |\n" in generated


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_mean_and_deviation_is_in_a_report(page):
    generated = {found for path in RESULTS.glob("*.md") for found in MEASURED.findall(path.read_text(encoding="utf-8"))}
    assert set(MEASURED.findall(page.read_text(encoding="utf-8"))) <= generated


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_difference_and_interval_is_in_a_report(page):
    quoted = {" ".join(found.split()) for found in INTERVAL.findall(page.read_text(encoding="utf-8"))}
    generated = {found for path in RESULTS.glob("*.md") for found in INTERVAL.findall(path.read_text(encoding="utf-8"))}
    assert quoted <= generated


def test_claims_of_asynchronous_fl_have_the_verdicts_of_its_report():
    """In the order of the report; what the first runs gave is counted in the text above."""
    section = (ROOT / "docs" / "results.md").read_text(encoding="utf-8").split("\n## Asynchronous FL\n")[1]
    rows = read_table("results.md", ["claim", "data", "first 155 runs"])
    claims = read_rows("async_claims.csv")
    assert [row[3] for row in rows] == [claim["printed"] for claim in claims]
    assert all(row[4] in claim["printed_numbers"] for row, claim in zip(rows, claims, strict=True))
    before = Counter(row[2] for row in rows)
    assert before == {"reproduced": 5, "undecided": 7, "by construction": 1, "not run": 4}
    said = "5 were reproduced, none was not, 7 were undecided, 1 held by construction and 4 were not run"
    assert said in " ".join(section.split())


@pytest.mark.parametrize(("paper", "heading"), [("async", "## Asynchronous FL"), ("amfl_p", "## AMFL-P")])
def test_verdicts_are_counted_as_in_the_report(paper, heading):
    generated = (RESULTS / f"{paper}.md").read_text(encoding="utf-8")
    section = (ROOT / "docs" / "results.md").read_text(encoding="utf-8").split(f"\n{heading}\n")[1].split("\n## ")[0]
    counts = section.split("| runs | reproduced |")[1].split("|---|\n")[1].split("\n\n")[0]
    assert f"| --- |\n{counts}\n\n" in generated


def test_the_replay_of_the_published_code_is_quoted_as_its_page_has_it():
    page, said = (" ".join(path.read_text(encoding="utf-8").split()) for path in (REPLAY, ROOT / "docs" / "results.md"))
    outside, expected = re.search(r"Of (72 comparisons \d+ lie outside); ([\d.]+) would be expected", page).groups()
    assert f"Of {outside} of the splits; {round(float(expected))} would by chance." in said
    low, high = re.search(r"in 8 of 8 places, by ([\d.]+) to ([\d.]+) points", page).groups()
    assert f"the printed levels lie {low} to {high} points below all three splits of FedAvg of all clients" in said
    inside = Counter(
        (name == "FedAvg", data) for name, data in re.findall(r"\| (\w+) \| (\w+) \| [\d.]+ \| 0 of 3", page)
    )
    assert inside[True, "MNIST"] + inside[True, "HAR"] == 5 and inside[False, "HAR"] == 7
    assert "Five of eight printed rows of FedAvg lie within" in said and "on HAR seven of eight of FedSiKD" in said
    assert "on MNIST, in six of eight rows" in said
    assert "4 of 8 printed rows and in 6 of 40 splits. In 6 of these rows the printed change lies below" in page


def test_results_are_quoted():
    """Or the test above would hold of pages that say nothing."""
    assert len(MEASURED.findall((ROOT / "docs" / "results.md").read_text(encoding="utf-8"))) > 100
