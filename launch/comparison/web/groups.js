// Which runs are shown, how they are grouped, and what is computed of a group: its results, its curve, its differences.

import { compareValues, computeMean, estimateMean, formatFlag } from "./numbers.js";

// The values of a column by round, null where nothing was measured; null if the run has no such column.
export function readColumn(run, name) {
  const packed = run.columns[name];
  if (packed === undefined) return null;
  if (!Array.isArray(packed)) run.columns[name] = run.columns.round.map(() => packed);
  return run.columns[name];
}

const largerIsBetter = new Map(); // of the columns that the runs' tasks have
const bounds = new Map(); // the least and the largest value of a column, as far as they are known

// Learns from the page's content which way columns are better, and between which values they lie.
export function learnColumns(content) {
  for (const [name, isLarger] of Object.entries(content.largerIsBetter)) largerIsBetter.set(name, isLarger);
  for (const [name, ends] of Object.entries(content.bounds)) bounds.set(name, ends);
}

export function findBounds(metric) {
  return bounds.get(metric) ?? [null, null];
}

// Whether a small value is a good one; of a column that no task has, by its name.
export function isLowBetter(metric) {
  if (largerIsBetter.has(metric)) return !largerIsBetter.get(metric);
  return /loss|_std$|bytes|_s$|seconds|drift|rejected|rate|epsilon|energy|joule|age$/.test(metric) && !/accuracy$/.test(metric);
}

// {value, round} of a metric in a run: `at` is "last", "best" or a round, whose last value up to it counts. Null if
// nothing was measured by then.
export function readResult(run, metric, at) {
  const values = readColumn(run, metric);
  if (!values) return null;
  let found = null;
  for (let i = 0; i < values.length; i++) {
    const [value, round] = [values[i], run.columns.round[i]];
    if (value === null || (typeof at === "number" && round > at)) continue;
    const isBetter = found && (isLowBetter(metric) ? value < found.value : value > found.value);
    if (at !== "best" || !found || isBetter) found = { value, round };
  }
  return found;
}

// The runs that pass the filters, {flag: set of the values that are left out}, and whose name contains the text.
export function filterRuns(runs, filters, text = "") {
  const wanted = text.toLowerCase();
  return runs.filter(
    (run) =>
      run.name.toLowerCase().includes(wanted) &&
      Object.entries(filters).every(([flag, excluded]) => !excluded.has(formatFlag(run.flags[flag]))),
  );
}

// The different values of a flag, in order, as text.
export function listValues(runs, flag) {
  return [...new Set(runs.map((run) => run.flags[flag]))].sort(compareValues).map(formatFlag);
}

// The runs in groups of equal values of `flags`, [{key, label, values, runs}], in the order of the values. Runs that
// have none of the flags, as another algorithm's, form a group of their own. `titles` are those of the algorithms.
export function groupRuns(runs, flags, titles = {}) {
  const groups = new Map();
  for (const run of runs) {
    const values = flags.map((flag) => run.flags[flag]);
    const key = values.map(formatFlag).join(", ");
    if (!groups.has(key)) groups.set(key, { key, values, label: labelGroup(flags, values, titles), runs: [] });
    groups.get(key).runs.push(run);
  }
  const order = (one, other) =>
    flags.map((_, i) => compareValues(one.values[i], other.values[i])).find((sign) => sign !== 0) ?? 0;
  return [...groups.values()].sort(order);
}

// One flag's value alone; of several the names as well, but for text, which speaks for itself.
function labelGroup(flags, values, titles) {
  if (!flags.length) return "all runs";
  const shown = flags.map((flag, i) => (flag === "algo" ? (titles[values[i]] ?? values[i]) : values[i]));
  if (flags.length === 1) return formatFlag(shown[0]);
  const parts = flags.map((flag, i) => {
    const isPlain = typeof shown[i] === "string" && shown[i] !== "";
    if (shown[i] === undefined) return null;
    return isPlain ? shown[i] : `${flag.replaceAll("_", " ")} ${formatFlag(shown[i])}`;
  });
  return parts.filter((part) => part !== null).join(", ");
}

