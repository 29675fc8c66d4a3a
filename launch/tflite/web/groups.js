// Categories: features of 0 and 1 that hold one choice together, or a feature that holds the index of one.

export const NONE = -1; // of the values of a category: all its features are 0
export const NO_CHOICE = null; // features that say nothing that a person could choose, such as two of 1

// Which value an example, or a step, has of a category: its place among them, NONE or NO_CHOICE.
export function readChoice(example, { features, values, is_index: isIndex }) {
  if (isIndex) {
    const index = example[features[0]];
    return Number.isInteger(index) && index >= 0 && index < values.length ? index : NO_CHOICE;
  }
  const others = features.filter((place) => example[place] !== 0);
  if (!others.length) return NONE;
  return others.length === 1 && example[others[0]] === 1 ? features.indexOf(others[0]) : NO_CHOICE;
}

// Puts a choice into an example: all features of the category change together.
export function writeChoice(example, { features, is_index: isIndex }, choice) {
  if (isIndex) example[features[0]] = choice;
  else features.forEach((place, i) => (example[place] = i === choice ? 1 : 0));
}

// What can be chosen, as [choice, its name]: to have none only where the data have that.
export function listChoices({ values, has_none: hasNone }) {
  return [...(hasNone ? [[NONE, "none of them"]] : []), ...values.map((name, i) => [i, name])];
}

// What a choice is called.
export function nameChoice({ values }, choice) {
  if (choice === NO_CHOICE) return "—";
  return choice === NONE ? "none of them" : values[choice];
}

// For each feature, in their order, itself or, in the place of the first of a category, that: {place, group}.
export function joinGroups(number, groups) {
  const byPlace = new Map(groups.flatMap((group) => group.features.map((place) => [place, group])));
  return Array.from({ length: number }, (_, place) => ({ place, group: byPlace.get(place) ?? null })).filter(
    ({ place, group }) => !group || place === Math.min(...group.features),
  );
}
