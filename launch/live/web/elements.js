// Makes parts of a page.

// An element with properties, attributes where a name has a dash, and children, elements or texts.
export function make(tag, given = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name.includes("-") || name === "role") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

let numLabels = 0;

// A control with its label before it.
export function label(text, control) {
  control.id ||= `control-${++numLabels}`;
  return [make("label", { htmlFor: control.id }, text), " ", control];
}

// How many examples of each class there are; `labels` has the class of each.
export function makeCounts(classes, labels) {
  const counts = classes.map(() => 0);
  for (const place of labels) counts[place] += 1;
  const items = classes.map((name, place) =>
    make(
      "li",
      { className: counts[place] ? "" : "none" },
      make("span", {}, name),
      " ",
      make("strong", {}, String(counts[place])),
    ),
  );
  return make("ul", { className: "counts", role: "list", "aria-label": "Examples of each class" }, ...items);
}
