// The first card: whether a group is better than the baseline, by how much, and at what cost.
// A `view` is what is shown, see sections.js.

import { LEAST_SEEDS, areFedAvg, isDecided, isShare, listLeads } from "./baselines.js";
import { formatBytes, formatInterval, formatNumber } from "./numbers.js";
import { isLowBetter, readResult, summarizeGroup } from "./statistics.js";
import { makeElement } from "./table.js";
import { byId, countSeeds, describeTime, formatDifference, nameColumn, nameInSentence } from "./words.js";

const MOST_LEADS = 6; // lines that are shown at once, and all that are decided
const MOST_OPEN_LEADS = 12;
const PICKED = "It was picked by this very result, so other seeds should confirm it.";

// Fills the card. `split` has the groups of one data and their baseline, see `listSplits`; `trivial` are all trivial rows.
export function showAnswer(view, split, trivial) {
  const { content } = view;
  const isSingle = content.runs.length === 1;
  byId("choices").hidden = isSingle || !split.baseline;
  if (isSingle || split.groups.length < 2) return showAlone(view, split, trivial);
  const leads = listLeads(view, split);
  byId("answer-title").textContent = `Better than ${sayGroup(view, split.baseline, split.groups)}?`;
  const lines = leads.map((lead) => describeLead(view, split, lead));
  const numOpen = Math.min(MOST_OPEN_LEADS, Math.max(MOST_LEADS, leads.filter(({ verdict }) => isDecided(verdict)).length));
  const others = lines.splice(lines.length <= numOpen + 1 ? lines.length : numOpen);
  const more = makeElement("details", {}, makeElement("summary", {}, `${others.length} more`), makeElement("ul", {}, ...others));
  byId("leads").replaceChildren(makeElement("ul", {}, ...lines), ...(others.length ? [more] : []));
  fillNotes([describeMeasure(view, split), ...holdAgainst(view, split, trivial), ...advise(view, split, leads), nameBest(view, split)]);
}

function fillNotes(notes) {
  const makeNote = (parts) => makeElement("p", { class: "note" }, ...[parts].flat());
  byId("answer-notes").replaceChildren(...notes.filter(Boolean).map(makeNote));
}

// The group as a reader knows it: a number behind the name of its flag, and an experiment by its algorithm if that tells
// it from the others of `groups`.
export function sayGroup({ grouping, content }, group, groups = []) {
  const [flag] = grouping;
  if (grouping.length !== 1 || flag === "algo") return group.label;
  if (flag !== content.experiment) return `${flag} ${group.label}`;
  const list = (runs) => [...new Set(runs.map(({ title }) => title))].join(", ");
  const isTold = groups.filter(({ runs }) => list(runs) === list(group.runs)).length === 1;
  return isTold ? list(group.runs) : group.label;
}

// For example "better: +1.0 points [+0.2, +1.8]".
function describeLead(view, { groups }, lead) {
  const { group, paired, verdict } = lead;
  const areFew = paired && paired.count < LEAST_SEEDS;
  const shown = areFew ? { ...paired, low: null } : paired; // the interval of two seeds says nothing
  const size = paired ? formatLead(shown, view.metric) : "no seed in common";
  const count = paired ? `${countSeeds(paired.count)}${areFew ? ": too few to decide" : ""}` : "";
  return makeElement(
    "li",
    { class: isDecided(verdict) ? "decided" : null, "data-group": group.key },
    makeElement("span", { class: "who" }, sayGroup(view, group, groups)),
    makeElement("strong", {}, `${verdict}: ${size}`),
    makeElement("span", { class: "cost" }, [count, describeCost(lead)].filter(Boolean).join(", ")),
  );
}

// A difference with its interval: of shares in points, with as many digits as tell them from 0.
export function formatLead({ mean, low, high }, metric) {
  if (!isShare(metric)) return `${formatDifference(mean)}${low === null ? "" : ` [${formatDifference(low)}, ${formatDifference(high)}]`}`;
  const values = (low === null ? [mean] : [mean, low, high]).map((value) => 100 * value);
  const digits = values.every((value) => Math.abs(value) < 1e-9 || Math.abs(value) >= 0.05) ? 1 : 2;
  const [first, ...ends] = values.map((value) => {
    const text = Math.abs(value).toFixed(digits);
    return `${Number(text) === 0 ? "" : value > 0 ? "+" : "−"}${text}`;
  });
  return `${first} points${ends.length ? ` [${ends.join(", ")}]` : ""}`;
}

function describeCost({ bytes, theirBytes }) {
  if (bytes === null || theirBytes === null) return "bytes unknown";
  const sums = `${formatBytes(bytes)} a run against ${formatBytes(theirBytes)}`;
  if (bytes === theirBytes || Math.abs(bytes / theirBytes - 1) < 0.005) return `for the same bytes (${formatBytes(bytes)} a run)`;
  if (!bytes || !theirBytes) return `for ${sums}`;
  const ratio = bytes / theirBytes;
  const isNear = ratio > 0.9 && ratio < 1.1;
  return `for ${ratio >= 9.95 ? ratio.toFixed(0) : isNear ? ratio.toFixed(2) : ratio.toPrecision(2)} × the bytes (${sums})`;
}

