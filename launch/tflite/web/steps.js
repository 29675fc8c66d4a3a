// The steps of a window: one is chosen, marked in every line, and its values are written out by channel.

import { makeElement } from "./answer.js";
import { splitChannels } from "./examples.js";
import { formatNumber } from "./maths.js";
import { nameFeature, showSignal } from "./signal.js";

export class Steps {
  // `place` is the element, `shape` that of an example: steps, channels.
  constructor(place, shape, features) {
    Object.assign(this, { shape, features });
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
    this.channels = splitChannels(example, this.shape);
    showSignal(this.lines, example, this.shape, this.features);
    this.mark();
  }

  mark() {
    const step = this.slider.valueAsNumber - 1;
    this.label.textContent = `Step ${step + 1} of ${this.shape[0]}`;
    for (const svg of this.lines.querySelectorAll("svg")) markStep(svg, step, this.shape[0]);
    this.list.replaceChildren(...listStep(this.channels, this.features, step));
  }
}

function listStep(channels, features, step) {
  return channels.flatMap((channel, i) => [
    makeElement("dt", nameFeature(features[i])),
    makeElement("dd", formatNumber(channel[step])),
  ]);
}

// A line across the drawing where the step is.
function markStep(svg, step, steps) {
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const x = (width * step) / Math.max(steps - 1, 1);
  const mark = svg.querySelector("line") ?? svg.appendChild(document.createElementNS(svg.namespaceURI, "line"));
  for (const [name, value] of Object.entries({ x1: x, x2: x, y1: 0, y2: height })) mark.setAttribute(name, value);
}
