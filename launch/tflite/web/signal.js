// An example that is a series, drawn as lines: one for each channel.

import { splitChannels } from "./examples.js";
import { formatNumber } from "./maths.js";
import { findRange } from "./strokes.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 600;

export function showSignal(place, values, shape, features) {
  const channels = splitChannels(values, shape);
  const height = channels.length > 1 ? 56 : 180;
  place.replaceChildren(
    ...channels.map((channel, i) => drawLine(channel, nameFeature(features[i]), height)),
  );
}

// The name of a feature or channel with its unit; "" of none.
export function nameFeature(feature) {
  if (!feature) return "";
  return feature.unit ? `${feature.name} [${feature.unit}]` : feature.name;
}

function drawLine(values, name, height) {
  const [low, high] = findRange(values);
  const span = high - low || 1;
  const points = values.map((value, i) => {
    const x = (WIDTH * i) / Math.max(values.length - 1, 1);
    return `${x.toFixed(1)},${(4 + (height - 8) * (1 - (value - low) / span)).toFixed(1)}`;
  });
  const range = `${formatNumber(low)} to ${formatNumber(high)}`;
  const said = `${values.length} values from ${range}`;
  const svg = make("svg", { viewBox: `0 0 ${WIDTH} ${height}`, preserveAspectRatio: "none", role: "img" });
  svg.setAttribute("aria-label", name ? `${name}: ${said}` : said);
  svg.append(make("polyline", { points: points.join(" ") }));
  const caption = document.createElement("figcaption");
  caption.textContent = name ? `${name}, ${range}` : said;
  const figure = document.createElement("figure");
  figure.append(svg, caption);
  return figure;
}

function make(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}
