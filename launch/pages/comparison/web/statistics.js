// The page's maths: results by seed, means with intervals, curves, and paired differences, as `seed_statistics.py` and
// `estimates.py` have them. A `view` is what is shown, see sections.js: of it {content, metric, at, axis} count here.

import { compareValues } from "./numbers.js";

const ROUNDING = 1e-9; // a spread this small, as a share of the numbers, is that of rounding
const MOST_COMPARED_ROUNDS = 200; // of differences over the rounds

export function computeMean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

// Of values in ascending order, on straight lines between neighbours; null without any.
export function computeQuantile(values, share) {
  if (!values.length) return null;
  const place = share * (values.length - 1);
  const below = Math.floor(place);
  return values[below] + (place - below) * (values[Math.min(below + 1, values.length - 1)] - values[below]);
}

// Whether all values are equal but for rounding.
export function isConstant(values) {
  const largest = Math.max(...values.map(Math.abs));
  return Math.max(...values) - Math.min(...values) <= ROUNDING * Math.max(1, largest);
}

// Student's t interval of the mean, {mean, low, high, count}. `quantiles[k - 1]` is that of k degrees of freedom. The
// ends are null where there is no interval: for a single value, and for values that are all equal. They are cut at
// `bounds`, the least and the largest that a value can be, null for none.
export function estimateMean(values, quantiles, bounds = [null, null]) {
  const [mean, count] = [computeMean(values), values.length];
  if (count < 2 || isConstant(values)) return { mean, low: null, high: null, count };
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const half = quantiles[count - 2] * Math.sqrt(squares / (count - 1) / count);
  const [least, most] = bounds;
  const [low, high] = [mean - half, mean + half];
  return { mean, low: least === null ? low : Math.max(least, low), high: most === null ? high : Math.min(most, high), count };
}

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

// Whether all that was measured of a metric are whole numbers.
export function isCount(runs, metric) {
  return runs.every((run) => (readColumn(run, metric) ?? []).every((value) => value === null || Number.isInteger(value)));
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

// {seed: mean of its values} of [seed, value], in the order of the seeds: runs with the same seed count as one.
export function averageRepeats(measured) {
  const bySeed = new Map();
  for (const [seed, value] of measured) bySeed.set(seed, [...(bySeed.get(seed) ?? []), value]);
  return new Map([...bySeed].sort(([one], [other]) => compareValues(one, other)).map(([seed, all]) => [seed, computeMean(all)]));
}

// One result a seed, {seed: value}: the mean over the group's runs with that seed.
export function readSeedResults({ content, metric, at }, group) {
  const results = group.runs.map((run) => [run.flags[content.seed], readResult(run, metric, at)?.value]);
  return averageRepeats(results.filter(([, value]) => value !== undefined));
}

// {mean, low, high, count} over the seeds; null without any result.
export function summarizeGroup(view, group) {
  const values = [...readSeedResults(view, group).values()];
  return values.length ? estimateMean(values, view.content.quantiles, findBounds(view.metric)) : null;
}

// Differences "one minus other" by seed, {pairs: [{seed, one, other, difference}], mean, low, high, count}, over the seeds
// that both groups have; null if they share none, or are of different data.
export function estimatePairs(view, one, other) {
  if (!areOfOneData(one, other)) return null;
  const [ours, theirs] = [one, other].map((group) => readSeedResults(view, group));
  const pairs = [...ours]
    .filter(([seed]) => theirs.has(seed))
    .map(([seed, value]) => ({ seed, one: value, other: theirs.get(seed), difference: value - theirs.get(seed) }));
  return pairs.length ? { pairs, ...estimateMean(pairs.map((pair) => pair.difference), view.content.quantiles) } : null;
}

// Whether two groups may be paired: the data under their name are the same, as far as is known.
export function areOfOneData(one, other) {
  return new Set([...one.runs, ...other.runs].map((run) => run.flags.data_version)).size <= 1;
}

// The mean curve of a group, [{round, x, mean, low, high, lowest, highest, count}]: at the rounds at which all of its runs
// that have the metric were measured, so that nothing changes but the rounds. x is the mean over the runs, too.
export function computeCurve({ content, metric, axis }, group) {
  const runs = group.runs.filter((run) => readColumn(run, metric) && readColumn(run, axis));
  const byRound = new Map();
  for (const run of runs) {
    for (const { round, x, mean } of readCurve(run, metric, axis)) {
      if (!byRound.has(round)) byRound.set(round, []);
      byRound.get(round).push({ seed: run.flags[content.seed], x, value: mean });
    }
  }
  return [...byRound]
    .filter(([, points]) => points.length === runs.length)
    .sort(([one], [other]) => one - other)
    .map(([round, points]) => {
      const values = [...averageRepeats(points.map(({ seed, value }) => [seed, value])).values()];
      const [lowest, highest] = [Math.min(...values), Math.max(...values)];
      const x = computeMean(points.map((point) => point.x));
      return { round, x, ...estimateMean(values, content.quantiles, findBounds(metric)), lowest, highest };
    });
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

// The paired differences at rounds that the curves of both groups have, [{round, x, mean, low, high, count}]; of many
// rounds, at some.
export function comparePairsByRound(view, one, other) {
  const [ours, theirs] = [one, other].map((group) => computeCurve({ ...view, axis: "round" }, group).map((point) => point.round));
  const known = new Set(theirs);
  const shared = ours.filter((round) => known.has(round));
  const step = Math.ceil(shared.length / MOST_COMPARED_ROUNDS);
  return shared
    .filter((_, i) => i % step === step - 1 || i === shared.length - 1)
    .map((round) => ({ round, x: round, ...estimatePairs({ ...view, at: round }, one, other) }))
    .filter((point) => point.count);
}
