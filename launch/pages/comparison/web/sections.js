// The sections on several runs: what is best, the table of runs, the groups, the curves.
// A `view` is what is shown: {content, runs, groups, grouping, metric, at, axis, spread, smoothing}.

import { sayGroup } from "./answer.js";
import { LEAST_SEEDS, findBaseline, judge } from "./baselines.js";
import { chooseLevelStyle, chooseStyle, drawCurves, drawResults } from "./charts.js";
import { findMixedFlags } from "./groups.js";
import { showLegend } from "./legend.js";
import { formatBytes, formatFlag, formatInterval, formatNumber, formatSeconds } from "./numbers.js";
import { computeCurve, estimatePairs, findBounds, isCount, isLowBetter } from "./statistics.js";
import { readColumn, readCurve, readResult, readSeedResults, smoothCurve, summarizeGroup } from "./statistics.js";
import { fillTable, makeElement } from "./table.js";
import { isReference, listTrivial } from "./trivial.js";
import { byId, describeTime, formatDifference, nameColumn, nameInSentence } from "./words.js";

const MOST_CURVES = 24;
const MOST_LEVELS = 4; // of trivial rows in a chart
const BANDS = {
  interval: { low: "low", high: "high", name: "the 95 % interval of the mean over the seeds (Student's t)" },
  range: { low: "lowest", high: "highest", name: "from the lowest to the highest seed" },
};
const TRIVIAL = "Trivial rows always answer with the most frequent class, without a model.";
const AVERAGED = "A seed counts once: several runs of a group with the same seed are averaged.";

// The colour and dashes of each group; of algorithms alone, those that they have in all plots.
export function styleGroups(view) {
  const { colors, algorithmColors } = view.content;
  const own = view.grouping.length === 1 && view.grouping[0] === "algo" ? view.groups.map((group) => algorithmColors[group.values[0]]) : [];
  const areDifferent = own.every(Boolean) && new Set(own).size === own.length;
  return new Map(view.groups.map((group, i) => [group.key, chooseStyle(i, colors, areDifferent ? own[i] : null)]));
}

// The trivial rows of the metric, with their results.
export function summarizeTrivial(view) {
  return listTrivial(view).map((group) => ({ group, summary: summarizeGroup(view, group) }));
}

// The groups with a result, the best first.
export function rankGroups(view) {
  const sign = isLowBetter(view.metric) ? 1 : -1;
  const results = view.groups.map((group) => ({ group, summary: summarizeGroup(view, group) }));
  return results.filter(({ summary }) => summary).sort((one, other) => sign * (one.summary.mean - other.summary.mean));
}

// The table of runs: the flags that differ or all of them, then the results.
export function showRuns(view, sort, showsAll, onRun) {
  const { content, runs } = view;
  const all = [...new Set(runs.flatMap((run) => Object.keys(run.flags)))];
  const flags = showsAll ? all : content.differing.filter((flag) => flag !== content.experiment); // it stands in the name
  const others = content.mainResults.filter((name) => name !== view.metric && content.metrics.includes(name));
  const last = (name) => (run) => readResult(run, name, "last")?.value ?? null;
  const describe = (name) => ({
    title: nameColumn(content, name),
    hint: `${name} ${describeTime(view)}`,
    read: (run) => readResult(run, name, view.at)?.value ?? null,
    format: (value) => formatNumber(value),
  });
  const columns = [
    { title: "Run", read: (run) => run.name, isText: true },
    describe(view.metric),
    ...flags.map((flag) => ({ title: flag, read: (run) => run.flags[flag], format: formatFlag, isText: isTextFlag(runs, flag) })),
    ...others.map(describe),
    { title: "Rounds", read: last("round"), format: (value) => formatNumber(value) },
    ...[["virtual_time_s", "Virtual time", formatSeconds], ["total_bytes", "Bytes", formatBytes], ["seconds", "Training", formatSeconds]]
      .filter(([name]) => content.axes.includes(name))
      .map(([name, title, format]) => ({ title, hint: nameColumn(content, name), read: last(name), format })),
  ];
  fillTable(byId("runs"), columns, runs, sort, { onRow: onRun });
  byId("count").textContent = runs.length === content.runs.length ? `${runs.length}` : `${runs.length} of ${content.runs.length}`;
}

