"""What `fit` makes of tables and arrays: nothing that pandas knows is lost without a word."""

import dataclasses

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from small_formats import make_format

from datasets.dataset import DatasetOptions
from datasets.errors import DatasetError
from datasets.example_format import ExampleFormat, TextFormat
from datasets.formats.parquet import FORMAT as PARQUET
from datasets.options import quote_name
from launch.settings.errors import FlagError
from launch.training.given_data import check_inputs, check_values, place_data, read_examples
from models.model_spec import ModelSpec


def keep(frame, **flags):
    """The table that is stored of `frame`, read back by pyarrow."""
    _, contents = place_data(frame, flags)
    return pyarrow.parquet.read_table(pyarrow.BufferReader(*contents.values()))


ROWS = pd.DataFrame({"a": [0.5, 1.5, 2.5], "label": ["x", "y", "x"]})
DAYS = pd.to_datetime(["2024-01-03", "2024-01-01", "2024-01-02"])


@pytest.mark.parametrize(
    ("index", "flags", "added"),
    [
        (pd.RangeIndex(3), {}, {}),
        # The rows in another order.
        (pd.RangeIndex(2, -1, -1), {}, {}),
        # What a filter and a sort have left of a larger table.
        (pd.Index([41, 7, 12]), {}, {}),
        (pd.Index(["u2", "u1", "u2"], name="user"), {}, {"user": ["u2", "u1", "u2"]}),
        (pd.Index([7, 7, 9], name="who"), {"client_column": "who"}, {"who": [7, 7, 9]}),
        (pd.Index([7, 7, 9], name="dose"), {"weight_column": "Dose"}, {"dose": [7, 7, 9]}),
        (pd.Index([7, 7, 9], name="dose"), {"feature_columns": ["a", "dose"]}, {"dose": [7, 7, 9]}),
        (pd.Index(DAYS), {}, {"time": list(DAYS)}),
        (pd.PeriodIndex(DAYS, freq="D", name="date"), {}, {"date": list(DAYS)}),
        (
            pd.MultiIndex.from_arrays([["b", "a", "b"], DAYS], names=["client", "date"]),
            {},
            {"client": ["b", "a", "b"], "date": list(DAYS)},
        ),
        # pd.concat of a table a client, with keys and names
        (
            pd.MultiIndex.from_arrays([["b", "a", "b"], [0, 0, 1]], names=["client", None]),
            {},
            {"client": ["b", "a", "b"]},
        ),
        (pd.Index(["x", "y", "x"], name="label"), {}, {}),  # set_index(..., drop=False)
    ],
)
def test_an_index_becomes_columns_or_only_counts_the_rows(index, flags, added):
    stored = keep(ROWS.set_axis(index), **flags).to_pydict()
    assert stored == {**added, "a": [0.5, 1.5, 2.5], "label": ["x", "y", "x"]}
    assert list(stored) == [*added, "a", "label"]


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (pd.Index(["u1", "u2", "u1"]), "the index has no name that says what it is for, such as 'u1'; give it one"),
        # Clients, or tables one below the other.
        (pd.Index([0, 1, 0]), "the index has no name"),
        (pd.Index([1700000000, 1700000060, 1700000120]), "the index has no name"),
        (pd.MultiIndex.from_arrays([["b", "a", "b"], [0, 0, 1]]), "the index has no name"),
        (pd.Index([7, 7, 9], name="who"), "nothing says what the index 'who' is for; name it by client_column"),
        (pd.Index(["x", "x", "x"], name="label"), "the index 'label' is called as a column that holds other values"),
    ],
)
def test_an_index_that_says_nothing_is_one_line(index, message):
    with pytest.raises(FlagError, match=message) as raised:
        place_data(ROWS.set_axis(index), {})
    assert "\n" not in str(raised.value)


