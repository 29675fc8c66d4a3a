"""Loading again with the flags that solve what is wrong."""

from datasets.errors import DatasetError
from datasets.repair import Problem, repair


def make_loader(*steps):
    """Raises one error after the other, as long as the flag is not what it asks for; then it gives the flags."""

    def load(flags):
        errors = [
            DatasetError(text, fix)
            for text, fix in steps
            if any(value not in str(flags.get(name, "")) for name, value in fix.items()) or not fix
        ]
        if errors:
            errors[0].further = errors[1:]
            raise errors[0]
        return "loaded"

    return load


def test_columns_are_dropped_first_and_lists_of_names_grow():
    """Both columns are dropped in one go; what is wrong beside that is said when it is still so afterwards."""
    load = make_loader(
        ("a gap", {"missing": "median"}), ("a", {"drop_columns": '"a, b"'}), ("c", {"drop_columns": "c"})
    )
    found = repair(load, {"data": "x", "drop_columns": "d"})
    assert found.loaded == "loaded" and [each.text for each in found.problems] == ["a", "c", "a gap"]
    assert found.flags == {"data": "x", "drop_columns": 'd,"a, b",c', "missing": "median"}
    words = repair(make_loader(("w", {"missing_words": "oops"})), {"missing_words": "na"})
    assert words.flags == {"missing_words": "na,oops"}


def test_what_does_not_help_is_tried_once():
    calls = []

    def load(flags):
        calls.append(dict(flags))
        raise DatasetError("still wrong", {"missing": "drop"})

    found = repair(load, {})
    assert found.loaded is None and calls == [{}, {"missing": "drop"}]
    assert [each.text for each in found.problems] == ["still wrong"]
    assert repair(make_loader(("no way", {})), {}).problems == (Problem("no way", {}),)


def test_a_flag_with_one_value_is_told_with_that_which_is_in_the_command():
    """Of two texts the first is used, and nothing is said of the other; what was solved by 'median' is by 'drop'."""
    errors = [[("gap", {"missing": "median"}), ("a", {"text_column": "a"}), ("b", {"text_column": "b"})]]
    errors += [[("no word", {"missing": "drop"})], []]

    def load(flags):
        if found := [DatasetError(*each) for each in errors.pop(0)]:
            found[0].further = found[1:]
            raise found[0]

    found = repair(load, {})
    dropped = {"missing": "drop"}
    assert found.problems == (Problem("gap", dropped), Problem("a", {"text_column": "a"}), Problem("no word", dropped))
    assert found.flags == {"text_column": "a", **dropped}


def test_a_feature_that_is_named_is_dropped_from_the_names_but_never_the_last():
    load = make_loader(("a", {"drop_columns": "a"}))
    assert repair(load, {"feature_columns": "A,b"}).flags == {"feature_columns": "b"}
    found = repair(load, {"feature_columns": "a"})
    assert found.loaded is None and found.flags == {"feature_columns": "a"}


def test_a_label_that_is_to_be_chosen_is_none_that_is_used():
    asked = []

    def load(flags):
        if "label_column" not in flags:
            raise DatasetError("which", {"label_column": ""})
        return "loaded"

    def choose(taken):
        asked.append(taken)
        return "y, z"

    found = repair(load, {"client_column": "u", "drop_columns": "a,b"}, choose)
    assert found.flags["label_column"] == '"y, z"' and asked == [["u", "a", "b"]]
    assert repair(load, {}).loaded is None
