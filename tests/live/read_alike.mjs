// What the page's reader makes of tables: `node read_alike.mjs cases.json answers.json`, called by read_alike.py.

import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import path from "node:path";

const modules = path.resolve(import.meta.dirname, "../../launch/live/web");
const load = (name) => import(pathToFileURL(path.join(modules, name)));
const names = ["read_table.js", "csv_rows.js", "errors.js", "python_text.js", "pixels.js"];
const [{ readTable }, { readFile }, { JoinError }, texts, pixels] = await Promise.all(names.map(load));
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

const [casesPath, answersPath] = process.argv.slice(2);
const cases = JSON.parse(readFileSync(casesPath, "utf8"));
const answers = { tables: [], texts: [], pictures: [] };
for (const each of cases.tables) answers.tables.push(await read(each));
for (const [text, names] of cases.texts) {
  answers.texts.push([quote(text), strip(text), suggest(text, names), listNames(names), quote(shorten(text, 60))]);
}
for (const { rgba, width, height, image } of cases.pictures) {
  answers.pictures.push(Array.from(pixels.storePixels(Buffer.from(rgba, "base64"), width, height, image)));
}
writeFileSync(answersPath, JSON.stringify(answers));
