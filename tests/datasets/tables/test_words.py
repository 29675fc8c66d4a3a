"""Words of a table that may be values: yes and no, None, -999; and one thing that is spelled in several ways."""

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.formats.csv import open_csv
from datasets.formats.leaf import open_leaf
from datasets.formats.parquet import open_parquet
from datasets.tables.cells import parse_text, read_missing_words


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def open_column(tmp_path, name, values, **options):
    """A table of this column and another one, and its source."""
    path = tmp_path / "mine.csv"
    head = f"{name},b" if name == "label" else f"{name},b,label"
    rows = [f'"{value}",{n * 7 % 5}' + ("" if name == "label" else f",{n % 2}") for n, value in enumerate(values)]
    path.write_text("\n".join([head, *rows]) + "\n")
    return open_csv(str(path), DatasetOptions(**options))


def read_labels(source):
    return source.read(0, "train")[1].tolist()


@pytest.mark.parametrize(
    ("values", "names", "labels"),
    [
        (["Yes", "No", "No"], ("No", "Yes"), [1, 0, 0]),
        (["TRUE", "FALSE"], ("FALSE", "TRUE"), [1, 0]),
        (["true", "false"], ("false", "true"), [1, 0]),
        (["yes", "maybe", "no"], ("maybe", "no", "yes"), [2, 0, 1]),
        (["T", "F", "F"], ("F", "T"), [1, 0, 0]),
        (["1", "0"], ("0", "1"), [1, 0]),
        (["yes", "no", "yes", "1", "0"], ("no", "yes"), [1, 0, 1, 1, 0]),
        (["Yes", "no", "YES", "Yes"], ("no", "Yes"), [1, 0, 1, 1]),
    ],
)
def test_classes_are_called_as_they_are_written(tmp_path, values, names, labels):
    source = open_column(tmp_path, "label", values)
    assert source.format.class_names == names and read_labels(source) == labels
    # Runs of earlier versions are read so.
    assert read_labels(open_column(tmp_path, "label", values, truth_names="false_true")) == labels


def test_words_for_yes_that_are_joined_are_told(tmp_path):
    (_, yes) = open_column(tmp_path, "label", ["yes", "no", "yes", "1", "0"]).notes
    assert yes == "the labels in label are written in several ways: 'yes' (2) = '1' (1); all are taken as 'yes'"
    (among,) = open_column(tmp_path, "label", ["0", "1", "2", "yes"]).notes
    assert "yes or no, true or false, stands among them in 1 row" in among
    (feature,) = open_column(tmp_path, "age", ["7", "9", "no", "8"]).notes
    assert feature.startswith("among the numbers in age stands yes or no, true or false, in 1 row")