// One result a seed, {seed: value}: the mean over the group's runs with that seed.
export function readSeedResults(group, metric, at, seedFlag) {
  const bySeed = new Map();
  for (const run of group.runs) {
    const result = readResult(run, metric, at);
    if (!result) continue;
    const seed = run.flags[seedFlag];
    bySeed.set(seed, [...(bySeed.get(seed) ?? []), result.value]);
  }
  return new Map([...bySeed].sort(([one], [other]) => compareValues(one, other)).map(([seed, all]) => [seed, computeMean(all)]));
}

// {mean, low, high, count} over the seeds; null without any result.
export function summarizeGroup(group, metric, at, seedFlag, quantiles) {
  const values = [...readSeedResults(group, metric, at, seedFlag).values()];
  if (!values.length) return null;
  return { ...estimateMean(values, quantiles, findBounds(metric)), count: values.length };
}

// The mean curve of a group, [{round, x, mean, low, high, lowest, highest, count}]: at the rounds at which all of its runs
// that have the metric were measured, so that nothing changes but the rounds. x is the mean over the runs, too.
export function computeCurve(group, metric, axis, seedFlag, quantiles) {
  const runs = group.runs.filter((run) => readColumn(run, metric) && readColumn(run, axis));
  const byRound = new Map();
  for (const run of runs) {
    const [ys, xs] = [readColumn(run, metric), readColumn(run, axis)];
    run.columns.round.forEach((round, i) => {
      if (ys[i] === null || xs[i] === null) return;
      if (!byRound.has(round)) byRound.set(round, []);
      byRound.get(round).push({ seed: run.flags[seedFlag], x: xs[i], y: ys[i] });
    });
  }
  return [...byRound]
    .filter(([, points]) => points.length === runs.length)
    .sort(([one], [other]) => one - other)
    .map(([round, points]) => {
      const bySeed = new Map();
      for (const point of points) bySeed.set(point.seed, [...(bySeed.get(point.seed) ?? []), point.y]);
      const values = [...bySeed.values()].map(computeMean);
      const [lowest, highest] = [Math.min(...values), Math.max(...values)];
      const x = computeMean(points.map((point) => point.x));
      return { round, x, ...estimateMean(values, quantiles, findBounds(metric)), lowest, highest, count: values.length };
    });
}

// Whether all that was measured of a metric are whole numbers.
export function isCount(runs, metric) {
  return runs.every((run) => (readColumn(run, metric) ?? []).every((value) => value === null || Number.isInteger(value)));
}

// A run's own curve, [{round, x, mean}].
export function readCurve(run, metric, axis) {
  const [ys, xs] = [readColumn(run, metric), readColumn(run, axis)];
  if (!ys || !xs) return [];
  return ys
    .map((y, i) => ({ round: run.columns.round[i], x: xs[i], mean: y }))
    .filter((point) => point.mean !== null && point.x !== null);
}

// The points with means over a window of so many points around each; near an end over fewer, as many on either side.
export function smoothCurve(points, window) {
  const half = Math.floor(window / 2);
  return points.map((point, i) => {
    const near = Math.min(half, i, points.length - 1 - i);
    return { ...point, mean: computeMean(points.slice(i - near, i + near + 1).map((each) => each.mean)) };
  });
}

// Differences "one minus other" by seed, [{seed, one, other, difference}], of the seeds that both groups have.
export function pairGroups(one, other, metric, at, seedFlag) {
  const [ours, theirs] = [one, other].map((group) => readSeedResults(group, metric, at, seedFlag));
  return [...ours]
    .filter(([seed]) => theirs.has(seed))
    .map(([seed, value]) => ({ seed, one: value, other: theirs.get(seed), difference: value - theirs.get(seed) }));
}

// The flags, of those given, that have several values inside a group.
export function findMixedFlags(group, flags) {
  return flags.filter((flag) => new Set(group.runs.map((run) => formatFlag(run.flags[flag]))).size > 1);
}
