"""What `Run.predict` takes for examples: by the names of columns, checked, in the form of the run's data."""

import numpy as np
import pandas as pd
import pyarrow
import pytest
from small_formats import make_format

from datasets.example_format import ExampleFormat
from launch.settings.errors import FlagError
from launch.training.given_examples import check_inputs, read_examples
from models.model_spec import ModelSpec

NAMES = ("age", "colour=red", "colour=blue", "dose", "a=b")
TABLE = ExampleFormat((5, 1), "float32", ("x", "y"), are_features=True, feature_names=NAMES)
PLAIN = ExampleFormat((2, 1), "float32", ("x", "y"), are_features=True)
IMAGES = ExampleFormat((2, 2, 1), "uint8", ("x", "y"))
TOKENS = ExampleFormat((2,), "int32", ("x", "y"), takes_tokens=True)
FRAME = pd.DataFrame({"age": [1.5, 2.5], "colour": ["blue", "red"], "dose": [3, 4], "a=b": [True, False]})


@pytest.mark.parametrize(
    "frame",
    [
        FRAME,
        FRAME[["a=b", "dose", "colour", "age"]],
        FRAME.assign(label=["x", "y"], note=[[1], [2, 3]]),  # columns that are no features
        FRAME.set_axis(["u1", "u2"]),
        pyarrow.Table.from_pandas(FRAME),
        FRAME.assign(colour=pd.Categorical(["blue", "red"], ["blue", "red", "green"])),
        FRAME.assign(colour=[" blue", "red "], dose=["3", "4.0"], **{"a=b": ["yes", "no"]}),  # as a text file has them
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
    ("x", "form", "message"),
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
def test_what_is_no_example_is_one_line(x, form, message):
    with pytest.raises(FlagError, match=message) as raised:
        read_examples(x, form)
    assert str(raised.value).startswith("x") and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("x", "form", "dtype"),
    [
        ([[1, 2]], PLAIN, np.float32),
        (np.full((1, 2, 2), 255.0), IMAGES, np.uint8),
        (np.full((1, 2), 7.0), TOKENS, np.int32),
    ],
)
def test_numbers_that_fit_are_brought_into_the_form_of_the_data(x, form, dtype):
    read = read_examples(x, form)
    assert read.dtype == dtype and read.shape[1:] == form.input_shape
    assert read.ravel().tolist() == np.ravel(x).tolist()


def test_numbers_that_a_models_input_does_not_hold_are_refused():
    spec = ModelSpec("own:whole", None, make_format((2,)), input_dtype="uint8")
    check_inputs(spec, np.array([[0, 255]], np.float32))
    with pytest.raises(
        FlagError, match=r"^x: has 4.5, expected whole numbers from 0 to 255, since the Input of own:whole"
    ):
        check_inputs(spec, np.array([[1, 4.5]], np.float32))
