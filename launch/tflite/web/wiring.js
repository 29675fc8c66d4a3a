// What the pages of all kinds of models share: how they start, load a model, step through the test examples and answer.

import { showRows } from "./answer.js";
import { splitExamples } from "./examples.js";
import { formatNumber } from "./maths.js";
import { measureClockStep, startRuntime, unpack } from "./runtime.js";

export const page = Object.fromEntries(Array.from(document.querySelectorAll("[id]"), (element) => [element.id, element]));
export const data = JSON.parse(document.getElementById("page-data").textContent);
export const total = data.sample.labels.length;
export const state = {
  model: null,
  files: [], // of the model, compiled
  examples: [],
  shown: null, // the place of the test example
  clockStep: 1,
  busy: false, // computing
  stale: false, // something has changed since
  locked: false, // the models are in use: loaded, checked, or completing a line
};
let own; // what a page does in its own way, see `start`

export function say(text) {
  page.status.textContent = text;
}

// Runs something and says on the page if it failed.
export async function run(action) {
  try {
    await action();
  } catch (error) {
    page.status.classList.add("failed");
    say(`This browser cannot run the models: ${error.message ?? error}`);
    console.error(error);
  }
}

// Answers to what is shown. While that runs, further changes wait together for one more run.
export async function update() {
  state.stale = true;
  own.describe?.();
  if (state.busy || state.locked) return;
  state.busy = true;
  try {
    while (state.stale) {
      state.stale = false;
      await own.answer();
    }
  } finally {
    state.busy = false;
  }
}

// Does something during which nothing else may use the models, then answers to what is shown.
export async function doAlone(work) {
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

function disable(isDisabled) {
  for (const id of ["model", "previous", "next", "example", "run-all", ...own.controls]) page[id].disabled = isDisabled;
  own.disable?.(isDisabled);
}

export function showExample(index) {
  state.shown = (index + total) % total;
  page.example.value = state.shown + 1;
  own.showExample(state.examples[state.shown]);
}

// What a test example is in truth, of models with one answer an example.
export function showTruth() {
  const truth = data.answers === "numbers" ? data.truths[state.shown] : data.labels[data.sample.labels[state.shown]];
  page.truth.textContent = `In truth: ${truth}`;
}

async function chooseModel(model) {
  say(`Loading ${model.name}…`);
  state.files.splice(0).forEach((file) => file.delete());
  for (const file of model.files) state.files.push(await own.load(file));
  state.model = model;
  own.showModel?.(model);
  page.check.replaceChildren();
  page.progress.textContent = "";
  showRows(page.about, model.about);
  say("");
}

// Every test example in every format. The result is also kept as `lastCheck` for whoever drives the page.
async function runAll() {
  page.check.replaceChildren();
  const checks = [];
  for (const compiled of state.files) {
    const tell = (done) => (page.progress.textContent = `${compiled.file.format}: ${done} of ${total}`);
    checks.push(await own.check(compiled, tell));
  }
  page.progress.textContent = "Done.";
  own.showChecks(checks);
  globalThis.lastCheck = { model: state.model.name, checks };
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

// Starts a page, which gives what is its own:
// - dtype: of the examples; timed: what a call is, in words; controls: the ids of what else rests while models are in use
// - load(file), check(compiled, onProgress), showChecks(checks): a file compiled, compared with the report, and shown
// - answer(): computes and shows the answers; showExample(example): takes it as the input
// - where need be disable(isDisabled), describe(), before each answer, showModel(model), setUp() and begin(), at the end
export function start(ways) {
  own = ways;
  run(async () => {
    disable(true);
    setUpControls();
    if (!("DecompressionStream" in globalThis)) throw new Error("it is too old to unpack them; expected one of 2023 or later");
    say("Unpacking the runtime…");
    state.examples = splitExamples(await unpack("examples"), own.dtype, total);
    const build = await startRuntime();
    page.build.textContent = build === "compat" ? ", the build for browsers without relaxed SIMD" : "";
    state.clockStep = measureClockStep();
    page.clock.textContent =
      `Time of ${own.timed} on one thread, copying in and out included: median of the last 50, and between what half of them ` +
      `lie. This browser's clock steps by ${formatNumber(state.clockStep)} ms.`;
    own.setUp?.();
    await doAlone(() => chooseModel(data.models[0]));
    own.begin?.();
    document.documentElement.dataset.ready = build;
  });
}
