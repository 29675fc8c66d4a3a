// The page's maths, by hand-worked numbers.

import assert from "node:assert/strict";
import { test } from "node:test";

import { compareWithReport } from "../../../../launch/tflite/web/check.js";
import { splitChannels, splitExamples } from "../../../../launch/tflite/web/examples.js";
import * as maths from "../../../../launch/tflite/web/maths.js";

test("the first of equal values is the largest", () => {
  assert.equal(maths.findLargest([1, 3, 3, 2]), 1);
  assert.equal(maths.findLargest(Float32Array.of(-5, -7)), 0);
});

test("softmax of logits whose powers are 1, 2 and 5", () => {
  const shares = maths.computeSoftmax([0, Math.log(2), Math.log(5)]);
  [0.125, 0.25, 0.625].forEach((expected, i) => assert.ok(Math.abs(shares[i] - expected) < 1e-12));
});

test("softmax of large logits stays finite", () => {
  assert.deepEqual(maths.computeSoftmax([1000, 1000]), [0.5, 0.5]);
});

test("quantiles lie on straight lines between neighbours, as numpy.percentile has them", () => {
  assert.equal(maths.computeQuantile([4, 1, 3, 2], 0.5), 2.5);
  assert.ok(Math.abs(maths.computeQuantile([4, 1, 3, 2], 0.95) - 3.85) < 1e-12);
  assert.equal(maths.computeQuantile([7], 0.95), 7);
});

test("quantiles leave the list as it is", () => {
  const times = [3, 1, 2];
  maths.computeQuantile(times, 0.5);
  assert.deepEqual(times, [3, 1, 2]);
});

test("preprocessing rounds to float32 after each step", () => {
  const [value] = maths.preprocess([3], 0.1, 0.2);
  assert.equal(value, Math.fround(Math.fround(3 * Math.fround(0.1)) + Math.fround(0.2)));
  assert.deepEqual([...maths.preprocess([0, 8, 16], 1 / 16, 0)], [0, 0.5, 1]);
});

test("numbers are written short", () => {
  assert.deepEqual([999, 26616, 79692, 4684000, 18686672].map(maths.formatBytes), ["999 B", "27 kB", "80 kB", "4.7 MB", "19 MB"]);
  assert.deepEqual([0, 0.004, 0.5, 1].map(maths.formatPercent), ["0 %", "< 1 %", "50 %", "100 %"]);
  assert.equal(maths.formatTime(0, 0.1), "< 0.1");
  assert.equal(maths.formatTime(1.234, 0.1), "1.23");
  assert.equal(maths.formatTime(12.6, 0.1), "13");
  assert.equal(maths.formatNumber(-0.72849), "-0.728");
});

test("examples are cut out of their bytes in the stored type", () => {
  const floats = Float32Array.of(1, 2, 3, 4, 5, 6);
  const [first, second] = splitExamples(new Uint8Array(floats.buffer), "float32", 2);
  assert.deepEqual([[...first], [...second]], [[1, 2, 3], [4, 5, 6]]);
  assert.deepEqual([...splitExamples(Uint8Array.of(7, 8), "uint8", 2)[1]], [8]);
});

test("channels are the last axis; a list of features is one line", () => {
  assert.deepEqual(splitChannels([1, 10, 2, 20, 3, 30], [3, 2]), [[1, 2, 3], [10, 20, 30]]);
  assert.deepEqual(splitChannels([1, 2, 3], [3]), [[1, 2, 3]]);
  assert.deepEqual(splitChannels([1, 2, 3], [3, 1]), [[1, 2, 3]]);
});

test("a check counts what is right and what is the report's, and names ties", () => {
  const logits = [[1, 0], [0, 1], [2, 2]];
  const { classes, correct, agreeing, differences } = compareWithReport(logits, [0, 0, 1], [0, 1, 1]);
  assert.deepEqual(classes, [0, 1, 0]);
  assert.deepEqual([correct, agreeing], [1, 2]);
  assert.deepEqual(differences, [{ example: 2, here: 0, report: 1, margin: 0 }]);
});
