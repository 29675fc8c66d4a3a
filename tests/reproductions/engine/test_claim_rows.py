"""Rows of `claims.toml` become claims; a wrong one is a line that names file and row."""

import pytest

from reproductions.engine.claim_rows import ClaimError, load_claims

SHARED = """
[at]
dataset = "mnist"
setting = "0.1"
round = 5
metric = "test_accuracy"

[names.algo]
ours = "Ours"
other = "The other"
best = "The best"

[names.dataset]
mnist = "MNIST"
har = "HAR"

[axes]
rivals = ["other", "best"]

[words]
early = "rounds 1 to 5"
rule = "in $early"

[texts]
1 = "{0.algo} {0}"
2 = "{0.algo} {0}, {1.algo} {1} ({0.dataset}, alpha {0.setting}, round {0.round})"
then = "{0.algo} {0}, then {1} (rounds {0.round} and {1.round})"
"""


@pytest.fixture
def load(tmp_path):
    """(rows) -> claims by family."""

    def read(rows):
        path = tmp_path / "claims.toml"
        path.write_text(SHARED + rows, encoding="utf-8")
        return load_claims(path)

    return read


def test_a_row_is_a_claim(load):
    families = load("""
[[claim]]
section = "V"
words = "we lead"
rule = "most accurate $rule"
compare = "ours > $rival"
all = { round = [1, 5], rival = "rivals" }

[[further]]
words = "once more"
compare = "ours(round=1) < ours"
text = "then"
""")
    (claim,), (further,) = families["claim"], families["further"]
    assert (claim.section, claim.text, claim.rule) == ("V", "we lead", "most accurate in rounds 1 to 5")
    assert not (claim.by_construction or claim.not_comparable)
    assert [condition.text for condition in claim.conditions] == [
        f"Ours {{0}}, {name} {{1}} (MNIST, alpha 0.1, round {number})"
        for number in (1, 5)
        for name in ("The other", "The best")
    ]
    assert [condition.cells[1][2:4] for condition in claim.conditions] == [
        ("other", 1), ("best", 1), ("other", 5), ("best", 5)
    ]  # fmt: skip
    assert further.conditions[0].text == "Ours {0}, then {1} (rounds 1 and 5)"
    assert further.section == further.rule == ""


def test_each_combination_of_axes_makes_a_claim(load):
    claims = load("""
[[claim]]
words = "$dataset, alpha $setting: $rival"
compare = "ours > $rival"
each = { setting = ["0.5", "1"], dataset = ["mnist", "har"], rival = "rivals" }
""")["claim"]
    assert [claim.text for claim in claims][:3] == ["MNIST, alpha 0.5: The other", "MNIST, alpha 0.5: The best",
                                                    "HAR, alpha 0.5: The other"]  # fmt: skip
    assert len(claims) == 8 and claims[-1].conditions[0].cells[0][:3] == ("har", "1", "ours")


def test_cases_go_together(load):
    claims = load("""
[[claim]]
words = "$dataset by $lead"
compare = "ours > other + 0.$lead"
each = [{ dataset = "mnist", lead = 18 }, { dataset = "har", lead = 25 }]
""")["claim"]
    assert [(claim.text, claim.conditions[0].above) for claim in claims] == [("MNIST by 18", 0.18), ("HAR by 25", 0.25)]


def test_a_comparison_may_have_its_own_cells_axes_and_text(load):
    (claim,) = load("""
[[claim]]
words = "$dataset"
at = { dataset = "har", setting = 2 }
compare = [
  "ours.loss < 3",
  { that = "ours > $rival", all = { rival = "rivals" }, text = "{1.algo} {1} of $rival" },
  { that = "near(ours, 1, 0.1)", at = { round = 1, metric = "loss" } },
]
""")["claim"]
    assert claim.text == "HAR"
    assert [condition.text for condition in claim.conditions] == [
        "Ours {0}", "The other {1} of The other", "The best {1} of The best", "Ours {0}"
    ]  # fmt: skip
    assert claim.conditions[0].cells[0] == ("har", "2", "ours", 5, "loss")
    assert claim.conditions[3].cells[0] == ("har", "2", "ours", 1, "loss") and claim.conditions[3].is_near


