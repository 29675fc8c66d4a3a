// The controls above the table: what is chosen, and the boxes of values that filter the runs by a flag.

import { listValues } from "./groups.js";
import { makeElement } from "./table.js";

// Fills a select with [value, label] pairs, or with [value, label, heading], keeping the choice if it is still there.
export function fillSelect(select, options, chosen = select.value) {
  const parts = new Map();
  for (const [value, label, heading] of options) {
    const make = () => (heading ? makeElement("optgroup", { label: heading }) : document.createDocumentFragment());
    if (!parts.has(heading)) parts.set(heading, make());
    parts.get(heading).append(makeElement("option", { value }, label));
  }
  select.replaceChildren(...parts.values());
  if (options.some(([value]) => value === chosen)) select.value = chosen;
}

// A box of a flag's values, each with a tick; `excluded` is the set of those without one.
export function makeFilter(runs, flag, excluded, onChange, onRemove) {
  const values = listValues(runs, flag);
  const summary = makeElement("summary", {}, describe());
  function describe() {
    const left = values.filter((value) => !excluded.has(value));
    if (left.length === values.length) return `${flag}: all ${values.length}`;
    return left.length === 1 ? `${flag}: ${left[0]}` : `${flag}: ${left.length} of ${values.length}`;
  }
  const boxes = values.map((value) => makeElement("input", { type: "checkbox", checked: !excluded.has(value) }));
  const update = () => {
    boxes.forEach((box, i) => (box.checked ? excluded.delete(values[i]) : excluded.add(values[i])));
    summary.textContent = describe();
    filter.classList.toggle("active", excluded.size > 0);
    onChange();
  };
  const setAll = (isChecked) => {
    for (const box of boxes) box.checked = isChecked;
    update();
  };
  const labels = boxes.map((box, i) => {
    box.addEventListener("change", update);
    return makeElement("label", {}, box, values[i]);
  });
  const tools = makeElement(
    "div",
    { class: "tools" },
    makeElement("button", { type: "button", onclick: () => setAll(true) }, "All"),
    makeElement("button", { type: "button", onclick: () => setAll(false) }, "None"),
    onRemove ? makeElement("button", { type: "button", onclick: onRemove }, "Remove") : null,
  );
  const panel = makeElement("div", { class: "values" }, tools, ...labels);
  const filter = makeElement("details", { class: "filter", name: "filter" }, summary, panel);
  filter.classList.toggle("active", excluded.size > 0);
  return filter;
}

// Ticks for the flags by which the runs are grouped; `chosen` is their list, in the order of the ticks.
export function fillGrouping(place, flags, chosen, onChange) {
  const boxes = flags.map((flag) => makeElement("input", { type: "checkbox", checked: chosen.includes(flag), value: flag }));
  const labels = boxes.map((box, i) => {
    box.addEventListener("change", () => onChange(flags.filter((_, j) => boxes[j].checked)));
    return makeElement("label", {}, box, flags[i]);
  });
  place.replaceChildren(...labels);
}
