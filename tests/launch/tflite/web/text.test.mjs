// Text and tokens, by hand-worked examples.

import assert from "node:assert/strict";
import { test } from "node:test";

import { splitExamples } from "../../../../launch/tflite/web/examples.js";
import { Vocabulary, chooseToken, countTokens, fillPositions, takePosition } from "../../../../launch/tflite/web/text.js";

const CHARACTERS = new Vocabulary(["<pad>", "a", "b", " ", "\\n", "<oov>", "<bos>", "<eos>"], 8, null);
const WORDS = new Vocabulary(["<pad>", "the", "end", "<oov>", "<bos>", "<eos>"], 6, null);
const NUMBERS = new Vocabulary(null, 12, null);

test("the form is known from the names, whatever the special ones are", () => {
  assert.deepEqual([CHARACTERS.form, WORDS.form, NUMBERS.form], ["characters", "words", "numbers"]);
  assert.deepEqual(CHARACTERS.special, { padding: 0, unknown: 5, begin: 6, end: 7 });
  assert.deepEqual(NUMBERS.special, { padding: -1, unknown: -1, begin: -1, end: -1 });
});

test("characters become tokens, also line breaks; what is unknown is said once", () => {
  assert.deepEqual(CHARACTERS.encode("ab a\nA€€"), { tokens: [1, 2, 3, 1, 4, 1, 5, 5], unknown: ["€"] });
});

test("a character beyond the first plane is one character", () => {
  assert.deepEqual(new Vocabulary(["🎉", "b"], 2, null).encode("b🎉"), { tokens: [1, 0], unknown: [] });
});

test("without a token for it, what is unknown is left out", () => {
  assert.deepEqual(new Vocabulary(["a", "b"], 2, null).encode("axb").tokens, [0, 1]);
  assert.deepEqual(new Vocabulary(["a", "b"], 3, 2).encode("axb").tokens, [0, 2, 1]);
});

test("words are told apart by blanks, and typed special names are text", () => {
  assert.deepEqual(WORDS.encode(" The  end\nof <pad>"), { tokens: [1, 2, 3, 3], unknown: ["of", "<pad>"] });
});

test("numbers are taken as they are, if the model has them", () => {
  assert.deepEqual(NUMBERS.encode("3 11 12 -1 x"), { tokens: [3, 11], unknown: ["12", "-1", "x"] });
});

test("tokens become text again, without padding, beginning and end", () => {
  assert.equal(CHARACTERS.decode([6, 1, 3, 2, 4, 7, 0, 0]), "a b\n");
  assert.equal(WORDS.decode(Int32Array.of(4, 1, 2, 5, 0)), "the end");
  assert.equal(NUMBERS.decode([3, 11]), "3 11");
});

test("a token is added to a text, words after a blank", () => {
  assert.equal(CHARACTERS.append("ab", 1), "aba");
  assert.deepEqual(["", "the", "the "].map((text) => WORDS.append(text, 2)), ["end", "the end", "the end"]);
});

test("a line ends with a line break, and every text with the mark of its end", () => {
  assert.deepEqual([1, 4, 7].map((token) => CHARACTERS.endsLine(token)), [false, true, true]);
  assert.deepEqual([2, 5].map((token) => WORDS.endsLine(token)), [false, true]);
  assert.equal(NUMBERS.endsLine(0), false);
});

test("positions are filled from the first, the rest is padding, and the answer is read at the last token", () => {
  assert.deepEqual(fillPositions([1, 2], 5, 0, 6), { values: Int32Array.of(6, 1, 2, 0, 0), last: 2 });
  assert.deepEqual(fillPositions([1, 2], 4, 9, -1), { values: Int32Array.of(1, 2, 9, 9), last: 1 });
  assert.deepEqual(fillPositions([1], 3, -1, -1), { values: Int32Array.of(1, 0, 0), last: 0 });
});

test("of more tokens than positions, the last are read", () => {
  assert.deepEqual(fillPositions([1, 2, 3, 4], 3, 0, 6), { values: Int32Array.of(2, 3, 4), last: 2 });
});

test("the beginning alone is a text, nothing is none", () => {
  assert.deepEqual(fillPositions([], 2, 0, 6), { values: Int32Array.of(6, 0), last: 0 });
  assert.equal(fillPositions([], 2, 0, -1), null);
});

test("the logits of a position", () => {
  assert.deepEqual([...takePosition(Float32Array.of(1, 2, 3, 4, 5, 6), 1, 2)], [3, 4]);
});

test("the likeliest token that is allowed", () => {
  assert.equal(chooseToken([0.5, 0.2, 0.3], [0]), 2);
});

test("by chance, each token has its share of those that are allowed", () => {
  // Allowed are shares of 0.2 and 0.6, so that a quarter of the draws gives the first.
  const choose = (draw) => chooseToken([0.2, 0.2, 0.6], [0], draw);
  assert.deepEqual([0, 0.24, 0.26, 0.999].map(choose), [1, 1, 2, 2]);
});

test("padding does not count, whatever is said there", () => {
  assert.deepEqual(countTokens([1, 2, 3, 4], [1, 5, 0, -1], [1, 2, 0, 0], 0), { total: 2, correct: 1, agreeing: 2 });
});

test("examples of tokens are cut out of their bytes", () => {
  const bytes = new Uint8Array(Int32Array.of(7, 300, 8, 9).buffer);
  assert.deepEqual(splitExamples(bytes, "int32", 2).map((each) => [...each]), [[7, 300], [8, 9]]);
});
