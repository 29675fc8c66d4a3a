// An example that is a series, drawn as lines: one for each channel, or category.

import { splitChannels } from "./examples.js";
import { NO_CHOICE, joinGroups, nameChoice, readChoice } from "./groups.js";
import { formatNumber } from "./maths.js";
import { findRange } from "./strokes.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 600;
const SHOWN_VALUES = 12; // of a category, below its line

export function showSignal(place, values, shape, features, groups = []) {
  const lines = listLines(values, shape, features, groups);
  const height = lines.length > 1 ? 56 : 180;
  place.replaceChildren(...lines.map((line) => drawLine(line, height)));
}

// The channels by name, and in place of those of a category the one that each step has: {name, values, texts}. The texts
// are those of the values, as they are read out.
export function listLines(values, shape, features, groups) {
  const channels = splitChannels(values, shape);
  return joinGroups(channels.length, groups).map(({ place, group }) => {
    if (!group) {
      const channel = channels[place];
      return { name: nameFeature(features[place]), values: channel, texts: channel.map(formatNumber), group };
    }
    const choices = channels[place].map((_, step) => readChoice(channels.map((channel) => channel[step]), group));
    const texts = choices.map((choice) => nameChoice(group, choice));
    return { name: group.name, values: choices.map((choice) => (choice === NO_CHOICE ? -1 : choice)), texts, group };
  });
}

// The name of a feature or channel with its unit; "" of none.
export function nameFeature(feature) {
  if (!feature) return "";
  return feature.unit ? `${feature.name} [${feature.unit}]` : feature.name;
}

function drawLine({ name, values, texts, group }, height) {
  const [low, high] = findRange(values);
  const span = high - low || 1;
  const points = values.map((value, i) => {
    const x = (WIDTH * i) / Math.max(values.length - 1, 1);
    return `${x.toFixed(1)},${(4 + (height - 8) * (1 - (value - low) / span)).toFixed(1)}`;
  });
  const range = group ? listSome(new Set(texts)) : `${formatNumber(low)} to ${formatNumber(high)}`;
  const said = `${values.length} values ${group ? "of" : "from"} ${range}`;
  const svg = make("svg", { viewBox: `0 0 ${WIDTH} ${height}`, preserveAspectRatio: "none", role: "img" });
  svg.setAttribute("aria-label", name ? `${name}: ${said}` : said);
  svg.append(make("polyline", { points: points.join(" ") }));
  const caption = document.createElement("figcaption");
  caption.textContent = name ? `${name}${group ? ":" : ","} ${range}` : said;
  const figure = document.createElement("figure");
  figure.append(svg, caption);
  return figure;
}

// Of many texts the first.
function listSome(texts) {
  const shown = [...texts].slice(0, SHOWN_VALUES).join("; ");
  return texts.size > SHOWN_VALUES ? `${shown}; …` : shown;
}

function make(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}
