// Tables that are sorted by a click on a heading.

import { compareValues } from "./numbers.js";

export function makeElement(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

// Fills `table`. A column is {title, read(row) -> value, format(value, row) -> text or node, isText, hint}; `sort` is
// {column, isDescending}, which a click changes. Rows with equal values keep their order; `classify` gives a row's class.
export function fillTable(table, columns, rows, sort, { onRow = null, classify = () => null, caption = "" } = {}) {
  const refill = () => fillTable(table, columns, rows, sort, { onRow, classify, caption });
  const heads = columns.map((column, i) => {
    const isSorted = sort.column === i;
    const turn = () => {
      sort.isDescending = isSorted ? !sort.isDescending : !(column.isText ?? false);
      sort.column = i;
      refill();
      table.querySelectorAll("thead button")[i].focus();
    };
    const arrow = makeElement("span", { class: "arrow", "aria-hidden": "true" }, isSorted ? (sort.isDescending ? "▼" : "▲") : "");
    const button = makeElement("button", { type: "button", onclick: turn, title: column.hint }, column.title, arrow);
    const order = isSorted ? (sort.isDescending ? "descending" : "ascending") : null;
    return makeElement("th", { scope: "col", "aria-sort": order, class: column.isText ? "text" : null }, button);
  });
  const body = sortRows(rows, columns[sort.column], sort.isDescending).map((row) => {
    const cells = columns.map((column, i) => {
      const value = column.read(row);
      const content = column.format ? column.format(value, row) : String(value ?? "–");
      return makeElement(i ? "td" : "th", { class: column.isText ? "text" : null, scope: i ? null : "row" }, content);
    });
    const line = makeElement("tr", { class: classify(row) }, ...cells);
    if (onRow) line.addEventListener("click", () => onRow(row));
    return line;
  });
  const name = caption ? [makeElement("caption", {}, caption)] : [];
  table.replaceChildren(...name, makeElement("thead", {}, makeElement("tr", {}, ...heads)), makeElement("tbody", {}, ...body));
}

function sortRows(rows, column, isDescending) {
  if (!column) return rows;
  const isMissing = (value) => value === null || value === undefined;
  return [...rows].sort((one, other) => {
    const [a, b] = [column.read(one), column.read(other)];
    const order = compareValues(a, b);
    return isDescending && !isMissing(a) && !isMissing(b) ? -order : order; // what is missing stays last
  });
}
