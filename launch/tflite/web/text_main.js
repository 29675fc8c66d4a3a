// Wires the page of a text model: a person types, and sees what comes next in every format.

import { makeElement, showAnswer, showFormats, softenName, swatch } from "./answer.js";
import { computeSoftmax } from "./maths.js";
import { Vocabulary, chooseToken, fillPositions, takePosition } from "./text.js";
import { TokenFile, checkFile } from "./token_file.js";
import { data, doAlone, page, run, say, start, state, update } from "./wiring.js";

const MOST_ADDED = { characters: 200, words: 40, numbers: 40 }; // by one press
const MOST_NAMED = 8; // of what is in no vocabulary
const vocabulary = new Vocabulary(data.vocabulary, data.size, data.oov);

const readWindow = () => fillPositions(vocabulary.encode(page.text.value).tokens, data.positions, data.padding, vocabulary.special.begin);

// The logits of what follows the text; null without a text.
async function computeNext(tokenFile) {
  const filled = readWindow();
  return filled && takePosition(await tokenFile.compute(filled.values), filled.last, data.size);
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

function takeExample(example) {
  page.text.value = vocabulary.decode(example);
  const labels = data.sample.labels[state.shown].filter((label) => label >= 0 && label !== data.padding);
  page.truth.textContent = labels.length ? `In truth, next comes: ${data.labels[labels.at(-1)]}` : "";
  run(update);
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

function setUpTyping() {
  const what = {
    characters: `Type; the model reads characters and says which comes next. It knows ${data.size} of them.`,
    words: `Type; the model reads words with spaces between and says which comes next. It knows ${data.size} of them.`,
    numbers: `This run has no vocabulary, so the page takes token ids: numbers from 0 to ${data.size - 1} with spaces between.`,
  };
  page["text-help"].textContent = what[vocabulary.form];
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
}

setUpTyping();
start({
  ...{ dtype: "int32", timed: `a call for all ${data.positions} positions`, load: TokenFile.load, answer: showNext },
  ...{ controls: ["format", "clear", "add", "complete", "choice"], describe: describeText, showExample: takeExample },
  check: (tokenFile, tell) => checkFile(tokenFile, state.examples, data, tell),
  showChecks: showTokenCheck,
  showModel(model) {
    page.format.replaceChildren(...model.files.map(({ format }, i) => new Option(format, i)));
  },
  disable(isDisabled) {
    page.text.readOnly = isDisabled;
  },
});
