// Wires the page of a text model: a person types, and sees what comes next in every format.

import { makeElement, showAnswer, showFormats, showRows, softenName, swatch } from "./answer.js";
import { splitExamples } from "./examples.js";
import { computeSoftmax, formatNumber } from "./maths.js";
import { measureClockStep, startRuntime, unpack } from "./runtime.js";
import { Vocabulary, chooseToken, fillPositions, takePosition } from "./text.js";
import { TokenFile, checkFile } from "./token_file.js";

const MOST_ADDED = { characters: 200, words: 40, numbers: 40 }; // by one press
const MOST_NAMED = 8; // of what is in no vocabulary
const page = Object.fromEntries(Array.from(document.querySelectorAll("[id]"), (element) => [element.id, element]));
const data = JSON.parse(document.getElementById("page-data").textContent);
const vocabulary = new Vocabulary(data.vocabulary, data.size, data.oov);
const total = data.sample.labels.length;
const CONTROLS = ["model", "format", "previous", "next", "example", "run-all", "clear", "add", "complete", "choice"];
const state = {
  model: null,
  files: [],
  examples: [],
  shown: 0,
  clockStep: 1,
  busy: false, // computing
  stale: false, // something has changed since
  locked: false, // the models are being loaded or checked, or a line is completed
};

const readWindow = () => fillPositions(vocabulary.encode(page.text.value).tokens, data.positions, data.padding, vocabulary.special.begin);

// The logits of what follows the text; null without a text.
async function computeNext(tokenFile) {
  const filled = readWindow();
  return filled && takePosition(await tokenFile.compute(filled.values), filled.last, data.size);
}

// Shows what comes next. While that is computed, further changes wait together for one more time.
async function update() {
  state.stale = true;
  describeText();
  if (state.busy || state.locked) return;
  state.busy = true;
  try {
    while (state.stale) {
      state.stale = false;
      await showNext();
    }
  } finally {
    state.busy = false;
  }
}

async function showNext() {
  const results = [];
  for (const tokenFile of state.files) {
    const logits = await computeNext(tokenFile);
    if (logits) results.push({ file: tokenFile.file, logits });
  }
  const form = { answers: "classes", labels: data.labels };
  showAnswer(page, results, form);
  if (!results.length) page.agreement.textContent = "Nothing typed yet.";
  showFormats(page.formats, state.files, results, form, state.clockStep);
}

// What of the text the model does not know, and what of it is too long ago.
function describeText() {
  const { tokens, unknown } = vocabulary.encode(page.text.value);
  const lines = [];
  if (unknown.length) {
    const named = unknown.slice(0, MOST_NAMED).map((part) => JSON.stringify(part)).join(", ");
    const fate = vocabulary.special.unknown >= 0 ? "read as unknown" : "left out";
    lines.push(`Not in the vocabulary, ${fate}: ${named}${unknown.length > MOST_NAMED ? ", …" : ""}.`);
  }
  if (tokens.length > data.positions) lines.push(`The model reads the last ${data.positions} of ${tokens.length} tokens.`);
  page.notes.textContent = lines.join(" ");
}

// Does something during which nothing else may use the models, then shows what comes next.
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

// Adds up to `most` tokens, each from the chosen format, until a line ends; the end itself is not written.
async function addTokens(most) {
  const tokenFile = state.files[page.format.value];
  const forbidden = vocabulary.listForbidden();
  for (let added = 0; added < most; added++) {
    const logits = await computeNext(tokenFile);
    if (!logits) return;
    const draw = page.choice.value === "chance" ? Math.random() : null;
    const token = chooseToken(computeSoftmax(logits), forbidden, draw);
    if (vocabulary.endsLine(token)) {
      if (most === 1) say("The model ends the line here.");
      return;
    }
    page.text.value = vocabulary.append(page.text.value, token);
    page.text.scrollTop = page.text.scrollHeight;
    await new Promise((resolve) => setTimeout(resolve));
  }
}

