// The rows of a table of text, as `join.py` reads them with Python's `csv`: fields, and the line in which each begins.

import { JoinError } from "./errors.js";
import { strip } from "./python_text.js";

const SEPARATORS = [",", ";", "\t", "|"];
const MOST_BYTES = 2 ** 29; // of a table, unpacked
const MOST_CHARACTERS = 131072; // of a field, as Python's `csv` has it
const SAMPLE_LINES = 200; // by which the separator is found
const MARK = /^sep=([,;\t|])(\r\n|\r|\n)/iu; // which Excel writes above the names
// Bytes 128 to 159 of Windows' code page for western Europe; the others are those of Latin 1.
const WINDOWS_BYTES = "€\ufffd‚ƒ„…†‡ˆ‰Š‹Œ\ufffdŽ\ufffd\ufffd‘’“”•–—˜™š›œ\ufffdžŸ";

// What is wrong with the text of a row.
class RowError extends Error {}

// The content of a file, unpacked if it is packed by gzip. Raises JoinError, which begins with the file's name.
export async function readFile(file) {
  if (file.size > MOST_BYTES)
    throw new JoinError(`${file.name}: more than ${MOST_BYTES >> 20} MB, and no more are read`);
  const content = new Uint8Array(await file.arrayBuffer());
  return content[0] === 0x1f && content[1] === 0x8b ? unpack(content, file.name) : content;
}

async function unpack(content, name) {
  const parts = [];
  let size = 0;
  try {
    const stream = new Blob([content]).stream().pipeThrough(new DecompressionStream("gzip"));
    for (const reader = stream.getReader(); ;) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
      size += value.length;
      if (size > MOST_BYTES) {
        await reader.cancel();
        break;
      }
    }
  } catch {
    throw new JoinError(`${name}: cannot be read (packed by gzip, and damaged)`);
  }
  if (size > MOST_BYTES) throw new JoinError(`${name}: more than ${MOST_BYTES >> 20} MB, and no more are read`);
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

// {names, rows: [{line, fields}], separator} of a table's bytes. Raises JoinError.
export function readRows(content, name) {
  if (content.includes(0)) throw new JoinError(`${name}: no table of text; save it as CSV in UTF-8`);
  let text = decode(content);
  const mark = MARK.exec(text);
  if (mark) text = text.slice(mark[0].length);
  const separator = mark ? mark[1] : findSeparator(text);
  const first = mark ? 2 : 1;
  const rows = [];
  let line = first;
  try {
    for (const { fields, numLines } of splitRows(splitLines(text), separator, true)) {
      if (fields.length) {
        const expected = rows.length ? rows[0].fields.length : fields.length;
        if (fields.length !== expected) {
          throw new RowError(`${fields.length} fields, expected ${expected} as in the first line`);
        }
        rows.push({ line, fields: fields.map(strip) });
      }
      line = first + numLines;
    }
  } catch (error) {
    if (!(error instanceof RowError)) throw error;
    throw new JoinError(`${name}, line ${line}: no row of the table: ${error.message}`);
  }
  if (rows.length < 2) throw new JoinError(`${name}: no rows below the names of the columns, expected at least one`);
  return { names: rows[0].fields, rows: rows.slice(1), separator };
}

function decode(content) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(content);
  } catch {
    const parts = [];
    for (let at = 0; at < content.length; at += 8192) parts.push(decodeWindows(content.subarray(at, at + 8192)));
    return parts.join("");
  }
}

function decodeWindows(bytes) {
  return String.fromCharCode(...bytes).replace(/[\x80-\x9f]/g, (each) => WINDOWS_BYTES[each.charCodeAt(0) - 128]);
}

// [text, line break] of each line.
function* splitLines(text) {
  const breaks = /\r\n|\r|\n/g;
  let at = 0;
  for (let found; (found = breaks.exec(text)); at = breaks.lastIndex) yield [text.slice(at, found.index), found[0]];
  if (at < text.length) yield [text.slice(at), ""];
}

function findSeparator(text) {
  const sample = [];
  for (const [line] of splitLines(text)) {
    if (sample.length === SAMPLE_LINES) break;
    sample.push([line, "\n"]);
  }
  let best = null;
  for (const separator of SEPARATORS) {
    const [share, width] = scoreSeparator(sample, separator);
    if (!best || share > best.share || (share === best.share && width > best.width)) best = { share, width, separator };
  }
  return best.separator;
}

// How well a separator parts lines: the share with as many fields as the first, and how many these are.
function scoreSeparator(lines, separator) {
  const widths = [];
  try {
    for (const { fields } of splitRows(lines, separator, false)) if (fields.length) widths.push(fields.length);
  } catch (error) {
    if (!(error instanceof RowError)) throw error; // said when the rows are read
  }
  if (!widths.length || widths[0] < 2) return [0, 0];
  const share = widths.filter((width) => width === widths[0]).length / widths.length;
  // As Python rounds: a quarter, which lies in the middle, down to the even digit.
  return [share === 0.25 ? 0.2 : Number(share.toFixed(1)), widths[0]];
}

// {fields, numLines: lines so far} of each row of [text, line break] pairs; an empty line has no fields. In quotes, a
// field may have separators, line breaks, and quotes doubled. Raises RowError.
function* splitRows(lines, separator, isStrict) {
  let [numLines, isQuoted, fields, field] = [0, false, [], ""];
  const add = (text) => (field = checkLength(field + text));
  for (const [line, lineBreak] of lines) {
    numLines += 1;
    if (!isQuoted && !line.includes('"')) {
      yield { fields: line ? line.split(separator).map(checkLength) : [], numLines };
      continue;
    }
    if (!isQuoted) [fields, field] = [[], ""];
    for (let at = 0; at <= line.length;) {
      if (!isQuoted && line[at] === '"') [isQuoted, at] = [true, at + 1];
      if (isQuoted) {
        const end = line.indexOf('"', at);
        if (end < 0) {
          add(line.slice(at) + lineBreak);
          break;
        }
        add(line.slice(at, end));
        at = end + 1;
        if (line[at] === '"') {
          add('"');
          at += 1;
          continue;
        }
        isQuoted = false;
        if (isStrict && at < line.length && line[at] !== separator) {
          throw new RowError(`'${separator}' expected after '"'`);
        }
      }
      const found = line.indexOf(separator, at);
      const end = found < 0 ? line.length : found;
      add(line.slice(at, end));
      fields.push(field);
      field = "";
      at = end + 1;
    }
    if (!isQuoted) yield { fields, numLines };
  }
  if (!isQuoted) return;
  if (isStrict) throw new RowError("unexpected end of data");
  yield { fields: [...fields, field], numLines };
}

function checkLength(field) {
  if (field.length > MOST_CHARACTERS && Array.from(field).length > MOST_CHARACTERS) {
    throw new RowError(`field larger than field limit (${MOST_CHARACTERS})`);
  }
  return field;
}
