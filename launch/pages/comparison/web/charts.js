// The charts, drawn by Plotly: curves with bands, results of the groups, differences by seed.

import { formatNumber } from "./numbers.js";

const DASHES = ["solid", "dash", "dashdot", "dot"];
const MOST_POINTS_MARKED = 30;
// The second half: no chart leaves the page. Plotly's toolbar offers to send it to Plotly's cloud, under a name that
// differs between versions, and links to Plotly.
const CONFIG = {
  responsive: true,
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "sendChartToCloud", "sendDataToCloud", "editInChartStudio"],
  ...{ displaylogo: false, showLink: false, sendData: false },
  ...{ showSendToCloud: false, showEditInChartStudio: false, plotlyServerURL: "" },
};

function readColor(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Black is no colour for a line on a dark page.
export function chooseStyle(index, colors, own = null) {
  const color = own ?? colors[index % colors.length];
  const isDark = readColor("--scheme") === "dark";
  return {
    color: color === "#000000" && isDark ? "#ffffff" : color,
    dash: DASHES[Math.floor(index / colors.length) % DASHES.length],
  };
}

// Of a level that stands for no group.
export function chooseLevelStyle(index) {
  return { color: "#888888", dash: index % 2 ? "dot" : "dash" };
}

function fade(color, share) {
  const [red, green, blue] = [1, 3, 5].map((start) => parseInt(color.slice(start, start + 2), 16));
  return `rgba(${red},${green},${blue},${share})`;
}

function makeLayout(place, xTitle, yTitle, further = {}) {
  const line = { gridcolor: readColor("--line"), zerolinecolor: readColor("--line"), linecolor: readColor("--line"), automargin: true };
  const isNarrow = place.clientWidth < 640;
  return {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: readColor("--font"), size: 13, color: readColor("--text") },
    margin: { l: 60, r: 16, t: 16, b: 48 },
    hoverlabel: { bgcolor: readColor("--panel"), bordercolor: readColor("--line"), font: { color: readColor("--text") }, namelength: 40 },
    showlegend: false, // it stands beside the chart, see legend.js
    dragmode: isNarrow ? false : "zoom",
    ...further,
    xaxis: { title: { text: escapeText(xTitle) }, ...line, ...further.xaxis },
    yaxis: { title: { text: escapeText(yTitle) }, ...line, ...further.yaxis },
  };
}

function draw(place, traces, layout) {
  const isNarrow = place.clientWidth < 640;
  return Plotly.react(place, traces, layout, { ...CONFIG, displayModeBar: isNarrow ? false : "hover" });
}

// Curves, [{label, style, points, raw, runs, isLevel}]: `points` with ends of the band; `raw` what they were before they were
// smoothed, if they were; and under `runs` the curves of single runs in place of the band. The band is {low, high, name}:
// which ends, and what they are; null for none. `bounds` are those of the values; counts have whole numbers on their axis.
export function drawCurves(place, curves, band, xTitle, yTitle, isByRound, { bounds = [null, null], areCounts = false } = {}) {
  const bands = [];
  const lines = [];
  curves.forEach(({ label, style, points, raw, runs, isLevel = false }, i) => {
    const group = String(i);
    const inBand = band ? points.filter((point) => point[band.low] !== null) : [];
    if (inBand.length > 1) {
      const back = [...inBand].reverse();
      bands.push({
        x: [...inBand, ...back].map((point) => point.x),
        y: [...inBand.map((point) => point[band.high]), ...back.map((point) => point[band.low])],
        ...{ fill: "toself", fillcolor: fade(style.color, 0.16), line: { width: 0 }, mode: "lines" },
        ...{ hoverinfo: "skip", legendgroup: group, type: "scatter" },
      });
    }
    if (raw) {
      bands.push({
        ...{ x: raw.map((point) => point.x), y: raw.map((point) => point.mean), type: "scatter", mode: "lines" },
        ...{ line: { color: fade(style.color, 0.4), width: 1 }, hoverinfo: "skip", legendgroup: group },
      });
    }
    for (const run of runs) {
      bands.push({
        ...{ x: run.points.map((point) => point.x), y: run.points.map((point) => point.mean), name: escapeText(run.name), type: "scatter" },
        ...{ mode: run.points.length > 1 ? "lines" : "markers", line: { color: fade(style.color, 0.45), width: 1 }, legendgroup: group },
        marker: { size: 7, symbol: "circle-open", color: style.color },
        customdata: run.points.map((point) => point.round),
        hovertemplate: `%{y:.4g} in round %{customdata}<extra>${escapeText(run.name)}</extra>`,
      });
    }
    (isLevel ? bands : lines).push({
      ...{ x: points.map((point) => point.x), y: points.map((point) => point.mean), type: "scatter" },
      name: escapeText(shorten(label, place)),
      ...{ mode: isLevel || points.length > MOST_POINTS_MARKED ? "lines" : "lines+markers", legendgroup: group },
      ...{ line: { ...style, width: isLevel ? 1 : 2 }, marker: { size: points.length > 1 ? 5 : 9, color: style.color } },
      customdata: points.map((point) => describePoint(point, band, isByRound)),
      hovertemplate: `%{y:.4~g}%{customdata}<extra>${escapeText(label)}</extra>`,
    });
  });
  const isUnified = isByRound && curves.filter((curve) => !curve.isLevel).length <= 8;
  const further = {
    height: place.clientWidth < 640 ? 340 : 440,
    hovermode: isUnified ? "x unified" : "closest",
    xaxis: isByRound ? countRounds(curves) : { rangemode: "tozero" },
    yaxis: { range: findRange(curves, bounds), ...(areCounts ? countValues(curves) : {}) },
  };
  return draw(place, [...bands, ...lines], makeLayout(place, xTitle, yTitle, further));
}

