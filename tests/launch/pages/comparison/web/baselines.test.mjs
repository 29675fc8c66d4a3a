// What the first card says, by hand-worked numbers: the baseline, what is decided, and in which words.

import assert from "node:assert/strict";
import { test } from "node:test";

import { formatLead, sayGroup } from "../../../../../launch/pages/comparison/web/answer.js";
import * as baselines from "../../../../../launch/pages/comparison/web/baselines.js";
import { learnColumns } from "../../../../../launch/pages/comparison/web/statistics.js";

learnColumns({ largerIsBetter: { share: true, test_loss: false }, bounds: { share: [0, 1] } });
const CONTENT = { seed: "seed", experiment: "experiment", algorithms: {}, dataFlags: ["alpha"], quantiles: [12.706, 4.303, 3.182] };

// A run for each of the values, with the seeds from 0 on.
function makeRuns(algo, values, flags = {}, bytes = 100) {
  return values.map((share, seed) => ({
    ...{ name: `${algo}${flags.alpha ?? ""}/${seed}`, title: algo.toUpperCase(), heading: `${algo.toUpperCase()} on digits, seed ${seed}` },
    flags: { seed, algo, ...flags },
    columns: { round: [1], share: [share], test_loss: [1 - share], total_bytes: [bytes] },
  }));
}

function look(runs, further = {}) {
  const view = { content: { ...CONTENT, runs }, runs, grouping: ["algo"], metric: "share", at: "last", axis: "round", ...further };
  const splits = baselines.listSplits(view).map((split) => ({ ...split, baseline: baselines.chooseBaseline(view, split.groups) }));
  return { view, splits };
}

test("the baseline is FedAvg, else what is called so, else any: of most pairs, of most seeds, the first", () => {
  const name = (runs, grouping = ["algo"]) => look(runs, { grouping }).splits[0].baseline.key;
  assert.equal(name([...makeRuns("apfl", [1, 1]), ...makeRuns("fedavg", [0.5])]), "fedavg");
  assert.equal(name([...makeRuns("zeta", [1]), ...makeRuns("apfl", [1])]), "zeta");
  assert.equal(name([...makeRuns("zeta", [1]), ...makeRuns("apfl", [1, 1])]), "apfl");
  const called = [...makeRuns("buffered", [1], { experiment: "buffered_x" }), ...makeRuns("periodic", [1], { experiment: "fedavg_x" })];
  assert.equal(name(called, ["experiment"]), "fedavg_x");
  // Of several, the one that shares seeds with most groups: the other has seeds of its own, though more.
  const many = makeRuns("fedavg", [1, 1, 1], { experiment: "many" }).map((run) => ({ ...run, flags: { ...run.flags, seed: 7 + run.flags.seed } }));
  const paired = [...makeRuns("fedavg", [1, 1], { experiment: "paired" }), ...makeRuns("apfl", [1], { experiment: "apfl" })];
  assert.equal(name([...many, ...paired], ["experiment"]), "paired");
  assert.equal(name([...many, ...makeRuns("fedavg", [1], { experiment: "paired" })], ["experiment"]), "many");
});

test("what is decided comes first, with the bytes of each", () => {
  const runs = [
    ...makeRuns("fedavg", [0.5, 0.52, 0.54]),
    ...makeRuns("wild", [0.9, 0.3, 0.8]),
    ...makeRuns("bad", [0.4, 0.43, 0.44]),
    ...makeRuns("good", [0.6, 0.63, 0.64], {}, 600),
    ...makeRuns("few", [0.9, 0.9]),
    ...makeRuns("twin", [0.5, 0.52, 0.54]),
  ];
  const { view, splits } = look(runs);
  const leads = baselines.listLeads(view, splits[0]);
  assert.deepEqual(leads.map(({ group, verdict }) => `${group.key} ${verdict}`), ["good better", "twin the same", "bad worse", "few undecided", "wild undecided"]);
  assert.deepEqual([leads[0].bytes, leads[0].theirBytes], [600, 100]);
  assert.equal(baselines.judge({ mean: -0.1, low: -0.2, high: -0.05, count: 3 }, "test_loss"), "better");
});

test("groups are compared on the same data, and without two of these all together", () => {
  const runs = [1, 2].flatMap((alpha) => ["fedavg", "good"].flatMap((algo) => makeRuns(algo, [0.5], { alpha })));
  const { view, splits } = look(runs, { grouping: ["algo", "alpha"] });
  assert.deepEqual(splits.map(({ label }) => label), ["digits, alpha 1", "digits, alpha 2"]);
  assert.deepEqual(splits.map(({ baseline }) => baseline.key), ["fedavg, 1", "fedavg, 2"]);
  const own = splits[1].groups.find(({ key }) => key === "good, 2");
  assert.equal(baselines.findBaseline(splits, own).key, "fedavg, 2");
  assert.equal(baselines.findBaseline(splits, splits[1].baseline), null);
  assert.equal(baselines.findBaseline(splits, { key: "good", runs: runs.filter((run) => run.flags.algo === "good") }), null);
  const alone = look(runs.filter((run) => run.flags.algo === "good"), { grouping: ["alpha"] }).splits;
  assert.deepEqual([alone.length, alone[0].differing, sayGroup(view, alone[0].baseline)], [1, ["alpha"], "1"]);
});

test("a lead is in points where values are shares, with digits that tell it from 0", () => {
  assert.equal(formatLead({ mean: 0.004, low: -0.008, high: 0.016 }, "share"), "+0.4 points [−0.8, +1.6]");
  assert.equal(formatLead({ mean: 0.004, low: 0.0002, high: 0.0078 }, "share"), "+0.40 points [+0.02, +0.78]");
  assert.equal(formatLead({ mean: 0, low: null, high: null }, "share"), "0.0 points");
  assert.equal(formatLead({ mean: -0.25, low: -0.5, high: 0.125 }, "test_loss"), "−0.2500 [−0.5000, +0.1250]");
});
