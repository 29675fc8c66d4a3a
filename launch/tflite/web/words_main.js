// Wires the page of a model that takes the words of a text: a person types, and every format answers.

import { showAnswer, showFormats, showRows } from "./answer.js";
import { compareNumbers, compareWithReport, runExamples, showCheck, showNumberCheck } from "./check.js";
import { splitExamples } from "./examples.js";
import { formatNumber, readOutputs } from "./maths.js";
import { measureClockStep, startRuntime, unpack } from "./runtime.js";
import { TokenFile } from "./token_file.js";
import { HOLE, Words } from "./words.js";

const MOST_NAMED = 8; // of the words that are not in the vocabulary
const page = Object.fromEntries(Array.from(document.querySelectorAll("[id]"), (element) => [element.id, element]));
const data = JSON.parse(document.getElementById("page-data").textContent);
const words = new Words(data.vocabulary, data.positions);
const total = data.sample.labels.length;
const areNumbers = data.answers === "numbers";
const state = {
  model: null,
  classifiers: [],
  examples: [],
  shown: 0,
  clockStep: 1,
  busy: false, // computing
  stale: false, // something has changed since
  locked: false, // the models are being loaded or checked
};

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

// Answers to the text. While that runs, further changes wait together for one more run.
async function update() {
  state.stale = true;
  describeText();
  if (state.busy || state.locked) return;
  state.busy = true;
  try {
    while (state.stale) {
      state.stale = false;
      const encoded = words.encode(page.text.value);
      const results = [];
      for (const classifier of encoded ? state.classifiers : []) {
        results.push({ file: classifier.file, logits: await classifier.classify(encoded.values, data) });
      }
      showAnswer(page, results, data);
      if (!results.length) page.agreement.textContent = "No word typed yet.";
      showFormats(page.formats, state.classifiers, results, data, state.clockStep);
    }
  } finally {
    state.busy = false;
  }
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

// Does something during which nothing else may use the models, then answers to the text.
async function doAlone(work) {
  disable(true);
  state.locked = true;
  try {
    while (state.busy) await new Promise((resolve) => setTimeout(resolve, 10));
    await work();
  } finally {
    state.locked = false;
    disable(false);
  }
  await update();
}

function showExample(index) {
  state.shown = (index + total) % total;
  page.example.value = state.shown + 1;
  page.text.value = words.decode(state.examples[state.shown]);
  const truth = areNumbers ? data.truths[state.shown] : data.labels[data.sample.labels[state.shown]];
  page.truth.textContent = `In truth: ${truth}`;
  run(update);
}

async function chooseModel(model) {
  say(`Loading ${model.name}…`);
  state.classifiers.splice(0).forEach((classifier) => classifier.delete());
  for (const file of model.files) state.classifiers.push(await WordClassifier.load(file));
  state.model = model;
  page.check.replaceChildren();
  page.progress.textContent = "";
  showRows(page.about, model.about);
  say("");
}

// Every test example in every format. The result is also kept as `lastCheck` for whoever drives the page.
async function runAll() {
  page.check.replaceChildren();
  const checks = [];
  for (const classifier of state.classifiers) {
    const { file } = classifier;
    const tell = (done) => (page.progress.textContent = `${file.format}: ${done} of ${total}`);
    const logits = await runExamples(classifier, state.examples, data, tell);
    const compared = areNumbers
      ? compareNumbers(logits, file.predictions)
      : compareWithReport(logits, data.sample.labels, file.predictions);
    checks.push({ file, logits, ...compared });
  }
  page.progress.textContent = "Done.";
  if (areNumbers) showNumberCheck(page.check, checks);
  else showCheck(page.check, checks, data.labels, total);
  globalThis.lastCheck = { model: state.model.name, checks };
}

function setUpControls() {
  page.of.textContent = `of ${total}`;
  page.example.max = total;
  page["run-all"].textContent = `Run all ${total} test examples`;
  page["model-choice"].hidden = data.models.length < 2;
  page.model.append(...data.models.map(({ name }, i) => new Option(name, i)));
  page.model.addEventListener("change", () => run(() => doAlone(() => chooseModel(data.models[page.model.value]))));
  page.text.addEventListener("input", () => {
    page.truth.textContent = page.example.value = "";
    run(update);
  });
  page.previous.addEventListener("click", () => showExample(state.shown - 1));
  page.next.addEventListener("click", () => showExample(state.shown + 1));
  page.example.addEventListener("change", () => {
    const wanted = Math.round(page.example.valueAsNumber) || 1;
    showExample(Math.min(total, Math.max(1, wanted)) - 1);
  });
  page["run-all"].addEventListener("click", () => run(() => doAlone(runAll)));
}

function disable(isDisabled) {
  for (const id of ["model", "previous", "next", "example", "run-all"]) page[id].disabled = isDisabled;
  page.text.readOnly = isDisabled;
}

function say(text) {
  page.status.textContent = text;
}

// Runs something and says on the page if it failed.
async function run(action) {
  try {
    await action();
  } catch (error) {
    page.status.classList.add("failed");
    say(`This browser cannot run the models: ${error.message ?? error}`);
    console.error(error);
  }
}

async function start() {
  disable(true);
  setUpControls();
  if (!("DecompressionStream" in globalThis)) throw new Error("it is too old to unpack them; expected one of 2023 or later");
  say("Unpacking the runtime…");
  state.examples = splitExamples(await unpack("examples"), "int32", total);
  const build = await startRuntime();
  page.build.textContent = build === "compat" ? ", the build for browsers without relaxed SIMD" : "";
  state.clockStep = measureClockStep();
  page.clock.textContent =
    "Time of a call on one thread, copying in and out included, over the last 50 calls. " +
    `This browser's clock steps by ${formatNumber(state.clockStep)} ms.`;
  await doAlone(() => chooseModel(data.models[0]));
  showExample(0);
  document.documentElement.dataset.ready = build;
}

run(start);
