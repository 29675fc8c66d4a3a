// All test examples of the page at once, compared with their labels and with what the report's machine answered.

import { makeElement, softenName, swatch } from "./answer.js";
import { findLargest, formatNumber, measureMargin } from "./maths.js";
import { makePause } from "./runtime.js";

// Runs one file over the examples and returns its logits, one list an example.
async function runExamples(classifier, examples, form, onProgress) {
  const logits = [];
  const pause = makePause(onProgress);
  for (const example of examples) {
    logits.push(await classifier.classify(example, form));
    await pause(logits.length);
  }
  return logits;
}

// The same with what differs from the report, for `showChecks`. `form` is the page's data.
export async function checkClassifier(classifier, examples, form, onProgress) {
  const { file } = classifier;
  const logits = await runExamples(classifier, examples, form, onProgress);
  const areNumbers = form.answers === "numbers";
  const compare = () => compareWithReport(logits, form.sample.labels, file.predictions);
  return { file, logits, ...(areNumbers ? compareNumbers(logits, file.predictions) : compare()) };
}

export function showChecks(place, checks, { answers, labels }, total) {
  if (answers === "numbers") showNumberCheck(place, checks);
  else showCheck(place, checks, labels, total);
}

// How many classes are right, how many are the report's, and each that is not, with how near the two logits are.
export function compareWithReport(logits, labels, reported) {
  const classes = logits.map(findLargest);
  const count = (expected) => classes.filter((found, i) => found === expected[i]).length;
  const differences = classes
    .map((found, i) => ({ example: i, here: found, report: reported[i] }))
    .filter(({ here, report }) => here !== report)
    .map((row) => ({ ...row, margin: measureMargin(logits[row.example], row.here, row.report) }));
  return { classes, correct: count(labels), agreeing: count(reported), differences };
}

// Of outputs that are numbers: how far the furthest is from the report's, over all examples.
export function compareNumbers(outputs, reported) {
  const differences = outputs.flatMap((values, i) => Array.from(values, (value, j) => Math.abs(value - reported[i][j])));
  return { furthest: differences.reduce((most, value) => Math.max(most, value), 0) };
}

function showNumberCheck(place, checks) {
  const head = makeElement("tr", ["Format", "Furthest from the report"].map((text) => makeElement("th", text)));
  for (const cell of head.children) cell.scope = "col";
  const body = checks.map(({ file, furthest }) => {
    const name = makeElement("th", [swatch(file.format), softenName(file.format)]);
    name.scope = "row";
    return makeElement("tr", [name, makeElement("td", formatNumber(furthest))]);
  });
  place.replaceChildren(makeElement("table", [makeElement("thead", head), makeElement("tbody", body)]));
}

function showCheck(place, checks, labels, total) {
  const head = makeElement("tr", ["Format", "Correct", "As in the report"].map((text) => makeElement("th", text)));
  for (const cell of head.children) cell.scope = "col";
  const body = checks.map(({ file, correct, agreeing }) => {
    const name = makeElement("th", [swatch(file.format), softenName(file.format)]);
    name.scope = "row";
    return makeElement("tr", [name, makeElement("td", `${correct} of ${total}`), makeElement("td", `${agreeing} of ${total}`)]);
  });
  const table = makeElement("table", [makeElement("thead", head), makeElement("tbody", body)]);
  place.replaceChildren(table, describeDifferences(checks, labels));
}

function describeDifferences(checks, labels) {
  const lines = checks.flatMap(({ file, differences }) =>
    differences.map(({ example, here, report, margin }) => {
      const near = margin === 0 ? "a tie" : `logits ${formatNumber(margin)} apart`;
      return `${file.format}, example ${example + 1}: here ${labels[here]}, in the report ${labels[report]}; ${near}.`;
    }),
  );
  if (!lines.length) return makeElement("p", "Every answer is the report's.", "note");
  return makeElement("ul", lines.map((line) => makeElement("li", line)), "note");
}
