// The steps of a window: one is chosen, marked in every line, and its values are written out by channel.

import { makeElement } from "./answer.js";
import { listLines, showSignal } from "./signal.js";

export class Steps {
  // `place` is the element, `shape` that of an example: steps, channels.
  constructor(place, shape, features, groups = []) {
    Object.assign(this, { shape, features, groups });
    this.lines = makeElement("div", "", "lines");
    this.slider = document.createElement("input");
    Object.assign(this.slider, { type: "range", min: 1, max: shape[0], step: 1, value: 1, id: "step" });
    this.label = makeElement("label", "");
    this.label.htmlFor = "step";
    this.list = makeElement("dl", "", "rows");
    place.replaceChildren(this.lines, makeElement("div", [this.label, this.slider], "slider"), this.list);
    this.slider.addEventListener("input", () => this.mark());
  }

  show(example) {
    this.told = listLines(example, this.shape, this.features, this.groups);
    showSignal(this.lines, example, this.shape, this.features, this.groups);
    this.mark();
  }

  mark() {
    const step = this.slider.valueAsNumber - 1;
    this.label.textContent = `Step ${step + 1} of ${this.shape[0]}`;
    for (const svg of this.lines.querySelectorAll("svg")) markStep(svg, step, this.shape[0]);
    this.list.replaceChildren(...listStep(this.told, step));
  }
}

function listStep(lines, step) {
  return lines.flatMap(({ name, texts }) => [makeElement("dt", name), makeElement("dd", texts[step])]);
}

// A line across the drawing where the step is.
function markStep(svg, step, steps) {
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const x = (width * step) / Math.max(steps - 1, 1);
  const mark = svg.querySelector("line") ?? svg.appendChild(document.createElementNS(svg.namespaceURI, "line"));
  for (const [name, value] of Object.entries({ x1: x, x2: x, y1: 0, y2: height })) mark.setAttribute(name, value);
}
