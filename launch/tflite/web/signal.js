// An example that is no picture, drawn as lines: one for each channel.

import { splitChannels } from "./examples.js";
import { formatNumber } from "./maths.js";
import { findRange } from "./strokes.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 600;
const LISTED = 16; // so few numbers are also written out

export function showSignal(place, values, shape, features) {
  const channels = splitChannels(values, shape);
  const height = channels.length > 1 ? 56 : 180;
  place.replaceChildren(
    ...channels.map((channel, i) => drawLine(channel, channels.length > 1 ? nameChannel(features, i) : "", height)),
  );
  if (values.length <= LISTED) place.append(listValues(values, features));
}

function nameChannel(features, i) {
  return features ? features[i] : `channel ${i + 1}`;
}

function drawLine(values, name, height) {
  const [low, high] = findRange(values);
  const range = high - low || 1;
  const points = values.map((value, i) => {
    const x = (WIDTH * i) / Math.max(values.length - 1, 1);
    return `${x.toFixed(1)},${(4 + (height - 8) * (1 - (value - low) / range)).toFixed(1)}`;
  });
  const said = `${values.length} values from ${formatNumber(low)} to ${formatNumber(high)}`;
  const svg = make("svg", { viewBox: `0 0 ${WIDTH} ${height}`, preserveAspectRatio: "none", role: "img" });
  svg.setAttribute("aria-label", name ? `${name}: ${said}` : said);
  svg.append(make("polyline", { points: points.join(" ") }));
  const caption = document.createElement("figcaption");
  caption.textContent = svg.getAttribute("aria-label");
  const figure = document.createElement("figure");
  figure.append(svg, caption);
  return figure;
}

function make(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function listValues(values, features) {
  const list = document.createElement("dl");
  list.className = "rows";
  values.forEach((value, i) => {
    const [term, number] = [document.createElement("dt"), document.createElement("dd")];
    term.textContent = features ? features[i].replaceAll("_", " ") : `value ${i + 1}`;
    number.textContent = formatNumber(value);
    list.append(term, number);
  });
  return list;
}
