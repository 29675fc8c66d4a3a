// Unpacks what is in the page, keeps what is chosen, and shows it.

import { sayGroup, showAnswer } from "./answer.js";
import { chooseBaseline, listLeads, listSplits } from "./baselines.js";
import { fillGrouping, fillSelect, makeFilter } from "./filters.js";
import { filterRuns, groupRuns } from "./groups.js";
import { showRun } from "./details.js";
import { showDifference } from "./differences.js";
import { rankGroups, showCurves, showGroups, showRuns, styleGroups, summarizeTrivial } from "./sections.js";
import { learnColumns } from "./statistics.js";
import { makeElement } from "./table.js";
import { byId, nameColumn } from "./words.js";

const FURTHER_AXES = ["joules_total", "epsilon_spent"]; // columns that only some runs have
const MOST_OFFERED_FLAGS = 8; // so many that differ are offered at once, the others in a list
let content = null;
let state = null;

async function unpack(name) {
  const text = byId(name).textContent;
  byId(name).remove();
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

async function start() {
  const script = makeElement("script");
  script.textContent = await unpack("plotly");
  document.head.append(script); // it runs at once and defines Plotly
  content = JSON.parse(await unpack("page-data"));
  learnColumns(content);
  const isSingle = content.runs.length === 1;
  document.body.classList.toggle("single", isSingle);
  byId("about").textContent = describeRuns();
  byId("main").hidden = false;
  const headings = (name) => (content.main.includes(name) ? "Results" : "Further columns");
  fillSelect(byId("metric"), content.metrics.map((name) => [name, nameColumn(content, name), headings(name)]));
  const axes = [...content.axes, ...FURTHER_AXES.filter((name) => content.metrics.includes(name))];
  fillSelect(byId("axis"), axes.map((name) => [name, nameColumn(content, name)]));
  fillSelect(byId("run"), content.runs.map((run, i) => [String(i), run.name]));
  byId("at-round").value = Math.max(...content.runs.map((run) => run.columns.round.at(-1)));
  showLeftOut();
  showMissing();
  showChanged();
  listen();
  reset();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
}

function describeRuns() {
  const list = (flag) => [...new Set(content.runs.map((run) => (flag === "title" ? run.title : run.flags[flag])))];
  const seeds = list(content.seed).length;
  const name = (flag, noun) => (list(flag).length > 6 ? `${list(flag).length} ${noun}` : list(flag).join(", "));
  const [titles, datasets] = [name("title", "algorithms"), name("dataset", "data sets")];
  if (content.runs.length === 1) return `Run folder ${content.runs[0].name}`;
  return `${titles} on ${datasets}; ${seeds} seed${seeds === 1 ? "" : "s"}`;
}

// The flags that differ and that somebody has set.
function listOffered() {
  return content.differing.filter((flag) => !content.unset.includes(flag)).slice(0, MOST_OFFERED_FLAGS);
}

function reset() {
  const offered = listOffered();
  if (!offered.includes(content.seed) && content.differing.includes(content.seed)) offered.push(content.seed);
  state = {
    grouping: content.grouping,
    groupable: [...new Set([...content.grouping, ...offered])].filter((flag) => flag !== content.seed && !content.versions.includes(flag)),
    filters: Object.fromEntries(offered.map((flag) => [flag, new Set()])),
    ...{ pair: null, data: "", baseline: "" },
    sorts: {
      runs: { column: null, isDescending: false },
      groups: { column: null, isDescending: false },
      pairs: { column: null, isDescending: false },
    },
  };
  byId("name").value = "";
  show();
  choose(0);
  fillFilters();
}

function listen() {
  for (const id of ["metric", "axis", "spread", "smoothing", "at-round", "all-flags"]) byId(id).addEventListener("change", show);
  byId("at").addEventListener("change", () => {
    byId("round-field").hidden = byId("at").value !== "round";
    show();
  });
  byId("name").addEventListener("input", show);
  byId("reset").addEventListener("click", reset);
  byId("run").addEventListener("change", () => choose(Number(byId("run").value)));
  for (const id of ["data", "baseline"]) {
    byId(id).addEventListener("change", () => {
      state[id] = byId(id).value;
      show();
    });
  }
  for (const id of ["one", "other"]) {
    byId(id).addEventListener("change", () => {
      state.pair = [byId("one").value, byId("other").value];
      show();
    });
  }
  byId("more-grouping").addEventListener("change", () => addFlag("more-grouping", groupByOne));
  byId("more-filters").addEventListener("change", () => addFlag("more-filters", (flag) => (state.filters[flag] = new Set())));
  document.addEventListener("click", (event) => {
    for (const filter of document.querySelectorAll("details.filter[open]")) if (!filter.contains(event.target)) filter.open = false;
  });
}

function groupByOne(flag) {
  state.groupable.push(flag);
  state.grouping = [...state.grouping, flag];
  state.pair = null;
}

function addFlag(id, add) {
  const flag = byId(id).value;
  if (!flag) return;
  add(flag);
  show();
  fillFilters();
}

function listFlagNames() {
  return [...new Set(content.runs.flatMap((run) => Object.keys(run.flags)))].sort();
}

function fillFilters() {
  const flags = Object.keys(state.filters);
  const remove = (flag) => () => {
    delete state.filters[flag];
    fillFilters();
    show();
  };
  const filters = flags.map((flag) => {
    const isOffered = listOffered().includes(flag) || flag === content.seed;
    return makeFilter(content.runs, flag, state.filters[flag], show, isOffered ? null : remove(flag));
  });
  byId("filters").replaceChildren(...filters);
  const others = (taken) => [["", "choose"], ...listFlagNames().filter((flag) => !taken.includes(flag)).map((flag) => [flag, flag])];
  fillSelect(byId("more-filters"), others(flags), "");
  fillSelect(byId("more-grouping"), others([...state.groupable, content.seed, ...content.versions]), "");
  fillGrouping(byId("grouping"), state.groupable, state.grouping, (chosen) => {
    state.grouping = chosen;
    state.pair = null;
    show();
  });
}

function choose(index, isScrolled = false) {
  byId("run").value = String(index);
  showRun(content, index);
  if (isScrolled) byId("details").scrollIntoView({ behavior: "smooth" });
}

function show() {
  const at = byId("at").value;
  const runs = filterRuns(content.runs, state.filters, byId("name").value);
  const grouping = [...new Set([...state.grouping, ...content.versions])]; // other data are never averaged together
  const view = {
    ...{ content, runs, groups: groupRuns(runs, grouping, content.algorithms), grouping },
    ...{ metric: byId("metric").value, axis: byId("axis").value, spread: byId("spread").value },
    smoothing: Number(byId("smoothing").value),
    at: at === "round" ? Number(byId("at-round").value) : at,
  };
  const styles = styleGroups(view);
  const ranked = rankGroups(view);
  const trivial = summarizeTrivial(view);
  const splits = listSplits(view).map((split) => ({ ...split, baseline: chooseBaseline(view, split.groups, state.baseline) }));
  const split = chooseSplit(view, splits);
  showAnswer(view, split, trivial);
  if (content.runs.length > 1) {
    showRuns(view, state.sorts.runs, byId("all-flags").checked, (run) => choose(content.runs.indexOf(run), true));
    showGroups(view, splits, ranked, trivial, styles, state.sorts.groups);
    const [one, other] = choosePair(view, split);
    showDifference(view, one, other, styles, state.sorts.pairs);
  }
  showCurves(view, ranked, styles);
}

// The data that the first card is about, and what may be chosen there: the data, if several have groups, and the baseline.
function chooseSplit(view, splits) {
  const split = splits.find(({ key }) => key === state.data) ?? splits[0];
  fillSelect(byId("data"), splits.map(({ key, label }) => [key, label]), split.key);
  byId("data-field").hidden = splits.length < 2;
  fillSelect(byId("baseline"), split.groups.map((group) => [group.key, sayGroup(view, group, split.groups)]), split.baseline?.key);
  return split;
}

// The two groups that are compared: those chosen while they are there, else what the first card begins with.
function choosePair(view, split) {
  const keys = view.groups.map((group) => group.key);
  const [lead] = split.groups.length > 1 ? listLeads(view, split) : [];
  const first = lead ? [lead.group.key, split.baseline.key] : keys.slice(0, 2);
  const chosen = state.pair?.every((key) => keys.includes(key)) ? state.pair : first;
  const options = view.groups.map((group) => [group.key, group.label]);
  ["one", "other"].forEach((id, i) => fillSelect(byId(id), options, chosen[i] ?? keys[0]));
  return chosen.map((key) => view.groups.find((group) => group.key === key));
}

function showLeftOut() {
  const count = content.leftOut.length;
  byId("left-out").hidden = !count;
  byId("left-out").querySelector("summary").textContent = `${count} folder${count === 1 ? " was" : "s were"} left out`;
  byId("left-out").querySelector("ul").replaceChildren(...content.leftOut.map((reason) => makeElement("li", {}, reason)));
}

// What has changed between runs of the same flags.
function showChanged() {
  byId("changed").hidden = !content.changed.length;
  byId("changed").replaceChildren(...content.changed.map((sentence) => makeElement("p", { class: "note" }, sentence)));
}

// What should be compared with the runs and is not there, with the commands that train it.
function showMissing() {
  byId("missing").hidden = !content.missing.length;
  const blocks = content.missing.map(({ text, command }) => makeElement("p", { class: "note" }, text, makeElement("code", {}, command)));
  byId("missing").replaceChildren(...blocks);
}

start().then(
  () => {
    byId("status").hidden = true;
    document.documentElement.dataset.ready = "yes";
  },
  (error) => {
    byId("status").textContent = `This page cannot be shown: ${error.message}. It needs a browser of 2023 or later.`;
    byId("status").classList.add("failed");
    throw error;
  },
);
