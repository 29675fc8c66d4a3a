// A way to bring examples: a table in a file of text. What is read of it is shown before anything is joined.

import { readFile } from "./csv_rows.js";
import { label, make, makeCounts } from "./elements.js";
import { JoinError } from "./errors.js";
import { countHeldOut, holdOut } from "./hold_out.js";
import { countRows, formatCount, listNames, makePrintable } from "./python_text.js";
import { readTable } from "./read_table.js";

const UNUSABLE = "the server describes the examples of its run in a way that cannot be used here";

class TableFile {
  constructor(place, description, onChange) {
    Object.assign(this, { description, onChange, table: null, newest: 0 });
    this.input = make("input", { type: "file", accept: ".csv,.tsv,.txt,.gz,text/csv,text/plain" });
    this.input.addEventListener("change", () => this.take(this.input.files[0]));
    this.found = make("div", { className: "found" });
    const { columns, label: wanted } = description;
    place.append(
      make("p", {}, ...label("A table (CSV)", this.input)),
      make(
        "details",
        {},
        make("summary", {}, `The ${columns.length + 1} columns that it needs`),
        listColumns(columns, wanted),
      ),
      this.found,
    );
    onChange({ numTrain: 0, numTest: 0, problem: "" });
  }

  async take(file) {
    if (!file) return; // the choice was given up, and what was read stays
    const turn = ++this.newest;
    this.table = null;
    this.found.replaceChildren();
    this.found.className = "found";
    this.onChange({ numTrain: 0, numTest: 0, problem: "Reading…" });
    const notes = [];
    try {
      const content = await readFile(file);
      if (turn !== this.newest) return;
      this.table = readTable(content, file.name, this.description, (note) => notes.push(note));
    } catch (error) {
      if (turn !== this.newest) return;
      const line =
        error instanceof JoinError
          ? error.message
          : error instanceof TypeError
            ? UNUSABLE
            : `${file.name}: ${error.message}`;
      this.show(notes);
      this.found.className = "found refused";
      this.onChange({ numTrain: 0, numTest: 0, problem: makePrintable(line) });
      return;
    }
    this.show(notes);
    const number = this.table.y.length;
    const numTest = countHeldOut(number);
    this.onChange({ numTrain: number - numTest, numTest, problem: "" });
  }

  // What the reader said, and the first rows.
  show(notes) {
    const parts = notes.map((note) => make("p", { className: "note" }, makePrintable(note)));
    if (this.table) {
      const { y, preview } = this.table;
      const number = y.length;
      const held = countHeldOut(number);
      const split = held
        ? `${formatCount(held)} of them ${held === 1 ? "is" : "are"} held out for tests`
        : "too few to hold some out for tests";
      parts.unshift(
        make("p", {}, `${countRows(number)} read; ${split}.`),
        makeCounts(this.description.label.classes, y),
      );
      parts.push(showPreview(preview));
    }
    this.found.replaceChildren(...parts);
  }
}

function listColumns(columns, wanted) {
  const describe = ({ values, classes }) =>
    values || classes ? `one of ${listNames(values ?? classes)}` : "a number, or yes and no";
  const rows = [...columns, wanted].flatMap((column) => [
    make("dt", {}, column === wanted ? `${column.name} (what is predicted)` : column.name),
    make("dd", {}, describe(column)),
  ]);
  return make("dl", { className: "rows" }, ...rows);
}

// The first rows as they are in the file; columns that are left out are struck through.
function showPreview({ names, isUsed, rows }) {
  const cell = (tag, text, place) => make(tag, { className: isUsed[place] ? "" : "left-out" }, makePrintable(text));
  const head = names.map((name, place) => {
    const found = cell("th", name, place);
    found.scope = "col";
    if (!isUsed[place]) found.append(make("span", { className: "note" }, " left out"));
    return found;
  });
  const body = rows.map(({ line, texts, missing }) => {
    const cells = texts.map((text, place) =>
      missing[place] ? make("td", { className: "missing" }, "no value") : cell("td", text, place),
    );
    return make("tr", {}, make("th", { scope: "row" }, String(line)), ...cells);
  });
  const table = make(
    "table",
    {},
    make("caption", {}, "The first rows, as they are in the file"),
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "line"), ...head)),
    make("tbody", {}, ...body),
  );
  return make("div", { className: "preview", tabIndex: 0, role: "region", "aria-label": "The first rows" }, table);
}

let file = null;

export const TABLE = {
  title: "A table (CSV)",
  fits: ({ kind }) => kind === "table",
  show(place, description, onChange) {
    file = new TableFile(place, description, onChange);
  },
  read: async (key) => holdOut(file.table.x, file.table.y, key),
};