function showExample(index) {
  state.shown = (index + total) % total;
  page.example.value = state.shown + 1;
  page.text.value = vocabulary.decode(state.examples[state.shown]);
  const labels = data.sample.labels[state.shown].filter((label) => label >= 0 && label !== data.padding);
  page.truth.textContent = labels.length ? `In truth, next comes: ${data.labels[labels.at(-1)]}` : "";
  run(update);
}

async function chooseModel(model) {
  say(`Loading ${model.name}…`);
  state.files.splice(0).forEach((tokenFile) => tokenFile.delete());
  for (const file of model.files) state.files.push(await TokenFile.load(file));
  state.model = model;
  page.format.replaceChildren(...model.files.map(({ format }, i) => new Option(format, i)));
  page.check.replaceChildren();
  page.progress.textContent = "";
  showRows(page.about, model.about);
  say("");
}

// Every test example in every format. The result is also kept as `lastCheck` for whoever drives the page.
async function runAll() {
  page.check.replaceChildren();
  const checks = [];
  for (const tokenFile of state.files) {
    const tell = (done) => (page.progress.textContent = `${tokenFile.file.format}: ${done} of ${total}`);
    checks.push(await checkFile(tokenFile, state.examples, data, tell));
  }
  page.progress.textContent = "Done.";
  showTokenCheck(checks);
  globalThis.lastCheck = { model: state.model.name, checks };
}

function showTokenCheck(checks) {
  const head = makeElement("tr", ["Format", "Correct tokens", "As in the report"].map((text) => makeElement("th", text)));
  for (const cell of head.children) cell.scope = "col";
  const body = checks.map(({ file, total: number, correct, agreeing }) => {
    const name = makeElement("th", [swatch(file.format), softenName(file.format)]);
    name.scope = "row";
    return makeElement("tr", [name, makeElement("td", `${correct} of ${number}`), makeElement("td", `${agreeing} of ${number}`)]);
  });
  page.check.replaceChildren(makeElement("table", [makeElement("thead", head), makeElement("tbody", body)]));
}

function setUpControls() {
  const what = {
    characters: `Type; the model reads characters and says which comes next. It knows ${data.size} of them.`,
    words: `Type; the model reads words with spaces between and says which comes next. It knows ${data.size} of them.`,
    numbers: `This run has no vocabulary, so the page takes token ids: numbers from 0 to ${data.size - 1} with spaces between.`,
  };
  page["text-help"].textContent = what[vocabulary.form];
  page.of.textContent = `of ${total}`;
  page.example.max = total;
  page["run-all"].textContent = `Run all ${total} test examples`;
  page["model-choice"].hidden = data.models.length < 2;
  page.model.append(...data.models.map(({ name }, i) => new Option(name, i)));
  page.model.addEventListener("change", () => run(() => doAlone(() => chooseModel(data.models[page.model.value]))));
  page.text.addEventListener("input", () => {
    page.truth.textContent = page.example.value = "";
    say("");
    run(update);
  });
  page.clear.addEventListener("click", () => {
    page.text.value = page.truth.textContent = page.example.value = "";
    run(update);
  });
  page.add.addEventListener("click", () => run(() => doAlone(() => addTokens(1))));
  page.complete.addEventListener("click", () => run(() => doAlone(() => addTokens(MOST_ADDED[vocabulary.form]))));
  page.previous.addEventListener("click", () => showExample(state.shown - 1));
  page.next.addEventListener("click", () => showExample(state.shown + 1));
  page.example.addEventListener("change", () => {
    const wanted = Math.round(page.example.valueAsNumber) || 1;
    showExample(Math.min(total, Math.max(1, wanted)) - 1);
  });
  page["run-all"].addEventListener("click", () => run(() => doAlone(runAll)));
}

function disable(isDisabled) {
  for (const id of CONTROLS) page[id].disabled = isDisabled;
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
    `Time of a call for all ${data.positions} positions on one thread, copying in and out included, over the last 50 calls. ` +
    `This browser's clock steps by ${formatNumber(state.clockStep)} ms.`;
  await doAlone(() => chooseModel(data.models[0]));
  document.documentElement.dataset.ready = build;
}

run(start);
