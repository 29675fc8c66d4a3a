"""What columns are by their values, and which of them may be the label."""

import datetime

import pyarrow
from small_tables import write_columns, write_text

from datasets.dataset import DatasetOptions
from datasets.formats.csv import make_csv_table
from datasets.formats.parquet import make_arrow_table
from datasets.tables.profile import choose_label, profile_table

N = range(20)
COLUMNS = {
    "row": list(N),
    "name": [f"n{n}" for n in N],
    "who": ["ann", "bob"] * 10,
    "said": [f"the {n} is what they said of it" for n in N],
    "day": [datetime.date(2024, 1, n + 1) for n in N],
    "is": [n % 3 == 0 for n in N],
    "size": [n % 7 + 0.5 for n in N],
    "gone": [None] * 20,
}
KINDS = ["id", "id", "category", "sentences", "date", "category", "number", "empty"]


def profile_text(folder, text):
    return profile_table(make_csv_table(write_text(folder, text), DatasetOptions()), DatasetOptions())


def test_kinds_are_the_same_in_text_and_in_parquet_where_others_are_told_by_their_type(tmp_path):
    rows = [
        ",".join("" if value is None else str(value) for value in row) for row in zip(*COLUMNS.values(), strict=True)
    ]
    of_text = profile_text(tmp_path, "\n".join([",".join(COLUMNS), *rows]))
    structs = {"at": [{"a": 1}] * 20, "list": [[1.0, 2.0]] * 20}
    path = write_columns(tmp_path / "mine.parquet", pyarrow.table(COLUMNS | structs).to_pydict())
    of_parquet = profile_table(make_arrow_table(path, DatasetOptions()), DatasetOptions())
    assert [each.kind for each in of_text] == KINDS
    assert [each.kind for each in of_parquet] == [*KINDS, "not read", "array"]
    for columns in (of_text, of_parquet):
        assert (columns[6].lowest, columns[6].highest, columns[6].num_different) == (0.5, 6.5, 7)
        assert columns[2].examples == ("ann", "bob") and columns[7].num_missing == 20


def test_numbers_as_people_write_them_are_numbers_also_where_it_is_open_which(tmp_path):
    columns = profile_text(tmp_path, 'a,b,c\n"1,234.5",12 %,7\n"2,000.0",3 %,7\n')
    assert [(each.kind, each.lowest) for each in columns] == [("number", 1234.5), ("number", 0.03), ("number", 7)]
    assert [each.is_constant for each in columns] == [False, False, True]
    assert [each.kind for each in profile_text(tmp_path, "a;b\n$1,234;1\n$2,345;1\n")] == ["category", "number"]


def test_the_label_is_the_last_of_few_values_and_else_a_number(tmp_path):
    rows = "".join(f"{n},{'xy'[n % 2]},{n % 3},{n * 1.5},u{n % 4},k\n" for n in range(60))
    columns = profile_text(tmp_path, "row,kind,grade,size,user,one\n" + rows)
    assert choose_label(columns) == "grade"
    assert choose_label(columns, ["Grade"]) == "kind"
    assert choose_label(columns, ["grade", "kind"]) == "size"
    assert not choose_label(columns, ["grade", "kind", "size"])
