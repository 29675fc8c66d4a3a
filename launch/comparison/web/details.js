// The section on one run: its results, flags, clients, plots and events.

import { readResult } from "./groups.js";
import { formatBytes, formatFlag, formatNumber, formatSeconds } from "./numbers.js";
import { nameColumn } from "./sections.js";
import { fillTable, makeElement } from "./table.js";

const FORMATS = { virtual_time_s: formatSeconds, total_bytes: formatBytes, seconds: formatSeconds };

export function showRun(content, index) {
  const run = content.runs[index];
  const place = document.getElementById("run-details");
  const dataset = formatFlag(run.flags.dataset);
  const parts = [
    makeElement("p", { class: "run-name" }, makeElement("strong", {}, run.name), ` · ${run.title} on ${dataset}, seed ${run.flags[content.seed]}`),
    linkFiles(run.links),
    listResults(content, run),
    listFlags(content, run),
    listClients(run),
    showPlots(content, run, index),
    listEvents(content, run),
  ];
  place.replaceChildren(...parts.filter(Boolean));
}

function linkFiles(links) {
  const names = Object.keys(links);
  if (!names.length) return null;
  return makeElement("p", { class: "links" }, "Files: ", ...names.flatMap((name, i) => [i ? " · " : "", makeElement("a", { href: encodeURI(links[name]) }, name)]));
}

function makeBlock(title, isOpen, ...children) {
  return makeElement("details", { open: isOpen, class: "block" }, makeElement("summary", {}, title), ...children);
}

function makeTable(columns, rows) {
  const table = makeElement("table");
  fillTable(table, columns, rows, { column: null, isDescending: false });
  return makeElement("div", { class: "scroll tall", tabindex: "0" }, table);
}

function listResults(content, run) {
  const rows = content.metrics.map((name) => ({ name, last: readResult(run, name, "last"), best: readResult(run, name, "best") }));
  const columns = [
    { title: "Result", read: ({ name }) => nameColumn(content, name), isText: true },
    { title: "Last", read: ({ last }) => last.value, format: formatNumber },
    { title: "Best", read: ({ best }) => best.value, format: formatNumber },
    { title: "in round", read: ({ best }) => best.round },
  ];
  const main = rows.filter(({ name, last }) => last && name in content.labels);
  const others = rows.filter(({ name, last }) => last && !(name in content.labels)).map((row) => ({ ...row, best: { value: null, round: null } }));
  const totals = content.axes.map((name) => [nameColumn(content, name), readResult(run, name, "last")?.value, FORMATS[name] ?? formatNumber]);
  const text = totals.filter(([, value]) => value !== undefined).map(([title, value, format]) => `${title.replace(/, s$/, "")}: ${format(value)}`).join(" · ");
  return makeBlock("Results", true, makeElement("p", { class: "note" }, text), makeTable(columns, [...main, ...others]));
}

function listFlags(content, run) {
  const names = Object.keys(run.flags);
  const rows = [...names.filter((name) => content.differing.includes(name)), ...names.filter((name) => !content.differing.includes(name))];
  const columns = [
    { title: "Flag", read: (name) => name, isText: true },
    { title: "Value", read: (name) => run.flags[name], format: formatFlag, isText: true },
  ];
  const differ = content.differing.length ? `, those first that differ between the runs` : "";
  return makeBlock(`Flags (${names.length}${differ})`, false, makeTable(columns, rows));
}

function listClients(run) {
  if (!run.clients) return makeElement("p", { class: "note" }, "Its clients are left out, since the clients of so many runs would make the page too large; see clients.csv.");
  const names = Object.keys(run.clients);
  if (!names.length) return null;
  const rows = run.clients[names[0]].map((_, i) => Object.fromEntries(names.map((name) => [name, run.clients[name][i]])));
  const columns = names.map((name) => ({
    ...{ title: name, read: (row) => row[name], format: formatNumber },
    isText: rows.some((row) => typeof row[name] === "string"),
  }));
  const known = rows.map((row) => row.accuracy).filter((value) => typeof value === "number").sort((one, other) => one - other);
  const text = known.length
    ? `Accuracy on their own test splits: lowest ${formatNumber(known[0])}, median ${formatNumber(known[Math.floor(known.length / 2)])}, highest ${formatNumber(known.at(-1))}.`
    : "";
  return makeBlock(`Clients (${rows.length})`, true, makeElement("p", { class: "note" }, text), makeTable(columns, rows));
}

function showPlots(content, run, index) {
  const names = Object.keys(run.plots);
  if (!names.length) return null;
  if (!run.pictures.length) {
    const links = names.flatMap((name, i) => [i ? " · " : "", makeElement("a", { href: encodeURI(run.plots[name]) }, name)]);
    return makeBlock("Plots", true, makeElement("p", { class: "links" }, ...links), makeElement("p", { class: "note" }, `In this page are those of ${content.rule}.`));
  }
  const pictures = run.pictures.map((name, number) => {
    const text = document.getElementById(`picture-${index}-${number}`).textContent;
    return makeElement("figure", {}, makeElement("img", { src: `data:image/png;base64,${text}`, alt: name, loading: "lazy" }), makeElement("figcaption", {}, name));
  });
  return makeBlock(`Plots (${pictures.length})`, true, makeElement("div", { class: "pictures" }, ...pictures));
}

function listEvents(content, run) {
  if (!run.events) {
    return run.links["events.csv"] && !run.detailed ? makeElement("p", { class: "note" }, `Its events are linked above; in this page are those of ${content.rule}.`) : null;
  }
  const { columns: names, rows, total } = run.events;
  const columns = names.map((title, i) => ({
    ...{ title, isText: rows.some((row) => row[i] !== "" && isNaN(row[i])) },
    read: (row) => (row[i] === "" ? null : isNaN(row[i]) ? row[i] : Number(row[i])),
    format: formatNumber,
  }));
  const shown = rows.length < total ? `the first ${formatNumber(rows.length)} of ${formatNumber(total)}` : formatNumber(total);
  return makeBlock(`Events (${shown})`, false, makeTable(columns, rows));
}
