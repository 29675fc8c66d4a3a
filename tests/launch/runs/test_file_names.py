"""Names of files for strings of users: safe, short, different, and read back."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from launch.runs.checksums import check_sums
from launch.runs.errors import RunFolderError
from launch.runs.file_names import LONGEST, decode_names, encode_name

HOSTILE = (
    *("", ".", "..", "../../outside", "/etc/passwd", "ward 1/2", "-rf", "~", "~20", "+a", "a.", "%2e", "Ward", "ward"),
    *("a\0b", "a\nb", "a\tb", "'\"", "<script>", "=cmd()", "\N{GRINNING FACE}", "r\u200ftl", "\u202eabc", "\udcfc"),
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((name, name) for name in ("global", "cluster_0", "client_7", "teacher_12", "a-b.c", "007")),
        ("Ward 1/2", "+ward~201~2f2"),
        ("../x", "~2e.~2fx"),
        ("", "~"),
        ("\u00e9", "~c3~a9"),
        ("-a.", "~2da~2e"),
        ("x" * 101, "x" * 66 + "~~"),
    ],
)
def test_names_of_our_own_stay_and_other_letters_are_spelled(name, expected):
    encoded = encode_name(name)
    assert encoded == expected or (expected.endswith("~~") and encoded.startswith(expected))


@given(st.lists(st.text(st.characters(exclude_categories=())), unique=True))
@example([*HOSTILE, "x" * 300, "x" * 299, "X" * 300, "\u00fc" * 120, "\u00fc" * 119 + "v", "\udcfc" * 90])
def test_names_are_safe_and_short_are_read_back_and_differ_where_case_is_ignored(names):
    encoded = [encode_name(name) for name in names]
    assert all(re.fullmatch("[a-z0-9_+~][a-z0-9_.+~-]*(?<!\\.)", name) and len(name) <= LONGEST for name in encoded)
    assert len({name.lower() for name in encoded}) == len(names)
    assert decode_names(encoded, names) == names
    short = [(name, file) for name, file in zip(names, encoded, strict=True) if "~~" not in file]
    assert decode_names([file for _, file in short]) == [name for name, _ in short]


@pytest.mark.parametrize("name", ["Ward", "ward 1", "a~2", "a~~b", "~ff", "+", "x" * 101, "..."])
def test_the_name_of_a_file_of_an_earlier_version_is_its_string(name):
    assert decode_names([name]) == [name]


@pytest.mark.parametrize("name", ["metrics.csv", "models/global/model.keras"])
def test_what_a_link_brings_in_from_outside_is_refused_but_the_folder_itself_may_be_one(tmp_path, name):
    run, other = tmp_path / "run", tmp_path / "other"
    for folder in (run, other):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("x")
    (tmp_path / "link").symlink_to(run)
    check_sums(tmp_path / "link", [name])
    (run / name).unlink()
    (run / name).symlink_to(other / name)
    with pytest.raises(RunFolderError, match=f"{name}: lies outside of the run folder"):
        check_sums(run, [name])
