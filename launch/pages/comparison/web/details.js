// The section on one run: its results, flags, clients, plots and events.

import { formatBytes, formatFlag, formatNumber, formatSeconds } from "./numbers.js";
import { computeQuantile, readResult } from "./statistics.js";
import { fillTable, makeElement } from "./table.js";
import { byId, nameColumn } from "./words.js";

const FORMATS = { virtual_time_s: formatSeconds, total_bytes: formatBytes, seconds: formatSeconds };

export function showRun(content, index) {
  const run = content.runs[index];
  const place = byId("run-details");
  const dataset = formatFlag(run.flags.dataset);
  const about = ` · ${run.title} on ${dataset}, seed ${run.flags[content.seed]}`;
  const parts = [
    makeElement("p", { class: "run-name" }, makeElement("strong", {}, run.name), about),
    linkFiles(run.links),
    ...run.data.map(makeNote),
    listResults(content, run),
    listFlags(content, run),
    listClients(content, run),
    showPlots(content, run, index),
    listEvents(content, run),
  ];
  place.replaceChildren(...parts.filter(Boolean));
}

function linkFiles(links) {
  return Object.keys(links).length ? makeElement("p", { class: "links" }, "Files: ", ...listLinks(links)) : null;
}

// Links by name, {name: path}, with dots between them. A folder may be called anything.
function listLinks(links) {
  return Object.entries(links).flatMap(([name, path], i) => {
    const href = path.split("/").map(encodeURIComponent).join("/");
    return [i ? " · " : "", makeElement("a", { href }, name)];
  });
}

function makeNote(text) {
  return makeElement("p", { class: "note" }, text);
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
    { title: "Last", read: ({ last }) => last.value, format: (value) => formatNumber(value) },
    { title: "Best", read: ({ best }) => best.value, format: (value) => formatNumber(value) },
    { title: "in round", read: ({ best }) => best.round },
  ];
  const main = rows.filter(({ name, last }) => last && content.main.includes(name));
  const others = rows.filter(({ name, last }) => last && !content.main.includes(name));
  const measured = Object.entries(run.trivial).filter(([column]) => run.columns[column] !== undefined);
  const trivial = measured.flatMap(([column, values]) =>
    Object.entries(values).map(([title, value]) => ({
      ...{ name: `${nameColumn(content, column)}: ${title}`, last: { value }, best: { value: null, round: null } },
    })),
  );
  const withoutBest = others.map((row) => ({ ...row, best: { value: null, round: null } }));
  const totals = content.axes.map((name) => ({ name, total: readResult(run, name, "last") })).filter(({ total }) => total);
  const text = totals.map(({ name, total }) => {
    const format = FORMATS[name] ?? formatNumber;
    return `${nameColumn(content, name).replace(/, s$/, "")}: ${format(total.value)}`;
  });
  return makeBlock("Results", true, makeNote(text.join(" · ")), makeTable(columns, [...main, ...trivial, ...withoutBest]));
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

function listClients(content, run) {
  if (!run.clients) return makeNote("Its clients are left out: those of so many runs would make the page too large. See clients.csv.");
  const names = Object.keys(run.clients);
  if (!names.length) return null;
  const rows = run.clients[names[0]].map((_, i) => Object.fromEntries(names.map((name) => [name, run.clients[name][i]])));
  const columns = names.map((name) => {
    const values = run.clients[name].filter((value) => value !== null);
    const isWhole = values.every((value) => Number.isInteger(value));
    const isText = values.some((value) => typeof value === "string");
    const format = (value) => formatNumber(value, isWhole);
    return { title: nameColumn(content, name), hint: name, isText, read: (row) => row[name], format };
  });
  const known = rows.map((row) => row[run.ownMetric]).filter((value) => typeof value === "number").sort((one, other) => one - other);
  const [lowest, middle, highest] = [0, 0.5, 1].map((share) => formatNumber(computeQuantile(known, share)));
  const title = content.kinds[run.ownMetric];
  const text = known.length ? `${title} on their own test splits: lowest ${lowest}, median ${middle}, highest ${highest}.` : "";
  return makeBlock(`Clients (${rows.length})`, true, makeNote(text), makeTable(columns, rows));
}

function showPlots(content, run, index) {
  const names = Object.keys(run.plots);
  if (!names.length) return null;
  if (!run.pictures.length) {
    const links = makeElement("p", { class: "links" }, ...listLinks(run.plots));
    return makeBlock("Plots", true, links, makeNote(`In this page are those of ${content.rule}.`));
  }
  const pictures = run.pictures.map((name, number) => {
    const text = byId(`picture-${index}-${number}`).textContent;
    const image = makeElement("img", { src: `data:image/png;base64,${text}`, alt: name });
    return makeElement("figure", {}, image, makeElement("figcaption", {}, name));
  });
  return makeBlock(`Plots (${pictures.length})`, true, makeElement("div", { class: "pictures" }, ...pictures));
}

function listEvents(content, run) {
  if (!run.events) {
    const isLinked = run.links["events.csv"] && !run.detailed;
    return isLinked ? makeNote(`Its events are linked above; in this page are those of ${content.rule}.`) : null;
  }
  const { columns: names, rows, total } = run.events;
  const columns = names.map((name, i) => ({
    ...{ title: nameColumn(content, name), hint: name, isText: rows.some((row) => row[i] !== "" && isNaN(row[i])) },
    read: (row) => (row[i] === "" ? null : isNaN(row[i]) ? row[i] : Number(row[i])),
    format: (value) => formatNumber(value),
  }));
  const shown = rows.length < total ? `the first ${formatNumber(rows.length)} of ${formatNumber(total)}` : formatNumber(total);
  return makeBlock(`Events (${shown})`, false, makeTable(columns, rows));
}
