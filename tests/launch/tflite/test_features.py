"""Features of examples and channels of series, by hand."""

import types

import numpy as np
import pytest
from small_formats import AS_THEY_ARE, format_of

from datasets.example_format import CategoryGroup, Preprocessing
from launch.tflite.features import (
    NEITHER,
    SERIES,
    TABLE,
    choose_sample,
    describe_features,
    describe_in_words,
    list_groups,
    name_layout,
)


def make_data(test_x, names=(), units=(), preprocessing=AS_THEY_ARE, **fields):
    """What is read of a FederatedData."""
    x = np.array(test_x, np.uint8 if fields.get("takes_tokens") else np.float32)
    return types.SimpleNamespace(
        test_x=x, test_y=np.zeros(len(x), np.int32),
        format=format_of(x, "ab", preprocessing, feature_names=names, feature_units=units, **fields),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "options", "layout"),
    [
        ((2, 3), {}, TABLE),
        ((2, 3, 1), {"are_features": True}, TABLE),
        ((2, 3, 1), {"names": ("a", "b", "c")}, TABLE),
        ((2, 3, 1), {}, SERIES),
        ((2, 5, 3), {"names": ("a", "b", "c")}, SERIES),
        ((2, 8, 8, 1), {}, NEITHER),
        ((2, 5), {"takes_tokens": True}, NEITHER),
    ],
)
def test_layouts_of_examples(shape, options, layout):
    data = make_data(np.zeros(shape), **options)
    assert name_layout(data.format) == layout
    assert bool(describe_features(data, {})) == (layout != NEITHER)


def make_feature(name, unit, lowest, highest, is_whole, **further):
    return {"name": name, "unit": unit, "lowest": lowest, "highest": highest, "is_whole": is_whole, **further}


def test_a_table_by_hand():
    data = make_data([[0.5, 3], [-2, 7], [1, 3]], ("a", "b"), ("K", ""))
    assert describe_features(data, {}) == [make_feature("a", "K", -2, 1, False), make_feature("b", "", 3, 7, True)]


def test_channels_of_a_series_have_the_range_of_all_steps():
    expected = [make_feature("channel 1", "", 0, 9, True), make_feature("channel 2", "", -5, 6, True)]
    assert describe_features(make_data([[[0, 5], [1, 6]], [[9, -5], [4, 0]]]), {}) == expected


def test_a_standardisation_is_named_and_one_that_does_not_fit_is_left_out():
    data = make_data([[0, 1], [2, 3]])
    section = {"feature_means": [1.0, 2], "feature_deviations": [0.5, 1.0]}
    features = describe_features(data, section)
    scaled = {"mean": 1.0, "deviation": 0.5}, {"mean": 2, "deviation": 1.0}
    plain = [make_feature("feature 1", "", 0, 2, True), make_feature("feature 2", "", 1, 3, True)]
    assert features == [fact | own for fact, own in zip(plain, scaled, strict=True)]
    said = "feature 1 0 to 2, mean 1, deviation 0.5; feature 2 1 to 3, mean 2, deviation 1"
    assert describe_in_words(features) == said
    wrong = ([1.0], [1.0, None], [1.0, float("nan")], "ab", None, [True, 1])
    for unfit in ({"feature_means": [1.0, 2.0]}, *(section | {"feature_means": means} for means in wrong)):
        assert describe_features(data, unfit) == plain


def test_a_standardisation_is_in_stored_numbers():
    """The model gets x / 2 + 1, of which it takes the mean 4 and the deviation 3: (x / 2 + 1 - 4) / 3 = (x - 6) / 6."""
    data = make_data([[0.0], [2.0]], preprocessing=Preprocessing(0.5, 1.0))
    section = {"feature_means": [4.0], "feature_deviations": [3.0]}
    assert describe_features(data, section) == [make_feature("feature 1", "", 0, 2, True, mean=6.0, deviation=6.0)]


