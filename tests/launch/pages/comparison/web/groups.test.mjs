// The page's maths and grouping, by hand-worked numbers; test_page.py compares its means and intervals with Python's.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as charts from "../../../../../launch/pages/comparison/web/charts.js";
import * as groups from "../../../../../launch/pages/comparison/web/groups.js";
import * as numbers from "../../../../../launch/pages/comparison/web/numbers.js";
import * as statistics from "../../../../../launch/pages/comparison/web/statistics.js";

const QUANTILES = [12.706, 4.303, 3.182]; // of Student's t, from a printed table
const VIEW = { content: { seed: "seed", quantiles: QUANTILES }, metric: "a", at: "last", axis: "round" };

function makeRun(seed, flags, columns) {
  return { name: `run_${seed}`, flags: { seed, ...flags }, columns };
}

const near = (value, expected) => assert.ok(Math.abs(value - expected) < 1e-9, `${value} is not ${expected}`);

test("quantiles lie on straight lines between neighbours", () => {
  assert.deepEqual([0, 0.25, 0.5, 1].map((share) => statistics.computeQuantile([1, 3], share)), [1, 1.5, 2, 3]);
  assert.equal(statistics.computeQuantile([], 0.5), null);
});

test("values are ordered by size, text by the alphabet, what is missing last", () => {
  const mixed = ["b", 10, undefined, 2, "a"];
  assert.deepEqual([...mixed].sort(numbers.compareValues), [2, 10, "a", "b", undefined]);
  assert.deepEqual(["alpha10", "alpha2"].sort(numbers.compareValues), ["alpha2", "alpha10"]);
});

test("numbers are written as one reads them", () => {
  assert.deepEqual([0.91234, 0.0001, 12.345, 123456, 7, null].map((value) => numbers.formatNumber(value)), ["0.9123", "1.00e-4", "12.35", "123,456", "7", "–"]);
  assert.equal(numbers.formatNumber(1, false), "1.0000");
  assert.deepEqual([999, 1500, 18.4e6].map(numbers.formatBytes), ["999 B", "1.50 kB", "18.4 MB"]);
  assert.deepEqual([5, 90, 7200].map(numbers.formatSeconds), ["5.00 s", "1.50 min", "2.00 h"]);
});

test("a result is the last measured one, the best one, or that up to a round", () => {
  const run = makeRun(0, {}, { round: [1, 2, 3, 4], test_accuracy: [0.5, 0.7, 0.6, null], test_loss: [3, 1, 2, null] });
  assert.deepEqual(statistics.readResult(run, "test_accuracy", "last"), { value: 0.6, round: 3 });
  assert.deepEqual(statistics.readResult(run, "test_accuracy", "best"), { value: 0.7, round: 2 });
  assert.deepEqual(statistics.readResult(run, "test_loss", "best"), { value: 1, round: 2 });
  assert.deepEqual(statistics.readResult(run, "test_accuracy", 1), { value: 0.5, round: 1 });
  assert.equal(statistics.readResult(run, "drift", "last"), null);
});

test("a packed column stands for every round", () => {
  const run = makeRun(0, {}, { round: [1, 2, 3], num_clients: 6 });
  assert.deepEqual(statistics.readColumn(run, "num_clients"), [6, 6, 6]);
});

test("groups are in the order of their values, and a run without the flag stands alone", () => {
  const runs = [10, 2, undefined, 2].map((temperature, i) => makeRun(i, temperature === undefined ? {} : { temperature }, { round: [1] }));
  const found = groups.groupRuns(runs, ["temperature"]);
  assert.deepEqual(found.map((group) => [group.label, group.runs.length]), [["2", 2], ["10", 1], ["–", 1]]);
  assert.equal(groups.groupRuns(runs, [])[0].label, "all runs");
});

test("filters leave values out, and a text keeps names", () => {
  const runs = [1, 2, 3].map((seed) => makeRun(seed, {}, {}));
  const kept = groups.filterRuns(runs, { seed: new Set(["2"]) });
  assert.deepEqual(kept.map((run) => run.flags.seed), [1, 3]);
  assert.deepEqual(groups.filterRuns(runs, {}, "RUN_3").map((run) => run.flags.seed), [3]);
});

test("a curve is the mean at the rounds that all runs have, over the mean of the other axis", () => {
  const runs = [
    makeRun(0, {}, { round: [1, 2, 3], a: [1, 2, 3], seconds: [10, 20, 30] }),
    makeRun(1, {}, { round: [1, 2], a: [3, 6], seconds: [20, 40] }),
  ];
  const curve = statistics.computeCurve({ ...VIEW, axis: "seconds" }, { runs });
  assert.deepEqual(curve.map(({ round, x, mean, lowest, highest, count }) => [round, x, mean, lowest, highest, count]), [
    [1, 15, 2, 1, 3, 2],
    [2, 30, 4, 2, 6, 2],
  ]);
  assert.deepEqual(statistics.readCurve(runs[1], "a", "seconds").map((point) => point.x), [20, 40]);
});