SEEDS = """
[seeds]
har = "5-7,9"

[[claim]]
words = "$dataset"
compare = "ours > other"
each = { dataset = ["mnist", "har"] }

[[claim]]
words = "both"
compare = "ours > other(dataset=har)"

[[claim]]
words = "the first ones"
compare = "ours > other"
at = { dataset = "har" }
seeds = "0,1"
"""


def test_the_seeds_that_decide_are_those_of_the_data_unless_the_row_has_its_own(load):
    conditions = [claim.conditions[0] for claim in load(SEEDS)["claim"]]
    assert [sorted(each.seeds) for each in conditions] == [[], [5, 6, 7, 9], [5, 6, 7, 9], [0, 1]]
    by_cell = {cell: dict.fromkeys((0, 5, 9, 11), 1.0) for each in conditions for cell in each.cells}
    assert [list(each.compute_by_seed(by_cell.get)) for each in conditions] == [[0, 5, 9, 11], [5, 9], [5, 9], [0]]


@pytest.mark.parametrize(
    ("seeds", "words"),
    [
        ('minst = "5-7"', "'minst' is no dataset; expected one of mnist, har"),
        ('mnist = "5to7"', "--seeds=5to7: expected whole numbers"),
        ('mnist = "5-7"\nhar = "0-4"', "data with other seeds each, 0-4 and 5-7; expected seeds in the row"),
    ],
)
def test_wrong_seeds_are_a_line(load, seeds, words):
    with pytest.raises(ClaimError) as error:
        load(f'[seeds]\n{seeds}\n[[claim]]\nwords = "w"\ncompare = "ours > other(dataset=har)"\n')
    assert words in str(error.value) and "\n" not in str(error.value)


def test_what_is_not_compared_says_why(load):
    follows, cannot = load("""
[[claim]]
words = "it is less"
by_construction = "less is asked for"
constructed_in = ["printed"]

[[claim]]
words = "it converges"
not_comparable = "a limit"
not_comparable_in = ["tuned"]
""")["claim"]
    assert follows.follows_in("printed") and not follows.follows_in("tuned")
    assert (cannot.not_comparable, cannot.conditions) == ("a limit", ())
    assert cannot.not_comparable_in == {"tuned"}


WRONG = {
    'words = "w"\ncompare = "outs > other"': "'outs' is no algo; expected one of ours, other, best",
    'words = "w"\ncompare = "ours > other"\nat = { dataset = "minst" }': "'minst' is no dataset; expected one of mnist",
    'words = "w"\ncompare = "ours => other"': "cannot be read; expected cells, numbers",
    'words = "w"\ncompare = "ours > $rivals"': "no axis or word 'rivals'; expected one of",
    'words = "w"\ncompare = "ours > $a"\nall = { a = "rival" }': "axis a: no list 'rival' in [axes]",
    'words = "w"\ncompare = "ours + other > best"': "no text for a comparison of 3 results",
    'words = "w"\ncompare = "ours > other"\ntext = "{2}"': "{2} of 2 results",
    'words = "w"\ncompare = "ours > other"\ntext = "{0.colour}"': "{0.colour} of 2 results",
    'words = "w"\ncompares = "ours > other"': "unknown key 'compares'; expected section, words",
    'words = "w"\ncompare = { holds = "ours > other" }': "unknown key 'holds'; expected that, text",
    'words = "w"\ncompare = { text = "{0}" }': "that is missing",
    'words = "w"': "nothing is compared; expected compare, by_construction or not_comparable",
    'section = "V"\ncompare = "ours > other"': "words is missing",
}


@pytest.mark.parametrize("row", WRONG)
def test_a_wrong_row_is_a_line_that_names_it(load, tmp_path, row):
    with pytest.raises(ClaimError) as error:
        load(f'[[claim]]\nwords = "a right one"\ncompare = "ours > other"\n[[claim]]\n{row}\n')
    line = str(error.value)
    assert line.startswith(f"{tmp_path / 'claims.toml'}: claim 2 (w") and WRONG[row] in line and "\n" not in line


@pytest.mark.parametrize(
    ("rows", "words"), [("[claim]\nwords = 'w'\n", "[claim]: expected [[claim]]"), ("[[claim]\n", "not TOML")]
)
def test_a_wrong_file_is_a_line(load, rows, words):
    with pytest.raises(ClaimError) as error:
        load(rows)
    assert words in str(error.value) and "\n" not in str(error.value)