def test_words_have_the_unit_and_hide_nothing():
    text = describe_in_words([make_feature("a\nb", "°C", -3.5, 1234567.0, False)])
    assert text == "a\\u000ab [°C] -3.5 to 1.23457e+06"


def test_sample_by_hand():
    # By class the examples are 1 3 5, 0 2 4; three evenly spaced over these are 0, 2 (2.5, to even) and 5.
    assert choose_sample(np.array([1, 0, 1, 0, 1, 0]), 3).tolist() == [1, 4, 5]
    assert choose_sample(np.array([1, 0]), 5).tolist() == [0, 1]


def test_sample_has_every_class_and_no_example_twice():
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(10), [2, *[500] * 9]))
    chosen = choose_sample(labels)
    assert len(set(chosen.tolist())) == 100
    assert (np.bincount(labels[chosen], minlength=10) >= [1, *[10] * 9]).all()
    np.testing.assert_array_equal(chosen, np.sort(chosen))


def test_what_stays_as_it_is_has_no_mean():
    data = make_data([[0, 1], [2, 3]], categories=(1,))
    section = {"feature_means": [1.0, 0], "feature_deviations": [0.5, 1], "categories": [1]}
    features = describe_features(data, section)
    assert features[1] == make_feature("feature 2", "", 1, 3, True, is_category=True)
    assert describe_in_words(features) == "feature 1 0 to 2, mean 1, deviation 0.5; feature 2 (category) 1 to 3"
    # Of a run of an earlier version, that is what a constant 0 has.
    del section["categories"]
    assert [fact["deviation"] for fact in describe_features(make_data([[0, 1]]), section)] == [0.5, 1]


GROUPED = {
    "names": ("age", "colour=red", "colour=blue", "size"),
    "groups": (
        CategoryGroup("colour", (1, 2), ("red", "blue, dark")),
        CategoryGroup("size", (3,), ("s", "m"), is_index=True),
    ),
}


def test_a_category_is_one_choice_in_words():
    data = make_data([[30, 1, 0, 0], [40.5, 0, 1, 1]], **GROUPED)
    groups = list_groups(data.format)
    assert groups[0] == {
        "name": "colour", "features": [1, 2], "values": ["red", "blue, dark"], "is_index": False, "has_none": False,
    }  # fmt: skip
    facts = describe_features(data, {})
    assert [fact["name"] for fact in facts] == list(GROUPED["names"])  # as they were
    assert describe_in_words(facts, groups) == (
        'age 30 to 40.5; colour: one of red, "blue, dark" (features 1 to 2); '
        "size: the index, from 0, of s, m (feature 3); places of features are counted from 0"
    )


def test_of_hundreds_of_values_the_first_are_listed_and_they_are_one_of_the_features():
    names = tuple(f"v{n}" for n in range(300))
    group = CategoryGroup("kind", tuple(range(300)), names, has_none=True)
    facts = [make_feature(f"kind={name}", "", 0.0, 1.0, True) for name in names]
    more = [make_feature("age", "", 0.0, 1.0, True)]
    text = describe_in_words([*facts, *more], [group.to_json()])
    shown = ", ".join(names[:12])
    assert text.startswith(f"kind: one of {shown} and 288 more, or none of them (features 0 to 299); age 0 to 1")
    apart = describe_in_words(facts[:4], [CategoryGroup("c", (3, 1), ("x", "")).to_json()])
    assert apart.startswith('kind=v0 0 to 1; c: one of x, "" (features 3, 1); kind=v2 0 to 1; ')


def test_pictures_and_tokens_have_no_groups_and_channels_do():
    group = (CategoryGroup("c", (0, 1), ("x", "y")),)
    assert list_groups(make_data(np.zeros((2, 5, 3)), groups=group).format) == [group[0].to_json()]
    assert list_groups(make_data(np.zeros((2, 5)), takes_tokens=True, groups=group).format) == []
