// A person's table as the organiser's reader has it, by the run's description. `join.py` reads the same to the bit.

import { Cells, encodeCategories, encodeNumbers, findClasses, findMissing, hasDecimalComma } from "./csv_cells.js";
import { readRows } from "./csv_rows.js";
import { JoinError } from "./errors.js";
import { countRows, formatCount, listNames, quote, suggest } from "./python_text.js";

const MOST_PREVIEWED = 5; // rows

// What a table's bytes hold: {x, y, width, preview}; lines on what is left out or taken as something else go to `say`.
// - x: Float32Array (rows * width), preprocessed; y: Int32Array, the class of each row
// - preview: {names, rows: [{line, texts, missing}], isUsed} of the first rows, all columns, and whether each is used
// Raises JoinError: a column is missing, or a value is of no use; it names the line.
export function readTable(content, name, description, say) {
  const { names, rows: all, separator } = readRows(content, name);
  const { columns: features, label } = description;
  const columns = [...features, label];
  const places = columns.map((column) => findColumn(name, names, column.name));
  const used = new Set([...places.map((place) => names[place]), ...description.left_out]);
  const others = names.filter((each) => !used.has(each));
  if (others.length) say(`${name}: left out, since the run does not use them: ${others.join(", ")}`);
  const hasComma = hasDecimalComma(description.decimal_mark, separator, listNumbers(all, columns, places));
  const isMissing = findMissing(description.missing_words, hasComma);
  const rows = description.missing === "drop" ? dropRows(all, places, isMissing, name, say) : all;
  if (!rows.length) throw new JoinError(`${name}: no row is left to train on, expected at least one`);
  const lines = rows.map(({ line }) => line);
  const encoded = columns.map((column, i) => {
    const texts = rows.map(({ fields }) => fields[places[i]]);
    const missing = texts.map(isMissing);
    if (column === label || description.missing !== "median") checkWhole(name, lines, missing, column);
    const encode = column === label ? findClasses : "values" in column ? encodeCategories : encodeNumbers;
    return encode(new Cells(name, lines, texts, missing, hasComma, say), column);
  });
  const y = encoded.pop();
  const preview = {
    names,
    isUsed: names.map((_, place) => places.includes(place)),
    rows: rows
      .slice(0, MOST_PREVIEWED)
      .map(({ line, fields }) => ({ line, texts: fields, missing: fields.map(isMissing) })),
  };
  return { ...join(encoded, rows.length, description), y, preview };
}

function findColumn(file, names, name) {
  const count = names.filter((each) => each === name).length;
  if (count === 1) return names.indexOf(name);
  if (count) throw new JoinError(`${file}: ${count} columns are called ${quote(name)}, expected one`);
  const found = `no column ${quote(name)}, which the run needs; it has ${listNames(names)}`;
  throw new JoinError(`${file}: ${found}${suggest(name, names)}`);
}

function* listNumbers(rows, columns, places) {
  const ofNumbers = places.filter((_, i) => columns[i].kind === "number" || columns[i].numbers?.length);
  for (const { fields } of rows) for (const place of ofNumbers) yield fields[place];
}

function dropRows(rows, places, isMissing, name, say) {
  const left = rows.filter(({ fields }) => !places.some((place) => isMissing(fields[place])));
  const lost = rows.length - left.length;
  if (lost) say(`${name}: of ${countRows(rows.length)}, ${formatCount(lost)} are left out, since a value is missing`);
  return left;
}

function checkWhole(name, lines, missing, column) {
  const row = missing.indexOf(true);
  if (row < 0) return;
  const count = countRows(missing.filter(Boolean).length);
  throw new JoinError(
    `${name}, line ${lines[row]}: column ${quote(column.name)} has no value (${count} in all), and the run ` +
      "fills none in; fill it in, or take such rows out",
  );
}

// The columns side by side, preprocessed; each step is rounded to float32, as NumPy rounds it.
function join(encoded, numRows, { scale, offset }) {
  const width = encoded.reduce((sum, each) => sum + each.width, 0);
  const [factor, summand] = [Math.fround(scale), Math.fround(offset)];
  const x = new Float32Array(numRows * width);
  let from = 0;
  for (const { width: own, values } of encoded) {
    for (let i = 0; i < values.length; i++) {
      const at = Math.floor(i / own) * width + from + (i % own);
      x[at] = Math.fround(values[i] * factor) + summand;
    }
    from += own;
  }
  return { x, width };
}