def test_truth_values_of_parquet_stay(tmp_path):
    path = str(tmp_path / "mine.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"a": [1.0, 2.0], "label": [True, False]}), path)
    assert open_parquet(path, DatasetOptions()).format.class_names == ("false", "true")


def test_a_class_that_is_a_missing_word_is_told(tmp_path):
    values = ["None", "mild", "None", "severe"]
    with pytest.raises(DatasetError) as caught:
        open_column(tmp_path, "label", values)
    fix = (
        "in column label 'None' (2 rows) is taken as missing; if it is a value, give --missing_words='na,n/a,nan,null,?"
    )
    assert fix in str(caught.value) and ",none" not in str(caught.value)
    dropped = open_column(tmp_path, "label", values, missing="drop")
    assert dropped.format.class_names == ("mild", "severe") and fix in dropped.notes[0]
    source = open_column(tmp_path, "label", values, missing_words="na,n/a")
    assert source.format.class_names == ("None", "mild", "severe") and read_labels(source) == [0, 1, 0, 2]
    assert not source.notes


def test_a_category_that_is_filled_in_is_counted_and_told(tmp_path):
    values = ["None", "attached", "", "attached", "NA"]
    source = open_column(tmp_path, "garage", values, missing="median")
    assert source.filled == {"garage": 3} and source.pool().filled == {"garage": 3}
    assert source.notes[0].startswith("in column garage 'None' (1 row), 'NA' (1 row) is taken as missing; if it is")
    kept = open_column(tmp_path, "garage", ["NA", "DE", "NO"], missing_words="")
    assert kept.format.feature_names == ("garage=DE", "garage=NA", "garage=NO", "b") and not kept.filled


def test_a_word_that_is_a_value_here_and_missing_among_numbers(tmp_path):
    path = tmp_path / "houses.csv"
    path.write_text("front,alley,label\n60,NA,0\nNA,Pave,1\n80,Grvl,0\n70,NA,1\n")
    (said,) = open_csv(str(path), DatasetOptions(missing="median")).notes
    # Without the word, --missing_words would end in an error: front would have a text among numbers.
    assert said == (
        "in column alley 'NA' (2 rows) is taken as missing; if it is a value, write it there in another way, since "
        "front has it among numbers"
    )


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["-999", "3", "-999.0", "5"], "-999"),
        (["-", "3", " - ", "5"], "na,-"),
        ([".", "3", "", "5"], "."),
        (["N/A ", "3", "\u00a0n/a", "5"], "n/a"),
        (["Unknown", "3", "UNKNOWN", "5"], "unknown"),
    ],
)
def test_words_that_were_given_are_missing(tmp_path, values, words):
    source = open_column(tmp_path, "age", values, missing_words=words, missing="median")
    # The median of 3 and 5.
    assert source.read(0, "train")[0][:, 0, 0].tolist() == [4, 3, 4, 5] and source.filled == {"age": 2}
    cells = parse_text(values, missing_words=read_missing_words(words))
    assert cells.is_missing.tolist() == [True, False, True, False]
    assert sum(cells.missing_words.values()) == sum(bool(value.strip()) for value in values[::2])


def test_words_of_parquet_are_values_unless_given(tmp_path):
    path = str(tmp_path / "mine.parquet")
    content = {"garage": ["NA", "x", "x"], "age": [-999.0, 3.0, 5.0], "label": [0, 1, 0]}
    pyarrow.parquet.write_table(pyarrow.table(content), path)
    source = open_parquet(path, DatasetOptions())
    assert source.format.feature_names == ("garage=NA", "garage=x", "age") and not source.filled
    given = open_parquet(path, DatasetOptions(missing_words="NA,-999", missing="median"))
    assert given.format.feature_names == ("garage=x", "age") and given.filled == {"garage": 1, "age": 1}
    assert given.read(0, "train")[0][0, :, 0].tolist() == [1, 4]


def test_numbers_that_may_stand_for_nothing_are_told(tmp_path):
    (said,) = open_column(tmp_path, "age", ["-999", "3", "4", "-999"]).notes
    assert said.startswith(
        "age is -999 in 2 rows, and never else below 0; if it stands for a missing value, give --missi"
    )
    assert said.endswith(",-999'")
    assert not open_column(tmp_path, "heat", ["-9", "-3", "4", "2"]).notes
    (cold,) = open_column(tmp_path, "cold", ["-999", "-3.5", "4", "-999"]).notes
    assert cold.startswith("cold is -999 in 2 rows, and never else below -3.5; if it stands for a missing value")
    assert not open_column(tmp_path, "cold", ["-99", "-30", "4", "-99"]).notes
    (high,) = open_column(tmp_path, "days", ["999", "3", "27", "999"]).notes
    assert high.startswith("days is 999 in 2 rows, and never else above 27; if it stands for a missing value")
    assert not open_column(tmp_path, "heat", ["999", "100", "4", "999"]).notes
    (among,) = open_column(tmp_path, "age", ["unknown", "0", "1", "2", "1"]).notes
    assert "numbers of age are categories, since 'unknown' stands among them in 1 row" in among


def test_one_word_among_decimals_of_a_text_column_is_named(tmp_path):
    path = tmp_path / "mine.parquet"
    values = ["0.5", "1.5", "2.25", "n.a.", "3.5"]
    pyarrow.parquet.write_table(pyarrow.table({"a": values, "y": [0, 1, 0, 1, 1]}), path)
    (note,) = open_parquet(str(path), DatasetOptions()).notes
    assert "the numbers of a are categories, since 'n.a.' stands among them in 1 row" in note
    options = DatasetOptions(missing_words="n.a.", missing="median")  # what the note advises
    x, _ = open_parquet(str(path), options).read(0, "train")
    np.testing.assert_array_equal(x.ravel(), np.float32([0.5, 1.5, 2.25, 1.875, 3.5]))


