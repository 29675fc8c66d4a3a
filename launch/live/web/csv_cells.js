// The cells of a table's columns as numbers, as `join.py` has them, by the run's description.

import { JoinError } from "./errors.js";
import { countRows, listNames, quote, shorten, strip, suggest } from "./python_text.js";

const TRUTHS = new Map([
  ["true", 1],
  ["yes", 1],
  ["false", 0],
  ["no", 0],
]);
const LARGEST = (2 - 2 ** -23) * 2 ** 127; // that float32 holds
const MOST_SHOWN = 60; // characters of a value
const PLAIN_NUMBER = /^[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?)$/i;
const DATE = /^\p{Nd}+[-./:]\p{Nd}+[-./:]\p{Nd}+/u;
const ANY_COMMA = /^-?\p{Nd}+,\p{Nd}+$/u;
// Numbers whose mark can be no other than the decimal one: 1,230 and 1.230 are not.
const [COMMA_NUMBER, POINT_NUMBER] = [",", "\\."].map((mark) => {
  const digit = "\\p{Nd}";
  const parts = `${digit}+${mark}(?:${digit}{1,2}|${digit}{4,})|(?:0${digit}*|${digit}{4,})${mark}${digit}+`;
  return new RegExp(`^-?(?:${parts})$`, "u");
});

// Of a text without blanks around it, yes and true as 1, no and false as 0; NaN for what is no plain number.
export function readNumber(text, hasComma = false) {
  const truth = text[0] > "9" ? TRUTHS.get(text.toLowerCase()) : undefined;
  if (truth !== undefined) return truth;
  if (hasComma) text = text.includes(".") ? "" : text.replaceAll(",", ".");
  if (!PLAIN_NUMBER.test(text)) return NaN;
  const number = Number(text);
  return Number.isNaN(number) ? (text[0] === "-" ? -Infinity : Infinity) : number; // JavaScript knows no inf
}

// What tells whether a text stands for no value.
export function findMissing(words, hasComma) {
  const written = new Set(words);
  const numbers = new Set(words.map((word) => readNumber(word)).filter((number) => !Number.isNaN(number)));
  return (text) => {
    if (!text) return true;
    const lowered = text.toLowerCase();
    if (written.has(lowered)) return true;
    return numbers.size > 0 && !TRUTHS.has(lowered) && numbers.has(readNumber(text, hasComma));
  };
}

// Whether 1,5 is a number: as the run says, or else as the cells of numbers tell.
export function hasDecimalComma(mark, separator, cells) {
  if (mark !== "auto" || separator === ",") return mark === "comma";
  // Semicolons separate since commas are taken; so 1,230 is 1.23 there. Beside tabs it is left open.
  const comma = separator === ";" ? ANY_COMMA : COMMA_NUMBER;
  let isFound = false;
  for (const text of cells) {
    if (POINT_NUMBER.test(text)) return false;
    isFound ||= comma.test(text);
  }
  return isFound;
}

// A column of a file. `lines` has the line of each row, `texts` its text, `missing` whether it has none.
export class Cells {
  constructor(name, lines, texts, missing, hasComma, say) {
    Object.assign(this, { name, lines, texts, missing, hasComma, say });
  }

  // Where a value is, and the value.
  locate(row, column) {
    const role = "kind" in column ? "column" : "label column";
    const shown = quote(shorten(this.texts[row], MOST_SHOWN));
    return `${this.name}, line ${this.lines[row]}: ${role} ${quote(column.name)} has ${shown}`;
  }
}

// A number a row. Raises JoinError.
export function encodeNumbers(cells, column) {
  return {
    width: 1,
    values: Float32Array.from(cells.texts, (text, row) => {
      if (cells.missing[row]) return column.fill;
      const value = readNumber(text, cells.hasComma);
      if (Math.abs(value) <= LARGEST) return value;
      const kind = Number.isNaN(value)
        ? DATE.test(text)
          ? "a date, and no number"
          : "no number"
        : "beyond the numbers of 32 bits";
      const mark = /[0-9]/.test(cells.texts[row]) ? `, all with a decimal ${cells.hasComma ? "comma" : "point"}` : "";
      throw new JoinError(`${cells.locate(row, column)}, ${kind}; write numbers alone${mark}`);
    }),
  };
}

// A number a row and category, or the place of the category. What the run does not know is said.
export function encodeCategories(cells, column) {
  const { values, most_frequent: usual } = column;
  const places = new Map(values.map((value, place) => [strip(value), place]));
  const joined = Object.entries(column.joined).map(([text, value]) => [strip(text), places.get(strip(value))]);
  joined.forEach(([text, place]) => places.set(text, place));
  const isUnknown = (text, row) => !cells.missing[row] && !places.has(text);
  const first = cells.texts.findIndex(isUnknown);
  if (first >= 0) {
    const count = countRows(cells.texts.filter(isUnknown).length);
    const taken = `are taken as ${quote(values[usual])}, its most frequent one`;
    cells.say(`${cells.locate(first, column)}, which the run does not know; such values, in ${count}, ${taken}`);
  }
  const found = cells.texts.map((text, row) => (cells.missing[row] ? usual : (places.get(text) ?? usual)));
  if (column.kind === "index") return { width: 1, values: Float32Array.from(found) };
  const encoded = new Float32Array(found.length * values.length);
  found.forEach((place, row) => (encoded[row * values.length + place] = 1));
  return { width: values.length, values: encoded };
}

// The class of each row. Raises JoinError.
export function findClasses(cells, label) {
  const numbers = new Map(label.numbers.map((number, place) => [number, place]));
  const places = new Map(Object.entries(label.spellings).map(([text, place]) => [strip(text), place]));
  return Int32Array.from(cells.texts, (text, row) => {
    const found = numbers.size ? numbers.get(readNumber(text, cells.hasComma)) : places.get(text);
    if (found !== undefined) return found;
    const expected = `expected one of ${listNames(label.classes)}${suggest(text, label.classes)}`;
    throw new JoinError(`${cells.locate(row, label)}, which is no class; ${expected}`);
  });
}
