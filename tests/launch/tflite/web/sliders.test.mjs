// The sliders of features, without a page: their ranges, steps and texts.

import assert from "node:assert/strict";
import { test } from "node:test";

import { nameFeature } from "../../../../launch/tflite/web/signal.js";
import { describeRange, findStep, keepInRange } from "../../../../launch/tflite/web/sliders.js";

test("a slider holds a value of an example that lies outside of its range at the end", () => {
  const feature = { lowest: -1.5, highest: 4 };
  assert.equal(keepInRange(9, feature), 4);
  assert.equal(keepInRange(-9, feature), -1.5);
  assert.equal(keepInRange(0.25, feature), 0.25);
});

test("whole numbers stay whole", () => {
  assert.equal(findStep({ is_whole: true }), "1");
  assert.equal(findStep({ is_whole: false }), "any");
});

test("a name comes with its unit, a range is short", () => {
  assert.equal(nameFeature({ name: "temperature", unit: "°C" }), "temperature [°C]");
  assert.equal(nameFeature({ name: "people", unit: "" }), "people");
  assert.equal(nameFeature(undefined), "");
  assert.equal(describeRange({ lowest: -3.5, highest: 31.256789 }), "-3.5 to 31.26");
});
