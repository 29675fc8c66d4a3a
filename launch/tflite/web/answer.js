// What the models answer: the class, whether the formats agree, a bar for each class, a row for each format.

import { computeQuantile, computeSoftmax, findLargest, formatBytes, formatNumber, formatPercent, formatTime } from "./maths.js";

const SHOWN_CLASSES = 12;

// Long names may break after an underscore.
export function softenName(name) {
  return name.replaceAll("_", "_\u200b");
}

export function makeElement(name, content, className) {
  const element = document.createElement(name);
  element.append(...[content].flat().filter((part) => part !== null && part !== undefined));
  if (className) element.className = className;
  return element;
}

export function swatch(format) {
  const mark = makeElement("span", "", "swatch");
  mark.dataset.format = format;
  mark.setAttribute("aria-hidden", "true");
  return mark;
}

// `results` has {file, logits, times} for each format; it is empty where there is nothing to answer.
export function showAnswer(page, results, { answers: kind, labels }) {
  if (kind === "numbers" && results.length) {
    showNumbers(page, results, labels);
    return;
  }
  const answers = results.map(({ logits }) => findLargest(logits));
  if (!results.length) {
    page.answer.replaceChildren("—");
    page.agreement.textContent = "Nothing drawn yet.";
    page.bars.replaceChildren();
    return;
  }
  const [first] = results;
  const share = computeSoftmax(first.logits)[answers[0]];
  page.answer.replaceChildren(
    makeElement("strong", softenName(labels[answers[0]])),
    makeElement("span", ` ${formatPercent(share)} (${first.file.format})`),
  );
  page.agreement.textContent = describeAgreement(results, answers, labels);
  page.agreement.classList.toggle("differs", new Set(answers).size > 1);
  showBars(page.bars, results, labels);
}

// The outputs of a model that names no class, as they are: of the first format, and the others' beside each.
function showNumbers(page, results, labels) {
  const [first, ...others] = results;
  page.answer.replaceChildren(
    makeElement("strong", listNumbers(first.logits)),
    makeElement("span", ` (${first.file.format})`),
  );
  page.agreement.textContent = others.map(({ file, logits }) => `${file.format}: ${listNumbers(logits)}`).join("; ");
  page.agreement.classList.remove("differs");
  page.bars.setAttribute("aria-label", "Outputs of the model");
  page.bars.replaceChildren(
    ...labels.slice(0, SHOWN_CLASSES).map((label, i) => makeElement("li", `${softenName(label)}: ${formatNumber(first.logits[i])}`)),
  );
}

// Numbers with commas between them, of many the first.
export function listNumbers(values) {
  const shown = Array.from(values).slice(0, SHOWN_CLASSES).map(formatNumber).join(", ");
  return values.length > SHOWN_CLASSES ? `${shown}, …` : shown;
}

function describeAgreement(results, answers, labels) {
  if (results.length === 1) return "One format is on this page.";
  if (new Set(answers).size === 1) return results.length === 2 ? "Both formats agree." : `All ${results.length} formats agree.`;
  return `The formats differ: ${results.map(({ file }, i) => `${file.format} ${labels[answers[i]]}`).join(", ")}.`;
}

function showBars(list, results, labels) {
  const shares = results.map(({ logits }) => computeSoftmax(logits));
  const classes = labels.map((_, i) => i);
  if (labels.length > SHOWN_CLASSES) {
    classes.sort((a, b) => shares[0][b] - shares[0][a]).splice(SHOWN_CLASSES);
  }
  list.replaceChildren(...classes.map((index) => makeClassRow(index, results, shares, labels)));
}

function makeClassRow(index, results, shares, labels) {
  const tracks = makeElement(
    "span",
    results.map(({ file }, i) => {
      const bar = swatch(file.format);
      bar.className = "bar";
      bar.style.inlineSize = `${100 * shares[i][index]}%`;
      return bar;
    }),
    "tracks",
  );
  tracks.setAttribute("aria-hidden", "true");
  const said = results.map(({ file }, i) => `${file.format} ${formatPercent(shares[i][index])}`).join(", ");
  const row = makeElement("li", [
    makeElement("span", softenName(labels[index]), "name"),
    tracks,
    makeElement("span", formatPercent(shares[0][index]), "share"),
  ]);
  row.setAttribute("aria-label", `${labels[index]}: ${said}`);
  return row;
}

// A row for each format: size, answer, and the time of a call as median and quartiles of the last ones.
export function showFormats(table, classifiers, results, { answers, labels }, clockStep) {
  const describe = (logits) => (answers === "numbers" ? listNumbers(logits) : softenName(labels[findLargest(logits)]));
  table.replaceChildren(
    ...classifiers.map((classifier, i) => {
      const { file } = classifier;
      const answer = results[i] ? describe(results[i].logits) : "—";
      const times = describeTimes(classifier.times, clockStep);
      const name = makeElement("th", [swatch(file.format), softenName(file.format)]);
      name.scope = "row";
      return makeElement("tr", [name, ...[formatBytes(file.size), answer, ...times].map((text) => makeElement("td", text))]);
    }),
  );
}

// The median of some times and the middle half of them, which one call that took long does not change.
function describeTimes(times, clockStep) {
  if (!times.length) return ["—", "—"];
  const [lower, median, upper] = [0.25, 0.5, 0.75].map((share) => formatTime(computeQuantile(times, share), clockStep));
  return [median, lower === upper ? lower : `${lower} to ${upper}`];
}

// The model card's rows of a title and a text. What follows the name of a file is of this file.
export function showRows(list, rows) {
  const elements = rows.flatMap(([title, text]) => [makeElement("dt", title), makeElement("dd", text)]);
  elements.forEach((element, i) => element.classList.toggle("file", rows[i >> 1][0] === "File"));
  list.replaceChildren(...elements);
}