// What was measured, when, and on which test set.
function describeMeasure(view, { runs, differing }) {
  const better = isLowBetter(view.metric) ? "; lower is better" : "";
  const what = `${nameColumn(view.content, view.metric)} ${describeTime(view)}, by seed, with 95\u00a0% intervals${better}.`;
  return `${what} ${describeTestSet(view, runs, differing)}`;
}

function describeTestSet({ metric }, runs, differing) {
  if (differing.length) return `No test set in common: the data differ in ${differing.join(", ")}.`;
  const names = [...new Set(runs.map((run) => run.flags.dataset))].join(", ");
  const sizes = runs.map((run) => run.testSizes[metric] ?? null);
  const known = sizes.filter((size) => size !== null);
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const count = least === most ? formatNumber(least) : `${formatNumber(least)} to ${formatNumber(most)}`;
  const size = known.length < sizes.length ? "its size is not in these runs" : `${count} examples${least === most ? "" : " by seed"}`;
  return `Test set${runs.length > 1 ? " in common" : ""}: ${metric.startsWith("client") ? "the clients' own, of " : ""}${names}, ${size}.`;
}

// What trivial rows reach on the same data, and whether any group is better.
function holdAgainst(view, { runs, groups }, trivial) {
  const members = new Set(runs.map(({ name }) => name));
  const found = trivial.filter(({ group }) => group.runs.every(({ name }) => members.has(name)));
  if (!found.length || new Set(found.map(({ group }) => group.title)).size < found.length) return [];
  const listed = found.map(({ group, summary }) => `${group.title.replace(" (trivial)", "")} ${formatNumber(summary.mean)}`).join(", ");
  const best = Math.max(...groups.map((group) => summarizeGroup(view, group).mean));
  const isBeaten = found.every(({ summary }) => best > summary.mean);
  return [[`Without a model: ${listed}.`, ...(isBeaten ? [] : [makeElement("strong", {}, " No group is better than that.")])]];
}

// Of what too little is there to decide, and what to do.
function advise(view, { baseline }, leads) {
  const { fedavg } = view.content;
  const areFew = leads.every(({ paired }) => !paired || paired.count < LEAST_SEEDS);
  const few = areFew ? "Fewer than three seeds decide nothing: train each with at least three, as --seeds=0-2 of launch.sweep does." : "";
  const command = ["FedAvg is not among these runs. Train it on the same data: ", makeElement("code", {}, fedavg)];
  const missing = fedavg && !areFedAvg(view, baseline) ? command : null;
  const many = leads.length > 5 ? `These are ${leads.length} intervals at once, of which one in twenty excludes 0 by chance.` : "";
  return [few, missing, many];
}

// The highest mean of these groups, which decides nothing.
function nameBest(view, { groups }) {
  const sign = isLowBetter(view.metric) ? 1 : -1;
  const results = groups.map((group) => ({ group, summary: summarizeGroup(view, group) }));
  const [{ group, summary }] = results.sort((one, other) => sign * (one.summary.mean - other.summary.mean));
  const interval = summary.low === null ? "" : ` (${formatInterval(summary)})`;
  const which = `${sign > 0 ? "Lowest" : "Highest"} mean: ${sayGroup(view, group, groups)}`;
  return `${which}, ${formatNumber(summary.mean)}${interval}, ${countSeeds(summary.count)}. ${PICKED}`;
}

// One run, whose result is not compared with any; or one group.
function showAlone(view, split, trivial) {
  const { content, metric } = view;
  const [run] = split.runs;
  const isSingle = content.runs.length === 1;
  const found = isSingle ? readResult(run, metric, view.at) : null;
  byId("answer-title").textContent = isSingle ? "One run alone" : "Nothing to compare with";
  const what = found ? ` ${nameInSentence(content, metric)} in round ${found.round}` : "";
  byId("leads").replaceChildren(...(found ? [makeElement("p", {}, makeElement("strong", {}, formatNumber(found.value)), what)] : []));
  if (!isSingle) return fillNotes(["A difference takes two groups with a result: group by another flag, or change the filters."]);
  const command = ["Train FedAvg on the same data, and this with as many seeds: ", makeElement("code", {}, content.fedavg)];
  fillNotes([
    "One run cannot tell whether it is better than FedAvg, nor how far chance reaches. Both take at least three seeds of each.",
    content.fedavg ? command : "",
    describeTestSet(view, split.runs, []),
    ...(found ? holdAgainst(view, split, trivial) : []),
  ]);
}
