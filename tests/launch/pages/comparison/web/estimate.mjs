// Reads tables, [[groups of [seed, share], bounds of the shares], ...], and the quantiles from standard input. Writes of
// each table the groups' [mean, low, high, count], the differences [seed, difference], and [mean, low, high, count] of these.

import { readFileSync } from "node:fs";

import { estimatePairs, learnColumns, summarizeGroup } from "../../../../../launch/pages/comparison/web/statistics.js";

const [tables, quantiles] = JSON.parse(readFileSync(0));
const view = { content: { seed: "seed", quantiles }, metric: "share", at: "last" };
const makeRun = ([seed, share]) => ({ flags: { seed }, columns: { round: [1], share: [share] } });
const list = ({ mean, low, high, count }) => [mean, low, high, count];
const NONE = { pairs: [], mean: null, low: null, high: null, count: 0 };

const found = tables.map(([pair, bounds]) => {
  learnColumns({ largerIsBetter: {}, bounds: { share: bounds } });
  const groups = pair.map((rows) => ({ runs: rows.map(makeRun) }));
  const paired = estimatePairs(view, ...groups) ?? NONE;
  const differences = paired.pairs.map(({ seed, difference }) => [seed, difference]);
  return [groups.map((group) => list(summarizeGroup(view, group))), differences, list(paired)];
});
console.log(JSON.stringify(found));
