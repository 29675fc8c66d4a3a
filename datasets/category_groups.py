"""Categories among features: which features hold one choice together, or the index of one, and what each value means.

One of several features of 0 and 1 is no number that can be moved alone: with two of them at 1, or none, an example is
like no other. So whoever shows features to a person shows a group as one choice.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from datasets.errors import DatasetError
from datasets.names import check_names, name_some

GROUPS = "groups"  # the key in JSON, which that of earlier versions lacks
MOST_VALUES = 12  # of a category in words


class CategoryGroup(NamedTuple):
    """The features, or channels, of one category.

    Attributes:
      name: such as that of the column.
      places: of its features, counted from 0: one for each value, of which that of the value is 1 and the others are 0;
        or the only one, if it holds the index of the value.
      values: what each feature, or each index from 0 on, stands for.
      is_index: whether it is the index that the feature holds.
      has_none: whether an example may have none of the values, so that all its features are 0.
    """

    name: str
    places: tuple[int, ...]
    values: tuple[str, ...]
    is_index: bool = False
    has_none: bool = False

    def to_json(self) -> dict[str, Any]:
        """As JSON can hold it, with the places under "features"; `read_groups` reads it back."""
        return {
            "name": self.name,
            "features": list(self.places),
            "values": list(self.values),
            "is_index": self.is_index,
            "has_none": self.has_none,
        }


def read_groups(content: Sequence[Mapping[str, Any]]) -> tuple[CategoryGroup, ...]:
    """What `CategoryGroup.to_json` gave of each."""
    return tuple(
        CategoryGroup(each["name"], tuple(each["features"]), tuple(each["values"]), each["is_index"], each["has_none"])
        for each in content
    )


def check_groups(groups: Sequence[CategoryGroup], num_features: int) -> None:
    """Raises DatasetError: a place that is no feature or is in two groups, not as many values as places, or a name with
    a control character."""
    check_names("groups", "category", [each.name for each in groups])
    taken: set[int] = set()
    for group in groups:
        check_names(f"groups: {group.name}", "category", group.values)
        if wrong := [place for place in group.places if not 0 <= place < num_features]:
            raise DatasetError(f"groups: {group.name} has place {wrong[0]}, which is none of {num_features} features")
        if taken & set(group.places) or len(set(group.places)) < len(group.places):
            raise DatasetError(f"groups: {group.name} has a feature that is taken already, expected each in one place")
        taken.update(group.places)
        expected = 1 if group.is_index else len(group.values)
        if not group.values or len(group.places) != expected:
            raise DatasetError(
                f"groups: {group.name} has {len(group.places)} features for {len(group.values)} values, expected "
                f"{'one of an index' if group.is_index else 'one for each value'}"
            )


def describe_group(group: Mapping[str, Any]) -> str:
    """What `CategoryGroup.to_json` gave in words, such as "colour: one of red, green, blue (features 3 to 5)"."""
    places, names = group["features"], group["values"]
    # What has a comma, or blanks at its ends, would be taken for several, or for none.
    shown = [f'"{name}"' if "," in name or name != name.strip() or not name else name for name in names]
    values = name_some(shown, MOST_VALUES) + (", or none of them" if group["has_none"] else "")
    if len(places) == 1:
        where = f"feature {places[0]}"
    elif list(places) == list(range(places[0], places[0] + len(places))):
        where = f"features {places[0]} to {places[-1]}"
    else:
        where = f"features {', '.join(map(str, places))}"
    kind = "the index, from 0, of" if group["is_index"] else "one of"
    return f"{group['name']}: {kind} {values} ({where})"