def test_dates_in_the_index_beside_a_time_are_one_line():
    with pytest.raises(FlagError, match="the index has no name"):
        place_data(ROWS.assign(date=DAYS).set_axis(DAYS), {})


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (pd.MultiIndex.from_product([["a", "b"], ["mean"]]), "have names of 2 levels, such as .'a', 'mean'."),
        (["a", "a"], "2 columns are called 'a'"),
        ([1, "1"], "2 columns are called '1'"),
        (["a", None], "column 2 has no name"),
    ],
)
def test_columns_that_have_no_name_of_their_own(columns, message):
    with pytest.raises(FlagError, match=message):
        place_data(ROWS.set_axis(columns, axis=1), {})


def test_values_live_on_as_they_are():
    frame = pd.DataFrame(
        {
            7: ["007", "NA", "None"],
            "size": pd.Categorical(["m", "s", "m"], ["s", "m", "l"], ordered=True),
            "whole": pd.array([2**53 + 1, None, 3], "Int64"),
            "truth": pd.array([True, None, False], "boolean"),
            "when": DAYS.tz_localize("Europe/Berlin"),
            "single": np.float32([0.1, 1e-20, 3e38]),
            "list": [np.array([1, 2]), np.array([3, 4]), np.array([5, 6])],
            "grid": [np.eye(2), np.eye(2), np.eye(2)],
            "sparse": pd.arrays.SparseArray([0.0, 0.0, 1.0]),
            "band": pd.cut([0.5, 1.5, 0.5], [0, 1, 2]),
        }
    )
    stored = keep(frame)
    assert stored["7"].to_pylist() == ["007", "NA", "None"]
    assert stored["size"].combine_chunks().dictionary.to_pylist() == ["s", "m", "l"]
    assert stored["whole"].to_pylist() == [9007199254740993, None, 3]
    assert stored["truth"].to_pylist() == [True, None, False]
    assert stored["when"].to_pylist()[0].isoformat() == "2024-01-03T00:00:00+01:00"
    np.testing.assert_array_equal(stored["single"].to_numpy(), np.float32([0.1, 1e-20, 3e38]))
    assert stored["list"].to_pylist()[1] == [3, 4] and stored["grid"].to_pylist()[0] == [[1, 0], [0, 1]]
    assert stored["sparse"].to_pylist() == [0, 0, 1]
    assert stored["band"].to_pylist() == ["(0, 1]", "(1, 2]", "(0, 1]"]


@pytest.mark.parametrize("values", [[1, "a", 2], [1j, 2j, 3j], [True, 1, 2], [2**70, 1, 2]])
def test_a_column_of_several_kinds_is_one_line_that_names_it(values):
    with pytest.raises(
        FlagError, match=r"data: column 'b' holds \w+.*, expected numbers, texts, dates or lists"
    ) as raised:
        place_data(ROWS.assign(b=pd.Series(values, dtype=object)), {})
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"x": ROWS[["a"]], "y": pd.Series([0, 1, 0], index=[2, 1, 0])}, "y has the rows of x in another order"),
        ({"x": np.ma.masked_array([[1.0], [2.0]], [[True], [False]]), "y": [0, 1]}, "x has masked values"),
        ({"x": [[1.0], [2.0]], "y": pd.Series([True, None], dtype="boolean")}, "y lacks values"),
        ({"x": ROWS, "y": [0, 1, 0]}, "x holds float, str, expected numbers alone"),
    ],
)
def test_arrays_that_pandas_knows_more_of(data, message):
    with pytest.raises(FlagError, match=message):
        place_data(data, {})


def test_arrays_of_nullable_columns_and_texts_are_plain_ones(tmp_path):
    data = {
        "x": ROWS[["a"]].astype("Float64"),
        # Other rows' names, which say nothing.
        "y": pd.Series([0, 1, 0], index=[2, 1, 3]),
        "client": pd.Series(["007", "NA", "a"], dtype="string"),
    }
    _, contents = place_data(data, {})
    (tmp_path / "kept.npz").write_bytes(*contents.values())
    with np.load(tmp_path / "kept.npz", allow_pickle=False) as stored:
        assert stored["x"].dtype == np.float64 and stored["client"].tolist() == ["007", "NA", "a"]


