// Categories of the page, without a page: which value an example has, and what a choice writes.

import assert from "node:assert/strict";
import { test } from "node:test";

import { NONE, NO_CHOICE, joinGroups, listChoices, nameChoice, readChoice, writeChoice } from "../../../../launch/tflite/web/groups.js";
import { listLines } from "../../../../launch/tflite/web/signal.js";

const COLOUR = { name: "colour", features: [1, 2, 3], values: ["red", "green", "blue"], is_index: false, has_none: false };
const SIZE = { name: "size", features: [0], values: ["s", "m", "l"], is_index: true, has_none: false };

test("an example has one of the values, none, or what is no choice", () => {
  assert.equal(readChoice([7, 0, 1, 0], COLOUR), 1);
  assert.equal(readChoice([7, 0, 0, 0], COLOUR), NONE);
  for (const wrong of [[7, 1, 1, 0], [7, 0, 0.5, 0], [7, 0, 2, 0]]) assert.equal(readChoice(wrong, COLOUR), NO_CHOICE);
  assert.equal(readChoice([2, 0, 0, 0], SIZE), 2);
  for (const wrong of [3, -1, 0.5, NaN]) assert.equal(readChoice([wrong], SIZE), NO_CHOICE);
});

test("a choice sets exactly one of the features to 1, whatever was there", () => {
  const example = Float32Array.of(7, 1, 1, 0.5);
  writeChoice(example, COLOUR, 2);
  assert.deepEqual([...example], [7, 0, 0, 1]);
  writeChoice(example, COLOUR, NONE);
  assert.deepEqual([...example], [7, 0, 0, 0]);
  writeChoice(example, SIZE, 1);
  assert.deepEqual([...example], [1, 0, 0, 0]);
});

test("none of them can be chosen only where the data have that", () => {
  assert.deepEqual(listChoices(COLOUR), [[0, "red"], [1, "green"], [2, "blue"]]);
  assert.deepEqual(listChoices({ ...COLOUR, has_none: true })[0], [NONE, "none of them"]);
  assert.deepEqual([2, NONE, NO_CHOICE].map((choice) => nameChoice(COLOUR, choice)), ["blue", "none of them", "—"]);
});

test("a category stands once, where the first of its features is", () => {
  const apart = { ...COLOUR, features: [3, 1] };
  assert.deepEqual(joinGroups(5, [apart]).map(({ place, group }) => [place, group?.name]), [
    [0, undefined],
    [1, "colour"],
    [2, undefined],
    [4, undefined],
  ]);
});

test("a series has one line for a category, of the value that each step has", () => {
  const features = [{ name: "load", unit: "kg" }, {}, {}, {}].map((feature) => ({ unit: "", ...feature }));
  const lines = listLines([5, 1, 0, 0, 6, 0, 0, 1, 7, 1, 1, 0], [3, 4], features, [COLOUR]);
  assert.deepEqual(lines.map(({ name }) => name), ["load [kg]", "colour"]);
  assert.deepEqual(lines[0].texts, ["5", "6", "7"]);
  assert.deepEqual(lines[1].texts, ["red", "blue", "—"]);
  assert.deepEqual(lines[1].values, [0, 2, -1]);
});
