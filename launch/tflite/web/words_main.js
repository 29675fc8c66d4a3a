// Wires the page of a model that takes the words of a text: a person types, and every format answers.

import { showAnswer, showFormats } from "./answer.js";
import { checkClassifier, showChecks } from "./check.js";
import { readOutputs } from "./maths.js";
import { TokenFile } from "./token_file.js";
import { data, page, run, showExample, showTruth, start, state, total, update } from "./wiring.js";
import { HOLE, Words } from "./words.js";

const MOST_NAMED = 8; // of the words that are not in the vocabulary
const words = new Words(data.vocabulary, data.positions);

// A file as the check of the test examples wants it: tokens in, outputs as the page reads them.
class WordClassifier extends TokenFile {
  static async load(file) {
    const { compiled } = await TokenFile.load(file);
    return new WordClassifier(file, compiled);
  }

  async classify(tokens, form) {
    return readOutputs(await this.compute(Int32Array.from(tokens)), form);
  }
}

async function answer() {
  const encoded = words.encode(page.text.value);
  const results = [];
  for (const classifier of encoded ? state.files : []) {
    results.push({ file: classifier.file, logits: await classifier.classify(encoded.values, data) });
  }
  showAnswer(page, results, data);
  if (!results.length) page.agreement.textContent = "No word typed yet.";
  showFormats(page.formats, state.files, results, data, state.clockStep);
}

// What of the text the model does not know, and what of it is too long.
function describeText() {
  const { count, unknown } = words.encode(page.text.value) ?? { count: 0, unknown: [] };
  const lines = [];
  if (unknown.length) {
    const named = unknown.slice(0, MOST_NAMED).map((word) => (word === HOLE ? HOLE : JSON.stringify(word))).join(", ");
    lines.push(`Unknown to the model: ${named}${unknown.length > MOST_NAMED ? ", …" : ""}.`);
  }
  if (count > data.positions) lines.push(`It reads the first ${data.positions} of ${count} words.`);
  page.notes.textContent = lines.join(" ");
}

page.text.addEventListener("input", () => {
  page.truth.textContent = page.example.value = "";
  run(update);
});
start({
  ...{ dtype: "int32", timed: "a call", controls: [], load: WordClassifier.load, answer, describe: describeText },
  check: (classifier, tell) => checkClassifier(classifier, state.examples, data, tell),
  showChecks: (checks) => showChecks(page.check, checks, data, total),
  showExample(example) {
    page.text.value = words.decode(example);
    showTruth();
    run(update);
  },
  disable(isDisabled) {
    page.text.readOnly = isDisabled;
  },
  begin: () => showExample(0),
});
