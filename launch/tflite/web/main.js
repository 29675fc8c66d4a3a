// Wires the page: loads the runtime and the chosen model, and shows what it answers to a drawing or a test example.

import { showAnswer, showFormats } from "./answer.js";
import { Board } from "./board.js";
import { checkClassifier, showChecks } from "./check.js";
import { Classifier } from "./runtime.js";
import { showSignal } from "./signal.js";
import { Sliders } from "./sliders.js";
import { Steps } from "./steps.js";
import { data, page, run, showExample, showTruth, start, state, total, update } from "./wiring.js";

Object.assign(state, {
  board: null,
  sliders: null, // of examples that are features
  steps: null, // of those that are series
});

// What is to be classified now: the drawing, the sliders, or the test example; null for an empty drawing.
function readInput() {
  return (state.board ?? state.sliders)?.read() ?? (state.board ? null : state.examples[state.shown]);
}

async function answer() {
  const values = readInput();
  const results = [];
  for (const classifier of values ? state.files : []) {
    results.push({ file: classifier.file, logits: await classifier.classify(values, data) });
  }
  showAnswer(page, results, data);
  showFormats(page.formats, state.files, results, data, state.clockStep);
}

function takeExample(example) {
  showTruth();
  const shown = state.board ?? state.sliders;
  if (shown) {
    shown.show(example);
    return;
  }
  if (state.steps) state.steps.show(example);
  else showSignal(page.signal, example, data.shape, data.features, data.groups);
  run(update);
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

function setUp() {
  if (data.image) setUpBoard();
  else if (data.form === "table") setUpSliders();
  else if (data.form === "series") state.steps = new Steps(page.signal, data.shape, data.features, data.groups);
}

start({
  ...{ dtype: data.dtype, timed: "a call", controls: ["clear"], load: Classifier.load, answer, setUp, showExample: takeExample },
  check: (classifier, tell) => checkClassifier(classifier, state.examples, data, tell),
  showChecks: (checks) => showChecks(page.check, checks, data, total),
  // Grey pictures are drawn first; everything else needs an example to begin with.
  begin: () => (data.image && data.image.channels === 1 ? state.board.clear() : showExample(0)),
});