function listPoints(curves) {
  const drawn = curves.filter((curve) => !curve.isLevel);
  return drawn.flatMap((curve) => [...curve.points, ...(curve.raw ?? []), ...curve.runs.flatMap((run) => run.points)]);
}

// What was measured, with a margin that ends at the bounds: the interval of two seeds can be so wide that nothing else
// would be seen.
export function findRange(curves, [least, most] = [null, null]) {
  const ends = listPoints(curves).flatMap((point) => [point.mean, point.lowest ?? point.mean, point.highest ?? point.mean]);
  if (!ends.length) return [0, 1];
  const low = ends.reduce((lower, value) => Math.min(lower, value));
  const high = ends.reduce((higher, value) => Math.max(higher, value));
  const margin = 0.08 * (high - low) || 0.1 * Math.abs(high) || 0.5;
  const beyond = 0.02 * (high - low + 2 * margin); // a line at the bound is not cut in half
  return [
    least === null ? low - margin : Math.max(low - margin, least - beyond),
    most === null ? high + margin : Math.min(high + margin, most + beyond),
  ];
}

// Whole numbers on the axis of rounds, and room beside a single round.
export function countRounds(curves) {
  const rounds = listPoints(curves).map((point) => point.x);
  const [first, last] = [Math.min(...rounds), Math.max(...rounds)];
  if (rounds.length && first === last) return { range: [first - 1, first + 1], dtick: 1, tickformat: ",d" };
  return last - first <= 12 ? { dtick: 1, tickformat: ",d" } : { tickformat: ",d" };
}

// Whole numbers on the axis of counts, unless their means lie so close that there would be none.
export function countValues(curves) {
  const [low, high] = findRange(curves);
  if (Math.floor(high) < Math.ceil(low)) return {};
  return high - low <= 10 ? { dtick: 1, tickformat: ",d" } : { tickformat: ",d" };
}

function describePoint(point, band, isByRound) {
  const ends = band && point[band.low] !== null ? ` (${formatNumber(point[band.low])} to ${formatNumber(point[band.high])})` : "";
  const count = point.count > 1 ? `, ${point.count} seeds` : "";
  return `${ends}${count}${isByRound ? "" : `, round ${point.round}`}`;
}

// A long name without its middle, which leaves room for the chart; most of what is kept is its end.
function shorten(label, place) {
  const most = place.clientWidth < 640 ? 24 : 40;
  const head = Math.floor(most / 4);
  return label.length <= most ? label : `${label.slice(0, head)}…${label.slice(head + 1 - most)}`;
}

// Plotly reads some tags in texts, and a run may be called anything.
export function escapeText(text) {
  return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

// Means with intervals, [{label, style, summary, seeds}], from top to bottom in the order given. Where the seeds are too
// few for an interval that says something, `seeds` are their results, which are drawn in its place.
export function drawResults(place, results, title) {
  const dots = results.filter(({ seeds }) => seeds.length).map(({ label, style, seeds }) => ({
    ...{ x: seeds, y: seeds.map(() => escapeText(label)), type: "scatter", mode: "markers" },
    marker: { size: 9, symbol: "circle-open", color: style.color },
    hovertemplate: "%{x:.4~g}, one seed<extra></extra>",
  }));
  const traces = results.map(({ label, style, summary, seeds }) => {
    const hasEnds = summary.low !== null && !seeds.length;
    const ends = hasEnds ? ` (${formatNumber(summary.low)} to ${formatNumber(summary.high)})` : "";
    return {
      ...{ x: [summary.mean], y: [escapeText(label)], type: "scatter", mode: "markers", name: escapeText(label) },
      marker: { size: 9, color: style.color },
      error_x: {
        ...{ type: "data", symmetric: true, array: [hasEnds ? summary.high - summary.mean : 0] },
        ...{ visible: hasEnds, color: style.color, thickness: 2, width: 5 },
      },
      hovertemplate: `%{x:.4~g}${ends}, ${summary.count} seeds<extra></extra>`,
    };
  });
  const order = results.map(({ label }) => escapeText(label)).reverse();
  const ticks = results.map(({ label }) => escapeText(shorten(label, place))).reverse();
  const further = {
    height: 90 + 30 * Math.max(3, results.length),
    hovermode: "closest",
    yaxis: {
      ...{ type: "category", categoryorder: "array", categoryarray: order, range: [-0.6, order.length - 0.4] },
      ...{ tickmode: "array", tickvals: order, ticktext: ticks },
    },
    xaxis: { nticks: place.clientWidth < 640 ? 3 : 5, tickangle: 0 },
  };
  return draw(place, [...dots, ...traces], makeLayout(place, title, "", further));
}

// The chart of differences shows the whole interval, and zero.
function spanZero(point) {
  const ends = [point.mean, 0, point.low ?? 0, point.high ?? 0];
  return { ...point, lowest: Math.min(...ends), highest: Math.max(...ends) };
}

// A difference over the rounds, [{round, mean, low, high}], with its interval and a line at zero. The chart is low, and
// the sentence above it names the metric.
export function drawDifference(place, points, color) {
  const style = { color, dash: "solid" };
  const label = "difference";
  const zero = { type: "line", xref: "paper", x0: 0, x1: 1, y0: 0, y1: 0, line: { color: readColor("--muted"), width: 1, dash: "dot" } };
  const curve = { label, style, points: points.map(spanZero), runs: [] };
  const drawn = drawCurves(place, [curve], { low: "low", high: "high" }, "Round", "Difference", true);
  return drawn.then(() => Plotly.relayout(place, { shapes: [zero], height: 300 }));
}