function isTextFlag(runs, flag) {
  return runs.some((run) => typeof run.flags[flag] === "string");
}

function formatBehind(paired) {
  if (!paired) return "–";
  const interval = paired.low === null ? "" : ` (${formatInterval(paired, formatDifference)})`;
  return `${formatDifference(paired.mean)}${interval}`;
}

function makeSwatch(color) {
  return makeElement("i", { class: "swatch", style: `background:${color}` });
}

// A name with its colour; a trivial row has none.
function nameGroup(view, group, styles) {
  if (group.isTrivial) return makeElement("span", { title: TRIVIAL }, group.label);
  const isNoted = isReference(view.content, group);
  const attributes = isNoted ? { class: "reference", title: "what personal and clustered methods are compared with" } : {};
  return makeElement("span", attributes, makeSwatch(styles.get(group.key).color), group.label);
}

// The results of the seeds where these are too few for an interval that says something; else none.
function listSeeds(view, group, { count }) {
  return count < LEAST_SEEDS ? [...readSeedResults(view, group).values()] : [];
}

// A table and a chart of the groups' results; the table has the trivial rows, too. Bold is what is better than its baseline.
export function showGroups(view, splits, ranked, trivial, styles, sort) {
  const compare = ({ group }) => {
    const baseline = findBaseline(splits, group);
    return baseline && estimatePairs(view, group, baseline);
  };
  const names = [...new Set(splits.map(({ baseline, groups }) => (baseline ? sayGroup(view, baseline, groups) : "")))];
  const columns = [
    {
      title: view.grouping.join(", ") || "Group",
      read: ({ group }) => (group.values.length === 1 ? group.values[0] : group.label),
      format: (_, { group }) => nameGroup(view, group, styles),
      isText: true,
    },
    { title: "Mean", read: ({ summary }) => summary.mean, format: (value) => formatNumber(value) },
    { title: "95 % interval", read: ({ summary }) => summary.low, format: (_, { summary }) => formatInterval(summary) },
    { title: "Seeds", read: ({ summary }) => summary.count },
    {
      title: `Minus ${names.length === 1 && names[0] ? names[0] : "the baseline of its data"}, by seed`,
      hint: "Paired difference and its 95 % interval; several groups at once, so one in twenty excludes 0 by chance",
      read: (row) => compare(row)?.mean ?? null,
      format: (_, row) => formatBehind(compare(row)),
    },
  ];
  const isBetter = (row) => judge(compare(row), view.metric) === "better";
  const classify = (row) => (row.group.isTrivial ? "trivial" : isBetter(row) ? "marked" : null);
  fillTable(byId("groups"), columns, [...ranked, ...trivial], sort, { classify });
  const results = ranked.slice(0, MOST_CURVES).map(({ group, summary }) => ({
    ...{ label: group.label, style: styles.get(group.key), summary },
    seeds: listSeeds(view, group, summary),
  }));
  const mixed = [...new Set(view.groups.flatMap((group) => findMixedFlags(group, view.content.differing)))].filter(
    (flag) => ![view.content.seed, view.content.experiment, ...view.content.unset].includes(flag),
  );
  const vary = `Inside groups, these flags vary as well: ${mixed.join(", ")}. Group or filter by them to compare like with like.`;
  const what = `${nameColumn(view.content, view.metric)} ${describeTime(view)}.${trivial.length ? ` ${TRIVIAL}` : ""}`;
  byId("groups-note").textContent = `${what} Bold: better than the baseline, and decided. ${AVERAGED} ${mixed.length ? vary : ""}`;
  return drawResults(byId("results-chart"), results, nameColumn(view.content, view.metric));
}

