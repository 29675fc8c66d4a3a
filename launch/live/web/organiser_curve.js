// The curve of the accuracy over the rounds, as an SVG whose units are pixels, so that its letters keep their size.

const SVG = "http://www.w3.org/2000/svg";
const LETTERS = 22; // pixels
const LEAST_HEIGHT = 220;
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000];

function make(name, attributes, text = "") {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text) element.textContent = text;
  return element;
}

// Every so many rounds, and the last one, without one that would be too near to it.
function listTicks(lastRound, step) {
  const ticks = Array.from({ length: Math.floor(lastRound / step) + 1 }, (_, i) => i * step);
  const gap = lastRound - ticks.at(-1);
  if (!gap) return ticks;
  return [...(gap < 0.7 * step && ticks.length > 1 ? ticks.slice(0, -1) : ticks), lastRound];
}

// history: rows of {round, accuracy}, of which an accuracy may be null; lastRound: where the axis of rounds ends.
export function drawCurve(place, history, lastRound) {
  const width = place.clientWidth;
  const height = Math.max(place.clientHeight, LEAST_HEIGHT);
  if (!width) return;
  const letters = width < 500 ? 15 : LETTERS;
  const left = 3.6 * letters;
  const [right, top, bottom] = [letters, letters, height - 2.9 * letters];
  const x = (round) => left + ((width - left - right) * round) / Math.max(lastRound, 1);
  const y = (accuracy) => bottom - (bottom - top) * accuracy;
  const svg = make("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "font-size": letters });
  const known = history.filter((each) => each.accuracy !== null);
  const last = known.at(-1);
  const said = last ? `it is ${(100 * last.accuracy).toFixed(1)} % in round ${last.round}` : "there is none yet";
  svg.setAttribute("aria-label", `Accuracy by round: ${said}`);
  for (const percent of [0, 25, 50, 75, 100]) {
    const at = y(percent / 100);
    svg.append(make("line", { class: "grid", x1: left, x2: width - right, y1: at, y2: at }));
    svg.append(make("text", { x: left - 0.4 * letters, y: at + 0.35 * letters, "text-anchor": "end" }, `${percent} %`));
  }
  const step = STEPS.find((each) => lastRound / each <= width / (4.5 * letters)) ?? STEPS.at(-1);
  for (const round of listTicks(lastRound, step)) {
    svg.append(make("line", { class: "tick", x1: x(round), x2: x(round), y1: bottom, y2: bottom + 0.3 * letters }));
    svg.append(make("text", { x: x(round), y: bottom + 1.3 * letters, "text-anchor": "middle" }, String(round)));
  }
  const middle = { x: (left + width - right) / 2, y: height - 0.3 * letters, "text-anchor": "middle" };
  svg.append(make("text", middle, "round"));
  const points = known.map((each) => `${x(each.round).toFixed(1)},${y(each.accuracy).toFixed(1)}`);
  if (points.length > 1) svg.append(make("polyline", { class: "line", points: points.join(" ") }));
  if (last) svg.append(make("circle", { class: "end", cx: x(last.round), cy: y(last.accuracy), r: letters / 3 }));
  place.replaceChildren(svg);
}
