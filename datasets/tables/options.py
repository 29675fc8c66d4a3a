"""How tables are read: which column is what, and what cells become. Imports nothing heavy."""

import csv

from datasets.options import OF_FILES, declare_options
from tff_algos.settings.config_fields import Needs, setting

MISSING = ("refuse", "median", "drop")
CATEGORIES = ("one_hot", "index")
DEFAULT_MISSING_WORDS = "na,n/a,nan,null,none,?,#n/a,<na>"
AUTO, YEAR_FIRST, DAY_FIRST, MONTH_FIRST, NUMBER = "auto", "ymd", "dmy", "mdy", "number"
WRITTEN, FALSE_TRUE = "written", "false_true"
AUTO_MARK = "auto"
DECIMAL_MARKS = (AUTO_MARK, "point", "comma")


@declare_options
class TableOptions:
    """See `datasets.tables.roles` for columns, and `datasets.tables.windows` for windows."""

    client_column: str = setting(
        "",
        "Column of a table that names the client of each row; empty: guessed; none: there is no such column.",
        needs=OF_FILES,
    )
    label_column: str = setting(
        "", "Column of a table to predict, or several with commas; empty: guessed.", needs=OF_FILES
    )
    feature_columns: str = setting(
        "", "Columns of a table to predict from, with commas; empty: all others.", needs=OF_FILES
    )
    time_column: str = setting(
        "",
        "Column of a table that orders a client's rows; empty: guessed; none: there is no such column.",
        needs=OF_FILES,
    )
    test_column: str = setting(
        "",
        "Column of a table that marks test rows by true, 1 or test; empty: guessed; none: there is no such column.",
        needs=OF_FILES,
    )
    weight_column: str = setting(
        "",
        "Column of a table whose numbers weigh the examples' losses in training, and which is no feature; empty: all "
        "count alike.",
        needs=OF_FILES,
    )
    missing: str = setting("refuse", "What to do with missing values in a table.", choices=MISSING, needs=OF_FILES)
    missing_words: str = setting(
        DEFAULT_MISSING_WORDS,
        "What stands for no value in a table beside an empty field, with commas, in small or large letters.",
        needs=OF_FILES,
    )
    join_spellings: bool = setting(
        False,
        "Joins classes, categories and clients of a table that differ in how they are spelled only, as cat and Cat.",
        needs=OF_FILES,
    )
    truth_names: str = setting(
        WRITTEN,
        "What classes yes and no, or true and false, of a text table are called: as they are written, or false and "
        "true, as earlier versions did.",
        choices=(WRITTEN, FALSE_TRUE),
        needs=OF_FILES,
        of_old_runs=FALSE_TRUE,
    )
    date_form: str = setting(
        AUTO,
        "Order of day, month and year in dates that order rows; auto: by all of them; number: numbers are no dates.",
        choices=(AUTO, YEAR_FIRST, DAY_FIRST, MONTH_FIRST, NUMBER),
        needs=OF_FILES,
        of_old_runs=NUMBER,
    )
    categories: str = setting(
        "one_hot", "How text in the features of a table becomes numbers.", choices=CATEGORIES, needs=OF_FILES
    )
    decimal_mark: str = setting(
        AUTO_MARK,
        "Which mark begins the decimals of the numbers in a table's text; auto: told from all of them.",
        choices=DECIMAL_MARKS,
        needs=OF_FILES,
    )
    window: int = setting(
        0, "Rows of a time series that make one example; 0: each row is one.", minimum=0, needs=OF_FILES
    )
    window_step: int = setting(
        0,
        "Rows from the start of a window to the start of the next; 0: as long as a window.",
        minimum=0,
        needs=Needs("window", bool, "--window=<rows>"),
    )


def split_names(value: str) -> tuple[str, ...]:
    """The names of a flag that takes several: commas between them, a name with a comma in quotes."""
    rows = list(csv.reader([value], skipinitialspace=True))
    return tuple(name.strip() for name in rows[0] if name.strip()) if rows else ()
