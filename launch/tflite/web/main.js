// Wires the page: loads the runtime and the chosen model, and shows what it answers to a drawing or a test example.

import { showAnswer, showFormats, showRows } from "./answer.js";
import { Board } from "./board.js";
import { compareNumbers, compareWithReport, runExamples, showCheck, showNumberCheck } from "./check.js";
import { splitExamples } from "./examples.js";
import { formatNumber } from "./maths.js";
import { Classifier, measureClockStep, startRuntime, unpack } from "./runtime.js";
import { showSignal } from "./signal.js";
import { Sliders } from "./sliders.js";
import { Steps } from "./steps.js";

const find = (id) => document.getElementById(id);
const page = Object.fromEntries(Array.from(document.querySelectorAll("[id]"), (element) => [element.id, element]));
const data = JSON.parse(find("page-data").textContent);
const total = data.sample.labels.length;
const areNumbers = data.answers === "numbers"; // no classes: outputs are shown as they are
const state = {
  model: null,
  classifiers: [],
  board: null,
  sliders: null, // of examples that are features
  steps: null, // of those that are series
  examples: [],
  shown: null, // the place of the test example
  clockStep: 1,
  busy: false, // classifying
  stale: false, // something has changed since
  locked: false, // the models are being loaded or checked
};

// What is to be classified now: the drawing, the sliders, or the test example; null for an empty drawing.
function readInput() {
  return (state.board ?? state.sliders)?.read() ?? (state.board ? null : state.examples[state.shown]);
}

// Classifies what is shown. While that runs, further changes wait together for one more run.
async function update() {
  state.stale = true;
  if (state.busy || state.locked) return;
  state.busy = true;
  try {
    while (state.stale) {
      state.stale = false;
      const values = readInput();
      const results = [];
      for (const classifier of values ? state.classifiers : []) {
        results.push({ file: classifier.file, logits: await classifier.classify(values, data) });
      }
      showAnswer(page, results, data);
      showFormats(page.formats, state.classifiers, results, data, state.clockStep);
    }
  } finally {
    state.busy = false;
  }
}

// Does something during which nothing else may use the models, then classifies what is shown.
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
  const truth = areNumbers ? data.truths[state.shown] : data.labels[data.sample.labels[state.shown]];
  page.truth.textContent = `In truth: ${truth}`;
  const shown = state.board ?? state.sliders;
  if (shown) {
    shown.show(state.examples[state.shown]);
    return;
  }
  if (state.steps) state.steps.show(state.examples[state.shown]);
  else showSignal(page.signal, state.examples[state.shown], data.shape, data.features, data.groups);
  run(update);
}

async function chooseModel(model) {
  say(`Loading ${model.name}…`);
  state.classifiers.splice(0).forEach((classifier) => classifier.delete());
  for (const file of model.files) state.classifiers.push(await Classifier.load(file));
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

function setUpBoard() {
  page.drawing.hidden = false;
  const isColor = data.image.channels > 1;
  page["ink-choice"].hidden = !isColor;
  page["input-title"].textContent = isColor ? "Draw over a test picture" : "Draw, or take a test picture";
  state.board = new Board(page.board, page.seen, data.image, () => {
    const isDrawn = state.board && state.board.strokes.length > 0;
    const isLost = state.board && (isDrawn ? !isColor : !state.board.base);
    if (isLost) page.truth.textContent = page.example.value = "";
    run(update);
  });
  page.clear.addEventListener("click", () => (isColor ? showExample(state.shown) : state.board.clear()));
  page.ink.addEventListener("input", () => readInk());
  if (isColor) readInk();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => state.board.draw());
}

// Features are moved from where a test example has them; then there is no truth any more.
function setUpSliders() {
  page["input-title"].textContent = "Numbers, or a test example";
  const onChange = (moved) => {
    if (moved !== undefined) page.truth.textContent = page.example.value = "";
    run(update);
  };
  state.sliders = new Sliders(page.signal, data.features, onChange, data.groups);
}

// The chosen colour as stored values of the three channels.
function readInk() {
  const { low, high } = data.image;
  const parts = [1, 3, 5].map((start) => parseInt(page.ink.value.slice(start, start + 2), 16));
  state.board.ink = parts.map((part) => low + ((high - low) * part) / 255);
  state.board.change();
}

function setUpControls() {
  page.of.textContent = `of ${total}`;
  page.example.max = total;
  page["run-all"].textContent = `Run all ${total} test examples`;
  page["model-choice"].hidden = data.models.length < 2;
  page.model.append(...data.models.map(({ name }, i) => new Option(name, i)));
  page.model.addEventListener("change", () => run(() => doAlone(() => chooseModel(data.models[page.model.value]))));
  page.previous.addEventListener("click", () => showExample((state.shown ?? 0) - 1));
  page.next.addEventListener("click", () => showExample((state.shown ?? -1) + 1));
  page.example.addEventListener("change", () => {
    const wanted = Math.round(page.example.valueAsNumber) || 1;
    showExample(Math.min(total, Math.max(1, wanted)) - 1);
  });
  page["run-all"].addEventListener("click", () => run(() => doAlone(runAll)));
}

function disable(isDisabled) {
  for (const id of ["model", "previous", "next", "example", "run-all", "clear"]) page[id].disabled = isDisabled;
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
  state.examples = splitExamples(await unpack("examples"), data.dtype, total);
  const build = await startRuntime();
  page.build.textContent = build === "compat" ? ", the build for browsers without relaxed SIMD" : "";
  state.clockStep = measureClockStep();
  page.clock.textContent =
    "Time of a call on one thread, copying in and out included: median of the last 50, and between what half of them lie. " +
    `This browser's clock steps by ${formatNumber(state.clockStep)} ms.`;
  if (data.image) setUpBoard();
  else if (data.form === "table") setUpSliders();
  else if (data.form === "series") state.steps = new Steps(page.signal, data.shape, data.features, data.groups);
  await doAlone(() => chooseModel(data.models[0]));
  // Grey pictures are drawn first; everything else needs an example to begin with.
  if (!data.image || data.image.channels > 1) showExample(0);
  else state.board.clear();
  document.documentElement.dataset.ready = build;
}

run(start);
