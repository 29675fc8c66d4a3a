// Examples that are features: a slider and a number for each, with its name, unit and range; a list for a category.

import { makeElement, softenName } from "./answer.js";
import { NO_CHOICE, joinGroups, listChoices, readChoice, writeChoice } from "./groups.js";
import { nameFeature } from "./signal.js";

// The step of a slider and its number: features that are whole numbers in all examples stay so.
export function findStep({ is_whole: isWhole }) {
  return isWhole ? "1" : "any";
}

// Where a value lies in the range of a feature, for its slider, which has no other places.
export function keepInRange(value, { lowest, highest }) {
  return Math.min(highest, Math.max(lowest, value));
}

const MOST_SHOWN = 40; // rows; those of further features are folded

export class Sliders {
  // `onChange` is called whenever a number has changed. `features` are in the order of an example's values.
  constructor(place, features, onChange, groups = []) {
    this.features = features;
    this.onChange = onChange;
    this.values = null;
    this.rows = joinGroups(features.length, groups).map(({ place: i, group }) =>
      group ? this.makeChoice(group, i) : this.makeRow(features[i], i),
    );
    const elements = this.rows.map(({ element }) => element);
    const rest = elements.splice(MOST_SHOWN);
    const folded = makeElement("details", [makeElement("summary", `${rest.length} more`), makeElement("div", rest)]);
    place.replaceChildren(...elements, ...(rest.length ? [folded] : []));
    place.classList.add("sliders");
  }

  // The stored values of what is shown, or null before there is any.
  read() {
    return this.values;
  }

  // Takes over an example as it is, even where it lies outside of a range.
  show(example) {
    this.values = Float32Array.from(example);
    this.rows.forEach((row) => row.write());
    this.onChange();
  }

  makeRow(feature, i) {
    const name = nameFeature(feature);
    const slider = makeInput("range", { min: feature.lowest, max: feature.highest, step: findStep(feature) });
    const number = makeInput("number", { step: findStep(feature), inputmode: "decimal" });
    slider.id = `feature-${i}`;
    number.setAttribute("aria-label", `${name}, exactly`);
    slider.disabled = feature.lowest === feature.highest;
    const range = makeElement("span", describeRange(feature), "note");
    const label = makeElement("label", [softenName(name), range]);
    label.htmlFor = slider.id;
    const write = () => {
      const value = this.values[i];
      slider.value = keepInRange(value, feature);
      if (document.activeElement !== number) number.value = Number(value.toPrecision(6));
    };
    const take = (value) => {
      if (!this.values || !Number.isFinite(value)) return;
      this.values[i] = value;
      write();
      this.onChange(i);
    };
    slider.addEventListener("input", () => take(slider.valueAsNumber));
    number.addEventListener("input", () => take(number.valueAsNumber));
    return { element: makeElement("div", [label, number, slider], "slider"), write };
  }

  // One list for all features of a category; nothing is chosen in it where an example has what cannot be chosen.
  makeChoice(group, i) {
    const select = document.createElement("select");
    select.id = `feature-${i}`;
    select.append(...listChoices(group).map(([choice, name]) => new Option(name, choice)));
    const label = makeElement("label", softenName(group.name));
    label.htmlFor = select.id;
    const write = () => {
      const choice = readChoice(this.values, group);
      if (choice === NO_CHOICE) select.selectedIndex = -1;
      else select.value = String(choice);
    };
    select.addEventListener("change", () => {
      if (!this.values) return;
      writeChoice(this.values, group, Number(select.value));
      this.onChange(i);
    });
    return { element: makeElement("div", [label, select], "slider"), write };
  }
}

// Such as "-3.5 to 31".
export function describeRange({ lowest, highest }) {
  return `${Number(lowest.toPrecision(4))} to ${Number(highest.toPrecision(4))}`;
}

function makeInput(type, attributes) {
  const input = document.createElement("input");
  input.type = type;
  for (const [name, value] of Object.entries(attributes)) input.setAttribute(name, value);
  return input;
}