test("groups are paired by the seeds that both have", () => {
  const group = (seeds, value, rounds = [1, 2]) => ({
    runs: seeds.map((seed) => makeRun(seed, {}, { round: rounds, a: rounds.map((round) => value * round + seed) })),
  });
  const [one, other] = [group([0, 1, 2], 0.5, [1, 2, 3]), group([1, 2, 3], 0.25)];
  const { pairs, mean, low, count } = statistics.estimatePairs(VIEW, one, other);
  assert.deepEqual(pairs.map(({ seed, difference }) => [seed, difference]), [[1, 1], [2, 1]]);
  assert.deepEqual([mean, low, count], [1, null, 2]);
  assert.equal(statistics.estimatePairs(VIEW, one, group([3], 0.5)), null);
  const points = statistics.comparePairsByRound(VIEW, one, other);
  assert.deepEqual(points.map((point) => [point.round, point.mean, point.count]), [[1, 0.25, 2], [2, 0.5, 2]]);
});

test("the same seeds of different data are no pairs", () => {
  const group = (version) => ({ runs: [makeRun(0, version ? { data_version: version } : {}, { round: [1], a: [1] })] });
  assert.equal(statistics.estimatePairs(VIEW, group("data 1"), group("data 2")), null);
  assert.equal(statistics.estimatePairs(VIEW, group("data 1"), group("")), null); // not known to be the same
  assert.equal(statistics.estimatePairs(VIEW, group("data 1"), group("data 1")).count, 1);
});

test("flags that vary inside a group are named", () => {
  const runs = [1, 2].map((seed) => makeRun(seed, { alpha: seed, algo: "fedavg" }, {}));
  assert.deepEqual(groups.findMixedFlags({ runs }, ["alpha", "algo"]), ["alpha"]);
});

test("small is good for losses and bytes, not for accuracies", () => {
  assert.deepEqual(["test_loss", "bytes_up", "client_test_accuracy_std", "total_drift"].map(statistics.isLowBetter), [true, true, true, true]);
  assert.deepEqual(["test_accuracy", "client_test_accuracy_worst_tenth", "silhouette"].map(statistics.isLowBetter), [false, false, false]);
});

test("the interval of a curve ends where values end", () => {
  statistics.learnColumns({ largerIsBetter: {}, bounds: { share: [0, 1] } });
  const runs = [0.1, 0.9].map((share, seed) => makeRun(seed, {}, { round: [1], share: [share] }));
  const [{ low, high }] = statistics.computeCurve({ ...VIEW, metric: "share" }, { runs });
  assert.deepEqual([low, high], [0, 1]);
});

test("groups are called by titles and by flags without the algorithm's name", () => {
  const runs = [["fedavg", 0.1], ["fedavg", 0.2]].map(([algo, rate], i) => makeRun(i, { algo, learning_rate: rate }, { round: [1] }));
  const titles = { fedavg: "FedAvg" };
  const names = (flags) => groups.groupRuns(runs, flags, titles).map((group) => group.label);
  assert.deepEqual(names(["algo"]), ["FedAvg"]);
  assert.deepEqual(names(["algo", "learning_rate"]), ["FedAvg, learning rate 0.1", "FedAvg, learning rate 0.2"]);
});

test("a smoothed curve keeps its ends and its rounds", () => {
  const points = [1, 2, 6, 4].map((mean, i) => ({ round: i + 1, x: i + 1, mean, low: null }));
  const smoothed = statistics.smoothCurve(points, 3);
  assert.deepEqual(smoothed.map((point) => [point.round, point.mean]), [[1, 1], [2, 3], [3, 4], [4, 4]]);
  assert.deepEqual(statistics.smoothCurve(points.slice(0, 1), 9), points.slice(0, 1));
});

const curveOf = (values, first = 1) => [{ points: values.map((mean, i) => ({ x: first + i, mean })), runs: [] }];

test("axes span what was measured, end near the bounds, and count rounds", () => {
  const [low, high] = charts.findRange(curveOf([0.5, 1]), [0, 1]);
  near(low, 0.46);
  near(high, 1.0116);
  assert.deepEqual(charts.findRange([], [0, 1]), [0, 1]);
  assert.deepEqual(charts.countValues(curveOf([1, 2.5, 4])), { dtick: 1, tickformat: ",d" });
  assert.deepEqual(charts.countValues(curveOf([2.2, 2.6])), {});
  assert.ok(statistics.isCount([makeRun(0, {}, { round: [1, 2], a: [3, null] })], "a"));
  assert.ok(!statistics.isCount([makeRun(0, {}, { round: [1], a: [0.5] })], "a"));
  assert.deepEqual(charts.countRounds(curveOf([0.5], 10)), { range: [9, 11], dtick: 1, tickformat: ",d" });
  assert.deepEqual(charts.countRounds(curveOf([1, 2, 3])), { dtick: 1, tickformat: ",d" });
  assert.deepEqual(charts.countRounds(curveOf(Array(20).fill(1))), { tickformat: ",d" });
});
