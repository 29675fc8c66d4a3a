// The section on two groups: their difference by seed. A `view` is what is shown, see sections.js.

import { LEAST_SEEDS } from "./baselines.js";
import { drawDifference } from "./charts.js";
import { formatFlag, formatInterval, formatNumber } from "./numbers.js";
import { areOfOneData, comparePairsByRound, estimatePairs } from "./statistics.js";
import { fillTable, makeElement } from "./table.js";
import { byId, countSeeds, describeTime, formatDifference, nameInSentence } from "./words.js";

const PAIRS = "Pairs are runs with the same seed, which share the split and the first weights. Interval: Student's t.";

// The difference of two groups by seed: in words, as a table, and over the rounds.
export function showDifference(view, one, other, styles, sort) {
  byId("differences").hidden = view.groups.length < 2;
  if (byId("differences").hidden) return null;
  const found = one && other && one !== other ? estimatePairs(view, one, other) : null;
  byId("difference").replaceChildren(...describeDifference(view, one, other, found));
  const columns = [
    { title: "Seed", read: (pair) => pair.seed, format: formatFlag },
    { title: one?.label ?? "", read: (pair) => pair.one, format: (value) => formatNumber(value) },
    { title: other?.label ?? "", read: (pair) => pair.other, format: (value) => formatNumber(value) },
    { title: "Difference", read: (pair) => pair.difference, format: formatDifference },
  ];
  fillTable(byId("pairs"), columns, found?.pairs ?? [], sort);
  byId("difference-note").textContent = PAIRS;
  const points = found ? comparePairsByRound(view, one, other) : [];
  byId("difference-chart").hidden = !points.length; // as where runs were measured at the end alone, after different rounds
  if (!points.length) return null;
  const cutBand = (point) => (point.count < LEAST_SEEDS ? { ...point, low: null, high: null } : point);
  const color = one ? styles.get(one.key).color : view.content.colors[0];
  return drawDifference(byId("difference-chart"), points.map(cutBand), color);
}

function describeDifference(view, one, other, found) {
  if (!one || !other || one === other) return ["Choose two different groups."];
  if (!areOfOneData(one, other)) return ["The two groups are of different data, so their seeds are no pairs."];
  if (!found) return ["The two groups share no seed."];
  const metric = nameInSentence(view.content, view.metric);
  const seeds = countSeeds(found.count);
  const mean = makeElement("strong", {}, formatDifference(found.mean));
  if (found.low === null) {
    const why = found.count < 2 ? "which takes two seeds" : "since all differences are equal";
    return [mean, ` in ${metric}, ${seeds}: no interval, ${why}.`];
  }
  const decided = found.low > 0 ? "The first is higher." : found.high < 0 ? "The first is lower." : "The interval includes 0: undecided.";
  const verdict = found.count < LEAST_SEEDS ? "Fewer than three seeds decide nothing." : decided;
  const interval = `95 % interval ${formatInterval(found, formatDifference)}`;
  return [mean, ` in ${metric} ${describeTime(view)}, ${interval}, ${seeds}. ${verdict}`];
}

