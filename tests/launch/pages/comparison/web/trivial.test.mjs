// Trivial rows, by hand-worked numbers.

import assert from "node:assert/strict";
import { test } from "node:test";

import { summarizeGroup } from "../../../../../launch/pages/comparison/web/statistics.js";
import { isReference, listTrivial } from "../../../../../launch/pages/comparison/web/trivial.js";

function makeRun(seed, flags, aClient) {
  const trivial = aClient === null ? {} : { own: { "a client": aClient, overall: 0.25 }, test: { overall: 0.125 } };
  return { flags: { seed, ...flags }, columns: { round: [1, 2], own: [0.1, 0.5] }, trivial };
}

const content = { dataFlags: ["alpha"], references: ["local_only"], seed: "seed", quantiles: [12.706] };
const list = (runs, metric = "own") => listTrivial({ content, runs, metric });

test("a row is the mean over the seeds, however many runs have a seed", () => {
  const runs = [0, 1].flatMap((seed) => ["a", "b"].map((algo) => makeRun(seed, { algo, alpha: 1 }, 0.5 + seed / 4)));
  const rows = list([...runs, makeRun(2, { algo: "a", alpha: 1 }, null)]);
  assert.deepEqual(rows.map(({ label }) => label), ["a client", "overall"]);
  const { mean, count } = summarizeGroup({ content, metric: "own", at: "last" }, rows[0]);
  assert.deepEqual([mean, count], [0.625, 2]);
  assert.deepEqual(list(runs, "test").map(({ label }) => label), ["overall"]);
  assert.deepEqual(list(runs, "loss"), []);
});

test("each data has rows of its own; what a run does not say is no other data", () => {
  const runs = [makeRun(0, { alpha: 1 }, 0.5), makeRun(0, { alpha: 0.1 }, 0.75)];
  assert.deepEqual(list(runs).map(({ label }) => label), ["a client, 0.1", "overall, 0.1", "a client, 1", "overall, 1"]);
  assert.equal(list([runs[0], makeRun(1, {}, 0.5)]).length, 2);
});

test("a group is a reference if all of its runs are", () => {
  const [local, other] = ["local_only", "ditto"].map((algo) => makeRun(0, { algo }, 0.5));
  assert.deepEqual([[local], [local, other], [other]].map((runs) => isReference(content, { runs })), [true, false, false]);
});
