// Words and their tokens, by hand-worked examples; `tests/datasets/tables/test_sentences.py` has the same in Python.

import assert from "node:assert/strict";
import { test } from "node:test";

import { HOLE, Words, splitWords } from "../../../../launch/tflite/web/words.js";

const WORDS = new Words(["<pad>", "<oov>", "good", "caf\u00e9"], 4);

test("words are runs of letters, digits and marks", () => {
  const cases = [
    ["Don't!  It's 3.5 stars_x", "don t it s 3 5 stars x"],
    ["Caf\u00e9_cafe\u0301", "caf\u00e9 caf\u00e9"],
    ["\u0939\u093f\u0928\u094d\u0926\u0940!", "\u0939\u093f\u0928\u094d\u0926\u0940"],
    ["\u2764\ufe0f \u0301a", "a"],
    ["\u0130st \u039f\u0394\u039f\u03a3", "i\u0307st \u03bf\u03b4\u03bf\u03c2"],
    ["...", ""],
  ];
  for (const [text, words] of cases) assert.deepEqual(splitWords(text), words ? words.split(" ") : []);
});

test("a text becomes tokens: padding is 0, unknown words are 1 and are named once, what is too long is cut", () => {
  assert.deepEqual(WORDS.encode("GOOD, cafe\u0301!"), { values: Int32Array.of(2, 3, 0, 0), count: 2, unknown: [] });
  const long = { values: Int32Array.of(1, 2, 1, 1), count: 5, unknown: ["not", "so"] };
  assert.deepEqual(WORDS.encode("not good, not so good"), long);
  assert.deepEqual(WORDS.encode("<pad>").unknown, ["pad"]);
  assert.equal(WORDS.encode(" ... "), null);
});

test("tokens become a text that becomes them again", () => {
  const text = WORDS.decode(Int32Array.of(2, 1, 3, 0));
  assert.equal(text, `good ${HOLE} caf\u00e9`);
  assert.deepEqual(WORDS.encode(text), { values: Int32Array.of(2, 1, 3, 0), count: 3, unknown: [HOLE] });
});