def test_tables_of_other_libraries_are_tables():
    assert keep(pyarrow.table({"a": [1.5], "user": ["007"]})).to_pydict() == {"a": [1.5], "user": ["007"]}


def test_names_with_commas_are_quoted():
    assert [quote_name(name) for name in ("a", "b, c", 'd "e"')] == ["a", '"b, c"', '"d ""e"""']


def test_ordered_categories_keep_their_order(tmp_path, monkeypatch):
    """By the alphabet large would come first, and the case be the class 0."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    frame = pd.DataFrame(
        {
            "size": pd.Categorical(
                ["small", "large", "medium", "small"] * 5, ["small", "medium", "large"], ordered=True
            ),
            "label": pd.Categorical(["control", "case"] * 10, ["control", "case"], ordered=True),
        }
    )
    (tmp_path / "t.parquet").write_bytes(*place_data(frame, {})[1].values())
    options = DatasetOptions(data=str(tmp_path / "t.parquet"), categories="index")
    source = PARQUET.open(options.data, options)
    x, y = source.read(0, "train")
    assert source.format.class_names == ("control", "case")
    assert x[:4, 0, 0].tolist() == [0, 2, 1, 0] and y[:4].tolist() == [0, 1, 0, 1]


def test_labels_that_float64_cannot_tell_apart_are_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    frame = pd.DataFrame({"a": range(20), "label": [2**53, 2**53 + 1] * 10})
    (tmp_path / "t.parquet").write_bytes(*place_data(frame, {})[1].values())
    with pytest.raises(DatasetError, match="label column 'label' holds whole numbers from"):
        PARQUET.open(str(tmp_path / "t.parquet"), DatasetOptions(task="classification"))


def test_a_text_among_numbers_is_named_and_what_makes_it_a_missing_number():
    frame = ROWS.assign(a=pd.Series([1.5, "2", "n/k"], dtype=object))
    with pytest.raises(FlagError, match=r"to_numeric\(column, errors='coerce'\) leaves out texts such as 'n/k', asty"):
        keep(frame)
    made = keep(frame.assign(a=pd.to_numeric(frame["a"], errors="coerce")))
    assert made["a"].to_pylist() == [1.5, 2.0, None]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"weight_column": pd.Series([1.0, 2.0])}, "--weight_column: expected the name of a column of the data, got S"),
        ({"weight_column": np.ones(3)}, "--weight_column: expected the name of a column of the data, got ndarray"),
        ({"label_column": ROWS.label}, "--label_column: expected the name of a column of the data, got Series"),
        ({"class_weights": {"x": 1, "y": 2}}, "--class_weights: expected balanced or the path of a file, got dict; wr"),
        ({"class_weights": [1, 2]}, "--class_weights: expected balanced or the path of a file, got list; write {class"),
    ],
)
def test_values_in_place_of_names_are_refused(flags, message):
    """As Keras takes class_weight={...} and scikit-learn sample_weight=array."""
    with pytest.raises(FlagError) as raised:
        check_values(flags)
    assert str(raised.value).startswith(message)


def test_names_in_lists_are_names():
    check_values({"label_column": ["a", "b"], "feature_columns": np.array(["a"]), "class_weights": "balanced"})


NAMES = ("age", "colour=red", "colour=blue", "dose", "a=b")
TABLE = ExampleFormat((5, 1), "float32", ("x", "y"), are_features=True, feature_names=NAMES)
PLAIN = ExampleFormat((2, 1), "float32", ("x", "y"), are_features=True)
IMAGES = ExampleFormat((2, 2, 1), "uint8", ("x", "y"))
TOKENS = ExampleFormat((2,), "int32", ("x", "y"), takes_tokens=True)
WORDS = dataclasses.replace(TOKENS, text=TextFormat("review", ("<pad>", "<oov>", "good", "bad")))
FRAME = pd.DataFrame({"age": [1.5, 2.5], "colour": ["blue", "red"], "dose": [3, 4], "a=b": [True, False]})


@pytest.mark.parametrize(
    "frame",
    [
        FRAME,
        FRAME[["a=b", "dose", "colour", "age"]],
        # Columns that are no features.
        FRAME.assign(label=["x", "y"], note=[[1], [2, 3]]),
        FRAME.set_axis(["u1", "u2"]),
        pyarrow.Table.from_pandas(FRAME),
        FRAME.assign(colour=pd.Categorical(["blue", "red"], ["blue", "red", "green"])),
        # As a text file has them.
        FRAME.assign(colour=[" blue", "red "], dose=["3", "4.0"], **{"a=b": ["yes", "no"]}),
        FRAME.assign(dose=pd.array([3, 4], "Int64")),
        FRAME.drop(columns="colour").assign(**{"colour=red": [0, 1], "colour=blue": [1, 0]}),  # encoded already
    ],
)
def test_a_table_is_taken_by_the_names_of_its_columns(frame):
    x = read_examples(frame, TABLE)
    assert x.dtype == np.float32 and x.shape == (2, 5, 1)
    assert x[..., 0].tolist() == [[1.5, 0, 1, 3, 1], [2.5, 1, 0, 4, 0]]


def test_spellings_that_the_run_has_joined_are_joined_here():
    frame = FRAME.assign(colour=["BLUE.", "Red"])
    assert read_examples(frame, TABLE, are_joined=True)[..., 0].tolist() == [[1.5, 0, 1, 3, 1], [2.5, 1, 0, 4, 0]]
    with pytest.raises(
        FlagError, match=r"'BLUE.' in row 0 .*, which was not there in training; expected one of red, b"
    ):
        read_examples(frame, TABLE)
    with pytest.raises(FlagError, match=r"'green' in row 0 .*, which was not there in training"):
        read_examples(FRAME.assign(colour="green"), TABLE, are_joined=True)


def test_numbers_written_for_people_are_refused_with_what_to_do():
    with pytest.raises(FlagError, match=r"'12 %' in row 0 .*; numbers with signs.*: make plain ones of them, 12 % as"):
        read_examples(FRAME.assign(dose=["12 %", "3"]), TABLE)
    with pytest.raises(FlagError, match=r"'high' in row 1 .*; texts that were made the index"):
        read_examples(FRAME.assign(dose=["3", "high"]), TABLE)


def test_a_table_without_rows():
    assert read_examples(FRAME.iloc[:0], TABLE).shape == (0, 5, 1)


@pytest.mark.parametrize(
    ("x", "example_format", "message"),
    [
        (
            FRAME.drop(columns=["dose", "colour"]),
            TABLE,
            "column colour, dose is missing; expected age, colour, dose, a=b",
        ),
        (FRAME.assign(age=[1.5, None]), TABLE, "column 'age' lacks a value in row 1"),
        (FRAME.assign(colour=["red", None]), TABLE, "column 'colour' lacks a value in row 1"),
        (
            FRAME.assign(colour=["red", "green"]),
            TABLE,
            "column 'colour' has 'green' in row 1.*expected one of red, blue",
        ),
        (FRAME.assign(age=[1.5, np.inf]), TABLE, "column 'age' has 'inf' in row 1"),
        (FRAME.assign(age=["old", "1"]), TABLE, "column 'age' has 'old' in row 0"),
        (FRAME.assign(age=pd.to_datetime(["2024", "2025"])), TABLE, "column 'age' has '2024-01-01"),
        (FRAME.assign(age=[[1], [2]]), TABLE, "column 'age' holds lists"),
        (FRAME.assign(age=pd.to_timedelta([1, 2])), TABLE, "column 'age' is of type duration"),
        (pd.concat([FRAME, FRAME["age"]], axis=1), TABLE, "2 columns are called 'age'"),
        (pd.concat({"a": FRAME}, axis=1), TABLE, "names of 2 levels"),
        (pd.DataFrame(np.zeros((2, 2))), PLAIN, "names of features, which this run does not have"),
        (pd.DataFrame(np.zeros((2, 2))), IMAGES, "names of features, which this run does not have"),
        (FRAME["age"], TABLE, "expected an array of examples, or a table, got Series"),
        ({"age": [1.0]}, TABLE, "got dict"),
        ([[1.0, 2.0], [1.0]], PLAIN, "is no array"),
        ([1.0, 2.0], PLAIN, r"expected shape \(examples, 2\), got \(2,\)"),
        ([["1", "2"]], PLAIN, "expected numbers, got <U1"),
        (np.array([[1.0, None]]), PLAIN, "expected numbers, got object"),
        ([[1.0, np.nan]], PLAIN, r"x\[0, 1, 0\] is nan|x\[0, 1\] is nan"),
        ([[1.0, 1e39]], PLAIN, "too large for float32"),
        (np.ma.masked_array([[1.0, 2.0]], [[True, False]]), PLAIN, "masked"),
        (np.zeros((1, 2), np.uint8), PLAIN, "expected float32 as in training, got uint8"),
        (np.full((1, 2, 2), 0.5), IMAGES, "whole numbers 0..255"),
        (np.full((1, 2, 2), -1), IMAGES, "whole numbers 0..255"),
        (np.full((1, 2), 0.5), TOKENS, "expected tokens"),
    ],
)
def test_what_is_no_example_is_one_line(x, example_format, message):
    with pytest.raises(FlagError, match=message) as raised:
        read_examples(x, example_format)
    assert str(raised.value).startswith("x") and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("x", "example_format", "dtype"),
    [
        ([[1, 2]], PLAIN, np.float32),
        (np.full((1, 2, 2), 255.0), IMAGES, np.uint8),
        (np.full((1, 2), 7.0), TOKENS, np.int32),
    ],
)
def test_numbers_that_fit_are_brought_into_the_format_of_the_data(x, example_format, dtype):
    read = read_examples(x, example_format)
    assert read.dtype == dtype and read.shape[1:] == example_format.input_shape
    assert read.ravel().tolist() == np.ravel(x).tolist()


def test_numbers_that_a_models_input_does_not_hold_are_refused():
    spec = ModelSpec("own:whole", None, make_format((2,)), input_dtype="uint8")
    check_inputs(spec, np.array([[0, 255]], np.float32))
    with pytest.raises(
        FlagError, match=r"^x: has 4.5, expected whole numbers from 0 to 255, since the Input of own:whole"
    ):
        check_inputs(spec, np.array([[1, 4.5]], np.float32))


TEXTS = ["Good!", "not so bad"]


@pytest.mark.parametrize(
    "x", [TEXTS, np.array(TEXTS), pd.Series(TEXTS), pd.DataFrame({"review": TEXTS, "other": [1, 2]})]
)
def test_texts_become_the_words_of_the_run(x):
    np.testing.assert_array_equal(read_examples(x, WORDS), [[2, 0], [1, 1]])


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (["good", None], r"^x: row 1 \(counted from 0\) is no text"),
        (pd.DataFrame({"review": [None, 3]}), r"^x: row 0 \(counted from 0\) is no text"),
        (pd.DataFrame({"text": TEXTS}), "^x: column 'review' is missing, whose texts the run was trained on"),
        ("good", "^x: expected an array of examples, or a table, got str"),
    ],
)
def test_what_is_no_list_of_texts_is_refused(x, message):
    with pytest.raises(FlagError, match=message):
        read_examples(x, WORDS)
    np.testing.assert_array_equal(read_examples(np.array([[2, 1]]), WORDS), [[2, 1]])  # tokens, as before