// The curves of the groups; of a single run, those of all columns of a kind, as of all accuracies or of all losses.
export function showCurves(view, ranked, styles) {
  const { content, metric, axis } = view;
  const drawn = ranked.slice(0, MOST_CURVES).map(({ group }) => group);
  const areRuns = view.spread === "runs";
  const hasFew = (group) => readSeedResults(view, group).size < LEAST_SEEDS && view.spread !== "none";
  const cutBand = (point) => ({ ...point, low: null, high: null, lowest: null, highest: null });
  let curves = drawn.map((group) => {
    const points = computeCurve(view, group);
    const areDrawn = areRuns || hasFew(group) || !points.length;
    return {
      ...{ label: group.label, style: styles.get(group.key), points: hasFew(group) ? points.map(cutBand) : points },
      runs: areDrawn ? group.runs.map((run) => ({ name: run.name, points: readCurve(run, metric, axis) })) : [],
    };
  });
  if (content.runs.length === 1) curves = listOwnCurves(view);
  if (view.smoothing) {
    curves = curves.map((curve) => ({ ...curve, raw: curve.points, points: smoothCurve(curve.points, view.smoothing) }));
  }
  curves.push(...listLevels(view, curves));
  const band = content.runs.length > 1 ? (BANDS[view.spread] ?? null) : null;
  const notes = [
    band && !drawn.every(hasFew) ? `Line: mean over the seeds. Band: ${band.name}; a double click shows all of it.` : "",
    band && drawn.some(hasFew) ? "Fewer than three seeds give no band: thick lines are means, thin ones the runs." : "",
    areRuns && content.runs.length > 1 ? "Thick line: mean over the seeds. Thin lines: the runs." : "",
    view.smoothing ? `Thick lines are means over ${view.smoothing} evaluated rounds, thin ones what was measured.` : "",
    content.runs.length > 1 && curves.length > 1 ? "The legend begins with the best; a click in it hides a curve." : "",
    content.runs.length > 1 ? "The mean is drawn at the rounds that all runs of a group have." : "",
    axis !== "round" && content.runs.length > 1 ? `At each round, ${nameInSentence(content, axis)} is a mean, too.` : "",
    ranked.length > MOST_CURVES ? `Drawn are the best ${MOST_CURVES} of ${ranked.length} groups; filter to see others.` : "",
    content.thinned ? "Of long runs, only some of the evaluated rounds are in this page." : "",
  ];
  byId("curves-note").textContent = notes.filter(Boolean).join(" ");
  const title = curves.length > 1 && content.runs.length === 1 ? content.kinds[findKind(content, metric)] : nameColumn(content, metric);
  const legend = content.runs.length > 1 ? view.grouping.join(", ") : "";
  const values = { bounds: findBounds(metric), areCounts: isCount(view.runs, metric) };
  showLegend(byId("curves-legend"), byId("curves"), curves, legend === "algo" ? "" : legend);
  return drawCurves(byId("curves"), curves, band, nameColumn(content, axis), title, axis === "round", values);
}

function findKind(content, metric) {
  return Object.keys(content.kinds).find((kind) => metric.endsWith(kind));
}

// The metrics that are drawn together for a single run, as all accuracies are.
function listKin(view) {
  const [run] = view.content.runs;
  const kind = findKind(view.content, view.metric);
  const isKin = (name) => name === view.metric || (kind && view.content.main.includes(name) && name.endsWith(kind));
  return view.content.metrics.filter((name) => isKin(name) && readColumn(run, name));
}

// The trivial rows as levels across the chart, which do not stretch it; none of many.
function listLevels(view, curves) {
  const isSingle = view.content.runs.length === 1;
  const rows = (isSingle ? listKin(view) : [view.metric]).flatMap((metric) =>
    summarizeTrivial({ ...view, metric }).map(({ group, summary }) => ({
      label: `${isSingle ? `${nameColumn(view.content, metric)}: ` : ""}${group.label} ${formatNumber(summary.mean)}`,
      mean: summary.mean,
    })),
  );
  if (rows.length > MOST_LEVELS) return [];
  const points = curves.flatMap((curve) => curve.points).sort((one, other) => one.x - other.x);
  return rows.map(({ label, mean }, i) => ({
    ...{ label, style: chooseLevelStyle(i), runs: [], isLevel: true },
    points: points.filter(({ x }, k) => !k || x !== points[k - 1].x).map(({ round, x }) => ({ round, x, mean, low: null, high: null })),
  }));
}

function listOwnCurves(view) {
  const [run] = view.content.runs;
  return listKin(view).map((name, i) => ({
    label: nameColumn(view.content, name),
    style: chooseStyle(i, view.content.colors),
    points: readCurve(run, name, view.axis),
    runs: [],
  }));
}

