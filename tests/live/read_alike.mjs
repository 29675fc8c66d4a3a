// What the page's readers make of files: `node read_alike.mjs <folder of its modules> cases.json answers.json`, called
// by read_alike.py.

import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import path from "node:path";

const [modules, casesPath, answersPath] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(path.resolve(modules, name)));
const names = ["read_table.js", "csv_rows.js", "errors.js", "python_text.js", "pixels.js", "hold_out.js", "images.js"];
const [{ readTable }, { readFile }, { JoinError }, texts, pixels, { holdOut }, { findClass }] = await Promise.all(
  names.map(load),
);
const { listNames, quote, shorten, strip, suggest } = texts;

async function read({ name, description }) {
  const notes = [];
  try {
    const file = new File([readFileSync(name)], name);
    const { x, y, width } = readTable(await readFile(file), name, description, (note) => notes.push(note));
    return { x: Buffer.from(x.buffer).toString("base64"), y: Array.from(y), width, notes };
  } catch (error) {
    if (!(error instanceof JoinError)) throw error;
    return { error: error.message, notes };
  }
}

const cases = JSON.parse(readFileSync(casesPath, "utf8"));
const answers = { tables: [], texts: [], pictures: [], parts: [], places: [] };
for (const each of cases.tables) answers.tables.push(await read(each));
for (const [text, names] of cases.texts) {
  answers.texts.push([quote(text), strip(text), suggest(text, names), listNames(names), quote(shorten(text, 60))]);
}
for (const { rgba, width, height, image } of cases.pictures) {
  answers.pictures.push(Array.from(pixels.storePixels(Buffer.from(rgba, "base64"), width, height, image)));
}
for (const [number, key] of cases.parts) {
  const y = Int32Array.from({ length: number }, (_, row) => row);
  const x = Float32Array.from({ length: 2 * number }, (_, i) => i);
  answers.parts.push(
    Object.fromEntries(Object.entries(holdOut(x, y, key)).map(([name, values]) => [name, Array.from(values)])),
  );
}
for (const [webkitRelativePath, classes] of cases.places)
  answers.places.push(findClass({ webkitRelativePath }, classes));
writeFileSync(answersPath, JSON.stringify(answers));
