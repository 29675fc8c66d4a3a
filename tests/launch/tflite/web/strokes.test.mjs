// From a drawing to the picture that a model was trained on.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as strokes from "../../../../launch/tflite/web/strokes.js";

const DIGITS = { framing: "digits", height: 8, width: 8, channels: 1, paper: 0, ink: [16], isWhole: true };
const MNIST = { framing: "mnist", height: 28, width: 28, channels: 1, paper: 0, ink: [255], isWhole: true };
const PLAIN = { framing: "plain", height: 12, width: 12, channels: 1, paper: 0, ink: [1], isWhole: false };
const COLOR = { framing: "plain", height: 12, width: 12, channels: 3, paper: 0, ink: [255, 0, 0], isWhole: true };
const ZERO = [Array.from({ length: 60 }, (_, i) => [0.5 + 0.1 * Math.cos(i / 9.4), 0.4 + 0.2 * Math.sin(i / 9.4)])];
const LINE = [[[0.2, 0.1], [0.2, 0.9]]];

const isNear = (value, expected, margin) => assert.ok(Math.abs(value - expected) <= margin, `${value}, not ${expected}`);
const sum = (values) => values.reduce((total, value) => total + value, 0);
const rowsOf = (values, width) =>
  Array.from({ length: values.length / width }, (_, row) => sum([...values.slice(row * width, (row + 1) * width)]));

test("the distance to a line between two points, beside it and beyond its end", () => {
  assert.equal(strokes.measureDistance([1, 3], [0, 0], [2, 0]), 3);
  assert.equal(strokes.measureDistance([5, 4], [0, 0], [2, 0]), 5);
  assert.equal(strokes.measureDistance([3, 4], [0, 0], [0, 0]), 5);
});

test("a stroke covers the pixels whose middle is near enough", () => {
  const bitmap = strokes.paint([[[0.5, 1.5], [2.5, 1.5]]], 1, 4, 3);
  assert.deepEqual([...bitmap], [0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0]);
});

test("blocks are averaged", () => {
  const means = strokes.averageBlocks(Uint8Array.of(1, 1, 0, 0, 1, 0, 0, 0), 4, 2, 2);
  assert.deepEqual([...means], [0.75, 0]);
});

test("the centre of mass, and a picture moved so that what leaves it is lost", () => {
  assert.deepEqual(strokes.findCentre([0, 0, 0, 3, 0, 0, 0, 1, 0], 3), [0.75, 1.75]);
  assert.deepEqual([...strokes.move([1, 2, 3, 4], 2, 1, 0)], [0, 1, 0, 3]);
});

test("a digit fills the height, six of eight columns, and has the ink of the data set's digits", () => {
  const values = strokes.drawPicture(ZERO, DIGITS, null, DIGITS.ink);
  assert.ok(values.every((value) => Number.isInteger(value) && value >= 0 && value <= 16));
  isNear(sum(values), 312, 20);
  const rows = rowsOf(values, 8);
  assert.ok(rows[0] > 0 && rows[7] > 0);
  for (let row = 0; row < 8; row++) assert.equal(values[8 * row] + values[8 * row + 7], 0);
  assert.ok(values[8 * 4 + 4] < 8, "a 0 is hollow");
});

test("where and how large a digit is drawn makes no difference", () => {
  const moved = ZERO.map((stroke) => stroke.map(([x, y]) => [0.1 + x / 2, 0.3 + y / 2]));
  const [first, second] = [ZERO, moved].map((drawing) => strokes.drawPicture(drawing, DIGITS, null, DIGITS.ink));
  first.forEach((value, i) => isNear(second[i], value, 1));
});

test("a straight 1 stays a line in the middle", () => {
  const values = strokes.drawPicture(LINE, DIGITS, null, DIGITS.ink);
  for (let row = 0; row < 8; row++) assert.equal(values[8 * row] + values[8 * row + 1] + values[8 * row + 6] + values[8 * row + 7], 0);
});

test("a dot is a picture, too", () => {
  for (const picture of [DIGITS, MNIST, PLAIN]) {
    const values = strokes.drawPicture([[[0.5, 0.5]]], picture, null, picture.ink);
    assert.ok(values.every(Number.isFinite) && sum(values) > 0);
  }
});

test("an MNIST digit lies in 20 by 20 pixels with its centre of mass in the middle", () => {
  for (const drawing of [ZERO, LINE, [[[0.1, 0.1], [0.5, 0.1], [0.2, 0.6]]]]) {
    const values = strokes.drawPicture(drawing, MNIST, null, MNIST.ink);
    const [x, y] = strokes.findCentre(values, 28);
    isNear(x, 14.5, 0.51);
    isNear(y, 14.5, 0.51);
    const filled = rowsOf(values, 28).filter((row) => row > 0).length;
    assert.ok(filled >= 15 && filled <= 21, `${filled} rows`);
  }
});

test("an MNIST digit keeps its proportions", () => {
  const values = strokes.drawPicture(LINE, MNIST, null, MNIST.ink);
  const columns = new Set(Array.from(values.keys()).filter((i) => values[i] > 0).map((i) => i % 28));
  assert.ok(columns.size <= 4);
});

test("other pictures are drawn where the pen was, over the example in the chosen colour", () => {
  const base = new Float32Array(12 * 12 * 3).fill(100);
  const values = strokes.drawPicture([[[0, 0.04], [0.5, 0.04]]], COLOR, base, [255, 0, 0]);
  assert.deepEqual([...values.slice(3, 6)], [255, 0, 0]);
  assert.deepEqual([...values.slice(-3)], [100, 100, 100]);
  assert.equal(base[3], 100);
});

test("without strokes a picture is its example, or paper", () => {
  assert.deepEqual([...strokes.drawPicture([], PLAIN, null, [1])], new Array(144).fill(0));
  const base = new Float32Array(144).fill(0.5);
  assert.deepEqual([...strokes.drawPicture([], PLAIN, base, [1])], [...base]);
});