def test_dates_that_are_numbers_are_no_measurements(tmp_path):
    (note,) = open_column(tmp_path, "born", ["31122024", "1012025", "15012025"]).notes
    assert "the numbers of born are dates, such as 31122024, whose differences are no days" in note
    assert not open_column(tmp_path, "pay", ["31122024", "1012025", "15992025"]).notes


def test_classes_are_joined_on_request(tmp_path):
    values = ["cat", "Cat", "CAT", "cat", "dog.", "dog", "dog"]
    source = open_column(tmp_path, "label", values)
    assert source.format.class_names == ("CAT", "Cat", "cat", "dog", "dog.")
    joined = open_column(tmp_path, "label", values, join_spellings=True)
    assert joined.format.class_names == ("cat", "dog") and read_labels(joined) == [0, 0, 0, 0, 1, 1, 1]
    assert "spellings of label joined: 'CAT' as 'cat', 'Cat' as 'cat', 'dog.' as 'dog'" in joined.reading
    assert joined.digest != source.digest
    yes = open_column(tmp_path, "label", ["Y", "N", "yes", "no", "N"], join_spellings=True)
    assert yes.format.class_names == ("N", "Y") and read_labels(yes) == [1, 0, 1, 0, 0]


def test_categories_are_joined_on_request(tmp_path):
    values = ["red", "Red", "red", "blue", ""]
    source = open_column(tmp_path, "kind", values, missing="median")
    assert source.notes[0].startswith(
        "categories of kind that are spelled in several ways, with their rows: 'red' (2) = "
    )
    joined = open_column(tmp_path, "kind", values, join_spellings=True, missing="median")
    assert joined.format.feature_names == ("kind=blue", "kind=red", "b") and not joined.notes
    assert joined.read(0, "train")[0][:, :2, 0].tolist() == [[0, 1], [0, 1], [0, 1], [1, 0], [0, 1]]


def test_more_spellings_than_categories_may_be_joined(tmp_path):
    values = [f"{word}{n}" for word in ("site ", "Site_", "SITE-") for n in range(60)]
    with pytest.raises(DatasetError, match="more than 100 different texts"):
        open_column(tmp_path, "where", values)
    assert len(open_column(tmp_path, "where", values, join_spellings=True).format.feature_names) == 61


def test_clients_are_joined_on_request_and_stay_as_they_are_written(tmp_path):
    values = ["007", "7", "007", "1.0", "1", "1.0", "b"]
    source = open_column(tmp_path, "client", values)
    assert set(source.client_names) == {"007", "7", "1.0", "1", "b"}
    joined = open_column(tmp_path, "client", values, join_spellings=True)
    assert joined.client_names == ("007", "1.0", "b") and joined.num_examples["train"].tolist() == [3, 3, 1]
    assert "spellings of clients joined: '1' as '1.0', '7' as '007'" in joined.reading


def test_what_other_formats_do_not_do_is_refused(tmp_path):
    with pytest.raises(DatasetError, match="join_spellings=True: does nothing with LEAF's JSON"):
        open_leaf(str(tmp_path), DatasetOptions(join_spellings=True))


def test_a_form_of_dates_needs_a_column_of_dates(tmp_path):
    with pytest.raises(DatasetError, match="date_form=dmy: no column orders the rows; name it by --time_column"):
        open_column(tmp_path, "age", ["1", "2"], date_form="dmy")


def test_a_table_of_an_earlier_run_has_its_digest(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("date,b,label\n31122024,0,Yes\n01012025,2,No\n")
    source = open_csv(str(path), DatasetOptions(truth_names="false_true", date_form="number"))
    # Computed by the version before there were options for words and dates, whose clients' files are those of the run.
    assert source.digest == "b1dabebf280296ba1fea55d009663f596628f5a6a9e073d9e55d5a310f096197"
    assert source.format.class_names == ("false", "true") and source.read(0, "train")[0][:, 0, 0].tolist() == [2, 0]
    assert open_csv(str(path), DatasetOptions()).format.class_names == ("No", "Yes")
