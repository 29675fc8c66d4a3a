// Examples that are features: a slider and a number for each, with its name, unit and range.

import { makeElement, softenName } from "./answer.js";
import { formatNumber } from "./maths.js";
import { nameFeature } from "./signal.js";

// The step of a slider: features that are whole numbers in all examples stay so.
export function findStep({ is_whole: isWhole }) {
  return isWhole ? "1" : "any";
}

// Where a value lies in the range of a feature, for its slider, which has no other places.
export function keepInRange(value, { lowest, highest }) {
  return Math.min(highest, Math.max(lowest, value));
}

export class Sliders {
  // `onChange` is called whenever a number has changed. `features` are in the order of an example's values.
  constructor(place, features, onChange) {
    this.features = features;
    this.onChange = onChange;
    this.values = null;
    this.rows = features.map((feature, i) => this.makeRow(feature, i));
    place.replaceChildren(...this.rows.map(({ element }) => element));
    place.classList.add("sliders");
  }

  // The stored values of what is shown, or null before there is any.
  read() {
    return this.values;
  }

  // Takes over an example as it is, even where it lies outside of a range.
  show(example) {
    this.values = Float32Array.from(example);
    this.rows.forEach((row, i) => this.write(row, i));
    this.onChange();
  }

  makeRow(feature, i) {
    const name = nameFeature(feature);
    const slider = makeInput("range", { min: feature.lowest, max: feature.highest, step: findStep(feature) });
    const number = makeInput("number", { step: "any", inputmode: "decimal" });
    slider.id = `feature-${i}`;
    number.setAttribute("aria-label", `${name}, exactly`);
    slider.disabled = feature.lowest === feature.highest;
    const label = makeElement("label", softenName(name));
    label.htmlFor = slider.id;
    const range = makeElement("span", describeRange(feature), "note");
    const row = { element: makeElement("div", [label, number, slider, range], "slider"), slider, number };
    slider.addEventListener("input", () => this.take(row, i, slider.valueAsNumber));
    number.addEventListener("input", () => this.take(row, i, number.valueAsNumber));
    return row;
  }

  take(row, i, value) {
    if (!this.values || !Number.isFinite(value)) return;
    this.values[i] = value;
    this.write(row, i);
    this.onChange(i);
  }

  write({ slider, number }, i) {
    const value = this.values[i];
    slider.value = keepInRange(value, this.features[i]);
    if (document.activeElement !== number) number.value = Number(value.toPrecision(6));
  }
}

// Such as "-3.5 to 31"; of a model that standardises, also by what.
export function describeRange({ lowest, highest, mean, deviation }) {
  const range = `${Number(lowest.toPrecision(6))} to ${Number(highest.toPrecision(6))}`;
  return mean === undefined ? range : `${range}; mean ${formatNumber(mean)}, deviation ${formatNumber(deviation)}`;
}

function makeInput(type, attributes) {
  const input = document.createElement("input");
  input.type = type;
  for (const [name, value] of Object.entries(attributes)) input.setAttribute(name, value);
  return input;
}
