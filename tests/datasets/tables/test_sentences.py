"""Texts become tokens: words, the vocabulary, lengths, and what is refused."""

import pytest
from made_reviews import format_reviews, make_reviews
from refusals import assert_refused
from small_tables import assert_facts, open_columns, open_text

from datasets.example_format import read_example_format
from datasets.tables.sentences import is_sentences, split_words

# "good" stands four times, "bad" and "day" twice each, "not" and "zoe" with one client alone.
GOOD = (
    "user,label,review\n"
    'u,x,"Good, GOOD day."\nu,x,good not zoe zoe zoe\nu,y,bad\n'
    "v,x,good day\nv,y,BAD!\nv,y,unheard of\n"
)
WORDS = ("<pad>", "<oov>", "good", "bad", "day")


def open_reviews(folder, text=GOOD, **options):
    return open_text(folder, text, **{"text_column": "review", **options})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't!  It's 3.5 stars_x", "don t it s 3 5 stars x"),
        ("Caf\u00e9_cafe\u0301", "caf\u00e9 caf\u00e9"),  # composed, and as a letter with a mark
        ("\u0939\u093f\u0928\u094d\u0926\u0940!", "\u0939\u093f\u0928\u094d\u0926\u0940"),  # one word
        ("\u2764\ufe0f \u0301a", "a"),  # a mark begins no word
        ("\u0130st \u039f\u0394\u039f\u03a3", "i\u0307st \u03bf\u03b4\u03bf\u03c2"),
        ("...", ""),
    ],
)
def test_words_are_runs_of_letters_digits_and_marks(text, words):
    assert split_words(text) == words.split()


def test_rows_become_tokens_of_words_that_two_clients_have(tmp_path):
    """By how often they stand there, then by the alphabet; 0 fills up, 1 is any other word."""
    source = open_reviews(tmp_path, sequence_length=3)
    assert source.format.text == ("review", WORDS) and source.format.takes_tokens
    x = {"u": [[2, 2, 4], [2, 1, 1], [3, 0, 0]], "v": [[2, 4, 0], [3, 0, 0], [1, 1, 0]]}
    said = ("review as words: a vocabulary of 3, each of at least 2 clients", "3 tokens an example")
    noted = ("1 of 6 texts in review have more than 3 words and are cut; --sequence_length gives",)
    assert_facts(source, said, noted, x=x, classes=("x", "y"), shape=(3,), dtype="int32")
    assert read_example_format(source.format.to_json()) == source.format
    fewer = open_reviews(tmp_path, vocabulary_size=1)
    assert fewer.format.text.vocabulary == WORDS[:3] and fewer.digest != source.digest


def test_without_clients_all_words_count_and_the_length_is_that_of_most_texts(tmp_path):
    source = open_reviews(tmp_path, client_column="none")
    assert source.format.text.vocabulary[2:] == ("good", "zoe", "bad", "day", "not", "of", "unheard")
    # Of the lengths 1, 1, 2, 2, 3, 5 the 95th percentile lies at 4.75 of 5 steps: 3 + 0.75 * 2 = 4.5.
    assert source.format.input_shape == (5,) and source.notes == ("column user is not used",)


def test_words_of_test_rows_are_not_learned(tmp_path):
    rows = GOOD.replace("label", "label,split").replace(",x,", ",x,train,").replace(",y,", ",y,test,")
    source = open_reviews(tmp_path, rows)
    assert source.format.text.vocabulary == ("<pad>", "<oov>", "good", "day")
    assert source.num_examples["test"].sum() == 3


def test_all_options_of_tables_go_with_a_text(tmp_path):
    """Weights, times, spellings of clients, rows that lack a text; and parquet."""
    rows = [("U", 3, "x", 1.0, "good day"), ("u", 2, "y", 2.0, "bad day"), ("v", 1, "x", 0.5, None)]
    rows += [("v", 0, "x", 4.0, "good zoe"), ("v", 5, "y", 3.0, "bad...")]
    columns = dict(zip(("user", "time", "label", "w", "review"), map(list, zip(*rows, strict=True)), strict=True))
    options = {"text_column": "Review", "weight_column": "w", "missing": "drop", "join_spellings": True}
    source = open_columns(tmp_path, columns, **options)
    # Both spellings are one client, so that only words that v has too are known: bad and good.
    assert source.format.text.vocabulary == ("<pad>", "<oov>", "bad", "good")
    assert_facts(source, x={"U": [[2, 1], [3, 1]], "v": [[3, 1], [2, 0]]}, dropped=1, is_ordered=True)
    assert source.weights.read(0, "train").tolist() == [2.0, 1.0]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (GOOD, {"text_column": "reviews"}, "text_column=reviews: no such column, .* did you mean review"),
        (GOOD, {"label_column": "review"}, "'review' stands in --text_column and in --label_column"),
        (GOOD, {"feature_columns": "user"}, "text_column=review: its words alone are predicted from, expected no"),
        (GOOD, {"window": 2}, "window=2 is for columns of numbers, review holds sentences"),
        (GOOD, {"layout": "image"}, "layout=image: does nothing with --text_column"),
        (GOOD, {"text_column": "", "vocabulary_size": 9}, "vocabulary_size=9: does nothing with a table"),
        (GOOD.replace("bad", "..."), {}, "line 4: column 'review' has no word here, and in 1 row of 6; .*=drop leaves"),
        (GOOD.replace("bad", ""), {"missing": "median"}, "line 4: column 'review' has no word here, and in 1 row"),
        ("user,label,review\nu,x,!\nv,y,?!\n", {"missing": "drop"}, "no row has a word, expected sentences"),
        ("user,label,review\nu,x,one\nv,y,two\n", {}, "no word stands in the train texts of 2 clients"),
    ],
)  # fmt: skip
def test_what_is_no_text_is_refused_in_a_line(tmp_path, text, options, message):
    assert_refused(message, open_reviews, tmp_path, text, **options)


@pytest.mark.parametrize("number", [12, 300])
def test_sentences_without_the_flag_are_refused_with_it(tmp_path, number):
    message = "line 2: column 'review' holds sentences .*; give --text_column=review to train on their words, or leave"
    assert_refused(message, open_text, tmp_path, format_reviews(make_reviews(number)))


def test_of_a_long_text_an_error_has_the_beginning(tmp_path):
    text = "".join(f'a,{row % 2},"Number {row} was {"very " * 12}good"\n' for row in range(40))
    message = r"holds sentences \('Number 0 was (very ){9}ve\.\.\.'\), which"  # 13 + 45 + 2 characters
    assert_refused(message, open_text, tmp_path, f"client,label,review\n{text}")


@pytest.mark.parametrize(("name", "kind"), [("list", "block"), ("number", "number")])
def test_arrays_and_numbers_are_no_texts(tmp_path, name, kind):
    columns = {"label": [0, 1], "list": [[1], [2]], "number": [1, 2]}
    assert_refused(f"text_column={name}: .* of the kind {kind}", open_columns, tmp_path, columns, text_column=name)


@pytest.mark.parametrize(
    ("values", "are_sentences"),
    [
        ([review for _, _, review in make_reviews(30)], True),
        (["I like it very much", "it is of no use at all"], True),
        (["not at all", "very much so", "yes"] * 9, False),  # short
        (["I agree with that in full", "I do not agree with that"] * 9, False),  # the answers of a form
        (["12", "13"], False),
        ([], False),
    ],
)
def test_sentences_are_told_from_categories(values, are_sentences):
    assert is_sentences(values) == are_sentences
